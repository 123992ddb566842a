"""Recovery, the first thing that opening a state does: complete a killed commit, or clean up after a killed run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ...windowing.errors import ConfigError, DamagedError, OutputError, WincliError
from ..folders import object_store
from ..folders.lock import Owner, hold
from ..folders.os_errors import output_errors, reason
from ..folders.place import SUCCESS, Place, locate, restored
from ..output.output import put_in_place, remove_leftovers
from .journal import Journal, JournaledOutput, complete, discard_journal, is_half_moved, is_whole, read_journal
from .journal_rebuild import rebuild
from .layout import RUNNING, former, read_records, read_running, remove, remove_state_leftovers, staged
from .staging import is_unit_of, put_unit_in_place
from .unit_record import WrittenOutput


def recover(root: Path, shown: str, owner: Owner, named: Sequence[str] = ()) -> list[str]:
    """Make a state and the outputs of its last run all new or all old; return notes for the user.

    The caller must hold the lock of the state. ``owner``: the run that takes the locks of the outputs meanwhile.
    ``named``: paths with the secrets that are not recorded. The journal stays where this raises: `OutputError` where
    another run writes to an output or it cannot be put in place, `ConfigError` where its secret is missing,
    `DamagedError` where the journal is damaged and cannot be rebuilt.
    """
    notes: list[str] = []
    try:
        journal = read_journal(root)
    except DamagedError:
        journal = rebuild(root)
        made = "it was made anew from the unit that it named" if journal else "no unit waits to be put in place"
        notes.append(f"the journal of the state {shown} was damaged; {made}")
    with output_errors(f"the state {shown}"):
        if journal:
            notes.append(_complete(root, shown, _opened(journal, named), owner))
        discard_journal(root)
        return notes + _clean(root, owner, named)


def _opened(journal: Journal, named: Sequence[str]) -> Journal:
    return replace(journal, outputs=tuple(replace(out, path=restored(out.path, named)) for out in journal.outputs))


def _clean(root: Path, owner: Owner, named: Sequence[str]) -> list[str]:
    """Remove what the last run left beside its outputs and in the state; return notes for the user.

    There must be no journal. An output to which another run writes is left alone: that run cleans up itself.
    """
    notes = []
    try:
        running = read_running(root)
        notes += [note for output in running.outputs if (note := _tidy(output, owner, named))] if running else []
    except DamagedError as error:
        notes.append(str(error))
    (root / RUNNING).unlink(missing_ok=True)
    remove_state_leftovers(root)
    return notes


def _tidy(output: WrittenOutput, owner: Owner, named: Sequence[str]) -> str | None:
    try:
        path = restored(output.path, named)
    except ConfigError as error:
        return f"could not remove what a killed run left beside {output.shown}: {error.what}"
    try:
        place = locate(path)
        if _is_reachable(place):
            with hold(place, owner):
                remove_leftovers(place)
    except OSError as error:
        return f"could not remove what a killed run left beside {output.shown}: {reason(error)}"
    except WincliError:  # another run holds the output, or nobody can write to it
        return None
    return None


def _is_reachable(place: Place) -> bool:
    """Whether the parent folder of an output exists; if not, nothing is beside the output, and no lock is needed."""
    return not place.local or Path(place.parent).is_dir()


def _complete(root: Path, shown: str, journal: Journal, owner: Owner) -> str:
    """Put in place the rest of what a journal names, or give the unit up where something of it is gone.

    Returns a note for the user.
    """
    with ExitStack() as locks:
        outputs = [(output.place, output) for output in journal.outputs]
        for place, _ in outputs:
            if _is_reachable(place):
                locks.enter_context(hold(place, owner))
        if not _is_past_outputs(root, journal):
            lost = [place.shown for place, output in outputs if not _is_somewhere(place, output, journal.run)]
            lost += [] if is_unit_of(staged(root, journal.run), journal.run) else [f"the state {shown}"]
            if lost:
                return _give_up(root, journal, [place for place, _ in outputs], lost)
            for place, output in outputs:
                with _completing(journal, place.shown):
                    _put_in_place(place, output, journal.run)
        with _completing(journal, shown):
            if not is_unit_of(root / journal.label, journal.run):
                put_unit_in_place(root, journal.label, journal.run)
            _tidy_all([place for place, _ in outputs])
            complete(root, journal, read_records(root))
    return f"unit {journal.label} was complete when its run was killed in {shown}, and has been put in place"


def _is_past_outputs(root: Path, journal: Journal) -> bool:
    """Whether the run has begun to swap the state, which follows the last output; others may own the outputs then."""
    return is_unit_of(root / journal.label, journal.run) or former(root, journal.run).exists()


def _is_somewhere(place: Place, output: JournaledOutput, run: str) -> bool:
    folders = (place.path, place.beside("new", output.token))
    return any(is_whole(place, folder, run) for folder in folders) or is_half_moved(place, output.token, run)


def _put_in_place(place: Place, output: JournaledOutput, run: str) -> None:
    if is_whole(place, place.path, run):
        return
    if is_whole(place, place.beside("new", output.token), run):
        put_in_place(place, output.token)
        return
    staging = place.beside("new", output.token)
    for path in sorted(object_store.files(place.fs, staging), key=lambda path: path.endswith(f"/{SUCCESS}")):
        target = place.path + path.removeprefix(staging)
        place.fs.create_dir(target.rpartition("/")[0], recursive=True)
        place.fs.move(path, target)


def _tidy_all(places: Sequence[Place]) -> None:
    for place in filter(_is_reachable, places):
        remove_leftovers(place)


def _give_up(root: Path, journal: Journal, places: Sequence[Place], lost: Sequence[str]) -> str:
    """Delete what is left of a unit; return a note for the user."""
    new = [place.shown for place in places if is_whole(place, place.path, journal.run)]
    with _completing(journal, " and ".join(lost)):
        _tidy_all(places)
        remove(root, staged(root, journal.run))
        discard_journal(root)
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
