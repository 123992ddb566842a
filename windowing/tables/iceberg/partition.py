"""The partition of a table that an address names: its values in the types of the table, and a filter for its files."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import ConfigError, InputError, WincliError
from ...support.suggest import did_you_mean
from .address import TableAddress
from .schema import arrow_schema

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_EPOCH = dt.date(1970, 1, 1)


def value_type(text: str | None) -> pa.DataType:
    """Return the type of the column of a new table for a value of an address: int64, date32 or string."""
    if text is not None and re.fullmatch(r"-?\d{1,18}", text):
        return pa.int64()
    if text is not None and re.fullmatch(r"\d{4}-\d\d-\d\d", text) and _as_date(text) is not None:
        return pa.date32()
    return pa.string()


def _as_date(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def new_columns(address: TableAddress) -> pa.Schema:
    """Return the columns of a new table that have their values from the address."""
    return pa.schema([pa.field(name, value_type(value)) for name, value in address.where])


def values_of(address: TableAddress, columns: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the value of each column that an address names, in its type in ``columns``.

    Raises `ConfigError` for a column that is not there, and for a value of another type.
    """
    return {name: _value(address, name, text, columns) for name, text in address.where}


def _value(address: TableAddress, name: str, text: str | None, columns: pa.Schema) -> pa.Scalar:
    if name not in columns.names:
        what = f"{address.whole} has no column {name!r}, so it has no partition {name}={text}"
        raise ConfigError(what, did_you_mean(name, columns.names))
    kind = columns.field(name).type
    try:
        return pa.scalar(text, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        what = f"{address}: {text!r} is no {kind}, which column {name!r} of the table is"
        raise ConfigError(what, "write the partition as the table has it") from error


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
        raise ConfigError(what, _columns_to_name(by, names))
    if not metadata.sort_order_by_id(metadata.default_sort_order_id).is_unsorted:
        what = f"{address.whole} has a sort order, and results are in the order of their windows; nothing was written"
        raise ConfigError(what, "write to a table without a sort order (ALTER TABLE .. WRITE UNORDERED in Spark)")


def _columns_to_name(by: Sequence[str], names: Sequence[str]) -> str:
    if by and all(each.startswith("identity(") for each in by):
        return "name its partition after the table: " + "/".join(f"{each[9:-1]}=.." for each in by)
    return "write to another table" if names or by else "leave the partition out"


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
    values = values_of(address, arrow_schema(metadata.schema()))
    return {name: _stored(address, value) for name, value in values.items()}


def partition_record(address: TableAddress, metadata: TableMetadata) -> list[Any]:
    """Return the values of the partition fields of an address in the order of the spec, which has these columns."""
    values, schema = stored_values(address, metadata), metadata.schema()
    return [values[schema.find_column_name(field.source_id) or ""] for field in metadata.spec().fields]


def _stored(address: TableAddress, value: pa.Scalar) -> Any:
    found = value.as_py()
    if isinstance(found, dt.date) and not isinstance(found, dt.datetime):
        return (found - _EPOCH).days
    if found is None or isinstance(found, bool | int | str):
        return found
    raise ConfigError(
        f"{address}: a partition of type {value.type} is not written", "partition by texts, numbers or days"
    )


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
