"""The whole command, plain runs onto a state: each file once, the same job, and a folder that is a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from support.day_results import RUN_THAT_JOB, kept, records, total
from support.in_process import done, wincli_here
from support.processes import Ran, rejected, rows, tree, write
from wincli.cli.run.incremental_run import identity_changes

GAP = ("-w", "gap(ts, 5)", "-k", "user", "--order-by", "ts", "-a", "ids=collect(id)")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Four runs: `a` goes on from each to the next but the last, `b` does not."""
    write(
        tmp_path,
        a1__csv="ts,user,id\n1,a,1\n2,b,2\n9,a,3\n10,b,4\n",
        a2__csv="ts,user,id\n12,a,5\n20,b,6\n20,a,7\n",
        a3__csv="ts,user,id\n22,a,8\n40,b,9\n",
        a4__csv="ts,user,id\n60,a,10\n",
    )
    return tmp_path


def run(folder: Path, n: int, *more: str, command: Sequence[str] = GAP) -> Ran:
    return wincli_here("run", *command, f"a{n}.csv", f"out/{n}", "--state", "st", *more, cwd=folder)


def runs(folder: Path, *numbers: int, more: Sequence[str] = ()) -> None:
    for n in numbers:
        ran = run(folder, n, *more)
        assert ran.code == 0, ran.err


def fails(folder: Path, code: int, text: str, *args: str) -> None:
    """Run what must end with an exit code and a text, and leave nothing but the error in the state."""
    before = tree(folder)
    ran = wincli_here("run", *args, cwd=folder)
    assert (ran.code, ran.err.splitlines()[-1]) == (code, f"wincli: error: {text}")
    after = tree(folder)
    for seen in (before, after):
        for name in [name for name in seen if name.endswith(".last-error.json")]:
            del seen[name]
    assert after == before


def test_windows_go_on_from_run_to_run_and_flush_lets_all_out(log: Path) -> None:
    runs(log, 1, 2)
    assert [rows(log / "out" / f"{n}", "user", "window", "ids") for n in (1, 2)] == [
        [("a", 0, [1]), ("b", 0, [2])],
        [("a", 1, [3, 5]), ("b", 1, [4])],
    ]
    ran = run(log, 3, "--at-end", "flush")
    assert ran.summary == "2 rows in, 3 windows out, 0 rejected"
    assert rows(log / "out/3", "user", "window", "ids", "closed_by") == [
        ("a", 2, [7, 8], "end"),
        ("b", 2, [6], "gap"),
        ("b", 3, [9], "end"),
    ]
    assert run(log, 4).summary == "1 row in, 0 windows out, 0 rejected, 1 held"
    found = records(log / "st")
    assert [*found] == [f"run-00000{n}" for n in (1, 2, 3, 4)]
    assert [record["previous"] for record in found.values()] == [None, *[*found][:3]]
    assert [record["stages"][0]["counts"]["held"] for record in found.values()] == [2, 2, 0, 1]
    summed = total(log / "st")
    assert (summed["rows_in"], summed["windowed"], summed["held"]) == (10, 9, 1)


def test_rows_behind_the_run_before_are_late(log: Path) -> None:
    runs(log, 2)
    assert run(log, 1).summary == "4 rows in, 0 windows out, 4 rejected (late 4), see _rejected, 2 held"
    assert rejected(log / "out/1", "_reason", "_file", "id") == [("late", "a1.csv", n) for n in (1, 2, 3, 4)]
    assert total(log / "st")["rejected"] == {"late": 4}


def test_each_file_is_read_once(log: Path) -> None:
    runs(log, 1)
    before = tree(log)
    again = run(log, 1, "--exit-code-noop", "9")
    assert (again.code, again.err) == (9, "wincli: nothing to do: run-000001 of st has read this input\n")
    assert tree(log) == before
    runs(log, 2)
    what = f"{log}/a1.csv was read by run-000001 of this state already"
    text = f"{what}; name only new files, or use {{date}} with --start and --end"
    fails(log, 2, text, *GAP, "a*.csv", "out/3", "--state", "st")


def test_only_the_last_states_are_kept(log: Path) -> None:
    runs(log, 1, 2, 3, 4, more=("--keep", "2"))
    assert kept(log / "st") == ["run-000003", "run-000004"]
    assert len(records(log / "st")) == 4


OTHERS = {
    "its window is tumbling, gap(ts, 5), not tumbling, delta(ts, 5)": [*GAP[:1], "delta(ts, 5)", *GAP[2:]],
    "its key is user, not none": [*GAP[:2], *GAP[4:]],
    "its order is ts, not none": [*GAP[:5], "arrival", *GAP[6:]],
    "its group_by is none, not id": [*GAP, "--group-by", "id"],
    "it does not hold column more": [*GAP, "-a", "max(more)"],
    "its key is user, not id; its order is ts, not id, ts": [*GAP[:2], "-k", "id", "--order-by", "id,ts"],
}


def test_the_state_of_another_job(log: Path) -> None:
    runs(log, 1)
    (log / "a2.csv").write_text("ts,user,id,more\n12,a,5,1\n")
    for different, command in OTHERS.items():
        text = f"the state st is of another job (at run-000001): {different}; {RUN_THAT_JOB}"
        fails(log, 2, text, *command, "a2.csv", "out/2", "--state", "st")
    two, swapped = ((*GAP[:5], order, *GAP[6:]) for order in ("ts,id", "id,ts"))
    done(log, "run", *two, "a1.csv", "out/two", "--state", "st2")
    text = f"the state st2 is of another job (at run-000001): its order is ts, id, not id, ts; {RUN_THAT_JOB}"
    fails(log, 2, text, *swapped, "a2.csv", "out/2", "--state", "st2")


def test_a_wider_type_goes_on_and_the_state_gets_it(log: Path) -> None:
    runs(log, 1)
    (log / "a2.csv").write_text("ts,user,id\n12.5,a,5\n20,b,6\n20,a,7\n")
    runs(log, 2)
    assert rows(log / "out/2", "user", "window", "ids") == [("a", 1, [3, 5]), ("b", 1, [4])]
    planned = wincli_here("plan", *GAP, "a3.csv", "out/3", "--state", "st", cwd=log).out
    assert re.search(r"ts +double +the state st at run-000002", planned), planned
    runs(log, 3)
    assert rows(log / "out/3", "user", "window", "ids", "window_start") == [("b", 2, [6], 20.0)]


def test_a_type_that_the_state_cannot_have_names_it_both_types_and_the_entry_that_keeps_it(log: Path) -> None:
    runs(log, 1)
    (log / "a2.csv").write_text("ts,user,id\nnoon,a,5\n")
    text = "column 'ts' is int64 in the state st at run-000001 and string in a2.csv"
    fails(log, 3, f"{text}; read it as it was, with --schema 'ts:int64'", *GAP, "a2.csv", "out/2", "--state", "st")
    declared = [*GAP, "--schema", "ts:int64,id:string", "a2.csv", "out/2", "--state", "st"]
    text = "column 'id' is int64 in the state st at run-000001 and string by --schema"
    fails(log, 2, f"{text}; read it as it was, with --schema 'id:int64'", *declared)
    runs(log, 2, more=["--schema", "ts:int64"])
    assert rejected(log / "out/2", "_reason") == [("unparsable",)]


def test_a_value_that_the_wider_type_does_not_hold_exactly_is_named(log: Path) -> None:
    (log / "a1.csv").write_text(f"ts,user,id\n1,a,{2**53 + 1}\n")
    runs(log, 1)
    (log / "a2.csv").write_text("ts,user,id\n2,a,0.5\n")
    what = f"column 'id' holds {2**53 + 1} in the state st at run-000001, as int64, and double, its type in a2.csv,"
    text = f"{what} does not hold that exactly; read it as it was, with --schema 'id:int64'"
    fails(log, 2, text, *GAP, "a2.csv", "out/2", "--state", "st")


def test_the_state_of_other_stages(log: Path) -> None:
    stages = [
        {"name": "visits", "window": "gap(ts, 5)", "order_by": "ts", "agg": "n=count()"},
        {"name": "all", "window": "count(2)", "agg": "n=sum(n)"},
    ]
    told = {"renamed": "its stages are visits, all, not visits, both"}
    told["other"] = "stage all: its window is tumbling, count(2), not tumbling, count(3)"
    jobs = {"job": stages, "renamed": [stages[0], {**stages[1], "name": "both"}]}
    jobs["other"] = [stages[0], {**stages[1], "window": "count(3)"}]
    for name, each in jobs.items():
        (log / f"{name}.yaml").write_text(yaml.safe_dump({"stages": each, "state": "st"}))
    done(log, "run", "job.yaml", "a1.csv", "out/1")
    for name, different in told.items():
        text = f"the state st is of another job (at run-000001): {different}; {RUN_THAT_JOB}"
        fails(log, 2, text, f"{name}.yaml", "a2.csv", "out/2")


def test_aggregates_and_outputs_may_change(log: Path) -> None:
    runs(log, 1)
    ran = run(log, 2, command=[*GAP[:-1], "n=count()", "--output-format", "csv"])
    assert ran.code == 0, ran.err
    assert (log / "out/2/part-00000.csv").read_text().splitlines()[1].startswith('"a",1,9,12,"gap",2,')


def test_folders_that_are_no_state(log: Path) -> None:
    write(log / "other", notes__txt="mine")
    text = "other is not empty and is not a state of wincli; nothing was touched"
    todo = "choose another folder for the state, or empty that one yourself"
    fails(log, 2, f"{text}; {todo}", *GAP, "a1.csv", "out", "--state", "other")
    text = "states are kept in local folders and on s3://, gs:// and abfs:// only, not on hdfs://here/st"
    fails(log, 2, f"{text}; name another folder", *GAP, "a1.csv", "out", "--state", "hdfs://here/st")


def test_plain_runs_and_days_do_not_mix(log: Path) -> None:
    runs(log, 1)
    write(log / "log/dt=2026-11-01", a__csv="ts,user,id\n50,a,1\n")
    days = ("--start", "2026-11-01", "--end", "2026-11-02")
    text = "the state holds plain runs (run-000001), and this run adds days; use another --state"
    fails(log, 2, text, *GAP, "log", "days", "--state", "st", *days)


def test_an_option_that_an_older_state_lacks_had_its_default() -> None:
    now = {"window": "tumbling, count(3)", "key": [], "order": [], "empty": "skip", "lag": "0", "columns": {}}
    older = {name: value for name, value in now.items() if name not in ("lag", "empty")}
    assert identity_changes({"1": older}, {"1": now}) == identity_changes({"1": now}, {"1": now}) == []
    assert identity_changes({"1": older}, {"1": {**now, "lag": "5"}}) == ["its lag is 0, not 5"]
