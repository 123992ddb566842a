"""The scan of batches that are sorted by buckets of keys: a bucket is complete where the next one begins.

A bucket holds all rows of its keys, in the order of their coarse time (the column `CODE`). So one integer sorts them,
and only one bucket is ever open. Most buckets are complete in one batch, which then is a table of its own. One that is
larger goes on from batch to batch with the window state of its keys, as a stream does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined
from ..errors import DataError
from ..language.spec import HIDDEN
from .batch_scan import BatchScan
from .restoring_scan import RestoringScan

CODE = f"{HIDDEN}code"
"""The column with codes, int64: the bucket of the key, times 2^50, plus a number that never falls with the first order
column, and is above -2^49 and below 2^49."""
COARSE_BITS = 50
_HALF = 1 << (COARSE_BITS - 1)
_MOST_HELD = 1 << 18


@dataclass(slots=True)
class KeyedScan:
    """Windows over batches in the order of their codes.

    ``first``: the scan of a bucket before its first row.
    ``tied``: further columns by which the rows are sorted. A batch is never cut between rows that are equal in code
        and in these, so no row comes after one that it sorts before.
    """

    first: BatchScan | RestoringScan
    tied: tuple[str, ...] = ()
    _open: BatchScan | RestoringScan | None = field(default=None, repr=False)
    _held: pa.Table | None = field(default=None, repr=False)

    def scan(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what a batch brings out.

        ``table``: the columns of ``first.schema``, and `CODE`. Raises as `BatchScan.scan` does, and `DataError` where
        codes fall.
        """
        if not table.num_rows:
            return
        table = table if self._held is None else pa.concat_tables([self._held, table])
        buckets = _buckets(table)
        last = int(np.searchsorted(buckets, buckets[-1]))
        if last:
            yield from self._finish(table.slice(0, last), int(np.searchsorted(buckets, buckets[0], "right")))
        self._held = table.slice(last)
        if self._held.num_rows > _MOST_HELD:
            yield from self._go_on(self._held)

    def end(self) -> Iterator[pa.Table]:
        """Yield what the end of the rows brings out."""
        if self._held is not None:
            yield from self._finish(self._held, self._held.num_rows)
        self._held = None

    def _finish(self, table: pa.Table, first: int) -> Iterator[pa.Table]:
        """Yield what buckets bring out that are complete. ``first``: the number of rows of the first of them."""
        if self._open is not None:
            yield from self._open.end(table.slice(0, first).drop_columns([CODE]))
            self._open, table = None, table.slice(first)
        if table.num_rows:
            yield from self._windows().end(table.drop_columns([CODE]))

    def _go_on(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what rows of one bucket bring out, but for the last of them and those that tie with it."""
        cut = _first_of_last(table.select([CODE, *self.tied]))
        if cut:
            self._open = self._open or self._windows()
            self._held = table.slice(cut)
            yield from self._open.scan(table.slice(0, cut).drop_columns([CODE]))

    def _windows(self) -> BatchScan | RestoringScan:
        return replace(self.first)


def _buckets(table: pa.Table) -> Ints:
    """Return the bucket of each row, int64 (n,)."""
    codes = combined(table.column(CODE)).to_numpy()
    if (codes[1:] < codes[:-1]).any():
        raise DataError("the rows of a partition are not sorted", "this engine drops sorts: use another one")
    return (codes + _HALF) >> COARSE_BITS


def _first_of_last(table: pa.Table) -> int:
    """Return the first of the rows at the end that are equal to the last one."""
    equal = np.ones(table.num_rows, np.bool_)
    for column in table.columns:
        same = pc.equal(column, column[-1]) if column[-1].is_valid else pc.is_null(column)
        equal &= combined(same.fill_null(False)).to_numpy(zero_copy_only=False)
    return int(table.num_rows - np.argmin(np.append(equal[::-1], False)))
