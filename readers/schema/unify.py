"""Unify the schemas of many files: the union of their columns, each with the widest type that occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.expressions.printing import name_text

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # bits of a signed integer: its most decimal digits
_MAX_128 = 38
_MAX_256 = 76


def unify(schemas: Sequence[tuple[str, pa.Schema]], given: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the union of the columns of all schemas, in order of first appearance.

    ``schemas``: pairs of a file's path and its schema. ``given``: types by column, which replace those of the files.
    Raises `InputError` naming two files whose types of a column have no common wider type.
    """
    types: dict[str, tuple[pa.DataType, str]] = {}
    seen: set[int] = set()
    for file, schema in schemas:
        if id(schema) in seen:  # files with equal columns share one schema object, so thousands cost one look each
            continue
        seen.add(id(schema))
        for column in schema:
            types[column.name] = _join_types(column, file, types.get(column.name), given.get(column.name))
    return pa.schema([(name, kind) for name, (kind, _) in types.items()])


def _join_types(
    column: pa.Field, file: str, known: tuple[pa.DataType, str] | None, given: pa.DataType | None
) -> tuple[pa.DataType, str]:
    if given is not None:
        return given, file
    if known is None:
        return column.type, file
    wide = common_type(known[0], column.type)
    if wide is None:
        do = f"give it one type with --schema '{column.name}:TYPE', or cast it in one of them"
        if pa.types.is_timestamp(known[0]) and pa.types.is_timestamp(column.type):  # any type would reject one of them
            name = "at" if column.name != "at" else "at_utc"
            let = f'--let "{name}=CAST({name_text(column.name)} AS TIMESTAMPTZ)"'
            do = f"read it with --schema '{column.name}:string' and {let}, by which times without a zone are UTC"
        raise InputError(f"column {column.name!r} is {known[0]} in {known[1]} and {column.type} in {file}", do)
    return wide, (known[1] if wide == known[0] else file)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the narrowest type that holds the values of both types, or None. Integers with floats are float64."""
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    for rule in (_numbers, _times, _nested):
        wide = rule(a, b)
        if wide is not None:
            return wide
    return None


def _numbers(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return _integers(a, b)
    if _is_number(a) and _is_number(b):
        both_floats = pa.types.is_floating(a) and pa.types.is_floating(b)
        return max((a, b), key=lambda t: t.bit_width) if both_floats else pa.float64()
    if _is_exact(a) and _is_exact(b):
        return _decimals(_as_decimal(a), _as_decimal(b))
    return None


def _integers(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(a) == pa.types.is_signed_integer(b):
        return max((a, b), key=lambda t: t.bit_width)
    unsigned, signed = (a, b) if pa.types.is_unsigned_integer(a) else (b, a)
    bits = max(signed.bit_width, 2 * unsigned.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _as_decimal(kind: pa.DataType) -> tuple[int, int]:
    """Return the numbers of decimal digits (before the point, after it)."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[kind.bit_width] + int(kind == pa.uint64()), 0


def _decimals(a: tuple[int, int], b: tuple[int, int]) -> pa.DataType | None:
    before, after = max(a[0], b[0]), max(a[1], b[1])
    if before + after > _MAX_256:
        return None
    make = pa.decimal128 if before + after <= _MAX_128 else pa.decimal256
    return make(before + after, after)


def _times(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return pa.timestamp(_finest(a, b), a.tz) if a.tz == b.tz else None
    if pa.types.is_duration(a) and pa.types.is_duration(b):
        return pa.duration(_finest(a, b))
    if {a.id, b.id} == {pa.date32().id, pa.timestamp("us").id}:  # a date counts as its midnight
        stamp = b if pa.types.is_date(a) else a
        return stamp if stamp.tz is None else None
    return None


def _finest(a: pa.DataType, b: pa.DataType) -> str:
    return str(max(a.unit, b.unit, key=_UNITS.index))


def _nested(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_list(a) and pa.types.is_list(b):
        item = common_type(a.value_type, b.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        fields = {f.name: f.type for f in a}
        for f in b:
            fields[f.name] = common_type(fields.get(f.name, pa.null()), f.type)
        return None if None in fields.values() else pa.struct(list(fields.items()))
    return None
