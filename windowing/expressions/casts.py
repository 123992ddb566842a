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

from ..support.column_types import PER_SECOND
from .arithmetic import as_float, as_wide, fit, outside
from .steps import Failures, as_mask, blank
from .types import BOOL, DOUBLE, TEXT, decimal_of, integer_range, is_number, is_text, is_time, type_text

# From texts to other types and back, over whole columns.


_TRUE: Final = pa.array(["true", "t", "yes", "y", "1"])
_FALSE: Final = pa.array(["false", "f", "no", "n", "0"])
_BLANKS: Final = " \t\n\v\f\r"
_NUMBER: Final = r"^(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?:[eE](?P<power>[+-]?[0-9]{1,4}))?$"
_IS_NUMBER: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?$"  # _NUMBER, with a digit somewhere
_WORDS: Final = r"^[+-]?(?i:inf|infinity|nan)$"
_TIME: Final = (
    r"^(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})"
    r"(?:[ T](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<part>[0-9]{1,9}))?)?"
    r"\s*(?P<zone>Z|z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)


def from_text(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as values of a type. A text that is none fails."""
    if t.is_boolean(kind):
        return _boolean_of_text(failures, values)
    if t.is_decimal(kind):
        exact = _exact(failures, values, kind, kind.scale)
        return fit(failures, exact, kind, lambda: _no(values, kind))
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        # Texts of which some are no value of a type as Arrow reads it: these alone are taken apart.
        read = _integer if t.is_integer(kind) else _float if t.is_floating(kind) else _time_of_text
        plain = as_mask(pc.match_substring_regex(values, _plain_text(kind)))
        odd = ~plain & as_mask(values.is_valid())
        try:
            found = blank(values, ~plain).cast(kind)
        except pa.ArrowInvalid:
            return read(failures, values, kind)
        rows = np.flatnonzero(odd)
        part = Failures(len(rows))
        read_ones = read(part, values.take(pa.array(rows)), kind)
        failures.add_rows(part, rows)
        return pc.replace_with_mask(found, pa.array(odd), read_ones)


def _plain_text(kind: pa.DataType) -> str:
    if t.is_integer(kind):
        digits = len(str(integer_range(kind)[1])) - 1
        return rf"^{'-?' if t.is_signed_integer(kind) else ''}[0-9]{{1,{digits}}}$"
    if t.is_floating(kind):
        return r"^-?[0-9]+(?:\.[0-9]+)?$"
    return r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + ("$" if t.is_date(kind) else "[ T][0-9]{2}:[0-9]{2}:[0-9]{2}$")


def to_text(values: pa.Array) -> pa.Array:
    """Return values as texts, as DuckDB writes them: string (n,)."""
    if t.is_floating(values.type):
        # The shortest texts that read back: a whole number has ``.0``; from 1e16 on and below 1e-4 with an exponent.
        text = pc.replace_substring_regex(values.cast(TEXT), r"^(-?[0-9]+)$", r"\1.0")
        size = pc.abs(values)
        odd = pc.and_(
            pc.is_finite(values),
            pc.or_(pc.greater_equal(size, 1e9), pc.and_(pc.less(size, 1e-3), pc.not_equal(size, 0))),
        )
        rows = as_mask(odd)
        if not rows.any():
            return text
        written = values.filter(pa.array(rows)).to_numpy(zero_copy_only=False).astype(str)  # as Python writes them
        return pc.replace_with_mask(text, pa.array(rows), pa.array(written, TEXT))
    if t.is_timestamp(values.type):
        text = values.cast(pa.timestamp(values.type.unit)).cast(TEXT)
        text = pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1")
        text = pc.replace_substring_regex(text, r"\.$", "")
        return pc.binary_join_element_wise(text, "+00", "") if values.type.tz else text
    return values.cast(TEXT)


def _boolean_of_text(failures: Failures, values: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(values)
    found = pc.is_in(lower, value_set=_TRUE)
    bad = pc.and_(values.is_valid(), pc.invert(pc.or_(found, pc.is_in(lower, value_set=_FALSE))))
    return blank(pc.if_else(values.is_valid(), found, pa.scalar(None, BOOL)), _fail(failures, values, bad, BOOL))


def _exact(failures: Failures, values: pa.Array, kind: pa.DataType, scale: int) -> pa.Array:
    """The texts of numbers as wide decimals, cut to one digit more than ``scale``; 39 and more whole digits fail."""
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    bad = _fail(failures, values, pc.invert(pc.match_substring_regex(trimmed, _IS_NUMBER)), kind)
    found = pc.extract_regex(blank(trimmed, bad), _NUMBER)
    sign, whole, part, power = (pc.struct_field(found, name) for name in ("sign", "whole", "part", "power"))
    whole = pc.ascii_ltrim(whole, characters="0")
    long = _fail(failures, values, pc.greater(pc.binary_length(whole), 38), kind)
    digits = pc.utf8_slice_codeunits(part, 0, scale + 1)
    text = pc.binary_join_element_wise(sign, "0", whole, ".", digits, "0", "")
    exact = blank(text, long).cast(pa.decimal256(76, scale + 2))
    has_power = as_mask(pc.greater(pc.binary_length(power), 0))
    return _with_power(failures, values, exact, has_power, kind) if has_power.any() else exact


def _with_power(failures: Failures, values: pa.Array, exact: pa.Array, rows: Any, kind: pa.DataType) -> pa.Array:
    floats = pc.if_else(pa.array(rows), pc.ascii_trim(values, characters=_BLANKS), pa.scalar(None, TEXT))
    numbers = _read_float(floats)
    bad = _fail(failures, values, pc.invert(pc.less(pc.abs(numbers), 1e38)), kind)
    scale = exact.type.scale
    with np.errstate(all="ignore"):
        moved = blank(numbers, bad).fill_null(0).to_numpy(zero_copy_only=False)
    whole = np.floor(np.abs(moved))
    units = (
        pa.array(np.copysign(whole, moved))
        .cast(pa.decimal128(38, 0), safe=False)
        .cast(pa.decimal256(76, scale), safe=False)
    )
    rest = pa.array(np.copysign(np.abs(moved) - whole, moved)).cast(pa.decimal256(76, scale), safe=False)
    return pc.if_else(
        pa.array(rows & ~bad), pc.add(units.cast(pa.decimal256(75, scale)), rest.cast(pa.decimal256(75, scale))), exact
    )


def _integer(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    whole = pc.round(_exact(failures, values, kind, 0), ndigits=0, round_mode="half_towards_infinity")
    bad = _fail(failures, values, outside(whole, kind), kind)
    return blank(whole, bad).cast(pa.decimal128(38, whole.type.scale), safe=False).cast(kind, safe=False)


def _float(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    is_number = pc.match_substring_regex(trimmed, _IS_NUMBER)
    bad = _fail(failures, values, pc.invert(pc.or_(is_number, pc.match_substring_regex(trimmed, _WORDS))), kind)
    return _read_float(blank(trimmed, bad)).cast(kind, safe=False)


def _read_float(texts: pa.Array) -> pa.Array:
    return pc.ascii_ltrim(texts, characters="+").cast(DOUBLE)


def _time_of_text(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    bad = _fail(failures, values, pc.invert(pc.match_substring_regex(trimmed, _TIME)), kind)
    parts = pc.extract_regex(blank(trimmed, bad), _TIME)
    numbers = {
        name: whole_numbers(pc.struct_field(parts, name))
        for name in ("year", "month", "day", "hour", "minute", "second")
    }
    days, seconds, is_time_of_day = moment_of(numbers)
    bad = _fail(failures, values, pc.invert(is_time_of_day), kind)
    if t.is_date(kind):
        return blank(days, bad).cast(pa.int32()).cast(kind)
    seconds = pc.add(pc.multiply(days, 86400), seconds)
    if kind.tz:
        seconds = pc.subtract(seconds, zone_seconds(pc.struct_field(parts, "zone")))
    scale = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
    fraction = (
        whole_numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "part"), 9, "0"), 0, scale))
        if scale
        else 0
    )
    return blank(pc.add(pc.multiply(seconds, 10**scale), fraction), bad).cast(kind)


def whole_numbers(texts: pa.Array) -> pa.Array:
    """Return texts of digits as int64, an empty one as 0."""
    return pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64())


def zone_seconds(texts: pa.Array) -> pa.Array:
    """Return the seconds that ``+02``, ``+0230`` or ``+02:30`` is ahead of UTC."""
    digits = pc.utf8_rpad(pc.replace_substring_regex(texts, r"[^0-9]", ""), 4, "0")
    hours, minutes = (whole_numbers(pc.utf8_slice_codeunits(digits, at, at + 2)) for at in (0, 2))
    ahead = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    return pc.if_else(pc.starts_with(texts, "-"), pc.negate(ahead), ahead)


def moment_of(numbers: dict[str, pa.Array]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the days since 1970, the seconds of the day, and whether there are such a day and such a time.

    ``numbers``: year, month, day, hour, minute and second; a ``day_of_year`` counts instead of month and day.
    """
    year, month, day = (numbers[name].fill_null(1).to_numpy(zero_copy_only=False) for name in ("year", "month", "day"))
    first = (np.clip(month, 1, 12) - 1 + (year - 1970) * 12).astype("datetime64[M]")
    length = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64)
    is_day = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    days = first.astype("datetime64[D]").astype(np.int64) + day - 1
    if "day_of_year" in numbers:
        of_year = numbers["day_of_year"].fill_null(1).to_numpy(zero_copy_only=False)
        start, end = (
            (year - 1970 + more).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) for more in (0, 1)
        )
        is_day, days = (of_year >= 1) & (of_year <= end - start), start + of_year - 1
    absent = as_mask(numbers["year"].is_null())
    hour, minute, second = (numbers[name] for name in ("hour", "minute", "second"))
    is_time_of_day = pc.and_(pc.less(hour, 24), pc.and_(pc.less(minute, 60), pc.less(second, 60)))
    seconds = pc.add(pc.multiply(hour, 3600), pc.add(pc.multiply(minute, 60), second))
    return pa.array(days, mask=absent), seconds, pc.and_(pa.array(is_day, mask=absent), is_time_of_day)


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
    if t.is_null(values.type) or values.type == kind:
        return values.cast(kind)
    if is_text(kind):
        return to_text(values)
    own = Failures(failures.n)
    found = _caster(values.type, kind)(own, values, kind)
    if own.mask is None:
        return found
    if not is_try:
        failures.add_all(own, np.ones(failures.n, bool))
    return blank(found, own.mask)


def _caster(kind: pa.DataType, wanted: pa.DataType) -> Callable[[Failures, pa.Array, pa.DataType], pa.Array]:
    if is_text(kind):
        return from_text
    if is_time(wanted) or t.is_duration(wanted):
        return _time
    if t.is_boolean(wanted) or t.is_boolean(kind):
        return _boolean if t.is_boolean(wanted) else _of_boolean
    return _NUMBERS[_family(kind), _family(wanted)]


def _family(kind: pa.DataType) -> str:
    return "integer" if t.is_integer(kind) else "float" if t.is_floating(kind) else "decimal"


def _fail(failures: Failures, values: pa.Array, bad: Any, kind: pa.DataType) -> Any:
    """Put down the rows whose values are none of a type, and return which they are: bool (n,)."""
    return failures.add(bad, lambda: _no(values, kind))


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
    if is_text(values.type):
        return pc.binary_join_element_wise("'", values, f"' is no {type_text(kind)}", "")
    text = values.cast(pa.int64()).cast(pa.string()) if t.is_duration(values.type) else to_text(values)
    return pc.binary_join_element_wise(text, f"is no {type_text(kind)}", " ")


def _time(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates and timestamps: a date begins at midnight; a finer unit is rounded to the nearest coarser one, half up."""
    if t.is_date(kind):
        return pc.floor_temporal(values.cast(pa.timestamp(values.type.unit)), unit="day").cast(kind)
    whole = values.cast(pa.int32()).cast(pa.int64()) if t.is_date(values.type) else values.cast(pa.int64())
    size, wanted = (_UNITS["day" if t.is_date(each) else each.unit] for each in (values.type, kind))
    if size < wanted:
        step = wanted // size
        down = floor_divide(whole, step)
        is_upper = pc.greater_equal(pc.subtract(whole, pc.multiply(down, step)), (step + 1) // 2)
        return pc.add(down, is_upper.cast(pa.int64())).cast(kind)
    most = (2**63 - 1) // (size // wanted)
    bad = _fail(failures, values, pc.or_(pc.greater(whole, most), pc.less(whole, -most)), kind)
    return pc.multiply(blank(whole, bad) if bad.any() else whole, size // wanted).cast(kind)


def floor_divide(values: pa.Array, step: int) -> pa.Array:
    """Return whole numbers divided by one above 0, rounded down."""
    quotient = pc.divide(values, step)
    return pc.subtract(quotient, pc.less(pc.subtract(values, pc.multiply(quotient, step)), 0).cast(pa.int64()))


_UNITS: Final = {"day": 86400 * 10**9} | {unit: 10**9 // ticks for unit, ticks in PER_SECOND.items()}  # in nanoseconds
_NUMBERS: Final = {
    ("integer", "integer"): _integers, ("decimal", "integer"): _decimal_to_integer,
    ("float", "integer"): _float_to_integer, ("integer", "float"): _to_float, ("decimal", "float"): _to_float,
    ("float", "float"): _floats, ("integer", "decimal"): _to_decimal, ("decimal", "decimal"): _to_decimal,
    ("float", "decimal"): _float_to_decimal,
}  # fmt: skip
