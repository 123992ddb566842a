"""``wincli state``: from its actions to a state, stdout and an exit code."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import typer

from ....windowing.errors import ConfigError, OutputError, shown
from ....windowing.support.addresses.redaction import redacted, redacted_path
from ....writers.folders.lock import is_dead
from ....writers.state.layout import is_state
from ....writers.state.state import State, open_state, read_state, state_without_lock
from ....writers.state.unit_record import UnitRecord
from ...console.counts import count_of, size
from ...console.messages import OK, USAGE, Messages
from ...console.table import head_line, lay_out, row_lines
from ...job.context import owner
from .choice import Choice, collect, forget, is_kept, nbytes_of, rollback

Choose = Callable[[State], Choice]


def print_units(path: str, as_json: bool) -> int:
    """Print the units of a state: a table, or one JSON object. Raises what `read_state` raises."""
    view = read_state(path)
    state = state_without_lock(path)
    units = [_unit(state, record) for record in view.records]
    if as_json:
        fields = {"path": redacted_path(path), "units": units, "forgotten": dict(state.forgotten())}
        typer.echo(json.dumps(fields, indent=2))
        return OK
    nbytes = sum(unit["bytes"] for unit in units if unit["kept"])
    kept = sum(unit["kept"] for unit in units)
    _say(f"{path}: {count_of(len(units), 'unit')}, {kept:,} with a window state, {size(nbytes)}")
    if units:
        names = {"unit": "unit", "ordinal": "ordinal", "finished": "finished", "open": "open windows"}
        columns = {title: [unit[name] for unit in units] for name, title in names.items()}
        columns["bytes"] = [size(unit["bytes"]) if unit["kept"] else "not kept" for unit in units]
        columns["id"] = [unit["run"] for unit in units]
        table = pa.table(columns)
        layout = lay_out(table, None)
        _say(head_line(layout), *row_lines(layout, table))
    if state.forgotten():
        _say(f"forgotten, and not run since: {', '.join(sorted(state.forgotten()))}")
    return OK


def _unit(state: State, record: UnitRecord) -> dict[str, Any]:
    return {
        "unit": record.label,
        "ordinal": record.ordinal,
        "finished": record.finished,
        "open": sum(stage.open.windows for stage in record.stages),
        "kept": is_kept(state, record),
        "bytes": nbytes_of(record),
        "run": record.run,
        "state": record.state,
        "began": record.began,
        "previous": record.previous,
    }


def roll_back(path: str, label: str, is_sure: bool, messages: Messages) -> int:
    """Take all units after a unit out of a state; return the exit code. Raises what `_change` raises."""
    return _change(path, lambda state: rollback(state, label), is_sure, messages)


def forget_unit(path: str, label: str, is_sure: bool, messages: Messages) -> int:
    """Take a unit out of a state; return the exit code. Raises what `_change` raises."""
    return _change(path, lambda state: forget(state, label), is_sure, messages)


def collect_garbage(path: str, keep: int | None, is_dry: bool, is_sure: bool, messages: Messages) -> int:
    """Delete what a state no longer needs, or print what that is; return the exit code. Raises as `_change` does."""
    left = _leftovers(path)
    for name, nbytes in left.items():
        _say(f"{name} was left by a killed run and is deleted, {size(nbytes)}")
    if is_dry:
        choice = collect(state_without_lock(path), keep)
        _say(*choice.words or [str(choice.nothing)], "nothing was deleted: this was a look")
        return OK
    return _change(path, lambda state: collect(state, keep), is_sure, messages)


def _leftovers(path: str) -> Mapping[str, int]:
    """Return what killed runs have left. Raises `OutputError` where a run is at work on the state."""
    view = read_state(path)
    if view.owner is not None and not is_dead(view.owner, socket.gethostname()):
        who = f"process {view.owner.pid} on {view.owner.host}, started {view.owner.started}"
        raise OutputError(f"another run is at work on the state {path} ({who})", "wait until it has ended")
    return view.storage.leftovers()


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
            if not _is_confirmed(messages):
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


def _is_confirmed(messages: Messages) -> bool:
    """Ask on the terminal. Raises `ConfigError` where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError("nothing was changed, as nobody can be asked here", "say --yes to go on")
    return messages.ask("go on?")


def _say(*lines: str) -> None:
    for line in lines:
        typer.echo(redacted(shown(line)))
