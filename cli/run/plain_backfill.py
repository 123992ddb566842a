"""A backfill without a state: no unit depends on another, and the manifests of results say which units are done."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from ...conf.job import Job, recorded
from ...conf.ranges import Unit, unit_at
from ...windowing.errors import InputError
from ...windowing.ports import InputFile
from ...writers.commit.tables import remove_leftovers_beside, table_of
from ...writers.state.unit_record import UnitRecord, input_files
from .context import RunContext, owner
from .fingerprint import same_inputs, same_job
from .pipeline import PlainRun, run_job
from .rerun import replacing
from .unit_paths import InputPaths, UnitInput, find_input, outputs_of, unit_job
from .units import RerunReason, note_of_unit, report_unit

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


@dataclass(frozen=True, slots=True)
class PlainBackfill:
    """A `BackfillMode` without a state.

    ``job``: the job of the range.
    ``context``: the context of the command.
    ``input_paths``: where the inputs of units are.
    """

    job: Job
    context: RunContext
    input_paths: InputPaths

    @property
    def chain(self) -> None:
        """None: every unit begins from nothing."""

    def records(self, units: Sequence[Unit]) -> list[UnitRecord]:
        """Return the records of units that this job has finished; what kills left beside their outputs is removed."""
        found = finished_records(self.job, self.input_paths, units)
        done = {record.label for record in found}
        outputs = (outputs_of(self.job, self.input_paths, unit) for unit in units if unit.label in done)
        remove_leftovers_beside(chain.from_iterable(outputs), owner())
        return found

    def find(self, unit: Unit) -> UnitInput | None:
        return find_input(self.input_paths, unit)

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterator[UnitRecord]:  # noqa: ARG002 - always None
        """Run and commit a unit; yield its record. A result of this very job is replaced."""
        own = own_request(self.job, self.input_paths, unit, found)
        earlier = partial(earlier_jobs, self.job, self.input_paths, unit)
        run_job(own, PlainRun(time.perf_counter(), f"{unit.label}: ", earlier), self.context)
        record = finished_record(self.job, self.input_paths, unit)
        assert record is not None
        report_unit(record, self.context.messages)
        yield record

    def why_rerun(self, record: UnitRecord) -> RerunReason | None:  # noqa: ARG002 - see `BackfillMode`
        """Return None: a unit whose result is lost has no record."""
        return None

    def note(self, text: str, **fields: Any) -> None:
        note_of_unit(self.context, text, **fields)


def own_request(job: Job, input_paths: InputPaths, unit: Unit, found: UnitInput) -> Job:
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


def finished_records(job: Job, input_paths: InputPaths, units: Sequence[Unit]) -> list[UnitRecord]:
    """Return the records of those units that the job has finished without a state."""
    return [record for unit in units if (record := finished_record(job, input_paths, unit)) is not None]


def finished_record(job: Job, input_paths: InputPaths, unit: Unit) -> UnitRecord | None:
    """Return the record of a unit that the job has finished without a state; None where it has not."""
    return result_record(unit, outputs_of(job, input_paths, unit), recorded(job))
