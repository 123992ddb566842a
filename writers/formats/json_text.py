"""Turn Arrow columns into JSON text, a whole column at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.support.surrogates import readable
from .text import check_years, content, far_ticks, hexadecimal, in_utc, is_binary
from .types import is_list


def json_text(array: pa.Array, name: str, exact: bool = False) -> pa.StringArray:
    """Return each value as JSON text; nulls stay null.

    ``name``: the name of the column, for messages. ``exact``: whether to refuse and lose no value that a file can hold.
    Floats that JSON lacks are then the texts ``NaN``, ``Infinity`` and ``-Infinity``, times outside the years 1 to 9999
    are counts such as ``-9 us since 1970-01-01``, maps are lists of objects with ``key`` and ``value``, and `readable`
    escapes texts that are not UTF-8.
    Without ``exact``, raises `DataError` for a time outside the years -32767 to 32767, and
    `pyarrow.ArrowNotImplementedError` for a type that has no form in JSON.
    """
    if exact:
        array = _simplify(array)
    kind = array.type
    if is_list(kind):
        return _list(array, name, exact)
    if pa.types.is_struct(kind):
        return _struct(array, name, exact)
    if pa.types.is_floating(kind):
        return _float(array, exact)
    literals = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, pa.types.is_duration)
    if any(is_kind(kind) for is_kind in literals):
        return array.cast(pa.string())
    return pc.binary_join_element_wise('"', _string(array, name, exact), '"', "")


def _simplify(array: pa.Array) -> pa.Array:
    """Return an array with extension types as their storage types, and maps as lists of entries."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_map(array.type):
        entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        return array.cast(pa.list_(entry))
    return array


def _string(array: pa.Array, name: str, exact: bool) -> pa.StringArray:
    """Return the text between the quotes of a JSON string."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = array.cast(pa.string())
        return _escaped(_in_utf8(text) if exact else text)
    if is_binary(kind):
        return hexadecimal(array)
    far = far_ticks(array) if exact else None
    if far is not None:
        near = _string(pc.if_else(far.is_null(), array, pa.scalar(None, kind)), name, exact)
        counts = pc.binary_join_element_wise(far.cast(pa.string()), f"{_unit(kind)} since 1970-01-01", " ")
        return pc.coalesce(near, counts)
    if not exact:
        check_years(array, name)
    text = in_utc(array).cast(pa.string())
    if pa.types.is_timestamp(kind):  # ISO 8601 has a T where Arrow has a space
        if far_ticks(array) is not None:  # years may have more than four digits
            return pc.replace_substring(text, " ", "T")
        return pc.binary_replace_slice(text.cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    return text


def _unit(kind: pa.DataType) -> str:
    return kind.unit if pa.types.is_timestamp(kind) else "days" if kind == pa.date32() else "ms"


def _in_utf8(array: pa.StringArray) -> pa.StringArray:
    """Return texts with bytes that are not UTF-8 escaped; Arrow does not check texts by itself."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raw = array.cast(pa.binary()).to_pylist()  # value by value, only in a column with bad bytes
        return pa.array([None if value is None else readable(value) for value in raw], pa.string())
    return array


def _float(array: pa.Array, exact: bool) -> pa.StringArray:
    """Return the shortest texts that read back as the same bits, with a point or exponent, so that they are floats."""
    if array.type == pa.float16():  # few functions of Arrow support it
        array = array.cast(pa.float32())
    odd: Any = None
    if exact:
        infinite = pc.if_else(pc.greater(array, 0.0), '"Infinity"', '"-Infinity"')
        odd = pc.if_else(pc.is_nan(array), '"NaN"', infinite)
    text = pc.if_else(pc.is_finite(array), array.cast(pa.string()), odd)
    if not pc.any(pc.equal(array, pc.floor(array))).as_py():
        return text
    whole = pc.match_substring_regex(text, "^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)


def _escaped(array: pa.StringArray) -> pa.StringArray:
    """Escape the characters that a JSON string must not contain; most columns have none and return unchanged."""
    data = content(array)
    special = data[(data < 0x20) | (data == ord('"')) | (data == ord("\\"))]
    # The backslash first: the other escapes add backslashes.
    for code in sorted(np.unique(special).tolist(), key=lambda code: code != ord("\\")):
        array = pc.replace_substring(array, chr(code), json.dumps(chr(code))[1:-1])
    return array


def _list(array: pa.Array, name: str, exact: bool) -> pa.StringArray:
    lists = array.cast(pa.list_(array.type.value_type))
    items = pc.fill_null(json_text(lists.flatten(), name, exact), "null")
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
    return pc.if_else(array.is_valid(), pc.binary_join_element_wise("[", joined, "]", ""), None)


def _struct(array: pa.StructArray, name: str, exact: bool) -> pa.StringArray:
    if not array.type.num_fields:
        return pc.if_else(array.is_valid(), "{}", pa.scalar(None, pa.string()))
    text = objects(array.type.names, array.flatten(), name, exact)
    return pc.if_else(array.is_valid(), text, None) if array.null_count else text


def objects(keys: list[str], columns: list[pa.Array], name: str | None = None, exact: bool = False) -> pa.StringArray:
    """Return one JSON object for each row: ``keys`` with the values of ``columns``, at least one.

    ``name``: the column that holds all keys, for messages; None where each key is a column itself. ``exact``: see
    `json_text`.
    """
    fragments: list[Any] = []
    for at, (key, column) in enumerate(zip(keys, columns, strict=True)):
        fragments += [
            f"{',' if at else '{'}{json.dumps(key, ensure_ascii=False)}:",
            json_text(column, name or key, exact),
        ]
    return pc.binary_join_element_wise(*fragments, "}", "", null_handling="replace", null_replacement="null")


def write_lines(
    keys: list[str], batches: Iterable[pa.RecordBatch], file: IO[bytes] | pa.NativeFile, exact: bool = False
) -> None:
    """Write a JSON object on a line for each row: ``keys`` with the values of columns; ``exact``: see `json_text`."""
    for batch in batches:
        lines = pc.binary_join_element_wise(objects(keys, batch.columns, exact=exact), "\n", "")
        file.write(content(lines).data)
