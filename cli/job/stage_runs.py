"""The stages of a job, one after the other: each reads rows and marks of the stage before in emission order.

A stage writes Parquet parts for the next stage. If its own output is Parquet with stream columns, these parts are the
output, and nothing is written twice. Else they are in a folder that is deleted when the next stage has read it.
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
from ...windowing.ports import Executor, Part, Source
from ...writers.output.convert_part import copy_part
from .request import JobRequest
from .stage_names import naming_stage
from .stage_outputs import StageOutput
from .stage_plans import StagePlan

Compute = Callable[[StagePlan, TaskContext], Outcome]
"""Runs the window of a stage in a task context; an incremental run adds the window state to that context first."""


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage that has run.

    ``stage``: its plan.
    ``stage_output``: where its rows are.
    ``outcome``: row counts, windows and times of the run.
    ``parts``: the parts of its own output; none where the stage has no output.
    """

    stage: StagePlan
    stage_output: StageOutput
    outcome: Outcome
    parts: tuple[Part, ...]


def run_stages(
    request: JobRequest,
    stages: Sequence[StagePlan],
    stage_outputs: Sequence[StageOutput],
    source: Source,
    compute: Compute,
    executor: Executor,
) -> Iterator[StageRun]:
    """Run the stages, the first over ``source``; yield each when it has run, before the next begins.

    Nothing is committed. Raises what ``compute`` raises, with the name of the stage.
    """
    before: StageRun | None = None
    for stage, stage_output in zip(stages, stage_outputs, strict=True):
        with naming_stage(request, stage.name):
            stage_input = source if before is None else _stream(before, request.job.split_size)
            outcome = compute(stage, TaskContext(stage.plan, stage_input, stage_output.sink, stage.marks))
            if before is not None:
                before.stage_output.sink.delete_intermediate()
            parts = _parts(stage_output, outcome, executor)
        before = StageRun(stage, stage_output, outcome, parts)
        yield before


def _stream(before: StageRun, split_size: int) -> Source:
    """Return the result of a stage as the input of the next."""
    sink = before.stage_output.sink
    shown = f"stage {before.stage.name}" if sink.parts_in else sink.shown
    folder = Located(sink.fs, f"{sink.staging}/{sink.parts_in}".rstrip("/"), shown)
    return open_result(folder, before.outcome.parts, stream_of(before.stage.plan), split_size)


def _parts(stage_output: StageOutput, outcome: Outcome, executor: Executor) -> tuple[Part, ...]:
    """Return the parts of a stage's own output, converted where it has another format than the next stage reads."""
    if not stage_output.is_own:
        return ()
    if stage_output.copy is None:
        return outcome.parts
    copies = executor.map(f"write {stage_output.copy.format}", partial(copy_part, stage_output.copy), outcome.parts)
    return tuple(part for part in copies if part is not None) or (stage_output.copy.write_part(0, []),)
