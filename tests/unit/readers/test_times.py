"""Times: numbers since 1970 and texts of any layout, exact in every format, and never what nobody asked for."""

from __future__ import annotations

import datetime as dt
import gzip
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import TESTS
from support.readers import put, read_all, source
from wincli.readers.formats.split_rows import converted
from wincli.readers.values.casts import convert
from wincli.readers.values.types import ColumnType, column_type
from wincli.windowing.errors import ConfigError

UTC_US, UTC_NS = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")


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


def read(path: Path, schema: str = "ts:timestamp(unix)") -> tuple[list[Any], list[str]]:
    """The values of the column ``ts``, instants as ticks, and what is wrong with the rejected rows."""
    opened = source(path, schema=schema)
    rows = opened.read(opened.splits[0], ["ts"]).rows["ts"]
    values = rows.cast(pa.int64()) if rows.type == UTC_US else rows
    return values.to_pylist(), [reject["_detail"] for reject in read_all(opened, ["ts"]).rejects]


def test_all_formats_read_them_alike(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n" + "".join(f"{row}\n" for row in ROWS))
    (tmp_path / "b.jsonl").write_text("".join(f'{{"ts":{row}}}\n' for row in ROWS))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    put(tmp_path / "d.jsonl", {"ts": ROWS})
    decimals = pa.array([Decimal(row) for row in ROWS], pa.decimal128(20, 6))
    for name, column in {"e": decimals, "f": decimals.cast(pa.float64()), "g": pa.array(ROWS)}.items():
        put(tmp_path / f"{name}.parquet", {"ts": column})
    (tmp_path / "ts=1117838570").mkdir()
    (tmp_path / "ts=1117838570/x.csv").write_text("x\n1\n")
    for path in tmp_path.glob("*.*"):
        assert read(path) == (WANT, []), path
    assert read_all(source(tmp_path / "ts=1117838570", bases=(str(tmp_path),), schema="ts:timestamp(unix)")).rows == [
        {"x": 1, "ts": dt.datetime(2005, 6, 3, 22, 42, 50, tzinfo=dt.UTC)}
    ]


def test_value_that_is_no_unix_time_is_rejected_with_the_requested_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n1\n1.2345678\n10:00\n")
    (tmp_path / "b.jsonl").write_text('{"ts":1}\n{"ts":1.2345678}\n{"ts":"10:00"}\n')
    words = "is not a number of type unix with at most 6 digits behind the point"
    for name in ("a.csv", "b.jsonl"):
        assert read(tmp_path / name) == ([10**6], [f"column ts: {text!r} {words}" for text in ("1.2345678", "10:00")])


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ns", "timestamptz", "date"])
def test_whole_numbers_of_parquet_that_say_not_what_they_count_are_an_error(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path / "a.parquet", {"ts": pa.array([1117838570], pa.int32())})
    word = "date" if kind == "date" else "timestamp"
    with pytest.raises(ConfigError) as caught:
        source(path, schema=f"ts:{kind}")
    assert str(caught.value) == (
        f"column 'ts' is int32 in {path}, and a {word} could count anything; "
        'say what it counts, with --schema "ts:timestamp(unix)" for seconds since 1970, or (unix_ms), (unix_us), '
        "(unix_ns)"
    )


def test_whole_numbers_are_read_by_a_layout_as_they_are_written(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", {"ts": [20261122100005, 20261399000000]})
    every = read_all(source(path, schema="ts:timestamp(%Y%m%d%H%M%S)"))
    assert every.rows == [{"ts": dt.datetime(2026, 11, 22, 10, 0, 5)}]
    assert [reject["_row"] for reject in every.rejects] == [2]


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


LAYOUTS = (TESTS / "cases/time_layouts.txt").read_text(encoding="utf-8").splitlines()
"""Texts, a layout, and what it reads them as: a time, or nothing."""


@pytest.mark.parametrize("line", LAYOUTS)
def test_texts_that_match_a_layout_and_texts_that_do_not(line: str) -> None:
    text, layout, value = line.split(" | ")
    assert str(parse(text, layout)) == value


def test_a_leap_day_a_date_a_zone_and_digits_of_a_nanosecond() -> None:
    assert parse("29.02.2000", "%d.%m.%Y", "date") == dt.date(2000, 2, 29)
    assert parse("29.02.1900", "%d.%m.%Y", "date") == "bad"
    assert parse("2020-01-01", "%Y-%m-%d", "timestamptz") == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    values, mask = convert(
        pa.chunked_array([["2020-01-01 .123456789", "9999-01-01 .0"]]), column_type("timestamp_ns(%Y-%m-%d .%f)")
    )
    assert values.cast(pa.int64()).to_pylist() == [1577836800123456789, None]
    assert mask is not None
    assert mask.tolist() == [False, True]


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_what_python_formats_is_read_back(moment: dt.datetime) -> None:
    text = f"{moment.year:04d}" + moment.strftime("-%m-%d %H:%M:%S.%f")
    assert parse(text, "%Y-%m-%d %H:%M:%S.%f") == moment
    half = f"{moment.year:04d} " + moment.strftime("%j %I:%M:%S %p")
    assert parse(half, "%Y %j %I:%M:%S %p") == moment.replace(microsecond=0)


@pytest.mark.parametrize("directive", ["b", "B", "h"])
def test_a_month_is_its_three_letters_or_its_whole_name(directive: str) -> None:
    good = ["Jan", "january", "MAY", "Sep", "September", "dec", "December"]
    bad = ["Janxyz", "Janu", "Septembers", "Sept", "Mayy", "Ja", "Januarys", "Decembrrr"]
    found = [parse(f"1 {word} 2026", f"%d %{directive} %Y", "date") for word in good + bad]
    assert found == [dt.date(2026, month, 1) for month in (1, 1, 5, 9, 9, 12, 12)] + ["bad"] * len(bad)


# Times that are far, and what messages show of them


WITHOUT_PANDAS = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Block())
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.windowing.local_executor import LocalExecutor

source = open_source([sys.argv[1]], ReadOptions(schema=parse_schema("x:timestamp")), LocalExecutor())
print(source.read(source.splits[0], ["x"]).rejects["_detail"].to_pylist())
assert "pandas" not in sys.modules
"""


def test_nanoseconds_are_shown_without_pandas(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", {"x": pa.array([1001], pa.timestamp("ns"))})
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['column x: 1970-01-01 00:00:00.000001001 is not a timestamp']", done.stderr


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (pa.timestamp("us"), 2**58, "11103-08-29 17:22:31.711744"),
        (pa.date32(), 10**7, "29349-01-26"),
        (pa.timestamp("us", "No/Where"), 5, "5"),
        (pa.duration("ns"), 1001, "1001"),
        (pa.int64(), 5, "5"),
    ],
)
def test_every_value_has_a_text(kind: pa.DataType, value: int, shown: str) -> None:
    numbers = pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64())
    _, details = converted({"x": pa.chunked_array([numbers.cast(kind)])}, {"x": ColumnType(pa.list_(pa.bool_()))})
    assert details == {0: f"column x: {shown} is not a list<item: bool>"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("schema", "kind"),
    [("timestamp", pa.timestamp("us")), ("timestamptz", pa.timestamp("us", "UTC")), ("date", pa.date32())],
)
def test_years_of_any_number_of_digits_read_back_as_results_have_them(
    tmp_path: Path, form: str, schema: str, kind: pa.DataType
) -> None:
    years = [-32_767, -5, -1, 0, 1, 9_999, 10_000, 10_400, 32_767]
    days = [
        int(np.datetime64(f"{year:04}-{rest}", "D").astype(np.int64))
        for year in years
        for rest in ("01-01", "02-28", "12-31")
    ]
    found = days if kind == pa.date32() else [day * 86_400 * 10**6 + 3_600_000_001 for day in [*days, 0]]
    column = pa.array(found, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    with (tmp_path / f"a.{form}").open("wb") as file:
        import_module(f"wincli.writers.formats.{form}").ENCODER.encode(
            [pa.table({"x": column})], pa.schema([("x", kind)]), file
        )
    opened = source(tmp_path / f"a.{form}", schema=f"x:{schema}")
    batch = opened.read(opened.splits[0], ["x"])
    assert batch.rejects is None
    assert batch.rows["x"].combine_chunks().equals(column)


def test_other_texts_with_many_digits_are_no_times_and_nanoseconds_hold_no_far_year(tmp_path: Path) -> None:
    bad = ["10000-02-30", "-0005-01-32", "10000-1-1", "-12345", "100000-01-01", "10000-01-01x"]
    (tmp_path / "a.csv").write_text("\n".join(["x", *bad, "10000-01-02", ""]))
    for schema, rejected in (("date", bad), ("timestamp", bad), ("timestamp_ns", [*bad, "10000-01-02"])):
        opened = source(tmp_path / "a.csv", schema=f"x:{schema}")
        rejects = opened.read(opened.splits[0], ["x"]).rejects
        assert rejects is not None
        assert rejects["_text"].to_pylist() == rejected
