"""Types of columns in the words of ``--schema``."""

from __future__ import annotations

import pyarrow as pa


def type_word(kind: pa.DataType) -> str:
    """Return the type that ``--schema`` has for values of a type; for one that it lacks, ``string``."""
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz is not None else "timestamp_ns" if kind.unit == "ns" else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_integer(kind):
        return "int32" if kind.bit_width < 64 and not pa.types.is_uint32(kind) else "int64"
    named = ((pa.types.is_floating, "float64"), (pa.types.is_date, "date"), (pa.types.is_boolean, "bool"))
    return next((word for fits, word in named if fits(kind)), "string")
