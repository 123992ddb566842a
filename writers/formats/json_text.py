"""Columns as JSON, a whole column at a time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.support.surrogates import readable
from .text import check_years, content, far_ticks, hexadecimal, in_utc, is_binary
from .types import is_list


def json_text(array: pa.Array, name: str, exact: bool = False) -> pa.StringArray:
    """Return each value as JSON; nulls stay null. ``name`` is the column's, for messages.

    ``exact``: no value of a file is refused or lost. Floats that JSON lacks are the texts ``NaN``, ``Infinity`` and
    ``-Infinity``, times outside the years 1 to 9999 a count such as ``-9 us since 1970-01-01``, maps are lists of
    objects of ``key`` and ``value``, and texts that are not UTF-8 come as `readable` has them.
    Else raises `DataError` for such a time, and `pyarrow.ArrowNotImplementedError` for a type without a form in JSON.
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
    """Return an array without what only few types have: extensions as they are stored, maps as lists of entries."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_map(array.type):
        entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        return array.cast(pa.list_(entry))
    return array


def _string(array: pa.Array, name: str, exact: bool) -> pa.StringArray:
    """Return what goes between the quotes of a JSON string."""
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
        return pc.binary_replace_slice(text.cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    return text


def _unit(kind: pa.DataType) -> str:
    return kind.unit if pa.types.is_timestamp(kind) else "days" if kind == pa.date32() else "ms"


def _in_utf8(array: pa.StringArray) -> pa.StringArray:
    """Return texts that came with bytes of no UTF-8, which Arrow does not look at by itself, so that all are text."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raw = array.cast(pa.binary()).to_pylist()  # value by value, only where there is one
        return pa.array([None if value is None else readable(value) for value in raw], pa.string())
    return array


def _float(array: pa.Array, exact: bool) -> pa.StringArray:
    """Shortest text that reads back as the same bits, with a point or exponent so that it reads back as a float."""
    if array.type == pa.float16():  # few functions know it
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
    """Escape what JSON does not take as it is; most columns hold nothing of the kind and come back unchanged."""
    data = content(array)
    special = data[(data < 0x20) | (data == ord('"')) | (data == ord("\\"))]
    # The backslash first: the other escapes bring new ones.
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
    """Return one JSON object a row: ``keys`` with the values of ``columns``, of which there is at least one.

    ``name``: the column of all these for messages; None where each key is a column itself. ``exact``: see `json_text`.
    """
    fragments: list[Any] = []
    for at, (key, column) in enumerate(zip(keys, columns, strict=True)):
        fragments += [
            f"{',' if at else '{'}{json.dumps(key, ensure_ascii=False)}:",
            json_text(column, name or key, exact),
        ]
    return pc.binary_join_element_wise(*fragments, "}", "", null_handling="replace", null_replacement="null")
