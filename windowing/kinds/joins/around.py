"""Panes of left rows with the right rows around them in time: ``around`` and ``at`` (semantics section 16).

around(2, 1)   left      L        L is at 4: of the right rows from 2 to 5 it meets those of its key
               right  R RR R
at(0, 2)       left      L        and here the newest up to 4, and the newest up to 6
               right  R RR R

Rows of both sides stand in one sequence. In a key the intervals of left rows begin and end in the order of these, so
two cursors over the right rows find them all. No pair is made here, unless a condition is to be asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.interval_grid import clock_values, now_as_measure
from ...clock.tick_grid import Grid, make_grid
from ...columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ...columns.radix_sort import changes
from ...language.joins import LEFT, RIGHT, SIDE, Around, At
from ...language.spec import Joined
from ...rows.marks import Marks
from ...rows.membership import Ranges, covered, first_above, first_from, ranges
from ...rows.pairs import Pairs
from ...rows.panes import Panes, reason
from ...rows.sequence import Sequences
from ...support.jit import kernel
from ..context import Signals, WindowContext
from ..contract import WindowKind
from ..facts import Fact, KeyPane, KeyPanes, amount_text, exact_text
from ..key_lifetimes import Lifetimes
from ..needs import Needs, PaneTimes
from ..tumbling.clock_policies import causes_by_clock
from .matching import SideRows, Spans, matching, meets, rows_of_side
from .partners import how_fact, matches, partners, side_name


@kernel
def _places(bounds: Ints, wanted: Any, among_bounds: Ints, among: Any, is_above: bool) -> Ints:
    """Return the place of the first of ``among`` that is not smaller than each value, or that is above, int64 (n,).

    ``bounds``, ``among_bounds``: int64 (K+1,), those of each key. Both ascend in a key; the end of the key: none is.
    """
    out = np.empty(len(wanted), np.int64)
    for k in range(len(bounds) - 1):
        at, end = among_bounds[k], among_bounds[k + 1]
        # invariant: all before ``at`` are too small for this value, and so for those after it
        for i in range(bounds[k], bounds[k + 1]):
            at = first_above(among, at, end, wanted[i]) if is_above else first_from(among, at, end, wanted[i])
            out[i] = at
    return out


@kernel
def _newest(
    bounds: Ints, limit: Any, oldest: Any, among_bounds: Ints, among: Any, lonely: Mask, is_above: bool
) -> tuple[Ints, Ints]:
    """Return the range of the newest of ``among`` up to each limit, int64 (n,): one, or none where it is too old.

    ``oldest``: (n,), how old it may be; (0,): any age. ``lonely``: bool (K,), the keys that find none.
    """
    lo, hi = np.empty(len(limit), np.int64), _places(bounds, limit, among_bounds, among, is_above)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            is_there = hi[i] > among_bounds[k] and not lonely[k]
            lo[i] = hi[i] - (is_there and (len(oldest) == 0 or among[hi[i] - 1] >= oldest[i]))
    return lo, hi


@dataclass(frozen=True, slots=True)
class _Side(SideRows):
    """The rows of one side. ``clock``: (n,), instants of the grid."""

    clock: Measures


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both sides of some sequences.

    ``grid``: whose instants the clocks are. ``now``: the current time of the clock, an instant.
    ``lonely``: bool (K,), the keys that equal nothing, so that their rows meet none.
    """

    left: _Side
    right: _Side
    grid: Grid
    now: Any
    lonely: Mask

    def later(self, instants: Measures, seconds: Fraction) -> Measures:
        """Return instants plus ``seconds``."""
        return self.grid.later(instants, seconds) if seconds else instants


def _oldest(side: _Side, is_open: Mask, now: Any) -> Measures:
    """Return the oldest open row of each key, or ``now`` where that is older, instants (K,)."""
    out = np.full(len(side.bounds) - 1, now, side.clock.dtype)
    filled = np.flatnonzero(np.diff(side.bounds))
    if len(filled):
        open_at = np.where(is_open, side.clock, out[0])
        out[filled] = np.minimum(out[filled], np.minimum.reduceat(open_at, side.bounds[filled]))
    return out


@dataclass(frozen=True, slots=True)
class AroundKind(WindowKind):
    """A pane for each left row.

    ``before``, ``after``: in seconds, how far its right rows reach: `Around` as it says; `At` from its smallest to its
        largest offset, and to the newest row before.
    """

    spec: Joined
    needs: Needs
    before: Fraction
    after: Fraction

    def _grid(self, clock: pa.DataType) -> Grid:
        window = self.spec.window
        spans: tuple[Fraction, ...] = (self.before, self.after)
        if isinstance(window, At):
            spans = (*window.offsets, *(offset - (window.within or 0) for offset in window.offsets))
        return make_grid(clock, Fraction(0), Fraction(0), *spans)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        grid = self._grid(clock)
        return PaneTimes(grid.type, grid.type, grid)

    def _sides(self, sequences: Sequences, of_clock: ClockValue | None) -> _Sides:
        name = sequences.order[0]
        column = combined(sequences.rows.column(name))
        values, grid = clock_values(column, name), self._grid(column.type)
        clock = grid.instants(values)
        now = grid.instants(now_as_measure(values, of_clock))[0]
        side = combined(sequences.rows.column(SIDE)).to_numpy()
        found = (rows_of_side(sequences, (side & each) > 0) for each in (LEFT, RIGHT))
        left, right = (_Side(each.row, each.bounds, each.key, clock[each.row]) for each in found)
        return _Sides(left, right, grid, now, ~meets(sequences))

    # --- the right rows of each left row

    def _around(self, sides: _Sides, window: Around) -> Spans:
        left, right = sides.left, sides.right
        start = sides.later(left.clock, -window.before)
        lo = _places(left.bounds, start, right.bounds, right.clock, False)
        hi = _places(left.bounds, sides.later(left.clock, window.after), right.bounds, right.clock, True)
        if window.prevailing:
            at_start = lo < right.bounds[1:][left.key]
            at_start[at_start] = right.clock[lo[at_start]] == start[at_start]
            lo -= ~at_start & (lo > right.bounds[:-1][left.key])
        if sides.lonely.any():
            lo = np.where(sides.lonely[left.key], hi, lo)
        return Spans(np.arange(len(lo)), left.row, lo, hi)

    def _at(self, sides: _Sides, window: At) -> Spans:
        left, right, is_above = sides.left, sides.right, not self.spec.join.strict
        found = list[tuple[Ints, Ints]]()
        for offset in window.offsets:
            limit, oldest = sides.later(left.clock, offset), left.clock[:0]
            if window.within is not None:
                oldest = sides.later(left.clock, offset - window.within)
            found.append(_newest(left.bounds, limit, oldest, right.bounds, right.clock, sides.lonely, is_above))
        every = np.arange(len(left.row))
        if len(found) == 1:
            return Spans(every, left.row, *found[0])
        lo, hi = (np.stack(each, axis=1).ravel() for each in zip(*found, strict=True))
        owner, tag = np.repeat(every, len(found)), np.tile(np.arange(len(found)), len(left.row))
        return Spans(owner, left.row[owner], lo, hi, tag)

    def _spans(self, sequences: Sequences, sides: _Sides, context: WindowContext) -> Spans:
        """Return the spans of each left row, at least one."""
        window = self.spec.window
        assert isinstance(window, Around | At)
        found = self._around(sides, window) if isinstance(window, Around) else self._at(sides, window)
        return matching(context.match, sequences.rows, found, sides.right.row)

    # --- the panes

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes of left rows in their order, and of right rows without a partner, by their instants."""
        sides, how = self._sides(sequences, context.clock), self.spec.join.how
        left, right, every = sides.left, sides.right, self._spans(sequences, sides, context)
        spans = every.coming_out(how)
        first = np.flatnonzero(changes(spans.of))
        owner = spans.of[first]
        key, at = left.key[owner], sides.later(left.clock, max(self.after, Fraction(0)))[owner]
        bounds, clock = np.append(first, len(spans.of)), left.clock[owner]
        low, high = sides.later(clock, -self.before), sides.later(clock, self.after)
        pairs = Pairs(bounds, spans.left, spans.lo, spans.hi, right.row, spans.tag)
        if how in {"right", "full"}:
            # right rows without a partner come out at an instant of their own, behind the left rows of that instant
            alone, keys = self._alone(sides, every, context), np.arange(len(sides.lonely) + 1)
            of, clock = right.key[alone], right.clock[alone]
            comes = sides.later(clock, max(self.before, Fraction(0)))
            behind = _places(np.searchsorted(of, keys), comes, np.searchsorted(key, keys), at, True)
            turn = np.insert(np.arange(len(key)), behind, len(key) + np.arange(len(alone)))
            pairs = pairs.with_alone(np.full(len(alone), -1), alone, alone + 1).chosen(turn)
            ends = sides.later(clock, -self.after), sides.later(clock, self.before)
            both = ((key, of), (at, comes), (low, ends[0]), (high, ends[1]))
            key, at, low, high = (np.append(own, more)[turn] for own, more in both)
        cause, closed_by = causes_by_clock(at < sides.now, np.int8(reason("time")), np.int8(reason("end")))
        counts = np.bincount(key, minlength=len(sequences.bounds) - 1)
        number = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
        start, end, instant = (sides.grid.to_arrow(each) for each in (low, high, at))
        rows = self._membership(sides, key, pairs, context)
        last = np.full(len(key), 2, np.int8)  # behind the rows of the instant
        panes = Panes(key, number, rows, cause, closed_by, start, end, instant, pairs=pairs, turn=last)
        return panes, signals.marks

    def _membership(self, sides: _Sides, key: Ints, pairs: Pairs, context: WindowContext) -> Ranges:
        """Return the right rows of each pane, where these are ranges; else ranges of as many."""
        is_range = isinstance(self.spec.window, Around) and context.match is None
        if is_range and self.spec.join.how in {"inner", "left"}:
            return Ranges(pairs.lo, pairs.hi, sides.right.bounds[key], False, pairs.right)
        return ranges(pairs.ends[:-1], pairs.ends[1:])

    def _alone(self, sides: _Sides, spans: Spans, context: WindowContext) -> Ints:
        """Return which of the right rows have no partner and had none, int64."""
        met = covered(spans.lo, spans.hi, len(sides.right.row))
        if context.restored is not None and self.spec.join.path is not None:
            met |= context.restored.row_state.shown[sides.right.row]
        return np.flatnonzero(~met)

    # --- from run to run

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the left rows whose panes are open, and the right rows that these or left rows to come may meet.

        Where right rows come out without a partner, also those that still may have one. With a right side of its own
        a bit of each says whether it had one; rows of one log may be on both sides, so the left rows say it.
        """
        sides, how, nothing = self._sides(sequences, context.clock), self.spec.join.how, Fraction(0)
        left, right, now = sides.left, sides.right, sides.now
        is_open = sides.later(left.clock, max(self.after, nothing)) >= now
        needed_from = sides.later(_oldest(left, is_open, now), -self.before)
        needed = right.clock >= needed_from[right.key]
        window = self.spec.window
        if isinstance(window, At) or (isinstance(window, Around) and window.prevailing):
            before = _places(np.arange(len(needed_from) + 1), needed_from, right.bounds, right.clock, False)
            before = before[before > right.bounds[:-1]] - 1
            if isinstance(window, At) and window.within is not None:
                young = sides.later(needed_from, -window.within)[right.key[before]]
                before = before[right.clock[before] >= young]
            needed[before] = True
        needed &= ~sides.lonely[right.key]
        if how in {"right", "full"}:
            undecided = sides.later(right.clock, max(self.before, nothing)) >= now
            needed |= undecided
            if self.spec.join.path is None:
                is_open |= left.clock >= sides.later(_oldest(right, undecided, now), -self.after)[left.key]
        out = np.zeros(len(sequences), np.bool_)
        out[left.row[is_open]] = True
        out[right.row[needed]] = True
        return out

    # --- why a row has these partners, or none

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield which row a pane is of, which rows it meets, what brought it out, and which rows came close."""
        sides, window, pairs = self._sides(pane.sequences, pane.context.clock), self.spec.window, pane.panes.pairs
        assert pairs is not None
        span = int(pairs.bounds[pane.at])
        is_left = bool(pairs.left[span] >= 0)
        row = int(pairs.left[span] if is_left else pairs.right[pairs.lo[span]])
        if isinstance(window, Around):
            found = self._partners(pane, sides, row, is_left)
            yield replace(found, kind="opened", text="it is of " + found.text.replace(" has ", ", which has ", 1))
        else:
            yield Fact("opened", f"it is of {pane.name(row)} of the left", pane.pos(row))
        if pane.closed_by == "end":
            yield pane.by_end()
        else:
            text = f"the clock passed {pane.head_text('_at')}: no row to come can be a partner of it"
            yield Fact("closed", text, None, pane.closed_by)
        if isinstance(window, At):
            yield from self._offsets(pane, sides, window, row)
        else:
            yield from self._close(pane, sides, row, is_left)

    def _inside(self, sides: _Sides, row: int, is_left: bool) -> tuple[Ints, Measures]:
        """Return the rows of the other side that may be partners of a row of a key, and from when to when they are."""
        own, other = (sides.left, sides.right) if is_left else (sides.right, sides.left)
        at = own.clock[np.searchsorted(own.row, row)][None]
        reach = (self.before, self.after) if is_left else (self.after, self.before)
        span = np.concatenate([sides.later(at, -reach[0]), sides.later(at, reach[1])])
        low, high = np.searchsorted(other.clock, span[0]), np.searchsorted(other.clock, span[1], side="right")
        return other.row[: 0 if sides.lonely.any() else high][low:], span

    def _partners(self, panes: KeyPanes, sides: _Sides, row: int, is_left: bool) -> Fact:
        inside, span = self._inside(sides, row, is_left)
        start, end = panes.texts(sides.grid.to_arrow(span)).to_pylist()
        found = partners(panes, row, is_left, inside, f"of its key from {start} to {end}")
        for before in self._prevailing(panes, sides, row, is_left).tolist():
            text = f"{found.text}, and {panes.name(before)}, the newest before"
            found = replace(
                found, text=text, numbers={**found.numbers, "partners": str(int(found.numbers["partners"]) + 1)}
            )
        return found

    def _prevailing(self, panes: KeyPanes, sides: _Sides, row: int, is_left: bool) -> Ints:
        """Return the row that is a partner of a left row although it is before it and its time, int64: one, or none."""
        inside, span = self._inside(sides, row, is_left)
        before = sides.right.row[sides.right.clock <= span[0]][-1:]
        if not (isinstance(self.spec.window, Around) and self.spec.window.prevailing and is_left):
            return before[:0]
        return matches(panes, row, is_left, np.setdiff1d(before, inside))

    def _close(self, pane: KeyPanes, sides: _Sides, row: int, is_left: bool) -> Iterator[Fact]:
        other, met = sides.right if is_left else sides.left, self._prevailing(pane, sides, row, is_left)
        _, span = self._inside(sides, row, is_left)
        kind = pane.column(pane.sequences.order[0]).type
        texts, instants = pane.texts(sides.grid.to_arrow(span)).to_pylist(), sides.grid.to_arrow(span)
        before, behind = np.flatnonzero(other.clock < span[0])[-1:], np.flatnonzero(other.clock > span[1])[:1]
        for at, word, found in ((0, "before", before), (1, "after", behind)):
            for near in np.setdiff1d(other.row[found], met).tolist():
                apart = pane.below(instants[at], pane.sequences.order[0], near) * (1 if at == 0 else -1)
                text = f"{pane.name(near)} of the {side_name(not is_left)} is"
                text += f" {amount_text(kind, apart)} {word} {texts[at]}"
                yield Fact("near", text, pane.pos(near), None, {"distance": exact_text(apart)})

    def _offsets(self, pane: KeyPanes, sides: _Sides, window: At, row: int) -> Iterator[Fact]:
        found = self._at(sides, window)
        for at in np.flatnonzero(found.left == row).tolist():
            offset = exact_text(window.offsets[0 if found.tag is None else int(found.tag[at])])
            newest = int(sides.right.row[found.hi[at] - 1]) if found.hi[at] > 0 and not sides.lonely.any() else None
            if newest is None:
                yield Fact("other", f"at offset {offset} there is no right row of its key", None)
                continue
            text = f"at offset {offset} {pane.name(newest)} is the newest right row of its key"
            if found.lo[at] == found.hi[at]:
                text += f", and too old: more than {exact_text(window.within or Fraction(0))} before"
            elif not len(matches(pane, row, True, np.array([newest]))):
                text += ", and does not match"
            yield Fact("other", text, pane.pos(newest))

    def explain_rows(self, panes: KeyPanes, rows: Ints) -> Iterator[Fact]:
        """Yield of rows that no pane shows how many rows of the other side might be their partners."""
        sides, window = self._sides(panes.sequences, panes.context.clock), self.spec.window
        for row in rows.tolist():
            if isinstance(window, At) and row in sides.left.row:
                yield from self._offsets(panes, sides, window, row)
            for is_left, side in ((True, sides.left), (False, sides.right)):
                if isinstance(window, Around) and row in side.row:
                    yield self._partners(panes, sides, row, is_left)
                    yield from self._close(panes, sides, row, is_left)
        yield how_fact(self.spec.join.how)


def around_kind(spec: Joined) -> AroundKind:
    """Return a window around left rows as a kind."""
    window, has_bit = spec.window, spec.join.how in {"right", "full"} and spec.join.path is not None
    if isinstance(window, At):
        before, after = -min(window.offsets), max(window.offsets)
    else:
        assert isinstance(window, Around)
        before, after = window.before, window.after
    needs = Needs(go_on=False, attributes=(), clock=True, causes="ticks", waits=True, in_turn=has_bit)
    return AroundKind(spec, needs, before, after)
