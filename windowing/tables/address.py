"""Paths of tables: ``delta+PATH`` or a plain path, with the partition as names ``NAME=VALUE`` at the end.

``in/day=2026-11-01`` is the part of the table ``in`` whose partition column ``day`` is ``2026-11-01``: as a folder of
that name would be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

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


def folder_name(name: str, value: str | None) -> str:
    """Return the folder that a value of a partition column has in a table of files, as Hive names it."""
    return f"{name.translate(_HIVE)}={value.translate(_HIVE) if value else _NULL}"


def folder_path(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the folders of values of partition columns, the outermost first."""
    return "/".join(folder_name(*each) for each in values)


def _value(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value in ("", _NULL) else unquote(value)
