"""Columns as JSON, a whole column at a time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from writers.schema import is_list
from writers.text import check_years, content, hexadecimal, in_utc, is_binary


def json_text(array: pa.Array, name: str) -> pa.StringArray:
    """Return each value as JSON; nulls stay null. ``name`` is the column's, for messages.

    Raises `DataError` for a date or timestamp outside the years 1 to 9999, `pyarrow.ArrowNotImplementedError` for a
    type without a form in JSON.
    """
    kind = array.type
    if is_list(kind):
        return _list(array, name)
    if pa.types.is_struct(kind):
        return _struct(array, name)
    if pa.types.is_floating(kind):
        return _float(array)
    literals = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, pa.types.is_duration)
    if any(is_kind(kind) for is_kind in literals):
        return array.cast(pa.string())
    return pc.binary_join_element_wise('"', _string(array, name), '"', "")


def _string(array: pa.Array, name: str) -> pa.StringArray:
    """Return what goes between the quotes of a JSON string."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _escaped(array.cast(pa.string()))
    if is_binary(kind):
        return hexadecimal(array)
    check_years(array, name)
    text = in_utc(array).cast(pa.string())
    if pa.types.is_timestamp(kind):  # ISO 8601 has a T where Arrow has a space
        return pc.binary_replace_slice(text.cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    return text


def _float(array: pa.Array) -> pa.StringArray:
    """Shortest text that reads back as the same bits, with a point or exponent so that it reads back as a float."""
    if array.type == pa.float16():  # few functions know it
        array = array.cast(pa.float32())
    text = pc.if_else(pc.is_finite(array), array.cast(pa.string()), None)
    if not pc.any(pc.equal(array, pc.floor(array))).as_py():
        return text
    whole = pc.match_substring_regex(text, "^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)


def _escaped(array: pa.StringArray) -> pa.StringArray:
    """Escape what JSON does not take as it is; most columns hold nothing of the kind and come back unchanged."""
    data = content(array)
    special = data[(data < 0x20) | (data == ord('"')) | (data == ord("\\"))]
    # The backslash first: the other escapes bring new ones.
    for code in sorted(np.unique(special).tolist(), key=lambda code: code != ord("\\")):
        array = pc.replace_substring(array, chr(code), json.dumps(chr(code))[1:-1])
    return array


def _list(array: pa.Array, name: str) -> pa.StringArray:
    lists = array.cast(pa.list_(array.type.value_type))
    items = pc.fill_null(json_text(lists.flatten(), name), "null")
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
    return pc.if_else(array.is_valid(), pc.binary_join_element_wise("[", joined, "]", ""), None)


def _struct(array: pa.StructArray, name: str) -> pa.StringArray:
    return pc.if_else(array.is_valid(), objects(array.type.names, array.flatten(), name), None)


def objects(keys: list[str], columns: list[pa.Array], name: str | None = None) -> pa.StringArray:
    """Return one JSON object a row: ``keys`` with the values of ``columns``, of which there is at least one.

    ``name``: the column of all these for messages; None where each key is a column itself.
    """
    pieces: list[Any] = []
    for at, (key, column) in enumerate(zip(keys, columns, strict=True)):
        pieces += [f"{',' if at else '{'}{json.dumps(key, ensure_ascii=False)}:", json_text(column, name or key)]
    return pc.binary_join_element_wise(*pieces, "}", "", null_handling="replace", null_replacement="null")
