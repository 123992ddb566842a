"""The stages of a job, one after the other: each reads the rows and marks of the one before as they were emitted.

A stage leaves Parquet parts in the staging folder of an output: of its own where that is written as Parquet with stream
columns, so that nothing is written twice, else in a folder that is deleted as soon as the next stage has read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ...readers.files.file import Located
from ...readers.open import open_result
from ...windowing.engine.run import Outcome
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.planning.plan import stream_of
from ...windowing.ports import Part, RunTasks, Source
from ...writers.output.convert_part import copy_part
from .request import JobRequest
from .stage_names import naming_stage
from .stage_outputs import StageOutput
from .stage_plans import StagePlan

Compute = Callable[[StagePlan, TaskContext], Outcome]
"""Runs the window of a stage, given its work; what else belongs to a stage, such as a carry, is put in and taken out
here."""


@dataclass(frozen=True, slots=True)
class StageRun:
    """What a stage came to. ``parts``: those of its output; none where it has no output of its own."""

    stage: StagePlan
    stage_output: StageOutput
    outcome: Outcome
    parts: tuple[Part, ...]


def run_stages(
    asked: JobRequest,
    stages: Sequence[StagePlan],
    routes: Sequence[StageOutput],
    source: Source,
    compute: Compute,
    each: RunTasks,
) -> Iterator[StageRun]:
    """Run the stages, the first over ``source``; yield what each came to, before the next begins.

    Nothing is committed. Raises what ``compute`` raises, naming the stage.
    """
    before: StageRun | None = None
    for stage, route in zip(stages, routes, strict=True):
        with naming_stage(asked, stage.name):
            reads = source if before is None else _stream(before, asked.job.split_size)
            outcome = compute(stage, TaskContext(stage.plan, reads, route.sink, stage.marks))
            if before is not None:
                before.stage_output.sink.delete_intermediate()
            parts = _parts(route, outcome, each)
        before = StageRun(stage, route, outcome, parts)
        yield before


def _stream(before: StageRun, split_size: int) -> Source:
    """What a stage gave, as the input of the next."""
    sink = before.stage_output.sink
    shown = f"stage {before.stage.name}" if sink.parts_in else sink.shown
    folder = Located(sink.fs, f"{sink.staging}/{sink.parts_in}".rstrip("/"), shown)
    return open_result(folder, before.outcome.parts, stream_of(before.stage.plan), split_size)


def _parts(route: StageOutput, outcome: Outcome, each: RunTasks) -> tuple[Part, ...]:
    """The parts of a stage's own output, written once more where that has another form than the next stage reads."""
    if not route.is_own:
        return ()
    if route.copy is None:
        return outcome.parts
    copies = each(f"write {route.copy.format}", partial(copy_part, route.copy), outcome.parts)
    return tuple(part for part in copies if part is not None) or (route.copy.write_part(0, []),)
