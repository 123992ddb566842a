"""A state in an object store: files under names of their run, and one object, the head, that says which are the unit.

``LABEL/.RUN/unit.json`` is the record of a unit that the run RUN has written, ``LABEL/.RUN/STAGE/`` its window state.
Names are never reused, so a run that lost the state, and goes on later, can only write and delete files of its own. The
head (``.journal.json``) is replaced by version. What other runs have left is deleted by a list that was made before
this run took the head: no run that took it since can have a file in it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...windowing.errors import ConfigError, DamagedError, InputError, OutputError, printable
from ...windowing.support.address import Address
from ...windowing.support.checksum import read_object, seal, unseal
from ...windowing.support.file_systems import StoreAddress, reach
from ...windowing.support.redaction import redacted_path
from ..commit.contract import Progress
from ..places.conditional import (
    CommitObject,
    ConditionalStore,
    Object,
    Version,
    hold_lease,
    holder_of,
    refuses_stale_puts,
    version_of,
)
from ..places.lock import Owner
from ..places.open import open_store
from ..places.os_errors import make_folders, output_errors, reason, remedy
from ..places.place import Place, new_token, resolve
from .layout import FORGOTTEN, JOURNAL, LOCK, MARKER, RECORD, RUNNING, note_forgotten
from .local_storage import LocalFolder
from .stage_files import ParquetStateFiles, StoreStage, is_part
from .storage import StateStorage, UnitCommit
from .unit_record import UnitRecord

# The head of a state in a store: the one object that decides what the state is, replaced by version alone.
#
# It says which run of each unit is the unit, which commit is under way, and which unit. Each run that takes the state
# replaces the head first, by the same content with another ``fence``. So whoever has lost the state finds another
# version when it would write its journal or publish its unit, and nothing that it does takes effect.


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

    ``tried``: the content of a put that was not answered, so that nobody knows whether it took effect; else None.
    """

    object: CommitObject
    head: Head
    version: Version
    tried: bytes | None = None

    def put(self, head: Head) -> None:
        """Replace the head.

        Raises `OutputError` where another run has taken the state, `OSError` where the store does not answer.
        """
        if self.tried is not None:
            found = self.object.read()
            if found is not None and found.content == self.tried:
                self.head, self.version = Head.parse(self.tried, self.object.name), found.version
            elif found is None or found.version != self.version:
                raise self.object.lost()
            self.tried = None
        content = self.tried = head.to_bytes()
        try:
            self.version = self.object.put(content, self.version)
        except OutputError:
            self.tried = None
            raise
        self.head, self.tried = head, None

    def loss(self) -> OutputError | None:
        """Return the error of a run that has lost the state, None while this run still has it. Raises `OSError`."""
        found = self.object.read()
        is_own = found is not None and found.version == self.version
        return None if is_own or self.tried is not None else self.object.lost()


# The objects of a state in a store, and the list of them that was made when a run took the state.


@dataclass(slots=True)
class ListedObjects:
    """The objects below a state. Methods raise `InputError` where they cannot be read, `OSError` where not deleted.

    ``there``: sizes by name: of all objects as they were listed first, and since then of own ones; None: not listed.
    """

    store: ConditionalStore = field(repr=False)
    shown: str
    there: dict[str, int] | None = field(default=None, repr=False)

    @property
    def sizes(self) -> dict[str, int]:
        if self.there is None:
            with self.reading():
                self.there = self.store.list()
        return self.there

    def below(self, folder: str) -> list[str]:
        """Return the names of the objects that were listed below a folder."""
        return [name for name in self.sizes if name.startswith(f"{folder}/")]

    def list_own(self, folder: str) -> dict[str, int]:
        """List the objects below a folder to which only this run writes."""
        found = {name: size for name, size in self.store.list(folder).items() if name.startswith(f"{folder}/")}
        self.sizes.update(found)
        return found

    def put(self, name: str, content: bytes) -> None:
        self.store.put(name, content)
        self.sizes[name] = len(content)

    def delete(self, names: Iterable[str]) -> None:
        gone = list(names)
        if gone:
            self.store.delete(gone)
        for name in gone:
            self.sizes.pop(name, None)

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


# The unit of a state in a store: its files are written where they stay, and the head names the run.


@dataclass(frozen=True, slots=True)
class UnitPut(UnitCommit):
    """A `UnitCommit` of a store.

    ``token``: the id of the run, which is in the names of its files.
    """

    state: StoreFolder
    label: str
    token: str

    @property
    def staging(self) -> str:
        return f"{self.label}/.{self.token}"

    def open(self) -> None:
        """Do nothing: a store has no folders, and the files stay under names that have the id of the run."""

    def stage(self, name: str) -> ParquetStateFiles:
        return ParquetStateFiles(
            StoreStage(self.state.uri, f"{self.staging}/{name}"), f"{self.state.shown}/{self.label}/{name}"
        )

    def prepare(self, record: UnitRecord) -> None:
        with output_errors(f"{self.state.shown}/{self.label}"):
            there = self.state.objects.list_own(self.staging)
            for stage in record.stages:
                shown, folder = f"{self.state.shown}/{self.label}/{stage.name}", f"{self.staging}/{stage.name}/"
                for part in stage.parts:
                    if there.get(folder + part.name) != part.nbytes:
                        what = f"cannot write {shown}: {part.name} is not as its task wrote it; nothing was written"
                        raise OutputError(what, "run again")
                recorded = {part.name for part in stage.parts}
                names = (name.removeprefix(folder) for name in sorted(there) if name.startswith(folder))
                if stray := next((name for name in names if is_part(name) and name not in recorded), None):
                    raise OutputError(f"cannot write {shown}: no task knows of {stray}; nothing was written")
            self.state.objects.put(f"{self.staging}/{RECORD}", record.to_json().encode())

    def publish(self) -> None:
        """Let the head name this run. Raises `OutputError` where another run has taken the state."""
        head = self.state.head()
        self.state.change(replace(head, units={**head.units, self.label: self.token}))

    def progress(self, run: str) -> Progress:
        if self._is_published(run):
            return Progress.PUBLISHED
        return (
            Progress.GONE if self.state.objects.store.get(f"{self.label}/.{run}/{RECORD}") is None else Progress.READY
        )

    def discard(self) -> None:
        if not self._is_published(self.token):
            self.state.objects.list_own(self.staging)
            self.state.objects.delete(self.state.objects.below(self.staging))

    def settle(self) -> None:
        own = f"{self.staging}/"
        self.state.objects.delete(name for name in self.state.objects.below(self.label) if not name.startswith(own))

    def _is_published(self, run: str) -> bool:
        return self.state.head().units.get(self.label) == run


_PROBE = ".wincli-probe"
_OF_A_RUN = re.compile(r"([^/]+)/\.([0-9a-f]{12})/")
_RECORD_NAME = re.compile(_OF_A_RUN.pattern + RECORD)
_AT_ONCE = 16  # a request for a small object only waits for the answer


@dataclass(slots=True)
class StoreFolder:
    """A `StateStorage` in an object store.

    ``uri``: its URI, with the secrets that it has.
    ``held``: the head, while this run holds the state.
    """

    uri: str = field(repr=False)
    shown: str
    objects: ListedObjects
    held: HeldHead | None = None

    @classmethod
    def at(cls, uri: str) -> StoreFolder:
        """Return the state at a URI. Raises `ConfigError` where the extra or credentials are missing."""
        shown = redacted_path(uri)
        return cls(uri.rstrip("/"), shown, ListedObjects(open_store(uri.rstrip("/")), shown))

    @property
    def place(self) -> Place:
        with output_errors(f"the state {self.shown}"):
            return Place(self.shown, *resolve(self.uri))

    def path_of(self, name: str) -> str:
        return f"{self.shown.partition('?')[0].rstrip('/')}/{name}"

    def read(self, name: str) -> bytes | None:
        if name not in (JOURNAL, RUNNING):  # these are in the head
            return self.objects.read(name)
        head = self.head()
        text = head.journal if name == JOURNAL else head.running
        return None if text is None else text.encode()

    def put(self, name: str, text: str) -> None:
        if name == JOURNAL:
            self.change(replace(self.head(), journal=text))
        elif name == RUNNING:
            self.change(replace(self.head(), running=text))
        elif self.held is None or self.held.loss() is None:  # who has the state now wants no notes of another run
            self.objects.store.put(name, text.encode())

    def delete(self, name: str) -> None:
        head = self.head() if name in (JOURNAL, RUNNING) else Head()
        if name == JOURNAL and (head.journal is not None or self._is_unsure):
            self.change(replace(head, journal=None))
        elif name == RUNNING and head.running is not None:
            self.change(replace(head, running=None))
        elif name not in (JOURNAL, RUNNING):
            self.objects.store.delete([name])

    def has(self, name: str) -> bool:
        """Whether there is a document; a journal also where the store did not say whether it took it."""
        return (name == JOURNAL and self._is_unsure) or self.read(name) is not None

    def check_folder(self) -> None:
        with self.objects.reading():
            try:
                reach(self.uri)
            except pa.ArrowInvalid as error:
                raise ConfigError(f"cannot make sense of the path {self.shown}", "write s3://BUCKET/FOLDER") from error

    def has_others(self) -> bool:
        return any(name not in (LOCK, JOURNAL) and not name.startswith(_PROBE) for name in self.objects.sizes)

    @contextmanager
    def hold(self, owner: Owner) -> Iterator[Owner | None]:
        """Hold the lease of the state, and take its head.

        Raises `ConfigError` where the store takes puts whose condition does not hold.
        """
        store, shown = self.objects.store, f"the state {self.shown}"
        with output_errors(shown):
            if not refuses_stale_puts(store, _PROBE):
                what = f"{shown} is in a store that ignores the conditions of puts, so two runs could take it at once"
                do = "keep the state in a local folder, or in S3, Google or Azure"
                raise ConfigError(f"{what}; nothing was written", do)
        with hold_lease(store, LOCK, owner, shown, "choose another state") as former:
            with output_errors(shown):
                decides = CommitObject(store, JOURNAL, LOCK, shown, owner)
                found = decides.read()
                self.objects.there = store.list()
                head = self._head_in(found)
                self.held = HeldHead(decides, head, decides.put(head.to_bytes(), version_of(found)))
            try:
                yield former
            except (ConfigError, DamagedError) as error:  # if another run has the state now, this one met its results
                with suppress(OSError):
                    if self.held is not None and (lost := self.held.loss()) is not None:
                        raise lost from error
                raise
            finally:
                self.held = self.objects.there = None

    def owner(self) -> Owner | None:
        """Return the run that holds the lease; None where it has expired."""
        with self.objects.reading():
            holder = holder_of(self.objects.store, LOCK)
        return holder.owner if holder is not None and time.time() < holder.expires else None

    def head(self) -> Head:
        """Return the head: of this run, or as it is now."""
        if self.held is not None:
            return self.held.head
        with self.objects.reading():
            found = self.objects.store.get(JOURNAL)
        return self._head_in(found)

    def change(self, head: Head) -> None:
        """Replace the head. Raises as `HeldHead.put` does."""
        assert self.held is not None
        self.held.put(head)

    def records(self) -> dict[str, UnitRecord]:
        if self.held is None:
            self.objects.there = None
        units = self.head().units
        found = {record.label: record for record in self._records(units.items())}
        if self.held is None and len(found) < len(units) and self.head().units != units:  # another run replaces units
            return self.records()
        return found

    def has_data(self, record: UnitRecord) -> bool:
        return bool(self._data_of(record))

    def files(self, record: UnitRecord, stage: str) -> ParquetStateFiles:
        folder = StoreStage(self.uri, f"{record.label}/.{record.run}/{stage}")
        return ParquetStateFiles(folder, f"{self.shown}/{record.label}/{stage}", record.parts_of(stage))

    def delete_data(self, record: UnitRecord) -> None:
        self.objects.delete(self._data_of(record))

    def forget(self, records: Iterable[UnitRecord]) -> None:
        gone = {record.label: record for record in records}
        # The document comes first: it means nothing for a unit that the head names.
        note_forgotten(self, gone.values())
        head = self.head()
        self.change(replace(head, units={label: run for label, run in head.units.items() if label not in gone}))
        for record in gone.values():
            self.objects.delete(self.objects.below(f"{record.label}/.{record.run}"))

    def commit(self, label: str, token: str) -> UnitCommit:
        return UnitPut(self, label, token)

    def prepared(self) -> Mapping[str, UnitRecord | None]:
        """Return nothing: a journal is a part of the head, and never damaged alone."""
        return {}

    def copy_to(self, target: Path) -> None:
        local = LocalFolder(target, str(target))
        make_folders(target, f"the state {target}")
        local.put(MARKER, self.objects.read_recorded(MARKER).decode())
        if (forgotten := self.read(FORGOTTEN)) is not None:
            local.put(FORGOTTEN, forgotten.decode())
        for record in self.records().values():
            folder = target / record.label
            folder.mkdir()
            (folder / RECORD).write_text(record.to_json(), encoding="utf-8")
            for stage in record.stages if self.has_data(record) else ():
                (folder / stage.name).mkdir()
                for part in stage.parts:
                    name = f"{stage.name}/{part.name}"
                    (folder / name).write_bytes(self.objects.read_recorded(f"{record.label}/.{record.run}/{name}"))

    def leftovers(self) -> Mapping[str, int]:
        units = self.head().units

        def is_left(name: str) -> bool:
            found = _OF_A_RUN.match(name)
            return units.get(found[1]) != found[2] if found else name.startswith(f"{_PROBE}-")

        return {name: size for name, size in self.objects.sizes.items() if is_left(name)}

    def remove_leftovers(self) -> None:
        self.objects.delete(self.leftovers())

    @property
    def _is_unsure(self) -> bool:
        return self.held is not None and self.held.tried is not None

    def _head_in(self, found: Object | None) -> Head:
        return self._without_head() if found is None else Head.parse(found.content, self.path_of(JOURNAL))

    def _without_head(self) -> Head:
        """Return the head of a state that has none: it is new, or somebody has deleted it.

        Then the newest run of each unit counts. Raises `ConfigError` where the units are those of a local folder.
        """
        if any(re.fullmatch(rf"[^/]+/{RECORD}", name) for name in self.objects.sizes):
            what = f"{self.shown} has the units of a state that was in a local folder"
            raise ConfigError(what, "copy it with wincli.read_state and wincli.write_state")
        names = [(found[1], found[2]) for name in self.objects.sizes if (found := _RECORD_NAME.fullmatch(name))]
        records = sorted(self._records(names), key=lambda record: (record.finished, record.run))
        return Head({record.label: record.run for record in records})

    def _records(self, units: Iterable[tuple[str, str]]) -> list[UnitRecord]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(lambda unit: self._record(*unit), units)
            return [record for record in found if record is not None]

    def _record(self, label: str, run: str) -> UnitRecord | None:
        """Return the record of a unit, None where the folder of the unit is gone as a whole."""
        name = f"{label}/.{run}/{RECORD}"
        content = self.objects.read(name)
        if content is not None:
            return UnitRecord.from_json(content, self.path_of(name))
        with self.objects.reading():
            if not self.objects.store.list(label):
                return None
        raise DamagedError(f"{self.path_of(name)} is gone", "restore it, or delete that whole unit and run it again")

    def _data_of(self, record: UnitRecord) -> list[str]:
        own = self.objects.below(f"{record.label}/.{record.run}")
        return [name for name in own if not name.endswith(f"/.{record.run}/{RECORD}")]


# The kinds of place where a state may be. The next one is a module with a `StateStorage`, and a line here.


def storage_of(path: str) -> StateStorage:
    """Return the place of a state, with symbolic links followed. Raises `ConfigError` for an unsuitable path."""
    if not path:
        raise ConfigError("the path of the state is empty", "name a folder for it")
    if not Address.of(path).is_local:
        shown, address = redacted_path(path), StoreAddress.parse(path)
        if address is None:
            what = f"states are kept in local folders and on s3://, gs:// and abfs:// only, not on {shown}"
            raise ConfigError(what, "name another folder")
        if not address.bucket or not address.path:
            raise ConfigError(f"the state {shown} is the root of a store", "name a folder inside it")
        return StoreFolder.at(path)
    root = resolve(path)[1]
    if root != printable(root):
        what = f"the state {printable(path)} is in a folder whose name is no UTF-8: {printable(root)}"
        raise ConfigError(what, "rename that folder, or name another one for the state")
    return LocalFolder(Path(root), path)
