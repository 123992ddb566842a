"""``+ - * / %`` over numbers, whole columns at a time. A row whose result leaves the range of its type fails.

The fast way comes first. Only where it raises, a second pass over the columns finds the rows at fault with exact wide
decimals, and the fast way is taken again without them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from .steps import Failures, as_array, as_mask, blank
from .types import TEXT, decimal_of, integer_range, type_text

_CHECKED: dict[str, Callable[..., Any]] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN: dict[str, Callable[..., Any]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_DIGITS = 76  # of Arrow's widest decimal


def integers(failures: Failures, left: Any, right: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute ``left sign right`` over integers as integers of a type. A row that leaves its range fails."""
    left, right = left.cast(kind), right.cast(kind)
    try:
        return _CHECKED[sign](left, right)
    except pa.ArrowInvalid:
        exact = _PLAIN[sign](*_wide(left, right, sign, 0))
        bad = failures.add(outside(exact, kind), _detail(failures.n, left, sign, right, kind))
        return _CHECKED[sign](blank(as_array(left, failures.n), bad), right)


def times(failures: Failures, left: Any, right: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute ``left sign right`` over the whole numbers that times and intervals of one unit are, as times of a type.

    A row out of range fails.
    """
    return integers(failures, left.cast(pa.int64()), right.cast(pa.int64()), sign, pa.int64()).cast(kind)


def floats(_failures: Failures, left: Any, right: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute ``left sign right`` over floats of a type as IEEE has it: a division by zero is infinite or NaN."""
    left, right = as_float(left, kind), as_float(right, kind)
    if sign != "%":
        return _PLAIN[sign](left, right)
    n = max(len(each) for each in (left, right) if isinstance(each, pa.Array))
    over, by = as_array(left, n), as_array(right, n)
    with np.errstate(all="ignore"):
        rest = np.fmod(over.fill_null(0).to_numpy(zero_copy_only=False), by.fill_null(1).to_numpy(zero_copy_only=False))
    return pa.array(rest, kind, mask=as_mask(pc.or_(over.is_null(), by.is_null())))


def decimals(failures: Failures, left: Any, right: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute ``left sign right`` over decimals and integers as decimals of a type. A row out of its range fails."""
    try:
        return _PLAIN[sign](*_narrow(left, right, sign, kind.scale)).cast(kind)
    except pa.ArrowInvalid:  # more than 38 digits on the way, or a result that does not fit
        left, right = (
            _within(failures, each, 37 - getattr(each.type, "scale", 0) if sign == "*" else 38 - kind.scale)
            for each in (left, right)
        )
        exact = _PLAIN[sign](*_wide(left, right, sign, kind.scale))
    n = failures.n  # of itself: what is put down must not hold the failures that hold it, or columns stay in memory
    return fit(failures, exact, kind, lambda: _detail(n, left, sign, right, kind))


def remainders(failures: Failures, left: Any, right: Any, kind: pa.DataType) -> pa.Array:
    """Compute ``left % right`` over integers of a type, with the sign of ``left``. A row with 0 on the right fails."""
    over, by = as_array(left.cast(kind), failures.n), as_array(right.cast(kind), failures.n)
    by = _without_zeros(failures, over, by)
    if t.is_signed_integer(kind):  # the least integer by -1 would overflow; what is left is 0
        by = pc.if_else(pc.equal(by, pa.scalar(-1, kind)), pa.scalar(1, kind), by)
    return pc.subtract(over, pc.multiply(pc.divide(over, by), by)).cast(kind)


def decimal_remainders(failures: Failures, left: Any, right: Any, kind: pa.DataType) -> pa.Array:
    """Compute ``left % right`` as decimals of a type of at most 37 digits. A row with 0 on the right fails."""
    size = pa.scalar(Decimal(10) ** kind.scale, pa.decimal256(37, 0))
    whole = pa.decimal256(37, 0)
    kept = (_within(failures, as_array(each, failures.n), 37 - kind.scale) for each in (left, right))
    over, by = (pc.multiply(as_wide(each, kind.scale, 38), size).cast(whole) for each in kept)
    by = _without_zeros(failures, over, by)
    times = pc.trunc(pc.divide(over, by)).cast(pa.decimal256(38, 0))
    rest = pc.subtract(over.cast(pa.decimal256(75, 0)), pc.multiply(times, by).cast(pa.decimal256(75, 0))).cast(whole)
    unit = pa.scalar(Decimal(1).scaleb(-kind.scale), pa.decimal256(38, kind.scale))
    return pc.multiply(rest, unit).cast(kind)


def _within(failures: Failures, values: Any, digits: int) -> Any:
    exact = as_wide(values, 0)
    n = failures.n
    is_long = as_array(pc.greater_equal(pc.abs(exact), pa.scalar(Decimal(10) ** digits, exact.type)), n)
    bad = failures.add(is_long, lambda: pc.binary_join_element_wise(number_text(values, n), "has too many digits", " "))
    return blank(values, bad) if bad.any() else values


def _without_zeros(failures: Failures, over: pa.Array, by: pa.Array) -> pa.Array:
    zero = as_mask(pc.equal(by, pa.scalar(Decimal(0) if t.is_decimal(by.type) else 0, by.type)))
    failures.add(zero & as_mask(over.is_valid()), "a division by zero")
    return blank(by, zero)


def negative(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Compute ``-values`` over numbers of a type. A row whose result leaves its range fails."""
    if t.is_floating(kind) or t.is_decimal(kind):
        return pc.negate(values)
    return integers(failures, pa.scalar(0, kind), values, "-", kind)


def fit(failures: Failures, exact: pa.Array, kind: pa.DataType, detail: Callable[[], pa.Array]) -> pa.Array:
    """Return wide decimals as decimals of a type, rounded half away from zero. A row that leaves its range fails."""
    if exact.type.scale > kind.scale:
        exact = pc.round(exact, ndigits=kind.scale, round_mode="half_towards_infinity")
    try:
        return exact.cast(kind)
    except pa.ArrowInvalid:
        limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), pa.decimal256(_DIGITS, exact.type.scale))
        return blank(exact, failures.add(pc.greater_equal(pc.abs(exact), limit), detail)).cast(kind)


def as_float(values: Any, kind: pa.DataType) -> Any:
    """Return numbers as floats of a type, the nearest ones."""
    if values.type == kind:
        return values
    if isinstance(values, pa.Array):
        return values.cast(kind, safe=False)
    return pa.scalar(float(values.as_py()) if values.is_valid else None, kind)


def as_wide(values: Any, scale: int, digits: int = 75) -> Any:
    """Return integers or decimals as decimals of so many digits with at least ``scale`` of them behind the point."""
    exact = values if t.is_decimal(values.type) else values.cast(decimal_of(values.type))
    return exact.cast(pa.decimal256(digits, max(scale, exact.type.scale)))


def number_text(values: Any, n: int) -> pa.Array:
    """Return numbers as texts for messages: string (n,)."""
    return as_array(values, n).cast(TEXT)


def outside(exact: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return which wide decimals are not in the range of an integer type: bool (n,)."""
    low, high = (pa.scalar(Decimal(each), exact.type) for each in integer_range(kind))
    return pc.or_(pc.less(exact, low), pc.greater(exact, high))


def _narrow(left: Any, right: Any, sign: str, scale: int) -> tuple[Any, Any]:
    """Both sides as decimals of 128 bits, which are several times as fast as those of 256. Raises `ArrowInvalid`."""
    one, other = (each if t.is_decimal(each.type) else each.cast(decimal_of(each.type)) for each in (left, right))
    if sign == "*":
        return one, other
    kind = pa.decimal128(37, scale)
    return one.cast(kind), other.cast(kind)


def _wide(left: Any, right: Any, sign: str, scale: int) -> tuple[Any, Any]:
    if sign == "*":
        return as_wide(left, 0, 38), as_wide(right, 0, 37)
    return as_wide(left, scale), as_wide(right, scale)


def _detail(n: int, left: Any, sign: str, right: Any, kind: pa.DataType) -> pa.Array:
    one, other = number_text(left, n), number_text(right, n)
    return pc.binary_join_element_wise(one, sign, other, f"is no {type_text(kind)}", " ")
