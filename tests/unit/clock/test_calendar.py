"""Local days, weeks, months and years on the clock, against a search for where they begin.

Europe/Paris, calendar(day)    31 March 2024: 23 hours     27 October 2024: 25 hours
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import calendar as reference_calendar
from references import tumbling as reference
from wincli.windowing.clock.grids import (
    FIRST,
    LAST,
    CalendarGrid,
    calendar_beginnings,
    calendar_type,
    make_calendar_grid,
)
from wincli.windowing.clock.interval_grid import clock_values
from wincli.windowing.errors import ConfigError, DataError
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
SPANS = {"day": 5 * DAY, "week": 40 * DAY, "month": 200 * DAY, "year": 2_000 * DAY}
KINDS = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
    *(pa.date32(), pa.date64(), pa.int64(), pa.uint64(), pa.int32(), pa.float64(), pa.float32()),
    *(pa.decimal128(18, 3), pa.decimal128(38, 7), pa.decimal128(12, -2)),
]
TIMES = [dt.time(0), dt.time(2, 30), dt.time(23, 59), dt.time(0, 0, 1), dt.time(12)]


# --- the grid is the reference ------------------------------------------------------------------------------------


@st.composite
def specs(draw: st.DrawFn) -> Calendar:
    unit = draw(st.sampled_from(list(SPANS)))
    start = draw(st.sampled_from(reference_calendar.WEEKDAYS)) if unit == "week" else "mon"
    return Calendar(unit, draw(st.sampled_from(list(CHANGES))), draw(st.sampled_from(TIMES)), start)


@st.composite
def clocks(draw: st.DrawFn, spec: Calendar) -> pa.Array:
    """Instants around a change of the zone, some just at where something may begin."""
    change = seconds_of(draw(st.sampled_from(CHANGES[spec.tz])))
    near = st.sampled_from([0, -1, 1, HOUR, -HOUR, DAY, -DAY])
    anywhere = st.integers(-SPANS[spec.unit], SPANS[spec.unit])
    seconds = [change + n for n in draw(st.lists(near | anywhere, min_size=1, max_size=12))]
    begun = reference_calendar.starts(spec.unit, spec.tz, spec.at, spec.start, Fraction(change), Fraction(change))
    seconds += draw(st.lists(st.sampled_from(begun), max_size=4))
    return array_of([s + draw(st.sampled_from([0, 0, 1, -1])) for s in seconds], draw(st.sampled_from(KINDS)))


def seconds_of(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


def array_of(seconds: list[int], kind: pa.DataType) -> pa.Array:
    """Instants as values of a type, those that are none moved a little."""
    if pa.types.is_unsigned_integer(kind):
        seconds = [abs(s) for s in seconds]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.array([min(s, 2**31 - 1) if kind == pa.int32() else s for s in seconds], pa.int64()).cast(
            kind, safe=False
        )
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(s if kind.scale >= 0 else s // 100 * 100) for s in seconds], kind)
    return pa.array(seconds, pa.timestamp("s")).cast(kind, safe=False)


def grid_of(spec: Calendar, column: pa.Array) -> CalendarGrid:
    values = clock_values(column, "clock")
    return make_calendar_grid(column.type, calendar_beginnings(spec), values.min(), values.max())


def ticks(array: pa.Array) -> list[Any]:
    return reference.ticks_of(pa.chunked_array([array]))


@given(st.data(), specs())
def test_every_value_lies_in_the_unit_that_a_search_finds(data: st.DataObject, spec: Calendar) -> None:
    column = data.draw(clocks(spec))
    unit = reference.seconds_per_unit(column.type)
    instants = [Fraction(value) * unit for value in ticks(column)]
    begun = reference_calendar.starts(spec.unit, spec.tz, spec.at, spec.start, min(instants), max(instants))
    places = [bisect_right(begun, instant) for instant in instants]

    grid = grid_of(spec, column)
    cells = grid.cells(clock_values(column, "clock"))
    told = calendar_type(column.type)
    assert grid.bounds(cells).type == grid.type == told
    assert ticks(grid.bounds(cells)) == [reference.as_value(Fraction(begun[k - 1]), told) for k in places]
    # the bounds after a cell: those of the next one in which an instant lies
    every = np.arange(cells.min(), cells.max() + 1)
    lasting = every[grid.lasting(every)]
    assert set(cells) <= set(lasting)
    assert ticks(grid.bounds(lasting + 1)) == [reference.as_value(Fraction(b), told) for b in begun[1:]]
    assert ticks(grid.bounds(np.flatnonzero(~grid.lasting(every)) + cells.min())) == [
        reference.as_value(Fraction(begun[1]), told) for begun in left_out(spec, every[~grid.lasting(every)])
    ]


def left_out(spec: Calendar, cells: Any) -> list[tuple[int, int]]:
    """Where the dates of cells and those after them begin."""
    dates = [dt.date.fromordinal(int(cell)) for cell in cells]
    assert spec.unit == "day" or not dates
    day = dt.timedelta(days=1)
    found = [
        (reference_calendar.begins(spec.tz, d, spec.at), reference_calendar.begins(spec.tz, d + day, spec.at))
        for d in dates
    ]
    assert all(first == second for first, second in found)
    return found


# --- by hand ------------------------------------------------------------------------------------------------------


def bounds(spec: Calendar, *texts: str) -> list[str]:
    """Where the units from the first to the last of some instants begin, and the one after, in UTC."""
    column = pa.array([seconds_of(text) for text in texts]).cast(pa.timestamp("s"))
    grid = grid_of(spec, column)
    cells = grid.cells(clock_values(column, "clock"))
    every = grid.bounds(np.arange(cells.min(), cells.max() + 2)).to_pylist()
    return [instant.isoformat(" ", "minutes") for instant in every]


PARIS, APIA, SAO_PAULO = "Europe/Paris", "Pacific/Apia", "America/Sao_Paulo"
HALF_PAST_TWO = Calendar("day", PARIS, dt.time(2, 30))


@pytest.mark.parametrize(
    ("spec", "texts", "wanted"),
    [
        # days of 23 and 25 hours
        (Calendar("day", PARIS), ["2024-03-30 12:00", "2024-03-31 12:00"],
         ["2024-03-29 23:00", "2024-03-30 23:00", "2024-03-31 22:00"]),
        (Calendar("day", PARIS), ["2024-10-27 12:00"], ["2024-10-26 22:00", "2024-10-27 23:00"]),
        # a time that clocks jump over, and one that they show twice
        (HALF_PAST_TWO, ["2024-03-31 00:59"], ["2024-03-30 01:30", "2024-03-31 01:00"]),
        (HALF_PAST_TWO, ["2024-03-31 01:00"], ["2024-03-31 01:00", "2024-04-01 00:30"]),
        (HALF_PAST_TWO, ["2024-10-27 00:30"], ["2024-10-27 00:30", "2024-10-28 01:30"]),
        # a date left out begins with the next
        (Calendar("day", APIA, dt.time(6)), ["2011-12-29 20:00"], ["2011-12-29 16:00", "2011-12-30 16:00"]),
        (Calendar("week", APIA, start="fri"), ["2011-12-30 12:00"], ["2011-12-30 10:00", "2012-01-05 10:00"]),
        # midnights that daylight saving shifts, forward and back
        (Calendar("day", SAO_PAULO), ["2018-11-04 12:00"], ["2018-11-04 03:00", "2018-11-05 02:00"]),
        (Calendar("day", SAO_PAULO), ["2018-02-18 02:30"], ["2018-02-17 02:00", "2018-02-18 03:00"]),
        (Calendar("day", "America/Toronto", dt.time(23, 45)), ["1919-03-31 12:00"],
         ["1919-03-31 04:30", "1919-04-01 03:45"]),  # from 23:30 to 00:30 of the next date
        # weeks, months and years begin at their time of day
        (Calendar("week", at=dt.time(6), start="sun"), ["2026-11-01 05:59"], ["2026-10-25 06:00", "2026-11-01 06:00"]),
        (Calendar("month", PARIS), ["2026-10-31 23:00"], ["2026-10-31 23:00", "2026-11-30 23:00"]),
        (Calendar("year", at=dt.time(1)), ["2024-01-01 00:59"], ["2023-01-01 01:00", "2024-01-01 01:00"]),
        (Calendar("year", "Asia/Kathmandu"), ["2023-12-31 18:14"], ["2022-12-31 18:15", "2023-12-31 18:15"]),
    ],
)  # fmt: skip
def test_bounds_by_hand(spec: Calendar, texts: list[str], wanted: list[str]) -> None:
    assert bounds(spec, *texts) == wanted


def test_all_days_of_a_century_follow_one_another() -> None:
    column = pa.array([seconds_of("1930-01-01"), seconds_of("2040-01-01")])
    for tz in CHANGES:
        grid = grid_of(Calendar("day", tz), column)
        hours = {(b - a) / HOUR for a, b in pairwise(grid.begins.tolist())}
        assert min(hours) >= 0
        assert max(hours) <= 48  # Kwajalein went from +11 to -12 hours
        assert grid.first == grid.cells(column[:1].to_numpy())[0]


# --- types and errors ---------------------------------------------------------------------------------------------


def test_bounds_have_the_type_of_the_clock_where_it_holds_them() -> None:
    for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.duration("ms"), pa.int64(), pa.float64()):
        assert calendar_type(kind) == kind
    assert calendar_type(pa.date32()) == calendar_type(pa.date64()) == pa.timestamp("s")
    assert calendar_type(pa.uint8()) == calendar_type(pa.null()) == pa.int64()
    assert calendar_type(pa.float32()) == calendar_type(pa.decimal128(9, -1)) == pa.float64()
    assert calendar_type(pa.decimal128(9, 2)) == pa.decimal128(38, 2)


@pytest.mark.parametrize("kind", [*KINDS, pa.null()], ids=str)
def test_without_rows_there_are_types_and_nothing_else(kind: pa.DataType) -> None:
    grid = make_calendar_grid(kind, calendar_beginnings(Calendar("day")), None, None)
    none = clock_values(pa.nulls(0, kind), "clock")
    assert grid.type == calendar_type(kind)
    assert grid.cells(none).tolist() == []
    assert grid.bounds(grid.cells(none)) == pa.array([], grid.type)


def test_unknown_time_zone_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"unknown time zone 'Europe/Pariss'; did you mean 'Europe/Paris'\?"):
        make_calendar_grid(pa.int64(), calendar_beginnings(Calendar("day", "Europe/Pariss")), 0, 0)


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("second", [FIRST, LAST])
def test_units_of_the_first_and_the_last_year_have_both_bounds(unit: Any, tz: str, second: int) -> None:
    cycle = 146_097 * DAY  # the same dates and weekdays 400 years later, or before
    moved = second + (cycle if second < 0 else -cycle)
    for kind, size in ((pa.int64(), 1), (pa.timestamp("us"), 10**6)):
        far, near = (
            make_calendar_grid(kind, calendar_beginnings(Calendar(unit, tz, dt.time(1))), at * size, at * size)
            for at in (second, moved)
        )
        assert (far.begins - second).tolist() == (near.begins - moved).tolist()
        assert far.begins[0] <= second < far.begins[-1]


@pytest.mark.parametrize("second", [FIRST - 1, LAST + 1])
def test_instants_beyond_the_years_1_to_9999_are_an_error(second: int) -> None:
    for kind, value in ((pa.int64(), second), (pa.float64(), float(second)), (pa.timestamp("us"), second * 10**6)):
        with pytest.raises(DataError, match="beyond the years 1 to 9999"):
            make_calendar_grid(kind, calendar_beginnings(Calendar("year", at=dt.time(1))), value, value)


@pytest.mark.parametrize("value", [2**62, -(2**62), 1e300, float("inf")])
def test_error_shows_values_of_any_size(value: float) -> None:
    kind = pa.int64() if isinstance(value, int) else pa.float64()
    with pytest.raises(DataError, match="beyond the years 1 to 9999"):
        make_calendar_grid(kind, calendar_beginnings(Calendar("day")), value, value)


def test_nanoseconds_reach_no_further_than_their_days() -> None:
    kind, last = pa.timestamp("ns"), 2**63 - 1
    with pytest.raises(DataError, match="64 bit"):
        make_calendar_grid(kind, calendar_beginnings(Calendar("day")), last, last)
    before = last - DAY * 10**9
    assert (
        make_calendar_grid(kind, calendar_beginnings(Calendar("day")), before, before).begins[-1]
        == last // 10**9 // DAY * DAY
    )
