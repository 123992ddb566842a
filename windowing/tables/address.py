"""Paths of tables: ``delta+PATH`` or a plain path, with the partition as names ``NAME=VALUE`` at the end.

``in/day=2026-11-01`` is the part of the table ``in`` whose partition column ``day`` is ``2026-11-01``: as a folder of
that name would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from ..errors import ConfigError, shown
from ..support.addresses.redaction import redacted_path

_HIVE = {ord(letter): f"%{ord(letter):02X}" for letter in "\x7f\"#%'*/:=?\\{[]^" + "".join(map(chr, range(32)))}
_NULL = "__HIVE_DEFAULT_PARTITION__"

Values = tuple[tuple[str, "str | None"], ...]
"""Names and values of partition columns, as texts; None for null."""


@dataclass(frozen=True, slots=True)
class TablePath:
    """A path that names a table, or a partition of one.

    ``root``: the path or URI of the table.
    ``below``: the end of the path that names a partition, ``NAME=VALUE/..``; empty for the whole table.
    """

    root: str
    below: str

    @property
    def values(self) -> Values:
        """The partition columns that the path names, in its order."""
        return tuple(map(_value, self.below.split("/"))) if self.below else ()


def split_path(path: str) -> TablePath:
    """Divide a path into that of a table and the names ``NAME=VALUE`` at its end."""
    root, below = path.rstrip("/") or path, ""
    while True:
        head, _, name = root.rpartition("/")
        if not head or name.find("=") < 1:
            return TablePath(root, below)
        root, below = head, f"{name}/{below}" if below else name


def partition_path(path: str) -> TablePath:
    """Divide the address of a table as `split_path` does.

    Raises `ConfigError` where a name or a value of its partition is no plain one: it would lead out of the table, or to
    another partition than readers take it for.
    """
    if "\0" in path:
        raise ConfigError(f"{redacted_path(path)} is no path: it has a character NUL", "write the path without it")
    found = split_path(path)
    names = [name for name, _ in found.values]
    for folder, (name, value) in zip(found.below.split("/"), found.values, strict=False):
        if leads_elsewhere(name) or leads_elsewhere(value or "") or names.count(name) > 1:
            why = "is named twice" if names.count(name) > 1 else "is no name of a partition"
            raise ConfigError(f"{redacted_path(path)}: {folder} {why}", "write each partition once, as day=2026-11-02")
    return found


def leads_elsewhere(name: str) -> bool:
    """Whether a name has characters that no path should have, or is a way to the folder above."""
    return shown(name) != name or any(part in (".", "..") for part in re.split(r"[/\\]", name))


def folder_name(name: str, value: str | None) -> str:
    """Return the folder that a value of a partition column has in a table of files, as Hive names it."""
    return f"{name.translate(_HIVE)}={value.translate(_HIVE) if value else _NULL}"


def folder_path(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the folders of values of partition columns, the outermost first."""
    return "/".join(folder_name(*each) for each in values)


def _value(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value in ("", _NULL) else unquote(value)
