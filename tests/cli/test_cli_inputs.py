"""Inputs that are missing, empty, broken or do not fit: one line that names the file or column, and nothing written."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, rows, table, wincli, write
from support.systems import without_privilege

Run = Callable[..., Ran]
Fails = Callable[..., None]
DELTA = ("-w", "delta(ts,60)")
CUT = "; it may be cut short or of another format"

COLUMNS = {
    "the window's": (
        ("-w", "delta(tss,60)"),
        "there is no column 'tss' for tumbling, delta(tss, 60); did you mean 'ts'?",
    ),
    "a key": ((*DELTA, "-k", "usr"), "there is no column 'usr' for the key; did you mean 'user'?"),
    "an aggregate's": (
        (*DELTA, "-a", "sum(amout)"),
        "there is no column 'amout' for sum_amout=sum(amout); did you mean 'amount'?",
    ),
    "an order's": (
        (*DELTA, "--order-by", "when"),
        "there is no column 'when' to order by; known: ts, user, amount, ok; or declare it with --schema 'when:TYPE': "
        "it is null where a file, as log/a.csv, lacks it",
    ),
    "a mark's": (
        ("-w", "punct()", "--marks", "okay"),
        "--marks: there is no column 'okay'; did you mean 'ok'?",
    ),
    "a type's": (
        (*DELTA, "--schema", "amuont:int"),
        "the schema names column 'amuont', which no file has; did you mean 'amount'?",
    ),
}

TYPES = {
    "delta over text": (
        ("-w", "delta(user,60)"),
        "delta(user, 60) needs a number, a timestamp or a date, and column 'user' is string: log/a.csv has 'a' at "
        'line 2; with --schema "user:timestamp" (or int64, float64) such rows are rejected',
    ),
    "gap over text": (
        ("-w", "gap(user,60)"),
        "gap(user, 60) needs a number, a timestamp or a date, and column 'user' is string: log/a.csv has 'a' at "
        'line 2; with --schema "user:timestamp" (or int64, float64) such rows are rejected',
    ),
    "punct over text": (
        ("-w", "punct(user)"),
        "punct(user) needs a boolean column, and 'user' is string; use another column",
    ),
    "marks of text": (
        ("-w", "punct()", "--marks", "user"),
        "--marks needs a boolean column, and 'user' is string; name another column",
    ),
    "a clock of text": (
        ("-w", "time(5)", "--order-by", "user"),
        "column 'user' is string, which is no clock: log/a.csv has 'a' at line 2; order by a time or a number",
    ),
    "no clock at all": (
        ("-w", "time(5)"),
        "the window tumbling, time(5) needs a clock, and the input has no timestamp or date column; "
        "say --order-by COLUMN",
    ),
    "a sum of text": (("-w", "count(2)", "-a", "sum(user)"), "sum(user): column user is text; sum needs a number"),
    "a module that is not there": (
        ("-w", "count(2)", "-a", "nowhere:f(amount)"),
        "nowhere:f: cannot import module nowhere: ModuleNotFoundError: No module named 'nowhere'",
    ),
}


def truncated_gzip() -> bytes:
    text = "ts,user\n" + "".join(f"{i},{i * 7919 % 1000}\n" for i in range(1000))
    data = gzip.compress(text.encode())
    return data[: len(data) // 2]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(tmp_path / "log", a__csv="ts,user,amount,ok\n1,a,5,true\n2,b,6,false\n")
    return tmp_path / "log"


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_that_is_not_there_names_the_nearest(fails: Fails, log: Path, case: str) -> None:
    args, text = COLUMNS[case]
    fails(2, text, *args, "log", "out")


@pytest.mark.parametrize("case", TYPES)
def test_a_column_of_a_type_that_does_not_fit(fails: Fails, log: Path, case: str) -> None:
    args, text = TYPES[case]
    fails(2, text, *args, "log", "out")


def test_the_flags_of_an_error_about_times_read_them(fails: Fails, run: Run, tmp_path: Path) -> None:
    """Which is which nothing in the rows says: both flags are named, either makes a run."""
    write(tmp_path / "log", a__csv="id,Time\n1,01/02/2026 10:00\n2,01/02/2026 10:30\n")
    layouts = ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")
    day, month = (f'--schema "id:string, Time:timestamp({layout})"' for layout in layouts)
    text = (
        "the window tumbling, time(3600) needs a clock, and the input has no timestamp or date column; column 'Time' "
        f"looks like a time, as '01/02/2026 10:00': read it with {day}, or {month}, whichever it means"
    )
    asked = ("-w", "time(1h)", "--output-format", "csv")
    fails(2, text, *asked, "--schema", "id:string", "log", "out")
    starts = []
    for flag in (day, month):
        assert run(*asked, *shlex.split(flag), "--mode", "overwrite", "log", "out").code == 0
        starts += table(tmp_path / "out")["window_start"].to_pylist()
    assert starts == [datetime(2026, 2, 1, 10), datetime(2026, 1, 2, 10)]


def test_unix_times_come_out_in_utc(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__jsonl='{"ts":1117838570.123}\n{"ts":"1117838571"}\n{"ts":1117838640}\n')
    args = ("-w", "time(60)", "--schema", "ts:timestamp(unix)", "-a", "ts=collect(ts)", "--output-format", "jsonl")
    assert run(*args, "--plain", "log", "out").code == 0
    first, second = (tmp_path / "out/part-00000.jsonl").read_text().splitlines()
    assert '"window_start":"2005-06-03T22:42:00.000000Z"' in first
    assert '"ts":["2005-06-03T22:42:50.123000Z","2005-06-03T22:42:51.000000Z"]' in first
    assert '"ts":["2005-06-03T22:44:00.000000Z"]' in second


def test_clock_of_dates_gives_a_note_that_it_has_no_time_of_day(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="Date,Time\n2017-05-16,00:00:00.008\n2017-05-16,23:00:00.272\n")
    ran = run("-w", "time(1h)", "log", "out")
    assert ran.notes[0] == (
        "rows are ordered by Date: the only time column, and the window needs a clock; "
        "it has no time of day, so each row stands at its midnight"
    )


NO_FILES = "holds no files; names that begin with _ or . are skipped"
NO_COLUMN = (
    "has no column; is the input empty, or of another format? --schema says which columns an empty input has, as in "
    "--schema 'ts:timestamp,user:string'"
)
FILES = {
    **{"a.csv": "", "a.jsonl": "", "quote.csv": 'ts,note\n1,plain\n2,"two\n3,b\n', "odd/a.log": "ts\n1\n"},
    **{"hidden/_a.csv": "ts\n1\n", "hidden/.b.csv": "ts\n1\n", "empty/below/.a": ""},
    **{"two/a.csv": "ts\n1\n", "two/b.jsonl": '{"ts":1}\n'},
}
UNREADABLE: dict[str, tuple[tuple[str, ...], str]] = {
    "a missing folder": (("lgo",), "there is no file or folder lgo; did you mean log?"),
    "a missing file": (("log/b.csv",), "there is no file or folder log/b.csv; did you mean log/a.csv?"),
    "a missing path like no other": (("elsewhere",), "there is no file or folder elsewhere; check the path"),
    "an empty folder": (("empty",), f"empty {NO_FILES}"),
    "hidden files": (("hidden",), f"hidden {NO_FILES}"),
    "a glob that matches nothing": (
        ("hidden/*.csv",),
        "nothing matches hidden/*.csv; check the folder; * stops at /, ** does not",
    ),
    "an empty file of CSV": (("a.csv",), f"a.csv {NO_COLUMN}"),
    "an empty file of JSON": (("a.jsonl",), f"a.jsonl {NO_COLUMN}"),
    "a quote that never ends": (
        ("--multiline", "quote.csv"),
        "quote.csv line 3: a quoted field begins here and never ends; close the quote",
    ),
    "files of two formats": (
        ("two",),
        "two/a.csv is csv and two/b.jsonl is jsonl; read one format at a time, or say which it is with --input-format",
    ),
    "a file of no format": (
        ("odd",),
        "the name of odd/a.log gives no format; say which with --input-format csv, jsonl, orc or parquet",
    ),
}


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_named(fails: Fails, tmp_path: Path, case: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    args, text = UNREADABLE[case]
    fails(3, text, *DELTA, *args, "out")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_empty_file_among_others_adds_nothing(run: Run, tmp_path: Path, form: str) -> None:
    text = "ts,user\n1,a\n" if form == "csv" else '{"ts": 1, "user": "a"}\n'
    write(tmp_path / "log", **{f"a__{form}": "", f"b__{form}": text, f"c__{form}": ""})
    ran = run(*DELTA, "-k", "user", "log", "out")
    assert (ran.code, ran.summary) == (0, "1 row in, 1 window out, 0 rejected")
    assert rows(tmp_path / "out", "user", "count") == [("a", 1)]


@pytest.mark.parametrize("keys", [(), ("-k", "user")], ids=["no key", "key"])
@pytest.mark.parametrize("window", ["delta(ts,60)", "time(5)", "gap(ts,5)", "count(2)", "punct()"])
def test_a_header_only_csv_gives_no_windows_and_the_whole_schema(
    run: Run, tmp_path: Path, keys: tuple[str, ...], window: str
) -> None:
    write(tmp_path, a__csv="ts,user,amount\n")
    order = ("--order-by", "ts") if window == "time(5)" else ()
    ran = run("-w", window, *keys, *order, "-a", "n=count()", "-a", "high=max(amount)", "--plain", "a.csv", "out")
    assert (ran.code, ran.err.count("error")) == (0, 0), ran.err
    assert ran.summary == "0 rows in, 0 windows out, 0 rejected"
    got = table(tmp_path / "out")
    names = ["user"] * bool(keys) + ["window", "window_start", "window_end", "closed_by", "n", "high"]
    assert (got.num_rows, got.schema.names) == (0, names)


def test_a_header_only_csv_with_types_given_keeps_them(run: Run, tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts,user,amount\n")
    schema = "ts:timestamp,user:string,amount:float"
    ran = run(*DELTA, "-k", "user", "-a", "high=max(amount)", "--schema", schema, "a.csv", "out")
    assert (ran.code, ran.summary) == (0, "0 rows in, 0 windows out, 0 rejected")
    got = table(tmp_path / "out")
    types = [pa.string(), pa.int64(), *[pa.timestamp("us")] * 2, pa.string(), pa.float64()]
    assert (got.num_rows, got.schema.types[:6]) == (0, types)


def test_parquet_that_is_no_parquet_or_cut_short(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table({"ts": range(1000)}), tmp_path / "log" / "a.parquet")
    whole = (tmp_path / "log" / "a.parquet").read_bytes()
    broken = tmp_path / "log" / "b.parquet"
    broken.write_bytes(whole[:-50])
    text = (
        "log/b.parquet cannot be read as Parquet: Parquet magic bytes not found in footer. Either the file is "
        f"corrupted or this is not a parquet file{CUT}"
    )
    fails(3, text, *DELTA, "log", "out")
    broken.write_bytes(b"")
    fails(3, f"log/b.parquet cannot be read as Parquet: Parquet file size is 0 bytes{CUT}", *DELTA, "log", "out")
    broken.write_bytes(whole[:100] + bytes(200) + whole[300:])  # found in a task, not by its footer
    fails(3, f"log/b.parquet cannot be read as Parquet: Corrupt snappy compressed data{CUT}", *DELTA, "log", "out")


def test_gzip_that_is_cut_short_or_none(fails: Fails, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts,user\n1,a\n")
    broken = tmp_path / "log" / "b.csv.gz"
    broken.write_bytes(truncated_gzip())
    fails(3, f"log/b.csv.gz cannot be read: Truncated compressed stream{CUT}", *DELTA, "log", "out")
    broken.write_text("ts,user\n1,a\n")
    text = f"log/b.csv.gz cannot be read: zlib inflate failed: incorrect header check{CUT}"
    fails(3, text, *DELTA, "log", "out")


def test_a_torn_quote_names_the_line_and_the_flag_that_reads_it(fails: Fails, run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv='ts,note\n1,plain\n2,"two\nlines, one field"\n3,"a ""b"""\n')
    text = "log/a.csv line 3: a quoted field runs over the end of the line; --multiline reads such files"
    fails(3, text, "-w", "count(3)", "log", "out")
    ran = run("-w", "count(3)", "-a", "notes=collect(note)", "--multiline", "log", "out")
    assert (ran.code, ran.summary) == (0, "3 rows in, 1 window out, 0 rejected")
    assert rows(tmp_path / "out", "notes") == [["plain", "two\nlines, one field", 'a "b"']]


def test_one_column_of_two_types_names_both_files(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table({"ts": [1], "a": [1]}), tmp_path / "log" / "a.parquet")
    pq.write_table(pa.table({"ts": [2], "a": ["x"]}), tmp_path / "log" / "b.parquet")
    write(tmp_path / "text", a__csv="ts,a\n1,1\n", b__csv="ts,a\n1,x\n")
    told = "column 'a' is int64 in {0}/a.{1} and string in {0}/b.{1}; read it as one type with --schema 'a:string', "
    fails(3, told.format("log", "parquet") + "or cast it in one of them", *DELTA, "log", "out")
    fails(3, told.format("text", "csv") + "or cast it in one of them", *DELTA, "text", "out")


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts\n1\n", b__csv="ts\n2\n")
    (tmp_path / "log" / "b.csv").chmod(0)
    before = without_privilege()
    ran = wincli("run", "-q", *DELTA, "log", "out", cwd=tmp_path, before=before)
    text = "log/b.csv may not be read: permission denied; check who may read it"
    assert (ran.code, ran.out, ran.err) == (3, "", f"wincli: error: {text}\n")
    assert not (tmp_path / "out").exists()
