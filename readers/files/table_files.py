"""Tables as inputs: the files of one version, with their partitions as folders, and the manifests of results in them.

A result of wincli in a table has files ``part-00000-TOKEN.parquet``, and ``_wincli/manifest-TOKEN.json`` in the folder
of its partition. A table reads as results only if each of its files is one of a manifest: what other programs have
added or rewritten has no order of windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath

from pyarrow import fs

from ...windowing.support.formats import SUFFIXES
from ...windowing.tables.address import TablePath, folder_path, split_path
from ...windowing.tables.table_version import TableFile, TableVersion
from .file import Located
from .listed import ListedFile
from .walk import MANIFEST

_TOKEN = re.compile(r"-([0-9a-f]{12})\.parquet$")


def is_data_file(path: str) -> bool:
    """Whether the name of a path is that of a data file, so that it need not be looked at for a table."""
    return PurePosixPath(path.lower()).suffix in SUFFIXES


def files_of(path: str, table: TableVersion) -> list[ListedFile]:
    """Return the data files of a table, relative to the path that was given."""
    at = split_path(path)
    return [_listed(file, table, _below(file, at)) for file in table.files]


def root_of(table: TableVersion) -> Located:
    """Return the location of a table."""
    return Located(table.fs, table.root, table.shown)


def virtual_paths(tables: Iterable[TableVersion]) -> dict[str, str]:
    """Return the path of each file of tables as it would be if each partition were a folder."""
    return {file.path: f"{table.root}/{file.below}" for table in tables for file in table.files}


def _listed(file: TableFile, table: TableVersion, below: str) -> ListedFile:
    place = Located(table.fs, file.path, file.shown, file.size, columns=table.columns)
    return ListedFile(place, file.size, file.mtime, below)


def _below(file: TableFile, at: TablePath) -> str:
    """Return the path of a file relative to a partition, as if partitions were folders."""
    named = {name for name, _ in at.values}
    rest = folder_path(value for value in file.folders or file.values if value[0] not in named)
    name = file.path.rpartition("/")[2]
    return f"{rest}/{name}" if rest else name


def manifests_of(path: str, table: TableVersion) -> list[ListedFile]:
    """Return the manifests of all results in a table, relative to the path; none where a file is of no result."""
    at = split_path(path)
    tokens: dict[str, str] = {}
    for file in table.files:
        found = _TOKEN.search(file.path)
        if found is None:
            return []
        tokens.setdefault(found[1], file.path)
    places = {token: _places(table.root, token, path) for token, path in tokens.items()}
    infos = table.fs.get_file_info([path for paths in places.values() for path in paths])
    there = {info.path: info for info in infos if info.type == fs.FileType.File}
    chosen = {token: next((path for path in paths if path in there), None) for token, paths in places.items()}
    if None in chosen.values():
        return []
    return [_manifest(there[path], table, at) for path in filter(None, chosen.values())]


def _places(root: str, token: str, part: str) -> list[str]:
    """Return where the manifest of a result may be that has a part: in the folder of the part, or one above it."""
    folders = [part.rpartition("/")[0]]
    while folders[-1] != root and folders[-1].startswith(f"{root}/"):
        folders.append(folders[-1].rpartition("/")[0])
    return [f"{folder}/{MANIFEST.removesuffix('.json')}-{token}.json" for folder in folders]


def _manifest(info: fs.FileInfo, table: TableVersion, at: TablePath) -> ListedFile:
    """Return a manifest under the name that one has in a folder of files."""
    folder = info.path.rpartition("/_wincli/")[0]
    inner = f"{table.root}/{at.below}" if at.below else table.root
    below = f"{folder.removeprefix(inner).lstrip('/')}/{MANIFEST}".lstrip("/")
    shown = f"{table.shown}{folder.removeprefix(table.root)}/{MANIFEST}"
    mtime = None if info.mtime_ns is None else datetime.fromtimestamp(info.mtime_ns / 1e9, UTC).isoformat()
    return ListedFile(Located(table.fs, info.path, shown), info.size, mtime, below)
