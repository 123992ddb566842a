"""What tasks do with a partition of a DataFrame: Arrow batches in, Arrow batches out, one batch of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..aggregates.folds.values import plain
from ..columns.arrays import ClockValue, Ints, combined
from ..planning.plan import Plan
from ..streaming.batch_rows import Progress, Rejected, clock_after, project_batch
from ..streaming.batch_scan import BatchScan
from ..streaming.batch_signals import GivenSignals
from ..streaming.batches import gather
from ..streaming.keyed_scan import KeyedScan

CLOCK = "__clock"
"""A column with the clock after the last row of all partitions, in measures; the same value in each row."""
NUMBER = "__number"
"""A column that nothing reads: it is there where rows are sorted by numbering them."""


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A function from the batches of a partition to others, as ``mapInArrow`` wants it. It pickles.

    ``plan``: the window.
    ``schema``: the columns of the batches, in plain types.
    ``result``: the columns of the batches that it yields, in the types of Spark.
    ``rejected``: what to do with rows that no window can place.
    """

    plan: Plan
    schema: pa.Schema
    result: pa.Schema
    rejected: Rejected

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows of a partition, many at a time."""
        for table in gather(batches):
            columns = [_plain(table.column(field.name), field.type) for field in self.schema]
            yield pa.Table.from_arrays(columns, schema=self.schema)

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield result rows as Spark takes them."""
        for table in tables:
            yield from table.cast(self.result).to_batches()


@dataclass(frozen=True, slots=True)
class Prepare(PartitionTask):
    """Computes columns that partitions or their order need, and leaves out rows that the window does not see."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the window sees, with the columns ``result``."""
        for table in self.tables(batches):
            nothing = np.zeros(table.num_rows, np.int64)
            rows, kept = project_batch(self.plan, table, nothing, self.result.names, self.rejected)
            rows = rows.select(self.result.names)
            yield from self.batches([rows if kept is None else rows.take(pa.array(kept))])


@dataclass(frozen=True, slots=True)
class FindClock(PartitionTask):
    """Finds the clock after the last row of a partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row with the clock, if there is one."""
        found = [clock_after(self.plan, table) for table in self.tables(batches)]
        clock = max((each for each in found if each is not None), default=None)
        if clock is not None:
            yield from self.batches([pa.table({CLOCK: [clock]})])


@dataclass(frozen=True, slots=True)
class ScanPartition(PartitionTask):
    """Scans the windows of a partition.

    ``by_key``: whether rows are sorted by key, and keys apart; else they are in the order of the window over all keys.
    ``arrival``: the column with arrival positions; None: rows are counted.
    ``mark``: the boolean column of marks; None: no marks.
    ``clock``: the clock after the last row, in measures; None: that of a column `CLOCK`, or of the rows.
    ``since``: the clock before the first row; None: no earlier row.
    """

    by_key: bool
    arrival: str | None = None
    mark: str | None = None
    clock: ClockValue | None = None
    since: ClockValue | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result rows of a partition."""
        scan: BatchScan | KeyedScan | None = None
        for table in self.tables(batches):
            scan = scan or self._scan(table)
            rows = table.drop_columns([CLOCK]) if CLOCK in table.schema.names else table
            yield from self.batches(scan.scan(rows, self._places(table)))
        if scan is not None:
            yield from self.batches(scan.end())

    def _scan(self, table: pa.Table) -> BatchScan | KeyedScan:
        clock = self.clock
        if CLOCK in table.schema.names:
            found = table.column(CLOCK)[0].as_py()
            clock = found if clock is None else max(found, clock)
        schema = pa.schema([field for field in self.schema if field.name != CLOCK])
        scan = BatchScan(
            schema, self.plan, GivenSignals(self.mark), self.rejected, clock, Progress(clock=self.since), is_sorted=True
        )
        return KeyedScan(scan) if self.by_key else scan

    def _places(self, table: pa.Table) -> Ints | None:
        if self.arrival is None:
            return None
        return combined(table.column(self.arrival)).to_numpy()


def _plain(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    return (
        column if column.type == dtype else pa.chunked_array([plain(each).cast(dtype) for each in column.chunks], dtype)
    )
