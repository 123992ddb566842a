"""Partition values in folder names of the form ``key=value``."""

from __future__ import annotations

from urllib.parse import unquote

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(below: str) -> dict[str, str | None]:
    """Return the decoded ``key=value`` folders of a relative file path; the null marker of Hive gives None.

    The last name of the path is the file itself and is ignored.
    """
    values: dict[str, str | None] = {}
    for name in below.split("/")[:-1]:
        key, equals, value = name.partition("=")
        if equals and key:
            values[unquote(key)] = None if value == _NULL else unquote(value)
    return values
