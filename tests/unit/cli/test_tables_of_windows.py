"""Runs whose windows a table has: night after night, what is recorded, what is said of mistakes, and who else asks."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

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
