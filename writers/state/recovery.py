"""Recovery, the first thing that opening a state does: complete a killed commit, or clean up after a killed run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ...windowing.errors import ConfigError, DamagedError, OutputError, WincliError
from ..commit.contract import Progress, Table, TableCommit
from ..commit.tables import table_of
from ..folders.lock import Owner
from ..folders.os_errors import output_errors, reason
from ..folders.place import restored
from .journal import Journal, complete, discard_journal, read_journal
from .journal_rebuild import rebuild
from .layout import RUNNING, read_running
from .storage.contract import StateStorage
from .unit_record import WrittenOutput

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
            notes.append(_complete(storage, _opened(journal, named), owner))
        discard_journal(storage)
        return notes + _clean(storage, owner, named)


def _opened(journal: Journal, named: Sequence[str]) -> Journal:
    return replace(journal, outputs=tuple(replace(out, path=restored(out.path, named)) for out in journal.outputs))


def _clean(storage: StateStorage, owner: Owner, named: Sequence[str]) -> list[str]:
    """Remove what the last run left beside its outputs and in the state; return notes for the user.

    There must be no journal. An output to which another run writes is left alone: that run cleans up itself.
    """
    notes = []
    try:
        running = read_running(storage)
        notes += [note for output in running.outputs if (note := _tidy(output, owner, named))] if running else []
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
        discard_journal(storage)
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
