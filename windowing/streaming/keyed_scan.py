"""The scan of batches that are sorted by key: a key is complete where the next one begins, so only one is ever open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from ..errors import DataError
from ..sequences.sequence import group_codes
from .batch_rows import Progress
from .batch_scan import BatchScan


@dataclass(slots=True)
class KeyedScan:
    """Windows over batches in the order of their keys, within a key in the order of the window.

    Equal keys stand together, also over the ends of batches; in which order keys come is of no matter.

    ``first``: the scan of a key before its first row.
    """

    first: BatchScan
    _open: BatchScan | None = field(default=None, repr=False)
    _key: pa.Table | None = field(default=None, repr=False)
    _rows: int = field(default=0, repr=False)

    def scan(self, table: pa.Table, pos: Ints | None = None) -> Iterator[pa.Table]:
        """Yield what a batch brings out. ``pos``: as of `BatchScan.scan`; None: rows are counted within their keys.

        Raises as `BatchScan.scan` does, and `DataError` where the rows of a key do not stand together in the batch.
        """
        if not table.num_rows:
            return
        starts, distinct = _starts(self._keys(table))
        if len(starts) > distinct:
            raise DataError("rows of one key do not stand together", "sort each partition by the key")
        goes_on = self._goes_on(table)
        if not goes_on:
            yield from self.end()
        places = self._places(starts, table.num_rows) if pos is None else pos
        first, last = int(starts[min(1, len(starts) - 1)]) if goes_on else 0, int(starts[-1])
        # The clock of the open key has moved on, and that of other keys has not, so they are apart.
        for low, high in ((0, first), (first, last)):
            if low < high:
                yield from self._windows().end(table.slice(low, high - low), places[low:high])
                self._open = None
        self._rows = table.num_rows - last + (self._rows if goes_on and not last else 0)
        self._key = self._keys(table.slice(table.num_rows - 1))
        yield from self._windows().scan(table.slice(last), places[last:])

    def end(self) -> Iterator[pa.Table]:
        """Yield what the end of the rows brings out."""
        if self._open is not None:
            yield from self._open.end()
        self._open, self._key, self._rows = None, None, 0

    def _windows(self) -> BatchScan:
        """Return the scan of the open key, or else a new one."""
        if self._open is None:
            self._open = replace(self.first, progress=Progress(clock=self.first.progress.clock), is_sorted=True)
        return self._open

    def _keys(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.first.plan.key))

    def _goes_on(self, table: pa.Table) -> bool:
        if self._key is None:
            return False
        starts, _ = _starts(pa.concat_tables([self._key, self._keys(table.slice(0, 1))]))
        return len(starts) == 1

    def _places(self, starts: Ints, rows: int) -> Ints:
        """Return the place of each row among the rows of its key, int64 (n,)."""
        counts = np.diff(np.append(starts, rows))
        places = np.arange(rows) - np.repeat(starts, counts)
        places[: counts[0]] += self._rows
        return places


def _starts(keys: pa.Table) -> tuple[Ints, int]:
    """Return where another key begins, int64, ascending, and how many distinct keys there are."""
    codes, distinct = group_codes([combined(column) for column in keys.columns])
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1])), distinct.num_rows
