"""Windows between dates: calendar units and the instants of cron expressions, against a search for where they begin.

calendar(day, "Europe/Paris")               31 March 2024: 23 hours     27 October 2024: 25 hours
cron("30 2 * * *", "Europe/Paris")          at 03:00, the jump          at the first of two 02:30
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import calendar as reference_calendar
from references import cron as reference_cron
from references import tumbling as reference
from support import strategies as my
from support.pane_laws import check
from support.strategies import examples
from wincli.windowing.clock.grids import calendar_beginnings, make_calendar_grid
from wincli.windowing.errors import DataError
from wincli.windowing.language.spec import Calendar

HOUR, DAY = 3_600, 86_400
CHANGES = {
    "Europe/Paris": ["2024-03-31 01:00", "2024-10-27 01:00", "1911-03-10 23:50:39"],
    "America/Sao_Paulo": ["2018-11-04 03:00", "2018-02-18 02:00"],  # put forward, and back, at midnight
    "Pacific/Apia": ["2011-12-30 10:00"],  # no 30 December
    "Pacific/Kwajalein": ["1993-08-21 12:00"],
    "America/St_Johns": ["2010-11-07 02:31", "2011-03-13 03:31"],  # put back from one past midnight
    "America/Juneau": ["1867-10-18 15:33:32"],  # one date twice
    "Asia/Kathmandu": ["1985-12-31 18:30"],
    "Africa/Monrovia": ["1972-01-07 00:44:30"],
    "Africa/Casablanca": ["2023-03-19 02:00", "2023-04-23 02:00"],
    "UTC": ["1970-01-01 00:00", "1969-12-31 12:00", "2000-02-29 00:00"],
}
SPANS = {"day": 5 * DAY, "week": 40 * DAY, "month": 200 * DAY, "quarter": 400 * DAY, "year": 2_000 * DAY}
TIMES = [dt.time(0), dt.time(2, 30), dt.time(23, 59), dt.time(0, 0, 1), dt.time(12)]
KINDS = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
    *(pa.date32(), pa.date64(), pa.int64(), pa.uint64(), pa.int32(), pa.float64(), pa.float32()),
    *(pa.decimal128(18, 3), pa.decimal128(38, 7), pa.decimal128(12, -2)),
]
AT_MINUTES = {
    "UTC": ["2026-03-29 01:00"],
    "Europe/Paris": ["2026-03-29 01:00", "2026-10-25 01:00"],
    "America/New_York": ["2026-03-08 07:00", "2026-11-01 06:00"],
    "Asia/Kathmandu": ["2026-03-29 01:00"],
}
"""Those for cron expressions, whose instants are whole minutes of UTC."""
MINUTES = ["0", "30", "59", "15,45", "10-50/20", "*/20"]
HOURS = ["0", "2", "23", "1-3", "0,12", "*/3", "*"]
DATES = [("*", "*"), ("*", "1-5"), ("*", "0"), ("8,25,29", "*"), ("1", "7"), ("*/2", "6,0")]


def seconds_of(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


# --- the windows are those of the reference -----------------------------------------------------------------------


def array_of(seconds: list[int], kind: pa.DataType) -> pa.Array:
    """Instants as values of a type, those that are none moved a little."""
    if pa.types.is_unsigned_integer(kind):
        seconds = [abs(s) for s in seconds]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        seconds = [min(s, 2**31 - 1) if kind == pa.int32() else s for s in seconds]
        return pa.array(seconds, pa.int64()).cast(kind, safe=False)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(s if kind.scale >= 0 else s // 100 * 100) for s in seconds], kind)
    return pa.array(seconds, pa.timestamp("s")).cast(kind, safe=False)


@st.composite
def near_a_change(draw: st.DrawFn, changes: list[str], span: int, begun: list[int]) -> list[int]:
    """Seconds around a change of a zone, some just at where something may begin."""
    change = seconds_of(draw(st.sampled_from(changes)))
    near = st.sampled_from([0, -1, 1, 1_800, HOUR, -HOUR, 2 * HOUR, DAY, -DAY]) | st.integers(-span, span)
    seconds = [change + n for n in draw(st.lists(near, max_size=12))]
    seconds += draw(st.lists(st.sampled_from(begun), max_size=4)) if begun else []
    return [second + draw(st.sampled_from([0, 0, 1, -1])) for second in seconds]


@pytest.mark.parametrize("word", ["calendar", "cron"])
@examples(70)
@given(data=st.data(), kind=st.sampled_from(KINDS), at_end=st.sampled_from(["flush", "drop"]), keyed=st.booleans())
def test_windows_lie_between_the_instants_that_a_search_finds(
    word: str, data: st.DataObject, kind: pa.DataType, at_end: Any, keyed: bool
) -> None:
    empty: Any = data.draw(st.sampled_from(["skip", "row"]))
    changes = CHANGES if word == "calendar" else AT_MINUTES
    tz = data.draw(st.sampled_from(list(changes)))
    unit, at = data.draw(st.sampled_from(list(SPANS))), data.draw(st.sampled_from(TIMES))
    start = data.draw(st.sampled_from(reference_calendar.WEEKDAYS)) if unit == "week" else "mon"
    change = Fraction(seconds_of(changes[tz][0]))
    begun = reference_calendar.starts(unit, tz, at, start, change, change) if word == "calendar" else []
    seconds = data.draw(near_a_change(changes[tz], SPANS[unit] if word == "calendar" else 2 * DAY, begun))
    clock = array_of(seconds, kind)
    keys = [n % 2 if keyed else 0 for n in range(len(seconds))]
    table = pa.table({"id": pa.array(range(len(seconds)), pa.int64()), "k": pa.array(keys, pa.int64()), "t": clock})
    more: dict[str, Any] = {"empty": empty, "reason": "time" if word == "calendar" else "cron"}
    if word == "calendar":
        window = str(Calendar(unit, tz, at, start))
        ends = reference_calendar.calendar_of(table["t"], unit, tz, at, start, **more)
    else:
        day, weekday = data.draw(st.sampled_from(DATES))
        expression = f"{data.draw(st.sampled_from(MINUTES))} {data.draw(st.sampled_from(HOURS))} {day} * {weekday}"
        window = f'cron("{expression}", "{tz}")'
        instants = reference.ticks_of(table["t"])
        exact = [Fraction(value) * reference.seconds_per_unit(kind) for value in instants] or [Fraction(0)]
        begun = reference_cron.beginnings(expression, tz, min(exact), max(exact), 16)
        ends = reference_calendar.Calendar(Fraction(1), kind, beginnings=tuple(begun), **more)
    found = reference.tumbling(reference.read(table), ends, key=["k"], order=["t"], at_end=at_end)
    stream = my.Stream(table, ("k",), ("t",))
    check(stream, window, found.panes, ends.result_type, at_end=at_end, empty=empty)


APART = [seconds_of("0001-01-03"), seconds_of("1911-03-10 23:50"), seconds_of("2026-10-25 01:00"), 253_402_200_000]
"""Seconds around which rows stand, years apart."""
DATED = [
    'cron("*/20 * * * *", "Europe/Paris")', 'cron("0 0 1 1 *", "America/New_York")', 'calendar(day, "Europe/Paris")',
    "calendar(week)", 'calendar(year, "Asia/Kathmandu")', 'cron("0 * * * *") or count(3)',
]  # fmt: skip


@examples(80)
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


# --- by hand ------------------------------------------------------------------------------------------------------

PARIS = '"Europe/Paris"'
HALF_PAST_TWO = [f"calendar(day, {PARIS}, 02:30)", f'cron("30 2 * * *", {PARIS})']
BY_HAND = [
    # days of 23 and 25 hours
    (f"calendar(day, {PARIS})", ["2024-03-30 12:00", "2024-03-31 12:00"],
     ["2024-03-29 23:00", "2024-03-30 23:00", "2024-03-31 22:00"]),
    (f"calendar(day, {PARIS})", ["2024-10-27 12:00"], ["2024-10-26 22:00", "2024-10-27 23:00"]),
    # a time that clocks jump over, and one that they show twice
    *((window, ["2024-03-31 00:59"], ["2024-03-30 01:30", "2024-03-31 01:00"]) for window in HALF_PAST_TWO),
    *((window, ["2024-03-31 01:00"], ["2024-03-31 01:00", "2024-04-01 00:30"]) for window in HALF_PAST_TWO),
    *((window, ["2024-10-27 00:30"], ["2024-10-27 00:30", "2024-10-28 01:30"]) for window in HALF_PAST_TWO),
    # jobs of every hour meet both hours that clocks show twice
    (f'cron("0 * * * *", {PARIS})', [f"2024-10-27 0{hour}:30" for hour in range(3)],
     [f"2024-10-27 0{hour}:00" for hour in range(4)]),
    # a date left out begins with the next
    ('calendar(day, "Pacific/Apia", 06:00)', ["2011-12-29 20:00"], ["2011-12-29 16:00", "2011-12-30 16:00"]),
    ('calendar(week@fri, "Pacific/Apia")', ["2011-12-30 12:00"], ["2011-12-30 10:00", "2012-01-05 10:00"]),
    # midnights that daylight saving shifts, forward and back
    ('calendar(day, "America/Sao_Paulo")', ["2018-11-04 12:00"], ["2018-11-04 03:00", "2018-11-05 02:00"]),
    ('calendar(day, "America/Sao_Paulo")', ["2018-02-18 02:30"], ["2018-02-17 02:00", "2018-02-18 03:00"]),
    ('calendar(day, "America/Toronto", 23:45)', ["1919-03-31 12:00"],
     ["1919-03-31 04:30", "1919-04-01 03:45"]),  # from 23:30 to 00:30 of the next date
    # weeks, months and years begin at their time of day
    ("calendar(week@sun, at=06:00)", ["2026-11-01 05:59"], ["2026-10-25 06:00", "2026-11-01 06:00"]),
    (f"calendar(month, {PARIS})", ["2026-10-31 23:00"], ["2026-10-31 23:00", "2026-11-30 23:00"]),
    ("calendar(year, at=01:00)", ["2024-01-01 00:59"], ["2023-01-01 01:00", "2024-01-01 01:00"]),
    ('calendar(year, "Asia/Kathmandu")', ["2023-12-31 18:14"], ["2022-12-31 18:15", "2023-12-31 18:15"]),
    # working days and leap days
    ('cron("59 23 * * 1-5", "UTC")', ["2026-11-21 12:00"], ["2026-11-20 23:59", "2026-11-23 23:59"]),
    ('cron("0 0 29 2 *")', ["2100-06-01"], ["2096-02-29 00:00", "2104-02-29 00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("window", "texts", "wanted"), BY_HAND)
def test_bounds_by_hand(window: str, texts: list[str], wanted: list[str]) -> None:
    """Where the windows of some instants begin, and the last ends, in UTC."""
    table = pa.table({"t": pa.array([dt.datetime.fromisoformat(text) for text in texts])})
    result = wincli.aggregate(table, window).to_pylist()
    instants = [*(pane["window_start"] for pane in result), result[-1]["window_end"]]
    assert [f"{instant:%Y-%m-%d %H:%M}" for instant in instants] == wanted


def test_all_days_of_a_century_follow_one_another() -> None:
    low, high = seconds_of("1930-01-01"), seconds_of("2040-01-01")
    for tz in CHANGES:
        grid = make_calendar_grid(pa.int64(), calendar_beginnings(Calendar("day", tz)), low, high)
        hours = {(b - a) / HOUR for a, b in pairwise(grid.begins.tolist())}
        assert min(hours) >= 0
        assert max(hours) <= 48  # Kwajalein went from +11 to -12 hours


# --- the first and the last year, and beyond ------------------------------------------------------------------------

EDGES = [
    *(f'calendar({unit}, "{{}}", 01:00)' for unit in SPANS),
    *(f'cron("{expression}", "{{}}")' for expression in ("0 0 * * *", "30 2 1 * 1-5", "0 0 29 2 *", "59 23 31 12 *")),
]


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Europe/Paris", "Asia/Tokyo"])
@pytest.mark.parametrize("window", EDGES)
@pytest.mark.parametrize("instant", [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)])
def test_windows_of_the_first_and_the_last_year_have_both_bounds(window: str, tz: str, instant: dt.datetime) -> None:
    # the same dates and weekdays 400 years later, or before
    other = instant.replace(year=401 if instant.year == 1 else 9599)
    far, near = (wincli.aggregate(pa.table({"t": pa.array([at])}), window.format(tz)) for at in (instant, other))
    for name in ("window_start", "window_end"):
        one, two = (each[name].cast(pa.int64())[0].as_py() for each in (far, near))
        assert abs(one - two) == 146_097 * DAY * 10**6


@pytest.mark.parametrize("window", ['cron("0 0 * * *", "Europe/Paris")', "calendar(year)", "calendar(day) or count(9)"])
@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.int64(), pa.float64(), pa.decimal128(38, 2), pa.uint64()])
def test_rows_beyond_the_years_1_to_9999_are_rejected(window: str, kind: pa.DataType) -> None:
    far = [253_402_300_800, 2**50] if kind == pa.uint64() else [-62_135_596_801, 253_402_300_800, -(2**50)]
    table = pa.table({"t": pa.array([100, *far], pa.int64()).cast(kind)})
    kept = wincli.aggregate(table, window, order_by="t", rejected="drop")
    assert kept["count"].to_pylist() == [1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("s")], ids=str)
@pytest.mark.parametrize("clock", [253_402_300_800, 2**62])
def test_a_clock_beyond_the_years_1_to_9999_is_an_error(clock: int, kind: pa.DataType) -> None:
    table = pa.table({"t": pa.array([100], pa.int64()).cast(kind)})
    for window in ("calendar(day)", 'cron("0 0 * * *")'):
        with pytest.raises(DataError, match="beyond the years 1 to 9999"):
            wincli.aggregate(table, window, order_by="t", clock=clock)


def test_nanoseconds_reach_no_further_than_their_days() -> None:
    last = 2**63 - 1
    far, near = (pa.table({"t": pa.array([at], pa.timestamp("ns"))}) for at in (last, last - DAY * 10**9))
    with pytest.raises(DataError, match="64 bit"):
        wincli.aggregate(far, "calendar(day)")
    end = wincli.aggregate(near, "calendar(day)")["window_end"].cast(pa.int64())[0].as_py()
    assert end == last // (DAY * 10**9) * DAY * 10**9
