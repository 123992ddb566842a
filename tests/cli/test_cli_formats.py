"""Whatever the format that goes in and the one that comes out, the windows are the same."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from support.processes import Ran, manifest, rows, table, write

Run = Callable[..., Ran]
Fails = Callable[..., None]

#   user a   |10.00-----10.50|      |11.10|           user b   |10.30-----------11.20|
LOG = [
    ("2026-11-01T10:00:00.000000", "a", 1, 0.5, True),
    ("2026-11-01T10:00:30.000000", "b", 2, 1.5, False),
    ("2026-11-01T10:00:50.250000", "a", 3, -2.0, True),
    ("2026-11-01T10:01:10.000000", "a", 4, 1e-9, False),
    ("2026-11-01T10:01:20.500000", "b", 5, 123456.75, True),
]
NAMES = ("ts", "user", "n", "x", "ok")
START = dt.datetime(2026, 11, 1, 10)
WANTED = [
    ("a", 0, START, START + dt.timedelta(seconds=50, milliseconds=250), "delta", 4, -1.5, True, 2),
    ("a", 1, START + dt.timedelta(seconds=70), START + dt.timedelta(seconds=70), "end", 4, 1e-9, False, 1),
    (
        "b",
        0,
        START + dt.timedelta(seconds=30),
        START + dt.timedelta(seconds=80, milliseconds=500),
        "end",
        7,
        123458.25,
        True,
        2,
    ),
]
RESULT = ("user", "window", "window_start", "window_end", "closed_by", "n", "x", "ok", "count")
AGGREGATES = ("-a", "n=sum(n)", "-a", "x=sum(x)", "-a", "ok=bool_or(ok)", "-a", "count()")


def as_table() -> pa.Table:
    log = pa.table(dict(zip(NAMES, map(list, zip(*LOG, strict=True)), strict=True)))
    return log.set_column(0, "ts", log["ts"].cast(pa.timestamp("us")))


def as_csv(log: list[tuple[Any, ...]]) -> str:
    return "\n".join([",".join(NAMES), *(",".join(map(str, row)).replace("True", "true") for row in log)]) + "\n"


def put(folder: Path, form: str) -> None:
    """Write the log in two files of a format; their names put the first half first."""
    folder.mkdir()
    for name, half in (("a", slice(0, 2)), ("b", slice(2, 5))):
        path = folder / f"{name}.{form}"
        if form == "parquet":
            pq.write_table(as_table().slice(half.start, half.stop - half.start), path)
        elif form == "orc":
            orc.write_table(as_table().slice(half.start, half.stop - half.start), str(path))
        elif form == "jsonl":
            path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in LOG[half]))
        else:
            data = as_csv(LOG[half]).encode()
            path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)


def read_back(out: Path, form: str) -> list[tuple[Any, ...]]:
    """The rows of a result in any format, in the types that were asked for."""
    paths = sorted(out.glob(f"part-*.{form}"))
    if form == "jsonl":
        records = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        lists = [[record[name] for name in RESULT] for record in records]
        return [(*r[:2], dt.datetime.fromisoformat(r[2]), dt.datetime.fromisoformat(r[3]), *r[4:]) for r in lists]
    reader = {"parquet": pq.read_table, "csv": pc.read_csv, "orc": lambda path: orc.read_table(str(path))}[form]
    read = pa.concat_tables([reader(path) for path in paths])
    stamp = pa.timestamp("us")
    columns = [read[name].cast(stamp) if name.startswith("window_") else read[name] for name in RESULT]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("form", "into"),
    [("parquet", "csv"), ("csv", "jsonl"), ("csv.gz", "orc"), ("jsonl", "parquet"), ("orc", "orc"), ("orc", "csv")],
)
def test_every_format_gives_the_same_windows(run: Run, tmp_path: Path, form: str, into: str) -> None:
    put(tmp_path / "log", form)
    ran = run("-w", "delta(ts, 60)", "-k", "user", *AGGREGATES, "--output-format", into, "log", "out")
    assert (ran.code, ran.out, ran.summary) == (0, "", "5 rows in, 3 windows out, 0 rejected")
    assert ran.notes == ["rows are ordered by ts: the window's attribute is a time"]
    assert read_back(tmp_path / "out", into) == WANTED
    types = {column["name"]: column["type"] for column in manifest(tmp_path / "out")["schema"]}
    assert types["window_start"] == ("timestamp[ns]" if form == "orc" else "timestamp[us]")


def test_a_result_in_any_format_is_a_stream_again(run: Run, spark_run: Run, tmp_path: Path) -> None:
    put(tmp_path / "log", "parquet")
    for command, into in ((run, "parquet"), (run, "csv"), (run, "jsonl"), (spark_run, "orc")):
        command("-w", "delta(ts, 60)", "-k", "user", *AGGREGATES, "--output-format", into, "log", into)
        assert run("-w", "punct()", "-a", "n=collect(n)", "-a", "users=collect(user)", into, f"{into}2").code == 0
        assert rows(tmp_path / f"{into}2", "n", "users") == [([4], ["a"]), ([7], ["b"]), ([4], ["a"])]


def test_delimiters_and_a_format_that_the_name_does_not_tell(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__log='a;b\n1;"x;y"\n')
    args = ("--input-format", "csv", "--delimiter", ";", "-w", "count(9)", "-a", "b=collect(b)")
    assert run(*args, "log", "out").code == 0
    assert rows(tmp_path / "out", "b") == [["x;y"]]
    write(tmp_path, a__tsv="a\tb\n1\tx,y\n")
    assert run("-w", "count(9)", "-a", "b=collect(b)", "a.tsv", "out2").code == 0
    assert rows(tmp_path / "out2", "b") == [["x,y"]]


@pytest.mark.parametrize(("form", "row"), [("csv", "ts\n1\n"), ("jsonl", '{"ts": 1}\n')])
def test_an_empty_file_among_others_adds_nothing(run: Run, tmp_path: Path, form: str, row: str) -> None:
    for name, content in {"a": "", "b": row, "c": ""}.items():
        path = tmp_path / "log" / f"{name}.{form}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    ran = run("-w", "count(2)", "--order-by", "ts", "log", "out")
    assert (ran.code, rows(tmp_path / "out", "count")) == (0, [1]), ran.err


def test_files_by_time_instead_of_by_name(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="v\n2\n", b__csv="v\n1\n")
    os.utime(tmp_path / "log" / "b.csv", (1_000_000_000, 1_000_000_000))
    for order, wanted in (("name", [2, 1]), ("mtime", [1, 2])):
        assert run("-w", "count(9)", "-a", "v=collect(v)", "--file-order", order, "log", order).code == 0
        assert rows(tmp_path / order, "v") == [wanted]
    assert [file["path"] for file in manifest(tmp_path / "mtime")["inputs"]] == ["log/b.csv", "log/a.csv"]


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
    assert starts == [dt.datetime(2026, 2, 1, 10), dt.datetime(2026, 1, 2, 10)]


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
