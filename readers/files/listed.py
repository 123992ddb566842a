"""A file of the input, as the listing found it."""

from __future__ import annotations

from dataclasses import dataclass

from .file import Located


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the input.

    ``place``: where the file is.
    ``size``: its size in bytes.
    ``mtime``: its modification time, ISO 8601 in UTC; None where it is unknown.
    ``below``: its path relative to a base, else to the folder that was given, else to the part of a glob before the
        first wildcard.
    """

    place: Located
    size: int
    mtime: str | None
    below: str

    @property
    def folder(self) -> str:
        """The path of the folder of the result that this manifest is of, with a slash at the end."""
        return self.place.path.rpartition("_wincli/")[0]
