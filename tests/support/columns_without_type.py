"""Columns without any value, with and without a type."""

from __future__ import annotations

import pyarrow as pa

NULL = pa.null()
CODED = pa.dictionary(pa.int32(), pa.null())
WITHOUT_TYPE = [NULL, CODED]
"""The types of columns that have no type yet."""


def nulls(rows: int, kind: pa.DataType) -> pa.Array:
    """Return a column of nulls; Arrow makes none of a dictionary of nulls by itself."""
    if kind != CODED:
        return pa.nulls(rows, kind)
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, kind.index_type), pa.nulls(0))
