"""Delta tables: opened at a version, and refused where rows would not be read as their table means them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from ...errors import InputError
from ...support.addresses.redaction import redacted_path
from ..address import TablePath, partition_path, split_path
from ..table_version import TableFile, TableVersion
from .columns import canonical, schema_of
from .library import LOG, input_errors, locate, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

PREFIX = "delta+"
_READ = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping"})
"""Reader features whose tables can be read, the last two only where no file makes use of them."""


class Delta:
    """The `TableKind` of Delta tables."""

    name = "delta"
    title = "Delta"

    def takes(self, path: str) -> bool:
        """Whether the path begins with ``delta+``, or there is a folder ``_delta_log`` at it."""
        return path.startswith(PREFIX) or has_log(split_path(path).root)

    def at_version(self, path: str, version: str | None = None) -> TableVersion:
        """Return a version of the table. Raises as `TableKind.at_version` does."""
        at = path_of(path)
        system, root = locate(at.root)
        table = open_table(at.root, version)
        check_readable(table, at.root)
        return _version_of(table, at, system, root).where(canonical(at.values, table, redacted_path(at.root)))


KIND = Delta()


def path_of(path: str) -> TablePath:
    """Divide a path, with or without ``delta+``, into the table and its partition. Raises as `partition_path`."""
    return partition_path(path.removeprefix(PREFIX))


def has_log(root: str) -> bool:
    """Whether there is a Delta table at a path or URI; a local path that cannot be looked at is none.

    Raises `OSError` where a store does not answer: the files of a table are not the rows of it.
    """
    try:
        system, inner = locate(root)
        return bool(system.get_file_info(f"{inner}/{LOG}").type == fs.FileType.Directory)
    except OSError:
        if "://" in root:
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
    if "deletionVectors" in features and has_deletion_vectors(table, shown):
        what = f"{shown} is a Delta table with deletion vectors: rows of its files are deleted"
        raise InputError(what, "write these files anew, with REORG TABLE .. APPLY (PURGE) or a compaction")


def has_deletion_vectors(table: DeltaTable, shown: str) -> bool:
    """Whether a file of a table has rows that are deleted."""
    with input_errors(shown):
        return any(batch.num_rows for batch in table.deletion_vectors())


def values_of(actions: pa.Table, names: list[str]) -> list[Mapping[str, str | None]]:
    """Return the values of partition columns of each file, as texts."""
    columns = [_texts(actions[f"partition.{name}"]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * actions.num_rows


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    found: list[str | None] = column.cast(pa.string()).to_pylist()
    return found


def _version_of(table: DeltaTable, at: TablePath, system: fs.FileSystem, root: str) -> TableVersion:
    shown = redacted_path(at.root)
    names = list(table.metadata().partition_columns)
    with input_errors(shown):
        actions = pa.table(table.get_add_actions(flatten=True))
        version = str(table.version())
    rows = zip(*(actions[name].to_pylist() for name in _COLUMNS), values_of(actions, names), strict=True)
    files = [_file(root, shown, _relative(path, shown), *more) for path, *more in rows]
    files.sort(key=lambda file: file.path)
    return TableVersion("Delta", shown, system, root, version, schema_of(table), tuple(names), tuple(files))


def _file(
    root: str, shown: str, path: str, size: int, time: int, rows: int | None, values: Mapping[str, str | None]
) -> TableFile:
    folder = path.rpartition("/")[0]
    named = TablePath("", folder).values if folder and all("=" in name for name in folder.split("/")) else ()
    folders = named if {name for name, _ in named} == values.keys() else ()
    return TableFile(f"{root}/{path}", f"{shown}/{path}", size, rows, _time(time), tuple(values.items()), folders)


_COLUMNS = ("path", "size_bytes", "modification_time", "num_records")


def _relative(path: str, shown: str) -> str:
    if "://" in path or path.startswith("/"):
        raise InputError(f"{shown} is a Delta table with a file that is elsewhere: {path}", "read a full copy of it")
    return unquote(path)


def _time(milliseconds: int) -> str:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat()
