"""The manifests of a job's results: one for each stage that has an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....conf.recorded_job import recorded
from ....writers.output.manifest import build_manifest, stage_entry
from ....writers.output.output import Output
from ...planning.job_plan import JobPlan, table_files
from ..staged_job import ExpectationOutcome, StageRun


def manifests_of(
    plan: JobPlan,
    stage_runs: Sequence[StageRun],
    seconds: Mapping[str, float],
    expectations: Sequence[ExpectationOutcome] = (),
) -> list[tuple[Output, dict[str, Any]]]:
    """Return each output with its manifest, in the order of the stages: the output of the job itself comes last.

    ``seconds``: phase to the seconds of the whole job; a manifest has them after those of its stage. ``expectations``:
    what has become of those of the job.
    """
    return [
        (stage.stage_output.output, _manifest(plan, stage_runs[: at + 1], seconds, expectations))
        for at, stage in enumerate(stage_runs)
        if stage.stage_output.is_own
    ]


def _manifest(
    plan: JobPlan,
    stage_runs: Sequence[StageRun],
    seconds: Mapping[str, float],
    expectations: Sequence[ExpectationOutcome],
) -> dict[str, Any]:
    """Return the manifest of the last stage of ``stage_runs``. It lists all rejects in the output's folder."""
    *before, last = stage_runs
    stage, outcome = last.stage, last.outcome
    return build_manifest(
        job=recorded(plan.request.job),
        spec=str(stage.plan.spec),
        schema=(last.stage_output.copy or last.stage_output.sink).result,
        order=stage.plan.order.columns,
        order_why=stage.plan.order.why,
        inputs=plan.source.files,
        skipped=len(plan.source.skipped),
        cut_at=plan.cut_at,
        tables=table_files(plan),
        counts=outcome.counts,
        parts=last.parts,
        rejects=[
            part
            for each in stage_runs
            if each.stage_output.output is last.stage_output.output
            for part in each.outcome.rejects
        ],
        seconds={**outcome.seconds, **seconds},
        stream=stage.stream,
        stages=[_entry(each) for each in before],
        expectations=[each.as_json() for each in expectations],
    )


def _entry(stage_run: StageRun) -> dict[str, Any]:
    plan = stage_run.stage.plan
    return stage_entry(
        name=stage_run.stage.name,
        spec=str(plan.spec),
        order=plan.order.columns,
        order_why=plan.order.why,
        counts=stage_run.outcome.counts,
        output=stage_run.stage_output.output.place.shown if stage_run.stage_output.is_own else None,
    )
