"""``wincli state``: the units of a state listed, taken out again, and what it no longer needs deleted."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ....conf.ranges import compact
from ....windowing.errors import ConfigError, OutputError, shown
from ....windowing.support.amounts import count_of, size
from ....windowing.support.redaction import redacted_path
from ....writers.places.lock import is_dead
from ....writers.state.layout import is_state
from ....writers.state.state import State, open_state, read_state, state_without_lock
from ....writers.state.tables import record_of
from ....writers.state.unit_record import UnitRecord
from ...console.messages import OK, USAGE, Messages
from ...console.streams import clean, json_text, say
from ...console.table import side_by_side
from ...run.context import owner
from ...run.late_rows import unit_of


@dataclass(frozen=True, slots=True)
class Choice:
    """A change of a state that is not made yet.

    ``words``: what it does, a line each, for the user.
    ``forgotten``: the units that it takes out of the state, oldest first.
    ``pruned``: the units whose window states it deletes, oldest first.
    ``nothing``: why there is nothing to do; None where there is something.
    """

    words: tuple[str, ...] = ()
    forgotten: tuple[UnitRecord, ...] = ()
    pruned: tuple[UnitRecord, ...] = ()
    nothing: str | None = None


Choose = Callable[[State], Choice]


def print_units(path: str, as_json: bool) -> int:
    """Print the units of a state: a table, or one JSON object. Raises what `read_state` raises."""
    view = read_state(path)
    state = state_without_lock(path)
    units: list[dict[str, Any]] = [
        {
            "unit": record.label,
            "ordinal": record.ordinal,
            "finished": record.finished,
            "open": sum(stage.open.windows for stage in record.stages if stage.open),
            "kept": is_kept(state, record),
            "bytes": nbytes_of(record),
            "run": record.run,
            "state": record.state,
            "began": record.began,
            "previous": record.previous,
        }
        for record in view.records
    ]
    if as_json:
        fields = {"path": redacted_path(path), "units": units, "forgotten": dict(state.forgotten())}
        say(json_text(fields, 2))
        return OK
    nbytes = sum(unit["bytes"] for unit in units if unit["kept"])
    kept = sum(unit["kept"] for unit in units)
    _say(f"{path}: {count_of(len(units), 'unit')}, {kept:,} with a window state, {size(nbytes)}")
    if units:
        rows = [("unit", "ordinal", "finished", "open windows", "bytes", "id")]
        for unit in units:
            kept = size(unit["bytes"]) if unit["kept"] else "not kept"
            rows.append((unit["unit"], f"{unit['ordinal']}", unit["finished"], f"{unit['open']}", kept, unit["run"]))
        _say(*side_by_side([tuple(map(shown, row)) for row in rows], right=(1, 3)))
    if state.forgotten():
        _say(f"forgotten, and not run since: {', '.join(sorted(state.forgotten()))}")
    return OK


def roll_back(path: str, label: str, is_sure: bool, messages: Messages) -> int:
    """Take all units after a unit out of a state; return the exit code. Raises what `_change` raises."""
    return _change(path, lambda state: rollback(state, label), is_sure, messages)


def forget_unit(path: str, label: str, is_sure: bool, messages: Messages) -> int:
    """Take a unit out of a state; return the exit code. Raises what `_change` raises."""
    return _change(path, lambda state: forget(state, label), is_sure, messages)


def collect_garbage(path: str, keep: int | None, is_dry: bool, is_sure: bool, messages: Messages) -> int:
    """Delete what a state no longer needs, or print what that is; return the exit code. Raises as `_change` does."""
    # What killed runs have left. Raises `OutputError` where a run is at work on the state.
    view = read_state(path)
    if view.owner is not None and not is_dead(view.owner, socket.gethostname()):
        who = f"process {view.owner.pid} on {view.owner.host}, started {view.owner.started}"
        raise OutputError(f"another run is at work on the state {path} ({who})", "wait until it has ended")
    left = view.storage.leftovers()
    for name, nbytes in left.items():
        _say(f"{name} was left by a killed run and is deleted, {size(nbytes)}")
    if is_dry:
        choice = collect(state_without_lock(path), keep)
        _say(*choice.words or [str(choice.nothing)], "nothing was deleted: this was a look")
        return OK
    return _change(path, lambda state: collect(state, keep), is_sure, messages)


def _change(path: str, choose: Choose, is_sure: bool, messages: Messages) -> int:
    """Print what a change does, make it if the user is sure, and return the exit code.

    Raises `ConfigError` where there is no state, where the change is not possible, and where nobody can be asked;
    `OutputError` where another run works on the state or where it cannot be written.
    """
    if not is_state(path):
        raise ConfigError(f"there is no state in {path}", "name the folder that --state names")
    looked = None
    if not is_sure:
        looked = choose(state_without_lock(path))
        if looked.nothing is None:
            _say(*looked.words)
            # Ask on the terminal. Raises `ConfigError` where there is none.
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise ConfigError("nothing was changed, as nobody can be asked here", "say --yes to go on")
            if not messages.ask("go on?"):
                _say("nothing was changed")
                return USAGE
    with open_state(path, owner()) as state:
        for note in state.notes:
            messages.note(note)
        choice = choose(state)
        if looked is not None and choice != looked:
            raise ConfigError(f"the state {path} has changed since; nothing was done", "look again")
        if looked is None:
            _say(*choice.words)
        if choice.nothing is not None:
            _say(f"nothing to do: {choice.nothing}")
            return OK
        if choice.forgotten:
            state.forget({record.label for record in choice.forgotten})
        if choice.pruned:
            state.prune({record.label for record in choice.pruned})
    _say("done")
    return OK


def _say(*lines: str) -> None:
    say(*map(clean, lines))


def rollback(state: State, label: str) -> Choice:
    """Choose the units after a unit, so that the state is as it was after that.

    Raises `ConfigError` where there is no such unit, or where no unit could begin from what is left.
    """
    record = record_of(state.records, label, state.shown)
    later = tuple(each for each in state.records if each.ordinal > record.ordinal)
    if not later:
        return Choice(nothing=f"{label} is the last unit of {state.shown}")
    if not is_kept(state, record):
        what = f"{state.shown} no longer keeps the window state of {label}, so no unit could begin from it"
        kept = [each for each in later if is_kept(state, each)]
        do = f"roll back to one of {compact(map(unit_of, kept))}; a higher --keep keeps more"
        raise ConfigError(f"{what}; nothing was changed", do)
    words = [f"the state {state.shown} will be as it was after {label}: it forgets {_units(later)}"]
    return Choice((*words, *_borrowed(state, later), *_results(later)), later)


def forget(state: State, label: str) -> Choice:
    """Choose one unit, so that it is as if it had never been run.

    The units after it stay, as units that began from a state which is no longer the one before them: by the rule of
    every range, the next one runs them again. Plain runs have no such rule, so only the last can be forgotten. Raises
    `ConfigError` where there is no such unit, where it may not go, or where no unit could begin from what is left.
    """
    if label in state.forgotten():
        return Choice(nothing=f"{label} of {state.shown} is forgotten already")
    record, last = record_of(state.records, label, state.shown), state.records[-1]
    later = tuple(each for each in state.records if each.ordinal > record.ordinal)
    before = state.newest_before(record.ordinal)
    if later and record.start is None:
        what = (
            f"{label} is a plain run, from which {later[0].label} began, and plain runs do not run again by themselves"
        )
        back = f", or go back with wincli state rollback {state.shown} {before.label}" if before else ""
        raise ConfigError(f"{what}; nothing was changed", f"forget {last.label} first{back}")
    if before is not None and not is_kept(state, before):
        what = f"{state.shown} no longer keeps the window state of {before.label}, from which {label} began"
        first = next((each.label for each in later[:-1] if is_kept(state, each)), None)
        can = f"units after {first} can be forgotten; " if first else ""
        raise ConfigError(f"{what}; nothing was changed", f"{can}a higher --keep keeps more")
    words = [f"the state {state.shown} forgets {label}, as if it had never been run"]
    if later:
        first = "began" if len(later) == 1 else f"of which {later[0].label} began"
        then = "the next run of a range runs again those whose windows change, and replaces their results"
        words.append(f"after it there are {_units(later)}, {first} from it: {then}; until then they stay")
    return Choice((*words, *_borrowed(state, (record,)), *_results((record,))), (record,))


def collect(state: State, keep: int | None) -> Choice:
    """Choose the units whose window states are no longer needed.

    ``keep``: how many units keep theirs; None: as many as the job of the newest unit says, and where it says nothing,
    all that ranges have kept. A unit from which the next one has not been run anew keeps its own, too, and so does the
    unit that was run last: a correction goes on there.
    """
    records = state.records
    if not records:
        return Choice(nothing=f"{state.shown} has no unit")
    count = records[-1].job.get("keep") if keep is None else keep
    if not isinstance(count, int):
        return Choice(nothing=f"{state.shown} keeps what its ranges need to be corrected; --keep N keeps less")
    needed = {record.label for record in records[-count:]}
    needed |= {one.label for one, after in pairwise(records) if after.began != one.state}
    needed.add(max(records, key=lambda record: (record.finished, record.ordinal)).label)
    pruned = tuple(
        record
        for record in records
        if record.label not in needed and nbytes_of(record) and state.storage.has_data(record)
    )
    if not pruned:
        return Choice(nothing=f"{state.shown} keeps no more than the window states of {count_of(count, 'unit')}")
    freed = size(sum(map(nbytes_of, pruned)))
    stay = f"the last {count:,}" if count > 1 else "the last"
    words = [f"the window states of {_units(pruned)} are deleted, {freed}: {stay} can still be corrected"]
    return Choice(tuple(words), pruned=pruned)


def is_kept(state: State, record: UnitRecord) -> bool:
    """Whether a unit can begin from the window state of another."""
    return not nbytes_of(record) or state.storage.has_data(record)


def nbytes_of(record: UnitRecord) -> int:
    """Return the bytes of the window state that a unit left."""
    return sum(part.nbytes for stage in record.stages for part in stage.parts)


def _units(records: Sequence[UnitRecord]) -> str:
    return f"{count_of(len(records), 'unit')}, {compact(map(unit_of, records))}"


def _borrowed(state: State, gone: Sequence[UnitRecord]) -> list[str]:
    """Return a line on the units that have read late rows of those that go.

    Raises `ConfigError` where such a unit cannot be run again without them.
    """
    labels = {record.label for record in gone}
    readers = [
        record
        for record in state.records
        if record.label not in labels and any(rows.label in labels for rows in record.borrowed)
    ]
    for record in readers[:1]:
        before = state.newest_before(record.ordinal)
        if before is not None and not is_kept(state, before):
            what = (
                f"{record.label} has read late rows of {gone[0].label} or later, and cannot be run again without them: "
            )
            what += f"{state.shown} no longer keeps the window state of {before.label}, from which it began"
            raise ConfigError(f"{what}; nothing was changed", "a higher --keep keeps more states")
    if not readers:
        return []
    return [f"late rows of theirs were read by {_units(readers)}: the next run runs that again without them"]


def _results(gone: Sequence[UnitRecord]) -> list[str]:
    shown = [output.shown for record in gone for output in record.outputs]
    if not shown:
        return []
    few = ", ".join(shown if len(shown) < 4 else [shown[0], "..", shown[-1]])
    stay, these = ("stays", "that") if len(shown) == 1 else ("stay", "these")
    words = "run again with --mode overwrite, which replaces" if gone[0].start is not None else "delete, or replace"
    return [f"{count_of(len(shown), 'result')} {stay} as written ({few}): {words} {these}"]
