"""Corrections of days on a state: together the days are one run over all but for the numbers of windows, and no day is
run again whose state before it decides the same."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.day_results import day, put_day, records, rows_but, span
from support.in_process import done

DAYS = 6
LENGTH = 20
NUMBERS = {"__rows", "__begin", "__windows", "__rank", "__pos"}
"""What a state counts, for these windows without a meaning: that of the rest is in the rows."""
KEYED = ("-k", "u", "--order-by", "ts")
SESSIONS = ("-w", "gap(ts, 3)", *KEYED)
WINDOWS = [
    SESSIONS,
    ("-w", "count(2)", *KEYED),
    ("-w", "delta(ts, 4)", *KEYED),
    ("-w", "time(4)", *KEYED),
    ("-w", "when(x > 6)", *KEYED),
    ("-w", "delta(ts, 2 * previous(count(), 2)) or count(3)", *KEYED),
    ("-w", "sliding, count(3)", *KEYED),
    ("-w", "sliding, count(3), count(2)", *KEYED),
    ("-w", "sliding, delta(ts, 5), delta(ts, 2)", *KEYED),
    ("-w", "sliding, time(5), time(2)", *KEYED),
    ("-w", "count(3), partitioned, tupleCount(4)", *KEYED),
    ("-w", "timeInterval, intervalDuration(4), creationPeriod(2)", *KEYED, "--event-time", "ts"),
    ("-w", "within 4 every 2", "--order-by", "ts"),
    ("-w", "partition by u retain 2 every 3", "--order-by", "ts", "--emit", "entered"),
]
EVERY = "log/*/a.parquet"
AGGREGATES = ("-a", "n=count()", "-a", "ids=collect(id)", "-a", "s=sum(y)", "-a", "y=first(y)")


def random_day(n: int, rng: random.Random, mean: int = 8) -> pa.Table:
    """Rows of a day, in its own time."""
    size = rng.randint(1, 2 * mean)
    seconds = [n * LENGTH + rng.randrange(LENGTH) for _ in range(size)]
    return pa.table(
        {
            "ts": pa.array([second * 10**6 for second in seconds], pa.timestamp("us")),
            "u": [rng.choice("abc") for _ in range(size)],
            "id": [rng.randrange(10**6) for _ in range(size)],
            "x": [rng.randint(0, 9) for _ in range(size)],
            "y": [rng.random() for _ in range(size)],
        }
    )


def result(folder: Path) -> list[str]:
    return rows_but(folder, "_pos", "window", *(f"_tie{n}" for n in range(3)))


def left(state: Path, triggers: bool) -> dict[str, Any]:
    """What each day has left, without numbers, and without keys of which nothing else is left.

    ``triggers``: whether the window is that with the counts 3 and 2.
    """
    found = {}
    for label, record in records(state).items():
        tables = []
        for kind in ("rows", "keys", "position", "advances"):
            files = sorted((state / label).rglob(f"{kind}*.parquet"))
            rows = [row for file in files for row in pq.read_table(file).to_pylist()]
            if triggers and kind == "keys":  # these count on from the number of rows
                rows = [{**row, "__triggered": row["__rows"] % 2, "__full": row["__rows"] > 2} for row in rows]
            plain = [{name: value for name, value in row.items() if name not in NUMBERS} for row in rows]
            state_of = [{name: value for name, value in row.items() if name.startswith("__")} for row in plain]
            told = [each for each, of in zip(plain, state_of, strict=True) if kind != "keys" or any(of.values())]
            tables.append(repr(told))
        found[label] = (tables, [stage["registers"] for stage in record["stages"]])
    return found


def runs_of(state: Path) -> dict[str, str]:
    return {label: record["run"] for label, record in records(state).items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3))])
@pytest.mark.parametrize("asked", WINDOWS, ids=lambda asked: asked[1])
def test_corrected_days_are_one_run_and_no_day_is_run_again_that_begins_as_before(
    asked: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = () if "entered" in asked else AGGREGATES
    command = (*asked, *rows, "--state", "st", "--keep", "99", "log", "out", *span(1, DAYS))
    for n in range(1, DAYS + 1):
        put_day(tmp_path, n, random_day(n, rng))
    done(tmp_path, "run", *command)
    triggers = asked[1] == "sliding, count(3), count(2)"
    for _ in range(2):
        before, runs = left(tmp_path / "st", triggers), runs_of(tmp_path / "st")
        corrected = rng.sample(range(1, DAYS + 1), rng.randint(1, 2))
        for n in corrected:
            put_day(tmp_path, n, random_day(n, rng, mean=rng.randint(1, 9)))
        done(tmp_path, "run", *command)
        now = left(tmp_path / "st", triggers)
        again = [n for n in range(1, DAYS + 1) if runs_of(tmp_path / "st")[day(n)] != runs[day(n)]]
        needed = [n for n in range(1, DAYS + 1) if n in corrected or (n > 1 and before[day(n - 1)] != now[day(n - 1)])]
        assert again == needed
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        done(tmp_path, "run", *asked, *rows, "--at-end", "hold", "--state", "st-one", EVERY, "one")
        shutil.rmtree(tmp_path / "st-one")
        assert result(tmp_path / "out") == result(tmp_path / "one")
    done(tmp_path, "run", *command, "--redo")
    assert rows_but(tmp_path / "out", "_pos") == rows_but(tmp_path / "one", "_pos")


# A day with one session more of a key, in the middle of it, and which days are run again for it

STAGES = """
input: log
output: out
state: st
keep: 99
stages:
  - {{name: one, window: "{one}", key: u, order_by: ts, agg: [n=count(), s=sum(y)]}}
  - {{name: two, window: "{two}", {more}}}
"""
COUNTED = 'order_by: _at, agg: ["n=count()", "ids=collect(n)"]'


def job(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "job.yaml").write_text(text)
    return ("job.yaml",)


def day_of_sessions(n: int, *more: int) -> pa.Table:
    """A day on which `a` and `b` have sessions that end within it; ``more``: seconds of further rows of `a`."""
    rows = sorted(
        [*((at, "a") for at in (1, 2, 10, *more)), *((at, "b") for at in (1, 3, 11)), (17, "c"), (LENGTH, "c")]
    )
    return pa.table(
        {
            "ts": pa.array([(n * LENGTH + at) * 10**6 for at, _ in rows], pa.timestamp("us")),
            "u": [user for _, user in rows],
            "id": range(len(rows)),
            "x": [1] * len(rows),
            "y": [1.1 + at / 7 for at, _ in rows],
        }
    )


def chain(one: str, two: str, more: str) -> str:
    return STAGES.format(one=one, two=two, more=more)


ALONE = (*AGGREGATES, "--state", "st", "--keep", "99", "log", "out")
ALL = [2, 3, 4, 5, 6]
ASKED: dict[str, tuple[Any, list[int]]] = {
    "sessions": ((*SESSIONS, *ALONE), [2, 3]),
    "a condition on results": ((*SESSIONS, "--having", "n > 1", *ALONE), [2, 3]),
    "a condition on numbers": ((*SESSIONS, "--having", "window > 2", *ALONE), ALL),
    "an expectation of numbers": ((*SESSIONS, "--expect", "all(window < 100)", *ALONE), ALL),
    "folders of numbers": ((*SESSIONS, "--partition-by", "part=window % 2", *ALONE), ALL),
    "a product of rows that overlap": (("-w", "sliding, count(3)", *KEYED, "-a", "p=product(y)", *ALONE[-6:]), ALL),
    "a sum of them": (("-w", "sliding, count(3)", *KEYED, "-a", "p=sum(y)", *ALONE[-6:]), [2, 3]),
    "two stages by key": (chain("gap(ts, 3)", "count(2)", f"key: u, {COUNTED}"), ALL),
    "two stages by time": (chain("gap(ts, 3)", "time(20)", COUNTED), [2, 3]),
    "a stage that reads numbers": (chain("gap(ts, 3)", "time(20)", f"{COUNTED[:-1]}, m=max(window)]"), ALL),
    "a stage of some numbers": (chain("gap(ts, 3)", "time(20)", f"{COUNTED}, where: window < 100"), ALL),
    "stages in whose order numbers stand": (chain("time(5)", "time(20)", COUNTED), ALL),
    "such stages of one key": (chain("time(5)", "time(20)", f"key: u, {COUNTED}"), [2, 3]),
    "a stage that evicts keys": (
        chain("time(5)", "count(2), partitioned, partitionCount(2)", f"key: u, {COUNTED}"),
        ALL,
    ),
    "a stage that evicts keys and slides": (
        chain("time(5)", "sliding, count(3), partitioned, partitionCount(2)", f"key: u, {COUNTED}"),
        ALL,
    ),
    "a stage with a watermark": (
        chain("time(5)", "timeInterval, intervalDuration(3)", "key: u, event_time: window_end, agg: [n=count()]"),
        ALL,
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_window_more_runs_later_days_again_only_where_numbers_decide(case: str, tmp_path: Path) -> None:
    asked, expected = ASKED[case]
    command = (*(asked if isinstance(asked, tuple) else job(tmp_path, asked)), *span(1, DAYS))
    for n in range(1, DAYS + 1):
        put_day(tmp_path, n, day_of_sessions(n))
    done(tmp_path, "run", *command)
    runs = runs_of(tmp_path / "st")
    put_day(tmp_path, 2, day_of_sessions(2, 15))
    done(tmp_path, "run", *command)
    again = [n for n in range(1, DAYS + 1) if runs_of(tmp_path / "st")[day(n)] != runs[day(n)]]
    assert again == expected
    if isinstance(asked, str):
        whole = asked.replace("input: log", f"input: {EVERY}").replace("output: out", "output: one")
        done(tmp_path, "run", *job(tmp_path, whole.replace("state: st", "state: st-one")))
    else:
        done(tmp_path, "run", *asked[: asked.index("--state")], "--at-end", "hold", "--state", "st-one", EVERY, "one")
    assert result(tmp_path / "out") == result(tmp_path / "one")
