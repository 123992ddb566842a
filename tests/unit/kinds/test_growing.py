"""Growing windows over any stream: the library agrees with the reference, cell by cell.

time(6) every 2     0     2     4     6     8
                      a b     c         d
                    [ a b ]                         at 2, trigger
                    [ a b     c ]                   at 4, trigger
                    [ a b     c     ]               at 6, time
                                    [   d       >   end: the window's own bounds
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.calendar import WEEKDAYS, calendar_of
from references.growing import growing
from support import strategies as my
from support.pane_laws import check, drawn_clock, seconds_of
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Calendar


@examples(200)
@given(
    st.data(), my.clocked(), st.integers(1, 7), st.sampled_from(["left", "right"]), st.sampled_from(["flush", "drop"])
)
def test_the_library_is_the_reference(
    data: st.DataObject, stream: my.Stream, parts: int, closed: Any, at_end: Any
) -> None:
    kind = stream.kind("clock")
    every, origin = data.draw(my.grids(kind))
    clock, right = drawn_clock(data, stream), closed == "right"
    windows = (reference.RightClosed if right else reference.Time)(every * parts, kind, origin or Fraction(0))
    more: dict[str, Any] = {"key": stream.key, "order": stream.order}
    found = growing(reference.read(stream.table), windows, every, clock, at_end, **more)
    options: dict[str, Any] = {"clock": seconds_of(clock, kind), "origin": windows.origin, "closed": closed}
    window = f"time({my.text(every * parts)}) every {my.text(every)}"
    check(stream, window, found.panes, found.result_type, at_end=at_end, **options)


ZONES = {"Europe/Paris": "2024-03-31 01:00", "America/Sao_Paulo": "2018-02-18 02:00", "UTC": "2000-02-29 00:00"}
KINDS = [
    pa.timestamp("s"), pa.timestamp("ns", "Asia/Tokyo"), pa.date32(), pa.int64(), pa.float64(), pa.decimal128(18, 3)
]  # fmt: skip
STEPS = {"day": [3_600, 25_000, 86_400, 90_000], "week": [86_400, 100_000], "month": [200_000, 86_400 * 31]}


@examples(100)
@given(
    st.data(), st.sampled_from(KINDS), st.sampled_from(list(ZONES)), st.sampled_from(list(STEPS)),
    st.sampled_from([dt.time(0), dt.time(2, 30)]), st.booleans(),
)  # fmt: skip
def test_steps_of_a_calendar_begin_with_each_unit(
    data: st.DataObject, kind: pa.DataType, tz: str, unit: str, at: dt.time, keyed: bool
) -> None:
    begin = (dt.datetime.fromisoformat(ZONES[tz]) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    near = st.sampled_from([0, 1, -1, 3_600, 25_000, -82_800, 86_400]) | st.integers(-4 * 86_400, 4 * 86_400)
    seconds = sorted(begin + n for n in data.draw(st.lists(near, max_size=12)))
    start = data.draw(st.sampled_from(WEEKDAYS)) if unit == "week" else "mon"
    every = data.draw(st.sampled_from(STEPS[unit]))
    clock = pa.array(map(Decimal, seconds), kind) if pa.types.is_decimal(kind) else pa.array(seconds, pa.int64())
    clock = clock.cast(pa.timestamp("s")).cast(kind, safe=False) if pa.types.is_temporal(kind) else clock.cast(kind)
    keys = [n % 2 if keyed else 0 for n in range(len(seconds))]
    table = pa.table({"id": pa.array(range(len(seconds)), pa.int64()), "k": pa.array(keys, pa.int64()), "t": clock})
    windows = calendar_of(table["t"], unit, tz, at, start)
    found = growing(reference.read(table), windows, Fraction(every), key=["k"], order=["t"])
    check(my.Stream(table, ("k",), ("t",)), f"{Calendar(unit, tz, at, start)} every {every}", found.panes)


# --- one by one ---------------------------------------------------------------------------------------------------


def shown(window: str, at: list[int], **options: Any) -> list[tuple[Any, ...]]:
    table = pa.table({"id": list(range(len(at))), "t": at})
    result = wincli.aggregate(table, window, order_by=["t"], aggregates=["ids=collect(id)"], **options)
    names = ("window_start", "window_end", "ids", "closed_by")
    return list(zip(*(result[name].to_pylist() for name in names), strict=True))


def test_a_window_comes_out_at_each_step_changed_or_not() -> None:
    assert shown("time(6) every 2", [0, 1, 3, 7]) == [
        (0, 2, [0, 1], "trigger"), (0, 4, [0, 1, 2], "trigger"), (0, 6, [0, 1, 2], "time"), (6, 12, [3], "end"),
    ]  # fmt: skip


def test_a_row_on_a_step_is_in_the_pane_that_ends_there_if_windows_are_closed_on_the_right() -> None:
    assert shown("time(4) every 2", [2, 4, 5], closed="right") == [
        (0, 2, [0], "trigger"), (0, 4, [0, 1], "time"), (4, 8, [2], "end"),
    ]  # fmt: skip
    assert shown("time(4) every 2", [2, 4, 5]) == [(0, 4, [0], "time"), (4, 8, [1, 2], "end")]


def test_the_last_step_of_a_day_of_23_hours_is_short() -> None:
    """In Paris 31 March 2024 begins at 23:00 UTC and ends at 22:00."""
    at = pa.array([1_711_839_600, 1_711_839_600 + 23 * 3_600], pa.timestamp("s"))
    result = wincli.aggregate(pa.table({"t": at}), 'calendar(day, "Europe/Paris") every 6h', order_by=["t"])
    hours = [(end - dt.datetime(2024, 3, 30, 23)).total_seconds() / 3_600 for end in result["window_end"].to_pylist()]
    assert hours == [6, 12, 18, 23, 23 + 24]
    assert result["closed_by"].to_pylist() == ["trigger"] * 3 + ["time", "end"]


def test_steps_of_years_without_rows_cost_nothing() -> None:
    far = 10**18  # ns
    at = pa.array([0, far], pa.timestamp("ns"))
    for window in ("time(1m) every 1s", "calendar(day) every 1h"):
        assert (
            len(wincli.aggregate(pa.table({"t": at}), window, order_by=["t"])) == (60 if "time" in window else 24) + 1
        )
    with pytest.raises(DataError, match="longer step"):
        wincli.aggregate(pa.table({"t": at}), "time(1w) every 1us", order_by=["t"])
    with pytest.raises(DataError, match="longer step"):
        wincli.aggregate(pa.table({"t": at}), "calendar(year) every 1s", order_by=["t"])


def test_a_window_whose_end_does_not_fit_is_an_error() -> None:
    at = [2**63 - 50]
    assert shown("time(16) every 8", at) == [(2**63 - 64, 2**63 - 48, [0], "end")]
    with pytest.raises(DataError, match="64 bit"):
        shown("time(128) every 8", at)


def test_a_window_of_one_step_is_the_window() -> None:
    table = pa.table({"t": [0, 1, 5, 12]})
    one, other = (wincli.aggregate(table, window, order_by=["t"]) for window in ("time(4)", "time(4) every 4"))
    assert one.equals(other)


def test_the_canonical_text_reads_back() -> None:
    for text in ("time(1d) every 1h", 'calendar(week@sun, "Europe/Paris", 06:00) every 6h, partitioned'):
        spec = parse_window(text)
        assert parse_window(str(spec)) == spec
    assert str(parse_window("time(10m) every 2m")) == "tumbling, time(600) every 120"
