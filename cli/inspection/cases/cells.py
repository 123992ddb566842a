"""One value that is expected and one that is found: whether they are the same, and both as texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import SpecError
from ....windowing.language.parser import parse_duration
from .case import Scalar, Value

_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_ZEROS = re.compile(r"(?:\.|(\.\d*[1-9]))0+(?=Z|[-+]|$)")
_SINGLE = 1e-6
"""How far two floats of 32 bits may be apart at least, as a share: they have 7 digits."""


def is_same(expected: Value, found: pa.Scalar, tolerance: float) -> bool:
    """Whether a value is what is expected, in the type of the value.

    ``tolerance``: how far a float may be away, as a share of what is expected.
    """
    if expected is None or not found.is_valid:
        return _is_null(expected) and (not found.is_valid or found.as_py() == "")
    if isinstance(expected, Scalar):
        return _is_same_scalar(expected, found, tolerance)
    return _is_same_nested(expected, found, tolerance)


def text_of_expected(value: Value) -> str:
    """Return an expected value as text."""
    if value is None:
        return "null"
    if isinstance(value, Scalar):
        return value.text if value.text else ("null" if value.kind == "csv" else "''")
    return json.dumps(_plain(value), ensure_ascii=False)


def text_of_found(value: pa.Scalar) -> str:
    """Return a value that was found as text, in a form in which it may be expected."""
    if not value.is_valid:
        return "null"
    kind = value.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return _time_text(value)
    if pa.types.is_duration(kind):
        return f"{_number(_seconds(value))}s"
    if _is_list(kind):
        return "[" + ", ".join(map(text_of_found, value.values)) + "]"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{field.name}: {text_of_found(value[field.name])}" for field in kind) + "}"
    return _plain_text(value.as_py())


def _plain_text(found: Any) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    return found.hex() if isinstance(found, bytes) else "''" if found == "" else str(found)


def _is_null(expected: Value) -> bool:
    return expected is None or (isinstance(expected, Scalar) and expected.text == "")


def _is_same_nested(expected: list[Any] | dict[str, Any], found: pa.Scalar, tolerance: float) -> bool:
    """Whether a list has the same values, or a struct has them in the fields that are expected."""
    if isinstance(expected, dict):
        names = {field.name for field in found.type} if pa.types.is_struct(found.type) else set()
        return expected.keys() <= names and all(
            is_same(each, found[name], tolerance) for name, each in expected.items()
        )
    values = found.values if _is_list(found.type) else None
    if values is None or len(values) != len(expected):
        return False
    return all(is_same(one, other, tolerance) for one, other in zip(expected, values, strict=True))


def _is_same_scalar(expected: Scalar, found: pa.Scalar, tolerance: float) -> bool:
    kind = found.type
    if _is_list(kind) or pa.types.is_struct(kind):  # a cell of CSV holds it as JSON
        value = _json_value(expected.text)
        return value is not None and is_same(value, found, tolerance)
    for fits, same in _SAME:
        if fits(kind):
            return same(expected.text, found, tolerance)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return bool(found.as_py() == expected.text)
    return text_of_found(found) == expected.text


def _same_time(text: str, found: pa.Scalar, _: float) -> bool:
    for read in (_in_type, _in_zone, _of_day):
        try:
            return bool(read(text, found.type).equals(found))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return False


def _in_type(text: str, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(text).cast(kind)


def _in_zone(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return a time that is written without a zone, in the zone of its column."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise pa.ArrowInvalid(text)
    return pc.assume_timezone(pa.scalar(text).cast(pa.timestamp(kind.unit)), kind.tz)


def _of_day(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return a time of day."""
    if not pa.types.is_time(kind):
        raise pa.ArrowInvalid(text)
    return pa.scalar(f"1970-01-01 {text}").cast(pa.timestamp(kind.unit)).cast(kind)


def _same_duration(text: str, found: pa.Scalar, _: float) -> bool:
    try:
        return parse_duration(text) == _seconds(found)
    except SpecError:
        return False


def _same_number(text: str, found: pa.Scalar, _: float) -> bool:
    try:
        return Decimal(text.replace("_", "")) == found.as_py()
    except InvalidOperation:
        return False


def _same_float(text: str, found: pa.Scalar, tolerance: float) -> bool:
    try:
        wanted, value = float(text.lower().replace(".nan", "nan").replace(".inf", "inf")), float(found.as_py())
    except ValueError:
        return False
    least = tolerance if pa.types.is_float64(found.type) else max(tolerance, _SINGLE)
    return math.isclose(wanted, value, rel_tol=least) or (math.isnan(wanted) and math.isnan(value))


def _same_flag(text: str, found: pa.Scalar, _: float) -> bool:
    return text.lower() in (_TRUE if found.as_py() else _FALSE)


_SAME: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.Scalar, float], bool]], ...] = (
    (pa.types.is_duration, _same_duration),
    (pa.types.is_temporal, _same_time),
    (pa.types.is_integer, _same_number),
    (pa.types.is_decimal, _same_number),
    (pa.types.is_floating, _same_float),
    (pa.types.is_boolean, _same_flag),
)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _seconds(found: pa.Scalar) -> Fraction:
    return Fraction(found.value) / {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[found.type.unit]


def _number(value: Fraction) -> str:
    return (
        str(value.numerator) if value.denominator == 1 else str(Decimal(value.numerator) / Decimal(value.denominator))
    )


def _time_text(value: pa.Scalar) -> str:
    """Return a time as the readers read it, without zeros at the end of its fraction."""
    return _ZEROS.sub(r"\1", str(value.cast(pa.string())))


def _json_value(text: str) -> Value:
    try:
        return _as_value(json.loads(text, parse_float=str, parse_int=str))
    except (ValueError, RecursionError):
        return None


def _as_value(found: Any) -> Value:
    if isinstance(found, list):
        return [_as_value(each) for each in found]
    if isinstance(found, dict):
        return {name: _as_value(each) for name, each in found.items()}
    return None if found is None else Scalar("csv", str(found).lower() if isinstance(found, bool) else str(found))


def _plain(value: Value) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return None if value is None else value.text
