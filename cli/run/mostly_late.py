"""The note on a run whose rows came late behind one row, which may be from the future.

It is due where most rows were late, or some were behind an event time that is far from all others. Nothing is recorded
for it: the row of an earlier unit is sought in the input of the unit that moved the clock so far.
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
from ...windowing.clock.watermark import highest
from ...windowing.columns.arrays import ClockValue, Mask, combined, is_measurable, measures, scale_of
from ...windowing.columns.sort_keys import sorts_before
from ...windowing.engine.rejects import clock_text, place_of, value_of_reading
from ...windowing.enrichment.step import without_enrichments
from ...windowing.errors import WincliError
from ...windowing.planning.plan import Plan
from ...windowing.ports import Executor, Split
from ...windowing.rows.projection import RowExpressions, with_columns
from ...windowing.rows.sequence import one_batch
from ...windowing.scan.row_validation import event_times, lateness_of
from ...windowing.scan.rows_ahead import is_farther
from ...windowing.support.amounts import distance
from ...writers.state.state import State
from ...writers.state.unit_record import UNIT_DISTANCE, UnitRecord
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
    ``apart``: how far it is from the next row, in words; empty where that is not known.
    """

    unit: UnitRecord | None
    value: str
    place: str | None
    apart: str = ""


def announce_late(
    staged: StagedJob, earlier: EarlierUnits | None, label: str, executor: Callable[[], Executor], messages: Messages
) -> None:
    """Write a note for each stage of which most rows were late, or some behind a row that is far from all others.

    ``executor``: called only where most were.
    """
    for run in staged.stage_runs:
        counts = run.outcome.counts
        if not is_mostly_late(counts.rejected, counts.rows_in) and not _is_far(run):
            continue
        late = counts.rejected["late"]
        ahead = _row_ahead(staged, run, earlier, executor()) if run is staged.stage_runs[0] else None
        words = f"{label}{stage_prefix(staged.plan.job, run.stage.name)}{late:,} of {counts.rows_in:,} rows came late"
        place = None if ahead is None else ahead.place
        if ahead is not None:
            lost = f" of {ahead.unit.label}, whose files do not have it any more" if ahead.unit is not None else ""
            words += f", behind {ahead.value}" + (f" at {place}" if place is not None else lost)
            words += f", {ahead.apart} after any other" if ahead.apart else ""
        messages.note(f"{words}; {_advice(run.stage.plan, ahead, earlier)}", late=late, place=place)


def _is_far(run: StageRun) -> bool:
    """Whether rows were late, and the latest event times are farther from the next than a window and its lateness."""
    plan, latest = run.stage.plan, run.outcome.latest
    if not run.outcome.counts.rejected.get("late") or not latest.jump or not plan.kind.needs.watermark:
        return False
    rules = lateness_of(plan, run.stage.schema.empty_table())
    kind = run.stage.schema.field(str(plan.options.event_time)).type
    return is_farther(
        rules.duration + rules.age + rules.lag, kind, latest.values[latest.jump], latest.values[latest.jump - 1]
    )


def _advice(plan: Plan, ahead: _Ahead | None, earlier: EarlierUnits | None) -> str:
    see = "" if plan.options.max_ahead is not None else ", or see --max-ahead"
    if earlier is None:
        ordered = f"; with --order-by {plan.options.event_time} no row is late" if plan.options.event_time else ""
        return f"if that is a mistake, correct the row, or leave it out with --where{see}{ordered}"
    unit = None if ahead is None else ahead.unit
    if unit is None:
        again = "run this unit again"
    elif kind_of(unit.label, unit.ordinal) is None:
        again = "run its input and what came after it again, on a new state"
    else:
        again = f"run the range again from {unit.label}: the units after it are run again, too"
    redo = "; if it is none, --late redo gives late rows to the units that they belong to" if plan.order.columns else ""
    return f"if that is a mistake, correct the row and {again}{see}{redo}"


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
            found = _place_in_unit(staged.plan.job, unit, names, partial(_is_at, last), executor)
            return _Ahead(unit, value, *found)
    return None


def _behind_watermark(
    job: Job, run: StageRun, own: FileSource, earlier: EarlierUnits | None, executor: Executor
) -> _Ahead | None:
    plan, name = run.stage.plan, str(run.stage.plan.options.event_time)
    if not _has(job, own, name):
        return None
    latest, kind = run.outcome.latest, run.stage.schema.field(name).type
    lateness = lateness_of(plan, run.stage.schema.empty_table())
    unit, last = None, highest(lateness.readings(np.array(latest.values[:1])))
    for record in () if earlier is None else earlier.chain:
        before = record.stages[0].registers["watermark"]
        if before is None or (last is not None and before < last):
            break
        unit, last = record, before
    if last is None:
        return None
    if unit is None:
        rows = latest.take(latest.jump or 1).ahead
        assert rows.pos is not None
        assert rows.value is not None
        apart = latest.values[latest.jump - 1] - latest.values[latest.jump] if latest.jump else None
        file, line = place_of(own, rows.pos % UNIT_DISTANCE)
        return _Ahead(unit, f"{name} {clock_text(plan, name, rows.value)}", f"{file}:{line}", _apart(kind, apart))
    value = f"{name} {value_of_reading(last, kind)[0] if pa.types.is_temporal(kind) else last}"
    return _Ahead(unit, value, *_place_in_unit(job, unit, (name,), partial(_announces, plan, last), executor))


RowsSought = Callable[[pa.RecordBatch], Mask]
"""Says which of some rows are sought, bool (n,)."""


def _place_in_unit(
    job: Job, unit: UnitRecord, names: Sequence[str], sought: RowsSought, executor: Executor
) -> tuple[str | None, str]:
    """Return file and line of the first such row of a unit, and how far it is from the next row, in words.

    None where its files do not have it any more.
    """
    with suppress(WincliError):
        source = open_source([file.path for file in unit.inputs], read_options(job), executor)
        if all(_has(job, source, name) for name in names):
            first = partial(_first, source, row_expressions(job, source), names, sought)
            found = executor.map("late rows", first, source.splits)
            place, value = next(((place, at) for place, at, _ in found if place is not None), (None, None))
            below = max((each for _, _, each in found if each is not None), default=None)
            kind = with_columns(source, row_expressions(job, source), names).schema.field(names[0]).type
            return place, _apart(kind, None if value is None or below is None else value - below)
    return None, ""


def _apart(kind: pa.DataType, apart: ClockValue | None) -> str:
    """Return a difference of measures of a column in words; empty where there is none."""
    if apart is None or not apart > 0:
        return ""
    scale = scale_of(kind).per_second or 1
    far = float(apart / scale)
    return distance(far) if pa.types.is_temporal(kind) else f"{far:,.0f}" if far.is_integer() else f"{far:,.6g}"


def _has(job: Job, source: FileSource, name: str) -> bool:
    return name in source.schema.names or name in (let for let, _ in row_expressions(job, source).let)


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
) -> tuple[str | None, ClockValue | None, ClockValue | None]:
    """Return file and line of the first row sought, its value, and the largest value of the others, in measures."""
    rows, pos = _rows(source, expressions, names, split)
    is_sought, column = sought(rows), combined(rows.column(0))
    found, below = np.flatnonzero(is_sought)[:1], None
    values = measures(column) if is_measurable(column.type) else None
    if values is not None:
        others = values[~is_sought & column.is_valid().to_numpy(zero_copy_only=False)]
        below = others.max().item() if len(others) else None
    if not len(found):
        return None, None, below
    place = f"{source.files[split.file].path}:{int(source.line_numbers(split, pos[found])[0])}"
    return place, None if values is None else values[found[0]].item(), below


def _is_at(last: pa.Table, rows: pa.RecordBatch) -> Mask:
    """Return which rows are at the last position of a unit: no row of it is behind."""
    known = combined(rows.column(0)).is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(known & ~sorts_before(rows, last))


def _announces(plan: Plan, reading: ClockValue, rows: pa.RecordBatch) -> Mask:
    values, places = event_times(plan, rows)
    flags = np.zeros(rows.num_rows, np.bool_)
    flags[places] = lateness_of(plan, rows).readings(values) == reading
    return flags
