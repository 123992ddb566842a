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
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
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


def test_fields_that_do_not_fit_their_type_and_rows_of_another_width(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts,amount\n1,5\nx,6\n3,y\n4\n5,6,7\n", b__csv="ts,amount\n6,8\n7,1e3\n")
    types = ("--schema", "ts:int,amount:float")
    ran = run("-w", "count(9)", *types, "-a", "ts=collect(ts)", "-a", "amount=collect(amount)", "log", "out")
    assert ran.summary == "7 rows in, 1 window out, 4 rejected (unparsable 4), see _rejected"
    assert rows(tmp_path / "out", "ts", "amount") == [([1, 6, 7], [5.0, 8.0, 1000.0])]
    counts_of(tmp_path / "out", {"unparsable": 4}, 7)
    assert rejected(tmp_path / "out", *WHY) == [
        ("unparsable", "log/a.csv", 3, "column ts: 'x' is not an integer", "x,6"),
        ("unparsable", "log/a.csv", 4, "column amount: 'y' is not a number", "3,y"),
        ("unparsable", "log/a.csv", 5, "1 fields where the header has 2", "4"),
        ("unparsable", "log/a.csv", 6, "3 fields where the header has 2", "5,6,7"),
    ]


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


def test_rows_that_fail_beside_the_row_before_are_set_aside_like_others(
    run: Run, spark_run: Run, tmp_path: Path
) -> None:
    """By the scan, in one task and in many; one row is rejected as it is read, and is no row before."""
    prices = [i % 50 for i in range(2000)]
    log = {"ts": range(2000), "user": [f"u{i % 7}" for i in range(2000)], "price": [None, *prices[1:]]}
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table(log), tmp_path / "log" / "a.parquet", row_group_size=300)
    fails = "CAST(CASE WHEN price < lag(price) - 40 THEN 'fell' ELSE '1' END AS INT)"
    asked = ("-w", "delta(price, 45)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", f"ok=sum({fails})")
    wanted = [i for i in range(2000) if i > 7 and i % 50 < (i - 7) % 50 - 40]
    results = []
    many = ("--slice-size", "2KiB", "--split-size", "1KiB")
    for out, ran in (("one", run(*asked, "log", "one")), ("many", spark_run(*asked, *many, "log", "many"))):
        reasons = f"expression_error {len(wanted)}, null_attribute 1"
        assert ran.code == 0, ran.err
        assert f"{len(wanted) + 1} rejected ({reasons}), see _rejected" in ran.summary
        told = sorted(rejected(tmp_path / out, "ts", *WHY))
        detail = f"{fails}: 'fell' is no INTEGER"
        assert told[0] == (0, "null_attribute", "log/a.parquet", 1, None, None)
        assert told[1:] == [(i, "expression_error", "log/a.parquet", i + 1, detail, None) for i in wanted]
        counts_of(tmp_path / out, {"expression_error": len(wanted), "null_attribute": 1}, 2000)
        results.append(sorted(rows(tmp_path / out, "user", "window", "n", "ok")))
    assert results[0] == results[1]
    assert all(n == ok for *_, n, ok in results[0])
    ran = run(*asked, "--max-rejects", "3", "log", "more")
    assert ran.code != 0
    assert f"{len(wanted) + 1} rows were rejected (expression_error {len(wanted)}, null_attribute 1)" in ran.err
    assert not (tmp_path / "more").exists()
