"""A window on each side of a join: the lots are those of the reference, whole and cut in two.

count(1) join count(2)   left   L1       L2            lots (L1 R1) (L1 R2) | (L2 R1) (L2 R2) | (L2 R3)
                         right     R1 R2    R3
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from references import joins, tumbling
from support.strategies import examples
from wincli.windowing.columns.arrays import Ints, Mask, measures
from wincli.windowing.kinds.context import WindowContext, window_marks
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.enrichment import Pair
from wincli.windowing.language.joins import BOTH, LEFT, RIGHT, SIDE, Join
from wincli.windowing.language.spec import Batched, Count, Delta, Joined, SideWindows, Sliding, Time
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.panes import CLOSED_BY, Panes, reason, rows_shown
from wincli.windowing.rows.sequence import Sequences, build
from wincli.windowing.scan.operator_scan import Emission, already_emitted, snapshot
from wincli.windowing.state.carry import Carry, Registers
from wincli.windowing.state.window_state import merge, restore

KINDS = [pa.int64(), pa.float64(), pa.timestamp("ms")]
COLUMNS = ("k", "t", "a", "u", "i")
Drawn = tuple[Any, int, int | None, str | None, int]
"""Key, clock, an attribute, what is unique, side."""


class Matches:
    """A condition of pairs by the arrival positions of both."""

    def holds(self, rows: pa.RecordBatch, left: Ints, right: Ints) -> Mask:
        assert (left >= 0).all()
        assert (right >= 0).all()
        pos = rows.column("i").to_numpy()
        return np.asarray((pos[left] * 7 + pos[right]) % 3 > 0)


def matches(row: Any) -> bool:
    return (row["i"] * 7 + row["r_i"]) % 3 > 0


def sequences_of(rows: list[Drawn], first: int, kind: pa.DataType, is_one_log: bool) -> Sequences:
    """Put rows of a run in order. ``first``: the position of the first of them."""
    rights = [each[4] & RIGHT > 0 and not is_one_log for each in rows]
    key, t, a, u, side = zip(*rows, strict=True) if rows else ((),) * 5

    def values(column: Any, of_right: bool) -> list[Any]:
        return [v if is_right == of_right else None for v, is_right in zip(column, rights, strict=True)]

    columns = {
        "k": pa.array(key, pa.int64()),
        "t": pa.array(t, pa.int64()).cast(kind),
        "a": pa.array(values(a, False), pa.int64()),
        "u": pa.array(values(u, False), pa.string()),
        "r_a": pa.array(values(a, True), pa.int64()),
        "r_u": pa.array(values(u, True), pa.string()),
        "i": pa.array(np.arange(first, first + len(rows))),
        SIDE: pa.array(side, pa.int8()),
    }
    table = pa.RecordBatch.from_pydict(columns)
    return build(table, np.arange(first, first + len(rows)), ["k"], ["t"], list(columns))


def wanted(rows: list[list[Drawn]], spec: Joined, kind: pa.DataType, is_one_log: bool, **context: Any) -> list[Any]:
    """The lots of the reference; rows of a run arrive right before left, as they are drawn."""
    nights, first = list[Any](), 0
    for night in rows:
        named = [dict(zip(("k", "t", "a", "u", "side"), each, strict=True)) for each in night]
        named = [{**each, "i": first + i} for i, each in enumerate(named)]
        first += len(night)
        if is_one_log:
            nights.append((named, None))
        else:
            nights.append(([r for r in named if r["side"] == LEFT], [r for r in named if r["side"] == RIGHT]))
    has_match = context.pop("has_match")
    emit, at_end = context["emit"], context["at_end"]
    join = joins.Join(
        name="r",
        orders=[("t", "t")],
        keys=[("k", "k")],
        how=spec.join.how,
        left_where=lambda row: row["side"] & LEFT > 0,
        right_where=lambda row: row["side"] & RIGHT > 0,
        match=matches if has_match else lambda _: True,
        left_columns=COLUMNS,
        right_columns=COLUMNS,
        kind=kind,
        at_end=at_end,
    )
    assert isinstance(spec.window, SideWindows)
    both = joins.sides(nights, join)
    return joins.side_windows(both, *(of_reference(each, kind) for each in spec.window.held), emit=emit)


def of_reference(side: Any, kind: pa.DataType) -> Any:
    match side:
        case Count(n):
            return tumbling.Count(n)
        case Delta(name, amount):
            return tumbling.Delta(name, amount, pa.int64())
        case Time(seconds):
            return tumbling.Time(seconds, kind)
    return joins.Clause(side.within, side.every, side.retain, side.unique, side.partition_by)


def panes_of(sequences: Sequences, spec: Joined, has_match: bool, **context: Any) -> Panes:
    condition: Any = Matches() if has_match else None
    seen = WindowContext(match=condition, join=spec.join, **context)
    return kind_of(spec).panes(sequences, window_marks(no_marks(sequences.rows, ["t"])), seen)[0]


def pairs_of(sequences: Sequences, panes: Panes, at: int) -> list[tuple[int, int]]:
    pairs, out = panes.pairs, list[tuple[int, int]]()
    assert pairs is not None
    pos = np.append(sequences.pos, -1)
    for span in range(pairs.bounds[at], pairs.bounds[at + 1]):
        found = pairs.right[pairs.lo[span] : pairs.hi[span]].tolist() or [-1]
        out += [(int(pos[pairs.left[span]]), int(pos[row])) for row in found]
    return out


def told(sequences: Sequences, panes: Panes, kind: pa.DataType) -> list[Any]:
    """What panes say: by key and number, the pairs, why, when, and the bounds."""
    unit, out = tumbling.seconds_per_unit(kind), []
    assert panes.pairs is not None
    sizes = panes.membership.hi - panes.membership.lo  # type: ignore[union-attr]
    for at in range(len(panes)):
        assert panes.start is not None
        assert panes.end is not None
        pairs = pairs_of(sequences, panes, at)
        assert len(pairs) == sizes[at]
        bounds = [number(each[at], unit) for each in (panes.start, panes.end)]
        cause = int(panes.cause[at])
        when = None
        if cause >= 0:
            when = number(sequences.rows.column("t")[cause], unit)
        elif cause == -2:
            assert panes.at is not None
            when = number(panes.at[at], unit)
        why = CLOSED_BY[panes.closed_by[at]]
        assert sequences.keys is not None
        key = sequences.keys.column(0)[int(panes.key[at])].as_py()
        out.append((key, int(panes.number[at]), pairs, why, when if why != "end" else None, *bounds))
    return out


def number(value: Any, unit: Fraction) -> Any:
    if value.as_py() is None:
        return None
    plain = value.value if pa.types.is_timestamp(value.type) else value.as_py()
    per = Fraction(1, {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[value.type.unit]) if unit != 1 else 1
    return Fraction(plain) * per


def lots_told(lots: list[Any]) -> list[Any]:
    out = []
    for lot in lots:
        pairs = [tuple(-1 if each is None else each.i for each in map(place, pair)) for pair in lot.pairs]
        when = lot.at if lot.closed_by != "end" else None
        out.append((lot.key[0], lot.number, pairs, lot.closed_by, when, lot.start, lot.end))
    return sorted(out, key=lambda each: (each[0] is None, each[0], each[1]))


class place:  # noqa: N801 - reads the position out of an event
    def __new__(cls, event: Any) -> Any:
        if event is None:
            return None
        found = object.__new__(cls)
        found.i = (event.left or event.right)["i"]
        return found

    i: int


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 0, 0, 1]),
        st.integers(0, 8),
        st.integers(0, 5),
        st.sampled_from(["x", "y"]),
        st.sampled_from([LEFT, RIGHT]),
    ),
    max_size=14,
)
AMOUNTS = st.sampled_from([Fraction(1), Fraction(2), Fraction(5, 2), Fraction(4)])


@st.composite
def evictions(draw: st.DrawFn) -> Sliding:
    return Sliding(
        draw(
            st.one_of(
                st.integers(0, 4).map(Count),
                AMOUNTS.map(lambda d: Delta("a", d)),
                st.sampled_from([Fraction(0), Fraction(1), Fraction(3)]).map(Time),
            )
        )
    )


@st.composite
def clauses(draw: st.DrawFn) -> Batched:
    within, retain = draw(st.sampled_from([None, None, Fraction(1), Fraction(3)])), draw(st.integers(1, 3))
    every: Any = None
    if draw(st.booleans()):
        every = draw(st.integers(2, 3)) if within is None else draw(st.sampled_from([Fraction(1), Fraction(2)]))
    unique = draw(st.sampled_from([None, None, "u"]))
    parts = draw(st.sampled_from([(), (), ("u",)]))
    if within is not None and draw(st.booleans()):
        retain = None  # type: ignore[assignment]
    return Batched(within, every, retain, False, "a" if unique and parts else unique, parts)


@given(st.data(), ROWS, st.sampled_from(KINDS), st.booleans(), st.booleans())
@examples(1000)
def test_lots_are_those_of_the_reference(
    data: st.DataObject, rows: list[Drawn], kind: pa.DataType, is_batched: bool, has_match: bool
) -> None:
    check(data, [rows], kind, is_batched, has_match, is_one_log=False)


@given(st.data(), ROWS, st.booleans(), st.booleans())
@examples(500)
def test_rows_of_one_log_may_be_on_both_sides(
    data: st.DataObject, rows: list[Drawn], is_batched: bool, has_match: bool
) -> None:
    sides = data.draw(st.lists(st.sampled_from([LEFT, RIGHT, BOTH]), min_size=len(rows), max_size=len(rows)))
    rows = [(*row[:4], side) for row, side in zip(rows, sides, strict=True)]
    check(data, [rows], pa.int64(), is_batched, has_match, is_one_log=True)


def draw_spec(data: st.DataObject, is_batched: bool, path: str | None) -> tuple[Joined, str]:
    sides = clauses() if is_batched else evictions()
    emit = data.draw(st.sampled_from(["entered", "left", "rows", "aggregates"]))
    hows = ["inner", "left", "right", "full", "semi", "anti"]
    how: Any = data.draw(st.sampled_from(hows)) if emit == "entered" and not is_batched else "inner"
    join = Join("r", path, (Pair("k", None),), how=how)
    return Joined(SideWindows(data.draw(sides), data.draw(sides)), join), emit


def arranged(rows: list[Drawn], spec: Joined, is_one_log: bool) -> list[Drawn]:
    """Rows as they arrive: the right before the left; none that validation rejects."""
    shown = {"left": LEFT, "anti": LEFT, "right": RIGHT, "full": BOTH}.get(spec.join.how, 0)
    rows = [row for row in rows if row[0] is not None or row[4] & shown]
    return rows if is_one_log else sorted(rows, key=lambda row: -row[4])


def check(
    data: st.DataObject, runs: list[list[Drawn]], kind: pa.DataType, is_batched: bool, has_match: bool, is_one_log: bool
) -> None:
    spec, emit = draw_spec(data, is_batched, None if is_one_log else "R")
    assert isinstance(spec.window, SideWindows)
    lots = [isinstance(each, Batched) and each.every and not each.within for each in spec.window.held]
    holds_nothing = Count(0) in spec.window.held
    assume(not holds_nothing or emit in {"entered", "left"})  # there is never a product
    assume(not is_one_log or lots[0] == lots[1])  # the reference has two moments for a row that fills a lot of one side
    [rows] = [arranged(rows, spec, is_one_log) for rows in runs]
    unit = tumbling.seconds_per_unit(kind)
    spec = scaled(spec, unit)
    sequences = sequences_of(rows, 0, kind, is_one_log)
    at_end: Any = data.draw(st.sampled_from(["flush", "hold"]))
    panes = panes_of(sequences, spec, has_match, emit=emit, at_end=at_end)
    if at_end == "hold":
        panes = panes.take(np.flatnonzero(panes.closed_by != CLOSED_BY.index("end")))
    lots = wanted([rows], spec, kind, is_one_log, has_match=has_match, emit=emit, at_end=at_end)
    assert told(sequences, panes, kind) == lots_told(lots)


def scaled(spec: Joined, unit: Fraction) -> Joined:
    """Return windows whose amounts of time count units of the clock as one in seconds."""

    def of(side: Any) -> Any:
        if isinstance(side, Sliding):
            return Sliding(Time(side.evict.seconds * unit)) if isinstance(side.evict, Time) else side
        if side.within is None:
            return side
        return replace(side, within=side.within * unit, every=side.every and side.every * unit)

    assert isinstance(spec.window, SideWindows)
    return replace(spec, window=SideWindows(of(spec.window.left), of(spec.window.right)))


def night_of(
    rows: Sequences, carry: Carry, spec: Joined, kind: pa.DataType, has_match: bool, **options: Any
) -> tuple[list[Any], Carry]:
    """Go on from what the nights before left; return what comes out, and what goes on."""
    window, sequences, idle = kind_of(spec), rows, None
    now = max((measures(rows.rows.column("t")).max() if len(rows) else None, carry.registers.clock), key=as_clock)
    clock = None if now is None else now.item() if isinstance(now, np.generic) else now
    condition: Any = Matches() if has_match else None
    context = WindowContext(match=condition, join=spec.join, clock=clock, **options)
    if carry.state is not None:
        sequences, restored, idle = restore(None, carry.state, rows)
        context = replace(context, restored=restored, since=carry.registers.clock)
    signals = window_marks(no_marks(sequences.rows, ["t"]))
    panes = window.panes(sequences, signals, context)[0]
    is_new = np.ones(len(panes), np.bool_)
    if carry.state is not None:
        is_new = ~already_emitted(window, panes, context, sequences)
    is_end = panes.closed_by == reason("end")
    picks = np.flatnonzero(is_new & ~is_end if context.hold else is_new)
    keys, nothing = len(sequences.bounds) - 1, np.zeros(len(sequences), np.bool_)
    shown = rows_shown(panes.take(picks), len(sequences))
    emission = Emission(shown, nothing, np.zeros(keys, np.int64), pa.nulls(keys))
    state = snapshot(window, sequences, signals, context, panes, emission)
    found = told(sequences, panes.take(picks), kind)
    return found, Carry(Registers(clock=clock), state if idle is None else merge(state, idle))


def as_clock(value: Any) -> Any:
    return -np.inf if value is None else value


@given(st.data(), ROWS, st.sampled_from(KINDS), st.booleans(), st.booleans())
@examples(1000)
def test_nights_are_one_run(
    data: st.DataObject, rows: list[Drawn], kind: pa.DataType, is_batched: bool, has_match: bool
) -> None:
    spec, emit = draw_spec(data, is_batched, "R")
    assert isinstance(spec.window, SideWindows)
    assume(Count(0) not in spec.window.held or emit in {"entered", "left"})
    rows = sorted(rows, key=lambda row: row[1])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=1, max_size=2)))
    nights = [rows[low:high] for low, high in pairwise([0, *cuts, len(rows)])]
    nights = [arranged(night, spec, False) for night in nights]
    spec, found, carry, first = scaled(spec, tumbling.seconds_per_unit(kind)), list[Any](), Carry(), 0
    for number_of, night in enumerate(nights):
        at_end = "hold" if number_of + 1 < len(nights) else "flush"
        own = sequences_of(night, first, kind, False)
        lots, carry = night_of(own, carry, spec, kind, has_match, emit=emit, at_end=at_end)
        found, first = found + lots, first + len(night)
    lots = lots_told(wanted(nights, spec, kind, False, has_match=has_match, emit=emit, at_end="flush"))
    assert sorted(without_numbers(found), key=repr) == sorted(without_numbers(lots), key=repr)


def without_numbers(lots: list[Any]) -> list[Any]:
    return [(lot[0], *lot[2:]) for lot in lots]
