"""The kinds of table that there are. The next one is a module with a `TableKind`, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from .table_version import TableKind, TableVersion

_MODULES = ("delta.kind", "iceberg.kind")
"""Modules of this package; each has a value ``KIND``. They import their libraries only inside functions."""


def kinds() -> tuple[TableKind, ...]:
    """Return all kinds."""
    return tuple(_kind(name) for name in _MODULES)


def kind_of(path: str) -> TableKind | None:
    """Return the kind of the table that a path names, or whose partition it names; None where it is no table."""
    return next((kind for kind in kinds() if kind.takes(path)), None)


def table_version(path: str, version: str | None = None) -> TableVersion | None:
    """Return a version of the table at a path; None where the path is no table. Raises as `TableKind.at_version`."""
    kind = kind_of(path)
    return None if kind is None else kind.at_version(path, version)


def _kind(name: str) -> TableKind:
    module: Any = import_module(f"{__package__}.{name}")
    return cast(TableKind, module.KIND)
