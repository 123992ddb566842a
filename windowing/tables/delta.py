"""Delta tables: opened at a version, and refused where rows would not be read as their table means them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from ..errors import NO_TYPE_YET, ConfigError, InputError
from ..support.address import Address
from ..support.column_types import plain
from ..support.file_systems import file_system_of
from ..support.redaction import redacted_path
from .address import TableFile, TablePath, TableVersion, Values, partition_path, split_path
from .delta_library import LOG, input_errors, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema


# The columns of a result in a Delta table: the types that it has for them, and whether they fit those that are there.
#
# A type is stored in the narrowest of Delta that holds all of its values. Nanoseconds have none: times become
# microseconds, and a run with a time between two of these fails.


_STORED: Mapping[pa.DataType, pa.DataType] = {
    **{kind: kind for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_())},
    **{kind: kind for kind in (pa.string(), pa.binary(), pa.date32())},
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
_WIDER = {  # of a column that is there: narrower types whose values it holds
    pa.int64(): (pa.int8(), pa.int16(), pa.int32()),
    pa.int32(): (pa.int8(), pa.int16()),
    pa.int16(): (pa.int8(),),
    pa.float64(): (pa.float32(),),
}
_MOST_DIGITS = 38


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the columns of a table, with plain Arrow types."""
    return pa.schema(table.schema().to_arrow())


def stored_schema(schema: pa.Schema, shown: str) -> pa.Schema:
    """Return columns with the types that Delta has for them. Raises `ConfigError` for a type that it has not."""
    fields = []
    for field in schema:
        if (kind := _stored(field.type)) is None:
            what = f"{shown} is a Delta table, which cannot hold column {field.name!r} of type {field.type}"
            raise ConfigError(what, NO_TYPE_YET if pa.types.is_null(field.type) else "leave it out, or cast it")
        fields.append(pa.field(field.name, kind))
    lower = [field.name.lower() for field in fields]
    if twice := next((field.name for field in fields if lower.count(field.name.lower()) > 1), None):
        what = f"{shown} is a Delta table, for which {twice!r} is the name of two columns: case does not count"
        raise ConfigError(what, "give one of them another name")
    return pa.schema(fields)


def canonical(values: Values, table: DeltaTable, shown: str) -> Values:
    """Return values of partition columns as a table writes them: ``05`` of a column of whole numbers is ``5``.

    Raises `InputError` where the table has no such column or is not partitioned by it, or a value is not of its type.
    """
    schema, partitions = schema_of(table), table.metadata().partition_columns
    if other := next((name for name, _ in values if name in schema.names and name not in partitions), None):
        what = f"the table {shown} is partitioned by {' and '.join(partitions) or 'nothing'}, and not by {other!r}"
        raise InputError(what, "check the path")
    return canonical_in(values, schema, shown)


def canonical_in(values: Values, schema: pa.Schema, shown: str) -> Values:
    """Return values of partition columns as a table of these columns writes them.

    Raises `InputError` where a column is missing, or a value is not of its type.
    """
    found: list[tuple[str, str | None]] = []
    for name, value in values:
        if name not in schema.names:
            what = f"the table {shown} has no column {name!r}, so it has no partition {name}={value}"
            raise InputError(what, f"it has {', '.join(schema.names)}")
        kind = schema.field(name).type
        if value is None or pa.types.is_string(kind):
            found.append((name, value))
            continue
        try:
            found.append((name, str(pa.scalar(value).cast(kind).cast(pa.string()).as_py())))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            what = f"{name}={value} is no partition of the table {shown}, where {name!r} is {kind}"
            raise InputError(what, "check the path") from error
    return tuple(found)


def fit_columns(stored: pa.Schema, there: pa.Schema, evolve: bool, shown: str) -> pa.Schema:
    """Return the columns of a result with the types of the table.

    ``stored``: those of the result, with partition columns. ``there``: those of the table. Raises `ConfigError` with
    the differences where the result has others; with ``evolve`` only where a column has another type.
    """
    found = []
    for field in stored:
        kind = there.field(field.name).type if field.name in there.names else field.type
        if kind != field.type and field.type not in _WIDER.get(kind, ()):
            found.append(f"{field.name!r} is {kind} there and {field.type} here")
    remedy = "choose another table, or columns that fit" if found else "say --evolve-schema to add columns"
    if not evolve:
        found += [f"{field.name!r} is new" for field in stored if field.name not in there.names]
        found += [f"{name!r} is missing" for name in there.names if name not in stored.names]
    if found:
        raise ConfigError(f"the table {shown} has other columns than this result: {', '.join(found)}", remedy)
    return pa.schema([there.field(each.name) if each.name in there.names else each for each in stored])


def merged_schema(columns: pa.Schema, table: DeltaTable | None) -> Schema:
    """Return the columns of a table with those of a result that it lacks, as the library has them."""
    from deltalake import Schema  # noqa: PLC0415 - loaded only where a table is written

    if table is None:
        return Schema.from_arrow(columns)
    there = table.schema()
    known = {field.name for field in there.fields}
    new = Schema.from_arrow(pa.schema([field for field in columns if field.name not in known]))
    return Schema([*there.fields, *new.fields]) if new.fields else there


def _stored(kind: pa.DataType) -> pa.DataType | None:
    kind = plain(kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= _MOST_DIGITS else None
    if pa.types.is_struct(kind):
        fields = [(field.name, _stored(field.type)) for field in kind]
        return None if any(stored is None for _, stored in fields) else pa.struct(fields)
    if pa.types.is_list(kind):
        item = _stored(kind.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else _STORED.get(kind)


PREFIX = "delta+"
_READ = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping"})
"""Reader features whose tables can be read, the last two only where no file makes use of them."""
_COLUMNS = ("path", "size_bytes", "modification_time", "num_records")


def takes(path: str) -> bool:
    """Whether the path begins with ``delta+``, or there is a folder ``_delta_log`` at it."""
    return path.startswith(PREFIX) or has_log(split_path(path).root)


def at_version(path: str, version: str | None = None) -> TableVersion:
    """Return a version of the table. Raises as `table_version` does."""
    at = path_of(path)
    shown = redacted_path(at.root)
    system, root = file_system_of(at.root)
    table = open_table(at.root, version)
    check_readable(table, at.root)
    names = list(table.metadata().partition_columns)
    with input_errors(shown):
        actions = pa.table(table.get_add_actions(flatten=True))
        number = str(table.version())
    rows = zip(*(actions[name].to_pylist() for name in _COLUMNS), values_of(actions, names), strict=True)
    files = sorted((_file(root, shown, *each) for each in rows), key=lambda file: file.path)
    found = TableVersion("Delta", shown, system, root, number, schema_of(table), tuple(names), tuple(files))
    return found.where(canonical(at.values, table, shown))


def path_of(path: str) -> TablePath:
    """Divide a path, with or without ``delta+``, into the table and its partition. Raises as `partition_path`."""
    return partition_path(path.removeprefix(PREFIX))


def has_log(root: str) -> bool:
    """Whether there is a Delta table at a path or URI; a local path that cannot be looked at is none.

    Raises `OSError` where a store does not answer: the files of a table are not the rows of it.
    """
    try:
        system, inner = file_system_of(root)
        return bool(system.get_file_info(f"{inner}/{LOG}").type == fs.FileType.Directory)
    except OSError:
        if not Address.of(root).is_path:
            raise
        return False
    except (pa.ArrowException, ValueError):
        return False


def check_readable(table: DeltaTable, root: str) -> None:
    """Raise `InputError` where the files of a table do not simply hold its rows."""
    shown = redacted_path(root)
    features = {feature[:1].lower() + feature[1:] for feature in table.protocol().reader_features or ()}
    if unknown := sorted(features - _READ):
        raise InputError(f"{shown} is a Delta table with the feature {unknown[0]}, which wincli does not read")
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        what = f"{shown} is a Delta table whose columns have other names in its files (column mapping by {mode})"
        raise InputError(what, "read a copy without column mapping")
    has_deleted = False
    if "deletionVectors" in features:
        with input_errors(shown):
            has_deleted = any(batch.num_rows for batch in table.deletion_vectors())
    if has_deleted:
        what = f"{shown} is a Delta table with deletion vectors: rows of its files are deleted"
        raise InputError(what, "write these files anew, with REORG TABLE .. APPLY (PURGE) or a compaction")


def values_of(actions: pa.Table, names: list[str]) -> list[Mapping[str, str | None]]:
    """Return the values of partition columns of each file, as texts."""
    columns = [actions[f"partition.{name}"].cast(pa.string()).to_pylist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * actions.num_rows


def _file(
    root: str, shown: str, path: str, size: int, time: int, rows: int | None, values: Mapping[str, str | None]
) -> TableFile:
    if not Address.of(path).is_path or path.startswith("/"):
        raise InputError(f"{shown} is a Delta table with a file that is elsewhere: {path}", "read a full copy of it")
    path = unquote(path)
    folder = path.rpartition("/")[0]
    named = TablePath("", folder).values if folder and all("=" in name for name in folder.split("/")) else ()
    folders = named if {name for name, _ in named} == values.keys() else ()
    added = dt.datetime.fromtimestamp(time / 1000, dt.UTC).isoformat()  # Delta has milliseconds
    return TableFile(f"{root}/{path}", f"{shown}/{path}", size, rows, added, tuple(values.items()), folders)
