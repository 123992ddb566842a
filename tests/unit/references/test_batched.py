"""The references for batched and calendar windows, on the worked examples of the semantics and on odd ones by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import tumbling as reference
from references.batched import Lot, batched, batched_groups
from references.calendar import calendar, starts
from references.tumbling import Row
from support import strategies as my
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched


def log(*points: tuple[float, Any], **columns: list[Any]) -> dict[int, Row]:
    """Rows of a clock ``at`` and a value ``v``, and more columns."""
    return {
        pos: {"at": at, "v": v, **{name: values[pos] for name, values in columns.items()}}
        for pos, (at, v) in enumerate(points)
    }


def run(clause: str, rows: Mapping[int, Row], **options: Any) -> list[Lot]:
    spec = parse_window(clause)
    assert isinstance(spec, Batched)
    clause_of = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return batched(rows, **{"order": ["at"], "clock_kind": pa.float64(), **clause_of, **options})


def values(lots: list[Lot], rows: dict[int, Row], of: str = "rows") -> list[tuple[Any, list[Any]]]:
    return [(lot.at[0] if lot.at else None, [rows[pos]["v"] for pos in getattr(lot, of)]) for lot in lots]


def moved(lots: list[Lot], rows: dict[int, Row], of: str) -> list[tuple[Any, list[Any]]]:
    return [one for one in values(lots, rows, of) if one[1]]


def reasons(lots: list[Lot]) -> str:
    return " ".join(str(lot.closed_by) for lot in lots)


# --- the worked examples of section 6 -----------------------------------------------------------------------------


def test_within_drains_at_the_end() -> None:
    rows = log((0.5, 10), (1.0, 20), (3.0, 30))
    lots = run("within 1.5", rows)
    assert values(lots, rows) == [(0.5, [10]), (1.0, [10, 20]), (2.0, [20]), (2.5, []), (3.0, [30]), (4.5, [])]
    assert reasons(lots) == "trigger trigger expiry expiry trigger end"
    assert [lot.pos for lot in lots] == [0, 1, -1, -1, 2, -1]
    assert [(lot.start, lot.end) for lot in lots[:3]] == [(-1.0, 0.5), (-0.5, 1.0), (0.5, 2.0)]
    assert run("within 1.5", rows, at_end="drop") == lots[:-1]


def test_within_every() -> None:
    rows = log((0.5, 10), (2.5, 20), (5, 30), (7.5, 40))
    lots = run("within 1.5 every 1", rows, clock=9)
    sums = [(lot.at and lot.at[0], sum(rows[pos]["v"] for pos in lot.rows)) for lot in lots]
    assert sums == [(1, 10), (2, 0), (3, 20), (4, 0), (5, 30), (7, 0), (8, 40), (9, 0)]
    assert moved(lots, rows, "left") == [(2, [10]), (4, [20]), (7, [30]), (9, [40])]
    assert {lot.closed_by for lot in lots} == {"batch"}
    assert {lot.pos for lot in lots} == {-1}


def test_retain_every() -> None:
    rows = log(*((n, n) for n in range(1, 7)))
    lots = run("retain 2 every 3", rows)
    assert values(lots, rows) == [(3, [2, 3]), (6, [5, 6])]
    assert [(lot.closed_by, lot.pos, lot.start, lot.end) for lot in lots] == [("batch", 2, 2, 3), ("batch", 5, 5, 6)]


# --- within -------------------------------------------------------------------------------------------------------


def test_an_expiry_comes_before_the_arrivals_of_its_instant_and_is_one_for_all() -> None:
    rows = log((0, 1), (0, 2), (1, 3), (1, 4))
    lots = run("within 1", rows, at_end="drop")
    assert values(lots, rows) == [(0, [1]), (0, [1, 2]), (1, []), (1, [3]), (1, [3, 4])]
    assert [lot.pos for lot in lots] == [0, 1, -1, 2, 3]


def test_a_row_exactly_as_old_as_the_window_is_out_also_where_floats_do_not_add_up() -> None:
    assert 0.2 + Fraction(1, 10) > 0.3  # exactly; the nearest float is 0.3
    rows = log((0.2, 1), (0.3, 2))
    assert values(run("within 0.1", rows, at_end="drop"), rows) == [(0.2, [1]), (0.3, []), (0.3, [2])]


def test_changes_at_one_tick_are_one_batch_stamped_with_the_row() -> None:
    rows = log((2, 1), (2.5, 2), (4, 3))
    lots = run("within 2 every 2", rows, at_end="drop")
    # 2 is on the tick and enters at once; at 4 it is 2 old and leaves as 2.5 and 4 enter: one lot
    assert values(lots, rows) == [(2, [1]), (4, [2, 3])]
    assert (lots[1].entered, lots[1].left) == ((1, 2), (0,))
    assert [(lot.start, lot.end) for lot in lots] == [(0, 2), (2, 4)]


def test_a_row_that_would_enter_and_leave_at_one_tick_never_enters() -> None:
    rows = log((0.5, 1), (1, 2), (1.5, 3), (6, 4))
    lots = run("within 1 every 2", rows, at_end="drop")
    assert values(lots, rows) == [(2, [3]), (4, []), (6, [4])]


def test_at_the_end_one_more_tick_runs() -> None:
    rows = log((1, 1), (10, 2), (12, 3))
    lots = run("within 10 every 10", rows)
    assert values(lots, rows) == [(10, [1, 2]), (20, [3])]
    assert reasons(lots) == "batch end"
    assert (lots[1].pos, lots[1].start, lots[1].end, lots[1].left) == (-1, 10, 20, (0, 1))
    assert [lot.closed_by for lot in run("within 10 every 10", rows, clock=20)] == ["batch", "batch", "end"]
    assert run("within 10 every 10", rows, at_end="drop") == lots[:1]


def test_last_tick_without_changes_gives_no_pane() -> None:
    assert reasons(run("within 5 every 1", log((1, 1)))) == "batch"


def test_ticks_have_an_origin() -> None:
    rows = log((-4, 1), (0, 2))
    lots = run("within 3 every 3", rows, origin=Fraction(1))
    assert values(lots, rows) == [(-2, [1]), (1, [2])]


def test_within_retain_counts_per_partition_and_expired_displaced_row_gives_no_pane() -> None:
    rows = log((0, 1), (1, 2), (2, 3), (3, 4), k=["a", "b", "a", "a"])
    lots = run("partition by k within 4 retain 1", rows)
    told = [(0, [1]), (1, [1, 2]), (2, [2, 3]), (3, [2, 4]), (5, [4]), (7, [])]
    assert values(lots, rows) == told  # 0 and 2 would expire at 4 and 6: gone before
    batches = run("partition by k within 4 every 2 retain 1", rows, clock=8)
    assert values(batches, rows) == [(0, [1]), (2, [2, 3]), (4, [2, 4]), (6, [4]), (8, [])]


def test_within_on_other_clocks_has_instants_of_a_type_that_holds_them() -> None:
    lots = run("within 1.5", log((10, 1)), clock_kind=pa.timestamp("s"))
    assert [(lot.at, lot.start, lot.end) for lot in lots] == [((10_000,), 8_500, 10_000), ((11_500,), 10_000, 11_500)]
    lots = run("within 36h", log((2, 1)), clock_kind=pa.date32())
    assert [lot.at for lot in lots] == [(172_800,), (302_400,)]
    lots = run("within 48h", log((2, 1)), clock_kind=pa.date32())
    assert [(lot.at, lot.start) for lot in lots] == [((2,), 0), ((4,), 2)]
    lots = run("within 2 every 3", log((0, 1)), clock_kind=pa.uint8(), clock=3)
    assert [(lot.at, lot.start) for lot in lots] == [((0,), -2), ((3,), 1)]


def test_one_clock_for_all_keys() -> None:
    rows = log((0, 1), (10, 2), key=["b", "a"])
    lots = run("within 2", rows, key=["key"])
    told = [(lot.key, lot.number, lot.at, lot.closed_by, lot.rows) for lot in lots]
    assert told == [
        (("b",), 0, (0,), "trigger", (0,)),
        (("b",), 1, (2,), "expiry", ()),
        (("a",), 0, (10,), "trigger", (1,)),
        (("a",), 1, (12,), "end", ()),
    ]


def test_at_one_tick_lots_come_by_number_and_then_by_key() -> None:
    rows = log((1, 1), (12, 2), (13, 3), (14, 4), key=["a", "c", "a", "b"])
    lots = run("within 10 every 10", rows, key=["key"], clock=20)
    told = [(lot.at, lot.number, lot.key) for lot in lots]
    assert told[:4] == [((10,), 0, ("a",)), ((20,), 0, ("b",)), ((20,), 0, ("c",)), ((20,), 1, ("a",))]
    assert told[4:] == [((30,), 1, ("b",)), ((30,), 1, ("c",)), ((30,), 2, ("a",))]


def test_later_order_columns_are_null_where_the_clock_is_the_cause() -> None:
    rows = log((0, 1), (0, 2), seq=[5, 4])
    lots = run("within 1", rows, order=["at", "seq"])
    assert [(lot.at, lot.pos) for lot in lots] == [((0, 4), 1), ((0, 5), 0), ((1, None), -1)]
    assert lots[1].rows == (1, 0)


# --- retain -------------------------------------------------------------------------------------------------------


def test_a_short_lot_enters_at_the_end() -> None:
    rows = log(*((n, n) for n in range(1, 5)))
    lots = run("retain 2 every 3", rows)
    assert values(lots, rows) == [(3, [2, 3]), (None, [3, 4])]
    assert (lots[1].closed_by, lots[1].at, lots[1].pos) == ("end", None, None)
    assert (lots[1].start, lots[1].end, lots[1].entered, lots[1].left) == (3, 4, (3,), (1,))
    assert run("retain 2 every 3", rows, at_end="drop") == lots[:1]


def test_short_lots_of_all_parts_enter_together() -> None:
    rows = log((1, 1), (2, 2), (3, 3), k=["b", "a", "a"])
    lots = run("partition by k retain 5 every 2", rows)
    assert values(lots, rows) == [(3, [2, 3]), (None, [1, 2, 3])]
    assert reasons(run("partition by k retain 5 every 9", rows)) == "end"


def test_lots_are_counted_per_key_and_per_part() -> None:
    rows = log(*((n, n) for n in range(6)), key=[0, 0, 0, 1, 1, 1], k=["a", "b", "a", "a", "b", "b"])
    lots = run("partition by k retain 1 every 2", rows, key=["key"], at_end="drop")
    assert [(lot.key, lot.number, lot.rows) for lot in lots] == [((0,), 0, (2,)), ((1,), 0, (5,))]


def test_parts_take_all_nans_and_both_zeros_as_one() -> None:
    rows = log(*((n, n) for n in range(6)), k=[float("nan"), -0.0, None, float("nan"), 0.0, None])
    assert [lot.rows for lot in run("partition by k retain 1", rows)][3:] == [(1, 2, 3), (2, 3, 4), (3, 4, 5)]


def test_retain_in_arrival_order_has_no_bounds() -> None:
    rows = {0: {"v": 5}, 1: {"v": 7}}
    lots = run("retain all", rows, order=[])
    assert [(lot.rows, lot.entered, lot.left, lot.closed_by) for lot in lots] == [
        ((0,), (0,), (), "trigger"),
        ((0, 1), (1,), (), "trigger"),
    ]
    assert [(lot.at, lot.pos, lot.start, lot.end) for lot in lots] == [(None, 0, None, None), (None, 1, None, None)]


# --- with unique --------------------------------------------------------------------------------------------------


def test_of_a_lot_only_the_newest_with_one_k_is_ever_seen() -> None:
    rows = log(*((n, n) for n in range(1, 7)), k=list("aabacc"))
    lots = run("retain 3 every 3 with unique k", rows)
    assert moved(lots, rows, "entered") == [(3, [2, 3]), (6, [4, 6])]
    assert moved(lots, rows, "left") == [(6, [2, 3])]


def test_a_hidden_row_takes_a_place() -> None:
    rows = log(*((n, n) for n in range(1, 7)), k=list("abacde"))
    lots = run("retain 4 every 2 with unique k", rows)
    assert values(lots, rows) == [(2, [1, 2]), (4, [2, 3, 4]), (6, [3, 4, 5, 6])]
    assert moved(lots, rows, "left") == [(4, [1]), (6, [2])]


def test_a_hidden_row_never_comes_back() -> None:
    rows = log(*((n, n) for n in range(1, 6)), k=list("aabbc"))
    lots = run("within 3 retain 3 with unique k", rows)
    assert values(lots, rows)[:5] == [(1, [1]), (2, [2]), (3, [2, 3]), (4, [2, 4]), (5, [4])]
    assert values(lots, rows)[5:7] == [(5, [4, 5]), (7, [5])]  # 1 and 3 are inside until 4 and 6


def test_unique_hides_no_row_of_another_partition() -> None:
    rows = log(*((n, n) for n in range(1, 5)), k=list("aaba"), p=[0, 1, 1, 0])
    lots = run("partition by p retain 2 with unique k", rows)
    assert values(lots, rows) == [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [2, 3, 4])]


def test_a_row_that_a_newer_one_of_its_tick_puts_out_hides_nothing() -> None:
    rows = log((1, 1), (2, 2), (2, 3), u=[0, 0, 1], g=list("abb"))
    lots = run("partition by g within 10 every 1 retain 1 with unique u", rows, clock=2)
    assert values(lots, rows)[:2] == [(1, [1]), (2, [1, 3])]


def test_tick_at_which_only_a_hidden_row_leaves_gives_no_pane() -> None:
    rows = log((1, 1), (2, 2), k=["a", "a"])
    lots = run("within 3 every 1 with unique k", rows, clock=6)
    assert values(lots, rows) == [(1, [1]), (2, [2]), (5, [])]
    assert lots[1].left == (0,)
    assert values(run("within 3 with unique k", rows), rows) == [(1, [1]), (2, [2]), (5, [])]


# --- groups -------------------------------------------------------------------------------------------------------


def test_only_changed_groups_are_emitted_in_ascending_order_and_once_when_empty() -> None:
    rows = log((1, 1), (1, 2), (2, 3), (7, 4), g=["b", "a", "a", "c"])
    lots = run("within 5 every 5", rows, clock=10)
    told = [(lot.number, lot.at, lot.group, lot.rows, lot.mark) for lot in batched_groups(lots, rows, ["g"])]
    assert told == [
        (0, (5,), ("a",), (1, 2), None),
        (0, (5,), ("b",), (0,), "window"),
        (1, (10,), ("a",), (), None),
        (1, (10,), ("b",), (), None),
        (1, (10,), ("c",), (3,), "window"),
        (2, (15,), ("c",), (), "window"),
    ]
    parts = batched_groups(run("retain 2", rows), rows, ["g"])
    assert [(lot.group, lot.entered, lot.left) for lot in parts][-3:] == [
        (("b",), (), (0,)),
        (("a",), (), (1,)),
        (("c",), (3,), ()),
    ]


def test_null_is_the_last_group_and_nan_the_one_before() -> None:
    rows = log(*((1, n) for n in range(6)), g=[None, float("nan"), 2.0, 0.0, -0.0, float("nan")])
    groups = batched_groups(run("within 1 every 1", rows), rows, ["g"])[:4]
    assert [lot.rows for lot in groups] == [(3, 4), (2,), (1, 5), (0,)]
    assert str([lot.group for lot in groups]) == "[(0.0,), (2.0,), (nan,), (None,)]"


# --- where local days begin ---------------------------------------------------------------------------------------


def utc(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


def begin(unit: str, tz: str, at: str, first: str, last: str, start: str = "mon") -> list[str]:
    """The beginnings from the last at or before ``first`` to the first after ``last``, as texts in UTC."""
    found = starts(unit, tz, dt.time.fromisoformat(at), start, Fraction(utc(first)), Fraction(utc(last)))
    return [f"{dt.datetime.fromtimestamp(instant, dt.UTC):%Y-%m-%d %H:%M}" for instant in found]


@pytest.mark.parametrize(
    ("at", "spring", "autumn"),
    [
        # clocks go from 02:00 to 03:00 at 01:00 UTC on 31 March, from 03:00 to 02:00 at 01:00 UTC on 27 October
        ("00:00", ["30 23:00", "31 22:00"], ["26 22:00", "27 23:00"]),  # 23 hours, 25 hours
        ("02:30", ["31 01:00", "01 00:30"], ["27 00:30", "28 01:30"]),  # the jump; the first of two
        ("02:00", ["31 01:00", "01 00:00"], ["27 00:00", "28 01:00"]),
        ("03:00", ["31 01:00", "01 01:00"], ["27 02:00", "28 02:00"]),
        ("23:59", ["30 22:59", "31 21:59"], ["26 21:59", "27 22:59"]),
    ],
)
def test_days_in_paris(at: str, spring: list[str], autumn: list[str]) -> None:
    for date, days in (("2024-03-31", spring), ("2024-10-27", autumn)):
        found = begin("day", "Europe/Paris", at, f"{date} 04:00", f"{date} 04:00")
        assert [text[8:] for text in found] == days


def test_a_date_that_was_left_out_begins_with_the_next() -> None:
    # Apia went from the 29th of December, 10 hours behind UTC, to the 31st, 14 hours ahead of it.
    days = begin("day", "Pacific/Apia", "00:00", "2011-12-29 12:00", "2011-12-30 12:00")
    assert days == ["2011-12-29 10:00", "2011-12-30 10:00", "2011-12-31 10:00"]
    days = begin("day", "Pacific/Apia", "12:00", "2011-12-29 23:00", "2011-12-30 12:00")
    assert days == ["2011-12-29 22:00", "2011-12-30 22:00"]
    fridays = begin("week", "Pacific/Apia", "00:00", "2011-12-29 00:00", "2011-12-31 00:00", "fri")
    assert fridays == ["2011-12-23 10:00", "2011-12-30 10:00", "2012-01-05 10:00"]


def test_midnight_that_is_skipped_or_repeated_by_daylight_saving() -> None:
    days = begin("day", "America/Sao_Paulo", "00:00", "2018-11-03 03:00", "2018-11-04 03:00")
    assert days == ["2018-11-03 03:00", "2018-11-04 03:00", "2018-11-05 02:00"]  # from 00:00 to 01:00
    days = begin("day", "America/St_Johns", "00:00", "2006-10-28 12:00", "2006-10-29 12:00")
    assert days == ["2006-10-28 02:30", "2006-10-29 02:30", "2006-10-30 03:30"]  # from 00:01 back to 23:01
    late = begin("day", "America/Toronto", "23:45", "1919-03-30 12:00", "1919-03-31 12:00")
    assert late == ["1919-03-30 04:45", "1919-03-31 04:30", "1919-04-01 03:45"]  # from 23:30 to 00:30 of the next date


def test_weeks_months_and_years() -> None:
    assert begin("week", "UTC", "00:00", "2024-02-28", "2024-03-03", "sun") == [
        "2024-02-25 00:00",
        "2024-03-03 00:00",
        "2024-03-10 00:00",
    ]
    months = begin("month", "Europe/Paris", "06:00", "2024-03-01 04:59", "2024-04-01 04:00")
    assert months == ["2024-02-01 05:00", "2024-03-01 05:00", "2024-04-01 04:00", "2024-05-01 04:00"]
    years = begin("year", "Asia/Kathmandu", "00:00", "2023-12-31 18:14", "2023-12-31 18:15")
    assert years == ["2022-12-31 18:15", "2023-12-31 18:15", "2024-12-31 18:15"]


# --- calendar panes -----------------------------------------------------------------------------------------------


def hours(*texts: str) -> dict[int, Row]:
    return log(*((utc(text), n) for n, text in enumerate(texts)))


def test_calendar_panes_end_with_the_day_and_are_complete_if_the_clock_is_past_it() -> None:
    rows = hours("2024-03-30 22:59", "2024-03-30 23:00", "2024-03-31 21:59:59", "2024-03-31 22:00")
    panes = calendar(rows, "day", "Europe/Paris", order=["at"], kind=pa.timestamp("s"))
    days = [utc(text) for text in ("2024-03-29 23:00", "2024-03-30 23:00", "2024-03-31 22:00", "2024-04-01 22:00")]
    told = [(pane.rows, pane.closed_by, pane.at, pane.pos, pane.start, pane.end) for pane in panes]
    assert told == [
        ((0,), "time", (days[1],), -1, days[0], days[1]),
        ((1, 2), "time", (days[2],), -1, days[1], days[2]),
        ((3,), "end", None, None, days[2], days[3]),
    ]
    on_time = calendar(rows, "day", "Europe/Paris", order=["at"], kind=pa.timestamp("s"), clock=days[3], at_end="drop")
    assert [pane.closed_by for pane in on_time] == ["time", "time", "time"]


def test_calendar_emits_empty_days_but_none_for_a_skipped_date() -> None:
    rows = hours("2011-12-28 12:00", "2011-12-30 11:00")
    options: dict[str, Any] = {"order": ["at"], "kind": pa.int64()}
    panes = calendar(rows, "day", "Pacific/Apia", empty="row", **options)
    assert [(pane.rows, pane.start) for pane in panes] == [
        ((0,), utc("2011-12-28 10:00")),
        ((), utc("2011-12-29 10:00")),
        ((1,), utc("2011-12-30 10:00")),
    ]
    panes = calendar(rows, "day", "Pacific/Apia", empty="mark", **options)
    assert [pane.mark for pane in panes] == ["window", "only", "window"]


@pytest.mark.parametrize(("kind", "day"), [(pa.date32(), 1), (pa.date64(), 86_400_000)], ids=["date32", "date64"])
def test_calendar_over_dates_has_bounds_in_seconds(kind: pa.DataType, day: int) -> None:
    rows = log((0, 1), (day, 2), (31 * day, 3))
    panes = calendar(rows, "month", at=dt.time(12), order=["at"], kind=kind)
    assert [(pane.rows, pane.start, pane.end) for pane in panes] == [
        ((0,), utc("1969-12-01 12:00"), utc("1970-01-01 12:00")),
        ((1, 2), utc("1970-01-01 12:00"), utc("1970-02-01 12:00")),
    ]


# --- two references, one answer -----------------------------------------------------------------------------------


@given(my.streams(), st.integers(1, 5), st.sampled_from(["flush", "drop"]))
def test_lots_of_as_many_as_stay_are_tumbling_windows(stream: my.Stream, n: int, at_end: Any) -> None:
    rows = reference.read(stream.table)
    options: dict[str, Any] = {"key": stream.key, "order": stream.order, "at_end": at_end}
    lots = batched(rows, retain=n, every=n, **options)
    panes = reference.tumbling(rows, reference.Count(n), **options)
    ours = [(lot.key, lot.number, lot.entered, lot.at, lot.pos, lot.closed_by == "end") for lot in lots]
    theirs = [(pane.key, pane.number, pane.rows, pane.at, pane.pos, pane.closed_by == "end") for pane in panes]
    assert sorted(ours, key=lambda lot: lot[:2]) == sorted(theirs, key=lambda pane: pane[:2])


@given(my.clocked(), st.sampled_from(["skip", "row"]), st.sampled_from(["flush", "drop"]), st.integers(0, 3))
def test_days_of_utc_are_tumbling_windows(stream: my.Stream, empty: Any, at_end: Any, later: int) -> None:
    kind, read = stream.kind("clock"), reference.read(stream.table)
    hours = max(1, int(Fraction(10_000) / reference.seconds_per_unit(kind)))  # some, or a day where that is the unit
    rows = {pos: {**row, "clock": row["clock"] * hours} for pos, row in read.items()}
    clock = max((row["clock"] for row in rows.values()), default=0) + later * hours
    options: dict[str, Any] = {"key": stream.key, "order": ["clock"], "clock": clock, "at_end": at_end}
    policy = reference.Time(Fraction(86_400), kind, empty=empty)
    ours = calendar(rows, "day", kind=kind, empty=empty, **options)
    assert [pane.rows for pane in ours] == [pane.rows for pane in reference.tumbling(rows, policy, **options)]
