"""The identity of the stages of a job, which all runs on a state must share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...windowing.planning.identity import differences, identity_of
from ..planning.stage_plans import StagePlan


def state_identity(stage: StagePlan) -> dict[str, Any]:
    """Return the identity of a stage as plain JSON values: window, key, order, options and needed columns."""
    return identity_of(stage.plan, stage.enrichments)


def identity_changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Describe how the stages of two jobs differ, by name; return an empty list where they do not."""
    if list(was) != list(now):
        return [f"its stages are {', '.join(was)}, not {', '.join(now)}"]
    which = {name: f"stage {name}: " if len(was) > 1 else "" for name in was}
    return [which[name] + text for name in was for text in differences(was[name], now[name])]
