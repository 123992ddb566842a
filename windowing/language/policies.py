"""The policies and partition evictions of the window language, by keyword (sections 2 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, TypeVar

from . import spec
from .calls import Call, Form, Policy, Rule, read_call
from .clock_policies import CLOCK_POLICIES
from .conditions.policies import CONDITION_POLICIES, MOST_POLICIES, OPENERS, AnyOf
from .row_policies import ROW_POLICIES, Changing
from .tokens import Cursor

_T = TypeVar("_T")
_ONE_OPENER: Final = "give one of when, while and from"


def read_policy(cursor: Cursor, kind: str, rules: Mapping[str, Rule[_T]], least: int = 1) -> _T:
    """Parse a policy.

    ``rules``: the policies that windows of this ``kind`` can have; ``least``: the smallest ``count``. Raises
    `SpecError` for any other policy.
    """
    token, word = cursor.peek(), cursor.keyword()
    if word in rules:
        call = read_call(cursor, rules[word].form)
        policy = rules[word].read(cursor, call, least)
        if kind == "sliding" and isinstance(policy, Changing):
            amount = call.arguments[-1].value
            raise cursor.error(f"expected a number, found {amount}", amount.span, call.do)
        return policy
    if word in POLICIES:
        do = f"use one of {', '.join(rules)}, or a tumbling window"
        raise cursor.error(f"a {kind} window cannot use {token}", token.span, do)
    raise cursor.unknown("policy", rules)


def read_tumbling_policy(cursor: Cursor) -> Policy:
    """Parse the policy of a tumbling window: one, or several between ``or`` (section 12). Raises `SpecError`."""
    found: list[Policy] = []
    while not found or cursor.skip("or"):
        token = cursor.peek()
        policy = read_policy(cursor, "tumbling", POLICIES)
        if policy in found:
            raise cursor.error(f"the policy {policy} is given twice", token.span, "leave this one out")
        if isinstance(policy, OPENERS) and any(isinstance(other, OPENERS) for other in found):
            raise cursor.error(f"{token} is the second policy that opens windows", token.span, _ONE_OPENER)
        found.append(policy)
        if len(found) > MOST_POLICIES:
            raise cursor.error(f"a window takes at most {MOST_POLICIES} policies", token.span, "leave some out")
    return found[0] if len(found) == 1 else AnyOf(tuple(found))


def looks_at_window_before(policy: Policy) -> bool:
    """Whether an amount of a tumbling policy, or of one of several, asks for the window before (section 13)."""
    policies = policy.policies if isinstance(policy, AnyOf) else (policy,)
    return any(isinstance(each, Changing) and each.looks_at_window_before for each in policies)


def read_eviction(cursor: Cursor) -> spec.PartitionEviction:
    """Parse a partition eviction of `EVICTIONS`; the cursor is at its name."""
    rule = EVICTIONS[cursor.keyword()]
    return rule.read(cursor, read_call(cursor, rule.form), 1)


def _partition_age(cursor: Cursor, call: Call, _: int) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionAge", cursor.duration(call.first, call.do))


def _partition_count(cursor: Cursor, call: Call, _: int) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionCount", Fraction(cursor.count(call.first, call.do)))


def _tuple_count(cursor: Cursor, call: Call, _: int) -> spec.PartitionEviction:
    return spec.PartitionEviction("tupleCount", Fraction(cursor.count(call.first, call.do)))


SLIDING_POLICIES: Final[Mapping[str, Rule[spec.SlidingPolicy]]] = {
    "count": ROW_POLICIES["count"],
    "delta": ROW_POLICIES["delta"],
    "time": CLOCK_POLICIES["time"],
}
"""The policies that evict rows of a sliding window, by keyword in lower case."""

TRIGGER_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    **SLIDING_POLICIES,
    "when": CONDITION_POLICIES["when"],
}
"""The policies that trigger a sliding window, by keyword in lower case."""

POLICIES: Final[Mapping[str, Rule[Any]]] = {
    **SLIDING_POLICIES,
    **ROW_POLICIES,
    **CLOCK_POLICIES,
    **CONDITION_POLICIES,
}
"""The policies of a tumbling window, which are all policies, by keyword in lower case."""

EVICTIONS: Final[Mapping[str, Rule[spec.PartitionEviction]]] = {
    "partitionage": Rule(Form("partitionAge(duration)"), _partition_age),
    "partitioncount": Rule(Form("partitionCount(n)"), _partition_count),
    "tuplecount": Rule(Form("tupleCount(n)"), _tuple_count),
}
"""The partition evictions, by keyword in lower case."""
