"""Runs whose windows a table has: night after night, what is recorded, what is said of mistakes, and who else asks."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

import wincli
from support.day_results import day, records, span
from support.in_process import done, wincli_here
from support.processes import manifest, write

OUT = ("--order-by", "ts", "--plain", "--output-format", "csv")
COUNTS = ("--window", "table(w)", *OUT, "--agg", "n=count()", "--agg", "ids=string_join(id, '')")


def values(folder: Path, *names: str) -> list[tuple[str, ...]]:
    parts = [part.read_text().splitlines() for part in sorted(folder.rglob("part-*.csv"))]
    return sorted(tuple(row[name] for name in names) for part in parts for row in csv.DictReader(part))


def nights(folder: Path) -> None:
    """Three days of rows at four hours each, and for each day the incidents that begin in it."""
    for number, ids in enumerate(("abcd", "efgh", "ijkl"), 1):
        times = [f"{day(number)}T{hour:02}:00:00" for hour in (3, 9, 15, 21)]
        rows = [f"{at},{name},{'xy'[at[11:13] in ('09', '21')]}" for at, name in zip(times, ids, strict=True)]
        write(folder / "log" / f"dt={day(number)}", a__csv="\n".join(["ts,id,plant", *rows, ""]))
    head = "plant,begin,end,what"
    own = {
        1: [f"x,{day(1)}T02:00:00,{day(1)}T04:00:00,fire", f"y,{day(1)}T20:00:00,{day(2)}T10:00:00,flood"],
        2: [f"x,{day(2)}T03:00:00,{day(3)}T03:00:00,storm", f"x,{day(2)}T14:00:00,{day(2)}T16:00:00,fire"],
        3: [f"y,{day(3)}T09:00:00,{day(3)}T22:00:00,theft", f"x,{day(3)}T10:00:00,{day(3)}T11:00:00,none"],
    }
    for number, lines in own.items():
        write(folder / "incidents" / f"dt={day(number)}", a__csv="\n".join([head, *lines, ""]))
    every = [line for lines in own.values() for line in lines]
    write(folder, all__csv="\n".join([head, *every, ""]))


TEXT = "w={} on plant from begin to end"
WHOLE = [
    ("fire", "1", "a"), ("fire", "1", "g"), ("flood", "2", "df"), ("storm", "2", "eg"), ("theft", "2", "jl"),
]  # fmt: skip


@pytest.mark.parametrize("table", ["incidents/dt={date}", "all.csv"])
def test_nights_are_one_run_with_a_table_each_and_with_one_that_grows(tmp_path: Path, table: str) -> None:
    nights(tmp_path)
    job = (*COUNTS, "--key", "plant")
    done(tmp_path, "run", *job, "--windows", TEXT.format("all.csv"), "log", "one")
    assert values(tmp_path / "one", "w_what", "n", "ids") == WHOLE
    daily = (*job, "--state", "st", "--windows", TEXT.format(table), "log", "units")
    done(tmp_path, "run", *daily, *span(1, 2))
    ran = done(tmp_path, "run", *daily, *span(1, 3), "--at-end", "flush")
    assert values(tmp_path / "units", "w_what", "n", "ids") == WHOLE
    assert "its table" not in ran.err
    assert all(manifest(folder)["windows_late"] == 0 for folder in (tmp_path / "units").iterdir())


HEAD, OF_UNITS = "plant,begin,end,what", TEXT.format("incidents/dt={date}")


def at(number: int, hour: int) -> str:
    return f"{day(number)}T{hour:02}:00:00"


def put(folder: Path, logs: dict[int, list[str]], tables: dict[int, list[str]]) -> None:
    """Rows and windows of days: ``NUMBER-HOUR,..``, a window with two such times behind its plant."""

    def timed(line: str) -> str:
        parts = [each.split("-") for each in line.split(",")]
        return ",".join(at(int(part[0]), int(part[1])) if len(part) == 2 else part[0] for part in parts)

    for number, lines in logs.items():
        rows = [timed(line) for line in lines]
        write(folder / "log" / f"dt={day(number)}", a__csv="\n".join(["ts,till,id,plant", *rows, ""]))
    for number, lines in tables.items():
        own = [timed(line) for line in lines]
        write(folder / "incidents" / f"dt={day(number)}", a__csv="\n".join([HEAD, *own, ""]))
    every = [timed(line) for lines in tables.values() for line in lines]
    write(folder, all__csv="\n".join([HEAD, *every, ""]))


QUIET = {
    1: [], 2: ["2-03,2-05,a,x", "2-06,4-03,b,y"], 3: [], 4: ["4-01,4-02,c,x", "4-05,4-05,d,y"], 5: ["5-20,5-21,e,x"],
}  # fmt: skip
"""Days without rows, and others whose rows end early."""
BEHIND = {
    1: ["x,1-05,2-04,first", "y,1-08,1-09,over"], 2: ["x,2-20,5-04,long", "y,2-06,2-07,at once", "y,2-21,3-02,between"],
    3: ["x,3-05,4-02,quiet", "y,3-05,4-06,quiet too", "z,3-05,4-06,no row"], 4: ["x,4-22,5-22,behind"], 5: [],
}  # fmt: skip


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize(
    "more",
    [
        ("--key", "plant"),
        ("--key", "plant", "--empty", "row"),
        ("--key", "plant,id", "--empty", "row"),
        ("--key", "plant", "--ends", "till"),
        ("--key", "plant", "--ends", "till", "--empty", "row"),
    ],
    ids="_".join,
)
def test_tables_of_days_add_up_where_rows_end_early_and_where_there_are_none(
    tmp_path: Path, more: tuple[str, ...], closed: str
) -> None:
    put(tmp_path, QUIET, BEHIND)
    names = ("w_what", "plant", "window", "window_end", "closed_by", "n", "ids")
    types = ("--schema", "ts:timestamp,till:timestamp,id:string,plant:string", "--closed", closed)
    job = ("run", *COUNTS, *more, *types)
    done(tmp_path, *job, "--windows", TEXT.format("all.csv"), "log", "one")
    whole = values(tmp_path / "one", *names)
    assert {"long", "quiet", "behind", "quiet too"} <= {row[0] for row in whole}
    daily = (*job, "--state", "st", "--windows", OF_UNITS, "log", "units")
    for last in range(1, 6):
        done(tmp_path, *daily, *span(1, last), *(("--at-end", "flush") if last == 5 else ()))
    assert values(tmp_path / "units", *names) == whole
    assert all(manifest(folder)["windows_late"] == 0 for folder in (tmp_path / "units").iterdir())
    # in one range, and again from a day on
    done(tmp_path, *job, "--state", "other", "--windows", OF_UNITS, *span(1, 5), "log", "range")
    done(tmp_path, *job, "--state", "other", "--windows", OF_UNITS, *span(3, 3), "--redo", "log", "range")
    flushed = ("--at-end", "flush", *span(5, 5), "--redo")
    done(tmp_path, *job, "--state", "other", "--windows", OF_UNITS, *flushed, "log", "range")
    assert values(tmp_path / "range", *names) == whole


def test_a_later_table_changes_a_window_that_has_not_begun_and_no_other(tmp_path: Path) -> None:
    tables = {
        1: ["x,1-10,1-20,kept", "x,1-11,1-20,cancelled", "x,1-12,1-13,longer", "y,1-12,1-13,other key",
            "x,1-02,2-10,fixed", "x,1-14,1-15,same"],
        2: ["x,1-11,1-11,cancelled", "x,1-12,2-11,now longer", "x,1-02,2-20,too late", "x,1-14,1-15,same"],
    }  # fmt: skip
    logs = {1: ["1-03,,a,x"], 2: ["2-08,,b,x", "2-12,,c,x"]}
    put(tmp_path, logs, tables)
    daily = ("run", *COUNTS, "--key", "plant", "--state", "st", "--windows", OF_UNITS, "log", "units")
    done(tmp_path, *daily, "--empty", "row", *span(1, 1))
    ran = done(tmp_path, *daily, "--empty", "row", *span(1, 2))
    assert "passes over 1 window of its table" in ran.err
    found = values(tmp_path / "units", "w_what", "plant", "window_end", "n")
    told = [(what, plant, end.replace(" ", "T")[:19], n) for what, plant, end, n in found]
    assert told == [
        ("cancelled", "x", at(1, 11), "0"), ("fixed", "x", at(2, 10), "2"), ("kept", "x", at(1, 20), "0"),
        ("now longer", "x", at(2, 11), "1"), ("other key", "y", at(1, 13), "0"), ("same", "x", at(1, 15), "0"),
    ]  # fmt: skip


def test_a_table_that_changes_what_begins_behind_its_day_runs_the_days_behind_it_again(tmp_path: Path) -> None:
    put(tmp_path, QUIET, BEHIND)
    daily = ("run", *COUNTS, "--key", "plant", "--state", "st", "--windows", OF_UNITS, "log", "units")
    types = ("--schema", "id:string,plant:string")
    done(tmp_path, *daily, *types, *span(1, 5))
    put(tmp_path, {}, {**BEHIND, 2: [BEHIND[2][0].replace("2-20", "3-20"), *BEHIND[2][1:]]})
    ran = done(tmp_path, *daily, *types, *span(1, 5), "-v")
    assert f"{day(2)} is run again: its input is not what it was" in ran.err
    assert f"{day(3)} is run again: the state before it is not the one that it began from" in ran.err
    found = values(tmp_path / "units", "w_what", "window_start", "ids")
    assert [(start.replace(" ", "T")[:19], ids) for what, start, ids in found if what == "long"] == [(at(3, 20), "c")]


def test_late_rows_are_in_windows_that_begin_behind_the_last_row_of_their_day(tmp_path: Path) -> None:
    logs = {1: ["1-03,,a,x"], 2: ["2-08,,b,x"], 3: ["1-21,,l,x", "2-20,,m,x", "3-12,,c,x"]}
    put(tmp_path, logs, {1: ["x,1-20,1-22,late"], 2: ["x,2-19,3-13,behind"], 3: []})
    job = ("run", *COUNTS, "--key", "plant")
    done(tmp_path, *job, "--windows", TEXT.format("all.csv"), "log", "one")
    daily = (*job, "--state", "st", "--windows", OF_UNITS, "--late", "redo", "log", "units")
    for last in (1, 2, 3):
        done(tmp_path, *daily, *span(1, last), *(("--at-end", "flush") if last == 3 else ()))
    found = values(tmp_path / "units", "w_what", "n", "ids")
    assert found == values(tmp_path / "one", "w_what", "n", "ids") == [("behind", "2", "mc"), ("late", "1", "l")]


def test_tables_of_days_add_up_for_a_later_stage(tmp_path: Path) -> None:
    put(tmp_path, QUIET, BEHIND)
    (tmp_path / "job.yaml").write_text(
        "input: log\noutput: out\nschema: {id: string, plant: string, ts: timestamp}\nplain: true\noutput_format: csv\n"
        "stages:\n- {name: hours, window: time(1h), key: plant, order_by: ts, agg: {n: count()}}\n"
        "- {name: own, window: table(w), key: plant, order_by: window_start, agg: {n: count()}}\n"
    )
    names = ("w_what", "window", "closed_by", "n")
    done(tmp_path, "run", "job.yaml", "--windows", TEXT.format("all.csv"), "log", "one")
    done(tmp_path, "run", "job.yaml", "--windows", OF_UNITS, "--state", "st", *span(1, 4))
    done(tmp_path, "run", "job.yaml", "--windows", OF_UNITS, "--state", "st", *span(1, 5), "--at-end", "flush")
    assert values(tmp_path / "out", *names) == values(tmp_path / "one", *names)


def test_a_window_that_comes_after_it_has_begun_is_told_and_redo_brings_it_in(tmp_path: Path) -> None:
    nights(tmp_path)
    daily = (*COUNTS, "--key", "plant", "--state", "st", "--windows", TEXT.format("all.csv"), "log", "units")
    done(tmp_path, "run", *daily, *span(1, 2))
    before = values(tmp_path / "units", "w_what", "ids")
    with (tmp_path / "all.csv").open("a") as file:
        file.write(f"y,{day(2)}T08:00:00,{day(3)}T10:00:00,late\n")
    ran = done(tmp_path, "run", *daily, *span(1, 3))
    assert "table(w) passes over 1 window of its table, new or changed: the clock had passed the start" in ran.err
    assert manifest(tmp_path / "units" / f"dt={day(3)}")["windows_late"] == 1
    assert ("late", "fhj") not in values(tmp_path / "units", "w_what", "ids")
    assert set(before) <= set(values(tmp_path / "units", "w_what", "ids"))
    write(tmp_path / "log" / f"dt={day(4)}", a__csv=f"ts,id,plant\n{day(4)}T03:00:00,m,x\n")
    ran = done(tmp_path, "run", *daily, *span(1, 4))
    assert "its table" not in ran.err  # what was told is known
    done(tmp_path, "run", *daily, *span(2, 4), "--redo")
    assert ("late", "fhj") in values(tmp_path / "units", "w_what", "ids")
    assert manifest(tmp_path / "units" / f"dt={day(3)}")["windows_late"] == 0


def test_a_window_that_is_changed_stays_as_it_was(tmp_path: Path) -> None:
    nights(tmp_path)
    daily = (*COUNTS, "--key", "plant", "--state", "st", "--windows", TEXT.format("all.csv"), "log", "units")
    done(tmp_path, "run", *daily, *span(1, 2))
    text = (tmp_path / "all.csv").read_text()
    (tmp_path / "all.csv").write_text(text.replace(f"{day(3)}T03:00:00,storm", f"{day(3)}T23:00:00,storm"))
    ran = done(tmp_path, "run", *daily, *span(1, 3))
    assert "passes over 1 window" in ran.err
    assert ("storm", "eg") in values(tmp_path / "units", "w_what", "ids")


def test_another_request_is_another_job_and_files_of_the_table_are_recorded(tmp_path: Path) -> None:
    nights(tmp_path)
    job = (*COUNTS, "--key", "plant", "--state", "st", *span(1, 2))
    done(tmp_path, "run", *job, "--windows", TEXT.format("incidents/dt={date}"), "log", "units")
    recorded = records(tmp_path / "st")[day(2)]
    assert [Path(file["path"]).parent.name for file in recorded["enrich"]["w"]] == [f"dt={day(2)}"]
    write(tmp_path / "incidents" / f"dt={day(2)}", a__csv="plant,begin,end,what\n")
    ran = done(tmp_path, "run", *job, "--windows", TEXT.format("incidents/dt={date}"), "log", "units")
    assert f"{day(2)} is run again: its input is not what it was" in ran.err
    other = TEXT.format("incidents/dt={date}").replace("begin", "end")
    ran = done(tmp_path, "run", *job, *span(1, 3), "--windows", other, "log", "units", code=2)
    assert "its windows is w=incidents/dt={date} on plant from begin to end, not w=incidents" in ran.err


def test_mistakes_are_said_in_one_line(tmp_path: Path) -> None:
    write(
        tmp_path, log__csv="ts,plant\n1,p\n5,q\n", w__csv="plant,s,e,name\np,1,4,x\nq,3,,y\n", b__csv="s,e\n1,2\n9,3\n"
    )
    write(tmp_path, text__csv="s,e\nnoon,night\n")

    def said(*args: str) -> str:
        ran = wincli_here("run", "--order-by", "ts", *args, "log.csv", "out", cwd=tmp_path)
        assert ran.code in (2, 3, 4), ran.err
        return ran.err

    table = ("--window", "table(w)")
    assert 'table(w) needs its windows; say --windows "w=PATH [on KEY] from START to END"' in said(*table)
    assert '--windows w is used by no window; write --window "table(w)"' in said(
        "--window", "count(2)", "--windows", "w=w.csv from s to e"
    )
    assert "--windows w: row 3 of w.csv has no end" in said(*table, "--windows", "w=w.csv from s to e")
    assert "--windows w: row 3 of b.csv ends (3) before it begins (9)" in said(
        *table, "--windows", "w=b.csv from s to e"
    )
    assert "--windows w: 'plant' is no key of the window; give --key plant" in said(
        *table, "--windows", "w=w.csv on plant from s to e"
    )
    assert "'s' is string and 'ts' is int64: these do not compare" in said(
        *table, "--windows", "w=text.csv from s to e"
    )
    for spec in ("table(w) or count(3)", "count(3) or table(w)", "sliding, table(w)", "table(w), partitionAge(3)"):
        assert "table stands alone" in said("--window", spec, "--windows", "w=b.csv from s to e")
    twice = ("--enrich", "w=w.csv on plant", "--windows", "w=b.csv from s to e")
    assert "--windows w has the name of another table" in said(*table, *twice)


def test_why_plan_and_cases_know_the_table(tmp_path: Path) -> None:
    nights(tmp_path)
    job = (*COUNTS, "--key", "plant", "--windows", TEXT.format("all.csv"), "log")
    ran = done(tmp_path, "plan", *job, "out")
    assert "Each row of the table w is a window" in ran.out
    assert "what of the table w" in ran.out
    assert "pane 0" in ran.out
    done(tmp_path, "run", *job, "out")
    ran = done(tmp_path, "why", "out", "--only", "plant=y", "--window", "0")
    assert f"the table w has it: from {day(1)} 20:00:00 to {day(2)} 10:00:00" in ran.out.replace("T", " ")
    assert "the clock reached" in ran.out
    (tmp_path / "job.yaml").write_text(
        "window: table(shifts)\nwindows: {shifts: shifts.csv from start to end}\norder_by: ts\nagg: {n: count()}\n"
        "input: in\noutput: out2\n"
    )
    (tmp_path / "job.test.yaml").write_text(
        "cases:\n- name: a shift\n  given: |\n    ts\n    1\n    2\n    9\n"
        "  tables:\n    shifts: |\n      start,end,name\n      0,5,early\n"
        "  expect: |\n    window,window_start,window_end,closed_by,shifts_name,n\n    0,0,5,table,early,2\n"
    )
    ran = wincli_here("test", "job.yaml", cwd=tmp_path)
    assert ran.code == 0, ran.err + ran.out


def test_windows_of_a_state_go_to_the_library_and_back(tmp_path: Path) -> None:
    logs = {1: ["1-03,,a,x"], 2: ["2-08,,b,x"], 3: ["3-12,,c,x"]}
    put(tmp_path, logs, {1: ["x,1-02,3-13,fixed", "x,2-20,3-11,behind"], 2: ["x,2-21,3-13,behind too"], 3: []})
    job = ("run", *COUNTS, "--key", "plant", "--state", "st", "--windows", OF_UNITS)
    done(tmp_path, *job, *span(1, 2), "log", "units")
    state = wincli.read_state(str(tmp_path / "st"))
    bounds = pa.timestamp("us")
    columns = {"plant": ["x"], "begin": [at(1, 2)], "end": [at(3, 23)], "what": ["another"]}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    for name in ("begin", "end"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(bounds))
    rows = pa.table({"ts": pa.array([at(3, 12)]).cast(bounds), "id": ["c"], "plant": ["x"]})
    found, _ = wincli.aggregate(
        rows, "table(w)", key="plant", order_by="ts", aggregates=["n=count()", "ids=string_join(id, '')"], state=state,
        windows={"w on plant from begin to end": table}, at_end="flush",
    )  # fmt: skip
    # a window that is fixed stays as it is; a table in memory is the whole list, and has none of those that begin
    assert [(row["w_what"], row["ids"]) for row in found.to_pylist()] == [("fixed", "abc")]
    wincli.write_state(state, str(tmp_path / "other"))
    again = wincli.read_state(str(tmp_path / "other"))
    assert held(again) == held(state) == ["fixed", "behind", "behind too"]


def held(state: pa.Table) -> list[str]:
    told = next(each for each in state["_registers"].to_pylist() if each is not None)
    return [window["what"] for window in told["windows"]]
