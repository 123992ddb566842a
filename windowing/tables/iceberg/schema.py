"""The columns of a result as an Iceberg table has them: their types, their field ids, and how they differ from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import NO_TYPE_YET, ConfigError, shown
from ...support.suggest import few

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

FIELD_ID = b"PARQUET:field_id"
"""The key of the metadata of a field under which Arrow stores its id in Parquet."""

_WIDENED = {  # Iceberg has integers of 32 and 64 bits with a sign, times in microseconds, and one type of text
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a result in the types in which an Iceberg table holds them.

    No value changes; one that the type does not hold, as a time between two microseconds, is found when it is written.
    Raises `ConfigError` naming a column whose type no table has.
    """
    return pa.schema([pa.field(field.name, _stored(field.name, field.type)) for field in schema])


def _stored(column: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _stored(column, kind.value_type)
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = pa.list_(kind.value_type)
    if pa.types.is_nested(kind):
        return _with_children(kind, lambda child, name: pa.field(name, _stored(column, child.type), child.nullable))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    unfit = (pa.types.is_duration, pa.types.is_null, pa.types.is_decimal256)
    if any(is_kind(kind) for is_kind in unfit) or kind == pa.time64("ns"):
        do = NO_TYPE_YET if pa.types.is_null(kind) else "leave it out, or cast it"
        raise ConfigError(f"Iceberg cannot hold column {column!r} of type {kind}", do)
    return _WIDENED.get(kind, kind)


def new_schema(stored: pa.Schema) -> Schema:
    """Return the schema of a new table with the columns of a result; ``stored``: as `stored_schema` returns them.

    The ids are those that a catalog gives: a table that is made with this schema keeps them.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema  # noqa: PLC0415 - heavy
    from pyiceberg.schema import assign_fresh_schema_ids  # noqa: PLC0415

    ids = count(1)
    return assign_fresh_schema_ids(pyarrow_to_schema(pa.schema([_numbered(field, ids) for field in stored])))


def _numbered(field: pa.Field, ids: Iterator[int]) -> pa.Field:
    own = next(ids)
    return field.with_type(_with_children(field.type, lambda child, _: _numbered(child, ids))).with_metadata(_id(own))


def _id(number: int) -> dict[bytes, bytes]:
    return {FIELD_ID: str(number).encode()}


def _with_children(kind: pa.DataType, change: Any) -> pa.DataType:
    """Return a nested type with ``change(field, name)`` in place of each child; another type as it is."""
    if pa.types.is_struct(kind):
        return pa.struct([change(each, each.name) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_field, "key"), change(kind.item_field, "value"))
    return pa.list_(change(kind.value_field, "element")) if pa.types.is_list(kind) else kind


def file_schema(stored: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the columns of the files of a result in a table: its types, with the field ids of the table.

    ``stored``: the columns of the result, each of which the table has in a type that takes its values.
    """
    named = {field.name: field for field in numbered_schema(schema)}
    return pa.schema([named[field.name].with_nullable(True) for field in stored])


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a table in the types of Arrow that wincli reads."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - heavy

    plain = _small(schema_to_pyarrow(schema, include_field_ids=False))
    return pa.schema([field.with_nullable(True) for field in plain])


def numbered_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a table with their field ids in the metadata of fields."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - heavy

    return _small(schema_to_pyarrow(schema, include_field_ids=True))


def _small(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_small_field(field, field.name) for field in schema])


def _small_field(field: pa.Field, name: str) -> pa.Field:
    """Return a field with text, bytes and lists of 32 bit offsets, which pyiceberg describes by the large ones."""
    kind = field.type
    if pa.types.is_large_list(kind):
        kind = pa.list_(kind.value_field)
    kind = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)
    return pa.field(name, _with_children(kind, _small_field), field.nullable, field.metadata)


def differences(stored: pa.Schema, schema: Schema, evolve: bool) -> list[str]:
    """Say in which columns a result differs from a table so that it cannot be written there.

    ``evolve``: whether columns that the table lacks are added to it, and optional ones that the result lacks are null.
    """
    wanted = new_schema(stored)
    found = []
    for field in wanted.fields:
        there = next((each for each in schema.fields if each.name == field.name), None)
        if there is not None and not takes(there.field_type, field.field_type):
            found.append(f"{shown(field.name)} is {field.field_type} here and {there.field_type} there")
        elif there is None and not evolve:
            found.append(f"the table lacks {shown(field.name)} ({field.field_type})")
    return [*found, *_lacking([field.name for field in wanted.fields], schema, evolve)]


def _lacking(names: Sequence[str], schema: Schema, evolve: bool) -> Iterator[str]:
    for field in schema.fields:
        if field.name not in names and (field.required or not evolve):
            yield f"the result lacks {shown(field.name)} ({field.field_type})"


def check_columns(stored: pa.Schema, schema: Schema, evolve: bool, table: str) -> None:
    """Raise `ConfigError` with the differences where a result does not fit a table."""
    if found := differences(stored, schema, evolve):
        do = (
            "write the columns of the table"
            if evolve
            else "write the columns of the table, or add new ones to it with --evolve-schema"
        )
        raise ConfigError(f"the columns of {table} are others: {few(found)}; nothing was written", do)


def added_columns(stored: pa.Schema, schema: Schema) -> list[pa.Field]:
    """Return the columns of a result that a table lacks, in the order of the result."""
    known = {field.name for field in schema.fields}
    return [field for field in stored if field.name not in known]


def takes(there: IcebergType, here: IcebergType) -> bool:
    """Whether a column of type ``there`` holds each value of type ``here`` exactly; nested types must be equal."""
    from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType  # noqa: PLC0415 - heavy

    if isinstance(there, DecimalType) and isinstance(here, DecimalType):
        return there.scale == here.scale and there.precision >= here.precision
    widened = {(LongType(), IntegerType()), (DoubleType(), FloatType())}
    return _without_ids(there) == _without_ids(here) or (there, here) in widened


def _without_ids(kind: IcebergType) -> Any:
    """Return the form of a type in which equal types with other field ids are equal."""
    from pyiceberg.types import ListType, MapType, StructType  # noqa: PLC0415 - heavy

    if isinstance(kind, StructType):
        return tuple((field.name, _without_ids(field.field_type)) for field in kind.fields)
    if isinstance(kind, ListType):
        return ("list", _without_ids(kind.element_type))
    if isinstance(kind, MapType):
        return ("map", _without_ids(kind.key_type), _without_ids(kind.value_type))
    return kind
