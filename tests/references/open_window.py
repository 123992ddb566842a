"""Conditions that look at the open window, row at a time (section 12), and smoothed windows before (section 13).

A condition here is a function of what it sees: the rows that the window holds, the row that is asked, and the rows of
the key's windows before. It returns True, False or None, or raises `TooFarError` for an integer beyond 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from references.tumbling import Policy, Row, Rows, TooFarError, Value, aggregate, is_nan

Sees = Callable[[Rows, Row, Rows], Any]
"""The rows that the window holds, the row that is asked, and the rows of the window before, a `History`."""


@dataclass(frozen=True)
class Split(Policy):
    condition: Sees
    reason: str = "split"

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return self.condition(rows, row, old) is True


@dataclass(frozen=True)
class PunctOfWindow(Policy):
    condition: Sees
    reason: str = "punct"

    def after(self, rows: Rows, old: Rows) -> bool:
        return self.condition(rows, rows[-1], old) is True


@dataclass(frozen=True)
class FromOfWindow(PunctOfWindow):
    opener: Callable[[Row], bool] = lambda row: True
    reason: str = "until"

    def opens(self, row: Row) -> bool:
        return self.opener(row)


def of(function: str, rows: Rows, get: Callable[[Row], Value]) -> Value:
    """An aggregate of rows; None where it is null."""
    found = aggregate(function, [get(row) for row in rows], 0 if function == "count" else None)
    return fits(found) if isinstance(found, int) and not isinstance(found, bool) else found


def fits(number: Any) -> Any:
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        raise TooFarError
    return number


def plus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else fits(a + b)


def minus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else fits(a - b)


def times(a: Any, b: Any) -> Any:
    return None if a is None or b is None else fits(a * b)


def without_sign(a: Any) -> Any:
    return None if a is None else fits(abs(a))


def above(a: Any, b: Any) -> bool | None:
    """``a > b``, where NaN is larger than all others."""
    if a is None or b is None:
        return None
    if is_nan(a) or is_nan(b):
        return is_nan(a) and not is_nan(b)
    return bool(a > b)


def at_least(a: Any, b: Any) -> bool | None:
    smaller = above(b, a)
    return None if smaller is None else not smaller


def differs(a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return bool(a != b) and not (is_nan(a) and is_nan(b))


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if a is True or b is True else None if a is None or b is None else False


def smoothed(
    old: Rows, function: str, get: Callable[[Row], Value], default: float, share: float, signed: bool
) -> float:
    """The exponential smoothing of an aggregate over all windows before: one rounding for each operation."""
    found = float(default)
    for rows in getattr(old, "windows", ()):
        value = of(function, rows, get)
        value = default if value is None else value if signed else abs(value)
        found = share * float(value) + (1.0 - share) * found
    return found
