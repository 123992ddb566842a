"""Late rows across nights: before a unit is run, the units that its late rows belong to take them and are run again.

A late row belongs to the first unit whose last order position it sorts before, so no loan moves the position of any
unit, and where a row belongs never depends on other late rows. Rows of a unit that takes part in this are then those
from the position before it on, of its own files, and those up to its own position, of the files of later units. Every
unit is committed by itself. A killed run is completed by the next one, since what is to be lent is found anew and
compared with what records say was borrowed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import pyarrow as pa

from ...conf.units import Unit
from ...readers.merged_source import SourceRange, count_before, merge
from ...readers.source import FileSource
from ...windowing.engine.tasks.task import FILES
from ...windowing.errors import ConfigError
from ...writers.state.state import State
from ...writers.state.unit_record import BorrowedRows, UnitRecord
from ..console.counts import count_of
from ..job.context import RunContext
from ..job.pipeline import open_input, run_job
from ..job.request import JobRequest
from ..job.stage_plans import plan_stages
from ..job.state_unit import UNIT_DISTANCE, IncrementalRun, UnitInputRows, from_root
from .lost_outputs import missing_unit_error


@dataclass(frozen=True, slots=True)
class LateBackfill:
    """What late rows are settled with.

    ``keep``: how many units keep their data. ``job_of(record)``: the job of a unit that is done, to run it again, and
    the files that it then reads. ``readings``: by label, what units that are settled and not yet run have to read.
    """

    state: State
    context: RunContext
    keep: int
    job_of: Callable[[UnitRecord], tuple[JobRequest, Sequence[str]]]
    inputs: dict[str, UnitInputRows] = field(default_factory=dict)


def reprocess_for_late_rows(late: LateBackfill, asked: JobRequest, unit: Unit) -> Iterator[UnitRecord]:
    """Run the units again that come before ``unit`` and take rows of it, or took some and do so no longer, and those
    that follow from them; yield their new records. ``asked``: the job of the unit, which goes on from the last of them.

    Puts what the unit itself is to read into ``late.readings``. Raises `ConfigError`, nothing run, where a late row
    belongs to a unit that cannot be run again, or where a part of the input means nothing to the window, `DamagedError`
    where the state has lost a unit that another began from.
    """
    earlier = [record for record in late.state.records if record.ordinal < unit.ordinal]
    source = open_input(asked, late.context) if asked.job.late == "redo" else None
    rows = _late_rows(late, asked, unit, source, earlier) if source else {}
    sources = {unit.label: (unit.ordinal, source)} if source else {}
    loan = BorrowedRows(unit.label, from_root(source.files) if source else ())
    prior: UnitRecord | None = None
    for record in earlier:
        if record.previous is not None and late.state.record(record.previous) is None:
            raise missing_unit_error(record.label, record.previous)
        kept = tuple(each for each in record.borrowed if _is_still_lent(late.state, each, record, unit))
        wanted = (*kept, loan) if record.label in rows else kept
        why = _why_rerun(record, prior, wanted, unit, rows)
        if why:
            late.context.messages.note(f"{record.label} is run again: {why}")
            yield _rerun(late, record, prior, wanted, sources)
        prior = late.state.record(record.label)
    if source is not None:
        read = merge([SourceRange(source, after=_position(late.state, prior))]) if rows else source
        late.inputs[unit.label] = UnitInputRows(read, from_root(source.files), tuple(rows))


def has_current_late_rows(state: State, record: UnitRecord) -> bool:
    """Whether the units that have read late rows of a unit are those that its record names."""
    takers = {each.label for each in state.records if any(loan.label == record.label for loan in each.borrowed)}
    return takers == set(record.lent)


def starts_from(record: UnitRecord, before: UnitRecord | None) -> bool:
    """Whether a unit began from what the unit before it holds now."""
    return record.began == (before.state if before is not None else None)


def _late_rows(
    late: LateBackfill, asked: JobRequest, unit: Unit, source: FileSource, earlier: Sequence[UnitRecord]
) -> dict[str, int]:
    """Count the late rows of a unit by the unit that they belong to, oldest first; tell of them."""
    bounds = [(record, _position(late.state, record)) for record in earlier if late.state.has_data(record.label)]
    known = [(record, bound) for record, bound in bounds if bound is not None]
    if not known or not source.splits:
        return {}
    count = partial(count_before, source, [bound for _, bound in known])
    told = late.context.spark.session().map("late rows", count, source.splits)
    before = [0, *(sum(counts) for counts in zip(*told, strict=True))]
    each = zip(known, pairwise(before), strict=True)
    rows = {record.label: high - low for (record, _), (low, high) in each if high > low}
    if rows:
        oldest = next(iter(rows))
        words = f"{count_of(before[-1], 'row')} of {unit.label} {'belongs' if before[-1] == 1 else 'belong'}"
        _check(late, asked, unit, source, earlier, f"{words} to units before it")
        _check_has_state(late.state, earlier, oldest, f"{words} to {oldest} or before it")
        late.context.messages.note(f"{words} to units before it, back to {oldest}", late=before[-1], back_to=oldest)
    return rows


def _check(
    late: LateBackfill, asked: JobRequest, unit: Unit, source: FileSource, earlier: Sequence[UnitRecord], words: str
) -> None:
    """Raise `ConfigError` where rows of an input cannot be taken apart, or where the state is of another job."""
    do = "reject late rows with --late reject"
    if source.stream is not None:
        raise ConfigError(f"{words}, and its input is a result that is read as a stream, which has no parts", do)
    stages = plan_stages(asked, source)
    if stages[0].plan.takes_marks and stages[0].marks == FILES:
        what = f"{words}, and its window marks are the ends of files, which say nothing of parts of a file"
        raise ConfigError(what, f"say --marks COLUMN, or {do}")
    IncrementalRun(late.state, unit, earlier[-1].label, late.keep).check(stages)


def _check_has_state(state: State, earlier: Sequence[UnitRecord], label: str, words: str) -> None:
    """Raise `ConfigError` where the state that a unit begins from is no longer kept."""
    before = next((one for one, record in pairwise(earlier) if record.label == label), None)
    if before is not None and not state.has_data(before.label):
        what = f"{words}, and the state of {before.label}, which that begins from, is no longer kept"
        raise ConfigError(what, "reject late rows with --late reject; a higher --keep keeps more states")


def _is_still_lent(state: State, loan: BorrowedRows, taker: UnitRecord, unit: Unit) -> bool:
    """Whether a loan stands while ``unit`` is settled: those of later units are found anew when it is their turn."""
    lender = state.record(loan.label)
    return lender is not None and lender.ordinal < unit.ordinal and taker.label in lender.lent


def _why_rerun(
    record: UnitRecord, prior: UnitRecord | None, wanted: Sequence[BorrowedRows], unit: Unit, rows: Mapping[str, int]
) -> str | None:
    """Say why a unit has to be run again, or None."""
    if tuple(wanted) != record.borrowed and record.label in rows:
        return f"it takes {count_of(rows[record.label], 'late row')} of {unit.label}"
    if tuple(wanted) != record.borrowed:
        return "late rows that it has read are no longer its own"
    return None if starts_from(record, prior) else "the state before it is not the one that it began from"


def _rerun(
    late: LateBackfill,
    record: UnitRecord,
    prior: UnitRecord | None,
    wanted: Sequence[BorrowedRows],
    sources: Mapping[str, tuple[int, FileSource]],
) -> UnitRecord:
    """Run a unit again with its loans; ``sources``: inputs that are open already, by label, with the ordinal."""
    if prior is not None and not late.state.has_data(prior.label):
        what = f"{record.label} begins from the state of {prior.label}, which is no longer kept"
        raise ConfigError(what, "a higher --keep keeps more states")
    asked, files = late.job_of(record)
    own = open_input(asked, late.context, files)
    reading = _unit_input_rows(late, own, record, prior, wanted, sources)
    onto = IncrementalRun(late.state, unit_of(record), prior.label if prior else None, late.keep, reading)
    run_job(asked, late.context, onto)
    assert onto.record is not None
    return onto.record


def _unit_input_rows(
    late: LateBackfill,
    own: FileSource,
    record: UnitRecord,
    prior: UnitRecord | None,
    wanted: Sequence[BorrowedRows],
    sources: Mapping[str, tuple[int, FileSource]],
) -> UnitInputRows:
    if not wanted and not record.lent:
        return UnitInputRows(own, from_root(own.files))
    after, before = _position(late.state, prior), _position(late.state, record)
    shares, borrowed = [SourceRange(own, after=after if record.lent else None)], []
    for loan in wanted:
        ordinal, source = sources.get(loan.label) or _open_lender(late, loan.label)
        shares.append(SourceRange(source, (ordinal - record.ordinal) * UNIT_DISTANCE, after, before))
        borrowed.append(BorrowedRows(loan.label, from_root(source.files)))
    return UnitInputRows(merge(shares), from_root(own.files), record.lent, tuple(borrowed))


def _open_lender(late: LateBackfill, label: str) -> tuple[int, FileSource]:
    lender = late.state.record(label)
    assert lender is not None
    asked, files = late.job_of(lender)
    return lender.ordinal, open_input(asked, late.context, files)


def _position(state: State, record: UnitRecord | None) -> pa.Table | None:
    """The largest order values up to the end of a unit, of its first stage: one row; None where there are none."""
    return None if record is None else state.stage(record.label, record.stages[0].name).read_table("position")


def unit_of(record: UnitRecord) -> Unit:
    """Return the unit of a record."""
    start, end = (None if text is None else dt.datetime.fromisoformat(text) for text in (record.start, record.end))
    return Unit(record.label, record.ordinal, start, end)
