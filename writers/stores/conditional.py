"""Small objects that are read and replaced by version: a put takes effect only if nobody has put another one since.

pyarrow has no conditional put, so these objects go through obstore (extra ``cloud``). All other data goes through
`pyarrow.fs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class ConditionFailedError(Exception):
    """Somebody else has put the object, or there is one where there should be none."""


@dataclass(frozen=True, slots=True)
class Version:
    """The version of an object: its etag, and in some stores a number.

    ``etag``: the etag.
    ``number``: the number, such as the generation in Google's store; None where there is none.
    """

    etag: str | None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """An object as it was read.

    ``content``: its bytes.
    ``version``: the version to replace.
    """

    content: bytes
    version: Version


class ConditionalStore(Protocol):
    """The objects below a folder of a store; names are relative to it. `open.open_store` makes it.

    All methods raise `OSError` where the store refuses or does not answer after several tries.
    """

    def get(self, name: str) -> Object | None:
        """Return an object, None where there is none."""

    def put(self, name: str, content: bytes) -> Version:
        """Put an object, whatever is there; return its version."""

    def create(self, name: str, content: bytes) -> Version:
        """Put an object where there is none; return its version. Raises `ConditionFailedError` where there is one."""

    def replace(self, name: str, content: bytes, version: Version) -> Version:
        """Replace the version of an object that was read; return the new one.

        ``content`` must be unlike that of all other writers, so that an answer that got lost is not mistaken for a
        refusal. Raises `ConditionFailedError` where the object is gone or another version.
        """

    def list(self, beginning: str = "") -> dict[str, int]:
        """Return the sizes in bytes of all objects below a folder, by name; an empty text: below this store's own."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; one that is not there is no error."""
