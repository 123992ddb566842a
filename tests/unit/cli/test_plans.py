"""What a plan says is what the run then does: columns, order, rows, strategy; and a plan leaves no trace."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from support.in_process import done, wincli_here
from support.processes import Ran, manifest, tree, write
from wincli.cli.inspection.forecast.drawing import read_head
from wincli.cli.inspection.forecast.stages import driver_of
from wincli.cli.run.context import owner
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.support.amounts import size
from wincli.writers.state.state import open_state

LOG = "ts,user,x\n" + "".join(
    f"2026-11-01T{hour:02}:{minute:02}:00,{'ab'[minute % 3 == 0]},{hour}\n"
    for hour in range(6)
    for minute in (0, 5, 50)
)
SESSIONS = ("-w", "gap(ts, 30m)", "-k", "user", "-a", "n=count()", "-a", "spent=sum(x)")


def plan(folder: Path, *args: str, code: int = 0) -> Ran:
    """Plan, and see that nothing is left of it."""
    before = tree(folder)
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        ran = wincli_here("plan", *args, cwd=folder)
    assert ran.code == code, ran
    assert tree(folder) == before
    return ran


def forecast_of(folder: Path, *args: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(folder, *args, "--json", code=code).out)
    return found


# The job as it is planned is the job as it runs

JOBS = {
    "session": (*SESSIONS, "in", "out"),
    "types": (*SESSIONS, "--schema", "x:decimal(9,2)", "in", "out"),
    "expressions": ("-w", "count(2)", "--let", "y=x * 2", "--where", "y > 2", "-a", "sum(y)", "in", "out"),
    "rows": ("-w", "punct()", "--emit", "rows", "in", "out"),
    "grid": ("-w", "time(1h)", "--order-by", "ts", "-k", "user", "--empty", "row", "in", "out"),
    "event time": ("-w", "timeInterval, intervalDuration(1h)", "-k", "user", "--event-time", "ts", "in", "out"),
    "plain csv": (*SESSIONS, "--plain", "--output-format", "csv", "in", "out"),
    "slices": (*SESSIONS, "--slice-size", "1KiB", "--split-size", "1KiB", "in", "out"),
    "sliding": ("-w", "sliding, time(1h), count(2)", "-k", "user", "--order-by", "ts", "-a", "mean(x)", "in", "out"),
    "first of several": ("-w", "gap(ts, 30m) or count(3) or when(x = 2)", "-k", "user", "in", "out"),
    "previous": ("-w", "delta(ts, 60 * previous(count(), 5))", "-a", "p=sum(x) - min(x)", "in", "out"),
    "batched": ("-w", "within 1h every 30m with unique user", "--order-by", "ts", "in", "out"),
    "marks": ("-w", "punct()", "--let", "late=x > 3", "--marks", "late", "-a", "n=count() where x > 1", "in", "out"),
    "having": ("-w", "change(user)", "-a", "n=count()", "--having", "n > 1", "in", "out"),
    "lag": ("-w", "count(3)", "--let", "step=x - lag(x)", "-a", "max(step)", "in", "out"),
    "enriched": (*SESSIONS, "--enrich", "u=users.csv on user take age", "-a", "max(u_age)", "in", "out"),
}


@pytest.mark.parametrize("job", JOBS)
def test_a_plan_has_the_columns_rows_and_strategy_of_the_run(job: str, tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv=LOG, b__csv="ts,user,x\n2026-11-02T00:00:00,b,7\n")
    write(tmp_path, users__csv="user,age\na,30\nb,40\n")
    found = forecast_of(tmp_path, *JOBS[job])
    stage = found["stages"][-1]
    ran = done(tmp_path, "run", *JOBS[job], "-v")
    made = manifest(tmp_path / "out")
    assert [{"name": c["name"], "type": c["type"]} for c in stage["columns"]] == made["schema"]
    assert (stage["window"], stage["order"]) == (made["spec"], made["order"]["columns"])
    assert found["input"]["rows"] == made["counts"]["rows_in"]
    assert found["input"]["files"] == len(made["inputs"])
    assert found["input"]["nbytes"] == sum(file["size"] for file in made["inputs"])
    strategy = stage["strategy"]
    assert f"detail: {strategy['name']}: {strategy['why']}" in ran.err
    assert f"detail: {strategy['chunks']} chunk" in ran.err
    if strategy["slices"] is not None:
        assert f"{strategy['slices']} slices" in ran.err
    windows, hidden = re.search(r" ([\d,]+) windows? out(?:, ([\d,]+) hidden)?", ran.err).groups()
    drawn = re.search(r"([\d,]+) panes?$", found["drawing"].splitlines()[1])[1]
    assert int(drawn) == int(windows), (found["drawing"], ran.err, hidden)


def test_stages_are_planned_as_they_run(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv=LOG)
    job = """
    {input: in, output: out, master: "local[2]", stages: [
      {name: one, window: "gap(ts, 30m)", key: user, agg: [n=count()], output: own},
      {name: two, window: "count(2)", agg: [m=sum(n)], output_format: csv}]}
    """
    write(tmp_path, job__yaml=job)
    found = forecast_of(tmp_path, "job.yaml")
    done(tmp_path, "run", "job.yaml")
    for stage, out in zip(found["stages"], ("own", "out"), strict=True):
        made = manifest(tmp_path / out)
        assert [{"name": c["name"], "type": c["type"]} for c in stage["columns"]] == made["schema"]
        assert stage["output"] == out
    assert [stage["strategy"] is None for stage in found["stages"]] == [False, True]


def test_where_types_come_from_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "in" / "dt=2026-11-01", a__csv="ts,user,x,amount\n2026-11-01T08:00:00,a,-,1.50\n")
    write(tmp_path, users__csv="user,age\na,30\n")
    flags = ("--schema", "amount:decimal(9,2)", "--enrich", "u=users.csv on user", "--let", "y=u_age + 1")
    found = forecast_of(tmp_path, "-w", "count(2)", "-a", "max(y)", "-a", "collect(x)", *flags, "in", "out")
    assert {column["name"]: (column["type"], column["origin"]) for column in found["input"]["columns"]} == {
        "ts": ("timestamp[us]", "csv, by all values"),
        "user": ("string", "csv, by all values"),
        "x": ("string", "csv, by all values: in/dt=2026-11-01/a.csv has '-' at line 2"),
        "amount": ("decimal128(9, 2)", "--schema decimal(9,2)"),
        "dt": ("date32[day]", "folder names"),
        "u_age": ("int64", "enrich table u"),
        "y": ("int64", "--let u_age + 1"),
    }
    (tmp_path / "some").mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "some/a.parquet")
    pq.write_table(pa.table({"a": [2]}), tmp_path / "some/b.parquet")
    columns = forecast_of(tmp_path, "-w", "count(2)", "some", "out")["input"]["columns"]
    assert [column["origin"] for column in columns] == ["parquet", "parquet; 1 of 2 files lack it"]


# What would be done, and what was done before


def unit_of(found: dict[str, Any]) -> tuple[Any, ...]:
    (unit,) = found["units"]
    return tuple(unit[name] for name in ("label", "action", "is_again", "why"))


def test_a_result_that_is_there_is_done_or_stops_the_run(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv=LOG)
    job = (*SESSIONS, "in", "out")
    assert unit_of(forecast_of(tmp_path, *job)) == (None, "run", False, "there is no result yet")
    done(tmp_path, "run", *job)
    why = "out holds the result of this job and input"
    assert unit_of(forecast_of(tmp_path, *job)) == (None, "skip", True, why)
    other = plan(tmp_path, "-w", "count(2)", "in", "out", code=2)
    refused = "output out already holds a result; nothing was touched"
    assert other.out.startswith(f"run        it stops: {refused}; output out\n")
    assert other.err == f"wincli: error: {refused}; choose another output, or replace it with --mode overwrite\n"
    again = forecast_of(tmp_path, *job, "--mode", "overwrite")
    assert unit_of(again) == (None, "run", True, "the result that is there is replaced")


def test_the_next_run_on_a_state_is_foreseen_whoever_holds_its_lock(tmp_path: Path) -> None:
    write(tmp_path, a__csv=LOG, b__csv="ts,user,x\n2026-11-02T00:00:00,b,7\n")
    flags = (*SESSIONS, "--state", "st")
    new = "its input is new"
    assert unit_of(forecast_of(tmp_path, *flags, "a.csv", "out")) == ("run-000001", "run", False, new)
    done(tmp_path, "run", *flags, "a.csv", "out")
    same = unit_of(forecast_of(tmp_path, *flags, "a.csv", "out"))
    assert same == ("run-000001", "skip", True, "run-000001 of st has read this input")
    flushed = unit_of(forecast_of(tmp_path, *flags, "a.csv", "out", "--at-end", "flush"))
    assert flushed[:3] == ("run-000001", "run", True)
    with open_state(str(tmp_path / "st"), owner()):
        later = forecast_of(tmp_path, *flags, "b.csv", "later")
    assert unit_of(later) == ("run-000002", "run", False, new)
    who = f"process {os.getpid()} on {socket.gethostname()}"
    assert later["notes"] == [f"{who} works on the state now, and may change it"]
    assert "drawn from nothing: windows that run-000001 left open are not in it" in later["drawing"]
    other = plan(tmp_path, "-w", "count(3)", "--state", "st", "b.csv", "later", code=2)
    assert "the state st is of another job (at run-000001)" in other.err


def test_an_output_of_a_unit_that_is_taken_stops_the_range_there(tmp_path: Path) -> None:
    for n in (1, 2, 3):
        write(tmp_path / "in" / f"dt=2026-11-0{n}", a__csv=LOG)
    write(tmp_path / "out" / "dt=2026-11-02", mine__txt="x")
    job = (*SESSIONS, "in", "out", "--start", "2026-11-01", "--end", "2026-11-04")
    found = forecast_of(tmp_path, *job, code=2)
    assert [unit["action"] for unit in found["units"]] == ["run", "stop", "stop"]
    ran = wincli_here("run", *job, cwd=tmp_path)
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == f"wincli: error: {found['problem']}"


def test_a_range_in_words(tmp_path: Path) -> None:
    for n in (1, 2, 4):
        write(tmp_path / "in" / f"dt=2026-11-0{n}", a__csv="ts,user,x\n2026-11-01T00:00:00,b,7\n")
    job = (*SESSIONS, "in", "out", "--state", "st", "--start", "2026-11-01", "--end")
    done(tmp_path, "run", *job, "2026-11-03")
    write(tmp_path / "in/dt=2026-11-01", a__csv="ts,user,x\n2026-11-01T00:00:00,b,71\n")
    lines = plan(tmp_path, *job, "2026-11-05", "--rows", "0").out.splitlines()
    assert lines[:3] == [
        "run        2 units run (1 again), 1 may run, 1 has no input; output out, state st",
        "           a correction may reach 2026-11-02 at most; it ends where a unit leaves the state that it",
        "             left before",
    ]
    assert lines[3] == "           units may be computed beforehand: --jobs N runs up to N at the same time"
    assert lines[5:9] == [
        "units      2026-11-01  run again  its input is not what it was (1 file, 35 bytes)",
        "           2026-11-02  may run    the unit before it may leave another state (1 file, 34 bytes)",
        "           2026-11-03  gap        there is no input for it",
        "           2026-11-04  run        it is not done yet (1 file, 34 bytes)",
    ]


# Mistakes end a plan as they end the run


@pytest.mark.parametrize(
    "args",
    [
        ("-w", "gap(tz, 5m)", "in", "out"),
        ("-w", "gap(ts, 5m)", "nowhere", "out"),
        ("-w", "gap(ts, 5m)", "-a", "sum(user)", "in", "out"),
        ("-w", "gap(ts, 5m)", "in", "out", "--partition-by", "nope"),
        ("-w", "gap(ts, 5m)", "in", "out", "--start", "2026-11-01", "--end", "2026-11-03"),
        ("-w", "gap(ts, 5m)", "in", "out", "--state", "in"),
        ("-w", "gap(ts, 5m)", "in/a.csv", "out", "--state", "in/a.csv/st"),
        ("-w", "gap(ts, 5m)", "in", "out", "--expect", "rows_inn > 3"),
    ],
)
def test_what_a_run_refuses_a_plan_refuses_with_the_same_words(args: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv=LOG)
    planned = plan(tmp_path, *args, code=wincli_here("run", *args, cwd=tmp_path).code)
    assert planned.code in (2, 3)
    assert planned.err == wincli_here("run", *args, cwd=tmp_path).err.replace("; nothing was written", "")


# Windows over the first rows


def test_windows_of_a_chosen_key_are_drawn(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="ts,user,x\n0,a,1\n1,b,2\n2,a,3\n9,a,4\n10,b,5\n")
    out = plan(tmp_path, "-w", "gap(ts, 3)", "-k", "user", "--order-by", "ts", "--only", "user=a", "in", "out").out
    assert out.splitlines()[-6:] == [
        "        key user; order ts; 3 rows, 1 key, 2 panes",
        "",
        "ts:      0               2                                                         9",
        "rows a:  a               b                                                         c",
        "pane 0: [a               b]                                                            gap  2 rows",
        "pane 1:                                                                           [c>  end  1 row",
    ]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(1, 30), st.booleans())
def test_the_first_rows_are_the_first_of_the_input(
    tmp_path_factory: pytest.TempPathFactory, files: list[int], most: int, is_chosen: bool
) -> None:
    folder, n, ends = tmp_path_factory.mktemp("head"), 0, []
    for number, count in enumerate(files):
        table = pa.table({"n": range(n, n + count), "k": [i % 2 for i in range(n, n + count)]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=2)
        n += count
        ends.append(n)
    source = open_source([str(folder)], ReadOptions(), LocalExecutor())
    head = read_head(source, ["n", "k"], {"k": [1]} if is_chosen else {}, most)
    wanted = [i for i in range(n) if i % 2 or not is_chosen]
    assert head.rows["n"].to_pylist() == wanted[:most]
    assert head.is_all == (len(wanted) <= most and head.seen == n)
    placed = [sum(i < end for i in wanted) for end in ends]
    assert list(head.ends) == placed[: len(head.ends)]
    assert len(head.ends) == len(ends) or placed[len(head.ends)] >= most


# Sizes and tasks


UNKNOWN = [
    "local[0]",
    "local[99999]",
    f"local[{'9' * 5000}]",
    *("spark://host:7077" + n for n in ("", " 0", " " + "9" * 5000)),
]
TASKS = {"local": 1, "local[7]": 7, "local[3,2]": 3, "spark://host:7077 40": 40, **dict.fromkeys(UNKNOWN)}
"""Tasks at a time of a master, behind which stands ``spark.default.parallelism``; None: they are not known."""


@pytest.mark.parametrize("given", TASKS, ids=lambda given: given[:30])
def test_tasks_at_a_time(given: str) -> None:
    master, _, parallelism = given.partition(" ")
    driver = driver_of(master, {"spark.default.parallelism": parallelism} if parallelism else {})
    assert (driver.parallelism, driver.is_known) == (TASKS[given] or 1, TASKS[given] is not None)
    assert driver_of("local[*]", {}).parallelism >= 1


def test_sizes_in_words() -> None:
    assert [size(nbytes) for nbytes in (1, 1023, 1536, 3 << 30)] == ["1 byte", "1,023 bytes", "1.5 KiB", "3.0 GiB"]


def test_a_plan_has_the_steps_of_a_funnel_and_says_where_a_pattern_may_stay_open(tmp_path: Path) -> None:
    write(tmp_path, a__csv=LOG)
    steps = "funnel(low = x < 3, high = x > 3) within 30m"
    (stage,) = forecast_of(tmp_path, "-w", steps, "-k", "user", "a.csv", "out")["stages"]
    origins = {each["name"]: each["origin"] for each in stage["columns"]}
    assert origins["steps"] == "count()"
    assert origins["high"] == "first(ts) where matched_as = 'high'"
    waits = ("-w", "match(low -> high, low = x < 3, high = x > 3)", "-k", "user", "--order-by", "ts", "a.csv", "out")
    note = "a match of low -> high may stay open for ever, and holds the rows of its key from its first: add within D"
    assert forecast_of(tmp_path, *waits)["notes"] == [note]
    assert note in " ".join(plan(tmp_path, *waits).out.split())
