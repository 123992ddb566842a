"""Sliding windows: the kernels agree with the reference for all nine pairs, and with what the semantics spell out.

delta(a, 2), count(1)     a   0 1 2 3 9 1 4
                              [ 1 2 3 ]         at 3, the first eviction: full
                                      [9]       at 9
                                      [9 1]     at 1
                                      [9 . 4]   at 4: 1 goes, wherever it stands
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import sliding as reference_sliding
from references import tumbling as reference
from support import strategies as my
from support.sliding_panes import Pane, by_kernels, sequences_of
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.kinds.sliding import evicted_at
from wincli.windowing.language import spec
from wincli.windowing.rows.sequence import Sequences

POLICIES = ["count", "delta", "time"]
PAIRS = [(evict, trigger) for evict in POLICIES for trigger in [*POLICIES, "when"]]
TIMED = [pair for pair in PAIRS if "time" in pair]


# --- both sides ---------------------------------------------------------------------------------------------------


def by_reference(stream: my.Stream, window: spec.Sliding, setting: WindowContext, **clock: Any) -> list[Pane]:
    panes = reference_sliding.sliding(
        reference.read(stream.table),
        policy(stream, window.evict, setting),
        policy(stream, window.trigger, setting),
        key=stream.key,
        order=stream.order,
        partial=setting.partial,
        **clock,
    )
    told = [Pane(p.key, p.number, p.rows, p.closed_by, p.at and p.at[0], p.pos) for p in panes]
    full = sorted((p for p in told if p.key is not None), key=lambda p: (p.key, p.number))
    return full + [p for p in told if p.key is None]


def policy(stream: my.Stream, policy: spec.TriggerPolicy, setting: WindowContext) -> Any:
    match policy:
        case spec.Count(n):
            return reference.Count(n)
        case spec.Delta(name, amount):
            return reference.Delta(name, amount, stream.kind(name))
        case spec.Time(seconds):
            return reference.Time(seconds, stream.kind(stream.order[0]), setting.origin)
        case spec.When(name):
            return reference.PunctColumn(str(name))


# --- streams ------------------------------------------------------------------------------------------------------


@st.composite
def clocked(draw: st.DrawFn, kinds: Sequence[pa.DataType] = my.MEASURES) -> my.Stream:
    """A stream over a clock that creeps, with falls and ties, perhaps with more order columns behind it."""
    stream = draw(my.streams(orders=1, max_size=25))
    kind = draw(st.sampled_from(kinds))
    size = len(stream.table)
    steps = draw(st.lists(my.STEPS, min_size=size, max_size=size))
    ticks = accumulate(steps, initial=draw(st.integers(-50, 100)))
    far = draw(st.sampled_from([0.0, 0.0, 2.0**40])) if kind == pa.float64() else 0
    clock = my.array([my.value_of(n, kind) + far for n in ticks][1:], kind)
    return replace(stream, table=stream.table.append_column("clock", clock), order=("clock", *stream.order))


@st.composite
def policies(draw: st.DrawFn, stream: my.Stream, word: str, period: Fraction) -> Any:
    if word == "delta":
        return spec.Delta("a", draw(my.amounts(stream.kind("a"))))
    if word == "count":
        return spec.Count(draw(st.sampled_from([1, 1, 2, 3, 5, 2**63 - 1])))
    return spec.When("flag") if word == "when" else spec.Time(period)


@st.composite
def windows(draw: st.DrawFn, stream: my.Stream, pair: tuple[str, str]) -> tuple[spec.Sliding, Fraction]:
    """A window of a pair of policies, and the origin of its ticks."""
    evict, trigger = pair
    period, origin = Fraction(1), None
    if "time" in pair:
        period, origin = draw(my.grids(stream.kind("clock")))
    age = draw(ages(stream, period)) if evict == "time" else period
    if trigger == "time" and draw(st.booleans()) and may_be_finer(stream.kind("clock")):
        period /= 2
    policy = draw(policies(stream, evict, age))
    if isinstance(policy, spec.Count) and draw(st.integers(0, 5)) == 0:
        policy = spec.Count(0)
    return spec.Sliding(policy, draw(policies(stream, trigger, period))), origin or Fraction(0)


@st.composite
def ages(draw: st.DrawFn, stream: my.Stream, unit: Fraction) -> Fraction:
    """An age among the steps of the clock, on them and between them, or longer than all data."""
    return unit * draw(
        st.sampled_from([Fraction(n) for n in (1, 1, 2, 3, 7, 10**6)] + [Fraction(1, 2), Fraction(3, 2)])
    )


def may_be_finer(kind: pa.DataType) -> bool:
    """Whether there is a unit for ticks between the values of a type."""
    return not (pa.types.is_timestamp(kind) and kind.unit == "ns")


@st.composite
def clocks(draw: st.DrawFn, stream: my.Stream) -> dict[str, Any]:
    """Where the clock stands behind the last row, and stood before the first, in the terms of its column."""
    kind = stream.kind("clock")
    values = reference.ticks_of(stream.table["clock"])
    far = st.integers(0, 100).map(lambda n: my.value_of(n, kind))
    told: dict[str, Any] = {}
    if draw(st.booleans()):
        told["clock"] = max(values, default=my.value_of(0, kind)) + draw(far)
    if (values or told) and draw(st.booleans()):
        told["since"] = min(values, default=my.value_of(0, kind)) - draw(far)
    return told


def measure(value: Any, kind: pa.DataType) -> int | float:
    return int(value.scaleb(kind.scale)) if isinstance(value, Decimal) else value


def agree(stream: my.Stream, window: spec.Sliding, setting: WindowContext, **clock: Any) -> list[Pane]:
    measured = {name: measure(value, stream.kind("clock")) for name, value in clock.items()}
    got = by_kernels(stream, window, replace(setting, **measured))
    assert got == by_reference(stream, window, setting, **clock), f"{window}"
    return got


# --- the kernels are the reference --------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if "time" not in pair])
@given(st.data(), my.streams(), st.booleans())
def test_pairs_without_a_clock(pair: tuple[str, str], data: st.DataObject, stream: my.Stream, partial: bool) -> None:
    window, _ = data.draw(windows(stream, pair))
    agree(stream, window, WindowContext(partial=partial))


@pytest.mark.parametrize("pair", TIMED)
@given(st.data(), clocked(), st.booleans())
def test_pairs_with_a_clock(pair: tuple[str, str], data: st.DataObject, stream: my.Stream, partial: bool) -> None:
    window, origin = data.draw(windows(stream, pair))
    agree(stream, window, WindowContext(partial=partial, origin=origin), **data.draw(clocks(stream)))


@pytest.mark.parametrize("trigger", ["count", "time"])
@given(st.data(), clocked(my.FLOATS), st.booleans())
def test_ages_of_floats(trigger: str, data: st.DataObject, stream: my.Stream, partial: bool) -> None:
    window, origin = data.draw(windows(stream, ("time", trigger)))
    agree(stream, window, WindowContext(partial=partial, origin=origin), **data.draw(clocks(stream)))


@pytest.mark.parametrize("trigger", ["count", "delta"])
@given(st.data(), my.streams(my.FLOATS), st.booleans())
def test_nan_is_kept_and_protects_later_rows_until_a_fall(
    trigger: str, data: st.DataObject, stream: my.Stream, partial: bool
) -> None:
    holes = data.draw(st.lists(st.sampled_from([False, False, False, True]), min_size=len(stream.table)))
    values = [np.nan if hole else a for a, hole in zip(stream.table["a"].to_pylist(), holes, strict=False)]
    plain = stream.table.select(["id"]).append_column("a", my.array(values, stream.kind("a")))
    stream = my.Stream(plain.append_column("k", my.array([n % 2 for n in range(len(values))], pa.int8())), ("k",), ())
    window, _ = data.draw(windows(stream, ("delta", trigger)))
    agree(stream, window, WindowContext(partial=partial))


# --- which row drives a row out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("evict", POLICIES)
@given(st.data(), clocked())
def test_evicted_at_is_the_first_row_that_evicts(evict: str, data: st.DataObject, stream: my.Stream) -> None:
    window, _ = data.draw(windows(stream, (evict, "count")))
    sequences = sequences_of(stream)
    n = len(sequences)
    ends = np.repeat(sequences.bounds[1:], np.diff(sequences.bounds)).tolist()
    goes = outdone(stream, sequences, window.evict)
    want = [next((j for j in range(i, ends[i]) if goes(i, j)), n) for i in range(n)]
    assert evicted_at(window.evict, sequences).tolist() == want


def outdone(stream: my.Stream, sequences: Sequences, evict: spec.SlidingPolicy) -> Callable[[int, int], bool]:
    """Whether row i is evicted where row j of its key comes in."""
    if isinstance(evict, spec.Count):
        return lambda i, j: j - i >= evict.n
    name = evict.attribute if isinstance(evict, spec.Delta) else stream.order[0]
    amount = evict.amount if isinstance(evict, spec.Delta) else evict.seconds
    kind = stream.kind(name)
    if isinstance(evict, spec.Time) and pa.types.is_floating(kind):
        kind = pa.float64()
    values = reference.ticks_of(sequences.rows.column(name))
    return lambda i, j: reference.rises_by_more(values[j], values[i], amount, kind)
