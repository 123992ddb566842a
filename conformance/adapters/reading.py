"""What a case asks, read once for all adapters: its window as a value, its keys, orders and aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wincli.conformance.kit import CannotSayError, Case
from wincli.windowing.language import clock_policies, conditions, joins, row_policies, spec
from wincli.windowing.language.parser import origin_seconds, parse_aggregate, parse_window

Call = spec.AggregateCall | spec.AggregateExpression
REJECTED = {
    "null_key": "null is a key like any other",
    "null_order": "a row without a time is a row",
    "null_attribute": "a row without the value is a row",
    "nan_attribute": "NaN is the largest number",
    "late": "all rows are there, so none is late",
}
"""Why an engine differs where wincli refuses rows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``window``: the spec; ``policies``: of a tumbling one, several for ``or``; ``order``: none for arrival."""

    case: Case
    window: Any
    policies: tuple[Any, ...]
    key: tuple[str, ...]
    order: tuple[str, ...]
    calls: dict[str, Call]

    def option(self, name: str, default: Any = None) -> Any:
        return self.case.spec.get(name, default)

    @property
    def is_right(self) -> bool:
        return self.option("closed") == "right"

    @property
    def group_by(self) -> tuple[str, ...]:
        return names(self.option("group_by"))

    @property
    def origin(self) -> Fraction:
        return origin_seconds(str(self.option("origin", 0)))

    @property
    def clock(self) -> str:
        """The column of the clock."""
        if "event_time" in self.case.spec:
            return str(self.option("event_time"))
        if not self.order:
            raise CannotSayError("a window without a time")
        return self.order[0]

    def is_time(self, column: str) -> bool:
        return self.case.given.columns.get(column, "").startswith("timestamp")

    @property
    def note(self) -> str:
        """Why an engine may differ that refuses no rows."""
        return "; ".join(dict.fromkeys(REJECTED[why] for _, why in self.case.rejects if why in REJECTED))


def names(given: Any) -> tuple[str, ...]:
    """One name, several, or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def ask(case: Case) -> Asked:
    """Read a case. Raises `CannotSayError` for what only wincli has of all engines here."""
    window = parse_window(case.spec["window"])
    for missing, what in [
        (case.units, "a state from one run to the next"),
        (case.marks, "window marks"),
        ("_mark" in case.columns, "marks without rows"),
        (case.spec.get("at_end") == "drop", "open windows that stay open"),
        (getattr(window, "eviction", None) or "emit_evicted" in case.spec, "eviction of keys"),
        ("max_ahead" in case.spec, "rows ahead of their time"),
        ("previous(" in case.spec["window"], "the window before"),
    ]:
        if missing:
            raise CannotSayError(what)
    policy = getattr(window, "policy", None)
    policies = policy.policies if isinstance(policy, conditions.AnyOf) else () if policy is None else (policy,)
    order = names(case.spec.get("order_by"))
    calls = case.spec.get("agg") or ({} if "emit" in case.spec or "join" in case.spec else {"count": "count()"})
    parsed = {name: parse_aggregate(f"{name}={text}") for name, text in calls.items()}
    return Asked(case, window, policies, names(case.spec.get("key")), () if order == ("arrival",) else order, parsed)


def sees_window(text: str) -> bool:
    """Whether a condition looks at the open window."""
    words = ("count(", "sum(", "min(", "max(", "mean(", "first(", "last(", "range(")
    return any(word in text for word in words)


NEIGHBOURS = (
    row_policies.Gap, row_policies.Change, row_policies.Punct, conditions.Split, conditions.While, clock_policies.Time,
)  # fmt: skip
"""Policies that two neighbouring rows decide, so that any of them may stand beside the others."""
BREAKS = {
    row_policies.Delta: "a window that ends by its first row",
    row_policies.Count: "a count beside other policies",
    row_policies.Changing: "amounts that the first row says",
    conditions.Reaches: "a running aggregate that begins anew",
    conditions.When: "an opener beside other policies",
    conditions.From: "an opener beside other policies",
}
"""What is missing where two neighbouring rows do not say whether a window ends."""


def as_other(window: spec.SideWindows) -> joins.Around | joins.At:
    """The join by range or as-of that gives the pairs of a window on each side."""
    one, two = window.left, window.right
    if isinstance(one, spec.Sliding) and isinstance(two, spec.Sliding):
        if isinstance(one.evict, clock_policies.Time) and isinstance(two.evict, clock_policies.Time):
            return joins.Around(two.evict.seconds, one.evict.seconds)
        if one.evict == row_policies.Count(0) and two.evict == row_policies.Count(1):
            return joins.At((Fraction(0),))
    raise CannotSayError("a window on each side of a join")
