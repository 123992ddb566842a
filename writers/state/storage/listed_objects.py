"""The objects of a state in a store, and the list of them that was made when a run took the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ....windowing.errors import DamagedError, InputError
from ...folders.os_errors import reason, remedy
from ...stores.conditional import ConditionalStore


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
        """The names of all objects that were listed."""
        return list(self._listed())

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of all objects that were listed, by name."""
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
        """Put an object of this run's own, which may replace its unit later on."""
        self.store.put(name, content)
        self._listed()[name] = len(content)

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects that were listed."""
        gone = list(names)
        if gone:
            self.store.delete(gone)
        for name in gone:
            self._listed().pop(name, None)

    def read(self, name: str) -> bytes | None:
        """Return the content of an object, None where there is none."""
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
