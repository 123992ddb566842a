"""Local times are what the clocks of a zone show, row by row, and what DuckDB says of the hours when clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.syntax import parse_expression

ZONES = [
    "America/New_York", "Europe/Paris", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia",
    "America/Sao_Paulo", "Asia/Tokyo", "UTC", "Pacific/Kiritimati",
]  # fmt: skip
DAY = timedelta(days=1)


def values(text: str, times: list[datetime | None], kind: pa.DataType) -> list[Any]:
    table = pa.table({"t": pa.array(times, kind)})
    found = bind(parse_expression(text), table.schema).evaluate(table)
    assert found.failures is None
    return list(found.values.to_pylist())


@cache
def near_changes(zone: str) -> list[datetime]:
    """Times around the changes of the clocks of a zone up to 2099, or of some days where there is none."""
    days = [datetime(1900, 1, 1) + timedelta(days=at) for at in range(365 * (2099 - 1900))]
    offsets = [ZoneInfo(zone).utcoffset(day) for day in days]
    changes = [day for day, one, other in zip(days, offsets, offsets[1:], strict=False) if one != other][-120:]
    quarters = [timedelta(minutes=15 * at, microseconds=at) for at in range(-20, 100, 3)]
    return [change + quarter for change in changes for quarter in quarters] or days[::500]


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_around_each_change_equal_those_of_pythons_clocks(zone: str) -> None:
    times = near_changes(zone)
    shown = [time.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for time in times]
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")):
        assert values(f"local_timestamp(t, '{zone}')", times, kind) == shown
        assert values(f"local_date(t, '{zone}')", times, kind) == [time.date() for time in shown]
    assert values(f"timezone('{zone}', t)", times, pa.timestamp("us", "UTC")) == shown


@pytest.mark.parametrize("zone", ZONES)
def test_instants_of_readings_around_each_change_equal_those_of_duckdb(zone: str) -> None:
    times = [each for each in near_changes(zone) if each.year > 1971]  # libraries know different histories before
    ours = values(f"t AT TIME ZONE '{zone}'", times, pa.timestamp("us"))
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    connection.register("rows_in", pa.table({"t": pa.array(times, pa.timestamp("us"))}))
    theirs = connection.sql(f"SELECT t AT TIME ZONE '{zone}' AS x FROM rows_in").to_arrow_table()["x"].to_pylist()
    assert ours == theirs


@examples(100)
@given(
    times=st.lists(st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), min_size=1, max_size=9),
    zone=st.sampled_from(ZONES),
    unit=st.sampled_from(["s", "ms", "us"]),
)
def test_local_times_of_any_year_equal_those_of_pythons_clocks(
    times: list[datetime | None], zone: str, unit: str
) -> None:
    whole = [None if time is None else time.replace(microsecond=0) for time in times]
    local = [
        None if time is None else time.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        for time in whole
    ]
    assert values(f"local_timestamp(t, '{zone}')", whole, pa.timestamp(unit)) == local


@pytest.mark.parametrize(
    ("reading", "instant"),
    [
        ("2026-03-08 01:59", "2026-03-08 06:59"),
        ("2026-03-08 02:30", "2026-03-08 07:30"),  # left out: as if the clocks had gone on
        ("2026-03-08 03:00", "2026-03-08 07:00"),
        ("2026-11-01 00:59", "2026-11-01 04:59"),
        ("2026-11-01 01:30", "2026-11-01 06:30"),  # shown twice: the second time
        ("2026-11-01 02:00", "2026-11-01 07:00"),
    ],
)
def test_a_reading_that_clocks_leave_out_goes_on_and_one_that_they_show_twice_is_the_later(
    reading: str, instant: str
) -> None:
    found = values("timezone('America/New_York', t)", [datetime.fromisoformat(reading)], pa.timestamp("us"))
    assert found == [datetime.fromisoformat(instant).replace(tzinfo=UTC)]


def test_nanoseconds_stay_and_a_time_that_64_bits_do_not_hold_fails() -> None:
    table = pa.table({"t": pa.array([1, 2**63 - 1]).cast(pa.timestamp("ns"))})
    found = bind(parse_expression("timezone('America/New_York', t)"), table.schema).evaluate(table)
    assert found.values.type == pa.timestamp("ns", "UTC")
    assert found.values.cast(pa.int64()).to_pylist() == [5 * 3600 * 10**9 + 1, None]
    assert found.failures is not None
    assert found.failures.tolist() == [False, True]


def test_at_time_and_zone_are_names_elsewhere() -> None:
    table = pa.table({"at": [datetime(2026, 1, 1)], "time": [1], "zone": [2]})
    found = bind(parse_expression("at at time zone 'UTC' = timezone('UTC', at) AND time < zone"), table.schema)
    assert found.evaluate(table).values.to_pylist() == [True]
    assert str(parse_expression("at at Time Zone 'UTC'")) == "timezone('UTC', at)"


def test_a_date_is_its_midnight_in_utc() -> None:
    text = "local_date(t, 'America/New_York')"
    assert values(text, [date(2026, 3, 5)], pa.date32()) == [date(2026, 3, 4)]  # type: ignore[list-item]
