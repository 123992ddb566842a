"""The tumbling policies by the type of their value in the language: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...language import clock_policies as clock
from ...language import row_policies, spec
from ...language.calls import Policy
from .any_of import AnyOfPolicy
from .clock_policy import ClockPolicy
from .policies.calendar import CalendarPolicy
from .policies.change import ChangePolicy
from .policies.changing import changing_policy
from .policies.conditions import FromPolicy, OpenerPolicy
from .policies.count import CountPolicy
from .policies.cron import CronPolicy
from .policies.delta import DeltaPolicy
from .policies.gap import GapPolicy
from .policies.punct import punct_policy
from .policies.reaches import ReachesPolicy
from .policies.time import TimePolicy
from .policy import TumblingPolicy
from .rule_policy import RulePolicy

_POLICIES: Final[Mapping[type, Callable[[Any], TumblingPolicy]]] = {
    spec.Count: CountPolicy,
    spec.Delta: DeltaPolicy,
    spec.Gap: GapPolicy,
    spec.Punct: punct_policy,
    row_policies.Change: ChangePolicy,
    spec.Time: TimePolicy,
    spec.Calendar: CalendarPolicy,
    clock.Cron: CronPolicy,
    spec.Changing: changing_policy,
    spec.When: OpenerPolicy,
    spec.While: OpenerPolicy,
    spec.From: FromPolicy,
    spec.Reaches: ReachesPolicy,
}


def policy_of(value: Policy) -> TumblingPolicy:
    """Return a tumbling policy, with its value."""
    if isinstance(value, spec.AnyOf):
        return AnyOfPolicy(tuple(_POLICIES[type(each)](each) for each in value.policies))
    policy = _POLICIES[type(value)](value)
    return AnyOfPolicy((policy,)) if isinstance(policy, RulePolicy) else policy


def clock_policies() -> list[str]:
    """Return the words of the policies that the clock ends."""
    return [
        value.__name__.lower()
        for value, kind in _POLICIES.items()
        if isinstance(kind, type) and issubclass(kind, ClockPolicy)
    ]
