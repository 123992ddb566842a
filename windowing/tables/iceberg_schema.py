"""The columns of a result as an Iceberg table has them: their types, their field ids, and how they differ from it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import NO_TYPE_YET, ConfigError, InputError, WincliError, did_you_mean, few, shown
from .address import is_date
from .iceberg_catalog import TableAddress

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
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
    return field.with_type(_with_children(field.type, lambda child, _: _numbered(child, ids))).with_metadata(
        {FIELD_ID: str(own).encode()}
    )


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

    plain = schema_to_pyarrow(schema, include_field_ids=False)
    return pa.schema([_small_field(field, field.name).with_nullable(True) for field in plain])


def numbered_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a table with their field ids in the metadata of fields."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - heavy

    return pa.schema([_small_field(field, field.name) for field in schema_to_pyarrow(schema, include_field_ids=True)])


def _small_field(field: pa.Field, name: str) -> pa.Field:
    kind = field.type
    if pa.types.is_large_list(kind):
        kind = pa.list_(kind.value_field)
    kind = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)
    return pa.field(name, _with_children(kind, _small_field), field.nullable, field.metadata)


def check_columns(stored: pa.Schema, schema: Schema, evolve: bool, table: str) -> None:
    """Raise `ConfigError` with the differences where a result does not fit a table.

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
    names = [field.name for field in wanted.fields]
    for field in schema.fields:
        if field.name not in names and (field.required or not evolve):
            found.append(f"the result lacks {shown(field.name)} ({field.field_type})")
    if found:
        do = "write the columns of the table" + ("" if evolve else ", or add new ones to it with --evolve-schema")
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
    from pyiceberg.types import ListType, MapType, StructType  # noqa: PLC0415 - heavy

    if isinstance(kind, StructType):
        return tuple((field.name, _without_ids(field.field_type)) for field in kind.fields)
    if isinstance(kind, ListType):
        return ("list", _without_ids(kind.element_type))
    if isinstance(kind, MapType):
        return ("map", _without_ids(kind.key_type), _without_ids(kind.value_type))
    return kind


# The partition of a table that an address names: its values in the types of the table, and a filter for its files.


EPOCH = dt.date(1970, 1, 1)


def value_type(text: str | None) -> pa.DataType:
    """Return the type of the column of a new table for a value of an address: int64, date32 or string."""
    if text is not None and re.fullmatch(r"-?\d{1,18}", text):
        return pa.int64()
    return pa.date32() if is_date(text) else pa.string()


def values_of(address: TableAddress, columns: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the value of each column that an address names, in its type in ``columns``.

    Raises `ConfigError` for a column that is not there, and for a value of another type.
    """
    found = {}
    for name, text in address.where:
        if name not in columns.names:
            what = f"{address.whole} has no column {name!r}, so it has no partition {name}={text}"
            raise ConfigError(what, did_you_mean(name, columns.names))
        kind = columns.field(name).type
        try:
            found[name] = pa.scalar(text, pa.string()).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            what = f"{address}: {text!r} is no {kind}, which column {name!r} of the table is"
            raise ConfigError(what, "write the partition as the table has it") from error
    return found


def new_spec(schema: Schema, names: Sequence[str]) -> PartitionSpec:
    """Return the partition spec of a new table that is partitioned by some of its columns, each by its own values."""
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec  # noqa: PLC0415 - heavy
    from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415

    return PartitionSpec(
        *(
            PartitionField(schema.find_field(name).field_id, PARTITION_FIELD_ID_START + at, IdentityTransform(), name)
            for at, name in enumerate(names)
        )
    )


def identity_fields(schema: Schema, spec: PartitionSpec) -> dict[str, int]:
    """Return the columns by whose own values a table is partitioned, with their places in the spec."""
    return {
        schema.find_column_name(field.source_id) or "": at
        for at, field in enumerate(spec.fields)
        if str(field.transform) == "identity"
    }


def check_written(address: TableAddress, metadata: TableMetadata) -> None:
    """Raise `ConfigError` where a result with this address cannot be written so that the table stays as it declares.

    The partition columns must be those of the address, for then each file is of one partition; and the table must be
    without a sort order, for results are in the order of their windows.
    """
    names = [name for name, _ in address.where]
    spec, schema = metadata.spec(), metadata.schema()
    by = [f"{field.transform}({schema.find_column_name(field.source_id)})" for field in spec.fields]
    if sorted(identity_fields(schema, spec)) != sorted(names) or len(by) != len(names):
        how = f"is partitioned by {', '.join(by)}" if by else "is not partitioned"
        here = f"this result is for {', '.join(names)}" if names else "this result is for the whole table"
        what = f"{address.whole} {how}, and {here}; nothing was written"
        do = "write to another table" if names or by else "leave the partition out"
        if by and all(each.startswith("identity(") for each in by):
            do = "name its partition after the table: " + "/".join(f"{each[9:-1]}=.." for each in by)
        raise ConfigError(what, do)
    if not metadata.sort_order_by_id(metadata.default_sort_order_id).is_unsorted:
        what = f"{address.whole} has a sort order, and results are in the order of their windows; nothing was written"
        raise ConfigError(what, "write to a table without a sort order (ALTER TABLE .. WRITE UNORDERED in Spark)")


def row_filter(address: TableAddress, metadata: TableMetadata) -> BooleanExpression:
    """Return the filter for the rows of an address. Raises `ConfigError` as `values_of` does."""
    from pyiceberg import expressions  # noqa: PLC0415 - heavy

    made: Any = expressions  # whose types do not say how they are called
    values = values_of(address, arrow_schema(metadata.schema()))
    found: BooleanExpression = made.AlwaysTrue()
    for name, value in values.items():
        found = made.And(found, made.EqualTo(name, value.as_py()) if value.is_valid else made.IsNull(name))
    return found


def stored_values(address: TableAddress, metadata: TableMetadata) -> dict[str, Any]:
    """Return the value of each column of an address as the entries of files hold it.

    Raises `ConfigError` as `values_of` does, and for a type that wincli knows in no partition.
    """
    found = {}
    for name, value in values_of(address, arrow_schema(metadata.schema())).items():
        stored = value.as_py()
        if isinstance(stored, dt.date) and not isinstance(stored, dt.datetime):
            stored = (stored - EPOCH).days
        if not (stored is None or isinstance(stored, bool | int | str)):
            what = f"{address}: a partition of type {value.type} is not written"
            raise ConfigError(what, "partition by texts, numbers or days")
        found[name] = stored
    return found


def partition_record(address: TableAddress, metadata: TableMetadata) -> list[Any]:
    """Return the values of the partition fields of an address in the order of the spec, which has these columns."""
    values, schema = stored_values(address, metadata), metadata.schema()
    return [values[schema.find_column_name(field.source_id) or ""] for field in metadata.spec().fields]


def check_whole_files(
    address: TableAddress, specs: Sequence[PartitionSpec], schema: Schema, error: type[WincliError]
) -> None:
    """Raise ``error`` where files of a partitioning may hold rows of an address beside others."""
    for spec in specs:
        known = identity_fields(schema, spec)
        if missing := [name for name, _ in address.where if name not in known]:
            what = f"{address.whole} has files that are not partitioned by {missing[0]}, beside others"
            raise error(
                what,
                "rewrite them by the partitioning of the table" if error is not InputError else "read the whole table",
            )
