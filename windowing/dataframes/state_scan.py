"""What tasks do with a partition of a DataFrame whose windows go on: a state comes in before rows, and one goes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, combined, latest_clock
from ..language.spec import HIDDEN
from ..state.one_table import NO_KEY, PART, REGISTERS, ROWS, STATE, Registers, conform, register_rows
from ..state.read_table import registers_of
from ..streaming.batch_rows import Progress
from ..streaming.batch_scan import BatchScan
from ..streaming.batches import gather
from ..streaming.kept_state import KeptState, StateForm, from_table, progress_of
from ..streaming.keyed_scan import CODE, KeyedScan
from ..streaming.restoring_scan import PART_OF, STATE_OF, LeftState, RestoringScan, state_rows
from .partition_scan import CLOCK, ScanPartition
from .places import place_names

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

    ``form``: the form of states.
    ``result``: the columns of a state, in the types of Spark.
    ``since``: the clock before the first row of all, where there is no state; None: no earlier row.
    """

    form: StateForm
    result: pa.Schema
    since: ClockValue | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield registers: those in column `FOUND`, or new ones. Raises `ConfigError` for those of another job."""
        for batch in batches:
            registers = self._found(batch) if FOUND in batch.schema.names else self._new()
            yield from conform(_columns(register_rows(self.form.schema, registers)), self.result, 1).to_batches()

    def _new(self) -> Registers:
        return self.form.registers(Progress(clock=self.since))

    def _found(self, batch: pa.RecordBatch) -> Registers:
        return self.form.restored(_registers_in(self.form, batch.column(FOUND).flatten()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanWithState(ScanPartition):
    """Scans the windows of a partition, from a state on. Rows of the result come out, and rows of the state.

    ``form``: the form of states.
    """

    form: StateForm

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the result, for which `PART_OF` is null, and rows of the state."""
        tables = gather(batches)
        return self._buckets(tables) if self.layout.by_key else self._all_keys(tables)

    def _buckets(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        left = LeftState(self.form)
        scan: KeyedScan | None = None
        for table in tables:
            scan = scan or self._restoring(table, left)
            yield from self.batches(scan.scan(self._mixed(table, [pa.field(CODE, pa.int64())])))
            yield from self._states(left)
        if scan is not None:
            yield from self.batches(scan.end())
            left.tables.append(register_rows(self.form.schema, left.registers()))
            yield from self._states(left)

    def _all_keys(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        left = LeftState(self.form)
        scan: BatchScan | None = None
        for table in tables:
            is_new = table.column(PART_IN).is_null()
            mixed = self._mixed(table, ())
            rows = mixed.filter(is_new).drop_columns([PART_OF, STATE_OF])
            left.tables.append(state_rows(self.form, self.plan.key, mixed.filter(pc.invert(is_new))))
            if rows.num_rows:
                scan = scan or self._restored(left)
                yield from self.batches(scan.scan(rows, self.places(rows)))
        if left.tables:
            scan = scan or self._restored(left)
            yield from self.batches(scan.end())
            left.tables[:] = [self.form.table(KeptState(scan.state, scan.progress))]
            yield from self._states(left)

    def _mixed(self, table: pa.Table, more: Sequence[pa.Field]) -> pa.Table:
        """Return rows with their names and types, and with the columns of a state. ``more``: columns behind theirs."""
        schema = pa.schema([*(field for field in self.schema if field.name != CLOCK), *more])
        names = [*place_names(len(schema) - len(more)), *(field.name.removeprefix(HIDDEN) for field in more)]
        rows = replace(self, schema=schema).typed(table.select(names))
        if PART_IN in table.schema.names:
            rows = rows.append_column(PART_OF, table.column(PART_IN))
            rows = rows.append_column(STATE_OF, table.column(STATE_IN))
        return rows

    def _restoring(self, table: pa.Table, left: LeftState) -> KeyedScan:
        before = Progress(clock=self.since)
        if BEFORE in table.schema.names:
            before = progress_of(_registers_in(self.form, combined(table.column(BEFORE))[:1]))
        ends = [table.column(name)[0].as_py() for name in ("clock",) if name in table.schema.names]
        clock = latest_clock([*ends, self.clock, before.clock])
        first = self.bucket_scan(clock)
        first = replace(first, clock=clock, progress=before, is_sorted=False, is_continued=True)
        return KeyedScan(RestoringScan(first, left), self.tied)

    def _restored(self, left: LeftState) -> BatchScan:
        before = from_table(self.plan, self.form, pa.concat_tables(left.tables))
        scan = replace(self.scan(self.clock), progress=before.progress, is_sorted=False, is_continued=True)
        scan.state = before.state
        return scan

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the result as Spark takes them."""
        for table in tables:
            yield from conform(_columns(table), self.result, table.num_rows).to_batches()

    def _states(self, left: LeftState) -> Iterator[pa.RecordBatch]:
        """Yield rows of the state as Spark takes them, and forget them."""
        for table in left.tables:
            columns = _columns(table)
            held = pa.StructArray.from_arrays([columns[name] for name in IN_STRUCT], list(IN_STRUCT))
            own = {name: columns[name] for name in self.plan.key}
            rows = conform({**own, PART_OF: columns[PART], STATE_OF: held}, self.result, table.num_rows)
            yield from rows.to_batches(max_chunksize=max(1, _BATCH_BYTES * rows.num_rows // max(1, rows.nbytes)))
        left.tables.clear()


def with_form(task: ScanPartition, form: StateForm, result: pa.Schema) -> ScanWithState:
    """Return a task that also goes on from states and leaves them. ``result``: the columns that it yields then."""
    given = {each.name: getattr(task, each.name) for each in fields(task)}
    return ScanWithState(**{**given, "result": result, "form": form})


def _registers_in(form: StateForm, found: pa.StructArray) -> Registers:
    columns = {PART: pa.array([NO_KEY] * len(found), pa.int64()), REGISTERS: found}
    return registers_of(conform(columns, form.schema, len(found)))


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    return {name: combined(column) for name, column in zip(table.column_names, table.columns, strict=True)}
