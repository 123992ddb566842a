"""What a run of a range would change: computed in a scratch folder, then compared with what is there, by unit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...conf.job import Job, paths_of, recorded
from ...conf.ranges import has_date, unit_at, units
from ...windowing.errors import ConfigError, DataError, InputError, SpecError, shown
from ...windowing.expressions.binding import bind_condition
from ...windowing.expressions.syntax import parse_expression
from ...windowing.support.amounts import count_of
from ...windowing.support.redaction import redacted
from ...writers.commit.tables import table_of
from ...writers.places.os_errors import output_errors, reason
from ...writers.state.state import open_state, read_state
from ...writers.state.store_storage import storage_of
from ...writers.state.unit_record import UnitRecord
from ..console.messages import Messages
from ..run.backfills import IncrementalBackfill, earlier_jobs, plain_steps, result_record
from ..run.context import RunContext, owner
from ..run.fingerprint import same_inputs
from ..run.pipeline import PlainRun, run_job
from ..run.range_run import BackfillOutcome, run_backfill
from ..run.steps import UnitStep
from ..run.unit_paths import InputPaths, find_input, find_input_paths, outputs_of, unit_job
from .comparison.compare import Diff, DiffRequest, UnitDiff, compare
from .comparison.text import detail_lines, details_json, renumbered, tally_json
from .results.result import ResultFolder, results_at_path

# A copy of all that a range would change, in a scratch folder: outputs are empty there, and the state is linked.


def in_scratch(job: Job, folder: Path) -> Job:
    """Return a job with its outputs and a copy of its state in an empty ``folder``. Raises as `copy_state`."""
    scratch = with_outputs_in(job, folder)
    return scratch if job.state is None else scratch.model_copy(update={"state": copy_state(job.state, folder)})


def with_outputs_in(job: Job, folder: Path) -> Job:
    """Return a job that writes its outputs into ``folder``."""
    outputs = []
    for at, path in enumerate(job.outputs):
        below = folder / f"output-{at}"
        if has_date(path):  # a template stays one, with the layout of its dates
            begin = path.index("{date")
            below /= path[begin : path.index("}", begin) + 1].replace("/", "-")
        outputs.append(str(below))
    moved = job.with_stage_outputs(outputs[:-1])
    return moved.model_copy(update={"output": outputs[-1], "confirm_effect": None, "mode": "error"})


def copy_state(path: str, folder: Path) -> str:
    """Copy a state, as hard links where it is in a local folder; return where the copy is.

    Raises `ConfigError` where a run on the state was killed in its commit, so that the state has to be recovered first.
    """
    copy = folder / "state"
    if storage_of(path).has_others():
        view = read_state(path)
        if view.pending is not None:
            what = f"a run on the state {path} was killed while it committed a unit"
            raise ConfigError(what, "run again without a look at the effect: that puts the unit in place")
        with output_errors(f"the scratch folder {copy}"):
            view.storage.copy_to(copy)
    return str(copy)


def in_silence(context: RunContext) -> RunContext:
    """Return a context for runs of which nobody reads the notes, and at which nobody looks: none is published."""
    messages = Messages(-1, context.messages.as_json, secrets=context.messages.secrets)
    return replace(context, messages=messages, observers=(), announced={})


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
    ``outcome``: what became of the units in the scratch folder.
    ``has_state``: whether the units are a chain on a state, along which corrections pass on.
    """

    stages: tuple[StageEffect, ...]
    outcome: BackfillOutcome
    has_state: bool

    @property
    def runs(self) -> list[str]:
        return [record.label for record in self.outcome.done]

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


def effect_of(job: Job, context: RunContext, head: int | None = 20) -> Effect:
    """Compute a range in a scratch folder, and compare it with what is there; change nothing that is there.

    ``head``: how many windows of each output to list; None: all. Raises what the run would raise, and `ConfigError`
    for a job without a range.
    """
    if job.start is None or job.end is None:
        raise ConfigError("an effect is that of a range of units", "say --start and --end")
    in_range = units(job.start, job.end, job.unit)
    paths = find_input_paths(job, in_range[0], job.unit)
    with tempfile.TemporaryDirectory(prefix="wincli-effect-") as folder:
        scratch = in_scratch(job, Path(folder))
        silent = in_silence(context)
        if scratch.state is None:
            # The steps are those of what is published; the units write to the scratch folder.
            run = partial(_run_in_scratch, scratch, paths, silent)
            outcome = run_backfill(plain_steps(job, paths, in_range), run, silent.messages.note)
        else:
            with open_state(scratch.state, owner(), paths_of(job)) as state:
                keep = job.kept(len(in_range), sum(state.has_data(record.label) for record in state.records))
                backfill = IncrementalBackfill(scratch, state, in_range, silent, paths, keep)
                steps = backfill.steps(partial(find_input, paths))
                outcome = run_backfill(steps, backfill.run, silent.messages.note)
        ran = [unit_at(record.ordinal, job.unit) for record in outcome.done]
        for unit, record in zip(ran, outcome.done, strict=True):
            found = find_input(paths, unit)
            if found is None or not same_inputs(found.files, record.inputs):
                what = f"{record.label}: its input has changed while the effect was computed"
                raise DataError(what, "run again")
        named = [each.name for each in job.stages[:-1] if each.output is not None]
        stages = []
        for at, stage in enumerate([*named, job.stages[-1].name]):
            pairs = []
            for unit in ran:
                now, then = (result_at(outputs_of(each, paths, unit)[at]) for each in (job, scratch))
                pairs.append(UnitDiff(unit.label, now, then))
            diff = compare(DiffRequest("now", "then", head=head), [pair for pair in pairs if pair.a is not None])
            lacking = ((pair.unit, pair.b) for pair in pairs if pair.a is None)
            new = tuple((unit, then.manifest["rows_out"]) for unit, then in lacking if then is not None)
            stages.append(StageEffect(stage, diff, new))
    return Effect(tuple(stages), outcome, job.state is not None)


def _run_in_scratch(job: Job, paths: InputPaths, context: RunContext, step: UnitStep) -> Iterator[UnitRecord]:
    """Run a unit without a state in the scratch folder; yield its record."""
    run = PlainRun(context.started, earlier=partial(earlier_jobs, job, paths, step.unit))
    run_job(unit_job(job, paths, step.unit, step.input), nullcontext(run), context)
    record = result_record(step.unit, outputs_of(job, paths, step.unit), recorded(job))
    assert record is not None
    yield record


def result_at(path: str) -> ResultFolder | None:
    """Return the result at a path; None where there is none that is whole. Raises `InputError` where nobody can say."""
    table = table_of(path)
    try:
        manifest = table.manifest()
        return None if manifest is None or table.missing(manifest) else results_at_path(path)[0]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}", "make it readable, then run again") from error


# ``wincli run --confirm-effect``: a run goes on only if its effect is as the user allows.


NUMBERS = ("changed", "added", "removed", "units_changed", "units_new", "units_run")


def confirm(job: Job, context: RunContext) -> None:
    """Compute the effect of a job, and return if its ``confirm_effect`` is true of it.

    Raises `DataError` where it is not, `SpecError` for a mistake in it, and what `effect_of` raises.
    """
    text = job.confirm_effect
    assert text is not None
    try:
        schema = pa.schema([(name, pa.int64()) for name in NUMBERS])
        condition = bind_condition(parse_expression(text), schema)
    except SpecError as error:
        raise SpecError(f"--confirm-effect: {error.what}", text, error.span, error.do) from None
    effect = effect_of(job, context, head=0)
    found = condition.evaluate(pa.table({name: [number] for name, number in effect.numbers.items()}))
    if found.values[0].as_py() is not True:
        what = f"the effect is not as --confirm-effect {text!r} allows: {effect_words(effect)}; nothing was published"
        raise DataError(what, "look at it with wincli plan --effect, then allow it, or mend the input")
    context.messages.note(f"the effect is as allowed: {effect_words(effect)}", **effect.numbers)


def effect_words(effect: Effect) -> str:
    """Return the numbers of an effect in words."""
    return ", ".join(f"{name} is {number:,}" for name, number in effect.numbers.items())


# An effect as text for people, and as JSON.


def effect_text(effect: Effect) -> str:
    """Return what a run would change, in lines: how far it reaches, then what changes in each output."""
    lines, runs, outcome = [], effect.runs, effect.outcome
    if not runs:
        lines.append("nothing runs, so nothing changes")
    else:
        again = f", {len(outcome.rerun):,} of them again" if outcome.rerun else ""
        again = " again" if len(outcome.rerun) == len(runs) else again
        lines.append(f"{count_of(len(runs), 'unit')} would run{again}: {_few(runs)}")
    if runs and effect.has_state and outcome.reached is not None:
        beyond = "no unit was done after it"
        if unaffected := [unit.label for unit in outcome.unaffected]:
            beyond = f"{_few(unaffected)} {'stays as it is' if len(unaffected) == 1 else 'stay as they are'}"
        lines.append(f"the correction converges after {outcome.reached.label}: {beyond}")
    for stage in effect.stages:
        tally, which = stage.diff.tally, f"stage {stage.stage}: " if len(effect.stages) > 1 else ""
        counts = f"{tally.changed:,} changed, {tally.only_in_a:,} gone, {tally.only_in_b:,} new"
        differ = f"{count_of(tally.total, 'window')} would differ: {counts}"
        lines += ["", which + (differ if tally.total else "no window would differ")]
        lines += [f"{which}{renumbered(tally, 'would ')}"] if tally.renumbered else []
        lines += [f"{label} has no result now, and would have {count_of(rows, 'row')}" for label, rows in stage.new]
        lines += detail_lines(stage.diff, ("gone", "new"))
    return "\n".join(redacted(shown(line)) for line in lines)


def _few(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 4 else f"{labels[0]} .. {labels[-1]} ({len(labels):,} units)"


def effect_json(effect: Effect) -> dict[str, Any]:
    """Return an effect as plain JSON values."""
    return {
        **effect.numbers,
        "runs": effect.runs,
        "again": [unit.label for unit in effect.outcome.rerun],
        "reached": None if effect.outcome.reached is None else effect.outcome.reached.label,
        "unaffected": [unit.label for unit in effect.outcome.unaffected],
        "stages": [
            {
                "stage": stage.stage,
                **tally_json(stage.diff.tally),
                "new_units": [{"unit": label, "rows": rows} for label, rows in stage.new],
                **details_json(stage.diff),
            }
            for stage in effect.stages
        ],
    }
