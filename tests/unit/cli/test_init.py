"""The job that `wincli init` proposes runs, with the right time column, layout and key."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.docs_pages import DOCS, fences
from support.in_process import done
from support.processes import write as write_texts
from wincli.cli.inspection import proposal_times as looks
from wincli.conf.job_file import read_job_file

BEGIN = dt.datetime(2026, 11, 12, 9, 58, 7, 250_000)
Write = Callable[[Path, list[dict[str, Any]]], Path]


def sessions(rows: int = 240, keys: int = 3, step: float = 7.0, pause: float = 3600.0) -> list[dict[str, Any]]:
    """Rows of a few hosts in order of time: eight rows every few seconds, then a pause of an hour."""
    rng = np.random.default_rng(7)
    found = []
    for host in range(keys):
        at = BEGIN + dt.timedelta(seconds=host * 11)
        for number in range(rows // keys):
            found.append({"t": at, "host": f"node-{host}", "load": round(float(rng.random()), 3)})
            seconds = (pause if number % 8 == 7 else step) * float(rng.uniform(0.7, 1.3))
            at += dt.timedelta(seconds=round(seconds, 3))
    return sorted(found, key=lambda row: row["t"])


def as_csv(layout: Callable[[dt.datetime], Sequence[str]], head: Sequence[str], **form: Any) -> Write:
    def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
        path = folder / "log.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, **form)
            writer.writerow([*head, "host", "load", "message"])
            for number, row in enumerate(rows):
                writer.writerow([*layout(row["t"]), row["host"], row["load"], f'said "a, b" {number % 7} times over'])
        return path

    return write


def by(*layouts: str) -> Callable[[dt.datetime], list[str]]:
    return lambda at: [at.strftime(layout) for layout in layouts]


def millis(layout: str) -> Callable[[dt.datetime], list[str]]:
    return lambda at: [at.strftime(layout) + f"{at.microsecond // 1000:03}"]


def as_jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "log.jsonl"
    lines = [
        json.dumps({"ms": int(row["t"].timestamp() * 1000), "host": row["host"], "load": row["load"]}) for row in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    columns = {name: [row[name] for row in rows] for name in ("t", "host", "load")}
    times = pa.array(columns.pop("t"), pa.timestamp("ms")).cast(pa.timestamp("ms", "Europe/Paris"))
    pq.write_table(pa.table({"at": times, **columns}), folder / "log.parquet")
    return folder / "log.parquet"


def zipped(write: Write) -> Write:
    def write_zipped(folder: Path, rows: list[dict[str, Any]]) -> Path:
        path = write(folder, rows)
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        return path.with_suffix(".csv.gz")

    return write_zipped


PAIR = "strptime(Date || ' ' || Time, '{}')"
LAYOUTS: dict[str, tuple[Write, str, dict[str, str], dict[str, str]]] = {
    # As machine_temperature.csv, traffic/ and tweets/: ISO 8601
    "iso": (as_csv(by("%Y-%m-%d %H:%M:%S"), ["timestamp"]), "timestamp", {"timestamp": "timestamp"}, {}),
    # As logs/BGL.csv: Unix seconds, a date, and the same time with its microseconds
    "points": (
        as_csv(
            lambda at: [str(int(at.timestamp())), at.strftime("%Y.%m.%d"), at.strftime("%Y-%m-%d-%H.%M.%S.%f")],
            ["Timestamp", "Date", "Time"],
        ),
        "Time",
        {"Time": "timestamp(%Y-%m-%d-%H.%M.%S.%f)"},
        {},
    ),
    # As logs/Spark.csv: a date with a short year first, and a time of day
    "short year": (
        as_csv(by("%y/%m/%d", "%H:%M:%S"), ["Date", "Time"]),
        "at",
        {"Date": "string", "Time": "string"},
        {"at": PAIR.format("%y/%m/%d %H:%M:%S")},
    ),
    # As logs/OpenStack.csv: an ISO date, and a time of day with milliseconds; the file name holds an older time
    "two columns": (
        as_csv(
            lambda at: ["nova.log.1.2017-05-16_13:53:08", f"{at:%Y-%m-%d}", *millis("%H:%M:%S.")(at)],
            ["Logrecord", "Date", "Time"],
        ),
        "at",
        {"Date": "string", "Time": "string"},
        {"at": PAIR.format("%Y-%m-%d %H:%M:%S.%f")},
    ),
    "some zones": (
        as_csv(lambda at: [f"{at:%Y-%m-%dT%H:%M:%S}{'Z' if at.minute % 2 else ''}"], ["ts"]),
        "at",
        {"ts": "string"},
        {"at": "CAST(ts AS TIMESTAMPTZ)"},
    ),
    "web server": (
        as_csv(by("[%d/%b/%Y:%H:%M:%S +0000]"), ["when"]), "when", {"when": "timestamp([%d/%b/%Y:%H:%M:%S %z])"}, {},
    ),
    "day first": (as_csv(by("%d.%m.%Y %H:%M:%S"), ["zeit"]), "zeit", {"zeit": "timestamp(%d.%m.%Y %H:%M:%S)"}, {}),
    "month first": (
        as_csv(by("%m/%d/%Y %I:%M:%S %p"), ["Date"]), "Date", {"Date": "timestamp(%m/%d/%Y %I:%M:%S %p)"}, {},
    ),
    "semicolons": (
        as_csv(by("%Y-%m-%d %H:%M:%S"), ["ts"], delimiter=";"), "ts", {"ts": "timestamp"}, {},
    ),
    "gzip": (zipped(as_csv(by("%Y%m%d%H%M%S"), ["ts"])), "ts", {"ts": "timestamp(%Y%m%d%H%M%S)"}, {}),
    "json": (as_jsonl, "ms", {"ms": "timestamp(unix_ms)"}, {}),
    "parquet": (as_parquet, "at", {}, {}),
}  # fmt: skip


def proposed(folder: Path, source: str, *more: str) -> tuple[str, dict[str, Any]]:
    """Propose ``job.yaml`` for an input; return what is said, and the job."""
    ran = done(folder, "init", source, "-o", "job.yaml", "--force", *more)
    assert ran.err == ""
    return " ".join(ran.out.split()), read_job_file(str(folder / "job.yaml")).values


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_job_for_a_layout_runs_with_its_time(layout: str, tmp_path: Path) -> None:
    write, order, types, let = LAYOUTS[layout]
    rows = sessions()
    write(tmp_path, rows)
    _, job = proposed(tmp_path, next(tmp_path.iterdir()).name)
    assert (job["order_by"], job["key"], job["window"][:5]) == (order, "host", "time(")
    assert job.get("schema", "") == ", ".join(f"{name}:{text}" for name, text in types.items())
    assert job.get("let", []) == [f"{name}={text}" for name, text in let.items()]
    err = done(tmp_path, "run", "job.yaml").err
    assert f"{len(rows)} rows in, " in err
    assert "windows out, 0 rejected" in err


def test_files_that_are_series_have_their_names_as_the_key_and_without_a_time_windows_are_of_rows(
    tmp_path: Path,
) -> None:
    lines = [f"{BEGIN + dt.timedelta(minutes=5 * n):%Y-%m-%d %H:%M:%S},{n}.5" for n in range(60)]
    series = "\n".join(["timestamp,value", *lines, ""])
    write_texts(tmp_path / "traffic", a__csv=series, b__csv=series)
    said, job = proposed(tmp_path, "traffic")
    assert "Each file is a series of its own, so its name is the key: _file." in said
    assert (job["key"], job["window"], job["agg"]) == ("_file", "time(1h)", ["rows=count()", "mean_value=mean(value)"])
    assert "12 windows out" in done(tmp_path, "run", "job.yaml").err
    write_texts(tmp_path, log__csv="name,x\n" + "".join(f"n{i},{i * i}\n" for i in range(250)))
    said, job = proposed(tmp_path, "log.csv")
    assert "No column is a time that can be read" in said
    assert job["window"] == "count(100)"
    assert "3 windows out" in done(tmp_path, "run", "job.yaml").err


def test_the_reading_that_keeps_rows_in_order_is_taken_and_else_the_newest_that_is_not_later_than_the_file(
    tmp_path: Path,
) -> None:
    """From the 1st to the 12th of May both orders of day and month can be read, and only one is in order of days."""
    days = [dt.date(2026, 5, day) for day in range(1, 13)]
    for layout in ("%d/%m/%Y", "%m/%d/%Y"):
        write_texts(tmp_path, log__csv="when,x\n" + "".join(f"{day:{layout}} 10:00:00,1\n" for day in days))
        said, job = proposed(tmp_path, "log.csv")
        assert job["schema"] == f"when:timestamp({layout} %H:%M:%S)"
        assert "could also be read as" in said
    for written, layout in ((dt.datetime(2026, 12, 31, 12), "%d.%m.%y"), (dt.datetime(2032, 1, 1), "%y.%m.%d")):
        write_texts(tmp_path, log__csv="when,x\n31.12.26 10:00,1\n31.12.26 10:05,1\n")
        os.utime(tmp_path / "log.csv", (written.timestamp(), written.timestamp()))
        assert proposed(tmp_path, "log.csv")[1]["schema"] == f"when:timestamp({layout} %H:%M)"


def test_rows_that_are_broken_and_a_time_that_lacks_its_year_are_reported(tmp_path: Path) -> None:
    lines = [f"2026-01-01 00:00:{second:02},a" for second in range(10)]
    lines[3], lines[6] = "soon,a", ",a"
    write_texts(tmp_path, log__csv="ts,user\n" + "\n".join(lines) + "\n")
    assert "2 rows have no time that can be read; a run rejects them" in proposed(tmp_path, "log.csv")[0]
    assert "2 rejected (null_order 1, unparsable 1)" in done(tmp_path, "run", "job.yaml").err
    write_texts(tmp_path, log__csv="when,x\nNov 22 10:00:01,1\nNov 22 10:00:02,2\n")
    lacks = "column 'when' has times without a year, as 'Nov 22 10:00:01': put the year into the"
    assert lacks in done(tmp_path, "init", "log.csv").out.replace("\n# ", " ")


def test_without_a_file_the_job_is_printed_and_nothing_is_written(tmp_path: Path) -> None:
    as_jsonl(tmp_path, sessions())
    ran = done(tmp_path, "init", "log.jsonl")
    assert (ran.err, [path.name for path in tmp_path.iterdir()]) == ("", ["log.jsonl"])
    (tmp_path / "job.yaml").write_text(ran.out)
    assert read_job_file(str(tmp_path / "job.yaml")).problems == []
    assert "wincli run job.yaml" in ran.out


def test_a_large_input_is_looked_at_in_parts_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "MOST_TEXT", 8_000)
    for number in range(6):
        (tmp_path / "in" / f"{number}").mkdir(parents=True)
        as_jsonl(tmp_path / "in" / f"{number}", sessions())
    said, _ = proposed(tmp_path, "in")
    assert "of 4 of 6 files, which hold 0 MiB" in said
    assert "window time(" in said
    monkeypatch.setattr(looks, "MOST_TEXT", 1 << 30)
    monkeypatch.setattr(looks, "MOST_ROWS", 50)
    assert "48 rows of 1,440: the first of 4 of 6 files" in proposed(tmp_path, "in")[0]
    (tmp_path / "pq").mkdir()
    as_parquet(tmp_path / "pq", sessions())
    assert "50 rows of 240: the first of 1 of 1 file" in proposed(tmp_path, "pq")[0]


def test_columns_of_every_type_are_looked_at(tmp_path: Path) -> None:
    count = 30
    at = [BEGIN + dt.timedelta(seconds=number if number % 10 else 300 + number) for number in range(count)]
    columns = {
        "nothing": pa.nulls(count), "list": [[1]] * count, "struct": [{"a": 1}] * count, "bytes": [b"\xff"] * count,
        "decimal": [Decimal("1.5")] * count, "day_time": [dt.time(1, 2, 3)] * count, "flag": [True] * count,
        "took": pa.array([dt.timedelta(seconds=1)] * count), "big": pa.array(range(count), pa.uint64()),
        "long": pa.array(["x", "y", "z"] * 10, pa.large_string()), "int8": pa.array([1] * count, pa.int8()),
        "device": pa.array(["a", "b"] * 15).dictionary_encode(), "float32": pa.array([1.0] * count, pa.float32()),
        "ts": pa.array(at, pa.timestamp("ns", "Asia/Tokyo")),
        "map": pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64())),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    said, _ = proposed(tmp_path, "log.parquet")
    assert "The time of a row is ts" in said
    assert "Each device (2 values)" in said
    done(tmp_path, "run", "job.yaml")
    for key in ("nothing", "bytes", "flag", "took", "big", "day_time"):
        done(tmp_path, "init", "log.parquet", "--key", key, code=3 if key == "nothing" else 0)
    refused = done(tmp_path, "init", "log.parquet", "--key", "list", code=2).err
    assert "column 'list' is list<item: int64>, which holds several values; name a column with one" in refused


@pytest.mark.parametrize("name", ['a: "b"', "tab\tin", "# no", "where", "1st", "é ü", "it's", "line\nbreak"])
def test_odd_names_of_columns_are_written_so_that_the_job_reads_them_or_left_alone(name: str, tmp_path: Path) -> None:
    times, hosts, loads = ([row[column] for row in sessions()] for column in ("t", "host", "load"))
    columns = {name + "_at": times, name + " host": hosts, name: loads}
    if "\n" in name:  # no job file can name it
        columns = {name: hosts, "t": times, "user": ["a\nb"] * len(hosts)}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    proposed(tmp_path, "log.parquet")
    done(tmp_path, "run", "job.yaml")


# The page of the docs


def shop_log() -> str:
    """Requests of 30 visitors over a week: visits of some requests within minutes, and hours or days between them."""
    rng = np.random.default_rng(3)
    lines = []
    for visitor in range(30):
        at = dt.datetime(2026, 11, 2, 8) + dt.timedelta(seconds=int(rng.integers(0, 86400)))
        while at < dt.datetime(2026, 11, 9):
            for _ in range(int(rng.integers(1, 12))):
                lines.append((at, f"v{visitor:02}", int(rng.integers(200, 90_000))))
                at += dt.timedelta(seconds=int(rng.lognormal(3.4, 0.9)) + 1)
            at += dt.timedelta(seconds=int(rng.lognormal(10.6, 0.7)))
    rows = [f"[{at:%d/%b/%Y:%H:%M:%S} +0000],{visitor},{size}" for at, visitor, size in sorted(lines)]
    return "\n".join(["time,visitor,bytes", *rows]) + "\n"


def test_the_page_shows_what_init_says_and_writes(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(shop_log())
    ran = done(tmp_path, "init", "shop.csv", "-o", "visits.yaml")
    (_, shown), *_ = fences(DOCS["check"], "console")
    assert shown == ["$ wincli init shop.csv -o visits.yaml", *ran.out.splitlines()]
    (_, job), *_ = fences(DOCS["check"], "yaml")
    assert job == (tmp_path / "visits.yaml").read_text().splitlines()
    done(tmp_path, "run", "visits.yaml")
