"""Helpers of the text formats: batches of a table, and text forms where Arrow's own are not exact or fail."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import DataError
from ...windowing.support.plain_values import readable
from .encoder import is_list

_BATCH_ROWS = 1 << 16  # a dozen columns of so many rows fit the cache
_BATCH_BYTES = 1 << 26  # far below the 2 GiB of text that one array can hold
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 1 and 9999
_FIRST_SHOWN, _LAST_SHOWN = -1_096_193_779_200, 971_890_963_199  # of the years -32767 and 32767: Arrow writes no others
_INT64 = -(2**63), 2**63 - 1
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Divide a table into batches whose text fits one array; an empty table gives one empty batch."""
    width = table.nbytes // max(1, table.num_rows) + 1
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // width))
    return table.to_batches(max_chunksize=rows) or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def is_binary(kind: pa.DataType) -> bool:
    """Whether a type holds bytes that need not be text."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def content(array: pa.StringArray | pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of all values without a gap, uint8 (B,); no copy, the array owns the memory."""
    ends = _ends(array)
    return np.frombuffer(array.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]


def hexadecimal(array: pa.Array) -> pa.StringArray:
    """Return binary values as hexadecimal text, two digits for each byte."""
    values = array.cast(pa.binary())
    ends = _ends(values)
    digits = content(values).tobytes().hex().encode()
    text = pa.StringArray.from_buffers(len(values), pa.py_buffer((ends - ends[0]) * np.int32(2)), pa.py_buffer(digits))
    return pc.if_else(values.is_valid(), text, None)


def _ends(array: pa.StringArray | pa.BinaryArray) -> npt.NDArray[np.int32]:
    if not len(array):  # it may have no buffers at all
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def in_utc(array: pa.Array) -> pa.Array:
    """Return timestamps with a zone in UTC, so that their text is exact (an offset has no seconds); else the array."""
    if pa.types.is_timestamp(array.type) and array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    return array


def far_ticks(array: pa.Array) -> pa.Array | None:
    """Return the int64 ticks of dates and timestamps outside the years 1 to 9999, null for all others.

    Returns None where no value is outside.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        ticks, per_second = array.cast(pa.int64()), Fraction(_TICKS[kind.unit])
    elif pa.types.is_date32(kind):
        ticks, per_second = array.cast(pa.int32()).cast(pa.int64()), Fraction(1, 86_400)
    elif pa.types.is_date64(kind):
        ticks, per_second = array.cast(pa.int64()), Fraction(1_000)
    else:
        return None
    first = max(int(_FIRST_SECOND * per_second), _INT64[0])
    last = min(int((_LAST_SECOND + 1) * per_second) - 1, _INT64[1])
    is_far = pc.or_(pc.less(ticks, first), pc.greater(ticks, last))
    return pc.if_else(is_far, ticks, pa.scalar(None, pa.int64())) if pc.any(is_far).as_py() else None


def check_years(array: pa.Array, name: str) -> None:
    """Raise `DataError` naming the column for a date or timestamp outside the years -32767 to 32767."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        ends, second = pc.min_max(array.cast(pa.int64())), _TICKS[kind.unit]
    elif pa.types.is_date(kind):
        ends, second = pc.min_max(array.cast(pa.timestamp("s")).cast(pa.int64())), 1
    else:
        return
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and not _FIRST_SHOWN <= low // second <= high // second <= _LAST_SHOWN:
        what = f"column {name!r} holds a {kind} outside the years -32767 to 32767, which has no form as text"
        raise DataError(what, "write Parquet with --output-format parquet")


# Turn Arrow columns into JSON text, a whole column at a time.


def json_text(array: pa.Array, name: str, exact: bool = False) -> pa.StringArray:
    """Return each value as JSON text; nulls stay null.

    ``name``: the name of the column, for messages. ``exact``: whether to refuse and lose no value that a file can hold.
    Floats that JSON lacks are then the texts ``NaN``, ``Infinity`` and ``-Infinity``, times outside the years 1 to 9999
    are counts such as ``-9 us since 1970-01-01``, maps are lists of objects with ``key`` and ``value``, and `readable`
    escapes texts that are not UTF-8.
    Without ``exact``, raises `DataError` for a time outside the years -32767 to 32767, and
    `pyarrow.ArrowNotImplementedError` for a type that has no form in JSON.
    """
    if exact and isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if exact and pa.types.is_map(array.type):
        entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        array = array.cast(pa.list_(entry))
    kind = array.type
    if is_list(kind):
        lists = array.cast(pa.list_(kind.value_type))
        items = pc.fill_null(json_text(lists.flatten(), name, exact), "null")
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        joined = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
        return pc.if_else(array.is_valid(), pc.binary_join_element_wise("[", joined, "]", ""), None)
    if pa.types.is_struct(kind):
        if not array.type.num_fields:
            return pc.if_else(array.is_valid(), "{}", pa.scalar(None, pa.string()))
        text = objects(array.type.names, array.flatten(), name, exact)
        return pc.if_else(array.is_valid(), text, None) if array.null_count else text
    if pa.types.is_floating(kind):
        return _float(array, exact)
    literals = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, pa.types.is_duration)
    if any(is_kind(kind) for is_kind in literals):
        return array.cast(pa.string())
    return pc.binary_join_element_wise('"', _string(array, name, exact), '"', "")


def _string(array: pa.Array, name: str, exact: bool) -> pa.StringArray:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = array.cast(pa.string())
        if exact:
            try:
                text.validate(full=True)  # Arrow does not check texts by itself
            except pa.ArrowInvalid:
                raw = text.cast(pa.binary()).to_pylist()  # value by value, only in a column with bad bytes
                text = pa.array([None if value is None else readable(value) for value in raw], pa.string())
        data = content(text)
        special = data[(data < 0x20) | (data == ord('"')) | (data == ord("\\"))]  # most columns have none
        # The backslash first: the other escapes add backslashes.
        for code in sorted(np.unique(special).tolist(), key=lambda code: code != ord("\\")):
            text = pc.replace_substring(text, chr(code), json.dumps(chr(code))[1:-1])
        return text
    if is_binary(kind):
        return hexadecimal(array)
    far = far_ticks(array) if exact else None
    if far is not None:
        near = _string(pc.if_else(far.is_null(), array, pa.scalar(None, kind)), name, exact)
        unit = kind.unit if pa.types.is_timestamp(kind) else "days" if kind == pa.date32() else "ms"
        counts = pc.binary_join_element_wise(far.cast(pa.string()), f"{unit} since 1970-01-01", " ")
        return pc.coalesce(near, counts)
    if not exact:
        check_years(array, name)
    text = in_utc(array).cast(pa.string())
    if pa.types.is_timestamp(kind):  # ISO 8601 has a T where Arrow has a space
        if far_ticks(array) is not None:  # years may have more than four digits
            return pc.replace_substring(text, " ", "T")
        return pc.binary_replace_slice(text.cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    return text


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


# Encode rejects: always JSON Lines, whatever the output format, with a suffix that no part has.
#
# Engines other than Spark and pyarrow do not skip folders whose name begins with ``_``. A glob over the parts of a
# result, such as ``out/**/*.parquet``, would count rejects as rows if they had the suffix of parts.


def file_name(index: int, suffix: str = "") -> str:
    """Return the name of the file of rejects of task ``index``; ``suffix``: as in `FileSink`."""
    return f"rejects-{index:05d}{suffix}.ndjson"


def encode(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write ``tables`` of ``schema`` to ``file``, one object for each row, without loss of values (see `json_text`)."""
    write_lines(schema.names, chain.from_iterable(map(batches, tables)), file, exact=True)
