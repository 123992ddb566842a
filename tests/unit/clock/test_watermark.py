"""The watermark at the limits of numbers, and which of its advances are listed; `test_event_time` has its law."""

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
    after,
    highest,
    in_order,
    make_lateness,
    rises,
    watermarks_at,
)
from wincli.windowing.columns.arrays import Ints, Measures
from wincli.windowing.language.spec import TimeInterval

EMPTY = pa.RecordBatch.from_arrays([], names=[])
TENS = TimeInterval(Fraction(10), Fraction(10))
AMOUNTS = st.sampled_from([Fraction(n) for n in (0, 0, 1, 3, 10)] + [Fraction(1, 3), Fraction(7, 2)])


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def floats(*values: float) -> Measures:
    return np.array(values, np.float64)


def lateness(kind: pa.DataType, spec: TimeInterval = TENS, lag: Any = 0, min_gap: Any = 0) -> Lateness:
    return make_lateness(kind, spec, Fraction(lag), Fraction(min_gap))


def cut(values: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """The bounds of the parts of some rows that are cut at places."""
    return list(pairwise([0, *sorted(min(place, len(values)) for place in places), len(values)]))


# --- how it moves -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "values", "told"),
    [
        (Fraction(5, 2), [0, 2, 3, 5, 6], [True, False, True, False, True]),  # a rise of 3 ticks is the first
        (2**70, [-(2**63), 2**63 - 1], [True, False]),
        (2**64 - 1, [-(2**63), 2**63 - 1], [True, True]),
    ],
)
def test_rises_below_the_gap_are_kept_back_until_they_add_up(
    gap: Fraction | int, values: list[int], told: list[bool]
) -> None:
    assert lateness(pa.int64(), min_gap=gap).advance(ints(*values), None).advances.tolist() == told


def test_instants_of_floats_are_the_nearest_to_the_exact_sum() -> None:
    # 0.2 + 0.1 is above 0.3 where it is summed in floats; the float nearest to a tenth more than 0.2 is 0.3
    assert 0.2 + 0.1 > 0.3
    by_tenths = lateness(pa.float64(), min_gap=Fraction(1, 10)).advance(floats(0.0, 0.1, 0.2, 0.3), None)
    assert by_tenths.advances.tolist() == [True, True, True, True]
    assert lateness(pa.float64(), lag=Fraction(1, 10)).readings(floats(0.1, 0.2, 1e300)).tolist() == [
        float(Fraction(a) - Fraction(1, 10)) for a in (0.1, 0.2, 1e300)
    ]


@given(st.lists(st.integers(-50, 50), max_size=30), st.integers(0, 30), AMOUNTS, st.booleans())
def test_a_cut_anywhere_changes_nothing(values: list[int], at: int, gap: Fraction, as_floats: bool) -> None:
    told: Any = np.array(values, np.float64 if as_floats else np.int64)
    asked = lateness(pa.float64() if as_floats else pa.int64(), min_gap=gap)
    whole = asked.advance(told, None)
    first = asked.advance(told[:at], None)
    second = asked.advance(told[at:], first.final)
    assert [*first.advances, *second.advances] == whole.advances.tolist()
    assert [*first.known, *second.known] == whole.known.tolist()
    assert [*first.before, *second.before][1:] == whole.before[1:].tolist()
    assert second.final == whole.final
    if not gap:
        assert after(highest(told[:at]), highest(told[at:])) == whole.final


# --- what is late -------------------------------------------------------------------------------------------------


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


# --- levels -------------------------------------------------------------------------------------------------------


def test_levels_of_floats_follow_the_rounded_bounds() -> None:
    tenths = make_intervals(pa.float64(), TimeInterval(Fraction(1, 10), Fraction(1, 10)))  # ends 0.1, 0.2, 0.3 ..
    assert tenths.level(floats(0.3, np.nextafter(0.3, 0), 0.7)).tolist() == [2, 1, 6]
    assert tenths.level_at(Fraction(3, 10)) == 2


# --- what is listed -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 40), max_size=4), AMOUNTS, AMOUNTS, AMOUNTS)
def test_listed_advances_are_those_that_bring_something_out(
    values: list[int], cuts: list[int], lag: Fraction, gap: Fraction, age: Fraction
) -> None:
    spec = TimeInterval(Fraction(7), Fraction(3), 5 * age)
    asked = lateness(pa.int64(), spec, lag, gap)
    parts, stands = [], None
    for begin, end in cut(values, cuts):
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
    for begin, end in cut(values, cuts):
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
