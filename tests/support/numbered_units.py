"""Units of a state, and outputs, that hold one number each; commits of them that stop half way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wincli.writers.output.output import Output, open_output
from wincli.writers.places.lock import Owner
from wincli.writers.state.journal import StateStaging, commit_together
from wincli.writers.state.state import State, open_state
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

ME = Owner(os.getpid(), "here", "2026-11-08T02:00:00+00:00")
OTHER = Owner(os.getpid(), "here", "2026-11-08T03:00:00+00:00")
DEAD = Owner(2**30, "here", "2026-11-08T02:00:00+00:00")
"""A run whose process has ended."""
SCHEMA = pa.schema([("n", pa.int64())])
Paths = Sequence[Path | str]


def names(folder: Path) -> list[str]:
    """What is in a folder, hidden names too."""
    return sorted(path.name for path in folder.iterdir())


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too, with what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record_of(staging: StateStaging, value: int) -> UnitRecord:
    """Write what the stage ``s`` holds, and return the record of the unit."""
    part = staging.stage("s").write_rows(0, pa.table({"n": [value]}))
    stage = StageRecord("s", {}, {"value": value}, {}, 1, (part,), OpenWindows(0, 0, None))
    now = "2026-11-08T02:00:00+00:00"
    return UnitRecord(
        staging.label, staging.ordinal, None, None, None, (), staging.outputs, (stage,), "", now, now, {}, {},
        "", None, {},
    )  # fmt: skip


def result(output: Output, value: int) -> tuple[Output, dict[str, Any]]:
    """Write the part of an output, and return it with its manifest."""
    part = output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"n": [value]})])
    return output, {"parts": [{"name": part.name, "bytes": part.nbytes}], "rejects": [], "value": value}


def run_unit(
    state: State, value: int, outputs: Paths = (), ordinal: int = 0, keep: int = 10, owner: Owner = ME
) -> UnitRecord:
    """Commit the unit ``u<ordinal>``."""
    paths = [str(path) for path in outputs]
    with ExitStack() as stack:
        staging = stack.enter_context(state.begin(f"u{ordinal}", ordinal, paths))
        opened = [stack.enter_context(open_output(path, "overwrite", [], owner)) for path in paths]
        for output in opened:
            output.begin()
        return commit_together(staging, record_of(staging, value), [result(o, value) for o in opened], keep)


def put(
    root: Path | str, value: int, outputs: Paths = (), ordinal: int = 0, keep: int = 10, owner: Owner = ME
) -> UnitRecord:
    """Open a state, commit one unit, and close it."""
    with open_state(str(root), owner) as state:
        return run_unit(state, value, outputs, ordinal, keep, owner)


def state_value(state: State, label: str = "u0") -> int | None:
    """The number that a unit holds, None where it is not done or its data is gone."""
    if not state.has_data(label):
        return None
    files = state.stage(label, "s")
    (value,) = (n for part in files.parts("rows") for n in files.read_part(part)["n"].to_pylist())
    record = state.record(label)
    assert record is not None
    assert record.stages[0].registers == {"value": value}
    return value


def value_of(out: Path) -> int | None:
    """The number that an output says, None where there is none."""
    if not out.exists():
        return None
    told = json.loads((out / "_wincli/manifest.json").read_text())
    assert [(out / part["name"]).read_text() for part in told["parts"]] == [f'"n"\n{told["value"]}\n']
    return int(told["value"])


# A state with a unit u0 whose outputs are a and b beside it


def outs(folder: Path) -> list[Path]:
    return [folder / "a", folder / "b"]


def settled(folder: Path) -> int | None:
    """The number that the state and both outputs say, all of them, with nothing else there."""
    with open_state(str(folder / "state"), ME) as state:
        found = {state_value(state), *map(value_of, outs(folder))}
    assert len(found) == 1, found
    is_there = found != {None}
    assert names(folder / "state") == [".wincli-state", *(["u0"] if is_there else [])]
    assert names(folder) == [*(["a", "b"] if is_there else []), "state"]
    return found.pop()


def ended_at(owner: object, name: str, work: Callable[[], object], after: int = 0) -> None:
    """Do what ends, as a kill would end it, where a function is called once more than ``after`` times."""
    function, calls = getattr(owner, name), list[None]()

    def ending(*given: Any) -> Any:
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(None)
        return function(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, ending)
        with pytest.raises(KeyboardInterrupt):
            work()


def stop(root: Path, outputs: Paths, published: int) -> None:
    """Run the unit again with the number 2, and end it after so many outputs were put in place."""
    ended_at(Output, "publish", lambda: put(root, 2, outputs), published)
