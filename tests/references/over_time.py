"""Aggregates over time once more, a value at a time, as semantics section 9 reads: exact until the last step.

Times and values are numbers that never round: int, `Fraction`, `Decimal` and finite floats, which are fractions, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Value = Any
Event = tuple[Value, Value]
"""A time, and the value of a key from then on; None: it has none."""


def integral(events: Sequence[Event], lo: Value, hi: Value, per_second: int = 1) -> float | None:
    """Value times seconds over ``[lo, hi)``. ``events``: those of the key, up to the last row of the window."""
    return _sum(events, lo, hi, None, per_second)


def twa(events: Sequence[Event], lo: Value, hi: Value) -> float | None:
    """The integral over the seconds from the first value on."""
    known = [Fraction(time) for time, value in events if value is not None]
    seconds = Fraction(hi) - max(Fraction(lo), known[0]) if known else Fraction(0)
    return _sum(events, lo, hi, seconds, 1) if seconds > 0 else None


def _sum(events: Sequence[Event], lo: Value, hi: Value, seconds: Fraction | None, per_second: int) -> float | None:
    begin, end = Fraction(lo), Fraction(hi)
    known = [(Fraction(time), value) for time, value in events if value is not None]
    if not known:
        return None
    total, endless = Fraction(0), list[float]()
    for (time, value), (until, _) in zip(known, [*known[1:], (end, None)], strict=True):
        length = min(until, end) - max(time, begin)
        if length <= 0:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            endless.append(value)
        else:
            total += Fraction(value) * length
    if endless:
        return sum(endless)
    return _to_float(total / per_second if seconds is None else total / seconds)


def slope(events: Sequence[Event], per_second: int = 1) -> float | None:
    """Least squares of the value over the time."""
    known = [(Fraction(time), value) for time, value in events if value is not None]
    if len({time for time, _ in known}) < 2:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for _, value in known):
        return math.nan
    middle = sum((time for time, _ in known), Fraction(0)) / len(known)
    mean = sum((Fraction(value) for _, value in known), Fraction(0)) / len(known)
    shared = sum(((time - middle) * (Fraction(value) - mean) for time, value in known), Fraction(0))
    return _to_float(shared / sum((time - middle) ** 2 for time, _ in known) * per_second)


def locf(values: Sequence[Value]) -> list[Value]:
    """The values of the windows of a key in order, each null filled with the one before."""
    found: list[Value] = []
    for value in values:
        found.append(found[-1] if value is None and found else value)
    return found


def _to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
