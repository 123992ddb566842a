"""Batches put together: the scan of a batch costs as much as the open windows have rows, besides its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

_MOST_BYTES = 64 * 2**20
_MOST_ROWS = 1 << 20


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables of about 64 MiB, or a million rows."""
    found: list[pa.RecordBatch] = []
    nbytes, rows = 0, 0
    for batch in batches:
        found.append(batch)
        nbytes, rows = nbytes + batch.nbytes, rows + batch.num_rows
        if nbytes >= _MOST_BYTES or rows >= _MOST_ROWS:
            yield pa.Table.from_batches(found)
            found, nbytes, rows = [], 0, 0
    if found:
        yield pa.Table.from_batches(found)
