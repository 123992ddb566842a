"""What tasks do with a partition of a DataFrame: Arrow batches in, Arrow batches out, one batch of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..aggregates.inputs import plain
from ..columns.arrays import ClockValue, Ints, Mask, combined, latest_clock
from ..language.spec import HIDDEN
from ..planning.plan import Plan
from ..spark.task_errors import guarded
from ..streaming.batch_rows import Progress, clock_after, project_batch
from ..streaming.batch_scan import BatchScan
from ..streaming.batch_signals import GivenSignals
from ..streaming.batches import gather
from ..streaming.keyed_scan import CODE, KeyedScan
from ..streaming.row_rejects import FAILED_BEFORE, Rejected, RowRejects, with_failures
from ..streaming.tie_order import TieOrder, arrival_positions
from .layout import Layout
from .places import place_names

CLOCK = f"{HIDDEN}clock"
"""A column with the clock after the last row of all partitions, in measures; the same value in each row."""
SEEN = f"{HIDDEN}seen"
"""A column that says whether the window sees a row."""


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A function from the batches of a partition to others, as ``mapInArrow`` wants it. It pickles.

    ``plan``: the window.
    ``schema``: the columns of the batches, in plain types and in their order; Spark calls them by other names. Columns
        behind them are not read.
    ``result``: the columns of the batches that it yields, in the types of Spark.
    ``rejected``: what to do with rows that no window can place.
    """

    plan: Plan
    schema: pa.Schema
    result: pa.Schema
    rejected: Rejected

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows of a partition, many at a time."""
        return map(self.typed, gather(batches))

    def typed(self, table: pa.Table) -> pa.Table:
        """Return the columns of ``schema``, which come first, in its types and with its names."""
        columns = [_plain(table.column(place), field.type) for place, field in enumerate(self.schema)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield result rows as Spark takes them."""
        for table in tables:
            yield from table.cast(self.result).to_batches()


@dataclass(frozen=True, slots=True)
class Prepare(PartitionTask):
    """Computes columns that partitions or their order need, and leaves out rows that the window does not see.

    With a column `SEEN` it leaves none out, but says there which rows the window sees: the others may have marks. With
    `FAILED_BEFORE` it keeps the rows for which an expression fails, and says there why.
    """

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the window sees, or all, with the columns ``result``, called by their places."""
        names = [name for name in self.result.names if name not in (SEEN, FAILED_BEFORE)]
        for table in self.tables(batches):
            nothing, rejects = np.zeros(table.num_rows, np.int64), RowRejects(self.rejected)
            rows, kept = project_batch(self.plan, table, nothing, names, rejects)
            mask = _mask(kept, table.num_rows)
            rows = rows.select(names)
            if FAILED_BEFORE in self.result.names:
                rows = with_failures(rows, rejects.failures)
                mask[slice(0) if rejects.failures is None else rejects.failures.row] = True
            rows = rows.append_column(SEEN, pa.array(mask)) if SEEN in self.result.names else rows.filter(mask)
            for batch in self.batches([rows]):
                yield pa.RecordBatch.from_arrays(batch.columns, names=place_names(batch.num_columns))


@dataclass(frozen=True, slots=True)
class FindClock(PartitionTask):
    """Finds the clock after the last row of a partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row with the clock, if there is one."""
        found = [clock_after(self.plan, table) for table in self.tables(batches)]
        clock = latest_clock(found)
        if clock is not None:
            yield from self.batches([pa.table([[clock]], names=self.result.names)])


@dataclass(frozen=True, slots=True)
class ScanPartition(PartitionTask):
    """Scans the windows of a partition.

    ``layout``: how rows are laid out: in the order of the window over all keys, or by buckets of keys with `CODE`.
    ``arrival``: the column with arrival positions; None: rows are counted.
    ``mark``: the boolean column of marks; None: no marks.
    ``clock``: the clock after the last row, in measures; None: that of a column `CLOCK`, or of the rows.
    ``since``: the clock before the first row; None: no earlier row.
    ``shown``: the columns that a rejected row has in the result; None: all.
    """

    layout: Layout
    arrival: str | None = None
    mark: str | None = None
    clock: ClockValue | None = None
    since: ClockValue | None = None
    shown: pa.Schema | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result rows of a partition."""
        return self._by_key(batches) if self.layout.by_key else self._in_order(batches)

    def _by_key(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.schema.append(pa.field(CODE, pa.int64()))
        scan: KeyedScan | None = None
        for table in replace(self, schema=schema).tables(batches):
            scan = scan or KeyedScan(self.bucket_scan(self._end(table)), self.tied)
            yield from self.batches(scan.scan(_without_clock(table)))
        if scan is not None:
            yield from self.batches(scan.end())

    def _in_order(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scan: BatchScan | None = None
        for table in self.tables(batches):
            scan = scan or self.scan(self.clock)
            yield from self.batches(scan.scan(table, self.places(table)))
        if scan is not None:
            yield from self.batches(scan.end())

    @property
    def tied(self) -> tuple[str, ...]:
        """The columns by which Spark sorts the rows of a bucket besides their codes."""
        return () if self.layout.coarse else (*self.layout.order, *self.layout.ties)

    def bucket_scan(self, clock: ClockValue | None) -> BatchScan:
        """Return a scan of a bucket that has read nothing. ``clock``: after the last row."""
        ties = TieOrder(self.layout.ties if self.layout.coarse else (), self.arrival)
        return replace(self.scan(clock), ties=ties)

    def _end(self, table: pa.Table) -> ClockValue | None:
        """Return the clock after the last row. ``table``: the first rows of the partition."""
        found = table.column(CLOCK)[0].as_py() if CLOCK in table.schema.names else None
        return latest_clock([found, self.clock])

    def scan(self, clock: ClockValue | None) -> BatchScan:
        """Return a scan that has read nothing. ``clock``: after the last row."""
        schema = pa.schema([field for field in self.schema if field.name != CLOCK])
        signals, progress = GivenSignals(self.mark), Progress(clock=self.since)
        return BatchScan(schema, self.plan, signals, self.rejected, clock, progress, shown=self.shown, is_sorted=True)

    def places(self, table: pa.Table) -> Ints | None:
        """Return the arrival positions of rows, int64 (n,); None: they are counted."""
        if self.arrival is None:
            return None
        return arrival_positions(combined(table.column(self.arrival)), self.arrival)


def _without_clock(table: pa.Table) -> pa.Table:
    return table.drop_columns([CLOCK]) if CLOCK in table.schema.names else table


def _mask(picks: Ints | None, rows: int) -> Mask:
    """Return which of ``rows`` rows are picked, bool (n,); None: all."""
    mask = np.full(rows, picks is None)
    mask[slice(0) if picks is None else picks] = True
    return mask


def _plain(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    return (
        column if column.type == dtype else pa.chunked_array([plain(each).cast(dtype) for each in column.chunks], dtype)
    )


def task_function(task: Callable[..., Any]) -> Any:
    """Return a task as the function that ``mapInArrow`` asks for: it looks at its signature."""
    sending_errors = guarded(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sending_errors(batches)

    return run
