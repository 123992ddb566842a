"""The plan of a job: its input, its stages, and where the rows of each stage go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...windowing.enrichment.source import EnrichedSource
from ...windowing.ports import InputFile, Part
from ...writers.output.output import Output
from ..request.request import JobRequest
from .enriched_input import AnySource
from .expectations import BoundExpectation, bind_expectations
from .stage_outputs import StageOutput, plan_outputs
from .stage_plans import StagePlan, plan_stages


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job that is bound to its input and outputs, and checked.

    ``request``: the job.
    ``source``: the input of its first stage.
    ``stages``: the plans of its stages, in order.
    ``stage_outputs``: for each stage, where its rows are written.
    ``table_parts``: what the enrich tables have left in the state; they belong to its first stage.
    ``expectations``: what must be true before anything is committed.
    """

    request: JobRequest
    source: AnySource
    stages: tuple[StagePlan, ...]
    stage_outputs: tuple[StageOutput, ...]
    table_parts: tuple[Part, ...] = ()
    expectations: tuple[BoundExpectation, ...] = ()

    @property
    def cut_at(self) -> int | None:
        """How many rows of the input are read, where it has more than the limit of the job; else None."""
        return self.request.job.limit if self.source.is_cut else None


def table_files(plan: JobPlan) -> dict[str, tuple[InputFile, ...]]:
    """Return the files of each enrich table, by the name of the enrichment."""
    source = plan.source
    if not isinstance(source, EnrichedSource):
        return {}
    pairs = zip(plan.request.enrichments, source.tables, strict=True)
    return {each.name: tuple(table.files) for each, table in pairs}


def plan_job(request: JobRequest, source: AnySource, outputs: Sequence[Output | None]) -> JobPlan:
    """Plan all stages of a job over ``source`` and choose their outputs among ``outputs``, which are open.

    Raises `ConfigError` as `plan_stages` and `plan_outputs` do.
    """
    stages = plan_stages(request, source)
    expectations = bind_expectations(request.job.expect, stages)
    return JobPlan(request, source, stages, plan_outputs(request, stages, outputs), expectations=expectations)
