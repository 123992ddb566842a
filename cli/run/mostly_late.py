"""The note on a run of which most rows came late: they came behind one row, which may be from the future.

Nothing is recorded for it. Where it is due, the row is sought in the input of the unit that moved the clock so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...conf.job import Job
from ...conf.ranges import kind_of
from ...readers.open import open_source
from ...readers.source import FileSource
from ...windowing.columns.arrays import ClockValue, Mask, combined
from ...windowing.columns.sort_keys import sorts_before
from ...windowing.engine.rejects import value_of_reading
from ...windowing.enrichment.step import without_enrichments
from ...windowing.errors import WincliError
from ...windowing.planning.plan import Plan
from ...windowing.ports import Executor, Split
from ...windowing.rows.projection import RowExpressions, with_columns
from ...windowing.rows.sequence import one_batch
from ...windowing.scan.row_validation import event_times, highest_reading, lateness_of
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord
from ..console.messages import Messages
from ..console.row_account import is_mostly_late
from .context import StagedJob, StageRun
from .open_input import row_expressions
from .request import read_options, stage_prefix

_POSITION = "position"


@dataclass(frozen=True, slots=True)
class EarlierUnits:
    """The units on a state before one.

    ``state``: the state.
    ``before``: the unit whose window state is restored; None: there is none.
    """

    state: State
    before: UnitRecord | None

    @property
    def chain(self) -> Iterator[UnitRecord]:
        record = self.before
        while record is not None:
            yield record
            record = None if record.previous is None else self.state.record(record.previous)

    def position(self, record: UnitRecord) -> pa.Table | None:
        if not self.state.has_data(record.label):
            return None
        return self.state.stage(record.label, record.stages[0].name).read_table(_POSITION)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The row that the others came behind.

    ``unit``: the unit that has it; None: this run.
    ``value``: its order values, or its event time, as text.
    ``place``: its file and line; None: it was not found.
    """

    unit: UnitRecord | None
    value: str
    place: str | None


def announce_late(
    staged: StagedJob, earlier: EarlierUnits | None, label: str, executor: Callable[[], Executor], messages: Messages
) -> None:
    """Write a note for each stage of which most rows were late. ``executor``: called only where there is one."""
    for run in staged.stage_runs:
        counts = run.outcome.counts
        if not is_mostly_late(counts.rejected, counts.rows_in):
            continue
        late = counts.rejected["late"]
        ahead = _row_ahead(staged, run, earlier, executor()) if run is staged.stage_runs[0] else None
        words = f"{label}{stage_prefix(staged.plan.job, run.stage.name)}{late:,} of {counts.rows_in:,} rows came late"
        place = None if ahead is None else ahead.place
        if ahead is not None:
            lost = f" of {ahead.unit.label}, whose files do not have it any more" if ahead.unit is not None else ""
            words += f", behind {ahead.value}" + (f" at {place}" if place is not None else lost)
        messages.note(f"{words}; {_advice(run.stage.plan, ahead, earlier)}", late=late, place=place)


def _advice(plan: Plan, ahead: _Ahead | None, earlier: EarlierUnits | None) -> str:
    if earlier is None:
        ordered = f"; with --order-by {plan.options.event_time} no row is late" if plan.options.event_time else ""
        return f"if that is a mistake, correct the row, or leave it out with --where{ordered}"
    unit = None if ahead is None else ahead.unit
    if unit is None:
        again = "run this unit again"
    elif kind_of(unit.label, unit.ordinal) is None:
        again = "run its input and what came after it again, on a new state"
    else:
        again = f"run the range again from {unit.label}: the units after it are run again, too"
    redo = "; if it is none, --late redo gives late rows to the units that they belong to" if plan.order.columns else ""
    return f"if that is a mistake, correct the row and {again}{redo}"


def _row_ahead(staged: StagedJob, run: StageRun, earlier: EarlierUnits | None, executor: Executor) -> _Ahead | None:
    """Find the row that the others came behind; None where it cannot be found: the run is committed all the same."""
    plan, source = run.stage.plan, staged.plan.source
    own = without_enrichments(source)
    with suppress(WincliError):
        if not plan.order.columns:
            return _behind_watermark(staged.plan.job, run, own, earlier, executor)
        if earlier is not None:
            unit, last = earlier.before, None if earlier.before is None else earlier.position(earlier.before)
            if unit is None or last is None:
                return None
            for record in earlier.chain:
                found = earlier.position(record)
                if found is None or not found.equals(last):
                    break
                unit = record
            names = plan.order.columns
            value = ", ".join(f"{name} {last[name][0]}" for name in names)
            return _Ahead(unit, value, _place_in_unit(staged.plan.job, unit, names, partial(_is_at, last), executor))
    return None


def _behind_watermark(
    job: Job, run: StageRun, own: FileSource, earlier: EarlierUnits | None, executor: Executor
) -> _Ahead | None:
    plan, name = run.stage.plan, str(run.stage.plan.options.event_time)
    if not _has(job, own, name):
        return None
    highest = executor.map("late rows", partial(_highest, own, row_expressions(job), plan), own.splits)
    here = max((each for each in highest if each is not None), default=None)
    unit, last = None, here
    for record in () if earlier is None else earlier.chain:
        before = record.stages[0].registers["watermark"]
        if before is None or (last is not None and before < last):
            break
        unit, last = record, before
    if last is None:
        return None
    sought, kind = partial(_announces, plan, last), run.stage.schema.field(name).type
    value = f"{name} {value_of_reading(last, kind)[0] if pa.types.is_temporal(kind) else last}"
    if unit is None:
        return _Ahead(unit, value, _place(own, job, (name,), sought, executor))
    return _Ahead(unit, value, _place_in_unit(job, unit, (name,), sought, executor))


RowsSought = Callable[[pa.RecordBatch], Mask]
"""Says which of some rows are sought, bool (n,)."""


def _place_in_unit(
    job: Job, unit: UnitRecord, names: Sequence[str], sought: RowsSought, executor: Executor
) -> str | None:
    """Return file and line of the first such row of a unit; None where its files do not have it any more."""
    with suppress(WincliError):
        source = open_source([file.path for file in unit.inputs], read_options(job), executor)
        return _place(source, job, names, sought, executor)
    return None


def _place(source: FileSource, job: Job, names: Sequence[str], sought: RowsSought, executor: Executor) -> str | None:
    if not all(_has(job, source, name) for name in names):
        return None
    first = partial(_first, source, row_expressions(job), names, sought)
    return next((place for place in executor.map("late rows", first, source.splits) if place is not None), None)


def _has(job: Job, source: FileSource, name: str) -> bool:
    return name in source.schema.names or name in (let for let, _ in row_expressions(job).let)


def _rows(
    source: FileSource, expressions: RowExpressions, names: Sequence[str], split: Split
) -> tuple[pa.RecordBatch, Any]:
    batch = with_columns(source, expressions, names).read(split, list(names))
    rows, pos = one_batch(batch.rows), batch.pos
    if batch.kept is None:
        return rows, pos
    return rows.filter(pa.array(batch.kept)), pos[batch.kept]


def _first(
    source: FileSource, expressions: RowExpressions, names: Sequence[str], sought: RowsSought, split: Split
) -> str | None:
    rows, pos = _rows(source, expressions, names, split)
    found = np.flatnonzero(sought(rows))[:1]
    if not len(found):
        return None
    return f"{source.files[split.file].path}:{int(source.line_numbers(split, pos[found])[0])}"


def _highest(source: FileSource, expressions: RowExpressions, plan: Plan, split: Split) -> ClockValue | None:
    return highest_reading(plan, _rows(source, expressions, [str(plan.options.event_time)], split)[0])


def _is_at(last: pa.Table, rows: pa.RecordBatch) -> Mask:
    """Return which rows are at the last position of a unit: no row of it is behind."""
    known = combined(rows.column(0)).is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(known & ~sorts_before(rows, last))


def _announces(plan: Plan, reading: ClockValue, rows: pa.RecordBatch) -> Mask:
    values, places = event_times(plan, rows)
    flags = np.zeros(rows.num_rows, np.bool_)
    flags[places] = lateness_of(plan, rows).readings(values) == reading
    return flags
