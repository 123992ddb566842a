"""Iceberg tables as inputs: a snapshot, its data files in order of arrival, and what of a table is not read."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from ..errors import InputError, few
from .address import TableFile, TableVersion, version_time
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
from .iceberg_schema import (
    EPOCH,
    arrow_schema,
    check_whole_files,
    identity_fields,
    numbered_schema,
    row_filter,
    stored_values,
)

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


def fence(metadata: TableMetadata, address: TableAddress) -> str:
    """Return the id of the last fence at an address; empty where there is none."""
    found = (property_of(each, FENCE) for each in ancestors(metadata) if property_of(each, FENCE) is not None)
    return next((each for each in found if each and each.partition(" ")[2] == address.where_text), "")


def published(metadata: TableMetadata, address: TableAddress) -> str | None:
    """Return the token of the result that was published last at an address; None where that is not known."""
    results = (each for each in ancestors(metadata) if property_of(each, WHERE) == address.where_text)
    newest = next(results, None)
    return None if newest is None else property_of(newest, TOKEN)


def untouched(metadata: TableMetadata, address: TableAddress) -> str | None:
    """Return the token of the result at an address, if all snapshots after it are of wincli and of other partitions.

    None where that is not known without a look at the files.
    """
    found = _last_result(metadata, address, lambda _: False)
    return None if found is None else property_of(found, TOKEN)


def only_rewritten(table: Table, address: TableAddress) -> bool:
    """Whether others have, since the last result at an address, only written the same rows into other files.

    A compaction is a snapshot that replaces files; an update of as many rows as before is one that overwrites them.
    """

    def is_harmless(each: Snapshot) -> bool:
        kind = None if each.summary is None else each.summary.operation.value
        return kind == "replace" or not _changes(table, address, each)

    return _last_result(table.metadata, address, is_harmless) is not None


def _last_result(
    metadata: TableMetadata, address: TableAddress, is_harmless: Callable[[Snapshot], bool]
) -> Snapshot | None:
    """Return the snapshot of the last result at an address; None where another after it may have changed its rows."""
    for each in ancestors(metadata):
        found = property_of(each, WHERE)
        if found == address.where_text:
            return each
        is_own = found is not None or property_of(each, FENCE) is not None
        if found == "" or not (is_own or is_harmless(each)):
            return None
    return None


def _changes(table: Table, address: TableAddress, snapshot: Snapshot) -> bool:
    may_have = _may_have(table, address)
    for manifest in _manifests(table, address, snapshot):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                is_of = entry.snapshot_id in (None, snapshot.snapshot_id)
                if is_of and may_have(entry.data_file):
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
    if re.fullmatch(r"\d{1,19}", text):
        found = metadata.snapshot_by_id(int(text))
    else:
        names = f" ({few(sorted(metadata.refs))})" if metadata.refs else ""
        time = version_time(
            text, f"no snapshot of {shown}", f"its id, a time such as 2026-11-02T04:00, or a branch or tag{names}"
        )
        found = table.snapshot_as_of_timestamp(int(time.timestamp() * 1000))
    if found is None:
        newest_ones = list(ancestors(metadata))[:3]
        times = [dt.datetime.fromtimestamp(each.timestamp_ms / 1000, dt.UTC) for each in newest_ones]
        known = [f"{each.snapshot_id} of {at:%Y-%m-%dT%H:%M:%SZ}" for each, at in zip(newest_ones, times, strict=True)]
        do = f"it has {', '.join(known)} and perhaps older ones" if known else "it has none"
        raise InputError(f"{shown} has no snapshot {text}", do)
    return found


def files_of(table: Table, address: TableAddress, snapshot: Snapshot | None) -> LiveFiles:
    """Return the files of a snapshot that may have rows of an address.

    Raises `ConfigError` where the address does not fit the table.
    """
    if snapshot is None:
        return LiveFiles((), ())

    def entries(manifest: ManifestFile) -> list[DataFile]:
        return [entry.data_file for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]

    may_have = _may_have(table, address)
    with ThreadPoolExecutor(_THREADS) as pool:
        lists = list(pool.map(entries, _manifests(table, address, snapshot)))
    found = [file for files in lists for file in files if may_have(file)]
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


def _deletes(file: DataFile) -> bool:
    return file.content.name != "DATA"


def _may_have(table: Table, address: TableAddress) -> Callable[[DataFile], bool]:
    """Return whether a file may have rows of an address; of columns that it is not partitioned by, it may have any."""
    wanted = stored_values(address, table.metadata)
    fields = {number: identity_fields(table.schema(), spec) for number, spec in table.specs().items()}

    def may_have(file: DataFile) -> bool:
        places = fields[file.spec_id]
        return all(name not in places or file.partition[places[name]] == value for name, value in wanted.items())

    return may_have


def takes(path: str) -> bool:
    """Whether the path begins with ``iceberg://``."""
    return is_address(path)


def at_version(path: str, version: str | None = None) -> TableVersion:
    """Return a snapshot of the table. Raises as `table_version` does."""
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
        mapping = table.name_mapping()
        numbers = {name: field.field_id for field in (mapping.root if mapping else ()) for name in field.names}
        in_files = [field for field in numbered_schema(schema) if field.name not in names]
        numbered = pa.schema(in_files, {"names": json.dumps(numbers)})
        found = TableVersion("Iceberg", shown, system, root, number, columns, tuple(names), files, numbered)
        return found.where(address.where)


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
    values = []
    for name in names:
        if name in fields:
            value = file.partition[fields[name]]
            if isinstance(value, int) and str(schema.find_type(name)) == "date":
                value = (EPOCH + dt.timedelta(days=value)).isoformat()
            values.append((name, None if value is None else str(value)))
    return TableFile(path, shown, file.file_size_in_bytes, file.record_count, None, tuple(values))
