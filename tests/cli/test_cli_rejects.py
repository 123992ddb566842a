"""Rows that cannot be placed or read are set aside whole, each with its reason, file and line; nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, manifest, rejected, rows, write

Run = Callable[..., Ran]
Fails = Callable[..., None]
NAN = float("nan")
WHY = ("_reason", "_file", "_row", "_detail", "_text")


@pytest.fixture
def holes(tmp_path: Path) -> None:
    log = {
        "ts": pa.array([1.0, None, NAN, 4.0, 5.0, 6.0, 7.0]),
        "user": ["a", "a", "a", None, "b", "b", "b"],
        "amount": pa.array([1, 2, 3, 4, None, 6, 7]),
        "level": pa.array([1.0, 1.0, 1.0, 1.0, 1.0, NAN, None]),
        "note": list("tuvwxyz"),
    }
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table(log), tmp_path / "log" / "a.parquet")


def counts_of(out: Path, reasons: dict[str, int], rows_in: int) -> None:
    counts = manifest(out)["counts"]
    assert counts["rejected"] == reasons
    assert counts["rows_in"] == rows_in
    assert counts["windowed"] == rows_in - sum(reasons.values())


@pytest.mark.usefixtures("holes")
def test_null_and_nan_in_order_key_and_attribute(run: Run, tmp_path: Path) -> None:
    ran = run("-w", "delta(amount,2)", "-k", "user", "--order-by", "ts", "-a", "n=collect(note)", "log", "out")
    reasons = "null_attribute 1, null_key 1, null_order 2"
    assert (ran.code, ran.summary) == (0, f"7 rows in, 2 windows out, 4 rejected ({reasons}), see _rejected")
    assert rows(tmp_path / "out", "user", "n") == [("a", ["t"]), ("b", ["y", "z"])]
    counts_of(tmp_path / "out", {"null_attribute": 1, "null_key": 1, "null_order": 2}, 7)
    whole = rejected(tmp_path / "out", "user", "amount", "note", *WHY)
    assert whole == [
        ("a", 2, "u", "null_order", "log/a.parquet", 2, None, None),
        ("a", 3, "v", "null_order", "log/a.parquet", 3, None, None),
        (None, 4, "w", "null_key", "log/a.parquet", 4, None, None),
        ("b", None, "x", "null_attribute", "log/a.parquet", 5, None, None),
    ]


@pytest.mark.usefixtures("holes")
def test_nan_in_the_attribute_and_in_the_key(run: Run, tmp_path: Path) -> None:
    ran = run("-w", "delta(level,2)", "-a", "n=collect(note)", "log", "out")
    reasons = "nan_attribute 1, null_attribute 1"
    assert ran.summary == f"7 rows in, 1 window out, 2 rejected ({reasons}), see _rejected"
    assert rejected(tmp_path / "out", "note", "_reason") == [("y", "nan_attribute"), ("z", "null_attribute")]
    keyed = run("-w", "count(9)", "-k", "level", "-a", "n=collect(note)", "log", "keyed")
    assert keyed.summary == "7 rows in, 1 window out, 2 rejected (null_key 2), see _rejected"
    assert rows(tmp_path / "keyed", "n") == [list("tuvwx")]


@pytest.mark.usefixtures("holes")
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_glob_over_the_parts_of_any_format_meets_no_reject(run: Run, tmp_path: Path, form: str) -> None:
    ran = run("-w", "delta(amount,2)", "-k", "user", "--order-by", "ts", "--output-format", form, "log", "out")
    assert ran.code == 0
    told = manifest(tmp_path / "out")
    assert told["counts"]["rejected"] == {"null_attribute": 1, "null_key": 1, "null_order": 2}
    assert duckdb.sql(f"select count(*) from '{tmp_path}/out/**/*.{form}'").fetchall() == [(told["rows_out"],)]
    assert [path.name for path in (tmp_path / "out").glob("**/*.json*") if path.parent.name.startswith("_rej")] == []
    assert [part["name"] for part in told["rejects"]] == ["_rejected/rejects-00000.ndjson"]
    reasons = duckdb.sql(f"select reason, line, row.note from '{tmp_path}/out/_rejected/*.ndjson'").fetchall()
    assert sorted(reasons) == [
        ("null_attribute", 5, "x"),
        ("null_key", 4, "w"),
        ("null_order", 2, "u"),
        ("null_order", 3, "v"),
    ]


def test_input_columns_named_like_reject_columns_are_kept(run: Run, tmp_path: Path) -> None:
    head = "reason,file,line,detail,text,row,_reason,_row"
    write(tmp_path / "log", a__csv=f"{head}\n1,2,3,4,5,6,7,\n1,2,3,4,5,6,,8\n")
    assert run("-w", "count(9)", "-k", "_reason", "log", "out").code == 0
    path = tmp_path / "out/_rejected/rejects-00000.ndjson"
    assert path.read_text() == (
        '{"reason":"null_key","file":"log/a.csv","line":3,"detail":null,"text":null,"row":'
        '{"reason":1,"file":2,"line":3,"detail":4,"text":5,"row":6,"_reason":null,"_row":8}}\n'
    )


def test_an_integer_sum_that_overflows_names_column_key_and_window(fails: Fails, tmp_path: Path) -> None:
    big = 1 << 62
    log = pa.table({"user": ["a", "b", "b", "b", "b", "b"], "amount": [1, 1, 1, 1, big, big]})
    pq.write_table(log, tmp_path / "log.parquet")
    text = (
        "sum(amount) does not fit int64 in window 1 of key user='b' (column 'amount'); "
        "aggregate it as float (a mean, or a cast of the input) or use smaller windows"
    )
    fails(4, text, "-w", "count(3)", "-k", "user", "-a", "s=sum(amount)", "log.parquet", "out")


def test_rejects_of_a_run_on_spark(spark_run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts,user\n1,a\nx,b\n", b__csv="ts,user\n2,\n3,a\n")
    args = ("-w", "delta(ts,60)", "-k", "user", "--schema", "ts:int", "log", "out")
    failed = spark_run(*args, "--max-rejects", "1", "-q")
    text = (
        "2 rows were rejected (null_key 1, unparsable 1), more than the 1 allowed; nothing was written; "
        "run without --max-rejects to see them in _rejected"
    )
    assert (failed.code, failed.out, failed.err) == (4, "", f"wincli: error: {text}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    ran = spark_run(*args, "--max-rejects", "2")
    assert (ran.code, ran.out) == (0, "")
    assert ran.summary == "4 rows in, 1 window out, 2 rejected (null_key 1, unparsable 1), see _rejected"
    assert sorted(rejected(tmp_path / "out", *WHY[:3])) == [
        ("null_key", "log/b.csv", 2),
        ("unparsable", "log/a.csv", 3),
    ]
