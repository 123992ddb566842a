"""Windows between the instants of a cron expression: the library agrees with a look at every minute."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import calendar as reference_calendar
from references import cron as reference_cron
from references import tumbling as reference
from support.strategies import examples
from wincli.windowing.errors import SpecError
from wincli.windowing.language.parser import parse_window

DAY, HOUR = 86_400, 3_600
CHANGES = {
    "UTC": ["2026-03-29 01:00"],
    "Europe/Paris": ["2026-03-29 01:00", "2026-10-25 01:00"],
    "America/New_York": ["2026-03-08 07:00", "2026-11-01 06:00"],
    "Asia/Kathmandu": ["2026-03-29 01:00"],
}
MINUTES = ["0", "30", "59", "15,45", "10-50/20", "*/20"]
HOURS = ["0", "2", "23", "1-3", "0,12", "*/3", "*"]
DATES = [("*", "*"), ("*", "1-5"), ("*", "0"), ("8,25,29", "*"), ("1", "7"), ("*/2", "6,0")]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    day, weekday = draw(st.sampled_from(DATES))
    return f"{draw(st.sampled_from(MINUTES))} {draw(st.sampled_from(HOURS))} {day} * {weekday}"


def seconds_of(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


@st.composite
def clocks(draw: st.DrawFn, tz: str) -> list[int]:
    """Seconds around a change of the zone."""
    change = seconds_of(draw(st.sampled_from(CHANGES[tz])))
    near = st.sampled_from([0, -1, 1, 1_800, HOUR, -HOUR, 2 * HOUR, DAY, -DAY])
    return [change + n for n in draw(st.lists(near | st.integers(-2 * DAY, 2 * DAY), min_size=1, max_size=12))]


@examples(60, deadline=None)
@given(st.data(), expressions(), st.sampled_from(sorted(CHANGES)), st.sampled_from(["flush", "drop"]), st.booleans())
def test_cron_agrees_with_a_look_at_every_minute(
    data: st.DataObject, expression: str, tz: str, at_end: Any, keyed: bool
) -> None:
    seconds = data.draw(clocks(tz))
    empty = data.draw(st.sampled_from(["skip", "row"]))
    table = pa.table({
        "id": pa.array(range(len(seconds)), pa.int64()),
        "t": pa.array(seconds, pa.timestamp("s")),
        "k": pa.array([n % 2 if keyed else 0 for n in range(len(seconds))], pa.int64()),
    })  # fmt: skip
    begun = reference_cron.beginnings(expression, tz, Fraction(min(seconds)), Fraction(max(seconds)), 33)
    policy = reference_calendar.Calendar(
        Fraction(1), pa.timestamp("s"), empty=empty, reason="cron", beginnings=tuple(begun)
    )
    wanted = reference.tumbling(reference.read(table), policy, key=["k"], order=["t"], at_end=at_end).panes
    found = wincli.aggregate(
        table,
        f'cron("{expression}", "{tz}")',
        key=["k"],
        order_by=["t"],
        aggregates=["ids=collect(id)"],
        at_end=at_end,
        empty=empty,
    )
    told = found.select(["k", "window", "closed_by", "window_start", "window_end", "ids"])
    columns = [reference.ticks_of(column) for column in told.columns]
    wanted = sorted((p for p in wanted if p.key is not None), key=lambda p: (p.key, p.number))
    assert [*zip(*columns, strict=True)] == [
        (*(p.key or ()), p.number, p.closed_by, p.start, p.end, list(p.rows) or None) for p in wanted
    ]


def bounds(window: str, *texts: str) -> list[str]:
    """Where the windows of some instants begin, and the last ends, in UTC."""
    table = pa.table({"t": pa.array([dt.datetime.fromisoformat(text) for text in texts])})
    result = wincli.aggregate(table, window).to_pylist()
    instants = [*(pane["window_start"] for pane in result), result[-1]["window_end"]]
    return [f"{instant:%Y-%m-%d %H:%M}" for instant in instants]


@pytest.mark.parametrize(
    ("window", "texts", "wanted"),
    [
        # a time that clocks jump over, and one that they show twice
        ('cron("30 2 * * *", "Europe/Paris")', ["2024-03-31 00:59"], ["2024-03-30 01:30", "2024-03-31 01:00"]),
        ('cron("30 2 * * *", "Europe/Paris")', ["2024-03-31 01:00"], ["2024-03-31 01:00", "2024-04-01 00:30"]),
        ('cron("30 2 * * *", "Europe/Paris")', ["2024-10-27 00:30"], ["2024-10-27 00:30", "2024-10-28 01:30"]),
        # jobs of every hour meet both hours that clocks show twice
        (
            'cron("0 * * * *", "Europe/Paris")',
            [f"2024-10-27 0{hour}:30" for hour in range(3)],
            [f"2024-10-27 0{hour}:00" for hour in range(4)],
        ),
        # working days and leap days
        ('cron("59 23 * * 1-5", "UTC")', ["2026-11-21 12:00"], ["2026-11-20 23:59", "2026-11-23 23:59"]),
        ('cron("0 0 29 2 *")', ["2100-06-01"], ["2096-02-29 00:00", "2104-02-29 00:00"]),
    ],
)
def test_bounds_by_hand(window: str, texts: list[str], wanted: list[str]) -> None:
    assert bounds(window, *texts) == wanted


@pytest.mark.parametrize("tz", ["UTC", "Europe/Paris", "Asia/Tokyo"])
@pytest.mark.parametrize("expression", ["0 0 * * *", "30 2 1 * 1-5", "0 0 29 2 *", "59 23 31 12 *"])
@pytest.mark.parametrize("instant", [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)])
def test_windows_of_the_first_and_the_last_year_have_both_bounds(
    expression: str, tz: str, instant: dt.datetime
) -> None:
    # the same dates and weekdays 400 years later, or before
    other = instant.replace(year=401 if instant.year == 1 else 9599)
    far, near = (
        wincli.aggregate(pa.table({"t": pa.array([at])}), f'cron("{expression}", "{tz}")') for at in (instant, other)
    )
    for name in ("window_start", "window_end"):
        one, two = (each[name].cast(pa.int64())[0].as_py() for each in (far, near))
        assert abs(one - two) == 146_097 * 86_400 * 10**6


@pytest.mark.parametrize("window", ['cron("0 0 * * *", "Europe/Paris")', "calendar(year)", "calendar(day) or count(9)"])
@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.int64(), pa.float64(), pa.decimal128(38, 2), pa.uint64()])
def test_rows_beyond_the_years_1_to_9999_are_rejected(window: str, kind: pa.DataType) -> None:
    far = [253_402_300_800, 2**50] if kind == pa.uint64() else [-62_135_596_801, 253_402_300_800, -(2**50)]
    table = pa.table({"t": pa.array([100, *far], pa.int64()).cast(kind)})
    kept = wincli.aggregate(table, window, order_by="t", rejected="drop")
    assert kept["count"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("window", "what", "under"),
    [
        ('cron("61 * * * *")', "'61' is no minute of cron", "61"),
        ('cron("0 0  32 * *", "UTC")', "'32' is no day-of-month of cron", "32"),
        ('cron("0 0 31 2 *")', "'31' is no day-of-month of cron", "31"),
        ('cron("0 0 * x *")', "'x' is no month of cron", "x"),
        ('cron("0 0 * * 1-8")', "'1-8' is no day-of-week of cron", "1-8"),
        ('cron("0 24 * * *")', "'24' is no hour of cron", "24"),
        ('cron("* * * *")', "5 fields, found 4", '"* * * *"'),
        ('cron("0 * * * * *")', "5 fields, found 6", '"0 * * * * *"'),
        ('cron("")', "5 fields, found 0", '""'),
        ("cron(5)", "expected a cron expression in quotes", "5"),
        ('cron("0 0 * * *", "Europe/Pariss")', "unknown time zone", '"Europe/Pariss"'),
        ("cron()", "cron takes 1 or 2 arguments", "cron()"),
    ],
)
def test_mistakes_are_underlined(window: str, what: str, under: str) -> None:
    with pytest.raises(SpecError, match=what) as error:
        wincli.aggregate(pa.table({"t": [1]}), window)
    span = error.value.span
    assert window[span.start : span.stop] == under


def test_the_canonical_text_has_single_spaces_and_no_utc() -> None:
    text = "cron('0  12 * * mon', UTC)"
    assert str(parse_window(text)) == 'tumbling, cron("0 12 * * mon")'
    assert parse_window(str(parse_window(text))) == parse_window(text)


def test_cronsim_is_loaded_only_where_it_is_used() -> None:
    code = "import sys, wincli.windowing.kinds.registry, wincli.windowing.language.parser as p\n"
    for window in ("count(3)", 'cron("0 0 * * *")'):
        code += f"p.parse_window({window!r})\nprint('cronsim' in sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


APART = [
    seconds_of("0001-01-03 00:00"),
    seconds_of("1911-03-10 23:50"),
    seconds_of("2026-10-25 01:00"),
    253_402_200_000,
]
"""Seconds around which rows stand, years apart."""
DATED = [
    'cron("*/20 * * * *", "Europe/Paris")', 'cron("0 0 1 1 *", "America/New_York")', 'calendar(day, "Europe/Paris")',
    "calendar(week)", 'calendar(year, "Asia/Kathmandu")', 'cron("0 * * * *") or count(3)',
]  # fmt: skip


@examples(80, deadline=None)
@given(st.data(), st.sampled_from(DATED), st.sampled_from(["left", "right"]))
def test_rows_that_are_years_apart_have_the_windows_that_they_have_alone(
    data: st.DataObject, window: str, closed: Any
) -> None:
    """Years without a row are left out of the grid: every 20 minutes in 10,000 years would be more than it holds."""
    near = st.sampled_from([0, 1, -1, HOUR, -HOUR, DAY]) | st.integers(-2 * DAY, DAY)
    groups = [[at + n for n in sorted(data.draw(st.lists(near, max_size=6)))] for at in APART]

    def windows(seconds: list[int]) -> list[tuple[Any, ...]]:
        table = pa.table({"t": pa.array(seconds, pa.timestamp("s"))})
        options = {"closed": closed if " or " not in window else "left"}
        found = wincli.aggregate(table, window, order_by="t", aggregates=["rows=collect(t)"], **options)
        names = ("window_start", "window_end", "rows")
        columns = [found[name].cast(pa.list_(pa.int64()) if name == "rows" else pa.int64()) for name in names]
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    apart = [each for group in groups if group for each in windows(group)]
    assert windows([at for group in groups for at in group]) == apart
