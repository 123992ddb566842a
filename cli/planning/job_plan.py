"""The plan of a job: its input, its stages, and where the rows of each stage go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...readers.merged_source import MergedSource
from ...readers.source import FileSource
from ...writers.output.output import Output
from ..request.request import JobRequest
from .stage_outputs import StageOutput, plan_outputs
from .stage_plans import StagePlan, plan_stages


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job that is bound to its input and outputs, and checked.

    ``request``: the job.
    ``source``: the input of its first stage.
    ``stages``: the plans of its stages, in order.
    ``stage_outputs``: for each stage, where its rows are written.
    """

    request: JobRequest
    source: FileSource | MergedSource
    stages: tuple[StagePlan, ...]
    stage_outputs: tuple[StageOutput, ...]


def plan_job(request: JobRequest, source: FileSource | MergedSource, outputs: Sequence[Output | None]) -> JobPlan:
    """Plan all stages of a job over ``source`` and choose their outputs among ``outputs``, which are open.

    Raises `ConfigError` as `plan_stages` and `plan_outputs` do.
    """
    stages = plan_stages(request, source)
    return JobPlan(request, source, stages, plan_outputs(request, stages, outputs))
