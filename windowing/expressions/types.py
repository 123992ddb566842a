"""The types of expressions: their names, and the type in which two values meet, as DuckDB has them."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.types as t

TEXT: Final = pa.string()
BOOL: Final = pa.bool_()
DOUBLE: Final = pa.float64()
INTERVAL: Final = pa.duration("us")
HUGE: Final = pa.decimal128(38, 0)
"""What integers over 64 bits are: DuckDB's HUGEINT has no type in Arrow."""

_INTEGERS: Final = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
_NAMES: Final = {
    "tinyint": pa.int8(), "int1": pa.int8(), "smallint": pa.int16(), "int2": pa.int16(), "short": pa.int16(),
    "integer": pa.int32(), "int": pa.int32(), "int4": pa.int32(), "signed": pa.int32(),
    "bigint": pa.int64(), "int8": pa.int64(), "long": pa.int64(),
    "utinyint": pa.uint8(), "usmallint": pa.uint16(), "uinteger": pa.uint32(), "ubigint": pa.uint64(),
    "real": pa.float32(), "float": pa.float32(), "float4": pa.float32(), "double": DOUBLE, "float8": DOUBLE,
    "double precision": DOUBLE, "decimal": pa.decimal128(18, 3), "numeric": pa.decimal128(18, 3),
    "boolean": BOOL, "bool": BOOL, "varchar": TEXT, "text": TEXT, "string": TEXT, "char": TEXT, "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "datetime": pa.timestamp("us"), "timestamp_s": pa.timestamp("s"),
    "timestamp_ms": pa.timestamp("ms"), "timestamp_us": pa.timestamp("us"), "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", "UTC"), "timestamp with time zone": pa.timestamp("us", "UTC"),
}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_SHOWN: Final = {
    pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT", pa.float32(): "FLOAT", DOUBLE: "DOUBLE",
    BOOL: "BOOLEAN", TEXT: "VARCHAR", pa.date32(): "DATE", pa.null(): "NULL",
}  # fmt: skip

TYPE_NAMES: Final = (*_NAMES, "decimal(p, s)")
"""The names that CAST takes."""


def type_named(name: str) -> pa.DataType | None:
    """Return the type of a name in lower case, such as ``decimal(10, 2)``; None where there is none."""
    found = _DECIMAL.fullmatch(name)
    if found is None:
        return _NAMES.get(name)
    precision, scale = int(found[1]), int(found[2] or 0)
    return pa.decimal128(precision, scale) if 1 <= precision <= 38 and scale <= precision else None


def type_text(kind: pa.DataType) -> str:
    """Return the name of a type for messages, in the words of SQL."""
    if kind in _SHOWN:
        return _SHOWN[kind]
    if t.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if t.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return f"{type_text(kind.value_type)}[]"
    return "INTERVAL" if is_interval(kind) else "STRUCT" if t.is_struct(kind) else str(kind).upper()


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that values of a column's type have in a program: texts, however stored, are of one type."""
    if t.is_dictionary(kind):
        return plain_type(kind.value_type)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return TEXT
    if t.is_float16(kind):
        return pa.float32()
    if t.is_date64(kind):
        return pa.date32()
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers. Decimals of more than 38 digits are none."""
    return t.is_integer(kind) or t.is_floating(kind) or t.is_decimal128(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return t.is_string(kind)


def is_time(kind: pa.DataType) -> bool:
    """Whether values of a type are dates or timestamps."""
    return t.is_timestamp(kind) or t.is_date(kind)


def is_interval(kind: pa.DataType) -> bool:
    """Whether values of a type are spans of time."""
    return t.is_duration(kind) or kind == pa.month_day_nano_interval()


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds all values of an integer or a decimal type."""
    if t.is_decimal(kind):
        return kind
    digits = 20 if kind == pa.uint64() else _DIGITS[kind.bit_width]
    return pa.decimal128(digits, 0)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared or are branches of one CASE; None where there is none.

    A text meets another type in that type; a boolean meets a number in the number's type.
    """
    if left == right or t.is_null(left) or t.is_null(right):
        return right if t.is_null(left) else left
    for one, other in ((left, right), (right, left)):
        if is_text(one) and not t.is_nested(other):
            return other
        if t.is_boolean(one) and is_number(other):
            return other
    if is_number(left) and is_number(right):
        return common_number(left, right)
    if is_time(left) and is_time(right):
        zones = [kind.tz for kind in (left, right) if t.is_timestamp(kind) and kind.tz is not None]
        stamps = [kind.unit for kind in (left, right) if t.is_timestamp(kind)]
        order = ["s", "ms", "us", "ns"]
        unit = max(stamps, key=order.index)
        return pa.timestamp("us" if len(stamps) == 1 and unit != "ns" else unit, zones[0] if zones else None)
    return pa.duration(unit_of(left, right)) if t.is_duration(left) and t.is_duration(right) else None


def common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of numbers that holds the values of two types, as far as one does."""
    for one, other in ((left, right), (right, left)):
        if t.is_float64(one):
            return DOUBLE
        if t.is_float32(one):
            return DOUBLE if t.is_float64(other) else pa.float32()
    if t.is_integer(left) and t.is_integer(right):
        signed = t.is_signed_integer(left)
        if signed == t.is_signed_integer(right):
            return left if left.bit_width >= right.bit_width else right
        plain, other = (left, right) if signed else (right, left)
        wanted = max(plain.bit_width, other.bit_width * 2)
        return HUGE if wanted > 64 else next(kind for kind in _INTEGERS if kind.bit_width == wanted)
    one, other = decimal_of(left), decimal_of(right)
    scale = max(one.scale, other.scale)
    return pa.decimal128(min(38, max(one.precision - one.scale, other.precision - other.scale) + scale), scale)


def unit_of(*kinds: pa.DataType) -> str:
    """Return the unit of time in which these dates, timestamps and spans meet: microseconds, or nanoseconds."""
    return "ns" if any(getattr(kind, "unit", "us") == "ns" for kind in kinds) else "us"


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the largest value of an integer type."""
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if t.is_signed_integer(kind) else (0, 2**bits - 1)
