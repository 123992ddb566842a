"""What reports measure: counts, bins, bars and busy keys say what a list of all values says, in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.cli.inspection.report.measured import BusyKeys, Spread, Steps
from wincli.cli.inspection.report.panes import empty_lane

Batches = st.lists(st.lists(st.integers(0, 2**53), max_size=30), max_size=6)
Times = st.lists(st.lists(st.integers(-(2**50), 2**52), max_size=30), max_size=6)


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(Batches)
def test_a_distribution_counts_every_value_once(batches: list[list[int]]) -> None:
    spread, values = Spread(), [value for batch in batches for value in batch]
    for batch in batches:
        spread.add(ints(batch))
    found = spread.distribution("rows")
    if not values:
        assert found is None
        return
    assert found is not None
    assert [found[name] for name in ("count", "least", "most")] == [len(values), min(values), max(values)]
    assert math.isclose(found["total"], sum(values))
    assert found["zeros"] == values.count(0)
    assert len(found["bars"]) <= 41
    for bar in found["bars"]:
        assert bar["count"] == sum(bar["low"] <= value < bar["high"] for value in values)
    assert found["zeros"] + sum(bar["count"] for bar in found["bars"]) == len(values)
    for percent, value in found["quantiles"]:  # at most a 64th too small, and exact for small numbers
        exact = sorted(values)[max(1, math.ceil(percent / 100 * len(values))) - 1]
        assert exact * (1 - 1 / 64) <= value <= exact
        assert value == exact or exact >= 128


def test_values_that_are_no_lengths_are_left_out() -> None:
    spread = Spread()
    spread.add(np.array([np.nan, -1.0, np.inf, 2.0]))
    found = spread.distribution("number")
    assert found is not None
    assert (found["count"], found["total"]) == (1, 2.0)


@given(Times)
def test_steps_count_each_value_in_the_step_that_holds_it(batches: list[list[int]]) -> None:
    steps, values = Steps("time", ("n", "rows")), [value for batch in batches for value in batch]
    for batch in batches:
        steps.add(ints(batch), n=1, rows=ints([value % 7 for value in batch]))
    size = steps.counts.shape[1]
    assert size <= 240
    expected: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for value in values:
        at = (value - int(steps.begin)) // int(steps.width)
        expected[at] += 1
        rows[at] += value % 7
    assert [expected[at] for at in range(size)] == steps.sums("n").tolist()
    assert [rows[at] for at in range(size)] == steps.sums("rows").tolist()
    assert sum(expected.values()) == steps.sums("n").sum()


@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=30))
def test_steps_of_numbers_of_any_size(values: list[float]) -> None:
    steps = Steps("number", ("n",))
    for value in values:
        steps.add(np.array([value]), n=1)
    assert steps.counts.shape[1] <= 240
    assert steps.sums("n").sum() == len(values)


def test_steps_of_weeks_begin_on_mondays() -> None:
    steps, day = Steps("time", ("n",)), 86_400_000_000
    steps.add(ints([20_000 * day, 21_000 * day]), n=1)
    assert steps.words == "week"
    assert (int(steps.begin) // day) % 7 == 4  # 1970-01-01 is a Thursday


Windows = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50), st.integers(0, 9)), max_size=40)


@given(st.lists(Windows, max_size=5), st.integers(2, 20))
def test_bars_hold_every_window_once(batches: list[list[tuple[int, int, int]]], most: int) -> None:
    lane, windows = empty_lane({"user": pa.scalar("u7")}, False, True), [w for batch in batches for w in batch]
    for batch in batches:
        starts, lengths, rows = (ints([window[at] for window in batch]) for at in range(3))
        lane = lane.with_windows(starts, starts + lengths, rows, most)
    assert lane.values is not None
    assert len(lane.starts) <= most
    assert (lane.key, lane.windows, lane.rows) == ("u7", len(windows), sum(rows for *_, rows in windows))
    assert (lane.counts.sum(), lane.values.sum()) == (lane.windows, lane.rows)
    assert _covers(lane, windows)
    if len(windows) <= most:
        assert lane.starts.tolist() == [start for start, *_ in windows]


def _covers(lane: Any, windows: list[tuple[int, int, int]]) -> bool:
    """Whether bars reach exactly from the first start to the last end of the windows that share them."""
    at = 0
    for start, end, count in zip(lane.starts, lane.ends, lane.counts, strict=True):
        lot = windows[at : at + count]
        if (start, end) != (min(s for s, *_ in lot), max(s + n for s, n, _ in lot)):
            return False
        at += count
    return at == len(windows)


Keys = st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 20)), max_size=30), max_size=5)


@given(Keys, st.integers(2, 30))
def test_no_key_that_is_not_found_is_heavier_than_is_said(batches: list[list[tuple[int, int]]], most: int) -> None:
    busy, exact = BusyKeys(["a", "b"], most=most), Counter[tuple[int, int]]()
    for batch in batches:
        keys = [(key % 4, key // 4) for key, _ in batch]
        columns = {"a": ints([a for a, _ in keys]), "b": ints([b for _, b in keys])}
        busy.add(pa.table(columns), ints([weight for _, weight in batch]))
        for key, (_, weight) in zip(keys, batch, strict=True):
            exact[key] += weight
    heaviest = [(key["a"].as_py(), key["b"].as_py()) for key in busy.heaviest(3)]
    if busy.count is not None:
        assert busy.count == len(exact)
        assert [exact[key] for key in heaviest] == sorted(exact.values(), reverse=True)[:3]
    assert busy.kept.num_rows <= most
    assert all(weight <= busy.missed for key, weight in exact.items() if not _is_kept(busy, key))


def _is_kept(busy: BusyKeys, key: tuple[int, int]) -> bool:
    return key in set(zip(busy.kept["a"].to_pylist(), busy.kept["b"].to_pylist(), strict=True))


@examples(20)
@given(st.integers(100, 2000))
def test_memory_for_keys_does_not_grow_with_their_number(n: int) -> None:
    busy = BusyKeys(["k"], most=50)
    for begin in range(0, n, 25):
        busy.add(pa.table({"k": np.arange(begin, begin + 25)}), np.ones(25, np.int64))
    busy.add(pa.table({"k": ints([7])}), ints([10 * n]))
    assert busy.kept.num_rows <= 50
    assert [key["k"].as_py() for key in busy.heaviest(1)] == [7]


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4), max_size=40), st.integers(1, 9), st.integers(1, 30)
)
def test_keys_that_come_one_after_another_are_exact_however_many(keys: list[list[int]], most: int, cut: int) -> None:
    rows = [(key, weight) for key, weights in enumerate(keys) for weight in weights]
    busy = BusyKeys(["k"], is_sorted=True, most=most)
    for begin in range(0, len(rows), cut):
        batch = rows[begin : begin + cut]
        busy.add(pa.table({"k": ints([key for key, _ in batch])}), ints([weight for _, weight in batch]))
    assert busy.count == len(keys)
    assert busy.kept.num_rows <= most + 1
    expected = sorted(range(len(keys)), key=lambda key: (-sum(keys[key]), key))
    assert [key["k"].as_py() for key in busy.heaviest(most)] == expected[:most]
