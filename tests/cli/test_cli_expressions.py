"""Expressions through the whole command: new columns, conditions of rows and of results, and rows that fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, manifest, rejected, rows, table, write

Run = Callable[..., Ran]
Fails = Callable[..., None]

ROWS = [
    {"t": t, "user": user, "price": price, "items": items, "ctx": {"pid": 7 + (user == "b")}}
    for t, user, price, items in (
        *((1, "a", "2.5", 2), (2, "b", "1.0", 1), (3, "a", "4.0", 3)),
        *((4, "a", "n/a", 1), (5, "b", "9.0", 0), (6, "a", "3.0", 2)),
    )
]
LINES = [json.dumps(row) + "\n" for row in ROWS]
LOG = "".join(LINES)
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


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_columns_and_conditions_are_the_same_in_text_and_columns(run: Run, tmp_path: Path, form: str) -> None:
    write(tmp_path / "log", a__jsonl=LOG)
    if form == "parquet":
        (tmp_path / "log" / "a.jsonl").unlink()
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "log" / "a.parquet", row_group_size=2)
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


def test_two_units_with_a_state_are_one_run(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl="".join(LINES[:3]), b__jsonl="".join(LINES[3:]))
    assert run(*ASKED, "log", "one").code == 0
    assert run(*ASKED, "--state", "st", "log/a.jsonl", "out1").code == 0
    ran = run(*ASKED, "--state", "st", "--at-end", "flush", "log/b.jsonl", "out2")
    assert ran.code == 0, ran.err
    names = ("user", "window", "total", "rise", "large")
    found = [row for out in ("out1", "out2") for row in rows(tmp_path / out, *names) if row[2] is not None]
    assert found == [row for row in rows(tmp_path / "one", *names) if row[2] is not None] == WANTED


def test_a_result_that_fails_leaves_nothing(fails: Fails, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl=LOG)
    text = "--agg p fails for window 0 of user='a': 'n/a' is no DOUBLE; guard it with CASE or TRY_CAST"
    asked = ("-w", "count(9)", "-k", "user", "-a", "p=cast(max(price) as double)")
    fails(4, text, *asked, "log", "out")
