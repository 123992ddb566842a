"""From texts to other types and back, over whole columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..steps import Failures, as_mask, blank
from ..types import BOOL, DOUBLE, TEXT, type_text
from .arithmetic import fit, integer_range, outside

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
        return _boolean(failures, values)
    if t.is_decimal(kind):
        return _decimal(failures, values, kind)
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return _apart(failures, values, kind)


def _apart(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts of which some are no value of a type as Arrow reads it: these alone are taken apart."""
    read = _integer if t.is_integer(kind) else _float if t.is_floating(kind) else _time
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
    """A regular expression of texts that Arrow reads, and that nearly always have a place in the type."""
    if t.is_integer(kind):
        digits = len(str(integer_range(kind)[1])) - 1
        return rf"^{'-?' if t.is_signed_integer(kind) else ''}[0-9]{{1,{digits}}}$"
    if t.is_floating(kind):
        return r"^-?[0-9]+(?:\.[0-9]+)?$"
    return r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + ("$" if t.is_date(kind) else "[ T][0-9]{2}:[0-9]{2}:[0-9]{2}$")


def to_text(values: pa.Array) -> pa.Array:
    """Return values as texts, as DuckDB writes them: string (n,)."""
    if t.is_floating(values.type):
        return _float_text(values)
    if t.is_timestamp(values.type):
        return _time_text(values)
    return values.cast(TEXT)


def fail_texts(failures: Failures, values: pa.Array, bad: Any, kind: pa.DataType) -> Any:
    """Put down the texts that are none of a type, and return which they are: bool (n,)."""
    mask = as_mask(bad)
    if mask.any():
        failures.add(mask, lambda: pc.binary_join_element_wise("'", values, f"' is no {type_text(kind)}", ""))
    return mask


def _boolean(failures: Failures, values: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(values)
    found = pc.is_in(lower, value_set=_TRUE)
    bad = pc.and_(values.is_valid(), pc.invert(pc.or_(found, pc.is_in(lower, value_set=_FALSE))))
    return blank(pc.if_else(values.is_valid(), found, pa.scalar(None, BOOL)), fail_texts(failures, values, bad, BOOL))


def _number_parts(failures: Failures, values: pa.Array, kind: pa.DataType) -> dict[str, pa.Array]:
    """The parts of the texts of numbers: sign, whole, part and power. Other texts fail."""
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    is_number = pc.match_substring_regex(trimmed, _IS_NUMBER)
    bad = fail_texts(failures, values, pc.invert(is_number), kind)
    parts = pc.extract_regex(blank(trimmed, bad), _NUMBER)
    return {name: pc.struct_field(parts, name) for name in ("sign", "whole", "part", "power")}


def _exact(failures: Failures, values: pa.Array, kind: pa.DataType, scale: int) -> pa.Array:
    """The texts of numbers as wide decimals, cut to one digit more than ``scale``; 39 and more whole digits fail."""
    parts = _number_parts(failures, values, kind)
    whole, power = pc.ascii_ltrim(parts["whole"], characters="0"), parts["power"]
    long = fail_texts(failures, values, pc.greater(pc.binary_length(whole), 38), kind)
    digits = pc.utf8_slice_codeunits(parts["part"], 0, scale + 1)
    text = pc.binary_join_element_wise(parts["sign"], "0", whole, ".", digits, "0", "")
    exact = blank(text, long).cast(pa.decimal256(76, scale + 2))
    has_power = as_mask(pc.greater(pc.binary_length(power), 0))
    return _with_power(failures, values, exact, has_power, kind) if has_power.any() else exact


def _with_power(failures: Failures, values: pa.Array, exact: pa.Array, rows: Any, kind: pa.DataType) -> pa.Array:
    """Texts such as 1e3 by way of floats."""
    floats = pc.if_else(pa.array(rows), pc.ascii_trim(values, characters=_BLANKS), pa.scalar(None, TEXT))
    numbers = _read_float(floats)
    bad = fail_texts(failures, values, pc.invert(pc.less(pc.abs(numbers), 1e38)), kind)
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
    bad = fail_texts(failures, values, outside(whole, kind), kind)
    return blank(whole, bad).cast(pa.decimal128(38, whole.type.scale), safe=False).cast(kind, safe=False)


def _decimal(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    exact = _exact(failures, values, kind, kind.scale)
    quoted = pc.binary_join_element_wise("'", values, f"' is no {type_text(kind)}", "")
    return fit(failures, exact, kind, lambda: quoted)


def _float(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    is_number = pc.match_substring_regex(trimmed, _IS_NUMBER)
    bad = fail_texts(failures, values, pc.invert(pc.or_(is_number, pc.match_substring_regex(trimmed, _WORDS))), kind)
    return _read_float(blank(trimmed, bad)).cast(kind, safe=False)


def _read_float(texts: pa.Array) -> pa.Array:
    return pc.ascii_ltrim(texts, characters="+").cast(DOUBLE)


def _time(failures: Failures, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts such as 2026-1-5 and 2026-01-05 10:00:00.5+02:00. Without a type for it the zone is left out."""
    trimmed = pc.ascii_trim(values, characters=_BLANKS)
    bad = fail_texts(failures, values, pc.invert(pc.match_substring_regex(trimmed, _TIME)), kind)
    parts = pc.extract_regex(blank(trimmed, bad), _TIME)
    numbers = {
        name: whole_numbers(pc.struct_field(parts, name))
        for name in ("year", "month", "day", "hour", "minute", "second")
    }
    days, is_day = days_of(numbers)
    clock = pc.and_(
        pc.less(numbers["hour"], 24), pc.and_(pc.less(numbers["minute"], 60), pc.less(numbers["second"], 60))
    )
    bad = fail_texts(failures, values, pc.invert(pc.and_(is_day, clock)), kind)
    if t.is_date(kind):
        return blank(days, bad).cast(pa.int32()).cast(kind)
    seconds = pc.add(pc.multiply(numbers["hour"], 3600), pc.add(pc.multiply(numbers["minute"], 60), numbers["second"]))
    seconds = pc.subtract(
        pc.add(pc.multiply(days, 86400), seconds), zone_seconds(pc.struct_field(parts, "zone")) if kind.tz else 0
    )
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


def days_of(numbers: dict[str, pa.Array]) -> tuple[pa.Array, pa.Array]:
    """Return the days since 1970 of years, months and days, and whether each is a day of the calendar.

    A ``day_of_year`` counts instead of month and day.
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
    return pa.array(days, mask=absent), pa.array(is_day, mask=absent)


def _float_text(values: pa.Array) -> pa.Array:
    """The shortest texts that read back: a whole number has ``.0``; from 1e16 on and below 1e-4 with an exponent."""
    text = pc.replace_substring_regex(values.cast(TEXT), r"^(-?[0-9]+)$", r"\1.0")
    size = pc.abs(values)
    odd = pc.and_(
        pc.is_finite(values), pc.or_(pc.greater_equal(size, 1e9), pc.and_(pc.less(size, 1e-3), pc.not_equal(size, 0)))
    )
    rows = as_mask(odd)
    if not rows.any():
        return text
    written = values.filter(pa.array(rows)).to_numpy(zero_copy_only=False).astype(str)  # as Python writes them
    return pc.replace_with_mask(text, pa.array(rows), pa.array(written, TEXT))


def _time_text(values: pa.Array) -> pa.Array:
    text = values.cast(pa.timestamp(values.type.unit)).cast(TEXT)
    text = pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1")
    text = pc.replace_substring_regex(text, r"\.$", "")
    return pc.binary_join_element_wise(text, "+00", "") if values.type.tz else text
