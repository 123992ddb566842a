"""Times: numbers since 1970 and texts of any layout, exact in every format, and never what nobody asked for."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.readers.source import FileSource
from wincli.readers.values.casts import convert
from wincli.readers.values.types import column_type
from wincli.windowing.errors import ConfigError, SpecError
from wincli.windowing.local_executor import LocalExecutor

UTC_US, UTC_NS = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")


def source(path: Path, schema: str) -> FileSource:
    options = ReadOptions(schema=parse_schema(schema))
    return open_source([str(path)], options, LocalExecutor())


def ticks(column: pa.Array, kind: str) -> list[Any]:
    """The ticks of each value; ``bad`` where it does not go."""
    read, bad = convert(pa.chunked_array([column.slice(0, 1), column.slice(1)]), column_type(kind))
    assert read.type == (UTC_NS if "ns" in kind else UTC_US)
    values = read.cast(pa.int64()).to_pylist()
    return ["bad" if bad is not None and bad[at] else value for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("column", "kind", "want"),
    [
        (pa.array([1117838570, None, -1]), "timestamp(unix)", [1117838570000000, None, -1000000]),
        (pa.array([1117838570123], pa.uint64()), "timestamp(unix_ms)", [1117838570123000]),
        (pa.array([1117838570123456]), "timestamp(unix_us)", [1117838570123456]),
        (pa.array([1117838570123456789, 2**63 - 1]), "timestamp(unix_ns)", [1117838570123456789, 2**63 - 1]),
        (pa.array([7], pa.int8()), "timestamp_ns(unix)", [7_000_000_000]),
        (pa.array([5]), "timestamptz(unix_ms)", [5000]),
        (pa.array([2**63 - 1, 2**62, 1]), "timestamp(unix_ms)", ["bad", "bad", 1000]),
        (pa.array([2**64 - 1], pa.uint64()), "timestamp(unix_ns)", ["bad"]),
        (pa.array([1117838570.123, 1.6e9, 0.1]), "timestamp(unix)", [1117838570123000, 1600000000000000, 100000]),
        (pa.array([1117838570123.456]), "timestamp(unix_ms)", [1117838570123456]),
        (pa.array([float("nan"), float("inf"), 1e300, 0.1234567]), "timestamp(unix)", ["bad"] * 4),
        (pa.array([Decimal("1117838570.123")]), "timestamp(unix)", [1117838570123000]),
        (pa.array([Decimal("1.0000001"), Decimal("1.1000000")]), "timestamp(unix)", ["bad", 1100000]),
        (
            pa.array(["1117838570.123", " 1 ", "1e9", "-1"]),
            "timestamp(unix)",
            [1117838570123000, 10**6, 10**15, -(10**6)],
        ),
        (pa.array(["1700000000.1234567", None]), "timestamp_ns(unix)", [1700000000123456700, None]),
        (pa.array(["1700000000.1234567", "", "x", "0x10", "1_0", "10:00"]), "timestamp(unix)", ["bad"] * 6),
        (pa.array([True]), "timestamp(unix)", ["bad"]),
        (pa.array([], pa.int64()), "timestamp(unix)", []),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_numbers_become_instants_exactly_or_not_at_all(column: pa.Array, kind: str, want: list[Any]) -> None:
    assert ticks(column, kind) == want


@given(st.integers(-(10**15), 10**15), st.sampled_from([("unix", 6), ("unix_ms", 3), ("unix_us", 0)]))
def test_every_microsecond_survives_text_and_decimal(micros: int, form: tuple[str, int]) -> None:
    name, digits = form
    text = str(Decimal(micros).scaleb(-digits))
    assert ticks(pa.array([text]), f"timestamp({name})") == [micros]
    assert ticks(pa.array([Decimal(text)]), f"timestamp({name})") == [micros]


ROWS = ["1117838570", "1117838570.123", "1117838571.000001"]
WANT = [1117838570000000, 1117838570123000, 1117838571000001]


def read(path: Path, schema: str = "ts:timestamp(unix)") -> tuple[list[int], list[str]]:
    """The ticks of the column ``ts``, and what is wrong with the rejected rows."""
    opened = source(path, schema)
    assert opened.schema.field("ts").type == UTC_US
    batch = opened.read(opened.splits[0], ["ts"])
    rejects = [] if batch.rejects is None else batch.rejects["_detail"].to_pylist()
    return batch.rows["ts"].cast(pa.int64()).to_pylist(), rejects


def test_all_formats_read_them_alike(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n" + "".join(f"{row}\n" for row in ROWS))
    (tmp_path / "b.jsonl").write_text("".join(f'{{"ts":{row}}}\n' for row in ROWS))
    (tmp_path / "c.jsonl").write_text("".join(f'{{"ts":"{row}"}}\n' for row in ROWS))
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    decimals = pa.array([Decimal(row) for row in ROWS], pa.decimal128(20, 6))
    pq.write_table(pa.table({"ts": decimals}), tmp_path / "e.parquet")
    pq.write_table(pa.table({"ts": decimals.cast(pa.float64())}), tmp_path / "f.parquet")
    pq.write_table(pa.table({"ts": ROWS}), tmp_path / "g.parquet")
    for name in ("a.csv", "b.jsonl", "c.jsonl", "d.jsonl.gz", "e.parquet", "f.parquet", "g.parquet"):
        assert read(tmp_path / name) == (WANT, []), name


def test_value_that_is_no_unix_time_is_rejected_with_the_requested_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n1\n1.2345678\n10:00\n")
    (tmp_path / "b.jsonl").write_text('{"ts":1}\n{"ts":1.2345678}\n{"ts":"10:00"}\n')
    words = "is not a number of type unix with at most 6 digits behind the point"
    for name in ("a.csv", "b.jsonl"):
        assert read(tmp_path / name) == ([10**6], [f"column ts: {text!r} {words}" for text in ("1.2345678", "10:00")])


def test_a_folder_may_hold_one(tmp_path: Path) -> None:
    (tmp_path / "in/ts=1117838570").mkdir(parents=True)
    (tmp_path / "in/ts=1117838570/a.csv").write_text("x\n1\n")
    assert read(tmp_path / "in") == ([1117838570000000], [])


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ns", "timestamptz", "date"])
def test_whole_numbers_of_parquet_that_say_not_what_they_count_are_an_error(tmp_path: Path, kind: str) -> None:
    pq.write_table(pa.table({"ts": pa.array([1117838570], pa.int32())}), tmp_path / "a.parquet")
    word = "date" if kind == "date" else "timestamp"
    with pytest.raises(ConfigError) as caught:
        source(tmp_path / "a.parquet", f"ts:{kind}")
    assert str(caught.value) == (
        f"column 'ts' is int32 in {tmp_path}/a.parquet, and a {word} could count anything; "
        'say what it counts, with --schema "ts:timestamp(unix)" for seconds since 1970, or (unix_ms), (unix_us), '
        "(unix_ns)"
    )


def test_whole_numbers_are_read_by_a_layout_as_they_are_written(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [20261122100005, 20261399000000]}), tmp_path / "a.parquet")
    opened = source(tmp_path / "a.parquet", "ts:timestamp(%Y%m%d%H%M%S)")
    batch = opened.read(opened.splits[0], ["ts"])
    assert [str(value) for value in batch.rows["ts"].to_pylist()] == ["2026-11-22 10:00:05"]
    assert batch.rejects is not None
    assert json.loads(json.dumps(batch.rejects["_row"].to_pylist())) == [2]


@pytest.mark.parametrize(
    ("layout", "what", "do"),
    [
        ("%H:%M:%S", "a time of day without a date", "put date and time into one column"),
        ("%I:%M %p", "a time of day without a date", "put date and time into one column"),
        ("%b %d %H:%M:%S", "a time of day without a year", "the year is known from nowhere else"),
        ("%d/%m", "a day without a year", "the year is known from nowhere else"),
        ("%j %H", "a time of day without a year", "the year is known from nowhere else"),
        ("%Y %H:%M", "a time of day without a month", "for example timestamp(%d/%m/%y %H:%M)"),
        ("%m/%Y %H:%M", "a time of day without a day", "for example timestamp(%d/%m/%y %H:%M)"),
        ("unixs", "no date", "for example timestamp(%d/%m/%y %H:%M), or timestamp(unix)"),
        ("%a %z", "no date", "for example timestamp(%d/%m/%y %H:%M), or timestamp(unix)"),
    ],
)
def test_a_layout_without_a_date_is_refused(layout: str, what: str, do: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_schema(f"n:int, ts:timestamp({layout})")
    first, source, caret = str(caught.value).split("\n")
    assert first.startswith(f"this format reads {what}; {do}")
    assert source == f"  n:int, ts:timestamp({layout})"
    assert caret == "  " + " " * len("n:int, ts:timestamp(") + "^" * len(layout)


@pytest.mark.parametrize("layout", ["%Y", "%Y-%m", "%y%j", "%F %T", "%s", "%d.%m.%y", "%D %R", "%Y %b %e %H"])
def test_a_layout_with_a_date_is_taken(layout: str) -> None:
    assert parse_schema(f"ts:timestamp({layout})") == (("ts", f"timestamp({layout})"),)


def test_words_for_numbers_are_read_in_whatever_case_and_not_for_dates() -> None:
    assert parse_schema("a:timestamp( Unix ),b:timestamptz(UNIX_MS),c:timestamp_ns(unix)") == (
        ("a", "timestamp(unix)"),
        ("b", "timestamptz(unix_ms)"),
        ("c", "timestamp_ns(unix)"),
    )
    with pytest.raises(SpecError, match="this format reads no date"):
        parse_schema("d:date(unix)")


# Texts of a layout


def parse(text: str | None, layout: str, kind: str = "timestamp") -> dt.datetime | dt.date | None:
    """Return what a text stands for, or the string ``bad`` where it stands for nothing."""
    values, mask = convert(pa.chunked_array([pa.array([None, text], pa.string())]), column_type(f"{kind}({layout})"))
    assert values.type == column_type(f"{kind}({layout})").type
    assert values[0].as_py() is None
    if mask is not None:
        assert mask.tolist() == [False, True]
        return "bad"  # type: ignore[return-value]
    return values[1].as_py()


ZONE = dt.UTC


@pytest.mark.parametrize(
    ("text", "layout", "value"),
    [
        ("17/06/09 20:10:40", "%y/%m/%d %H:%M:%S", dt.datetime(2017, 6, 9, 20, 10, 40)),
        ("2005-06-03-15.42.50.675872", "%Y-%m-%d-%H.%M.%S.%f", dt.datetime(2005, 6, 3, 15, 42, 50, 675872)),
        ("2015-10-18 18:01:47,978", "%Y-%m-%d %H:%M:%S,%f", dt.datetime(2015, 10, 18, 18, 1, 47, 978000)),
        ("Jun  9 06:06:20", "%b %d %H:%M:%S", dt.datetime(1900, 6, 9, 6, 6, 20)),
        ("Thu Jun 09 06:07:04 2005", "%a %b %d %H:%M:%S %Y", dt.datetime(2005, 6, 9, 6, 7, 4)),
        ("9 September 2005", "%d %B %Y", dt.datetime(2005, 9, 9)),
        ("081109 203615", "%y%m%d %H%M%S", dt.datetime(2008, 11, 9, 20, 36, 15)),
        ("12:05 AM", "%I:%M %p", dt.datetime(1900, 1, 1, 0, 5)),
        ("12:05 pm", "%I:%M %p", dt.datetime(1900, 1, 1, 12, 5)),
        ("2020 060", "%Y %j", dt.datetime(2020, 2, 29)),
        ("1117838570", "%s", dt.datetime(2005, 6, 3, 22, 42, 50)),
        ("1117838570.5", "%s.%f", dt.datetime(2005, 6, 3, 22, 42, 50, 500000)),
        ("3/6/05", "%d/%m/%y", dt.datetime(2005, 6, 3)),
        ("100% 2005", "100%% %Y", dt.datetime(2005, 1, 1)),
        ("2005-06-03T10:11:12", "%FT%T", dt.datetime(2005, 6, 3, 10, 11, 12)),
        ("03/Jun/2005:10:11:12 +0200", "%d/%b/%Y:%H:%M:%S %z", dt.datetime(2005, 6, 3, 8, 11, 12, tzinfo=ZONE)),
        ("2005-01-01 00:30-05:30", "%Y-%m-%d %H:%M%z", dt.datetime(2005, 1, 1, 6, 0, tzinfo=ZONE)),
        ("2005-01-01 00:30Z", "%Y-%m-%d %H:%M%z", dt.datetime(2005, 1, 1, 0, 30, tzinfo=ZONE)),
    ],
)
def test_texts_that_match(text: str, layout: str, value: dt.datetime) -> None:
    assert parse(text, layout) == value


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("2005-02-29", "%Y-%m-%d"),
        ("2005-13-01", "%Y-%m-%d"),
        ("2005-00-01", "%Y-%m-%d"),
        ("2005-01-01x", "%Y-%m-%d"),
        ("2005-01-", "%Y-%m-%d"),
        ("", "%Y-%m-%d"),
        ("24:00", "%H:%M"),
        ("10:60", "%H:%M"),
        ("13:00 PM", "%I:%M %p"),
        ("11:00 XM", "%I:%M %p"),
        ("Foo 1", "%b %d"),
        ("2021 366", "%Y %j"),
        ("10:00:00.1234567", "%H:%M:%S.%f"),
        ("10:00:00.", "%H:%M:%S.%f"),
        ("10:00 +2", "%H:%M %z"),
        ("10:00 +02:", "%H:%M %z"),
        ("205-01-01", "%Y-%m-%d"),
    ],
)
def test_texts_that_do_not(text: str, layout: str) -> None:
    assert parse(text, layout) == "bad"


def test_a_leap_day_a_date_and_digits_of_a_nanosecond() -> None:
    assert parse("29.02.2000", "%d.%m.%Y", "date") == dt.date(2000, 2, 29)
    assert parse("29.02.1900", "%d.%m.%Y", "date") == "bad"
    assert parse("10:00:00.123456000", "%H:%M:%S.%f") == dt.datetime(1900, 1, 1, 10, 0, 0, 123456)
    values, mask = convert(
        pa.chunked_array([["2020-01-01 .123456789", "9999-01-01 .0"]]), column_type("timestamp_ns(%Y-%m-%d .%f)")
    )
    assert values.cast(pa.int64()).to_pylist() == [1577836800123456789, None]
    assert mask is not None
    assert mask.tolist() == [False, True]


def test_a_zone_gives_a_zoned_type_and_its_lack_means_utc() -> None:
    assert parse("2020-01-01", "%Y-%m-%d", "timestamptz") == dt.datetime(2020, 1, 1, tzinfo=ZONE)


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_what_python_formats_is_read_back(moment: dt.datetime) -> None:
    text = f"{moment.year:04d}" + moment.strftime("-%m-%d %H:%M:%S.%f")
    assert parse(text, "%Y-%m-%d %H:%M:%S.%f") == moment
    half = f"{moment.year:04d} " + moment.strftime("%j %I:%M:%S %p")
    assert parse(half, "%Y %j %I:%M:%S %p") == moment.replace(microsecond=0)
