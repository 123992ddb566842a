"""The kinds of table that there are. The next one is a module with a `Table` and its `TableCommit`, and a line here."""

from __future__ import annotations

from .contract import Table
from .folder_swap import FolderTable
from .object_store import StoreTable

TABLES: tuple[type[Table], ...] = (
    FolderTable,
    StoreTable,  # takes every other URI, so it comes last
)
"""The first that takes a path is the kind of the table there."""


def table_of(path: str, shown: str | None = None) -> Table:
    """Return the table at a path or URI; ``shown``: the path as the user wrote it, where ``path`` was recorded.

    Raises `ConfigError` and `OutputError` as `place.locate` does.
    """
    return next(kind for kind in TABLES if kind.takes(path)).at(path, shown)
