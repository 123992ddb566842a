"""Histories of days that a job runs over on a state, and the same in pieces, computed at once by this very process."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import wincli.cli.launch
import wincli.cli.run.adoption
from support.day_results import day, span
from support.in_process import wincli_here
from support.processes import Ran
from wincli.cli.run import speculation

OF_RUN = frozenset({
    "run", "started", "finished", "seconds", "state", "began", "numbers", "began_numbers", "jobs", "checksum", "when",
})  # fmt: skip
"""What two runs of one history differ in: ids, times, and how they were asked for."""


@dataclass
class Here:
    """Stands where a run has a process that makes calls: this one makes them.

    ``is_dead``: it makes none. ``pace``: how many units of a piece are computed whenever one begins; 0: all at once.
    """

    is_dead: bool = False
    pace: int = 0
    pieces: list[Iterator[None]] = field(default_factory=list)

    def do(self, call: Callable[..., object], *arguments: Any) -> bool:
        if self.pace and call is speculation.speculate and not self.is_dead:
            self.pieces.append(speculation.speculate_each(*arguments))
        elif not self.is_dead:
            call(*arguments)
        return not self.is_dead

    def go_on(self) -> None:
        for _ in range(self.pace):
            next(itertools.chain.from_iterable(self.pieces), None)

    def is_alive(self) -> bool:
        return not self.is_dead

    def end(self) -> None: ...


@dataclass
class Taken:
    """What became of the units of a run in pieces.

    ``units``: labels of those that were taken over. ``ready``: how many of them a process had made ready.
    """

    units: list[str] = field(default_factory=list)
    ready: int = 0


@contextlib.contextmanager
def in_pieces(longest: int = 32, ahead: int = 1, patience: int = 8, dead: int = 0, pace: int = 0) -> Iterator[Taken]:
    """Let runs with ``--jobs`` compute pieces of so many units here.

    ``dead``: how many of their processes are. ``pace``: as in `Here`.
    """
    taken, adoption = Taken(), wincli.cli.run.adoption
    was, began, read = adoption.Adoption.take, adoption.Pieces.begin, adoption.read_found
    made: set[int] = set()

    def take(self: Any, label: str) -> None:
        taken.units.append(label)
        was(self, label)
        taken.ready += id(self.ready) in made

    def begin(self: Any, unit: Any) -> Any:
        for caller in self.callers:
            caller.go_on()
        return began(self, unit)

    def read_and_note(*place: Any) -> Any:
        found = read(*place)
        made.update([id(found)] if isinstance(found, speculation.ReadyUnit) else ())
        return found

    def start(self: Any) -> None:
        self.callers = [Here(number < dead, pace) for number in range(self._forks)]

    with (
        mock.patch.multiple(adoption, _LONGEST=longest, _AHEAD=ahead, _PATIENCE=patience),
        mock.patch.object(adoption.Adoption, "take", take),
        mock.patch.object(adoption.Pieces, "begin", begin),
        mock.patch.object(adoption, "read_found", read_and_note),
        mock.patch.object(wincli.cli.launch.SmallJobBoot, "start_fork_server", start),
    ):
        yield taken


def put_history(folder: Path, days: int, seed: int, rows: int = 120, keys: int = 4) -> None:
    """Write days of a log: keys come and go, times are in order or nearly so, some days lack rows or are missing."""
    random = np.random.default_rng(seed)
    late = random.random() < 0.4
    for n in range(1, days + 1):
        count = 0 if random.random() < 0.08 else int(random.integers(1, rows))
        if random.random() < 0.06 and n > 1:
            continue
        at = np.sort(random.integers(0, 86_400, count))
        if late:
            at = at + random.integers(-1500, 300, count)
        own = random.choice(keys, max(1, int(random.integers(1, keys + 1))), replace=False)
        table = pa.table({
            "ts": pa.array((at + 1_793_491_200 + (n - 1) * 86_400) * 1_000_000, pa.timestamp("us"),
                           mask=random.random(count) < 0.01),
            "user": pa.array([f"u{k}" for k in random.choice(own, count)], pa.string(),
                             mask=random.random(count) < 0.01),
            "x": pa.array(random.normal(0, 1, count).round(3), mask=random.random(count) < 0.05),
            "a": random.integers(0, 9, count),
            "flag": random.random(count) < 0.2,
        })  # fmt: skip
        place = folder / "log" / f"dt={day(n)}"
        place.mkdir(parents=True)
        pq.write_table(table, place / "a.parquet")


def tree(folder: Path, name: str) -> dict[str, Any]:
    """All files below a result or a state: their bytes; of JSON the values that no run has for itself alone."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            value = _same_for_all(json.loads(content), name) if path.suffix == ".json" else content
            found[str(path.relative_to(folder))] = value
    return found


def _same_for_all(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _same_for_all(each, name) for key, each in value.items() if key not in OF_RUN}
    if isinstance(value, list):
        return [_same_for_all(each, name) for each in value]
    return value.replace(name, "NAME") if isinstance(value, str) else value


def said(ran: Ran, name: str) -> list[str]:
    """What a run wrote, but for how long it took, and that units run one after the other."""
    lines = [line.replace(name, "NAME") for line in ran.err.splitlines()]
    return [line.partition(" s, ")[0].rpartition(", ")[0] if " rows/s" in line else line for line in lines
            if "units run one after the other" not in line]  # fmt: skip


def run_both(folder: Path, days: int, *command: str, name: str = "log", more: tuple[str, ...] = ()) -> tuple[Ran, Ran]:
    """Run a history in order and in pieces; check that both give the same, to the byte. ``more``: before the input."""
    runs = []
    for way, jobs in (("one", ()), ("two", ("--jobs", "2"))):
        places = (name, f"out-{way}", "--state", f"st-{way}")
        runs.append(wincli_here("run", *command, *span(1, days), *jobs, *more, *places, cwd=folder))
    one, two = runs
    assert one.code == two.code, two.err
    for kind in ("out", "st"):
        first, second = (tree(folder / f"{kind}-{way}", f"-{way}") for way in ("one", "two"))
        assert first.keys() == second.keys(), first.keys() ^ second.keys()
        differs = [path for path, value in first.items() if second[path] != value]
        assert not differs, (differs, two.err)
    assert said(one, "-one") == said(two, "-two")
    return one, two
