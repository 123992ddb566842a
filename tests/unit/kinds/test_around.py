"""Panes of left rows with the right rows around them: the kind agrees with a search through all pairs.

around(2, 1)   left      L
               right  R RR R
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.columns.arrays import Ints, Mask
from wincli.windowing.kinds.context import Signals, WindowContext, window_marks
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.joins import BOTH, LEFT, RIGHT, SIDE, Around, At, Join
from wincli.windowing.language.spec import Joined
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import gathered
from wincli.windowing.rows.panes import BY_TICK, CLOSED_BY, Panes, reason
from wincli.windowing.rows.sequence import Sequences, build
from wincli.windowing.scan.operator_scan import Emission, already_emitted, snapshot
from wincli.windowing.state.carry import Carry, Registers
from wincli.windowing.state.window_state import WindowState, merge, restore

KINDS = [pa.int64(), pa.int32(), pa.float64(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.decimal128(9, 1)]
HOW = ["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class Row:
    """A row. ``t``: in the unit of the clock. ``row``: its place in order, ``pos``: that of arrival."""

    key: int | None
    t: int
    side: int
    row: int = -1
    pos: int = -1


@dataclass(frozen=True)
class Pane:
    """A pane: its key, until when it is open, the pairs of rows, and its bounds."""

    key: int | None
    at: Fraction
    pairs: list[tuple[int, int]]
    start: Fraction
    end: Fraction
    tags: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Matches:
    """A condition of pairs, by the positions of rows."""

    pos: Ints

    def holds(self, rows: pa.RecordBatch, left: Ints, right: Ints) -> Mask:
        assert (left >= 0).all()
        assert (right >= 0).all()
        return np.array([matches(*pair) for pair in zip(self.pos[left], self.pos[right], strict=True)], np.bool_)


def matches(left: int, right: int) -> bool:
    return (left * 7 + right) % 3 > 0


def sequences_of(rows: list[Row], kind: pa.DataType, has_keys: bool, first: int = 0) -> tuple[Sequences, list[Row]]:
    """Put rows, in the order in which they arrive, in order; also return them in this order.

    ``first``: the position of the first of them.
    """
    if pa.types.is_decimal(kind):
        clock = pa.array([Decimal(each.t) for each in rows], kind)
    else:
        clock = pa.array([each.t for each in rows], pa.int64()).cast(kind)
    columns = {"k": pa.array([each.key for each in rows], pa.int64()), "t": clock}
    columns[SIDE] = pa.array([each.side for each in rows], pa.int8())
    table = pa.RecordBatch.from_pydict(columns)
    found = build(table, first + np.arange(len(rows)), ["k"] if has_keys else [], ["t"], ["k", "t", SIDE])
    ordered = [rows[pos - first] for pos in found.pos.tolist()]
    return found, [replace(each, row=row, pos=int(found.pos[row])) for row, each in enumerate(ordered)]


def reference(rows: list[Row], spec: Joined, unit: Fraction, has_keys: bool, has_match: bool) -> list[Pane]:
    """Every pair is looked at. ``unit``: seconds of one unit of the clock."""
    how = spec.join.how
    panes, met = list[tuple[Any, Pane]](), set[int]()
    low, high = reach(spec.window)
    for one in (each for each in rows if each.side & LEFT):
        meets = [r for r in rows if r.side & RIGHT and (not has_keys or (r.key == one.key is not None))]
        found, t = partners(one, meets, spec, unit, has_match), one.t * unit
        met |= {other for other, _ in found}
        pairs = [(one.row, other) for other, _ in found]
        if how == "semi":
            pairs = [(one.row, -1)] if found else []
        elif (how in {"left", "full"} and not found) or how == "anti":
            pairs = [] if found else [(one.row, -1)]
        if pairs:
            at, tags = t + max(high, Fraction(0)), [tag for _, tag in found if tag is not None]
            panes.append(((at, 0, one.row), Pane(one.key, at, pairs, t + low, t + high, tags)))
    for other in (each for each in rows if each.side & RIGHT and how in {"right", "full"}):
        if other.row not in met:
            t = other.t * unit
            at = t + max(-low, Fraction(0))
            panes.append(((at, 1, other.row), Pane(other.key, at, [(-1, other.row)], t - high, t - low)))
    return [pane for _, pane in sorted(panes, key=lambda each: each[0])]


def partners(one: Row, meets: list[Row], spec: Joined, unit: Fraction, has_match: bool) -> list[tuple[int, int | None]]:
    """The right rows of a left row, each with the number of its offset; -1: ``at`` finds none, and says so."""
    window, t = spec.window, one.t * unit
    if isinstance(window, Around):
        inside = [r for r in meets if t - window.before <= r.t * unit <= t + window.after]
        before = [r for r in meets if r.t * unit <= t - window.before][-1:]
        if window.prevailing and before and before[0] not in inside:
            inside = before + inside
        return [(r.row, None) for r in inside if not has_match or matches(one.pos, r.pos)]
    assert isinstance(window, At)
    found = list[tuple[int, int | None]]()
    for tag, offset in enumerate(window.offsets):
        limit = t + offset
        seen = [r for r in meets if r.t * unit < limit or (r.t * unit == limit and not spec.join.strict)]
        is_near = bool(seen) and (window.within is None or limit - seen[-1].t * unit <= window.within)
        if is_near and (not has_match or matches(one.pos, seen[-1].pos)):
            found.append((seen[-1].row, tag))
        elif spec.join.how == "left":
            found.append((-1, tag))
    return found


def reach(window: Any) -> tuple[Fraction, Fraction]:
    if isinstance(window, Around):
        return -window.before, window.after
    return min(window.offsets), max(window.offsets)


def panes_of(sequences: Sequences, spec: Joined, has_match: bool = False, **context: Any) -> Panes:
    condition: Any = Matches(sequences.pos) if has_match else None
    panes, _ = kind_of(spec).panes(sequences, signals_of(sequences), WindowContext(match=condition, **context))
    return panes


def signals_of(sequences: Sequences) -> Signals:
    return window_marks(no_marks(sequences.rows, ["t"]))


def pairs_of(panes: Panes, at: int) -> tuple[list[tuple[int, int]], list[int]]:
    pairs, out, tags = panes.pairs, list[tuple[int, int]](), list[int]()
    assert pairs is not None
    for span in range(pairs.bounds[at], pairs.bounds[at + 1]):
        found = pairs.right[pairs.lo[span] : pairs.hi[span]].tolist() or [-1]
        out += [(int(pairs.left[span]), row) for row in found]
        tags += [] if pairs.tag is None else [int(pairs.tag[span])]
    return out, tags


ROWS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 0, 1, None]), st.integers(-3, 12), st.sampled_from([LEFT, RIGHT, BOTH])),
    min_size=4,
    max_size=16,
)


@st.composite
def windows(draw: st.DrawFn, how: str) -> Any:
    amounts = st.sampled_from([0, 1, 2, 3, 5, 7, -1, -3]).map(lambda n: Fraction(n, draw(st.sampled_from([1, 1, 2]))))
    if how in {"inner", "left"} and draw(st.booleans()):
        offsets = draw(st.lists(amounts, min_size=1, max_size=3))
        return At(tuple(offsets), draw(st.sampled_from([None, Fraction(0), Fraction(2), Fraction(7, 2)])))
    before, after = draw(amounts), draw(amounts)
    if before + after < 0:
        before, after = -after, -before
    return Around(before, after, how not in {"right", "full"} and draw(st.booleans()))


@given(st.data(), ROWS, st.sampled_from(HOW), st.sampled_from(KINDS), st.booleans())
@examples(400)
def test_panes_are_those_of_a_search_through_all_pairs(
    data: st.DataObject, drawn: list[Any], how: Any, kind: pa.DataType, has_keys: bool
) -> None:
    rows = [Row(*each) for each in drawn]
    spec = Joined(data.draw(windows(how)), Join("r", "R", how=how, strict=data.draw(st.booleans())))
    has_match = data.draw(st.booleans())
    unit = Fraction(1, {"timestamp[ms]": 1000, "timestamp[us, tz=UTC]": 1_000_000}.get(str(kind), 1))
    scaled = scale(spec, unit)
    sequences, ordered = sequences_of(rows, kind, has_keys)
    ahead = data.draw(st.integers(0, 9))
    latest = max((each.t for each in rows), default=0) + ahead
    per_unit = 10 if pa.types.is_decimal(kind) else 1
    clock = float(latest) if pa.types.is_floating(kind) else latest * per_unit
    panes = panes_of(sequences, scaled, has_match, clock=clock)
    wanted = reference(ordered, scaled, unit, has_keys, has_match)
    by_key = sorted({each.key for each in ordered}, key=lambda key: (key is None, key)) if has_keys else [0]
    wanted = [each for key in by_key for each in wanted if not has_keys or each.key == key]
    assert len(panes) == len(wanted)
    assert panes.start is not None
    assert panes.end is not None
    assert panes.at is not None
    numbers = dict[int, int]()
    for at, each in enumerate(wanted):
        key = by_key.index(each.key) if has_keys else 0
        assert panes.key[at] == key
        assert panes.number[at] == numbers.get(key, 0)
        numbers[key] = numbers.get(key, 0) + 1
        assert pairs_of(panes, at) == (each.pairs, each.tags)
        is_complete = each.at < latest * unit
        assert CLOSED_BY[panes.closed_by[at]] == ("time" if is_complete else "end")
        assert (panes.cause[at] == BY_TICK) == is_complete
        times = [seconds(array[at]) for array in (panes.start, panes.end, panes.at)]
        assert times == [each.start, each.end, each.at]
    membership = panes.membership
    counts = [len(gathered(membership, at, at + 1)[0]) for at in range(len(panes))] if len(panes) else []
    if getattr(membership, "row", None) is not None:
        assert counts == [sum(1 for pair in each.pairs if pair[1] >= 0) for each in wanted]
        assert how in {"inner", "left"}
        assert [gathered(membership, at, at + 1)[0].tolist() for at in range(len(panes))] == [
            [other for _, other in each.pairs if other >= 0] for each in wanted
        ]
    else:
        assert (membership.hi - membership.lo).tolist() == [len(each.pairs) for each in wanted]  # type: ignore[union-attr]


def by_position(panes: Panes, sequences: Sequences, at: int) -> Any:
    """A pane as every run calls it: its key, its instant, what brought it out, the positions of its rows."""
    assert panes.at is not None
    assert sequences.keys is not None
    pairs, tags = pairs_of(panes, at)
    names = [tuple(int(sequences.pos[row]) if row >= 0 else -1 for row in pair) for pair in pairs]
    key = str(sequences.keys.column("k")[int(panes.key[at])])
    return key, panes.at[at].as_py(), CLOSED_BY[panes.closed_by[at]], names, tags


def came_out(panes: Panes, picks: Ints, sequences: Sequences) -> Mask:
    """Which rows some of the panes show."""
    shown = np.zeros(len(sequences), np.bool_)
    for at in picks.tolist():
        shown[[row for pair in pairs_of(panes, at)[0] for row in pair if row >= 0]] = True
    return shown


def one_night(
    spec: Joined, new: Sequences, before: Carry, context: WindowContext, has_match: bool
) -> tuple[list[Any], Carry]:
    """The panes that come out of new rows behind a carry, and what goes on behind them."""
    kind, sequences = kind_of(spec), new
    idle: WindowState | None = None
    if before.state is not None:
        sequences, restored, idle = restore(None, before.state, new)
        context = replace(context, restored=restored, since=before.registers.clock)
    matching: Any = Matches(sequences.pos) if has_match else None
    context, signals = replace(context, match=matching), signals_of(sequences)
    panes, _ = kind.panes(sequences, signals, context)
    is_new = np.ones(len(panes), np.bool_)
    if before.state is not None:
        is_new = ~already_emitted(kind, panes, context, sequences)
    picks = np.flatnonzero(is_new & (panes.closed_by != reason("end")) if context.hold else is_new)
    keys, nothing = len(sequences.bounds) - 1, np.zeros(len(sequences), np.bool_)
    emission = Emission(came_out(panes, picks, sequences), nothing, np.zeros(keys, np.int64), pa.nulls(keys))
    state = snapshot(kind, sequences, signals, context, panes, emission)
    state = state if idle is None else merge(state, idle)
    found = [by_position(panes, sequences, at) for at in picks.tolist()]
    return found, Carry(Registers(clock=context.clock), state)


@given(st.data(), ROWS, st.sampled_from(HOW), st.booleans())
@examples(3000)
def test_nights_are_one_run(data: st.DataObject, drawn: list[Any], how: Any, is_one_log: bool) -> None:
    rows = [Row(*each) if is_one_log else Row(*each[:2], min(each[2], RIGHT)) for each in drawn]
    rows.sort(key=lambda each: each.t if is_one_log else (each.t, each.side != RIGHT))
    spec = Joined(data.draw(windows(how)), Join("r", None if is_one_log else "R", how=how))
    has_match = data.draw(st.booleans())
    every, _ = sequences_of(rows, pa.int64(), True)
    wanted = panes_of(every, spec, has_match)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=1, max_size=5))), len(rows)]
    found, carry = list[Any](), Carry()
    for first, stop in pairwise(cuts):
        new, _ = sequences_of(rows[first:stop], pa.int64(), True, first)
        clock = rows[stop - 1].t if stop else None
        at_end: Any = "flush" if stop == len(rows) else "hold"
        out, carry = one_night(spec, new, carry, WindowContext(clock=clock, at_end=at_end), has_match)
        found += out
    found.sort(key=lambda each: each[0])
    expected = [by_position(wanted, every, at) for at in range(len(wanted))]
    assert found == sorted(expected, key=lambda each: each[0])


def scale(spec: Joined, unit: Fraction) -> Joined:
    """Return a window whose amounts count units of the clock as one in seconds."""
    window = spec.window
    if isinstance(window, Around):
        return Joined(Around(window.before * unit, window.after * unit, window.prevailing), spec.join)
    assert isinstance(window, At)
    within = None if window.within is None else window.within * unit
    return Joined(At(tuple(each * unit for each in window.offsets), within), spec.join)


def seconds(value: Any) -> Fraction:
    if pa.types.is_timestamp(value.type):
        return Fraction(value.value, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[value.type.unit])
    return Fraction(value.as_py())


@pytest.mark.parametrize(
    ("window", "left", "right", "wanted"),
    [
        (Around(Fraction(2), Fraction(1)), [1, 4, 8], [1, 2, 3, 5, 9], [[1, 2], [2, 3, 5], [9]]),
        (Around(Fraction(1), Fraction(1), True), [5], [1, 2, 6], [[2, 6]]),
        (Around(Fraction(1), Fraction(1), True), [5], [4, 4, 6], [[4, 4, 6]]),
        (Around(Fraction(-1), Fraction(3)), [1, 2], [1, 2, 3, 5], [[2, 3], [3, 5]]),
        (At((Fraction(-1), Fraction(0), Fraction(2))), [4], [3, 4, 5, 9], [[3, 4, 5]]),
    ],
)
def test_examples(window: Any, left: list[int], right: list[int], wanted: list[list[int]]) -> None:
    rows = [Row(0, t, RIGHT) for t in right] + [Row(0, t, LEFT) for t in left]
    sequences, ordered = sequences_of(rows, pa.int64(), True)
    panes = panes_of(sequences, Joined(window, Join("r", "R")))
    assert [[ordered[other].t for _, other in pairs_of(panes, at)[0]] for at in range(len(panes))] == wanted
    assert panes.turn is not None
    assert panes.turn.tolist() == [2] * len(wanted), "panes come behind the rows of their instant"


NOW = 10


@pytest.mark.parametrize(
    ("window", "how", "path", "left", "right"),
    [
        (Around(Fraction(3), Fraction(0)), "inner", "R", [10], [7, 8, 9, 10]),
        (Around(Fraction(3), Fraction(2)), "inner", "R", [8, 9, 10], [5, 6, 7, 8, 9, 10]),
        (Around(Fraction(3), Fraction(0), True), "left", "R", [10], [6, 7, 8, 9, 10]),
        (Around(Fraction(-2), Fraction(5)), "inner", "R", [5, 6, 7, 8, 9, 10], [7, 8, 9, 10]),
        # a bit says whether right rows had a partner; in one log their left rows do
        (Around(Fraction(3), Fraction(-3)), "full", "R", [10], [7, 8, 9, 10]),
        (Around(Fraction(3), Fraction(-3)), "full", None, [10], [7, 8, 9, 10]),
        (Around(Fraction(3), Fraction(-1)), "right", None, [8, 9, 10], [7, 8, 9, 10]),
        (At((Fraction(0),)), "left", "R", [10], [9, 10]),
        (At((Fraction(-4), Fraction(1))), "left", "R", [9, 10], [4, 5, 6, 7, 8, 9, 10]),
        (At((Fraction(0),), Fraction(1)), "left", "R", [10], [9, 10]),
    ],
)
def test_the_state_keeps_what_rows_to_come_can_still_need(
    window: Any, how: Any, path: str | None, left: list[int], right: list[int]
) -> None:
    rows = [Row(0, t, side) for t in range(11) for side in (RIGHT, LEFT)]
    sequences, ordered = sequences_of(rows, pa.int64(), True)
    kind = kind_of(Joined(window, Join("r", path, how=how)))
    kept = kind.retained_rows(sequences, WindowContext(clock=NOW), None, None)
    for side, wanted in ((LEFT, left), (RIGHT, right)):
        assert [each.t for each in ordered if each.side == side and kept[each.row]] == wanted


def test_the_newest_row_is_not_kept_once_it_is_too_old_for_every_row_to_come() -> None:
    rows = [Row(0, 1, RIGHT), Row(1, 10, LEFT)]
    sequences, _ = sequences_of(rows, pa.int64(), True)
    for within, wanted in ((Fraction(8), False), (Fraction(9), True), (None, True)):
        kind = kind_of(Joined(At((Fraction(0),), within), Join("r", "R")))
        assert kind.retained_rows(sequences, WindowContext(clock=NOW), None, None).tolist() == [wanted, True]


@pytest.mark.parametrize("path", [None, "R"])
def test_a_right_row_that_had_a_partner_in_an_earlier_night_is_not_alone(path: str | None) -> None:
    #   right  R |   |        R meets L in the first night, and may meet others until 8
    #   left     L   | L   L
    rows = [Row(0, 3, RIGHT), Row(0, 5, LEFT), Row(1, 6, LEFT), Row(1, 20, LEFT)]
    spec, found, carry = Joined(Around(Fraction(5), Fraction(0)), Join("r", path, how="full")), list[Any](), Carry()
    for first, stop in ((0, 2), (2, 3), (3, 4)):
        new, _ = sequences_of(rows[first:stop], pa.int64(), True, first)
        out, carry = one_night(spec, new, carry, WindowContext(clock=rows[stop - 1].t, at_end="hold"), False)
        found += out
    assert [each[:4] for each in found] == [("0", 5, "time", [(1, 0)]), ("1", 6, "time", [(2, -1)])]
