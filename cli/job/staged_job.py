"""What a run has computed before its commit: the stages that have run, and the job with all its manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...windowing.engine.run import Outcome
from ...windowing.ports import Part
from ...writers.state.journal import Prepared
from ..planning.job_plan import JobPlan
from ..planning.stage_outputs import StageOutput
from ..planning.stage_plans import StagePlan


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


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """What has become of an expectation.

    ``expect``: its canonical text.
    ``on_fail``: ``fail`` or ``warn``.
    ``holds``: whether it is true.
    ``saw``: the numbers that decided it; plain JSON values.
    ``words``: the same in words.
    """

    expect: str
    on_fail: str
    holds: bool
    saw: Mapping[str, Any]
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return it as manifests and unit records have it."""
        return {"expect": self.expect, "on_fail": self.on_fail, "holds": self.holds, "saw": dict(self.saw)}


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A job that has run: all its parts are in staging folders, and nothing is committed.

    ``plan``: its plan.
    ``stage_runs``: its stages, in the order of the job.
    ``outputs``: each output with its manifest, in the order in which they are put in place.
    ``seconds``: phase to the seconds of the whole job.
    ``expectations``: what has become of its expectations; none has failed.
    """

    plan: JobPlan
    stage_runs: Sequence[StageRun]
    outputs: Prepared
    seconds: Mapping[str, float]
    expectations: Sequence[ExpectationOutcome] = ()
