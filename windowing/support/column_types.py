"""Types of columns that come from several places: files of a run, nights before it, a state. One rule joins them.

A type travels as Arrow's, or as its text in manifests and in the records of states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many ticks of each unit of time a second has."""
UNITS = tuple(PER_SECOND)
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # bits of a signed integer: its most decimal digits
_MAX_128 = 38
_MAX_256 = 76
_PLAIN = (
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_date64, pa.date32()),
)
_WORDS = (
    (pa.types.is_floating, "float64"),
    (pa.types.is_boolean, "bool"),
    (pa.types.is_date, "date"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
)
_ALIASES = {"halffloat": "float16", "float": "float32", "double": "float64", "date32[day]": "date32"}


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the plain form of a type: no dictionaries, views or 64-bit offsets, also inside lists and structs."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, plain(f.type)) for f in kind])
    for matches, form in _PLAIN:
        if matches(kind):
            return form
    return kind


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the narrowest type that holds the values of both types, in their plain forms; None where there is none.

    A column without values has type null, and takes any type. Integers with floats are float64, and times have the
    finest of their units. Instants are the same in every zone: the zone of ``a``, which comes first, is kept.
    """
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
        if pa.types.is_signed_integer(a) == pa.types.is_signed_integer(b):
            return max((a, b), key=lambda t: t.bit_width)
        unsigned, signed = (a, b) if pa.types.is_unsigned_integer(a) else (b, a)
        bits = max(signed.bit_width, 2 * unsigned.bit_width)
        return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)
    if _is_number(a) and _is_number(b):
        both_floats = pa.types.is_floating(a) and pa.types.is_floating(b)
        return max((a, b), key=lambda t: t.bit_width) if both_floats else pa.float64()
    if _is_exact(a) and _is_exact(b):
        before, after = map(max, zip(_as_decimal(a), _as_decimal(b), strict=True))
        if before + after <= _MAX_256:
            make = pa.decimal128 if before + after <= _MAX_128 else pa.decimal256
            return make(before + after, after)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _as_decimal(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[kind.bit_width] + int(kind == pa.uint64()), 0


def _times(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return pa.timestamp(_finest(a, b), a.tz) if (a.tz is None) == (b.tz is None) else None
    if pa.types.is_duration(a) and pa.types.is_duration(b):
        return pa.duration(_finest(a, b))
    if pa.types.is_time(a) and pa.types.is_time(b):
        unit = _finest(a, b)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if {a.id, b.id} == {pa.date32().id, pa.timestamp("us").id}:  # a date counts as its midnight
        stamp = b if pa.types.is_date(a) else a
        return stamp if stamp.tz is None else None
    return None


def _finest(a: pa.DataType, b: pa.DataType) -> str:
    return str(max(a.unit, b.unit, key=UNITS.index))


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


def schema_entry(name: str, word: str) -> str:
    """Return the option that gives a column a type, by the word of that type."""
    return f"--schema '{schema_name(name)}:{word}'"


def schema_name(name: str) -> str:
    """Return a name as ``--schema`` reads it: in double quotes where it would be read as something else without."""
    if name and name == name.strip() and not re.search('[:,"]', name):
        return name
    return '"' + name.replace('"', '""') + '"'


def how_to_keep(name: str, kind: pa.DataType) -> str:
    """Return what to do so that a column keeps a type that it had in an earlier run."""
    types = pa.types
    word = next((word for matches, word in _WORDS if matches(kind)), None)
    if types.is_timestamp(kind):
        word = "timestamptz" if kind.tz is not None else "timestamp_ns" if kind.unit == "ns" else "timestamp"
    elif types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        word = f"decimal({kind.precision},{kind.scale})"
    elif types.is_integer(kind) and kind != pa.uint64():  # or one that holds all of its values
        word = "int32" if kind == pa.int32() else "int64"
    return f"write it as {kind}" if word is None else f"read it as it was, with {schema_entry(name, word)}"


def type_of_text(text: str) -> pa.DataType | None:
    """Return the plain form of the type whose ``str`` is ``text``; None where the text does not determine a type."""
    found = _parse(text)
    return None if found is None else plain(found)


def _parse(text: str) -> pa.DataType | None:
    text = re.sub(r"^dictionary<values=(.+), indices=\w+, ordered=\d>$", r"\1", text.removesuffix(" not null"))
    if match := re.fullmatch(r"(?:large_)?list<[^:]+: (.+)>", text):
        item = _parse(match[1])
        return None if item is None else pa.list_(item)
    if match := re.fullmatch(r"struct<(.*)>", text):
        fields = [part.partition(": ") for part in _split(match[1])]
        inner = [(name, _parse(kind)) for name, _, kind in fields]
        return None if any(kind is None for _, kind in inner) else pa.struct(inner)
    if match := re.fullmatch(r"decimal(\d+)\((\d+), (-?\d+)\)", text):
        make = pa.decimal256 if match[1] == "256" else pa.decimal128
        return make(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", text):
        return pa.timestamp(match[1], match[2])
    try:
        return pa.type_for_alias(_ALIASES.get(text, text))
    except ValueError:  # a map, fixed sizes: these are compared as texts
        return None


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for at, sign in enumerate(text):
        depth += (sign in "<[(") - (sign in ">])")
        if sign == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()
