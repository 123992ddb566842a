"""The column types of a result on disk."""

from __future__ import annotations

import pyarrow as pa


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema as readers of a part see it: no dictionaries, no views, no metadata."""
    return pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type holds text or bytes of variable length."""
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_integral(kind: pa.DataType) -> bool:
    """Whether a type is stored as integers: integers, dates, times, timestamps, durations."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration)
    return any(is_kind(kind) for is_kind in kinds)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)
