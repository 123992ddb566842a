"""Iceberg tables as inputs: a snapshot, its data files in order of arrival, and what of a table is not read."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from ..errors import ConfigError, InputError, few
from .address import TableFile, TableVersion
from .iceberg_catalog import (
    TableAddress,
    catalog_errors,
    data_folder,
    file_system,
    find_table,
    is_address,
    open_catalog,
    parse_address,
)
from .iceberg_schema import arrow_schema, check_whole_files, identity_fields, numbered_schema, row_filter, stored_values

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


# The history of a table: which snapshot is read, which one a run has made, and which files are in it.


TOKEN = "wincli.token"
"""The property of a snapshot that names the result it has published."""
RUN = "wincli.run"
"""The property of a snapshot with the id of the run that made it."""
WHERE = "wincli.partition"
"""The property of a snapshot that says which partition the result is of, as an address ends; empty for all."""

_THREADS = 8
FENCE = "wincli.fence"
"""The property of a snapshot that changes no row: it makes the commit of a run fail that has lost its lock."""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The files of a snapshot.

    ``data``: the data files, sorted by path; files without rows among them.
    ``deletes``: the files that say which rows of data files are deleted.
    """

    data: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...]


def ancestors(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Yield the current snapshot, the one before it, and so on as far as snapshots are kept."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    at = metadata.current_snapshot_id
    while at is not None and (snapshot := known.get(at)) is not None:
        yield snapshot
        at = snapshot.parent_snapshot_id


def property_of(snapshot: Snapshot, name: str) -> str | None:
    """Return a property that a run has given to its snapshot; None where there is none."""
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)


def where_text(address: TableAddress) -> str:
    """Return the partition of an address as snapshots name it."""
    return "/".join(address.folders)


def newest(metadata: TableMetadata, address: TableAddress) -> Snapshot | None:
    """Return the last snapshot that published a result at an address; None where none is kept."""
    where = where_text(address)
    return next((each for each in ancestors(metadata) if property_of(each, WHERE) == where), None)


def fence(metadata: TableMetadata, address: TableAddress) -> str:
    """Return the id of the last fence at an address; empty where there is none."""
    found = (property_of(each, FENCE) for each in ancestors(metadata) if property_of(each, FENCE) is not None)
    return next((each for each in found if each and each.partition(" ")[2] == where_text(address)), "")


def published(metadata: TableMetadata, address: TableAddress) -> str | None:
    """Return the token of the result that was published last at an address; None where that is not known."""
    found = newest(metadata, address)
    return None if found is None else property_of(found, TOKEN)


def untouched(metadata: TableMetadata, address: TableAddress) -> str | None:
    """Return the token of the result at an address, if all snapshots after it are of wincli and of other partitions.

    None where that is not known without a look at the files.
    """
    where = where_text(address)
    for each in ancestors(metadata):
        found = property_of(each, WHERE)
        if found == where:
            return property_of(each, TOKEN)
        if found is None and property_of(each, FENCE) is None:
            return None
        if found == "":
            return None
    return None


def only_rewritten(table: Table, address: TableAddress) -> bool:
    """Whether others have, since the last result at an address, only written the same rows into other files.

    A compaction is a snapshot that replaces files; an update of as many rows as before is one that overwrites them.
    """
    where = where_text(address)
    for each in ancestors(table.metadata):
        found = property_of(each, WHERE)
        if found == where:
            return True
        is_own = found is not None or property_of(each, FENCE) is not None
        kind = None if each.summary is None else each.summary.operation.value
        if found == "" or not (is_own or kind == "replace" or not _changes(table, address, each)):
            return False
    return False


def _changes(table: Table, address: TableAddress, snapshot: Snapshot) -> bool:
    wanted = set(stored_values(address, table.metadata).items())
    fields = {number: identity_fields(table.schema(), spec) for number, spec in table.specs().items()}
    for manifest in _manifests(table, address, snapshot):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                is_of = entry.snapshot_id in (None, snapshot.snapshot_id)
                if is_of and _may_have(entry.data_file, fields[entry.data_file.spec_id], wanted):
                    return True
    return False


def chosen(table: Table, text: str | None, shown: str) -> Snapshot | None:
    """Return the snapshot that a text names: an id, a branch or tag, or a time, ISO 8601 and UTC where it has no zone.

    None: the current one, or None for a table without any. Raises `InputError` where there is no such snapshot,
    `ConfigError` for a text of another form.
    """
    if text is None:
        return table.current_snapshot()
    metadata = table.metadata
    if (ref := metadata.refs.get(text)) is not None:
        return metadata.snapshot_by_id(ref.snapshot_id)
    found = metadata.snapshot_by_id(int(text)) if re.fullmatch(r"\d{1,19}", text) else _at(table, text, shown)
    if found is None:
        known = [f"{each.snapshot_id} of {_time(each)}" for each in list(ancestors(metadata))[:3]]
        do = f"it has {', '.join(known)} and perhaps older ones" if known else "it has none"
        raise InputError(f"{shown} has no snapshot {text}", do)
    return found


def _at(table: Table, text: str, shown: str) -> Snapshot | None:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        names = sorted(table.metadata.refs)
        do = "name its id, a time such as 2026-11-02T04:00, or a branch or tag" + (f" ({few(names)})" if names else "")
        raise ConfigError(f"{text!r} names no snapshot of {shown}", do) from None
    time = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    return table.snapshot_as_of_timestamp(int(time.timestamp() * 1000))


def _time(snapshot: Snapshot) -> str:
    return dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def files_of(table: Table, address: TableAddress, snapshot: Snapshot | None) -> LiveFiles:
    """Return the files of a snapshot that may have rows of an address.

    Raises `ConfigError` where the address does not fit the table.
    """
    if snapshot is None:
        return LiveFiles((), ())
    wanted = set(stored_values(address, table.metadata).items())
    fields = {number: identity_fields(table.schema(), spec) for number, spec in table.specs().items()}
    with ThreadPoolExecutor(_THREADS) as pool:
        lists = list(pool.map(partial(_entries, table), _manifests(table, address, snapshot)))
    found = [file for files in lists for file in files if _may_have(file, fields[file.spec_id], wanted)]
    data = sorted((file for file in found if not _deletes(file)), key=lambda file: file.file_path)
    return LiveFiles(tuple(data), tuple(filter(_deletes, found)))


def _manifests(table: Table, address: TableAddress, snapshot: Snapshot) -> list[ManifestFile]:
    from pyiceberg.expressions.visitors import inclusive_projection, manifest_evaluator  # noqa: PLC0415 - heavy

    schema, rows = table.schema(), row_filter(address, table.metadata)
    may_have: dict[int, Callable[[ManifestFile], bool]] = {}
    for number, spec in table.specs().items():
        projected = inclusive_projection(schema, spec)(rows)
        may_have[number] = manifest_evaluator(spec, schema, projected)
    return [each for each in snapshot.manifests(table.io) if may_have[each.partition_spec_id](each)]


def _entries(table: Table, manifest: ManifestFile) -> list[DataFile]:
    return [entry.data_file for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]


def _deletes(file: DataFile) -> bool:
    return file.content.name != "DATA"


def _may_have(file: DataFile, fields: Mapping[str, int], wanted: set[tuple[str, Any]]) -> bool:
    """Whether a file may have rows with some values; of columns that it is not partitioned by, it may have any."""
    return all(name not in fields or file.partition[fields[name]] == value for name, value in wanted)


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
            shown = str(address.whole)
            snapshot = chosen(table, version, shown)
            schema = table.schema()
            if snapshot is not None and version is not None:  # an older snapshot has the columns of its time
                schema = table.schemas().get(snapshot.schema_id or 0, schema)
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


KIND = Iceberg()


def _numbered(schema: Schema, partitions: Sequence[str], table: Table) -> pa.Schema:
    mapping = table.name_mapping()
    names = {name: field.field_id for field in (mapping.root if mapping else ()) for name in field.names}
    columns = [field for field in numbered_schema(schema) if field.name not in partitions]
    return pa.schema(columns, {"names": json.dumps(names)})


def _check_readable(live: LiveFiles, table: Table, address: TableAddress) -> None:
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
    if value is None:
        return None
    kind = str(schema.find_type(name))
    return (_EPOCH + dt.timedelta(days=value)).isoformat() if kind == "date" and isinstance(value, int) else str(value)
