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
) -> list[int | None]:
    """Return, for each row of ``left``, the place of the row of ``right`` that it gets."""
    found: list[int | None] = []
    for row in left:
        best = None
        for place, other in enumerate(right):
            if not all(equals(row[a], other[b]) for a, b in keys):
                continue
            if asof is not None:
                at, then = row[asof[0]], other[asof[1]]
                if at is None or then is None or _is_nan(at) or _is_nan(then):
                    continue
                if not (then < at or (then == at and not strict)):
                    continue
                if best is not None and then < right[best][asof[1]]:
                    continue
            best = place
        if best is not None and within is not None and asof is not None:
            best = best if left[len(found)][asof[0]] - right[best][asof[1]] <= within else None
        found.append(best)
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
