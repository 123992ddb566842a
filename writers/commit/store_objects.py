"""The objects that make up an output in a store: its manifest, its lease, its files, and what runs leave beside it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...windowing.errors import OutputError
from ...windowing.support.checksum import read_object, unseal
from ...windowing.support.file_systems import StoreAddress, begun, is_begun, with_fence
from ..places.conditional import CommitObject, ConditionalStore, Object, version_of
from ..places.lock import Owner
from ..places.open import abort_uploads, open_store
from ..places.place import MANIFEST, SUCCESS, Place, new_token

_ATTEMPT = re.compile(r"\..+\.[0-9a-f]{12}")
_OF_A_RUN = re.compile(r"(?:part|rejects)-\d+(?:-[0-9a-f]{12})?-([0-9a-f]{12})\.\w+")  # attempt, run


@dataclass(slots=True)
class StoreObjects:
    """The objects of an output; names are relative to the folder above the output.

    ``uri``: its address, with secrets.
    ``owner``: the run that holds the output; None before.
    ``own``: the ids of the results that this process writes.
    ``tried``: those of them that it has tried to publish.
    ``may_have_uploads``: whether a run that has died, or an attempt at a task, may have left an upload half way.
    """

    place: Place
    uri: str = field(repr=False)
    owner: Owner | None = None
    own: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    may_have_uploads: bool = False
    _store: ConditionalStore | None = field(default=None, repr=False)

    @property
    def store(self) -> ConditionalStore:
        """All objects of the folder above the output. Raises `ConfigError` as `open_store` does."""
        if self._store is None:
            head, sign, query = self.uri.partition("?")
            above = head.rstrip("/").rpartition("/")[0] + sign + query
            self._store = open_store(above)
        return self._store

    @property
    def lease(self) -> str:
        return posixpath.basename(self.place.lock)

    @property
    def manifest(self) -> CommitObject:
        """The manifest, or what says that there is none yet."""
        return CommitObject(self.store, self.of_output(MANIFEST), self.lease, self.place.shown, self.owner)

    def of_output(self, name: str) -> str:
        """Return the name of a file of the output."""
        return f"{posixpath.basename(self.place.path)}/{name}"

    def beside(self, role: str, token: str, name: str) -> str:
        """Return the name of a file in a folder beside the output."""
        return f"{posixpath.basename(self.place.beside(role, token))}/{name}"

    def fence(self, now: Object | None) -> None:
        """Make all that have read the manifest before unable to commit. Raises `ConditionFailedError`."""
        token = new_token()
        try:
            fenced = begun(token) if now is None else with_fence(read_object(now.content), token)
        except ValueError:  # it stays as damaged as it is
            assert now is not None
            fenced = now.content + token.encode()
        self.store.put_if(self.of_output(MANIFEST), fenced, version_of(now))

    def files(self) -> dict[str, int]:
        """Return the sizes of all objects of the output, by name in it."""
        head = self.of_output("")
        return {name.removeprefix(head): size for name, size in self.store.list(head.rstrip("/")).items()}

    def files_beside(self, role: str, token: str) -> list[str]:
        """Return the names of all files in a folder beside the output."""
        return list(self.store.list(posixpath.basename(self.place.beside(role, token))))

    def abort_uploads(self) -> None:
        """Abort the uploads to the output that nobody completes any more; this run must hold the lease."""
        address = StoreAddress.parse(self.uri)
        if self.may_have_uploads and address is not None:
            above = self.place.parent.partition("/")[2]
            head = f"{above}/" if above else ""
            inside, beside = head + self.of_output(""), head + posixpath.basename(self.place.beside("new", ""))
            abort_uploads(address, (inside, beside), lambda name: name.startswith(beside) or run_of(name) is not None)
            self.may_have_uploads = False


def parse(content: bytes) -> dict[str, Any] | None:
    """Return the manifest that an object holds; None where it says that there is no result yet, or is damaged."""
    try:
        manifest = unseal(read_object(content))
    except ValueError:
        return None
    return None if is_begun(manifest) else manifest


def has_result(content: bytes) -> bool:
    """Whether an object is a manifest, damaged or not, and does not say that there is no result yet."""
    try:
        return not is_begun(read_object(content))
    except ValueError:
        return True


def run_of(name: str) -> str | None:
    """Return the id of the run in the name of a file of a result, such as ``part-00000-ATTEMPT-RUN.csv``; else None."""
    found = _OF_A_RUN.fullmatch(name.rpartition("/")[2])
    return found[1] if found else None


def is_of_runs(name: str) -> bool:
    """Whether only runs write a file of this name to an output."""
    last = name.rpartition("/")[2]
    return bool(run_of(name) or _ATTEMPT.fullmatch(last)) or name.startswith("_wincli/") or name in ("", SUCCESS)


def check_files(shown: str, there: Mapping[str, int], manifest: Mapping[str, Any]) -> None:
    """Check that a store has the parts that tasks have written.

    ``there``: the sizes of all files of the output. Raises `OutputError` naming a part that is missing or of another
    size.
    """
    for part in (*manifest["parts"], *manifest["rejects"]):
        name, nbytes = str(part["name"]), part.get("bytes")
        if name not in there or nbytes not in (None, there[name]):
            found = "is not here" if name not in there else f"has {there[name]:,} bytes, not {nbytes:,}"
            what = f"cannot write {shown}: {name} was written by a task and {found}; nothing was written"
            raise OutputError(what, "run again")
