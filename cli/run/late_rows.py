"""Late data across units: before a unit runs, the earlier units that its late rows belong to are reprocessed with them.

A late row belongs to the first unit whose last order position it sorts before. So late rows move the position of no
unit, and the unit of a row never depends on other late rows. A unit with late rows then reads the rows of its own files
that come after the position of the unit before it, and the rows of later units' files up to its own position. Each unit
commits by itself. The next run completes a killed one: it finds the late rows anew and compares them with the records,
in which ``borrowed`` names the later units whose late rows a unit has read, and ``lent`` the units that read its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa

from ...conf.job import Job
from ...conf.ranges import Unit
from ...readers.joined import left_files
from ...readers.order_ranges import OrderRange, SourceRange, count_before, merge
from ...readers.source import FileSource
from ...windowing.engine.task import FILES
from ...windowing.errors import ConfigError
from ...windowing.rows.projection import RowExpressions, with_columns
from ...windowing.spark.boot import PendingExecutor
from ...windowing.support.amounts import count_of
from ...writers.state.state import State
from ...writers.state.unit_record import UNIT_DISTANCE, BorrowedRows, UnitRecord
from .context import RunContext, StagedJob
from .incremental_run import IncrementalRun, UnitInputRows, from_root, known_by
from .open_input import enriched_input, open_input, row_expressions
from .pipeline import run_job
from .stage_plans import plan_stages
from .steps import STALE, missing_unit_error
from .units import UnitRecords, note_of_unit


@dataclass(frozen=True, slots=True)
class LateBackfill:
    """The context in which units are reprocessed for late rows.

    ``state``: the state, which is open and locked.
    ``context``: the context of the command.
    ``keep``: how many units keep their window state.
    ``job_of``: record of a finished unit to the job that reprocesses it, and the files that this job reads.
    """

    state: State
    context: RunContext
    keep: int
    job_of: Callable[[UnitRecord], tuple[Job, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class LateRows:
    """The late rows of a unit, before it runs.

    ``unit``: the unit.
    ``job``: its job.
    ``source``: its input; None where the job rejects late rows.
    ``rows``: label to number of rows that belong to the unit of that label, oldest first.
    """

    unit: Unit
    job: Job
    source: FileSource | None
    rows: Mapping[str, int]


def find_late_rows(late: LateBackfill, job: Job, unit: Unit, previous: str | None) -> LateRows:
    """Find the late rows of a unit, where its job moves them; write a note about them.

    ``job``: the job of ``unit``. ``previous``: the label of the unit that it begins from; None for the first.
    Raises `ConfigError` where a late row belongs to a unit that cannot be reprocessed, or where the window cannot read
    a part of the input.
    """
    if job.late != "redo":
        return LateRows(unit, job, None, {})
    before = None if previous is None else late.state.record(previous)
    source = _open(late, job, None, before)
    return LateRows(unit, job, source, _late_rows(late, job, unit, source, _earlier(late.state, unit)))


def reprocess_for_late_rows(late: LateBackfill, found: LateRows) -> Iterator[tuple[StagedJob, UnitRecord]]:
    """Reprocess units whose late rows have changed, and units after those, up to the unit of ``found``.

    Yields each when it is committed. The late rows of a unit change when rows of ``found`` belong to
    it, or when rows that it has read belong to it no more. Raises what `run_job` raises, `ConfigError` where the state
    that a unit begins from is no longer kept, `DamagedError` where the state has lost a unit that another began from.
    """
    unit, source = found.unit, found.source
    sources = {unit.label: (unit.ordinal, source)} if source else {}
    late_rows = BorrowedRows(unit.label, from_root(source.files) if source else ())
    prior: UnitRecord | None = None
    for record in _earlier(late.state, unit):
        previous = record.previous
        if previous is not None and late.state.record(previous) is None and previous not in late.state.forgotten():
            raise missing_unit_error(record.label, previous)
        lenders = [(each, late.state.record(each.label)) for each in record.borrowed]
        wanted = tuple(
            each for each, by in lenders if by is not None and by.ordinal < unit.ordinal and record.label in by.lent
        )
        wanted = (*wanted, late_rows) if record.label in found.rows else wanted
        if wanted == record.borrowed:
            why = None if starts_from(record, prior) else STALE
        elif record.label in found.rows:
            why = f"it takes {count_of(found.rows[record.label], 'late row')} of {unit.label}"
        else:
            why = "late rows that it has read are no longer its own"
        if why:
            note_of_unit(late.context, f"{record.label} is run again: {why}", unit=record.label, runs=True, why=why)
            if prior is not None and not late.state.has_data(prior.label):
                what = f"{record.label} begins from the state of {prior.label}, which is no longer kept"
                raise ConfigError(what, "a higher --keep keeps more states")
            yield run_again(late, record, prior, wanted, sources)
        prior = late.state.record(record.label)


def run_again(
    late: LateBackfill,
    record: UnitRecord,
    prior: UnitRecord | None,
    wanted: Sequence[BorrowedRows],
    sources: Mapping[str, tuple[int, FileSource]] = {},
) -> tuple[StagedJob, UnitRecord]:
    """Run and commit a finished unit again, from the state of ``prior``, with the late rows of others in ``wanted``.

    ``sources``: label to ordinal and input of those units whose input is open. Raises what `run_job` raises.
    """
    job, files = late.job_of(record)
    own = _open(late, job, files, prior)
    rows = _unit_input_rows(late, row_expressions(job, own), own, record, prior, wanted, sources)
    mode = IncrementalRun(late.state, unit_of(record), prior.label if prior else None, late.keep, rows)
    return run_on_state(late, job, mode)


def run_on_state(late: LateBackfill, job: Job, mode: IncrementalRun) -> tuple[StagedJob, UnitRecord]:
    """Run and commit a unit. Raises what `run_job` raises."""
    staged, record = run_job(job, mode.begin(job), late.context)
    assert record is not None, "a unit on a state leaves a record"
    return staged, record


def rows_on_time(state: State, found: LateRows) -> UnitInputRows | None:
    """Return the rows that a unit itself has to read, once the units before it are done; None where it reads all."""
    if found.source is None:
        return None
    after = _position(state, state.newest_before(found.unit.ordinal)) if found.rows else None
    own = [SourceRange(found.source, 0, OrderRange(after))]
    read = merge(own, row_expressions(found.job, found.source)) if found.rows else found.source
    return UnitInputRows(read, from_root(left_files(found.source)), tuple(found.rows))


def _earlier(state: State, unit: Unit) -> list[UnitRecord]:
    return [record for record in state.records if record.ordinal < unit.ordinal]


def has_current_late_rows(state: UnitRecords, record: UnitRecord) -> bool:
    """Whether the units that have read late rows of a unit are those that its record names."""
    readers = {
        each.label
        for each in state.records
        if each.borrowed and any(rows.label == record.label for rows in each.borrowed)  # few have: all are looked at
    }
    return readers == set(record.lent)


def starts_from(record: UnitRecord, before: UnitRecord | None) -> bool:
    """Whether a unit began from the state that the unit before it has now."""
    return record.began == (before.state if before is not None else None)


def _late_rows(
    late: LateBackfill, job: Job, unit: Unit, source: FileSource, earlier: Sequence[UnitRecord]
) -> dict[str, int]:
    """Count the late rows of a unit by the unit that they belong to, oldest first; write a note about them."""
    bounds = [(record, _position(late.state, record)) for record in earlier if late.state.has_data(record.label)]
    known = [(record, bound) for record, bound in bounds if bound is not None]
    if not known or not source.splits:
        return {}
    positions = [bound for _, bound in known]
    read = with_columns(source, row_expressions(job, source), positions[0].column_names)
    count = partial(count_before, read, positions)
    counts_of_splits = late.context.spark.session().map("late rows", count, source.splits)
    before = [0, *(sum(counts) for counts in zip(*counts_of_splits, strict=True))]
    each = zip(known, pairwise(before), strict=True)
    rows = {record.label: high - low for (record, _), (low, high) in each if high > low}
    if rows:
        oldest = next(iter(rows))
        words = f"{count_of(before[-1], 'row')} of {unit.label} {'belongs' if before[-1] == 1 else 'belong'}"
        _check(late, job, unit, source, earlier, f"{words} to units before it")
        begin = next((one for one, record in pairwise(earlier) if record.label == oldest), None)
        if begin is not None and not late.state.has_data(begin.label):
            what = f"{words} to {oldest} or before it, and the state of {begin.label}, which that begins from"
            do = "reject late rows with --late reject; a higher --keep keeps more states"
            raise ConfigError(f"{what}, is no longer kept", do)
        late.context.messages.note(f"{words} to units before it, back to {oldest}", late=before[-1], back_to=oldest)
    return rows


def _check(
    late: LateBackfill, job: Job, unit: Unit, source: FileSource, earlier: Sequence[UnitRecord], words: str
) -> None:
    do = "reject late rows with --late reject"
    if source.stream is not None:
        raise ConfigError(f"{words}, and its input is a result that is read as a stream, which has no parts", do)
    executor, known = PendingExecutor(late.context.spark.session), known_by(earlier[-1], late.state.shown, job)
    stages = plan_stages(job, enriched_input(job, source, executor, known))
    if stages[0].plan.takes_marks and stages[0].marks == FILES:
        what = f"{words}, and its window marks are the ends of files, which say nothing of parts of a file"
        raise ConfigError(what, f"say --marks COLUMN, or {do}")
    IncrementalRun(late.state, unit, earlier[-1].label, late.keep).check(stages)


def _unit_input_rows(
    late: LateBackfill,
    expressions: RowExpressions,
    own: FileSource,
    record: UnitRecord,
    prior: UnitRecord | None,
    wanted: Sequence[BorrowedRows],
    sources: Mapping[str, tuple[int, FileSource]],
) -> UnitInputRows:
    if not wanted and not record.lent:
        return UnitInputRows(own, from_root(left_files(own)))
    after, before = _position(late.state, prior), _position(late.state, record)
    ranges, borrowed = [SourceRange(own, 0, OrderRange(after) if record.lent else OrderRange())], []
    for rows in wanted:
        if rows.label in sources:
            ordinal, source = sources[rows.label]
        else:
            lender = late.state.record(rows.label)
            assert lender is not None
            ordinal, source = lender.ordinal, _open(late, *late.job_of(lender), prior)
        ranges.append(SourceRange(source, (ordinal - record.ordinal) * UNIT_DISTANCE, OrderRange(after, before)))
        borrowed.append(BorrowedRows(rows.label, from_root(source.files)))
    return UnitInputRows(merge(ranges, expressions), from_root(left_files(own)), record.lent, tuple(borrowed))


def _open(late: LateBackfill, job: Job, files: Sequence[str] | None, before: UnitRecord | None) -> FileSource:
    """Open an input, or only ``files`` of it, with the types that the unit ``before`` knows."""
    executor = PendingExecutor(late.context.spark.session)
    return open_input(job, executor, files, known_by(before, late.state.shown, job))


def _position(state: State, record: UnitRecord | None) -> pa.Table | None:
    """Return the largest order values up to the end of a unit, of its first stage: one row; None where it has none."""
    return None if record is None else state.stage(record.label, record.stages[0].name).read_table("position")


def unit_of(record: UnitRecord) -> Unit:
    """Return the unit that a record is of."""
    start, end = (None if text is None else dt.datetime.fromisoformat(text) for text in (record.start, record.end))
    return Unit(record.label, record.ordinal, start, end)
