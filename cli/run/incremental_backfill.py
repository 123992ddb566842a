"""A backfill on a state: each unit begins from the window state that the unit before it left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...conf.job import Job, recorded
from ...conf.ranges import Unit, unit_at
from ...windowing.errors import InputError
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord
from .context import RunContext, StagedJob
from .incremental_run import IncrementalRun
from .late_rows import (
    LateBackfill,
    find_late_rows,
    has_current_late_rows,
    reprocess_for_late_rows,
    rows_on_time,
    starts_from,
)
from .pipeline import run_job
from .rerun import check_same_job, replacing, rerun_of_finished, why_rerun, with_same_end
from .unit_paths import InputPaths, UnitInput, find_input, unit_job
from .units import RerunReason, StateChain, UnitRecords, note_of_unit, recording_failure, report_unit


def run_unit(
    late: LateBackfill, job: Job, own: Job, unit: Unit, previous: str | None
) -> Iterator[tuple[StagedJob, UnitRecord]]:
    """Run and commit a unit, after the units before it that its late rows belong to; yield each, the unit itself last.

    ``job``: the job of the unit, in which late rows are looked for. ``own``: that job as the unit is run with it.
    ``previous``: the label of the unit whose state it begins from; None for the first.
    """
    with recording_failure(late.state, unit, late.context):
        late_rows = find_late_rows(late, job, unit, previous)
        yield from reprocess_for_late_rows(late, late_rows)
        mode = IncrementalRun(late.state, unit, previous, late.keep, rows_on_time(late.state, late_rows))
        yield run_job(own, mode, late.context)


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

    @property
    def chain(self) -> StateChain:
        def starts_from_now(label: str | None, record: UnitRecord) -> bool:
            before = self.state.record(label) if label is not None else None
            return starts_from(record, before) and has_current_late_rows(self.state, record)

        return StateChain(self.state.has_data, starts_from_now, self.state.forgotten)

    def check_same_job(self) -> None:
        """Raise `ConfigError` where units of the range were done by another job, unless they are to be redone."""
        if not self.job.redo:
            in_range = [record for record in self.state.records if self._is_in_range(record.ordinal)]
            check_same_job(recorded(self.job), in_range)

    def why_rerun(self, record: UnitRecord) -> RerunReason | None:
        """Return the reason to reprocess a unit whose input has not changed, None where there is none."""
        return why_rerun(record, recorded(self.job), self._is_last(record), self._is_newest(record))

    def own_request(self, job: Job, unit: Unit) -> Job:
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
class IncrementalBackfill:
    """A `BackfillMode` on a state.

    ``job``: the job of the range.
    ``context``: the context of the command.
    ``input_paths``: where the inputs of units are.
    ``state``: the state, which is open and locked.
    ``units``: the units of the range, at least one.
    ``keep``: how many units keep their window state.
    """

    job: Job
    context: RunContext
    input_paths: InputPaths
    state: State
    units: Sequence[Unit]
    keep: int

    @property
    def chain(self) -> StateChain:
        return self.range.chain

    @property
    def range(self) -> RangeOnState:
        return RangeOnState(self.job, self.state, self.units)

    def find(self, unit: Unit) -> UnitInput | None:
        return find_input(self.input_paths, unit)

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterator[UnitRecord]:
        job = unit_job(self.job, self.input_paths, unit, found)
        late = LateBackfill(self.state, self.context, self.keep, self._job_of)
        for _, record in run_unit(late, job, self.range.own_request(job, unit), unit, previous):
            report_unit(record, self.context.messages)
            yield record

    def why_rerun(self, record: UnitRecord) -> RerunReason | None:
        return self.range.why_rerun(record)

    def note(self, text: str, **fields: Any) -> None:
        note_of_unit(self.context, text, **fields)

    def _job_of(self, record: UnitRecord) -> tuple[Job, Sequence[str]]:
        """Return the job that reprocesses a unit for late rows, and the paths that it reads.

        The unit is one of the range, or before it.
        """
        unit = unit_at(record.ordinal, self.job.unit)
        found = self.find(unit)
        if found is None:
            what = f"{unit.label} has to be run again for late rows, and its input is gone"
            raise InputError(what, "put its files back where they were")
        job = unit_job(self.job, self.input_paths, unit, found)
        return replacing(with_same_end(job, record)), found.paths
