"""What a run of a range would change: computed in a scratch folder, then compared with what is there, by unit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ....conf.ranges.units import Kind, Unit, unit_at, units
from ....conf.recorded_job import paths_of, recorded
from ....windowing.errors import ConfigError, DataError, InputError
from ....writers.commit.tables import table_of
from ....writers.folders.os_errors import reason
from ....writers.state.state import open_state
from ...console.messages import Messages
from ...planning.fingerprint import UnitSummary, same_inputs
from ...planning.request import JobRequest
from ...run.context import RunContext, owner
from ...run.incremental_backfill import IncrementalBackfill
from ...run.pipeline import PlainRun, run_job
from ...run.plain_backfill import PlainBackfill, ResultRecord, earlier_jobs, finished_records, result_record
from ...run.range_run import BackfillOutcome, run_backfill
from ...run.unit_paths import InputPaths, UnitInput, find_input, find_input_paths, outputs_of, unit_job
from ...run.units import NoChain, RerunReason
from ..comparison.compare import Diff, DiffRequest, compare_pairs
from ..comparison.result_pairs import ResultPair, Side
from .scratch import in_scratch


@dataclass(frozen=True, slots=True)
class StageEffect:
    """The effect on one output of the job.

    ``stage``: the name of its stage.
    ``diff``: A is what is there now, B what the run would put there; of the units that have a result now.
    ``new``: the units that have none, with the rows that they would get.
    """

    stage: str
    diff: Diff
    new: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a run of a range would change.

    ``stages``: the outputs, in the order of the job.
    ``runs``: the labels of the units that would run, ascending.
    ``again``: those of them that were done before.
    ``reached``: the last unit that a correction runs; None where nothing is corrected.
    ``unaffected``: the finished units after that.
    ``has_state``: whether the units are a chain on a state, along which corrections pass on.
    """

    stages: tuple[StageEffect, ...]
    runs: tuple[str, ...]
    again: tuple[str, ...]
    reached: str | None
    unaffected: tuple[str, ...]
    has_state: bool

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers that a condition may name; windows of all outputs together."""
        tallies = [stage.diff.tally for stage in self.stages]
        differ = {unit.unit for stage in self.stages for unit in stage.diff.units if unit.differs}
        return {
            "changed": sum(each.total for each in tallies),
            "added": sum(each.only_in_b for each in tallies),
            "removed": sum(each.only_in_a for each in tallies),
            "units_changed": len(differ),
            "units_new": len({label for stage in self.stages for label, _ in stage.new}),
            "units_run": len(self.runs),
        }


def effect_of(request: JobRequest, context: RunContext, head: int | None = 20) -> Effect:
    """Compute a range in a scratch folder, and compare it with what is there; change nothing that is there.

    ``head``: how many windows of each output to list; None: all. Raises what the run would raise, and `ConfigError`
    for a job without a range.
    """
    job = request.job
    if job.start is None or job.end is None:
        raise ConfigError("an effect is that of a range of units", "say --start and --end")
    in_range = units(job.start, job.end, job.unit)
    paths = find_input_paths(request, in_range[0], job.unit)
    with tempfile.TemporaryDirectory(prefix="wincli-effect-") as folder:
        scratch = in_scratch(request, Path(folder))
        outcome = _run(request, scratch, paths, in_range, _silent(context))
        _check_inputs(paths, outcome.done, job.unit)
        return _effect(request, scratch, paths, outcome, head)


def _silent(context: RunContext) -> RunContext:
    """Return a context whose notes nobody reads, and at whose runs nobody looks: no unit is published."""
    messages = Messages(-1, context.messages.as_json, secrets=context.messages.secrets)
    return replace(context, messages=messages, observers=(), announced={})


def _run(
    request: JobRequest, scratch: JobRequest, paths: InputPaths, in_range: Sequence[Unit], context: RunContext
) -> BackfillOutcome[Any]:
    job = scratch.job
    if job.state is None:
        plain = PlainBackfill(request, context, paths)
        found = finished_records(request, paths, in_range)
        return run_backfill(in_range, job.unit, found, _ScratchBackfill(plain, scratch), job.redo)
    with open_state(job.state, owner(), paths_of(request.job)) as state:
        keep = job.kept(len(in_range), sum(state.has_data(record.label) for record in state.records))
        mode = IncrementalBackfill(scratch, context, paths, state, in_range, keep)
        mode.range.check_same_job()
        return run_backfill(in_range, job.unit, state.records, mode, job.redo)


@dataclass(frozen=True, slots=True)
class _ScratchBackfill:
    """A `BackfillMode` without a state that knows what was published, and writes to the scratch folder.

    ``published``: the backfill that would publish.
    ``scratch``: the job in the scratch folder.
    """

    published: PlainBackfill
    scratch: JobRequest

    @property
    def chain(self) -> NoChain:
        return self.published.chain

    def find(self, unit: Unit) -> UnitInput | None:
        return self.published.find(unit)

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterator[ResultRecord]:  # noqa: ARG002 - always None
        request, paths = self.scratch, self.published.input_paths
        run = PlainRun(self.published.context.started, earlier=partial(earlier_jobs, request, paths, unit))
        run_job(unit_job(request, paths, unit, found), run, self.published.context)
        record = result_record(unit, outputs_of(request, paths, unit), recorded(request.job))
        assert record is not None
        yield record

    def why_rerun(self, record: ResultRecord) -> RerunReason | None:
        return self.published.why_rerun(record)

    def note(self, text: str, **fields: Any) -> None:
        self.published.note(text, **fields)


def _check_inputs(paths: InputPaths, done: Sequence[UnitSummary], kind: Kind) -> None:
    """Raise `DataError` where the input of a unit is by now another than that of which the effect was computed."""
    for record in done:
        found = find_input(paths, unit_at(record.ordinal, kind))
        if found is None or not same_inputs(found.files, record.inputs):
            what = f"{record.label}: its input has changed while the effect was computed"
            raise DataError(what, "run again")


def _effect(
    request: JobRequest, scratch: JobRequest, paths: InputPaths, outcome: BackfillOutcome[Any], head: int | None
) -> Effect:
    named = [each.stage.name for each in request.stages[:-1] if each.stage.output is not None]
    ran = [unit_at(record.ordinal, request.job.unit) for record in outcome.done]
    stages = []
    for at, stage in enumerate([*named, request.stages[-1].stage.name]):
        there = {unit: outputs_of(request, paths, unit)[at] for unit in ran}
        computed = {unit: outputs_of(scratch, paths, unit)[at] for unit in ran}
        pairs = [ResultPair(unit.label, _side(there[unit]), _side(computed[unit])) for unit in ran]
        diff = compare_pairs(DiffRequest("now", "then", head=head), [pair for pair in pairs if pair.a is not None])
        new = tuple((pair.unit, pair.b.manifest["rows_out"]) for pair in pairs if pair.a is None and pair.b is not None)
        stages.append(StageEffect(stage, diff, new))
    return Effect(
        tuple(stages),
        tuple(unit.label for unit in ran),
        tuple(unit.label for unit in outcome.rerun),
        outcome.reached.label if outcome.reached is not None else None,
        tuple(unit.label for unit in outcome.unaffected),
        request.job.state is not None,
    )


def _side(path: str) -> Side | None:
    """Return the result at a path; None where there is none that is whole. Raises `InputError` where nobody can say."""
    table = table_of(path)
    try:
        manifest = table.manifest()
        return None if manifest is None or table.missing(manifest) else Side(path, manifest)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}", "make it readable, then run again") from error
