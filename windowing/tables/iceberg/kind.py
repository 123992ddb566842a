"""Iceberg tables as inputs: a snapshot, its data files in order of arrival, and what of a table is not read."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from ...errors import InputError
from ..table_version import TableFile, TableVersion
from .address import TableAddress, is_address, parse_address
from .catalog import catalog_errors, find_table, open_catalog
from .partition import check_whole_files, identity_fields
from .schema import arrow_schema, numbered_schema
from .snapshots import LiveFiles, chosen, files_of
from .storage import data_folder, file_system

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_EPOCH = dt.date(1970, 1, 1)


class Iceberg:
    """The `TableKind` of Iceberg tables."""

    name = "iceberg"
    title = "Iceberg"

    def takes(self, path: str) -> bool:
        """Whether the path begins with ``iceberg://``."""
        return is_address(path)

    def at_version(self, path: str, version: str | None = None) -> TableVersion:
        """Return a snapshot of the table. Raises as `TableKind.at_version` does."""
        address = parse_address(path)
        with catalog_errors(address, InputError):
            table = find_table(open_catalog(address.catalog), address)
            if table is None:
                what = f"catalog {address.catalog!r} has no table {'.'.join(address.table)}"
                raise InputError(what, "check the address")
            return _at_version(table, address, version)


KIND = Iceberg()


def _at_version(table: Table, address: TableAddress, version: str | None) -> TableVersion:
    shown = str(address.whole)
    snapshot = chosen(table, version, shown)
    schema = table.schema() if snapshot is None else _schema_of(table, snapshot, is_newest=version is None)
    live = files_of(table, address, snapshot)
    _check_readable(live, table, address)
    system, root = file_system(table.io, data_folder(table))
    number = "none" if snapshot is None else str(snapshot.snapshot_id)
    names = list(identity_fields(schema, table.spec()))
    files = tuple(_file(table, file, schema, names) for file in live.data)
    columns = arrow_schema(schema)
    numbered = _numbered(schema, names, table)
    found = TableVersion("Iceberg", shown, system, root, number, columns, tuple(names), files, numbered)
    return found.where(address.where)


def _schema_of(table: Table, snapshot: Snapshot, is_newest: bool) -> Schema:
    """Return the columns that a snapshot is read with: of the newest those of the table, else those of its time."""
    known = table.schemas()
    return table.schema() if is_newest else known.get(snapshot.schema_id or 0, table.schema())


def _numbered(schema: Schema, partitions: Sequence[str], table: Table) -> pa.Schema:
    """Return the columns that are read of files, with their field ids, and the ids of names for files without any."""
    mapping = table.name_mapping()
    names = {name: field.field_id for field in (mapping.root if mapping else ()) for name in field.names}
    columns = [field for field in numbered_schema(schema) if field.name not in partitions]
    return pa.schema(columns, {"names": json.dumps(names)})


def _check_readable(live: LiveFiles, table: Table, address: TableAddress) -> None:
    """Raise `InputError` where the rows of a snapshot are not simply those of its data files."""
    shown = address.whole
    if live.deletes:
        what = f"{shown} has delete files: rows of its data files are deleted ({len(live.deletes):,} such files)"
        raise InputError(what, "rewrite these data files, as CALL .. rewrite_data_files does in Spark")
    if other := [file for file in live.data if file.file_format.name != "PARQUET"]:
        what = f"{shown} has files of the format {other[0].file_format.name}: {other[0].file_path}"
        raise InputError(what, "read a copy of it in Parquet")
    specs = table.specs()
    of_files = [specs[number] for number in {file.spec_id for file in live.data}]
    check_whole_files(address, of_files, table.schema(), InputError)


def _file(table: Table, file: DataFile, schema: Schema, names: Sequence[str]) -> TableFile:
    system, path = file_system(table.io, file.file_path)
    shown = path if isinstance(system, fs.LocalFileSystem) else file.file_path
    fields = identity_fields(schema, table.specs()[file.spec_id])
    values = tuple((name, _text(schema, name, file.partition[fields[name]])) for name in names if name in fields)
    return TableFile(path, shown, file.file_size_in_bytes, file.record_count, None, values)


def _text(schema: Schema, name: str, value: Any) -> str | None:
    """Return the value of a partition field as the name of a folder has it."""
    if value is None:
        return None
    kind = str(schema.find_type(name))
    return (_EPOCH + dt.timedelta(days=value)).isoformat() if kind == "date" and isinstance(value, int) else str(value)
