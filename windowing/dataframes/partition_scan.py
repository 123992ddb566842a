"""What tasks do with a partition of a DataFrame: Arrow batches in, Arrow batches out, one batch of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import plain_column
from ..columns.arrays import ClockValue, combined, latest_clock
from ..language.spec import HIDDEN
from ..planning.plan import Plan
from ..spark.task_errors import guarded
from ..state.carry import Carry, Registers
from ..state.one_table import NO_KEY, PART, REGISTERS, ROWS, STATE, conform, register_rows, registers_of
from ..streaming.batch_rows import GivenSignals, clock_after, gather, project_batch
from ..streaming.batch_scan import BatchScan, TieOrder, arrival_positions
from ..streaming.kept_state import StateForm
from ..streaming.keyed_scan import CODE, PART_OF, STATE_OF, KeyedScan, state_rows
from ..streaming.row_rejects import FAILED_BEFORE, Rejected, RowRejects, with_failures
from .layout import Layout, place_names

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
        columns = [plain_column(table.column(place), field.type) for place, field in enumerate(self.schema)]
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
        names = [name for name in self.result.names if name not in (SEEN, FAILED_BEFORE)]
        for table in self.tables(batches):
            nothing, rejects = np.zeros(table.num_rows, np.int64), RowRejects(self.rejected)
            rows, selection = project_batch(self.plan, table, nothing, names, rejects)
            picks = selection.without_failures().picks
            mask = np.full(table.num_rows, picks is None)  # of the rows that the window sees
            mask[slice(0) if picks is None else picks] = True
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
        found = [clock_after(self.plan, table) for table in self.tables(batches)]
        clock = latest_clock(found)
        if clock is not None:
            yield from self.batches([pa.table([[clock]], names=self.result.names)])


def task_function(task: Callable[..., Any]) -> Any:
    """Return a task as the function that ``mapInArrow`` asks for: it looks at its signature."""
    sending_errors = guarded(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sending_errors(batches)

    return run


# The scan of a partition. Where windows go on, a state comes in before rows, and one goes out.


PART_IN, STATE_IN, BEFORE = "part", "state", "before"
"""What Spark calls `PART_OF` and `STATE_OF` of rows that go in, and a column with registers of the state before all new
rows, the same value in each row."""
FOUND = "found"
"""The column with all registers of a state in one list."""
IN_STRUCT = (STATE, ROWS, REGISTERS)
"""The fields of `STATE_OF`."""
_BATCH_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class FirstRegisters:
    """Yields the one row of registers that windows begin from. It pickles.

    ``result``: the columns of a state, in the types of Spark.
    ``since``: the clock before the first row of all, where there is no state; None: no earlier row.
    """

    form: StateForm
    result: pa.Schema
    since: ClockValue | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield registers: those in column `FOUND`, or new ones. Raises `ConfigError` for those of another job."""
        for batch in batches:
            registers = Registers(clock=self.since)
            if FOUND in batch.schema.names:
                registers = self.form.registers(_registers_in(self.form, batch.column(FOUND).flatten()))
            row = register_rows(self.form.schema, self.form.job, registers)
            yield from conform(_columns(row), self.result, 1).to_batches()


@dataclass(frozen=True, slots=True)
class ScanPartition(PartitionTask):
    """Scans the windows of a partition; with ``form`` from a state on: rows of the result come out, and of the state.

    ``layout``: how rows are laid out: in the order of the window over all keys, or by buckets of keys with `CODE`.
    ``arrival``: the column with arrival positions; None: rows are counted.
    ``mark``: the boolean column of marks; None: no marks.
    ``clock``: the clock after the last row, in measures; None: that of a column `CLOCK`, or of the rows.
    ``since``: the clock before the first row; None: no earlier row.
    ``shown``: the columns that a rejected row has in the result; None: all.
    ``form``: the form of states; None: there is no state.
    """

    layout: Layout
    arrival: str | None = None
    mark: str | None = None
    clock: ClockValue | None = None
    since: ClockValue | None = None
    shown: pa.Schema | None = None
    form: StateForm | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (self._by_key if self.layout.by_key else self._in_order)(gather(batches))

    def _by_key(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        scan: KeyedScan | None = None
        for table in tables:
            scan = scan or self._of_buckets(table)
            yield from self.batches(scan.scan(self._named(table, [pa.field(CODE, pa.int64())])))
            yield from self._states(scan.taken())
        if scan is not None:
            yield from self.batches(scan.end())
            if self.form is not None:
                yield from self._states([*scan.taken(), register_rows(self.form.schema, None, scan.registers)])

    def _in_order(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        scan, held = None, list[pa.Table]()
        for table in tables:
            rows = self._named(table, ())
            if self.form is not None:
                is_new = rows.column(PART_OF).is_null()
                held.append(state_rows(self.form, rows.filter(pc.invert(is_new))))
                rows = rows.filter(is_new).drop_columns([PART_OF, STATE_OF])
            if rows.num_rows or not held:
                scan = scan or self._of_all_keys(held)
                pos = None  # arrival positions are counted
                if self.arrival is not None:
                    pos = arrival_positions(combined(rows.column(self.arrival)), self.arrival)
                yield from self.batches(scan.scan(rows, pos))
        scan = self._of_all_keys(held) if scan is None and held else scan
        if scan is not None:
            yield from self.batches(scan.end())
            if self.form is not None:
                yield from self._states([self.form.table(scan.carry)])

    def _named(self, table: pa.Table, more: Sequence[pa.Field]) -> pa.Table:
        """Return rows with their names and types, and with the columns of a state. ``more``: columns behind theirs."""
        own = [field for field in self.schema if field.name != CLOCK]
        names = [*place_names(len(own)), *(field.name.removeprefix(HIDDEN) for field in more)]
        rows = replace(self, schema=pa.schema([*own, *more])).typed(table.select(names))
        if PART_IN in table.schema.names:
            rows = rows.append_column(PART_OF, table.column(PART_IN))
            rows = rows.append_column(STATE_OF, table.column(STATE_IN))
        return rows

    def _of_buckets(self, table: pa.Table) -> KeyedScan:
        """Return the scan of buckets. ``table``: the first rows."""
        end = table.column("clock")[0].as_py() if "clock" in table.schema.names else None
        ties = TieOrder(self.layout.ties if self.layout.coarse else (), self.arrival)
        tied = () if self.layout.coarse else (*self.layout.order, *self.layout.ties)
        first = replace(self._scan(latest_clock([end, self.clock])), ties=ties)
        if self.form is None:
            return KeyedScan(first, tied)
        before = first.carry.registers
        if BEFORE in table.schema.names:
            before = registers_of(_registers_in(self.form, combined(table.column(BEFORE))[:1]))
        clock = latest_clock([first.clock, before.clock])
        first = replace(first, clock=clock, carry=Carry(before), is_sorted=False, is_continued=True)
        return KeyedScan(first, tied, self.form)

    def _of_all_keys(self, held: Sequence[pa.Table]) -> BatchScan:
        """Return the scan of all keys. ``held``: the rows of the state, if there is one."""
        scan = self._scan(self.clock)
        if self.form is None:
            return scan
        before = self.form.read(pa.concat_tables(held))
        return replace(scan, carry=before, is_sorted=False, is_continued=True)

    def _scan(self, clock: ClockValue | None) -> BatchScan:
        """Return a scan that has read nothing. ``clock``: after the last row."""
        schema = pa.schema([field for field in self.schema if field.name != CLOCK])
        signals, carry = GivenSignals(self.mark), Carry(Registers(clock=self.since))
        return BatchScan(schema, self.plan, signals, self.rejected, clock, carry, shown=self.shown, is_sorted=True)

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            if self.form is None:
                yield from table.cast(self.result).to_batches()
            else:  # rows of the result have no columns of a state
                yield from conform(_columns(table), self.result, table.num_rows).to_batches()

    def _states(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            columns = _columns(table)
            held = pa.StructArray.from_arrays([columns[name] for name in IN_STRUCT], list(IN_STRUCT))
            own = {name: columns[name] for name in self.plan.key}
            rows = conform({**own, PART_OF: columns[PART], STATE_OF: held}, self.result, table.num_rows)
            yield from rows.to_batches(max_chunksize=max(1, _BATCH_BYTES * rows.num_rows // max(1, rows.nbytes)))


def _registers_in(form: StateForm, found: pa.StructArray) -> pa.Table:
    columns = {PART: pa.array([NO_KEY] * len(found), pa.int64()), REGISTERS: found}
    return conform(columns, form.schema, len(found))


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    return {name: combined(column) for name, column in zip(table.column_names, table.columns, strict=True)}
