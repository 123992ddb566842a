"""Expressions through the whole command: new columns, conditions of rows and of results, and rows that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, manifest, rejected, rows, table, write

Run = Callable[..., Ran]
Fails = Callable[..., None]

LOG = (
    '{"t":1,"user":"a","price":"2.5","items":2,"ctx":{"pid":7}}\n'
    '{"t":2,"user":"b","price":"1.0","items":1,"ctx":{"pid":8}}\n'
    '{"t":3,"user":"a","price":"4.0","items":3,"ctx":{"pid":7}}\n'
    '{"t":4,"user":"a","price":"n/a","items":1,"ctx":{"pid":7}}\n'
    '{"t":5,"user":"b","price":"9.0","items":0,"ctx":{"pid":8}}\n'
    '{"t":6,"user":"a","price":"3.0","items":2,"ctx":{"pid":7}}\n'
)
FLAT = pa.table({
    "t": [1, 2, 3, 4, 5, 6],
    "user": ["a", "b", "a", "a", "b", "a"],
    "price": ["2.5", "1.0", "4.0", "n/a", "9.0", "3.0"],
    "items": [2, 1, 3, 1, 0, 2],
})  # fmt: skip
ASKED = (
    *("--let", "paid=cast(price as double) * items", "--where", "items > 0", "--having", "total > 2"),
    *("-w", "count(2)", "-k", "user", "--order-by", "t"),
    *("-a", "total=sum(paid)", "-a", "rise=last(paid) - first(paid)", "-a", "large=count() where paid >= 6"),
)
#   user a: 5, 12, (n/a), 6; user b: 1, which is not more than 2, and a row without items
WANTED = [("a", 0, 17.0, 7.0, 1), ("a", 1, 6.0, 0.0, 1)]
JOB = """
input: log
output: out
plain: true
stages:
  - window: count(2)
    key: user
    order_by: t
    let:
      paid: try_cast(price as double)
      p: paid * 2
    where: items > 0
    agg: {p: sum(p)}
  - window: count(2)
    let: {q: p + 1}
    where: p > 2
    having: n > 1
    agg: [n=count(), q=sum(q)]
"""


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_columns_and_conditions_are_the_same_in_every_format(run: Run, tmp_path: Path, form: str) -> None:
    (tmp_path / "log").mkdir()
    if form == "jsonl":
        write(tmp_path / "log", a__jsonl=LOG)
    elif form == "csv":
        pc.write_csv(FLAT, tmp_path / "log" / "a.csv")
    else:
        pq.write_table(FLAT, tmp_path / "log" / "a.parquet", row_group_size=2)
    ran = run(*ASKED, "log", "out")
    assert ran.code == 0, ran.err
    found = [row for row in rows(tmp_path / "out", "user", "window", "total", "rise", "large") if row[2] is not None]
    assert found == WANTED
    assert rejected(tmp_path / "out", "_reason", "_detail") == [("expression_error", "paid: 'n/a' is no DOUBLE")]
    counts = manifest(tmp_path / "out")["counts"]
    assert [counts[name] for name in ("rows_in", "windowed", "filtered", "panes_hidden")] == [6, 4, 1, 1]


def test_fields_and_where_a_row_came_from_are_columns(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl=LOG, b__jsonl=LOG)
    ran = run(
        *("-w", "punct()", "-k", "pid", "--let", "pid=ctx.pid", "--where", "_arrival <> 2 and ctx.pid = 7", "--plain"),
        *("-a", "file=first(_file)", "-a", "at=collect(_arrival)", "log", "out"),
    )
    assert ran.code == 0, ran.err
    wanted = [(7, "a.jsonl", [0, 3, 5]), (7, "b.jsonl", [6, 8, 9, 11])]
    assert rows(tmp_path / "out", "pid", "file", "at") == wanted


def test_each_stage_of_a_job_has_expressions_of_its_own(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl=LOG)
    (tmp_path / "job.yaml").write_text(JOB)
    ran = run("job.yaml")
    assert ran.code == 0, ran.err
    assert table(tmp_path / "out").select(["n", "q"]).to_pylist() == [{"n": 2, "q": 13.0 + 1 + 6.0 + 1}]


def test_two_units_with_a_state_are_one_run(spark_run: Run, tmp_path: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    write(tmp_path / "whole", a__jsonl="".join(lines[:3]), b__jsonl="".join(lines[3:]))
    write(tmp_path / "first", a__jsonl="".join(lines[:3]))
    write(tmp_path / "second", b__jsonl="".join(lines[3:]))
    assert spark_run(*ASKED, "whole", "one").code == 0
    assert spark_run(*ASKED, "--state", "st", "first", "out1").code == 0
    ran = spark_run(*ASKED, "--state", "st", "--at-end", "flush", "second", "out2")
    assert ran.code == 0, ran.err
    names = ("user", "window", "total", "rise", "large")
    found = [row for out in ("out1", "out2") for row in rows(tmp_path / out, *names) if row[2] is not None]
    assert found == [row for row in rows(tmp_path / "one", *names) if row[2] is not None] == WANTED


MISTAKES = {
    "a column that is not there": (
        ("--where", "itms > 0"),
        "--where: the column 'itms' is not there; did you mean 'items'?\n  itms > 0\n  ^^^^",
    ),
    "a column outside of an aggregate": (
        ("-a", "a=sum(items)+t"),
        "'t' is in no aggregate, and here each column must be in one; write for example last(t)\n"
        "  a=sum(items)+t\n               ^",
    ),
    "a name that is there": (("--let", "t=items"), "--let t: there is a column 't' already; choose another name"),
    "types that do not go together": (
        ("--let", "p=price + 1"),
        "--let p: VARCHAR and INTEGER cannot be added; convert it with CAST\n  price + 1\n  ^^^^^^^^^",
    ),
    "a row number of a result that is not there": (
        ("-a", "n=count()", "--plain", "--having", "nn > 1"),
        "--having: the column 'nn' is not there; did you mean 'n'?\n  nn > 1\n  ^^",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_before_anything_is_written(fails: Fails, tmp_path: Path, what: str) -> None:
    write(tmp_path / "log", a__jsonl=LOG)
    args, text = MISTAKES[what]
    fails(2, text, "-w", "count(2)", *args, "log", "out")


def test_a_result_that_fails_leaves_nothing(fails: Fails, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl=LOG)
    text = "--agg p fails for window 0 of user='a': 'n/a' is no DOUBLE; guard it with CASE or TRY_CAST"
    asked = ("-w", "count(9)", "-k", "user", "-a", "p=cast(max(price) as double)")
    fails(4, text, *asked, "log", "out")
