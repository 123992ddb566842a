"""The columns of a Parquet file of a table that knows columns by field ids: they may have other names in the file."""

from __future__ import annotations

import json

import pyarrow as pa

from ...windowing.errors import InputError

_ID = b"PARQUET:field_id"
NAMES = b"names"
"""The key of the metadata of a schema with the ids, by name, of columns in files without field ids."""


def names_in_file(file: pa.Schema, table: pa.Schema, shown: str) -> dict[str, str]:
    """Return the name in a file of each column of a table that the file has, in the order of the table.

    ``file``, ``table``: the columns with field ids in the metadata of fields. Raises `InputError` where the file has no
    field ids, and for a column whose inner fields are others than those of the table.
    """
    by_id = _by_id(file, table, shown)
    found = {}
    for column in table:
        own = by_id.get(_id(column))
        if own is not None:
            if not _is_alike(own.type, column.type):
                what = f"column {column.name!r} has other inner fields in {shown} than in its table"
                raise InputError(what, "rewrite the older data files of the table")
            found[column.name] = own.name
    return found


def _by_id(file: pa.Schema, table: pa.Schema, shown: str) -> dict[int | None, pa.Field]:
    numbered = {_id(field): field for field in file if _id(field) is not None}
    if numbered or not file.names:
        return numbered
    names = json.loads((table.metadata or {}).get(NAMES, b"{}"))
    if not names:
        raise InputError(f"{shown} has no field ids, and its table says no ids for names", "rewrite that data file")
    return {names[field.name]: field for field in file if field.name in names}


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def _is_alike(file: pa.DataType, table: pa.DataType) -> bool:
    """Whether the inner fields of a column have the names and ids that they have in the table."""
    if not pa.types.is_nested(table):
        return not pa.types.is_nested(file)
    if pa.types.is_struct(file) != pa.types.is_struct(table) or pa.types.is_map(file) != pa.types.is_map(table):
        return False
    ours, theirs = _children(file), _children(table)
    if pa.types.is_struct(table) and [each.name for each in ours] != [each.name for each in theirs]:
        return False
    pairs = list(zip(ours, theirs, strict=False))
    return len(ours) == len(theirs) and all(_is_same_id(a, b) and _is_alike(a.type, b.type) for a, b in pairs)


def _is_same_id(file: pa.Field, table: pa.Field) -> bool:
    return _id(file) is None or _id(file) == _id(table)


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind):
        return [kind.field(at) for at in range(kind.num_fields)]
    return [kind.value_field] if pa.types.is_nested(kind) else []
