"""The units that a plan lists are the units that a run runs, over random histories of ranges."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.day_results import day, span
from support.in_process import wincli_here
from support.processes import Ran, tree, write
from support.strategies import examples

DAYS = 5
JOB = ("-w", "gap(ts, 6h)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "log", "out")

# A step of a history: what becomes of the files of the world, and then a range that is run.
#
#   ("rows", 2, "ab")   day 2 has morning rows of a and b; A and B are evening rows, l is a late row of the day before
#   ("gone", 3)         the files of day 3 are deleted
#   ("lost", 1)         the output of day 1 is deleted
#   ("run", 1, 4, ())   days 1 to 4 are run

DAY = st.integers(1, DAYS)
CHANGES = st.one_of(
    st.tuples(st.just("rows"), DAY, st.sampled_from(["a", "ab", "b", "aB", "B", "abAB", "lb", "lab"])),
    st.tuples(st.just("gone"), DAY),
    st.tuples(st.just("lost"), DAY),
)
RUNS = st.tuples(st.just("run"), DAY, DAY, st.sampled_from([(), (), (), ("--redo",), ("--at-end", "flush")]))
HISTORIES = st.lists(st.one_of(CHANGES, RUNS), max_size=6).map(
    lambda steps: [("rows", n, "ab") for n in range(1, DAYS)] + [("run", 1, 3, ())] + steps
)


@dataclass
class World:
    """A folder with a log of days, and what was made of it."""

    folder: Path
    flags: tuple[str, ...]
    writes: int = 0

    def change(self, step: tuple[Any, ...]) -> None:
        if step[0] == "rows":
            at = {"l": "T12:00", "a": "T08:00", "b": "T09:00", "A": "T22:00", "B": "T23:00"}
            days = {"l": day(max(step[1] - 1, 1))}
            lines = [f"{days.get(who, day(step[1]))}{at[who]}:00,{who.lower()},{self.writes}" for who in step[2]]
            write(self.folder / "log" / f"dt={day(step[1])}", a__csv="\n".join(["ts,user,x", *lines, ""]))
            self.writes += 1
        else:
            place = "log" if step[0] == "gone" else "out"
            shutil.rmtree(self.folder / place / f"dt={day(step[1])}", ignore_errors=True)

    def wincli(self, command: str, step: tuple[Any, ...], *more: str) -> Ran:
        first, last = sorted(step[1:3])
        args = (*JOB, *self.flags, *span(first, last), *step[3], *more)
        return wincli_here(command, *args, cwd=self.folder)

    def runs(self) -> dict[str, str]:
        """Which run each day is of: every run writes a manifest of its own."""
        found = sorted(self.folder.glob("out/*/_wincli/manifest.json"))
        return {path.parent.parent.name[3:]: f"{path.stat().st_ino} {path.stat().st_mtime_ns}" for path in found}


def labels(plan: dict[str, Any], *actions: str) -> set[str]:
    return {unit["label"] for unit in plan["units"] if unit["action"] in actions}


def check_history(folder: Path, flags: tuple[str, ...], steps: list[tuple[Any, ...]]) -> None:
    """Go through a history; before each run the plan must say what it does, and leave no trace."""
    world = World(folder, flags)
    for step in steps:
        if step[0] != "run":
            world.change(step)
            continue
        before, runs = tree(folder), world.runs()
        planned = world.wincli("plan", step, "--json", "--rows", "0")
        assert tree(folder) == before
        ran = world.wincli("run", step, "--log-format", "json")
        if not planned.out:  # the same error ends both before anything is looked at
            assert (planned.code, runs) == (ran.code, world.runs()), (planned, ran)
            continue
        plan = json.loads(planned.out)
        done = {label for label, run in world.runs().items() if runs.get(label) != run}
        sure, maybe = labels(plan, "run"), labels(plan, "may run")
        assert sure <= done <= sure | maybe, (step, plan["units"], ran.err)
        assert sure.isdisjoint(maybe)
        if planned.code:
            assert ran.code == planned.code, (planned.err, ran.err)
            assert json.loads(ran.err.splitlines()[-1])["message"] == plan["problem"]
        elif ran.code == 0:
            closing = json.loads(ran.err.splitlines()[-1])
            assert set(closing["gaps"]) == labels(plan, "gap")
            assert set(closing["skipped"]) - maybe == labels(plan, "skip")
        else:
            assert plan["notes"], ran.err  # a correction that may reach a unit whose input is gone


@examples(12)
@given(HISTORIES, st.sampled_from([(), ("--keep", "1"), ("--late", "redo")]))
@example([("rows", n, "ab") for n in (1, 2, 3, 4)] + [("run", 1, 4, ()), ("rows", 2, "aB"), ("run", 2, 2, ())], ())
@example(
    [("rows", n, "ab") for n in (1, 3)] + [("run", 1, 3, ()), ("rows", 2, "b"), ("gone", 3), ("run", 1, 2, ())], ()
)
@example(
    [("rows", n, "ab") for n in (1, 2)] + [("run", 1, 2, ()), ("rows", 3, "lb"), ("run", 3, 3, ())], ("--late", "redo")
)
def test_units_that_a_plan_lists_are_those_that_run_on_a_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]], flags: tuple[str, ...]
) -> None:
    check_history(tmp_path_factory.mktemp("state"), ("--state", "st", *flags), steps)


@examples(8)
@given(HISTORIES)
def test_units_that_a_plan_lists_are_those_that_run_without_a_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    check_history(tmp_path_factory.mktemp("apart"), (), steps)
