"""Commits of a unit with two outputs that stop half way, and of a unit with an output in an object store."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from support.folder_contents import names
from support.numbered_units import ME, SCHEMA, put, record_of, state_value, value_of
from wincli.writers.output import output
from wincli.writers.output.output import open_output
from wincli.writers.state.journal import commit_together
from wincli.writers.state.state import open_state


def settled(folder: Path) -> int | None:
    """The number that the state and the outputs a and b say, all of them, with nothing else there."""
    with open_state(str(folder / "state"), ME) as state:
        found = {state_value(state), value_of(folder / "a"), value_of(folder / "b")}
    assert len(found) == 1, found
    assert names(folder / "state") == [".wincli-state", *(["u0"] if found != {None} else [])]
    assert names(folder) == [*(["a", "b"] if found != {None} else []), "state"]
    return found.pop()


def outs(folder: Path) -> list[Path]:
    return [folder / "a", folder / "b"]


def stop(monkeypatch: pytest.MonkeyPatch, folder: Path, swaps: int) -> None:
    """Run the unit again with the number 2, and stop after so many outputs were put in place, as a kill would."""
    swap_one = output.Output.publish
    done: list[object] = []

    def counted(self: output.Output) -> None:
        if len(done) == swaps:
            raise KeyboardInterrupt
        done.append(self)
        swap_one(self)

    with monkeypatch.context() as patch:
        patch.setattr(output.Output, "publish", counted)
        with pytest.raises(KeyboardInterrupt):
            put(folder / "state", 2, outs(folder))


def stopping(*_: object) -> None:
    raise KeyboardInterrupt


def put_in_store(root: Path, value: int) -> None:
    path = "s://store/out"
    with ExitStack() as stack:
        state = stack.enter_context(open_state(str(root), ME))
        staging = stack.enter_context(state.begin("u0", 0, [path]))
        opened = stack.enter_context(open_output(path, "overwrite", [], ME))
        sink = opened.sink("csv", SCHEMA, SCHEMA)
        parts = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(3)]
        told = {"parts": [{"name": part.name} for part in parts], "rejects": [], "value": value}
        commit_together(staging, record_of(staging, value), [(opened, told)], 1)
