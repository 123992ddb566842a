"""Requests of a store that fail at random, before they have an effect or after it: all is old or new in the end.

What `scripts/fault_runs` does to whole runs over a server, this does to commits alone, over a store that is quick: a
request that fails here is one of which no retry says what has become of it.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.numbered_units import DEAD, ME, put, result, state_value, value_of
from support.quick_store import URI, QuickStore, use
from wincli.windowing.errors import DamagedError, WincliError
from wincli.writers.commit import store_objects
from wincli.writers.output.output import open_output
from wincli.writers.places.conditional import Object
from wincli.writers.places.lock import Owner
from wincli.writers.state.journal import commit_all
from wincli.writers.state.state import open_state

OUTS = ("s://store/a", "s://store/b")
RATES = (0.02, 0.05, 0.1)


@dataclass
class Line:
    """What is between runs and their stores, all of them. ``rate``: the share of requests that fail."""

    chance: random.Random
    rate: float = 0.0
    faults: int = 0

    def may_fail(self, _: int = 0) -> None:
        if self.chance.random() < self.rate:
            self.faults += 1
            raise OSError("the store does not answer")


@dataclass
class FaultyStore(QuickStore):
    """A store at the end of a line."""

    line: Line = field(default_factory=lambda: Line(random.Random()))

    def __post_init__(self) -> None:
        self.before = self.after = self.line.may_fail

    def get(self, name: str) -> Object | None:
        self.line.may_fail()
        return super().get(name)

    def list(self, beginning: str = "") -> dict[str, int]:
        self.line.may_fail()
        return super().list(beginning)


@pytest.fixture
def line(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    line = Line(random.Random(39))
    use(FaultyStore(tmp_path / "state", line=line), monkeypatch)
    monkeypatch.setattr(
        store_objects, "open_store", lambda uri: FaultyStore(tmp_path / uri.removeprefix("s://"), line=line)
    )
    return line


def run(value: int, label: str | None, owner: Owner) -> None:
    """Write a number to both outputs and, if it is one of a unit, to the state."""
    if label is not None:
        put(URI, value, OUTS, int(label[1:]), 1, owner)
        return
    with ExitStack() as stack:
        opened = [stack.enter_context(open_output(out, "overwrite", [], owner)) for out in OUTS]
        for output in opened:
            output.begin()
        commit_all([result(output, value) for output in opened])


def values(folder: Path) -> list[int | None]:
    """The numbers that the outputs say; a part that is missing, or of another number, fails."""
    return [value_of(folder / "store" / name) for name in "ab"]


def check_whole(folder: Path, label: str | None, value: int) -> None:
    """Check that all is of one run, and that nothing else is there."""
    assert values(folder) == [value, value]
    found = {str(path.relative_to(folder / "store")) for path in (folder / "store").rglob("*") if path.is_file()}
    parts = {name for name in found if "/part-" in name}
    marks = {f"{out}/{name}" for out in "ab" for name in ("_SUCCESS", "_wincli/manifest.json")}
    assert (len(parts), found - parts) == (2, marks)
    if label is None:
        return
    with open_state(URI, ME) as state:
        assert state_value(state, label) == value
        own = {f"{record.label}/.{record.run}/unit.json" for record in state.records}
        own |= {f"{record.label}/.{record.run}/s/rows-00000.parquet" for record in state.records[-1:]}
    names = {str(path.relative_to(folder / "state")) for path in (folder / "state").rglob("*") if path.is_file()}
    assert names == {".wincli-state", ".journal.json", *own}


@pytest.mark.parametrize("which", ["a unit again", "the next unit", "without a state"])
def test_faults_at_random_requests_leave_all_old_or_all_new(tmp_path: Path, line: Line, which: str) -> None:
    trials, ended, told = 0, set(), list[WincliError]()
    while line.faults < 50:
        label, step = None if which == "without a state" else "u0", int(which == "the next unit")
        line.rate = 0.0
        run(1, label and f"u{trials * step}", ME)
        trials += 1
        label = label and f"u{trials * step}"
        line.rate, is_done, faults = line.chance.choice(RATES), False, line.faults
        for _ in range(line.chance.choice((1, 1, 2, 3))):
            try:
                run(2, label, DEAD)
                is_done = True
            except WincliError as error:
                told.append(error)
        line.rate = 0.0
        if label is None:
            assert set(values(tmp_path)) <= {1, 2}
        else:
            with open_state(URI, ME) as state:
                now = 2 if state.record(label) is not None and state_value(state, label) == 2 else 1
            assert values(tmp_path) == [now, now]
        assert not is_done or values(tmp_path) == [2, 2]
        ended.add((is_done, line.faults > faults))
        run(3, label, ME)
        check_whole(tmp_path, label, 3)
    assert trials > 5
    assert (False, True) in ended
    assert not any(isinstance(error, DamagedError) or "\n" in str(error) for error in told)
