"""The reference for sliding windows, event-time panes, eviction and groups, by examples worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from references import eviction as reference_eviction
from references.event_time import intervals
from references.sliding import sliding
from references.tumbling import Count, Delta, Pane, Punct, PunctColumn, Row, Time, grouped

ONE_KEY: reference_eviction.Eviction = ("partitionCount", Fraction(1))
INT, FLOAT, MICRO = pa.int64(), pa.float64(), pa.timestamp("us")


def rows(**columns: list[Any]) -> dict[int, Row]:
    return {
        pos: dict(zip(columns, cells, strict=True)) for pos, cells in enumerate(zip(*columns.values(), strict=True))
    }


def delta(amount: int, kind: pa.DataType = INT) -> Delta:
    return Delta("a", Fraction(amount), kind)


def time(seconds: str | int, kind: pa.DataType = INT) -> Time:
    return Time(Fraction(seconds), kind)


def by_row(panes: list[Pane]) -> list[tuple[int | None, tuple[int, ...]]]:
    """The row that caused each pane, and its rows; None and () for the end and for marks alone."""
    return [(pane.pos, pane.rows) for pane in panes]


def by_tick(panes: list[Pane]) -> list[tuple[Any, tuple[int, ...]]]:
    return [(pane.at and pane.at[0], pane.rows) for pane in panes]


def mark(at: tuple[Any, ...] | None, pos: int | None) -> Pane:
    return Pane(None, None, (), None, at, pos, None, None, "only")


# --- sliding ------------------------------------------------------------------------------------------------------


def test_count_and_count() -> None:
    #   0 1 2 3 4 5     fires at 1 (not full yet), 3, 5
    panes = sliding(rows(a=[1, 2, 3, 4, 5, 6]), Count(3), Count(2))
    assert by_row(panes) == [(3, (1, 2, 3)), (5, (3, 4, 5))]


def test_a_delta_trigger_sees_the_window_before_the_new_row() -> None:
    panes = sliding(rows(a=[0, 1, 2, 3, 4, 5, 6, 7]), Count(3), delta(2), at_end="drop")
    assert by_row(panes) == [(3, (0, 1, 2)), (6, (3, 4, 5))]


def test_delta_evicts_a_row_at_any_position_of_the_window() -> None:
    #   a    0 1 2 3 9 1 4
    #   pos  0 1 2 3 4 5 6     at 6 the row 5 goes from behind row 4
    panes = sliding(rows(a=[0, 1, 2, 3, 9, 1, 4]), delta(2), Count(1))
    assert by_row(panes) == [(3, (1, 2, 3)), (4, (4,)), (5, (4, 5)), (6, (4, 6))]


def test_equal_values_do_not_fire_a_delta_of_zero() -> None:
    panes = sliding(rows(a=[1, 1, 2]), Count(2), delta(0), at_end="drop")
    assert by_row(panes) == [(2, (0, 1))]


def test_a_row_exactly_as_old_as_the_age_stays() -> None:
    table = rows(t=[0, 2_000_000, 2_000_001])
    panes = sliding(table, time(2, MICRO), Count(1), order=["t"])
    assert by_row(panes) == [(0, (0,)), (1, (0, 1)), (2, (1, 2))]


def test_a_float_clock_is_subtracted_as_floats() -> None:
    # The float 0.2 is a little more than a fifth; as floats the rows are no more than 0.2 apart
    panes = sliding(rows(t=[0.0, 0.2]), time("0.2", FLOAT), Count(1), order=["t"])
    assert by_row(panes) == [(0, (0,)), (1, (0, 1))]


def test_ticks_come_before_the_rows_of_their_instant_and_up_to_the_clock() -> None:
    #   row 0 at 0, row 1 at 1: ticks at 1 (before row 1) and 2, none at 0
    panes = sliding(rows(t=[0, 1]), Count(2), time(1), order=["t"], clock=2, partial=True)
    assert panes == [
        Pane((), 0, (0,), "trigger", (1,), -1, 0, 0),
        Pane((), 1, (0, 1), "trigger", (2,), -1, 0, 1),
    ]


def test_ticks_on_a_float_clock_are_the_nearest_floats() -> None:
    panes = sliding(rows(t=[0.05]), Count(1), time("0.1", FLOAT), order=["t"], clock=0.3)
    assert by_tick(panes) == [(0.1, (0,)), (0.2, (0,)), (0.3, (0,))]


def test_a_tick_has_nothing_to_say_about_further_order_columns() -> None:
    panes = sliding(rows(t=[0], u=[7]), Count(1), time(1), order=["t", "u"], clock=1)
    assert [pane.at for pane in panes] == [(1, None)]


def test_there_is_one_clock_for_all_keys() -> None:
    #   a at 0, b at 5: a fires at 2, 4 and 6 though its own rows ended at 0
    panes = sliding(rows(k=["a", "b"], t=[0, 5]), Count(1), time(2), key=["k"], order=["t"], clock=6)
    assert [(pane.key, pane.number, pane.at, pane.rows) for pane in panes] == [
        (("a",), 0, (2,), (0,)),
        (("a",), 1, (4,), (0,)),
        (("a",), 2, (6,), (0,)),
        (("b",), 0, (6,), (1,)),
    ]


def test_long_silence_costs_nothing() -> None:
    far = 10**12
    panes = sliding(rows(t=[0, far]), time(1), time(1), order=["t"], clock=2 * far)
    assert by_tick(panes) == [(1, (0,)), (far + 1, (1,))]


@pytest.mark.parametrize(("key", "partial", "marks"), [([], True, [5, 10]), (["k"], True, []), ([], False, [])])
def test_an_empty_window_at_a_tick(key: list[str], partial: bool, marks: list[int]) -> None:
    #   row at 2, gone at 5 and at 10: a mark alone where there are no keys and partial windows show
    panes = sliding(rows(k=["a"], t=[2]), time(1), time(5), key=key, order=["t"], clock=10, partial=partial)
    assert panes == [mark((at,), -1) for at in marks]


@pytest.mark.parametrize(("since", "marks"), [(None, []), (0, [1, 2, 3]), (1, [2, 3])])
def test_ticks_before_the_first_row_are_those_after_since(since: int | None, marks: list[int]) -> None:
    panes = sliding(rows(t=[3]), Count(2), time(1), order=["t"], since=since, partial=True)
    assert panes[:-1] == [mark((at,), -1) for at in marks]
    assert panes[-1] == Pane((), 0, (0,), "end", None, None, 3, 3)


def test_ticks_without_rows() -> None:
    nothing: dict[int, Row] = {}
    assert sliding(nothing, Count(1), time(1), order=["t"], partial=True) == []
    assert sliding(nothing, Count(1), time(1), order=["t"], partial=True, since=0, clock=1) == [mark((1,), -1)]


def test_a_window_that_holds_nothing_gives_marks_and_counts_fires() -> None:
    panes = sliding(rows(a=[1, 2, 3]), Count(0), Count(2), partial=True)
    assert panes == [mark(None, 1), mark(None, None)]


def test_the_counter_survives_rows_growing_old() -> None:
    panes = sliding(rows(t=[1, 1, 9, 9]), time(2), Count(3), order=["t"], at_end="drop")
    assert by_row(panes) == [(2, (2,))]


@pytest.mark.parametrize(
    ("size", "partial", "end"),
    [(4, False, []), (5, False, [(None, (2, 3, 4))]), (1, False, []), (1, True, [(None, (0,))]), (2, True, [])],
)
def test_the_end_triggers_once_more_where_rows_came_in(size: int, partial: bool, end: list[Any]) -> None:
    #   count(3), count(2): fires at the second and the fourth row, seen or not
    table = rows(a=list(range(size)))
    dropped = sliding(table, Count(3), Count(2), partial=partial, at_end="drop")
    assert by_row(sliding(table, Count(3), Count(2), partial=partial)) == by_row(dropped) + end


def test_the_row_that_fires_a_delta_trigger_waits_for_the_end() -> None:
    panes = sliding(rows(a=[0, 5]), Count(2), delta(1), partial=True)
    assert [(pane.closed_by, pane.rows) for pane in panes] == [("trigger", (0,)), ("end", (0, 1))]


@pytest.mark.parametrize(("clock", "partial", "end"), [(None, False, (1, 2)), (10, False, None), (10, True, ())])
def test_age_of_rows_at_the_end_is_measured_from_the_clock(clock: int | None, partial: bool, end: Any) -> None:
    #   time(1), count(2): row 1 fires; at the end 1 and 2 are there, or all have gone
    panes = sliding(rows(t=[0, 1, 2]), time(1), Count(2), order=["t"], clock=clock, partial=partial)
    assert by_row(panes) == [(1, (0, 1)), *([] if end is None else [(None, end)])]


@pytest.mark.parametrize(
    ("values", "last"), [([1.0, math.nan, 3.0, 9.0], (1, 2, 3)), ([5.0, 1.0, math.nan, 9.0], (2, 3))]
)
def test_nan_blocks_eviction_until_the_first_fall(values: list[float], last: tuple[int, ...]) -> None:
    panes = sliding(rows(a=values), delta(2, FLOAT), Count(1))
    assert panes[-1].rows == last


def test_stamps_and_bounds_of_a_pane() -> None:
    panes = sliding(rows(k=["x", "x"], t=[3, 8]), Count(2), Count(2), key=["k"], order=["t"])
    assert panes == [Pane(("x",), 0, (0, 1), "trigger", (8,), 1, 3, 8)]


# --- eviction -----------------------------------------------------------------------------------------------------


def gone(panes: list[Pane]) -> list[tuple[Any, ...]]:
    return [(pane.key and pane.key[0], pane.closed_by, pane.at, pane.pos, pane.rows) for pane in panes]


def evicting(table: dict[int, Row], policy: Any, kind: Any, amount: str, **options: Any) -> list[tuple[Any, ...]]:
    eviction, order = (kind, Fraction(amount)), ["t"] if "t" in table[0] else []
    where: dict[str, Any] = {"key": ["k"], "order": order, "kind": FLOAT if order else None, "emit_evicted": True}
    return gone(reference_eviction.tumbling(table, policy, eviction=eviction, at_end="drop", **where | options))


def test_ages_are_whole_seconds_and_more_than_the_limit() -> None:
    #   a at 0.9, b at 2.9 (2 s later, in whole seconds), c at 3.0 (3 s)
    table = rows(k=["a", "b", "c"], t=[0.9, 2.9, 3.0])
    assert evicting(table, Count(3), "partitionAge", "2.9") == [("a", "evicted", (3.0,), 2, (0,))]


def test_with_the_oldest_all_go_that_are_old_enough() -> None:
    #   at 3 a is 3 s old, and b, since second 1, is 2 s old
    table = rows(k=["a", "b", "c"], t=[0.0, 1.9, 3.0])
    assert [out[0] for out in evicting(table, Count(3), "partitionAge", "2")] == ["a", "b"]


def test_a_key_is_as_old_as_its_last_insertion() -> None:
    table = rows(k=["a", "b", "a", "c"], t=[0.0, 1.0, 2.0, 4.0])
    assert [out[0] for out in evicting(table, Count(9), "partitionAge", "2")] == ["b", "a"]


def test_the_key_itself_may_be_too_old_for_its_next_row() -> None:
    table = rows(k=["a", "a"], t=[0.0, 9.0])
    assert evicting(table, Count(2), "partitionAge", "2") == [("a", "evicted", (9.0,), 1, (0,))]


def test_a_tick_looks_at_ages_first() -> None:
    #   a at 4, b at 9; at the tick 10 a is 6 old and goes, b comes out
    table = rows(k=["a", "b"], t=[4.0, 9.0])
    assert evicting(table, time(10, FLOAT), "partitionAge", "5", clock=10.0) == [
        ("a", "evicted", (10.0,), -1, (0,)),
        ("b", "time", (10.0,), -1, (1,)),
    ]


def test_evicted_time_window_has_the_bounds_of_its_grid() -> None:
    #   dates, a window of half a day: seconds
    table, half = rows(k=["a", "b"], t=[1, 1]), Time(Fraction(43_200), pa.date32())
    panes = reference_eviction.tumbling(table, half, eviction=ONE_KEY, emit_evicted=True, key=["k"], order=["t"])
    assert panes[0] == Pane(("a",), 0, (0,), "evicted", (86_400,), 1, 86_400, 129_600)


def test_a_flushed_key_leaves_the_list() -> None:
    #   a a] b a     partitionCount(1): b finds nobody, then the second a finds b
    table = rows(k=["a", "a", "b", "a"])
    assert evicting(table, Count(2), "partitionCount", "1") == [
        ("a", "count", None, 1, (0, 1)),
        ("b", "evicted", None, 3, (2,)),
    ]


def test_row_counts_take_the_oldest_first_and_the_new_row_too() -> None:
    #   b a a a: four rows, b goes; with one more a goes, the row that came in too
    table = rows(k=["b", "a", "a", "a", "a"])
    assert evicting(table, Count(9), "tupleCount", "3") == [
        ("b", "evicted", None, 3, (0,)),
        ("a", "evicted", None, 4, (1, 2, 3, 4)),
    ]


def test_a_key_that_evicts_itself_has_no_window_to_end() -> None:
    table = rows(k=["a", "a"], flag=[False, True])
    assert evicting(table, PunctColumn("flag"), "tupleCount", "1") == [("a", "evicted", None, 1, (0, 1))]


def test_windows_that_vanish_have_no_number() -> None:
    table = rows(k=["a", "b", "b", "a", "a"])
    panes = reference_eviction.tumbling(table, Count(2), eviction=ONE_KEY, key=["k"])
    assert [(pane.key, pane.number, pane.rows) for pane in panes] == [(("b",), 0, (1, 2)), (("a",), 0, (3, 4))]


def test_marks_close_what_is_left() -> None:
    table = rows(k=["a", "b", "a"])
    marks = {"marks": [2, 3]}
    assert evicting(table, Punct(), "partitionCount", "1", **marks) == [
        ("a", "evicted", None, 1, (0,)),
        ("b", "punct", None, 1, (1,)),
        ("a", "punct", None, 2, (2,)),
    ]


def test_eviction_ends_a_sliding_window_but_not_its_numbers() -> None:
    #   a, b, a: each finds the other and sends it away; numbers of a go on
    table = rows(k=["a", "b", "a"])
    panes = sliding(table, Count(1), Count(1), key=["k"], eviction=ONE_KEY)
    assert [(pane.key, pane.number, pane.rows) for pane in panes] == [
        (("a",), 0, (0,)),
        (("b",), 0, (1,)),
        (("a",), 1, (2,)),
    ]


def test_eviction_resets_counters_and_baselines() -> None:
    #   a b a a: the count of a begins again at row 2; a 0, b, a 5: the baseline of a is 5, and nothing fires
    panes = sliding(rows(k=["a", "b", "a", "a"]), Count(2), Count(2), key=["k"], eviction=ONE_KEY)
    assert by_row(panes) == [(3, (2, 3))]
    table = rows(k=["a", "b", "a"], a=[0, 0, 5])
    assert sliding(table, Count(2), delta(2), key=["k"], eviction=ONE_KEY, partial=True, at_end="drop") == []


def test_a_key_that_evicts_itself_fires_nothing() -> None:
    #   tupleCount(1): the second row of a takes a away before the trigger looks, the third is its first again
    table = rows(k=["a", "a", "a"])
    panes = sliding(table, Count(2), Count(1), key=["k"], eviction=("tupleCount", Fraction(1)), partial=True)
    assert by_row(panes) == [(0, (0,)), (2, (2,))]


def test_a_sliding_window_that_is_too_old_ends_before_its_next_row() -> None:
    table = rows(k=["a", "a", "a"], t=[0.0, 9.0, 10.0])
    age: reference_eviction.Eviction = ("partitionAge", Fraction(2))
    panes = sliding(table, Count(2), Count(1), key=["k"], order=["t"], eviction=age, kind=FLOAT)
    assert by_row(panes) == [(2, (1, 2))]


def test_tick_checks_the_age_of_keys_without_new_rows() -> None:
    #   count(2), time(2): a at 0; 2 and 4 trigger it, at 6 it is too old
    table = rows(k=["a"], t=[0.0])
    options: dict[str, Any] = {"key": ["k"], "order": ["t"], "clock": 8.0, "partial": True}
    panes = sliding(table, Count(2), time(2, FLOAT), eviction=("partitionAge", Fraction(5)), **options)
    assert by_tick(panes) == [(2.0, (0,)), (4.0, (0,))]


# --- event time ---------------------------------------------------------------------------------------------------


def event_time(
    times: list[Any], duration: int | str = 10, period: int | str | None = None, age: int = 0, **options: Any
) -> tuple[list[Pane], list[int], list[int]]:
    columns = {"t": times, **({"k": options.pop("keys")} if "keys" in options else {})}
    key = ["k"] if "k" in columns else []
    length, offset = Fraction(duration), Fraction(options.pop("offset", 0))
    every = length if period is None else Fraction(period)
    where = {"event_time": "t", "kind": INT, "key": key} | options
    return intervals(rows(**columns), length, every, Fraction(age), offset, **where)


def timed(panes: list[Pane]) -> list[tuple[Any, ...]]:
    return [(pane.start, pane.rows, pane.closed_by, pane.pos, pane.timing, pane.index) for pane in panes]


def test_rows_in_order_give_each_pane_once() -> None:
    #   [ 1 5 )[ 12 )[ 25     each pane comes out with the first row at its end or beyond
    panes, late, filtered = event_time([1, 5, 12, 25])
    assert panes == [
        Pane((), 0, (0, 1), "watermark", None, 2, 0, 10, timing="on_time", index=0),
        Pane((), 1, (2,), "watermark", None, 3, 10, 20, timing="on_time", index=0),
        Pane((), 2, (3,), "end", None, None, 20, 30, timing="on_time", index=0),
    ]
    assert (late, filtered) == ([], [])


def test_end_with_drop_gives_no_pane() -> None:
    panes, _, _ = event_time([1, 12], at_end="drop")
    assert timed(panes) == [(0, (0,), "watermark", 1, "on_time", 0)]


def test_the_watermark_lags() -> None:
    #   lag 5: at 12 it stands at 7, at 15 on the end of the pane
    panes, _, _ = event_time([1, 12, 15], lag=Fraction(5), at_end="drop")
    assert timed(panes) == [(0, (0,), "watermark", 2, "on_time", 0)]


def test_the_watermark_is_announced_when_it_has_risen_enough() -> None:
    #   announced 1, 8 (not 4), 13 (not 10)
    panes, _, _ = event_time([1, 4, 8, 10, 13], min_gap=Fraction(5), at_end="drop")
    assert timed(panes) == [(0, (0, 1, 2), "watermark", 4, "on_time", 0)]


def test_a_row_is_late_beyond_repair_only_below_the_announced_watermark() -> None:
    #   announced 1 and, at 11 after 8, still 8: so 8 is on time, 7 is not; the first row never is
    _, late, _ = event_time([1, 8, 11, 8, 7], min_gap=Fraction(5))
    assert late == [4]


@pytest.mark.parametrize(("age", "late"), [(7, [2]), (8, [])])
def test_late_rows_are_shown_at_the_next_advance(age: int, late: list[int]) -> None:
    #   4 comes after the watermark 12: it may be 8 late; 12 again is no advance, 13 is
    panes, got, _ = event_time([5, 12, 4, 12, 13], age=age, at_end="drop")
    again = [] if late else [(0, (0, 2), "late", 4, "late", 1)]
    assert timed(panes) == [(0, (0,), "watermark", 1, "on_time", 0), *again]
    assert got == late


def test_a_row_is_late_for_a_pane_from_the_watermark_at_its_end_on() -> None:
    panes, _, _ = event_time([10, 4, 11], age=9, at_end="drop")
    assert timed(panes) == [(0, (1,), "late", 2, "late", 0)]


def test_a_row_that_is_old_but_not_late_for_its_pane_is_on_time() -> None:
    #   15 then 12: below the watermark, within the age, and its pane is still open
    panes, _, _ = event_time([15, 12, 20], age=5, at_end="drop")
    assert timed(panes) == [(10, (0, 1), "watermark", 2, "on_time", 0)]


def test_late_rows_that_no_advance_shows_come_at_the_end() -> None:
    panes, _, _ = event_time([5, 12, 4], age=8)
    assert timed(panes)[1:] == [(0, (0, 2), "end", None, "late", 1), (10, (1,), "end", None, "on_time", 0)]


def test_a_pane_stays_late_once_it_is() -> None:
    #   4 is late for the pane, so is every output after it
    panes, _, _ = event_time([12, 4, 13, 5, 14], age=9, at_end="drop")
    assert timed(panes) == [(0, (1,), "late", 2, "late", 0), (0, (1, 3), "late", 4, "late", 1)]


def test_rows_between_panes_are_filtered() -> None:
    _, late, filtered = event_time([101, 104, 105, 107, 110], duration=5, period=10)
    assert (late, filtered) == ([], [2, 3])


def test_a_row_is_in_every_pane_that_holds_it() -> None:
    #   10 long, one each 5: 7 is in 0..10 and 5..15, 5 too; the offset moves all by 12 mod 5
    panes, _, _ = event_time([5, 7], period=5)
    assert [(pane.start, pane.end, pane.rows) for pane in panes] == [(0, 10, (0, 1)), (5, 15, (0, 1))]
    panes, _, _ = event_time([1], duration=5, offset=12)
    assert [(pane.start, pane.end) for pane in panes] == [(-3, 2)]


def test_keys_share_the_watermark_and_nothing_else() -> None:
    #   a 1, b 2; c 12 brings both out; a 3 is late, and at 13 only a comes again
    panes, _, _ = event_time([1, 2, 12, 3, 13], age=20, keys=["a", "b", "c", "a", "c"], at_end="drop")
    assert [(pane.key, pane.rows, pane.pos, pane.index) for pane in panes] == [
        (("a",), (0,), 2, 0),
        (("b",), (1,), 2, 0),
        (("a",), (0, 3), 4, 1),
    ]


def test_a_row_without_key_raises_the_watermark() -> None:
    panes, late, filtered = event_time([1, 12], keys=["a", None])
    assert timed(panes) == [(0, (0,), "watermark", 1, "on_time", 0)]
    assert (late, filtered) == ([], [])


def test_in_the_order_of_event_time_nothing_is_late() -> None:
    #   12 1 12 5 sorted, ties by arrival: 1 5 12 12
    panes, late, _ = event_time([12, 1, 12, 5], order=["t"])
    assert [(pane.rows, pane.at, pane.pos) for pane in panes] == [((1, 3), (12,), 0), ((0, 2), None, None)]
    assert late == []


def test_bounds_on_a_float_clock_are_the_nearest_floats() -> None:
    #   3 * 0.1 is not the float 0.3, but the third bound is
    panes, _, _ = event_time([0.3], duration="0.1", kind=FLOAT)
    assert [(pane.start, pane.end) for pane in panes] == [(0.3, 0.4)]


def test_explicit_watermarks_take_effect_between_rows() -> None:
    #   10 before row 1: shows row 0, and makes row 1 late; the second 10 does nothing
    told = [(1, Fraction(10)), (2, Fraction(10))]
    panes, late, _ = event_time([3, 4], watermarks=told, at_end="drop")
    assert timed(panes) == [(0, (0,), "watermark", 0, "on_time", 0)]
    assert late == [1]


def test_rows_advance_no_watermark_where_watermarks_are_explicit() -> None:
    #   3 comes behind 25, and is not late: the only watermark is 10, behind both
    panes, late, _ = event_time([25, 3], watermarks=[(2, Fraction(10))], at_end="drop")
    assert timed(panes) == [(0, (1,), "watermark", 1, "on_time", 0)]
    assert late == []


# --- groups -------------------------------------------------------------------------------------------------------


def test_groups_ascend_with_nan_and_null_last_and_one_mark() -> None:
    table = rows(g=[None, math.nan, 2.0, -0.0, 0.0, math.nan, -1.0])
    pane = Pane((), 0, tuple(range(7)), "count", None, 6, None, None)
    cut = grouped([pane, mark(None, 6)], table, ["g"])
    assert [(one.group, one.rows) for one in cut[:3]] == [((-1.0,), (6,)), ((0.0,), (3, 4)), ((2.0,), (2,))]
    assert [(str(one.group), one.rows) for one in cut[3:5]] == [("(nan,)", (1, 5)), ("(None,)", (0,))]
    assert [one.mark for one in cut] == [None, None, None, None, "window", "only"]
    assert math.copysign(1, cut[1].group[0] if cut[1].group else -1) == 1


def test_groups_of_several_columns_keep_the_stamps_of_their_pane() -> None:
    table = rows(g=["y", "x", "x"], h=[1, 2, None], t=[5, 6, 7])
    panes = grouped(sliding(table, Count(3), Count(3), order=["t"]), table, ["g", "h"])
    assert [(pane.group, pane.rows) for pane in panes] == [(("x", 2), (1,)), (("x", None), (2,)), (("y", 1), (0,))]
    assert {(pane.number, pane.at, pane.pos, pane.start, pane.end) for pane in panes} == {(0, (7,), 2, 5, 7)}
