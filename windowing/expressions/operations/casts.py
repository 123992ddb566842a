"""CAST and TRY_CAST over whole columns. A row whose value has no place in the type fails, or is null.

The fast way is Arrow's own cast. Where it raises, or does not mean what SQL means, the columns are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..steps import Failures, as_mask, blank
from ..types import decimal_of, is_number, is_text, is_time, type_text
from .arithmetic import as_float, as_wide, fit, integer_range, outside
from .text_casts import from_text, to_text


def is_castable(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one type can be converted to another, as far as types decide."""
    if kind == wanted or t.is_null(kind):
        return True
    if is_text(wanted) or is_text(kind):
        other = kind if is_text(wanted) else wanted
        return t.is_boolean(other) or is_number(other) or is_time(other)
    plain = [t.is_boolean(each) or is_number(each) for each in (kind, wanted)]
    return all(plain) or (is_time(kind) and is_time(wanted)) or (t.is_duration(kind) and t.is_duration(wanted))


def cast(failures: Failures, values: pa.Array, kind: pa.DataType, is_try: bool) -> pa.Array:
    """Return values in another type, one that `is_castable` has. A row that has no place in it fails, or is null."""
    own = Failures(failures.n)
    found = _caster(values.type, kind)(own, values, kind)
    if own.mask is None:
        return found
    if not is_try:
        failures.add_all(own, np.ones(failures.n, bool))
    return blank(found, own.mask)


def _caster(kind: pa.DataType, wanted: pa.DataType) -> Callable[[Failures, pa.Array, pa.DataType], pa.Array]:
    if t.is_null(kind) or kind == wanted:
        return _plain
    if is_text(kind) or is_text(wanted):
        return from_text if is_text(kind) else _text
    if is_time(wanted) or t.is_duration(wanted):
        return _time
    if t.is_boolean(wanted) or t.is_boolean(kind):
        return _boolean if t.is_boolean(wanted) else _of_boolean
    return _NUMBERS[_family(kind), _family(wanted)]


def _text(_failures: Failures, values: pa.Array, _kind: pa.DataType) -> pa.Array:
    return to_text(values)


def _plain(_failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values.cast(kind)


def _family(kind: pa.DataType) -> str:
    return "integer" if t.is_integer(kind) else "float" if t.is_floating(kind) else "decimal"


def _fail(failures: Failures, values: pa.Array, bad: Any, kind: pa.DataType) -> Any:
    """Put down the rows of values that are none of a type, and return which they are."""
    mask = as_mask(bad)
    if mask.any():
        failures.add(mask, lambda: _no(values, kind))
    return mask


def _boolean(_failures: Failures, values: pa.Array, _kind: pa.DataType) -> pa.Array:
    zero = Decimal(0) if t.is_decimal(values.type) else 0
    return pc.not_equal(values, pa.scalar(zero, values.type))


def _of_boolean(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    whole = values.cast(pa.int8())
    return _to_decimal(failures, whole, kind) if t.is_decimal(kind) else whole.cast(kind)


def _integers(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return blank(values, _fail(failures, values, outside(as_wide(values, 0), kind), kind)).cast(kind)


def _decimal_to_integer(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    whole = pc.round(as_wide(values, 0), ndigits=0, round_mode="half_towards_infinity")
    return blank(whole, _fail(failures, values, outside(whole, kind), kind)).cast(pa.decimal128(38, 0)).cast(kind)


def _float_to_integer(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    whole = pc.round(values.cast(pa.float64()), ndigits=0, round_mode="half_to_even")
    low, high = integer_range(kind)
    inside = pc.and_(pc.greater_equal(whole, float(low)), pc.less(whole, float(high + 1)))
    return blank(whole, _fail(failures, values, pc.invert(inside), kind)).cast(kind)


def _to_float(_failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    return as_float(values, kind)


def _floats(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    found = as_float(values, kind)
    bad = pc.and_(pc.is_inf(found), pc.invert(pc.is_inf(values)))
    return blank(found, _fail(failures, values, bad, kind))


def _to_decimal(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(decimal_of(values.type)).cast(kind)
    except pa.ArrowInvalid:  # digits to round, or one that does not fit
        pass
    exact = as_wide(values, kind.scale if t.is_integer(values.type) or values.type.scale < kind.scale else 0)
    return fit(failures, exact, kind, lambda: _no(values, kind))


def _float_to_decimal(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """As DuckDB: the float times a power of ten, rounded half away from zero, as floats have it."""
    with np.errstate(all="ignore"):
        moved = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) * 10.0**kind.scale
        whole = np.copysign(np.floor(np.abs(moved) + 0.5), moved)
    bad = _fail(failures, values, ~(np.abs(whole) < 10.0**kind.precision) & as_mask(values.is_valid()), kind)
    exact = blank(pa.array(whole, mask=as_mask(values.is_null())), bad).cast(pa.decimal128(38, 0), safe=False)
    unit = pa.scalar(Decimal(1).scaleb(-kind.scale), pa.decimal256(37 if kind.scale < 38 else 38, kind.scale))
    return pc.multiply(exact.cast(pa.decimal256(38, 0)), unit).cast(kind)


def _no(values: pa.Array, kind: pa.DataType) -> pa.Array:
    text = values.cast(pa.int64()).cast(pa.string()) if t.is_duration(values.type) else to_text(values)
    return pc.binary_join_element_wise(text, f"is no {type_text(kind)}", " ")


def _time(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates and timestamps: a date begins at midnight; a finer unit is rounded to the nearest coarser one, half up."""
    if t.is_date(kind):
        return pc.floor_temporal(values.cast(pa.timestamp(values.type.unit)), unit="day").cast(kind)
    whole = values.cast(pa.int32()).cast(pa.int64()) if t.is_date(values.type) else values.cast(pa.int64())
    size, wanted = (_UNITS["day" if t.is_date(each) else each.unit] for each in (values.type, kind))
    if size < wanted:
        return _coarser(whole, wanted // size).cast(kind)
    most = (2**63 - 1) // (size // wanted)
    bad = _fail(failures, values, pc.or_(pc.greater(whole, most), pc.less(whole, -most)), kind)
    return pc.multiply(blank(whole, bad) if bad.any() else whole, size // wanted).cast(kind)


def _coarser(whole: pa.Array, step: int) -> pa.Array:
    """Whole numbers in units ``step`` times as large, rounded half up."""
    down = floor_divide(whole, step)
    is_upper = pc.greater_equal(pc.subtract(whole, pc.multiply(down, step)), (step + 1) // 2)
    return pc.add(down, is_upper.cast(pa.int64()))


def floor_divide(values: pa.Array, step: int) -> pa.Array:
    """Return whole numbers divided by one above 0, rounded down."""
    quotient = pc.divide(values, step)
    return pc.subtract(quotient, pc.less(pc.subtract(values, pc.multiply(quotient, step)), 0).cast(pa.int64()))


_UNITS: Final = {"day": 86400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in nanoseconds
_NUMBERS: Final = {
    ("integer", "integer"): _integers, ("decimal", "integer"): _decimal_to_integer,
    ("float", "integer"): _float_to_integer, ("integer", "float"): _to_float, ("decimal", "float"): _to_float,
    ("float", "float"): _floats, ("integer", "decimal"): _to_decimal, ("decimal", "decimal"): _to_decimal,
    ("float", "decimal"): _float_to_decimal,
}  # fmt: skip
