"""The kinds of table that there are. The next one is a module with a `Table` and its `TableCommit`, and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pyarrow import fs

from ...windowing.errors import WincliError
from ...windowing.support.addresses.file_systems import reach
from ...windowing.support.addresses.redaction import redacted_path
from ..folders.lock import Owner
from ..folders.os_errors import output_errors
from .contract import Table
from .delta.table import DeltaTable
from .folder_swap import FolderTable
from .iceberg.table import IcebergTable
from .object_store import StoreTable

TABLES: tuple[type[Table], ...] = (
    DeltaTable,  # also where a path leads to one, so it comes first
    FolderTable,
    IcebergTable,
    StoreTable,  # takes every other URI, so it comes last
)
"""The first that takes a path is the kind of the table there."""


def is_by_version(table: Table) -> bool:
    """Whether a table says itself which files are its own, so that others may be in their folder."""
    return isinstance(table, DeltaTable | IcebergTable)


def table_of(path: str, shown: str | None = None) -> Table:
    """Return the table at a path or URI; ``shown``: the path as the user wrote it, where ``path`` was recorded.

    Raises `ConfigError` and `OutputError` as `place.locate` does, `OutputError` also where a store does not answer.
    """
    with output_errors(redacted_path(path) if shown is None else shown):
        reach(path)  # with few tries; what follows makes many
        kind = next(kind for kind in TABLES if kind.takes(path))
    return kind.at(path, shown)


def remove_leftovers_beside(paths: Iterable[str], owner: Owner) -> None:
    """Remove what killed runs have left beside complete outputs, to which nobody writes now: a lock, a former result.

    An output that another run holds is left alone. Outputs in one folder cost one listing, where nothing is left.
    """
    left: dict[str, set[str]] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        if left.get(folder) == set():
            continue
        table = table_of(path)
        place = table.place
        if folder not in left:
            infos = place.fs.get_file_info(fs.FileSelector(place.parent, allow_not_found=True))
            left[folder] = {info.base_name for info in infos if ".wincli-" in info.base_name}
        if any(name == place.lock.rpartition("/")[2] or place.role_of(name) for name in left[folder]):
            with suppress(OSError, WincliError), table.hold(owner):
                table.remove_leftovers()
