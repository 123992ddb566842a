"""Panes of left rows with the right rows around them: the kind agrees with a search through all pairs.

around(2, 1)   left      L
               right  R RR R
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.columns.arrays import Ints, Mask
from wincli.windowing.kinds.context import WindowContext, window_marks
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.joins import BOTH, LEFT, RIGHT, SIDE, Around, At, Join, Joined
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import gathered
from wincli.windowing.rows.panes import BY_TICK, CLOSED_BY, Panes
from wincli.windowing.rows.sequence import Sequences, build

KINDS = [pa.int64(), pa.int32(), pa.float64(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.decimal128(9, 1)]
HOW = ["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class Row:
    """A row of one log, or of two. ``t``: in the unit of the clock."""

    key: int | None
    t: int
    side: int
    row: int = -1


@dataclass(frozen=True)
class Pane:
    """A pane: its key, until when it is open, the pairs of rows, and its bounds."""

    key: int | None
    at: Fraction
    pairs: list[tuple[int, int]]
    start: Fraction
    end: Fraction
    tags: list[int] = field(default_factory=list)


class Matches:
    """A condition of pairs: both rows together are even."""

    def holds(self, rows: pa.RecordBatch, left: Ints, right: Ints) -> Mask:
        assert len(left) == len(right)
        assert (left >= 0).all()
        assert (right >= 0).all()
        return np.asarray((left * 7 + right) % 3 > 0)


def matches(left: int, right: int) -> bool:
    return (left * 7 + right) % 3 > 0


def sequences_of(rows: list[Row], kind: pa.DataType, has_keys: bool) -> tuple[Sequences, list[Row]]:
    """Put rows, in the order in which they arrive, in order; also return them in this order."""
    if pa.types.is_decimal(kind):
        clock = pa.array([Decimal(each.t) for each in rows], kind)
    else:
        clock = pa.array([each.t for each in rows], pa.int64()).cast(kind)
    columns = {"k": pa.array([each.key for each in rows], pa.int64()), "t": clock}
    columns[SIDE] = pa.array([each.side for each in rows], pa.int8())
    table = pa.RecordBatch.from_pydict(columns)
    found = build(table, np.arange(len(rows)), ["k"] if has_keys else [], ["t"], ["k", "t", SIDE])
    return found, [Row(rows[pos].key, rows[pos].t, rows[pos].side, row) for row, pos in enumerate(found.pos.tolist())]


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
        return [(r.row, None) for r in inside if not has_match or matches(one.row, r.row)]
    assert isinstance(window, At)
    found = list[tuple[int, int | None]]()
    for tag, offset in enumerate(window.offsets):
        limit = t + offset
        seen = [r for r in meets if r.t * unit < limit or (r.t * unit == limit and not spec.join.strict)]
        newest = seen[-1].row if seen else -1
        if seen and window.within is not None and limit - seen[-1].t * unit > window.within:
            newest = -1
        if newest >= 0 and has_match and not matches(one.row, newest):
            newest = -1
        if newest >= 0 or spec.join.how == "left":
            found.append((newest, tag))
    return found


def reach(window: Any) -> tuple[Fraction, Fraction]:
    if isinstance(window, Around):
        return -window.before, window.after
    return min(window.offsets), max(window.offsets)


def panes_of(
    sequences: Sequences, spec: Joined, clock: int | None = None, has_match: bool = False, **context: Any
) -> Panes:
    condition: Any = Matches() if has_match else None
    seen = WindowContext(clock=clock, match=condition, **context)
    panes, _ = kind_of(spec).panes(sequences, window_marks(no_marks(sequences.rows, ["t"])), seen)
    return panes


def pairs_of(panes: Panes, at: int) -> tuple[list[tuple[int, int]], list[int]]:
    pairs, out, tags = panes.pairs, list[tuple[int, int]](), list[int]()
    assert pairs is not None
    for span in range(pairs.bounds[at], pairs.bounds[at + 1]):
        found = pairs.right[pairs.lo[span] : pairs.hi[span]].tolist() or [-1]
        out += [(int(pairs.left[span]), row) for row in found]
        tags += [] if pairs.tag is None else [int(pairs.tag[span])]
    return out, tags


ROWS = st.lists(
    st.tuples(st.sampled_from([None, 0, 0, 1, 1, 2]), st.integers(-3, 12), st.sampled_from([LEFT, RIGHT, BOTH])),
    max_size=14,
)


@st.composite
def windows(draw: st.DrawFn, how: str) -> Any:
    amounts = st.integers(-8, 8).map(lambda n: Fraction(n, draw(st.sampled_from([1, 1, 2]))))
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
    panes = panes_of(sequences, scaled, clock, has_match)
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
