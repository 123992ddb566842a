"""The head of a state in a store: the one object that decides what the state is, replaced by version alone.

It says which run of each unit is the unit, which commit is under way, and which unit. Each run that takes the state
replaces the head first, by the same content with another ``fence``. So whoever has lost the state finds another version
when it would write its journal or publish its unit, and nothing that it does takes effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from ...windowing.errors import DamagedError, InputError, OutputError
from ...windowing.support.checksum import read_object, seal, unseal
from ..places.conditional import ConditionalStore, ConditionFailedError, Object, Version, lost_to
from ..places.lock import Owner
from ..places.os_errors import reason, remedy
from ..places.place import new_token
from .layout import JOURNAL, LOCK

_KEYS = {"units", "journal", "running"}
_RESTORE = (
    "restore an earlier version of that object; or delete it: then the newest run of each unit counts, and "
    "wincli verify says which outputs are not of that run"
)


@dataclass(frozen=True, slots=True)
class Head:
    """What the head says.

    ``units``: label of each finished unit to the id of the run whose files are the unit.
    ``journal``: the text of the journal; None where no commit is under way.
    ``running``: the text of the document of the unit under way; None where none is.
    """

    units: Mapping[str, str] = field(default_factory=dict)
    journal: str | None = None
    running: str | None = None

    def to_bytes(self) -> bytes:
        """Return the content of the object, which is like no other."""
        value = {"fence": new_token(), **seal(asdict(self))}
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def parse(cls, content: bytes, path: str) -> Head:
        """Read what `to_bytes` has made. Raises `DamagedError`, which names ``path``, for anything else."""
        try:
            value: dict[str, Any] = unseal(read_object(content))
            if value.keys() != _KEYS or not isinstance(value["units"], dict):
                raise ValueError("its keys are others")
        except ValueError as error:
            raise DamagedError(f"{path} is damaged: it is not what was written there", _RESTORE) from error
        return cls(value["units"], value["journal"], value["running"])


@dataclass(slots=True)
class HeldHead:
    """The head of a state that this run holds.

    ``objects``: the store.
    ``owner``: this run.
    ``shown``: the state as the user wrote it.
    ``head``: what the head says.
    ``version``: the version of the object.
    ``tried``: the content of a put that was not answered, so that nobody knows whether it took effect; else None.
    """

    objects: ConditionalStore
    owner: Owner
    shown: str
    head: Head
    version: Version
    tried: bytes | None = None

    def put(self, head: Head) -> None:
        """Replace the head.

        Raises `OutputError` where another run has taken the state, `OSError` where the store does not answer.
        """
        if self.tried is not None:
            found = self.objects.get(JOURNAL)
            if found is not None and found.content == self.tried:
                self.head, self.version = Head.parse(self.tried, self.shown), found.version
            elif found is None or found.version != self.version:
                raise self._is_lost()
            self.tried = None
        content = self.tried = head.to_bytes()
        try:
            self.version = self.objects.replace(JOURNAL, content, self.version)
        except ConditionFailedError as error:
            self.tried = None
            raise self._is_lost() from error
        self.head, self.tried = head, None

    def loss(self) -> OutputError | None:
        """Return the error of a run that has lost the state, None while this run still has it. Raises `OSError`."""
        found = self.objects.get(JOURNAL)
        is_own = found is not None and found.version == self.version
        return None if is_own or self.tried is not None else self._is_lost()

    def _is_lost(self) -> OutputError:
        return lost_to(self.objects, LOCK, self.owner, f"the state {self.shown}")


def take(objects: ConditionalStore, found: Object | None, head: Head, owner: Owner, shown: str) -> HeldHead:
    """Replace the head by one with another ``fence``, or make it; ``found``: the object that it was read from.

    Raises `OutputError` where another run does the same, `OSError` where the store does not answer.
    """
    content = head.to_bytes()
    try:
        version = objects.replace(JOURNAL, content, found.version) if found else objects.create(JOURNAL, content)
    except ConditionFailedError as error:
        raise lost_to(objects, LOCK, owner, f"the state {shown}") from error
    return HeldHead(objects, owner, shown, head, version)


# The objects of a state in a store, and the list of them that was made when a run took the state.


@dataclass(slots=True)
class ListedObjects:
    """The objects below a state. Methods raise `InputError` where they cannot be read, `OSError` where not deleted.

    ``store``: the store.
    ``shown``: the state as the user wrote it.
    ``there``: sizes by name: of all objects as they were listed first, and since then of own ones; None: not listed.
    """

    store: ConditionalStore = field(repr=False)
    shown: str
    there: dict[str, int] | None = field(default=None, repr=False)

    @property
    def names(self) -> list[str]:
        return list(self._listed())

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._listed()

    def below(self, folder: str) -> list[str]:
        """Return the names of the objects that were listed below a folder."""
        return [name for name in self._listed() if name.startswith(f"{folder}/")]

    def list_own(self, folder: str) -> dict[str, int]:
        """List the objects below a folder to which only this run writes."""
        found = {name: size for name, size in self.store.list(folder).items() if name.startswith(f"{folder}/")}
        self._listed().update(found)
        return found

    def put(self, name: str, content: bytes) -> None:
        self.store.put(name, content)
        self._listed()[name] = len(content)

    def delete(self, names: Iterable[str]) -> None:
        gone = list(names)
        if gone:
            self.store.delete(gone)
        for name in gone:
            self._listed().pop(name, None)

    def read(self, name: str) -> bytes | None:
        with self.reading():
            found = self.store.get(name)
        return None if found is None else found.content

    def read_recorded(self, name: str) -> bytes:
        """Return the content of an object that a record names. Raises `DamagedError` where there is none."""
        content = self.read(name)
        if content is None:
            raise DamagedError(f"{self.shown}/{name} is gone", "restore it, or run its unit again with --redo")
        return content

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an `OSError` of the body into an `InputError`."""
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot read the state {self.shown}: {reason(error)}", remedy(error)) from error

    def _listed(self) -> dict[str, int]:
        if self.there is None:
            with self.reading():
                self.there = self.store.list()
        return self.there
