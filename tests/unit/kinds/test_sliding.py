"""Sliding windows: the library agrees with the reference for all pairs of policies, and by hand.

delta(a, 2), count(1)     a   0 1 2 3 9 1 4
                              [ 1 2 3 ]         at 3, the first eviction: full
                                      [9]       at 9
                                      [9 1]     at 1
                                      [9 . 4]   at 4: 1 goes, wherever it stands
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import tumbling as reference
from references.sliding import sliding
from support import strategies as my
from support.pane_laws import check, library_table, panes_in, policy, seconds_of
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.context import Signals, WindowContext
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import Memberships, contiguous, gathered
from wincli.windowing.rows.panes import Panes
from wincli.windowing.rows.sequence import Sequences, build, one_batch

POLICIES = ["count", "delta", "time"]
PAIRS = [(evict, trigger) for evict in POLICIES for trigger in [*POLICIES, "when"]]
Drawn = tuple[str, Any]


# --- streams and windows ------------------------------------------------------------------------------------------


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
def policies(draw: st.DrawFn, stream: my.Stream, word: str, period: Fraction, origin: Fraction) -> Drawn:
    """A policy as a spec has it, and as the reference does."""
    amounts = {
        "delta": my.amounts(stream.kind("a")),
        "count": st.sampled_from([1, 1, 2, 3, 5, 2**63 - 1]).map(Fraction),
    }
    clock = stream.kind("clock") if word == "time" else None
    return policy(word, draw(amounts.get(word, st.just(period))), stream.kind("a"), clock, origin)


@st.composite
def windows(draw: st.DrawFn, stream: my.Stream, pair: tuple[str, str]) -> tuple[Drawn, Drawn, Fraction]:
    """A window of a pair of policies, and the origin of its ticks. Ages may be between the steps of the clock."""
    evict, trigger = pair
    period, origin = Fraction(1), None
    if "time" in pair:
        period, origin = draw(my.grids(stream.kind("clock")))
    age = period * draw(
        st.sampled_from([Fraction(n) for n in (1, 1, 2, 3, 7, 10**6)] + [Fraction(1, 2), Fraction(3, 2)])
    )
    is_finest = "time" in pair and pa.types.is_timestamp(stream.kind("clock")) and stream.kind("clock").unit == "ns"
    if trigger == "time" and draw(st.booleans()) and not is_finest:
        period /= 2
    begin = origin or Fraction(0)
    out = draw(policies(stream, evict, age, begin))
    if evict == "count" and draw(st.integers(0, 5)) == 0:
        out = "count(0)", reference.Count(0)
    return out, draw(policies(stream, trigger, period, begin)), begin


AGES_OF_FLOATS = [(("time", trigger), my.FLOATS) for trigger in ("count", "time")]


@pytest.mark.parametrize(("pair", "clocks"), [*((pair, my.MEASURES) for pair in PAIRS), *AGES_OF_FLOATS])
@given(data=st.data())
def test_the_library_is_the_reference(pair: tuple[str, str], clocks: list[pa.DataType], data: st.DataObject) -> None:
    stream = data.draw(clocked(clocks) if "time" in pair else my.streams())
    (out, evict), (look, trigger), origin = data.draw(windows(stream, pair))
    told: dict[str, Any] = {}
    if "time" in pair:
        kind, values = stream.kind("clock"), reference.ticks_of(stream.table["clock"])
        far, zero = st.integers(0, 100).map(lambda n: my.value_of(n, kind)), my.value_of(0, kind)
        if data.draw(st.booleans()):  # where it stands behind the last row
            told["clock"] = max(values, default=zero) + data.draw(far)
        if (values or told) and data.draw(st.booleans()):  # and stood before the first
            told["since"] = min(values, default=zero) - data.draw(far)
    shared: dict[str, Any] = {"partial": data.draw(st.booleans())}
    rows = reference.read(stream.table)
    panes = sliding(rows, evict, trigger, key=stream.key, order=stream.order, **shared, **told)
    told = {name: seconds_of(value, stream.kind("clock")) for name, value in told.items()}
    if "time" not in look:
        told.pop("since", None)
    shared |= {"origin": origin} if "time" in look and origin else {}
    check(stream, f"sliding, {out}, {look}", panes, **shared, **told)


@pytest.mark.parametrize("trigger", ["count", "delta"])
@given(st.data(), my.streams(my.FLOATS), st.booleans())
def test_nan_is_kept_and_protects_later_rows_until_a_fall(
    trigger: str, data: st.DataObject, stream: my.Stream, partial: bool
) -> None:
    """In the kernels: the library rejects such rows before."""
    holes = data.draw(st.lists(st.sampled_from([False, False, False, True]), min_size=len(stream.table)))
    values = [np.nan if hole else a for a, hole in zip(stream.table["a"].to_pylist(), holes, strict=False)]
    table = stream.table.select(["id"]).append_column("a", my.array(values, stream.kind("a")))
    stream = my.Stream(table.append_column("k", my.array([n % 2 for n in range(len(values))], pa.int8())), ("k",), ())
    (out, evict), (look, triggers), _ = data.draw(windows(stream, ("delta", trigger)))
    wanted = sliding(reference.read(stream.table), evict, triggers, key=["k"], partial=partial)
    sequences, panes = kernel_panes(stream, f"sliding, {out}, {look}", partial)
    rows, bounds = gathered(panes.membership, 0, len(panes))
    got = [tuple(sequences.pos[rows[low:high]].tolist()) for low, high in pairwise(bounds.tolist())]
    assert got == [pane.rows for pane in sorted(wanted, key=lambda pane: (pane.key, pane.number)) if pane.key]


def kernel_panes(stream: my.Stream, window: str, partial: bool) -> tuple[Sequences, Panes]:
    rows = one_batch(stream.table)
    sequences = build(rows, np.arange(len(stream.table)), stream.key, stream.order, rows.schema.names)
    signals = Signals(no_marks(rows, []))
    return sequences, kind_of(parse_window(window)).panes(sequences, signals, WindowContext(partial=partial))[0]


# --- by hand ------------------------------------------------------------------------------------------------------

Shown = list[tuple[list[int], float | None]]


def shown(
    window: str, columns: dict[str, Any], key: Sequence[str] = (), order: Sequence[str] = (), **options: Any
) -> Shown:
    """The rows of each pane, counted from 1, with the row or the instant of the tick that caused it; None: the end."""
    size = len(next(iter(columns.values())))
    stream = my.Stream(pa.table({"id": pa.array(range(size), pa.int64()), **columns}), tuple(key), tuple(order))
    found = panes_in(library_table(stream, f"sliding, {window}", **options), key)
    causes = [p.pos if p.pos is None else p.pos + 1 if p.pos >= 0 or p.at is None else float(p.at[0]) for p in found]
    return [([pos + 1 for pos in pane.rows], cause) for pane, cause in zip(found, causes, strict=True)]


SIX = {"a": [1, 2, 3, 4, 5, 6]}
AT: dict[str, Any] = {"at": [0.5, 1.0, 2.0]}
BY_HAND: list[tuple[str, dict[str, Any], dict[str, Any], Shown]] = [
    # not at 2: nothing has been evicted, so the window is not full
    ("count(3), count(2)", SIX, {}, [([2, 3, 4], 4), ([4, 5, 6], 6)]),
    ("count(3), count(4)", SIX, {}, [([2, 3, 4], 4), ([4, 5, 6], None)]),
    ("count(9), count(4)", SIX, {}, []),
    ("count(9), count(4)", SIX, {"partial": True}, [([1, 2, 3, 4], 4), ([1, 2, 3, 4, 5, 6], None)]),
    # before the row that is more than 2 above 0, then above 3
    ("count(3), delta(a, 2)", {"a": range(8)}, {}, [([1, 2, 3], 4), ([4, 5, 6], 7), ([6, 7, 8], None)]),
    # the 1 goes, and the 9 before it stays
    ("delta(a, 2), count(1)", {"a": [0, 1, 2, 3, 9, 1, 4]}, {}, [([2, 3, 4], 4), ([5], 5), ([5, 6], 6), ([5, 7], 7)]),
    ("delta(a, 0), count(3)", {"a": [1, 1, 2, 1, 3, 1]}, {}, [([3], 3), ([5, 6], 6)]),
    # the end is one more trigger where rows came in since the last
    ("time(9), count(3)", AT, {}, [([1, 2, 3], 3)]),
    ("time(9), count(2)", AT, {"clock": 9.5}, [([1, 2], 2), ([1, 2, 3], None)]),
    ("time(9), count(2)", AT, {"clock": 10.5}, [([1, 2], 2), ([3], None)]),
    ("time(9), count(2)", AT, {"clock": 11.5}, [([1, 2], 2)]),
    ("time(9), count(2)", AT, {"clock": 11.5, "partial": True}, [([1, 2], 2), ([], None)]),
    ("time(9), time(1)", AT, {}, [([1], 1.0), ([1, 2], 2.0), ([1, 2, 3], None)]),  # a row on a tick is behind it
    # ticks before the first row
    ("count(1), time(1)", {"at": [2.5]}, {"since": 0.0, "clock": 3.0, "partial": True},
     [([1], 3.0), ([], 1.0), ([], 2.0)]),
    ("count(1), time(1)", {"at": [2.5]}, {"since": 0.0, "clock": 3.0}, [([1], 3.0)]),
    # count(0) keeps no row
    ("count(0), count(1)", AT, {"partial": True}, [([], 1), ([], 2), ([], 3)]),
    ("count(0), delta(at, 1)", AT, {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("window", "columns", "options", "wanted"), BY_HAND)
def test_examples(window: str, columns: dict[str, Any], options: dict[str, Any], wanted: Shown) -> None:
    assert shown(window, columns, order=["at"] if "at" in columns else [], **options) == wanted


def test_thousands_of_keys_of_one_row() -> None:
    n = 5_000
    columns = {"k": list(range(n)), "a": [0] * n}
    alone = [([row], row) for row in range(1, n + 1)]
    at_end = [([row], None) for row in range(1, n + 1)]
    assert shown("count(1), count(1)", columns, key=["k"]) == alone
    assert shown("delta(a, 1), count(1)", columns, key=["k"], partial=True) == alone
    assert shown("delta(a, 1), count(1)", columns, key=["k"]) == []
    assert shown("count(1), delta(a, 1)", columns, key=["k"]) == at_end
    assert shown("time(1), time(1)", columns, key=["k"], order=["a"]) == at_end


def test_gap_of_years_takes_no_time() -> None:
    #   at      0 s     1 s     2 s     3 s   ... years ...   10**9 s      time(2.5), time(1)
    #   row     1                                             2
    #   panes           [1]     [1]                           [2]          at ticks 1, 2 and at the end
    at = {"at": pa.array([0, 10**18], pa.timestamp("ns")), "k": [0, 1]}
    near = [([1], 10.0**9), ([1], 2 * 10.0**9), ([2], None)]
    assert shown("time(2.5), time(1)", at, order=["at"]) == near
    assert len(shown("time(10), time(0.001)", at, order=["at"])) == 10_001
    assert shown("count(2), time(1)", at, key=["k"], order=["at"]) == []  # never full
    for window, options in (("count(1)", {}), ("count(1)", {"partial": True}), ("time(1)", {"partial": True})):
        with pytest.raises(DataError, match="longer trigger period"):
            shown(f"{window}, time(1)", at, order=["at"], **options)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_differences_of_64_bits(kind: pa.DataType) -> None:
    low, high = my.limits(kind)
    a = {"a": pa.array([low, high - 1, high], kind)}
    width = 2**64 - 1
    assert shown(f"delta(a, {width})", a) == []
    assert shown(f"delta(a, {width - 1})", a) == [([2, 3], 3)]
    assert shown(f"delta(a, {width - 2})", a) == [([2], 2), ([2, 3], 3)]
    assert shown(f"count(1), delta(a, {width - 1})", a) == [([2], 3), ([3], None)]


def test_an_amount_that_a_column_cannot_hold_is_never_exceeded() -> None:
    a = {"a": pa.array([-3e38, 3e38], pa.float32())}
    assert shown(f"delta(a, {10**39})", a, partial=True) == [([1], 1), ([1, 2], 2)]


def test_contiguous_is_true_for_keys_whose_panes_are_ranges() -> None:
    """Those of key 1 are not: the 1 leaves before the 9 does."""
    table = pa.table({"k": [0, 0, 0, 0, 1, 1, 1, 1], "a": [0, 1, 3, 5, 0, 9, 1, 4]})
    _, panes = kernel_panes(my.Stream(table, ("k",), ()), "sliding, delta(a, 2), count(1)", True)
    assert isinstance(panes.membership, Memberships)
    assert contiguous(panes.membership).tolist() == [True, False]
