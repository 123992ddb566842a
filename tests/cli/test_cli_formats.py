"""Whatever the format that goes in and the one that comes out, the windows are the same."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from support.processes import Ran, manifest, rejected, rows, table, write

Run = Callable[..., Ran]

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


@pytest.mark.parametrize("into", ["parquet", "csv", "jsonl", "orc"])
@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "jsonl", "orc"])
def test_every_format_gives_the_same_windows(run: Run, tmp_path: Path, form: str, into: str) -> None:
    put(tmp_path / "log", form)
    ran = run("-w", "delta(ts, 60)", "-k", "user", *AGGREGATES, "--output-format", into, "log", "out")
    assert (ran.code, ran.out, ran.summary) == (0, "", "5 rows in, 3 windows out, 0 rejected")
    assert ran.notes == ["rows are ordered by ts: the window's attribute is a time"]
    assert read_back(tmp_path / "out", into) == WANTED


def test_a_result_in_any_format_is_a_stream_again(run: Run, spark_run: Run, tmp_path: Path) -> None:
    put(tmp_path / "log", "parquet")
    for into in ("parquet", "csv", "jsonl", "orc"):
        spark_run("-w", "delta(ts, 60)", "-k", "user", *AGGREGATES, "--output-format", into, "log", into)
        assert run("-w", "punct()", "-a", "n=collect(n)", "-a", "users=collect(user)", into, f"{into}2").code == 0
        assert rows(tmp_path / f"{into}2", "n", "users") == [([4], ["a"]), ([7], ["b"]), ([4], ["a"])]


def test_orc_goes_in_and_out_and_its_result_is_a_stream_of_the_next_stage(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "log", "orc")
    args = ("-w", "delta(ts, 60)", "-k", "user", *AGGREGATES, "--output-format", "orc", "log")
    assert run(*args, "out").code == 0
    types = {column["name"]: column["type"] for column in manifest(tmp_path / "out")["schema"]}
    assert types["window_start"] == "timestamp[ns]"
    assert run("-w", "punct()", "-a", "n=collect(n)", "--output-format", "orc", "out", "next").code == 0
    assert rows(tmp_path / "next", "n") == [[4], [7], [4]]
    assert run(*args, "again").code == 0
    parts = [[path.read_bytes() for path in sorted((tmp_path / out).glob("part-*.orc"))] for out in ("out", "again")]
    assert parts[0] == parts[1]
    (tmp_path / "job.yaml").write_text(STAGES)
    assert run("job.yaml", "log", "staged").code == 0
    assert rows(tmp_path / "staged", "n") == [[4], [7], [4]]
    assert read_back(tmp_path / "first", "orc") == WANTED


STAGES = """stages:
  - {window: "delta(ts, 60)", key: user, agg: {n: sum(n), x: sum(x), ok: bool_or(ok), count: count()},
     output: first, output_format: orc}
  - {window: punct(), agg: {n: collect(n)}, output_format: orc}
"""


def test_rows_of_orc_that_do_not_fit_their_type_are_rejected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    texts = pa.table({"at": ["25/12/26 10:00", "never", None, "25/12/26 10:01"], "v": [1, 2, 3, 4]})
    orc.write_table(texts, str(tmp_path / "log" / "a.orc"))
    schema = ("--schema", "at:timestamp(%d/%m/%y %H:%M)")
    ran = run("-w", "count(9)", "-a", "v=collect(v)", "-a", "last=max(at)", *schema, "log", "out")
    assert (ran.code, ran.summary) == (0, "4 rows in, 1 window out, 1 rejected (unparsable 1), see _rejected")
    assert rows(tmp_path / "out", "v") == [[1, 3, 4]]
    assert rejected(tmp_path / "out", "_reason", "_row", "_detail") == [
        ("unparsable", 2, "column at: 'never' is not a timestamp")
    ]


def test_what_orc_cannot_hold_and_what_is_no_orc_is_said(run: Run, tmp_path: Path) -> None:
    write(tmp_path, bad__orc="nonsense")
    ran = run("-w", "count(9)", "bad.orc", "out")
    assert (ran.code, (tmp_path / "out").exists()) == (3, False)
    assert "bad.orc cannot be read as ORC: " in ran.err
    pq.write_table(pa.table({"u": pa.array([1], pa.uint64())}), tmp_path / "u.parquet")
    ran = run("-w", "count(9)", "-k", "u", "--output-format", "orc", "u.parquet", "out")
    assert (ran.code, (tmp_path / "out").exists()) == (2, False)
    assert "orc cannot hold column 'u' of type uint64; leave it out, or choose another --output-format" in ran.err


def test_folders_are_columns(run: Run, tmp_path: Path) -> None:
    for day, kind, text in (("2026-11-01", "a", "v\n1\n2\n"), ("2026-11-02", "b%20c", "v\n3\n")):
        write(tmp_path / "log" / f"dt={day}" / f"kind={kind}", x__csv=text)
    assert run("-w", "count(9)", "-k", "dt,kind", "-a", "v=collect(v)", "log", "out").code == 0
    days = [dt.date(2026, 11, 1), dt.date(2026, 11, 2)]
    assert rows(tmp_path / "out", "dt", "kind", "v") == [(days[0], "a", [1, 2]), (days[1], "b c", [3])]
    assert run("-w", "count(9)", "-k", "kind", "-a", "v=collect(v)", "log/*/kind=a", "glob").code == 0
    assert rows(tmp_path / "glob", "v") == [[1, 2]]


def test_a_file_a_glob_and_a_folder_of_folders(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="v\n1\n", b__csv="v\n2\n")
    write(tmp_path / "log" / "c", a__csv="v\n3\n")
    for given, wanted in (
        ("log/b.csv", [2]),
        ("log/*.csv", [1, 2]),
        ("log/**/a.csv", [1, 3]),
        ("log/[b]*", [2]),
        ("log", [1, 2, 3]),
    ):
        assert run("-w", "count(9)", "-a", "v=collect(v)", "--mode", "overwrite", given, "out").code == 0
        assert rows(tmp_path / "out", "v") == [wanted], given


def test_missing_and_extra_columns_and_int_beside_float(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="a,b,x\n1,2,1\n", b__csv="x,a,c\n2.5,3,4\n")
    collect = [word for name in "abcx" for word in ("-a", f"{name}=collect({name})")]
    assert run("-w", "count(9)", *collect, "-a", "nb=count(b)", "log", "out").code == 0
    assert rows(tmp_path / "out", "a", "b", "c", "x", "nb") == [([1, 3], [2], [4], [1.0, 2.5], 1)]
    (tmp_path / "pq").mkdir()
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "pq" / "a.parquet")
    pq.write_table(pa.table({"a": [2.5], "b": [1]}), tmp_path / "pq" / "b.parquet")
    assert run("-w", "count(9)", "-a", "a=collect(a)", "pq", "out2").code == 0
    assert table(tmp_path / "out2").schema.field("a").type == pa.list_(pa.float64())
    assert rows(tmp_path / "out2", "a") == [[1.0, 2.5]]


def test_timestamps_in_a_layout_of_their_own(run: Run, tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts\n25/12/26 10:00:00\n25/12/26 10:01:00\n26/12/26 10:01:01\n")
    schema = ("--schema", "ts:timestamp(%d/%m/%y %H:%M:%S)")
    assert run("-w", "delta(ts, 60)", *schema, "a.csv", "out").code == 0
    at = dt.datetime(2026, 12, 25, 10)
    later = at + dt.timedelta(days=1, seconds=61)
    assert rows(tmp_path / "out", "window_start", "window_end") == [(at, at + dt.timedelta(minutes=1)), (later, later)]
    assert run("-w", "delta(ts, 60)", "--schema", "ts:timestamp", "a.csv", "iso").code == 0
    assert rejected(tmp_path / "iso", "_detail")[0] == ("column ts: '25/12/26 10:00:00' is not a timestamp",)


def test_delimiters_and_a_format_that_the_name_does_not_tell(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", a__log='a;b\n1;"x;y"\n')
    args = ("--input-format", "csv", "--delimiter", ";", "-w", "count(9)", "-a", "b=collect(b)")
    assert run(*args, "log", "out").code == 0
    assert rows(tmp_path / "out", "b") == [["x;y"]]
    write(tmp_path, a__tsv="a\tb\n1\tx,y\n")
    assert run("-w", "count(9)", "-a", "b=collect(b)", "a.tsv", "out2").code == 0
    assert rows(tmp_path / "out2", "b") == [["x,y"]]


def test_files_by_time_instead_of_by_name(run: Run, tmp_path: Path) -> None:
    import os

    write(tmp_path / "log", a__csv="v\n2\n", b__csv="v\n1\n")
    os.utime(tmp_path / "log" / "b.csv", (1_000_000_000, 1_000_000_000))
    for order, wanted in (("name", [2, 1]), ("mtime", [1, 2])):
        assert run("-w", "count(9)", "-a", "v=collect(v)", "--file-order", order, "log", order).code == 0
        assert rows(tmp_path / order, "v") == [wanted]
    assert [file["path"] for file in manifest(tmp_path / "mtime")["inputs"]] == ["log/b.csv", "log/a.csv"]
