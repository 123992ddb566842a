"""The units of a range: each by itself, as manifests of results say which are done, or in a chain on a state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from ...conf.job import Job, recorded
from ...conf.ranges import Unit, unit_at
from ...windowing.errors import InputError, WincliError
from ...windowing.ports import InputFile
from ...writers.commit.tables import remove_leftovers_beside, table_of
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord, input_files
from .adoption import Pieces, pieces_of
from .context import RunContext, StagedJob, owner
from .fingerprint import same_inputs, same_job
from .incremental_run import IncrementalRun
from .late_rows import (
    LateBackfill,
    find_late_rows,
    has_current_late_rows,
    reprocess_for_late_rows,
    rows_on_time,
    run_on_state,
    starts_from,
)
from .pipeline import PlainRun, run_job
from .rerun import check_same_job, replacing, rerun_of_finished, why_rerun, with_same_end
from .speculation import UnitWork
from .steps import RerunReason, StateChain, UnitRange, UnitStep
from .unit_paths import InputPaths, UnitInput, find_input, outputs_of, unit_job
from .units import UnitRecords, recording_failure, report_unit

# Results of earlier runs without a state: their manifests say which units are done.


def read_result(output: str) -> dict[str, Any] | None:
    """Return the manifest of a result; None where there is none, or where a file that it names is missing."""
    table = table_of(output)
    manifest = table.manifest()
    return None if manifest is None or table.missing(manifest) else manifest


def is_done(outputs: Sequence[str], job: Mapping[str, Any], files: Iterable[InputFile]) -> bool:
    """Whether all outputs hold the results of this job for these files, so that there is nothing to do.

    ``files``: those of enrich tables are among them.
    """
    manifests = [read_result(output) for output in outputs]
    files = list(files)
    for each in manifests:
        if each is None or not same_job(each["job"], job):
            return False
        tables = (each.get("enrich") or {}).values()  # a result of an older version has none
        if not same_inputs(input_files([*each["inputs"], *chain.from_iterable(tables)]), files):
            return False
    return True


def may_replace(outputs: Sequence[str], job: Mapping[str, Any]) -> bool:
    """Whether all results in the outputs, complete or not, are of this very job, which then may replace them."""
    manifests = [manifest for output in outputs if (manifest := table_of(output).manifest())]
    return bool(manifests) and all(same_job(manifest["job"], job) for manifest in manifests)


def result_record(unit: Unit, outputs: Sequence[str], job: Mapping[str, Any]) -> UnitRecord | None:
    """Return the record of a unit that this job has finished without a state; None where it has not.

    ``outputs``: those of the unit, the output of the job last.
    """
    manifests = [read_result(output) for output in outputs]
    last = manifests[-1]
    if last is None or not all(each is not None and same_job(each["job"], job) for each in manifests):
        return None
    return UnitRecord.of_result(unit.label, unit.ordinal, last)


_FARTHEST = 62
"""Units before a unit that are looked for: of days, those of two months."""
_MOST = 31
"""Units before a unit whose files are looked at."""


def plain_steps(job: Job, input_paths: InputPaths, units: Sequence[Unit]) -> UnitRange:
    """Return a range without a state: no unit depends on another, and a unit whose result is lost has no record."""
    records = [record for unit in units if (record := finished_record(job, input_paths, unit)) is not None]
    return UnitRange(units, job.unit, records, partial(find_input, input_paths), redo=job.redo)


def remove_leftovers(job: Job, input_paths: InputPaths, records: Sequence[UnitRecord]) -> None:
    """Remove what kills left beside the outputs of units that are done."""
    outputs = (outputs_of(job, input_paths, unit_at(record.ordinal, job.unit)) for record in records)
    remove_leftovers_beside(chain.from_iterable(outputs), owner())


def run_plain_unit(job: Job, input_paths: InputPaths, context: RunContext, step: UnitStep) -> Iterator[UnitRecord]:
    """Run and commit a unit without a state; yield its record. A result of this very job is replaced."""
    own, earlier = own_job(job, input_paths, step.unit, step.input), partial(earlier_jobs, job, input_paths, step.unit)
    run_job(own, nullcontext(PlainRun(time.perf_counter(), f"{step.label}: ", earlier)), context)
    record = finished_record(job, input_paths, step.unit)
    assert record is not None
    report_unit(record, context.messages)
    yield record


def own_job(job: Job, input_paths: InputPaths, unit: Unit, found: UnitInput) -> Job:
    """Return the job of a unit of a range without a state; results of this very job may be replaced."""
    own = unit_job(job, input_paths, unit, found)
    outputs = outputs_of(job, input_paths, unit)
    return replacing(own) if may_replace(outputs, recorded(job)) else own


def earlier_jobs(job: Job, input_paths: InputPaths, unit: Unit) -> Iterator[Job]:
    """Yield the jobs of units before a unit of a range that have an input, the nearest first.

    They need not be of the range: so the types of a unit do not depend on where a range begins, nor on what has run.
    """
    found = 0
    for ordinal in range(unit.ordinal - 1, unit.ordinal - 1 - _FARTHEST, -1):
        before = unit_at(ordinal, job.unit)
        try:
            there = find_input(input_paths, before)
        except InputError:  # one of several inputs is not there: such a unit cannot run
            continue
        if there is not None:
            yield unit_job(job, input_paths, before, there)
            found += 1
        if found == _MOST:
            return


def finished_record(job: Job, input_paths: InputPaths, unit: Unit) -> UnitRecord | None:
    """Return the record of a unit that the job has finished without a state; None where it has not."""
    return result_record(unit, outputs_of(job, input_paths, unit), recorded(job))


# On a state each unit begins from the window state that the unit before it left.


def run_unit(
    late: LateBackfill,
    job: Job,
    own: Job,
    unit: Unit,
    previous: str | None,
    begin: Callable[..., IncrementalRun] = IncrementalRun,
) -> Iterator[tuple[StagedJob, UnitRecord]]:
    """Run and commit a unit, after the units before it that its late rows belong to; yield each, the unit itself last.

    ``job``: the job of the unit, in which late rows are looked for. ``own``: that job as the unit is run with it.
    ``previous``: the label of the unit whose state it begins from; None for the first. ``begin``: makes its run.
    """
    with recording_failure(late.state, unit, late.context):
        late_rows = find_late_rows(late, job, unit, previous)
        yield from reprocess_for_late_rows(late, late_rows)
        mode = begin(late.state, unit, previous, late.keep, rows_on_time(late.state, late_rows))
        yield run_on_state(late, own, mode)


@dataclass(frozen=True, slots=True)
class RangeOnState:
    """A range of units and what a state has of it: all that decides which of them run, and as which job.

    ``job``: the job of the range.
    ``state``: the finished units.
    ``units``: the units of the range, at least one.
    """

    job: Job
    state: UnitRecords
    units: Sequence[Unit]

    def steps(self, find: Callable[[Unit], UnitInput | None]) -> UnitRange:
        """Return the range with all that decides which of its units run. ``find``: returns the input of a unit.

        Raises `ConfigError` where units of the range were done by another job, unless they are to be redone.
        """
        job = self.job
        if not job.redo:
            in_range = [record for record in self.state.records if self._is_in_range(record.ordinal)]
            check_same_job(recorded(job), in_range)

        def starts_from_now(label: str | None, record: UnitRecord) -> bool:
            before = self.state.record(label) if label is not None else None
            return starts_from(record, before) and has_current_late_rows(self.state, record)

        chain = StateChain(self.state.has_data, starts_from_now, self.state.forgotten)

        def why(record: UnitRecord) -> RerunReason | None:
            return why_rerun(record, recorded(job), self._is_last(record), self._is_newest(record))

        return UnitRange(self.units, job.unit, self.state.records, find, why, chain, job.redo)

    def own_job(self, job: Job, unit: Unit) -> Job:
        """Return the job of a unit as it runs now: a unit that is done is replaced, and ends as it did, or anew."""
        former = self.state.record(unit.label)
        if former is None:
            return job
        if self.job.redo and self._is_in_range(unit.ordinal):
            return replacing(job)
        is_end = self._is_last(former) and self._is_newest(former)
        return rerun_of_finished(job, former, recorded(self.job), is_end)

    def _is_in_range(self, ordinal: int) -> bool:
        return self.units[0].ordinal <= ordinal <= self.units[-1].ordinal

    def _is_last(self, record: UnitRecord) -> bool:
        return record.ordinal == self.units[-1].ordinal

    def _is_newest(self, record: UnitRecord) -> bool:
        return record.label == self.state.records[-1].label


@dataclass(frozen=True, slots=True)
class IncrementalBackfill(RangeOnState):
    """The units of a range on a state that is open and locked, as they are run.

    ``context``: the context of the command.
    ``input_paths``: where the inputs of units are.
    ``keep``: how many units keep their window state.
    ``pieces``: units that other processes compute beforehand; None: none.
    """

    state: State
    context: RunContext
    input_paths: InputPaths
    keep: int
    pieces: Pieces | None = None

    def run(self, step: UnitStep) -> Iterator[UnitRecord]:
        job = unit_job(self.job, self.input_paths, step.unit, step.input)
        own, late = self.own_job(job, step.unit), LateBackfill(self.state, self.context, self.keep, self._job_of)
        piece = None if self.pieces is None else self.pieces.begin(step.unit)
        begin = IncrementalRun if piece is None else piece.mode
        for staged, record in run_unit(late, job, own, step.unit, step.previous, begin):
            report_unit(record, self.context.messages)
            yield record
            if piece is not None and record.label == step.label:
                piece.end(self.state, record, staged)

    def work(self, unit: Unit) -> UnitWork | None:
        """Return the work of a unit of the range that will run, as far as can be foreseen; else None."""
        if not self.job.redo and self.state.record(unit.label) is not None:
            return None
        try:
            found = find_input(self.input_paths, unit)
        except WincliError:  # the run will say so, if it comes so far
            return None
        return None if found is None else UnitWork(unit, unit_job(self.job, self.input_paths, unit, found))

    def _job_of(self, record: UnitRecord) -> tuple[Job, Sequence[str]]:
        """Return the job that reprocesses a unit for late rows, and the paths that it reads.

        The unit is one of the range, or before it.
        """
        unit = unit_at(record.ordinal, self.job.unit)
        found = find_input(self.input_paths, unit)
        if found is None:
            what = f"{unit.label} has to be run again for late rows, and its input is gone"
            raise InputError(what, "put its files back where they were")
        job = unit_job(self.job, self.input_paths, unit, found)
        return replacing(with_same_end(job, record)), found.paths


@contextmanager
def beforehand(backfill: IncrementalBackfill) -> Iterator[IncrementalBackfill]:
    """Yield a backfill whose units are computed beforehand by the processes of the command, where it has some.

    With ``--jobs`` a note says where they are not.
    """
    context, job = backfill.context, backfill.job

    def give_up(why: str) -> None:
        context.messages.note(f"units run one after the other: {why}")

    if not context.callers:
        if job.jobs > 1:
            give_up("they need Spark, or this system forks no processes")
        yield backfill
        return
    with pieces_of(backfill.units, backfill.work, context.callers, give_up) as pieces:
        yield replace(backfill, pieces=pieces)
