"""The folders of a partitioned result: ``day=2026-11-01/kind=a%2Fb``, named as Hive and Spark name them.

A null and the empty text both stand in ``__HIVE_DEFAULT_PARTITION__``, since Hive has no name for the empty text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import DataError

NULL = "__HIVE_DEFAULT_PARTITION__"
LONGEST = 255
"""Bytes: no local file system takes a longer name of a folder."""

_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_FRACTION_ZEROS = r"(\.\d*?)0+$"


def can_name(kind: pa.DataType) -> bool:
    """Whether values of a type can be names of folders: no lists, structs, bytes or durations."""
    is_other = (pa.types.is_nested, _is_bytes, pa.types.is_duration, pa.types.is_interval)
    return not any(test(kind) for test in is_other) and not isinstance(kind, pa.BaseExtensionType)


def escape(text: str) -> str:
    """Return a text as part of a folder name; characters that Hive escapes become ``%`` and two hex digits."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def folders_of(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the folder of each row: int64 (n,) indices into a list of folders, each of which has a row.

    ``names``: the names of the partition columns. ``columns``: their values, (n,) each. Python runs once for each
    distinct value. Raises `DataError` for a text that is no UTF-8, or too long for the name of a folder.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    folders = [""]
    for name, column in zip(names, columns, strict=True):
        own, found = _name_of_each(name, column)
        pairs, codes = _in_use(codes * len(found) + own, len(folders) * len(found))
        folders = [f"{folders[pair // len(found)]}/{found[pair % len(found)]}" for pair in pairs.tolist()]
    return codes, [folder[1:] for folder in folders]


def _in_use(codes: npt.NDArray[np.int64], size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the codes below ``size`` that occur, ascending, and of each code the index among them."""
    if size > 4 * len(codes) + 1024:
        return np.unique(codes, return_inverse=True)
    is_used = np.zeros(size, np.bool_)
    is_used[codes] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


def _name_of_each(name: str, column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the folder name of each row for one column, as `folders_of` does for all."""
    encoded = _distinct(column.combine_chunks())
    texts = [NULL if not text else escape(text) for text in [*_texts(encoded.dictionary, name), None]]
    found = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    folders = [f"{escape(name)}={text}" for text in found]
    _check_length(name, folders)
    own = encoded.indices.cast(pa.int64()).fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return np.array([found[text] for text in texts], np.int64)[own], folders


def _distinct(values: pa.Array) -> pa.DictionaryArray:
    if isinstance(values, pa.ChunkedArray):  # no chunk at all
        values = pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        return values
    if pa.types.is_floating(values.type):  # by bits: 0.0 and -0.0 have different texts
        encoded = values.view(_BITS[values.type.bit_width]).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.view(values.type))
    return values.dictionary_encode()


_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _texts(values: pa.Array, name: str) -> Iterable[str | None]:
    """Return distinct values as Spark casts them to text."""
    kind = values.type
    if pa.types.is_floating(kind):
        return [None if value is None else _float_text(value, kind) for value in values.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.string()).to_pylist()
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))  # in UTC, where it has a zone
    texts = values.cast(pa.large_string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        texts = pc.replace_substring_regex(pc.replace_substring_regex(texts, _FRACTION_ZEROS, r"\1"), r"\.$", "")
    return [_decode(data, name) for data in texts.cast(pa.large_binary()).to_pylist()]


def _decode(data: bytes | None, name: str) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        what = f"a value of {name!r}, which would name a folder, is no UTF-8 text: {data!r:.80}"
        raise DataError(what, "partition by another column") from error


def _float_text(value: float, kind: pa.DataType) -> str:
    """Return a float as Java writes it: ``1.0``, ``1.5E-5``, ``Infinity``; the shortest digits that read back."""
    number: Any = np.float64(value) if kind.bit_width == 64 else np.float32(value)
    if not np.isfinite(number):
        return _ODD_FLOATS[str(number)]
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    digits, _, power = np.format_float_scientific(number, trim="0").partition("e")
    return f"{digits}E{int(power)}"


_ODD_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _check_length(name: str, folders: Iterable[str]) -> None:
    for folder in folders:
        if (length := len(folder.encode())) > LONGEST:
            what = f"a value of {name!r} would name a folder with {length:,} bytes, and a name has at most {LONGEST}"
            raise DataError(f"{what}: {folder[:40]}..", "partition by a shorter column, or by a part of this one")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))
