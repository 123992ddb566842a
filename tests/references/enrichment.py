"""Enrichment row at a time: for each row all rows of the other table are looked at."""

from __future__ import annotations

import math
from typing import Any


def equals(left: Any, right: Any) -> bool:
    """SQL's `=`: a null or NaN equals nothing."""
    return left is not None and right is not None and left == right


def matches(
    left: list[dict[str, Any]],
    right: list[dict[str, Any]],
    keys: list[tuple[str, str]],
    asof: tuple[str, str] | None = None,
    within: Any = None,
    strict: bool = False,
    direction: str = "backward",
) -> list[int | None]:
    """Return, for each row of ``left``, the place of the row of ``right`` that it gets."""
    found: list[int | None] = []
    for row in left:
        same = [place for place, other in enumerate(right) if all(equals(row[a], other[b]) for a, b in keys)]
        if asof is None:
            found.append(same[-1] if same else None)
            continue
        at, orders = row[asof[0]], [other[asof[1]] for other in right]
        same = [place for place in same if _is_order(at) and _is_order(orders[place])]
        before = [place for place in same if orders[place] < at or (orders[place] == at and not strict)]
        after = [place for place in same if orders[place] > at or (orders[place] == at and not strict)]
        newest = max(before, key=lambda place: (orders[place], place), default=None)
        first = min(after, key=lambda place: (orders[place], place), default=None)
        best = first if direction == "forward" else newest
        if direction == "nearest" and first is not None:
            best = first if newest is None or distance(at, orders[first]) < distance(at, orders[newest]) else newest
        if best is not None and within is not None and distance(at, orders[best]) > within:
            best = None
        found.append(best)
    return found


def distance(one: Any, other: Any) -> Any:
    """How far two values are apart; an infinity is at no distance from itself."""
    gap = abs(one - other)
    return 0.0 if _is_nan(gap) else gap


def _is_order(value: Any) -> bool:
    return value is not None and not _is_nan(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
