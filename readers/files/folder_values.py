"""The values that folders of the form ``key=value`` give to the files below them."""

from __future__ import annotations

from urllib.parse import unquote

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(below: str) -> dict[str, str | None]:
    """Return the ``k=v`` folders of a path below its given folder, decoded; the last name is the file's."""
    values: dict[str, str | None] = {}
    for name in below.split("/")[:-1]:
        key, equals, value = name.partition("=")
        if equals and key:
            values[unquote(key)] = None if value == _NULL else unquote(value)
    return values
