"""Partition columns from folder names: each row below ``dt=2026-11-01/kind=a%20b/`` has columns ``dt`` and ``kind``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.errors import InputError
from .schema.types import ColumnType
from .values.casts import convert


def folder_columns(
    files: Sequence[tuple[str, Mapping[str, str | None]]], given: Mapping[str, ColumnType]
) -> dict[str, pa.Array]:
    """Return one array for each column, with one value for each file; null where a file has no such folder.

    ``files``: pairs of a file's path and the values of its folders. ``given``: types by column, which win over
    inference. An inferred column is int64 if all values are whole numbers, date32 if all are ISO dates, else string.
    Raises `InputError` naming the file whose value is not of the given type.
    """
    names = list(dict.fromkeys(name for _, values in files for name in values))
    return {name: _typed(name, files, given.get(name)) for name in names}


def _typed(name: str, files: Sequence[tuple[str, Mapping[str, str | None]]], given: ColumnType | None) -> pa.Array:
    texts = pa.array([values.get(name) for _, values in files], pa.string())
    kind = given or ColumnType(_inferred(texts))
    column, bad = convert(pa.chunked_array([_with_zone(texts, kind)]), kind)
    if bad is not None:
        at = int(np.flatnonzero(bad)[0])
        words = given.words if given else "of one type"
        raise InputError(
            f"{files[at][0]}: folder {name}={texts[at].as_py()} is not {words}", f"check {name} in --schema"
        )
    return column.combine_chunks()


def _with_zone(texts: pa.Array, kind: ColumnType) -> pa.Array:
    """Return texts of instants with a zone: Hive and Spark write none in names of folders, and wincli writes UTC."""
    if not pa.types.is_timestamp(kind.type) or kind.type.tz is None or kind.format is not None:
        return texts
    lacks_zone = pc.match_substring_regex(texts, r"\d\d:\d\d:\d\d(\.\d+)?$")
    return pc.if_else(lacks_zone, pc.binary_join_element_wise(texts, "Z", ""), texts)


def _inferred(texts: pa.Array) -> pa.DataType:
    known = texts.drop_null()
    if len(known) and pc.all(pc.match_substring_regex(known, r"^-?\d{1,18}$")).as_py():
        return pa.int64()
    try:
        pc.cast(known, pa.date32())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.date32() if len(known) else pa.string()
