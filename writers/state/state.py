"""A state: the window state of a job at the end of each of its units, one snapshot for each unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from pyarrow import fs

from ...windowing.errors import ConfigError, DamagedError, OutputError, printable
from ..commit.tables import table_of
from ..folders.lock import Lock, Owner, hold_lock, read_owner
from ..folders.make_folders import make_folders
from ..folders.os_errors import output_errors
from ..folders.place import Place, new_token, resolve
from ..output.overlap import are_nested
from .journal_rebuild import read_or_rebuild
from .layout import (
    FORMAT,
    JOURNAL,
    LAST_ERROR,
    LOCK,
    MARKER,
    RUNNING,
    check_name,
    has_data,
    put_json,
    read_last_error,
    read_records,
    read_running,
    refuse_content,
    remove,
)
from .recovery import recover
from .stage_files import ParquetStateFiles
from .staging import StateStaging
from .unit_record import UnitRecord, WrittenOutput

T = TypeVar("T")


@dataclass(slots=True)
class State:
    """A locked state; `open_state` makes it.

    ``root``: its folder.
    ``shown``: that folder as the user wrote it.
    ``notes``: lines for the user about what opening the state has done, such as completing a commit.
    """

    root: Path
    shown: str
    notes: tuple[str, ...]
    _records: dict[str, UnitRecord]

    @property
    def records(self) -> tuple[UnitRecord, ...]:
        """The records of all finished units, by ordinal."""
        return by_ordinal(self._records)

    def record(self, label: str) -> UnitRecord | None:
        """Return the record of a unit, None where the unit is not done."""
        return self._records.get(label)

    def newest_before(self, ordinal: int) -> UnitRecord | None:
        """Return the record of the last unit before an ordinal, or None; its window state may be gone (`has_data`)."""
        earlier = (record for record in self._records.values() if record.ordinal < ordinal)
        return max(earlier, key=lambda record: record.ordinal, default=None)

    def has_data(self, label: str) -> bool:
        """Whether a unit is done and its window state is still there; always true for the last unit.

        If the window state of the last unit is missing all the same, reading it raises `DamagedError`.
        """
        record = self._records.get(label)
        return record is not None and (record is self.records[-1] or has_data(self.root, record))

    def stage(self, label: str, name: str) -> ParquetStateFiles:
        """Return the files of one stage of a finished unit, which tasks and the driver can read."""
        return stage_files(self.root, self.shown, self._records[label], name)

    @contextmanager
    def begin(self, label: str, ordinal: int, outputs: Sequence[str]) -> Iterator[StateStaging]:
        """Begin a unit that will write to ``outputs``, paths or URIs; without a commit the context leaves no trace.

        Enter the context before opening the outputs, so that it ends after they are closed: if the run is killed, the
        next `open_state` removes what it left beside the outputs. The commit replaces a unit that is done already.
        Raises `ConfigError` where an output and the state overlap, `OutputError` where the state cannot be written or
        an earlier commit is not complete.
        """
        check_name(label, "the unit")
        tables = [table_of(path) for path in outputs]
        self._refuse_overlap([table.place for table in tables])
        if (self.root / JOURNAL).exists():
            what = f"the state {self.shown} has a unit that is not in place yet; nothing was written"
            raise OutputError(what, "run again: that unit is completed first")
        written = tuple(WrittenOutput(table.place.shown, table.address) for table in tables)
        staging = StateStaging(self.root, self.shown, label, ordinal, new_token(), written, self._records)
        try:
            with output_errors(self.shown):
                put_json(self.root / RUNNING, {"unit": label, "outputs": list(map(asdict, written))})
                staging.table_commit.open()
            yield staging
        finally:
            if not (self.root / JOURNAL).exists():
                with suppress(OSError):  # the next `open_state` removes what stays
                    remove(self.root, staging.folder)
                    (self.root / RUNNING).unlink(missing_ok=True)

    def fail(self, unit: str, message: str, when: str) -> None:
        """Record why a unit failed; ``when``: ISO 8601. The next commit of that unit deletes the note."""
        with output_errors(self.shown):
            put_json(self.root / LAST_ERROR, {"when": when, "unit": unit, "message": message})

    def _refuse_overlap(self, places: Sequence[Place]) -> None:
        own = Place(self.shown, fs.LocalFileSystem(), str(self.root))
        for place in places:
            if are_nested(place, own):
                what = f"output {place.shown} and the state {self.shown} are one folder, or one is inside the other"
                raise ConfigError(what, "keep the state in a folder apart from all outputs")


@contextmanager
def open_state(path: str, owner: Owner, named: Sequence[str] = ()) -> Iterator[State]:
    """Lock the state in the folder ``path``, which is made if it is absent, and recover from a killed run.

    Recovery completes a commit that was under way; see `State.notes`. Open the state before any output, because
    recovery may put outputs in place. ``named``: the paths that this command names; they have the secrets that a killed
    run did not record with its outputs. Raises `ConfigError`, with nothing touched, for a folder that is not local or
    holds something else, `OutputError` where another run works on the state or the file system refuses, `InputError`
    where the state is damaged.
    """
    root = _locate(path)
    with output_errors(f"the state {path}"):
        refuse_content(root, path)
    make_folders(root, f"the state {path}")
    lock = Lock(fs.LocalFileSystem(), str(root / LOCK), f"the state {path}", "choose another state")
    with hold_lock(lock, owner) as former:
        with output_errors(f"the state {path}"):
            refuse_content(root, path)
            if not (root / MARKER).exists():
                put_json(root / MARKER, {"format": FORMAT})
        notes = (
            [f"took the state {path} over from a run that died ({former.describe(owner.started)})"] if former else []
        )
        notes += recover(root, path, owner, named)
        yield State(root, path, tuple(notes), read_records(root))


def state_without_lock(path: str) -> State:
    """Return a state as it is now, for looking at: it is not locked, and nothing is changed.

    No unit may begin on it. An absent or empty folder is a state without units. Raises `ConfigError` for a folder that
    is not local or holds something else, `InputError` where the state is damaged.
    """
    root = _locate(path)
    with output_errors(f"the state {path}"):
        refuse_content(root, path)
    return State(root, path, (), read_records(root) if root.is_dir() else {})


@dataclass(frozen=True, slots=True)
class StateView:
    """A state as read without its lock.

    ``records``: the records of all finished units, by ordinal.
    ``owner``: the run that is named in the lock, None where no run is; see `lock.is_dead` for whether it still lives.
    ``pending``: the label of the unit whose commit is under way, or was killed and will be completed by the next run.
    ``running``: the label of the unit that began last and has not ended.
    ``last_error``: ``when`` (ISO 8601), ``unit`` and ``message`` of the last failure; None once that unit is done.
    ``damage``: one line for each thing that cannot be read.
    """

    records: tuple[UnitRecord, ...]
    owner: Owner | None
    pending: str | None
    running: str | None
    last_error: Mapping[str, str] | None
    damage: tuple[str, ...]


def stage_files(root: Path, shown: str, record: UnitRecord, name: str) -> ParquetStateFiles:
    """Return the files of one stage of a finished unit, for reading."""
    return ParquetStateFiles(str(root / record.label / name), f"{shown}/{record.label}/{name}", record.parts_of(name))


def is_state(path: str) -> bool:
    """Whether a path is a local folder that holds a state of any format."""
    return (Path(path) / MARKER).is_file()


def read_state(path: str) -> StateView:
    """Read a state without taking its lock or changing anything.

    Raises `ConfigError` where there is no state, or one of a newer wincli, `DamagedError` where a record is damaged.
    """
    root = _locate(path)
    if not (root / MARKER).is_file():
        raise ConfigError(f"there is no state in {path}", "name the folder that --state names")
    refuse_content(root, path)
    records = by_ordinal(read_records(root))
    damage = [text for record in records if (text := _damage_of(root, path, record, record is records[-1]))]

    def read_or_note(read: Callable[[Path], T]) -> T | None:
        try:
            return read(root)
        except DamagedError as error:
            damage.append(str(error))
            return None

    journal, running = read_or_note(read_or_rebuild), read_or_note(read_running)
    return StateView(
        records,
        read_owner(str(root / LOCK)),
        journal.label if journal else None,
        running.unit if running else None,
        read_or_note(read_last_error),
        tuple(damage),
    )


def _damage_of(root: Path, shown: str, record: UnitRecord, is_last: bool) -> str | None:
    """Say what is missing of a unit's window state, by names and sizes; None where it is complete or no longer kept.

    Another run may change the state meanwhile, so damage is reported only if the record is still the same afterwards.
    """
    try:
        for stage in record.stages if is_last or has_data(root, record) else ():
            stage_files(root, shown, record, stage.name).check()
    except DamagedError as error:
        is_same = read_records(root).get(record.label) == record and (is_last or has_data(root, record))
        return str(error) if is_same else None
    return None


def by_ordinal(records: Mapping[str, UnitRecord]) -> tuple[UnitRecord, ...]:
    """Return records sorted by ordinal."""
    return tuple(sorted(records.values(), key=lambda record: record.ordinal))


def _locate(path: str) -> Path:
    """Return the folder of a state, with symbolic links followed. Raises `ConfigError` for an unsuitable path."""
    if not path:
        raise ConfigError("the path of the state is empty", "name a folder for it")
    if "://" in path and not path.startswith("file://"):
        what = f"the state {path} is in a store, and states are kept in local folders only"
        raise ConfigError(what, "name a folder that this machine and all workers share")
    root = resolve(path)[1]
    if root != printable(root):
        what = f"the state {printable(path)} is in a folder whose name is no UTF-8: {printable(root)}"
        raise ConfigError(what, "rename that folder, or name another one for the state")
    return Path(root)
