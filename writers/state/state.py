"""A state: the window state of a job at the end of each of its units, one snapshot for each unit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from ...windowing.errors import ConfigError, DamagedError, OutputError, WincliError
from ..commit.contract import Progress, Table, TableCommit
from ..commit.tables import table_of
from ..output.output import are_nested
from ..places.lock import Owner
from ..places.os_errors import output_errors, reason
from ..places.place import new_token, restored
from .journal import Journal, StateStaging, complete, read_journal, read_or_rebuild, rebuild
from .layout import (
    FORMAT,
    JOURNAL,
    LAST_ERROR,
    MARKER,
    RUNNING,
    check_name,
    put_json,
    read_forgotten,
    read_json,
    read_last_error,
    read_running,
)
from .stage_files import ParquetStateFiles
from .storage import StateStorage
from .store_storage import storage_of
from .unit_record import UnitRecord, WrittenOutput, newer

# Recovery, the first thing that opening a state does: complete a killed commit, or clean up after a killed run.


_JournaledCommit = tuple[Table, TableCommit[Mapping[str, Any]]]


def recover(storage: StateStorage, owner: Owner, named: Sequence[str] = ()) -> list[str]:
    """Make a state and the outputs of its last run all new or all old; return notes for the user.

    The caller must hold the lock of the state. ``owner``: the run that takes the locks of the outputs meanwhile.
    ``named``: paths with the secrets that are not recorded. The journal stays where this raises: `OutputError` where
    another run writes to an output or it cannot be put in place, `ConfigError` where its secret is missing,
    `DamagedError` where the journal is damaged and cannot be rebuilt.
    """
    notes: list[str] = []
    try:
        journal = read_journal(storage)
    except DamagedError:
        journal = rebuild(storage)
        made = "it was made anew from the unit that it named" if journal else "no unit waits to be put in place"
        notes.append(f"the journal of the state {storage.shown} was damaged; {made}")
    with output_errors(f"the state {storage.shown}"):
        if journal:
            opened = tuple(replace(output, path=restored(output.path, named)) for output in journal.outputs)
            notes.append(_complete(storage, replace(journal, outputs=opened), owner))
        storage.delete(JOURNAL)
        return notes + _clean(storage, owner, named)


def _clean(storage: StateStorage, owner: Owner, named: Sequence[str]) -> list[str]:
    """Remove what the last run left beside its outputs and in the state; return notes for the user.

    There must be no journal. An output to which another run writes is left alone: that run cleans up itself.
    """
    notes = []
    try:
        _, outputs = read_running(storage) or ("", ())
        notes += [note for output in outputs if (note := _tidy(output, owner, named))]
    except DamagedError as error:
        notes.append(str(error))
    storage.delete(RUNNING)
    storage.remove_leftovers()
    return notes


def _tidy(output: WrittenOutput, owner: Owner, named: Sequence[str]) -> str | None:
    try:
        path = restored(output.path, named)
    except ConfigError as error:
        return f"could not remove what a killed run left beside {output.shown}: {error.what}"
    try:
        table = table_of(path)
        if table.is_reachable():
            with table.hold(owner):
                table.remove_leftovers()
    except OSError as error:
        return f"could not remove what a killed run left beside {output.shown}: {reason(error)}"
    except WincliError:  # another run holds the output, or nobody can write to it
        return None
    return None


def _complete(storage: StateStorage, journal: Journal, owner: Owner) -> str:
    """Put in place the rest of what a journal names, or give the unit up where something of it is gone.

    Returns a note for the user.
    """
    tables = [output.table for output in journal.outputs]
    shown, unit = storage.shown, storage.commit(journal.label, journal.run)
    with ExitStack() as locks:
        for table in tables:
            if table.is_reachable():
                locks.enter_context(table.hold(owner))
        unit_progress = unit.progress(journal.run)
        if unit_progress in (Progress.READY, Progress.GONE):  # else others may own the outputs, which come before it
            outputs = [(table, table.commit(out.token)) for table, out in zip(tables, journal.outputs, strict=True)]
            lost = [table.place.shown for table, out in outputs if out.progress(journal.run) is Progress.GONE]
            lost += [f"the state {shown}"] if unit_progress is Progress.GONE else []
            if lost:
                return _give_up(storage, journal, outputs, lost)
            for table, output in outputs:
                with _completing(journal, table.place.shown):
                    output.recover(journal.run)
        with _completing(journal, shown):
            unit.recover(journal.run)
            _tidy_all(tables)
            complete(storage, journal, storage.records())
    return f"unit {journal.label} was complete when its run was killed in {shown}, and has been put in place"


def _tidy_all(tables: Iterable[Table]) -> None:
    for table in tables:
        if table.is_reachable():
            table.remove_leftovers()


def _give_up(storage: StateStorage, journal: Journal, outputs: Sequence[_JournaledCommit], lost: Sequence[str]) -> str:
    """Delete what is left of a unit; return a note for the user."""
    new = [table.place.shown for table, out in outputs if out.progress(journal.run) is Progress.PUBLISHED]
    with _completing(journal, " and ".join(lost)):
        _tidy_all(table for table, _ in outputs)
        storage.commit(journal.label, journal.run).discard()
        storage.delete(JOURNAL)
    note = f"unit {journal.label} was killed while it was committed, and its part of {' and '.join(lost)} is gone"
    note += f" ({' and '.join(new)} already holds its result)" if new else ""
    return f"{note}: it counts as not done; look what is there now, then run the unit again"


@contextmanager
def _completing(journal: Journal, shown: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"unit {journal.label} was killed while it was committed, and cannot be completed in {shown}"
        raise OutputError(f"{what}: {reason(error)}", "fix that and run again") from error


T = TypeVar("T")


@dataclass(slots=True)
class State:
    """A locked state; `open_state` makes it.

    ``notes``: lines for the user about what opening the state has done, such as completing a commit.
    """

    storage: StateStorage
    notes: tuple[str, ...]
    _records: dict[str, UnitRecord]

    @property
    def shown(self) -> str:
        return self.storage.shown

    @property
    def records(self) -> tuple[UnitRecord, ...]:
        return by_ordinal(self._records)

    def record(self, label: str) -> UnitRecord | None:
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
        return record is not None and (record is self.records[-1] or self.storage.has_data(record))

    def stage(self, label: str, name: str) -> ParquetStateFiles:
        """Return the files of one stage of a finished unit, which tasks and the driver can read."""
        return self.storage.files(self._records[label], name)

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
        for place in (table.place for table in tables):
            if are_nested(place, self.storage.place):
                what = f"output {place.shown} and the state {self.shown} are one folder, or one is inside the other"
                raise ConfigError(what, "keep the state in a folder apart from all outputs")
        if self.storage.has(JOURNAL):
            what = f"the state {self.shown} has a unit that is not in place yet; nothing was written"
            raise OutputError(what, "run again: that unit is completed first")
        written = tuple(WrittenOutput(table.place.shown, table.address) for table in tables)
        staging = StateStaging(self.storage, label, ordinal, new_token(), written, self._records)
        try:
            with output_errors(self.shown):
                put_json(self.storage, RUNNING, {"unit": label, "outputs": list(map(asdict, written))})
                staging.table_commit.open()
            yield staging
        finally:
            if not self.storage.has(JOURNAL):
                with suppress(OSError, OutputError):  # the next `open_state`, or who has the state now, removes it
                    staging.table_commit.discard()
                    self.storage.delete(RUNNING)

    def forgotten(self) -> Mapping[str, str]:
        """Return the units that were taken out on purpose and have not been run since: label to the id of the run."""
        found = read_forgotten(self.storage)
        return {label: run for label, run in found.items() if label not in self._records}

    def forget(self, labels: Collection[str]) -> None:
        """Take units out of the state, in one step: they are as if they had never been run.

        Their outputs stay as they are. The caller must have seen to it that the units which are left can go on. Raises
        `OutputError`, with nothing changed where the units could not be taken out.
        """
        gone = [record for record in reversed(self.records) if record.label in labels]
        with output_errors(f"the state {self.shown}"):
            self.storage.forget(gone)
            for record in gone:
                del self._records[record.label]
            with suppress(DamagedError):  # the next run that fails writes it anew
                failure = read_last_error(self.storage)
                if failure is not None and failure["unit"] in labels:
                    self.storage.delete(LAST_ERROR)

    def prune(self, labels: Collection[str]) -> None:
        """Delete the window states of units; their records stay. Raises `OutputError`."""
        with output_errors(f"the state {self.shown}"):
            for record in self.records:
                if record.label in labels:
                    self.storage.delete_data(record)

    def fail(self, unit: str, message: str, when: str) -> None:
        """Record why a unit failed; ``when``: ISO 8601. The next commit of that unit deletes the note."""
        with output_errors(self.shown):
            put_json(self.storage, LAST_ERROR, {"when": when, "unit": unit, "message": message})


@contextmanager
def open_state(path: str, owner: Owner, named: Sequence[str] = ()) -> Iterator[State]:
    """Lock the state in the folder ``path``, which is made if it is absent, and recover from a killed run.

    Recovery completes a commit that was under way; see `State.notes`. Open the state before any output, because
    recovery may put outputs in place. ``named``: the paths that this command names; they have the secrets that a killed
    run did not record with its outputs. Raises `ConfigError`, with nothing touched, for a folder that is not local or
    holds something else, `OutputError` where another run works on the state or the file system refuses, `InputError`
    where the state is damaged.
    """
    storage = storage_of(path)
    with output_errors(f"the state {path}"):
        _refuse_content(storage)
    with storage.hold(owner) as former:
        with output_errors(f"the state {path}"):
            _refuse_content(storage)
            if not storage.has(MARKER):
                put_json(storage, MARKER, {"format": FORMAT})
        notes = (
            [f"took the state {path} over from a run that died ({former.describe(owner.started)})"] if former else []
        )
        notes += recover(storage, owner, named)
        yield State(storage, tuple(notes), storage.records())


def state_without_lock(path: str) -> State:
    """Return a state as it is now, for looking at: it is not locked, and nothing is changed.

    No unit may begin on it. An absent or empty folder is a state without units. Raises `ConfigError` for a folder that
    is not local or holds something else, `InputError` where the state is damaged.
    """
    storage = storage_of(path)
    with output_errors(f"the state {path}"):
        _refuse_content(storage)
    return State(storage, (), storage.records())


@dataclass(frozen=True, slots=True)
class StateView:
    """A state as read without its lock.

    ``owner``: the run that is named in the lock, None where no run is; see `lock.is_dead` for whether it still lives.
    ``pending``: the label of the unit whose commit is under way, or was killed and will be completed by the next run.
    ``running``: the label of the unit that began last and has not ended.
    ``last_error``: ``when`` (ISO 8601), ``unit`` and ``message`` of the last failure; None once that unit is done.
    ``damage``: one line for each thing that cannot be read.
    """

    storage: StateStorage = field(repr=False)
    records: tuple[UnitRecord, ...]
    owner: Owner | None
    pending: str | None
    running: str | None
    last_error: Mapping[str, str] | None
    damage: tuple[str, ...]


def read_state(path: str) -> StateView:
    """Read a state without taking its lock or changing anything.

    Raises `ConfigError` where there is no state, or one of a newer wincli, `DamagedError` where a record is damaged.
    """
    storage = storage_of(path)
    if not storage.has(MARKER):
        raise ConfigError(f"there is no state in {path}", "name the folder that --state names")
    _refuse_content(storage)
    records = by_ordinal(storage.records())
    damage = [text for record in records if (text := _damage_of(storage, record, record is records[-1]))]

    def read_or_note(read: Callable[[StateStorage], T]) -> T | None:
        try:
            return read(storage)
        except DamagedError as error:
            damage.append(str(error))
            return None

    journal, running = read_or_note(read_or_rebuild), read_or_note(read_running)
    return StateView(
        storage,
        records,
        storage.owner(),
        journal.label if journal else None,
        running[0] if running else None,
        read_or_note(read_last_error),
        tuple(damage),
    )


def _damage_of(storage: StateStorage, record: UnitRecord, is_last: bool) -> str | None:
    """Say what is missing of a unit's window state, by names and sizes; None where it is complete or no longer kept.

    Another run may change the state meanwhile, so damage is reported only if the record is still the same afterwards.
    """
    try:
        for stage in record.stages if is_last or storage.has_data(record) else ():
            storage.files(record, stage.name).check()
    except DamagedError as error:
        is_same = storage.records().get(record.label) == record and (is_last or storage.has_data(record))
        return str(error) if is_same else None
    return None


def by_ordinal(records: Mapping[str, UnitRecord]) -> tuple[UnitRecord, ...]:
    """Return records sorted by ordinal."""
    return tuple(sorted(records.values(), key=lambda record: record.ordinal))


def _refuse_content(storage: StateStorage) -> None:
    storage.check_folder()
    marker = read_json(storage, MARKER, {"format"}, f'write {{"format": {FORMAT}}} into it')
    if marker is not None:
        if marker["format"] != FORMAT:
            raise newer(f"the state {storage.shown}", marker["format"], FORMAT)
    elif storage.has_others():
        what = f"{storage.shown} is not empty and is not a state of wincli; nothing was touched"
        raise ConfigError(what, "choose another folder for the state, or empty that one yourself")
