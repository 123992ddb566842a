"""The watermark: when it is announced, what is late by it, and which of its advances are listed (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.clock.interval_grid import make_intervals
from wincli.windowing.clock.watermark import (
    NO_LEVEL,
    Lateness,
    Watermarks,
    after,
    explicit,
    highest,
    in_order,
    make_lateness,
    rises,
    watermarks_at,
)
from wincli.windowing.columns.arrays import Ints, Measures
from wincli.windowing.language.spec import TimeInterval
from wincli.windowing.rows.marks import NO_FILE, Marks

EMPTY = pa.RecordBatch.from_arrays([], names=[])
TENS = TimeInterval(Fraction(10), Fraction(10))
AMOUNTS = st.sampled_from([Fraction(n) for n in (0, 0, 1, 3, 10)] + [Fraction(1, 3), Fraction(7, 2)])


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def floats(*values: float) -> Measures:
    return np.array(values, np.float64)


def lateness(
    kind: pa.DataType, spec: TimeInterval = TENS, lag: Fraction | int = 0, min_gap: Fraction | int = 0
) -> Lateness:
    return make_lateness(kind, spec, Fraction(lag), Fraction(min_gap))


# --- how it moves -------------------------------------------------------------------------------------------------


def test_the_first_row_announces_at_once_and_only_rises_advance() -> None:
    # event times  5  3  5  9  8  10
    # watermark    5        9     10
    course = lateness(pa.int64(), min_gap=0).advance(ints(5, 3, 5, 9, 8, 10), None)
    assert course.known.tolist() == [False, True, True, True, True, True]
    assert course.before[1:].tolist() == [5, 5, 5, 9, 9]
    assert course.advances.tolist() == [True, False, False, True, False, True]
    assert course.final == 10


def test_rises_below_the_gap_are_kept_back_until_they_add_up() -> None:
    # gap 2.5: a rise of 3 ticks is the first that is told
    course = lateness(pa.int64(), min_gap=Fraction(5, 2)).advance(ints(0, 2, 3, 5, 6), None)
    assert course.advances.tolist() == [True, False, True, False, True]
    assert lateness(pa.int64(), min_gap=2**70).advance(ints(-(2**63), 2**63 - 1), None).advances.tolist() == [
        True,
        False,
    ]
    assert (
        lateness(pa.int64(), min_gap=2**64 - 1).advance(ints(-(2**63), 2**63 - 1), None).advances.tolist() == [True] * 2
    )


def test_instants_of_floats_are_the_nearest_to_the_exact_sum() -> None:
    # 0.2 + 0.1 is above 0.3 where it is summed in floats; the float nearest to a tenth more than 0.2 is 0.3
    assert 0.2 + 0.1 > 0.3
    by_tenths = lateness(pa.float64(), min_gap=Fraction(1, 10)).advance(floats(0.0, 0.1, 0.2, 0.3), None)
    assert by_tenths.advances.tolist() == [True, True, True, True]
    assert lateness(pa.float64(), lag=Fraction(1, 10)).readings(floats(0.1, 0.2, 1e300)).tolist() == [
        float(Fraction(a) - Fraction(1, 10)) for a in (0.1, 0.2, 1e300)
    ]


@given(st.lists(st.integers(-50, 50), max_size=30), st.integers(0, 30), AMOUNTS, st.booleans())
def test_a_cut_anywhere_changes_nothing(values: list[int], cut: int, gap: Fraction, as_floats: bool) -> None:
    told: Any = np.array(values, np.float64 if as_floats else np.int64)
    asked = lateness(pa.float64() if as_floats else pa.int64(), min_gap=gap)
    whole = asked.advance(told, None)
    first = asked.advance(told[:cut], None)
    second = asked.advance(told[cut:], first.final)
    assert [*first.advances, *second.advances] == whole.advances.tolist()
    assert [*first.known, *second.known] == whole.known.tolist()
    assert [*first.before, *second.before][1:] == whole.before[1:].tolist()
    assert second.final == whole.final
    if not gap:
        assert after(highest(told[:cut]), highest(told[cut:])) == whole.final


# --- what is late -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-50, 50), max_size=30), AMOUNTS, AMOUNTS)
def test_late_beyond_repair_is_older_than_lag_and_discard_age_together(
    values: list[int], lag: Fraction, age: Fraction
) -> None:
    asked = lateness(pa.int64(), TimeInterval(Fraction(10), Fraction(10), age), lag)
    late = asked.beyond_repair(ints(*values), asked.advance(ints(*values), None))
    assert late.tolist() == [i > 0 and v < max(values[:i]) - lag - age for i, v in enumerate(values)]


def test_lateness_over_all_of_64_bit() -> None:
    values = ints(2**63 - 1, -(2**63), -(2**63) + 1)
    for age, late in ((2**64 - 1, [False, False, False]), (2**64 - 2, [False, True, False]), (0, [False, True, True])):
        asked = lateness(pa.int64(), TimeInterval(Fraction(10), Fraction(10), Fraction(age)))
        assert asked.beyond_repair(values, asked.advance(values, None)).tolist() == late


def test_a_float_exactly_as_old_as_the_discard_age_is_kept() -> None:
    asked = lateness(pa.float64(), TimeInterval(Fraction(10), Fraction(10), Fraction(1, 10)))
    edge = float(Fraction(0.3) - Fraction(1, 10))
    values = floats(0.3, edge, np.nextafter(edge, -1))
    assert asked.beyond_repair(values, asked.advance(values, None)).tolist() == [False, False, True]


def test_rows_between_panes_are_in_none() -> None:
    apart = lateness(pa.int64(), TimeInterval(Fraction(5), Fraction(10), offset=Fraction(32)))  # [2, 7) [12, 17) ..
    first, last = apart.intervals.holding(ints(1, 2, 6, 7, 11, 12, -8, -3))
    assert (first > last).tolist() == [True, False, False, True, True, False, False, True]


# --- levels -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(-200, 200), min_size=1),
    st.sampled_from([1, 2, 3, 10, 25]),
    st.sampled_from([1, 2, 3, 7, 30]),
    st.sampled_from([0, 1, 5, 44]),
    AMOUNTS,
    st.sampled_from([pa.int64(), pa.timestamp("s"), pa.decimal128(10, 1)]),
)
def test_a_level_is_the_last_pane_that_ends_early_enough(
    values: list[int], duration: int, period: int, offset: int, lag: Fraction, kind: pa.DataType
) -> None:
    spec = TimeInterval(Fraction(duration), Fraction(period), offset=Fraction(offset))
    ticks = 10 if pa.types.is_decimal(kind) else 1
    intervals = make_intervals(kind, spec)
    for value, level in zip(values, intervals.level(ints(*values), lag).tolist(), strict=True):
        ends = [k * period + offset % period + duration for k in (level, level + 1)]
        assert ends[0] <= Fraction(value, ticks) - lag < ends[1]
        assert intervals.level_at(Fraction(value, ticks) - lag) == level


def test_levels_of_floats_follow_the_rounded_bounds() -> None:
    tenths = make_intervals(pa.float64(), TimeInterval(Fraction(1, 10), Fraction(1, 10)))  # ends 0.1, 0.2, 0.3 ..
    assert tenths.level(floats(0.3, np.nextafter(0.3, 0), 0.7)).tolist() == [2, 1, 6]
    assert tenths.level_at(Fraction(3, 10)) == 2


# --- what is listed -----------------------------------------------------------------------------------------------


def listed(asked: Lateness, values: Ints, stands: int | None = None) -> list[tuple[int, int]]:
    return list(
        zip(*(column.tolist() for column in asked.list_advances(values, asked.advance(values, stands))), strict=True)
    )


def test_rises_of_the_level_and_advances_behind_late_rows_are_listed() -> None:
    # panes of 10, discard age 100
    #         5 first  12 rises  13  14  3 late  15 behind it  16  29 rises  -99 beyond repair  28  29  29  30 rises
    values = ints(5, 12, 13, 14, 3, 15, 16, 29, -99, 28, 29, 29, 30)
    asked = lateness(pa.int64(), TimeInterval(Fraction(10), Fraction(10), Fraction(100)))
    assert listed(asked, values) == [(0, -1), (1, 0), (5, 0), (7, 1), (12, 2)]


def test_a_late_row_in_the_chunk_before_makes_the_first_advance_count() -> None:
    asked = lateness(pa.int64(), TimeInterval(Fraction(10), Fraction(10), Fraction(100)))
    assert listed(asked, ints(12, 12, 13, 14), stands=12) == [(2, 0)]
    assert listed(asked, ints(12, 12), stands=12) == []


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 40), max_size=4), AMOUNTS, AMOUNTS, AMOUNTS)
def test_listed_advances_are_those_that_bring_something_out(
    values: list[int], cuts: list[int], lag: Fraction, gap: Fraction, age: Fraction
) -> None:
    spec = TimeInterval(Fraction(7), Fraction(3), 5 * age)
    asked = lateness(pa.int64(), spec, lag, gap)
    parts, stands = [], None
    for begin, end in pairwise([0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]):
        course = asked.advance(ints(*values[begin:end]), stands)
        places, level = asked.list_advances(ints(*values[begin:end]), course)
        parts.append(watermarks_at(EMPTY, np.arange(begin, end), places, level))
        stands = course.final
    found = in_order(parts)
    starts = {part.marks.pos[0] for part in parts if len(part)}
    told = dict(zip(found.marks.pos.tolist(), found.level.tolist(), strict=True))
    assert list(told) == sorted(told)
    wanted, levels = needed(values, spec, lag, gap)
    assert wanted <= set(told) <= wanted | starts
    assert told == {pos: levels[pos] for pos in told}


def needed(values: Sequence[int], spec: TimeInterval, lag: Fraction, gap: Fraction) -> tuple[set[int], dict[int, int]]:
    """Row by row: the advances that complete a pane or follow a row that was late for one; the level of each."""
    out, levels = set(), {}
    announced, level, pending = None, NO_LEVEL, False
    for pos, value in enumerate(values):
        kept = announced is None or value >= announced - spec.discard_age
        panes = [k for k in range(-20, 60) if 3 * k <= value < 3 * k + 7]
        pending |= kept and any(k <= level for k in panes)
        risen = max(values[: pos + 1]) - lag
        if announced is None or (risen > announced and risen >= announced + gap):
            announced, now = risen, max(k for k in range(-20, 60) if 3 * k + 7 <= risen)
            if now > level or pending:
                out.add(pos)
            level, pending = now, False
            levels[pos] = now
    return out, levels


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 40), max_size=4), AMOUNTS)
def test_ordered_by_event_time_the_first_row_of_each_level_is_listed(
    values: list[int], cuts: list[int], lag: Fraction
) -> None:
    asked = lateness(pa.int64(), lag=lag)
    parts = []
    for begin, end in pairwise([0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]):
        order = pa.record_batch({"et": pa.array(values[begin:end], pa.int64())})
        listed_here = asked.list_advances_in_order(ints(*values[begin:end]))
        parts.append(watermarks_at(order, np.arange(begin, end), *listed_here))
    found = rises(in_order(parts))
    first: dict[int, int] = {}
    for pos in sorted(range(len(values)), key=lambda pos: (values[pos], pos)):
        first.setdefault(int((values[pos] - lag) // 10 - 1), pos)
    assert found.marks.pos.tolist() == list(first.values())
    assert found.level.tolist() == list(first)
    assert found.marks.rows.column("et").to_pylist() == [values[pos] for pos in first.values()]


def test_advances_of_chunks_are_put_in_order() -> None:
    def part(*pos: int) -> Watermarks:
        return Watermarks(Marks(EMPTY, ints(*pos), np.full(len(pos), NO_FILE)), ints(*pos) * 2)

    found = in_order([part(7, 9), part(), part(1)])
    assert found.marks.pos.tolist() == [1, 7, 9]
    assert found.level.tolist() == [2, 14, 18]


# --- given watermarks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("s")])
def test_given_watermarks_that_do_not_rise_do_nothing(kind: pa.DataType) -> None:
    intervals = make_intervals(kind, TENS)
    values: Any = floats(15, 4, 25, 4) if kind == pa.float64() else ints(15, 4, 25, 4)
    events = [(3, Fraction(19)), (0, Fraction(5)), (1, Fraction(20)), (1, Fraction(41, 2))]
    watermarks, late = explicit(events, intervals, Fraction(16), values, np.arange(4))
    assert watermarks.marks.pos.tolist() == [-1, 0, 0]
    assert watermarks.level.tolist() == [-1, 1, 1]
    assert late.tolist() == [False, True, False, True]  # 20.5 - 16 is above 4


def test_given_watermarks_count_positions_and_not_rows() -> None:
    intervals = make_intervals(pa.int64(), TENS)
    watermarks, late = explicit([(6, Fraction(50))], intervals, Fraction(0), ints(1, 2, 3), ints(2, 5, 9))
    assert watermarks.marks.pos.tolist() == [5]
    assert late.tolist() == [False, False, True]
