"""The manifests of a job's results, one for each stage that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...conf.recorded_job import recorded
from ...windowing.ports import InputFile
from ...writers.output.manifest import build_manifest, stage_entry
from ...writers.output.output import Output
from .request import JobRequest
from .stage_runs import StageRun


def manifests_of(
    asked: JobRequest,
    inputs: Sequence[InputFile],
    ran: Sequence[StageRun],
    seconds: Mapping[str, float],
    skipped: int = 0,
) -> list[tuple[Output, dict[str, Any]]]:
    """Return each output with its manifest, in the order of the stages, so that the job's own comes last.

    ``seconds``: what the job as a whole took, by phase; they follow those of the stage. ``skipped``: how much of the
    input was passed over.
    """
    return [
        (stage.stage_output.output, _manifest(asked, inputs, ran[: at + 1], seconds, skipped))
        for at, stage in enumerate(ran)
        if stage.stage_output.is_own
    ]


def _manifest(
    asked: JobRequest, inputs: Sequence[InputFile], ran: Sequence[StageRun], seconds: Mapping[str, float], skipped: int
) -> dict[str, Any]:
    """The manifest of the last of some stages. The rejects are all that are in its folder."""
    *before, last = ran
    stage, outcome = last.stage, last.outcome
    return build_manifest(
        job=recorded(asked.job),
        spec=str(stage.plan.spec),
        schema=stage.result,
        order=stage.plan.order.columns,
        order_why=stage.plan.order.why,
        inputs=inputs,
        skipped=skipped,
        counts=outcome.counts,
        parts=last.parts,
        rejects=[
            part
            for each in ran
            if each.stage_output.output is last.stage_output.output
            for part in each.outcome.rejects
        ],
        seconds={**outcome.seconds, **seconds},
        stream=stage.stream,
        stages=[_entry(each) for each in before],
    )


def _entry(ran: StageRun) -> dict[str, Any]:
    plan = ran.stage.plan
    return stage_entry(
        name=ran.stage.name,
        spec=str(plan.spec),
        order=plan.order.columns,
        order_why=plan.order.why,
        counts=ran.outcome.counts,
        output=ran.stage_output.output.place.shown if ran.stage_output.is_own else None,
    )
