from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.readers.values.casts import convert
from wincli.readers.values.types import column_type


def parse(text: str | None, layout: str, kind: str = "timestamp") -> dt.datetime | dt.date | None:
    """Return what a text stands for, or the string ``bad`` where it stands for nothing."""
    values, mask = convert(pa.chunked_array([pa.array([None, text], pa.string())]), column_type(f"{kind}({layout})"))
    assert values.type == column_type(f"{kind}({layout})").type
    assert values[0].as_py() is None
    if mask is not None:
        assert mask.tolist() == [False, True]
        return "bad"  # type: ignore[return-value]
    return values[1].as_py()


UTC = dt.UTC


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
        ("03/Jun/2005:10:11:12 +0200", "%d/%b/%Y:%H:%M:%S %z", dt.datetime(2005, 6, 3, 8, 11, 12, tzinfo=UTC)),
        ("2005-01-01 00:30-05:30", "%Y-%m-%d %H:%M%z", dt.datetime(2005, 1, 1, 6, 0, tzinfo=UTC)),
        ("2005-01-01 00:30Z", "%Y-%m-%d %H:%M%z", dt.datetime(2005, 1, 1, 0, 30, tzinfo=UTC)),
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
    assert parse("2020-01-01", "%Y-%m-%d", "timestamptz") == dt.datetime(2020, 1, 1, tzinfo=UTC)


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_what_python_formats_is_read_back(moment: dt.datetime) -> None:
    text = f"{moment.year:04d}" + moment.strftime("-%m-%d %H:%M:%S.%f")
    assert parse(text, "%Y-%m-%d %H:%M:%S.%f") == moment
    half = f"{moment.year:04d} " + moment.strftime("%j %I:%M:%S %p")
    assert parse(half, "%Y %j %I:%M:%S %p") == moment.replace(microsecond=0)
