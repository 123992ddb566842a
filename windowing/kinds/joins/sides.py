"""A window on each side of a join: pairs of the rows that both sides show (semantics section 16.6).

sliding, count(1) join count(2)     left   L1       L2                  a row meets all that the other side shows:
                                    right     R1 R2    R3               (L1 R1) (L1 R2) (L2 R1) (L2 R2) (L2 R3)

Each row is shown at some moments, one after the other (`moments`), so a pair comes once and goes once. A loop over the
moments keeps what both sides show as linked lists, and says which pairs come, or go, or are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined, take_or_null
from ...columns.arrays import spread as runs_of
from ...columns.radix_sort import changes
from ...columns.sort_keys import is_sortable
from ...errors import ConfigError, DataError
from ...language.joins import BOTH, LEFT, MET, RIGHT, SIDE, TOLD, Join
from ...language.spec import Batched, Count, Delta, Joined, SideWindows, Sliding
from ...rows.marks import Marks
from ...rows.membership import covered, ranges, spread
from ...rows.pairs import Pairs
from ...rows.panes import AT_END, BY_TICK, Panes, reason
from ...rows.sequence import Sequences
from ...support.jit import kernel
from ..context import Signals, WindowContext
from ..contract import WindowKind
from ..facts import Fact, KeyPane, KeyPanes
from ..key_lifetimes import Lifetimes
from ..needs import Explain, Needs, Option, PaneTimes, check_measured
from .matching import Spans, matching
from .moments import EXPIRY, TICK, Side, Timeline, attributes_of, enters_in_lots, grid_of, line_up_sides, spans_of
from .partners import SidesOfKey, how_fact

COMES, GOES, STAYS = 0, 1, 2
"""Which pairs are wanted: those that come, those that go, or at each change those that are there."""
_SPANS: Final = 1 << 22
"""So many spans are made at a time where pairs are to match."""


# What a side shows is a circular list of its rows in their order: of n rows ``newer[n]`` is the first.


@kernel
def _neighbours(older: Ints, newer: Ints, i: int) -> int:
    """Return how many of both neighbours of row i in the list are also next to it among all rows."""
    return (older[i] + 1 == i) + (newer[i] == i + 1 and i + 2 < len(newer))


@kernel
def _link(older: Ints, newer: Ints, i: int) -> int:
    """Put row i into the list. Returns by how much the number of runs of rows that are next to each other grows."""
    n = len(newer) - 1
    before = older[n]
    while before != n and before > i:  # only lots of different partitions come out of order
        before = older[before]
    older[i], newer[i] = before, newer[before]
    older[newer[i]] = i
    newer[before] = i
    return 1 - _neighbours(older, newer, i)


@kernel
def _unlink(older: Ints, newer: Ints, i: int) -> int:
    """Take row i out of the list. Returns by how much the number of runs grows."""
    change = _neighbours(older, newer, i) - 1
    newer[older[i]], older[newer[i]] = newer[i], older[i]
    return change


@kernel
def _meet_all(row: int, newer: Ints, spans: Any, at: int) -> int:
    """Write spans of a left row with all right rows of a list. Returns where the next span goes."""
    n = len(newer) - 1
    i = newer[n]
    while i != n:
        spans[0, at], spans[1, at] = row, i
        while newer[i] == i + 1 and i + 1 != n:
            i += 1
        spans[2, at] = i + 1
        at += 1
        i = newer[i]
    return at


@kernel
def _meet_some(row: int, some: Ints, spans: Any, at: int) -> int:
    """Write spans of a left row with some right rows, which ascend. Returns where the next span goes."""
    for i in range(len(some)):
        if i == 0 or some[i] != some[i - 1] + 1:
            spans[0, at], spans[1, at] = row, some[i]
            at += 1
        spans[2, at - 1] = some[i] + 1
    return at


@kernel
def _runs(some: Ints) -> int:
    count = 0
    for i in range(len(some)):
        count += i == 0 or some[i] != some[i - 1] + 1
    return count


@kernel
def _meet(row_l: Ints, moment_l: Ints, m: int, moved_l: Ints, moved_r: Ints, newer_l: Ints, newer_r: Ints, spans: Any,
          at: int) -> int:  # fmt: skip
    """Write the pairs of what both lists hold in which at least one row moves at moment ``m``, in their order.

    ``moved_l``, ``moved_r``: these rows, ascending. ``moment_l``: the moment at which each left row moves.
    """
    if not len(moved_r):
        for i in moved_l:
            at = _meet_all(row_l[i], newer_r, spans, at)
        return at
    n = len(newer_l) - 1
    i = newer_l[n]
    while i != n:
        moves = moment_l[i] == m
        at = _meet_all(row_l[i], newer_r, spans, at) if moves else _meet_some(row_l[i], moved_r, spans, at)
        i = newer_l[i]
    return at


@kernel
def replay(  # noqa: PLR0912, PLR0915 - one loop over what happens at a moment
    mode: int, left: Any, right: Any, is_brief: Mask, silent: Mask, state: Ints, stop: int, counts: Any, spans: Any
) -> int:
    """Go over the moments before ``stop``, from where ``state`` is. Returns how many spans were written.

    ``left``, ``right``: of each side the rows, their moments ``enter`` and ``leave``, which of them come and which go,
    in the order of these moments, and the list of what is shown (``older``, ``newer``).
    ``is_brief``: bool (2,), whether the rows of a side meet what is there and are never shown, ``count(0)``.
    ``silent``: bool (m,), moments that bring nothing out.
    ``counts``: int64 (3, m), for each moment how many pairs it has, how many spans, and whether it changes what is
    there; written where ``spans`` is empty. ``spans``: int64 (3, S), left rows and ranges of right rows.
    """
    row_l, enter_l, leave_l, come_l, go_l, older_l, newer_l = left
    _, enter_r, leave_r, come_r, go_r, older_r, newer_r = right
    counts_only, at = spans.shape[1] == 0, 0
    while True:
        m = stop
        a, b, c, d, size_l, size_r, runs_r = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
        if a < len(come_l):
            m = min(m, enter_l[come_l[a]])
        if b < len(go_l):
            m = min(m, leave_l[go_l[b]])
        if c < len(come_r):
            m = min(m, enter_r[come_r[c]])
        if d < len(go_r):
            m = min(m, leave_r[go_r[d]])
        if m >= stop:
            return at
        while state[0] < len(come_l) and enter_l[come_l[state[0]]] == m:
            state[0] += 1
        while state[1] < len(go_l) and leave_l[go_l[state[1]]] == m:
            state[1] += 1
        while state[2] < len(come_r) and enter_r[come_r[state[2]]] == m:
            state[2] += 1
        while state[3] < len(go_r) and leave_r[go_r[state[3]]] == m:
            state[3] += 1
        comes_l, goes_l, comes_r, goes_r = (
            come_l[a : state[0]],
            go_l[b : state[1]],
            come_r[c : state[2]],
            go_r[d : state[3]],
        )
        asked, pairs, runs = not silent[m], 0, 0

        # before anything moves: who goes, and whom a row meets that is never shown
        gone = len(goes_l) * size_r + (size_l - len(goes_l)) * len(goes_r)
        if mode == GOES and asked and gone:
            pairs, runs = gone, len(goes_l) * runs_r + (size_l - len(goes_l)) * _runs(goes_r)
            if not counts_only:
                at = _meet(row_l, leave_l, m, goes_l, goes_r, newer_l, newer_r, spans, at)
        if mode == COMES and asked:
            if is_brief[0] and len(comes_l):
                pairs, runs = pairs + len(comes_l) * size_r, runs + len(comes_l) * runs_r
                if not counts_only:
                    for i in comes_l:
                        at = _meet_all(row_l[i], newer_r, spans, at)
            if is_brief[1] and len(comes_r):
                pairs, runs = pairs + size_l * len(comes_r), runs + size_l * _runs(comes_r)
                if not counts_only:
                    i = newer_l[len(newer_l) - 1]
                    while i != len(newer_l) - 1:
                        at = _meet_some(row_l[i], comes_r, spans, at)
                        i = newer_l[i]

        for i in goes_l:
            _unlink(older_l, newer_l, i)
        for i in goes_r:
            state[6] += _unlink(older_r, newer_r, i)
        state[4] -= len(goes_l)
        state[5] -= len(goes_r)
        if is_brief[0]:
            comes_l = comes_l[:0]
        if is_brief[1]:
            comes_r = comes_r[:0]
        for i in comes_l:
            _link(older_l, newer_l, i)
        for i in comes_r:
            state[6] += _link(older_r, newer_r, i)
        state[4] += len(comes_l)
        state[5] += len(comes_r)

        stays_l = state[4] - len(comes_l)
        came = len(comes_l) * state[5] + stays_l * len(comes_r)
        if mode == COMES and asked and came:
            pairs, runs = pairs + came, runs + len(comes_l) * state[6] + stays_l * _runs(comes_r)
            if not counts_only:
                at = _meet(row_l, enter_l, m, comes_l, comes_r, newer_l, newer_r, spans, at)
        if mode == STAYS and asked and (gone or came):
            pairs, runs = state[4] * state[5], state[4] * state[6]
            if not counts_only:
                i = newer_l[len(newer_l) - 1]
                while i != len(newer_l) - 1:
                    at = _meet_all(row_l[i], newer_r, spans, at)
                    i = newer_l[i]
        if counts_only:
            counts[0, m], counts[1, m], counts[2, m] = pairs, runs, gone + came > 0


def _arranged(side: Side, is_brief: bool) -> tuple[Ints, ...]:
    """Return a side as `replay` takes it, with nothing shown."""
    there = np.flatnonzero(side.enter < side.leave)
    come = go = there
    if is_brief:
        come, go = np.flatnonzero(side.meets), there[:0]
    come, go = (each[np.argsort(at[each], kind="stable")] for each, at in ((come, side.enter), (go, side.leave)))
    empty = np.full(len(side.row) + 1, len(side.row))
    return side.row, side.enter, side.leave, come, go, empty, empty.copy()


@dataclass(frozen=True, slots=True)
class SidesKind(WindowKind):
    """A window on each side of a join. ``windows``: both."""

    spec: Joined
    windows: SideWindows
    needs: Needs

    @property
    def is_brief(self) -> tuple[bool, bool]:
        """Whether the rows of a side meet what is there and are never shown."""
        left, right = (each == Count(0) for each in self.windows.held)
        return left, right

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        for window in (self.windows.left, self.windows.right):
            if isinstance(window, Sliding) and isinstance(window.evict, Delta) and window.evict.attribute == name:
                check_measured(window.evict, name, dtype, explain)
            elif isinstance(window, Batched) and name in attributes_of(window) and not is_sortable(dtype):
                raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        if not self.needs.clock:
            return PaneTimes()
        grid = grid_of(self.windows, clock, origin)
        return PaneTimes(instants=grid.type, grid=grid)

    # --- the panes

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return a pane for each moment that brings something out, as ``context.emit`` wants it.

        Bounds are the first and the last order value of the rows that it shows; null where it shows none.

        Raises `DataError` where an instant does not fit 64 bit, where a condition of pairs fails, and where there are
        more pairs than may be written.
        """
        line = line_up_sides(self.windows, sequences, context)
        moment, spans, met = self._found(line, sequences, context)
        kept = _kept(line, len(sequences), met) if context.hold else None
        return self._panes_of(line, sequences, moment, spans, kept), signals.marks

    def _found(
        self, line: Timeline, sequences: Sequences, context: WindowContext
    ) -> tuple[Ints, Spans, tuple[Mask, Mask] | None]:
        """Return the moments that bring something out, what they do, and which rows had a partner on each side."""
        met = None
        if context.emit in {"entered", "left"}:
            spans = self._spans(COMES if context.emit == "entered" else GOES, line, sequences, context)
            if context.emit == "entered" and self.spec.join.how != "inner":
                spans, met = self._by_how(spans, line, sequences, context)
            moment = spans.of[changes(spans.of)]
        else:
            moment, spans = self._product(line, sequences, context)
        return moment, spans, met

    def _spans(self, mode: int, line: Timeline, sequences: Sequences, context: WindowContext) -> Spans:
        """Return the pairs of each moment that match. For `STAYS` there is no condition to ask."""
        return _concatenated([part for _, part in self._parts(mode, line, sequences, context)])

    def _parts(
        self, mode: int, line: Timeline, sequences: Sequences, context: WindowContext
    ) -> Iterator[tuple[Ints, Spans]]:
        """Yield the pairs of some moments at a time, and of all moments the numbers of `replay`."""
        is_brief, silent, match = np.array(self.is_brief), line.silent, context.match
        sides = zip((line.left, line.right), self.is_brief, strict=True)
        one, other = (_arranged(side, each) for side, each in sides)
        counts, nothing = np.zeros((3, len(silent)), np.int64), np.empty((3, 0), np.int64)
        replay(mode, one, other, is_brief, silent, np.zeros(7, np.int64), len(silent), counts, nothing)
        if match is None:
            self._check(context, int(counts[0].sum()))
        ends, state, first, last = np.append(0, np.cumsum(counts[1])), np.zeros(7, np.int64), 0, len(silent)
        while True:
            stop = last
            if match is not None:
                stop = min(last, max(first + 1, int(np.searchsorted(ends, ends[first] + _SPANS, side="right")) - 1))
            spans = np.empty((3, int(ends[stop] - ends[first])), np.int64)
            replay(mode, one, other, is_brief, silent, state, stop, counts, spans)
            found = Spans(np.repeat(np.arange(first, stop), counts[1, first:stop]), *spans)
            yield counts, matching(match, sequences.rows, found, line.right.row).coming_out("inner")
            first = stop
            if first == last:
                return

    def _check(self, context: WindowContext, pairs: int) -> None:
        if context.max_rows is not None and context.emit != "aggregates" and pairs > context.max_rows:
            what = f"{self.spec} would write {pairs:,} pairs and more, more than the {context.max_rows:,} allowed; "
            raise DataError(what + "nothing was written", "ask for aggregates, or allow more with --max-rows-out")

    def _product(self, line: Timeline, sequences: Sequences, context: WindowContext) -> tuple[Ints, Spans]:
        """Return the moments at which the pairs that are there change, and these pairs, moment after moment."""
        if context.match is None:
            [(counts, spans)] = self._parts(STAYS, line, sequences, context)
            moment = np.flatnonzero((counts[2] > 0) & ~line.silent)
        else:
            # pairs that came out before the cut are there, too
            every = replace(line, silent=np.zeros(len(line.silent), np.bool_))
            spans = self._spans(COMES, every, sequences, context)
            counts = spans.hi - spans.lo
            each, right = np.repeat(np.arange(len(counts)), counts), runs_of(spans.lo, counts)
            pairs = Spans(spans.of[each], spans.left[each], right, right + 1)
            pairs, left = pairs.take(np.lexsort([right, pairs.left])), np.zeros(len(sequences), np.int64)
            left[line.left.row] = line.left.leave
            come, go = pairs.of, np.minimum(left[pairs.left], line.right.leave[pairs.lo])
            pairs, come, go = (pairs.take(np.flatnonzero(come < go)), come[come < go], go[come < go])
            moment = np.union1d(come, go)
            moment = moment[~line.silent[moment]]
            enter, leave = np.searchsorted(moment, come), np.searchsorted(moment, go)
            steps = np.bincount(enter, minlength=len(moment) + 1) - np.bincount(leave, minlength=len(moment) + 1)
            bounds = np.append(0, np.cumsum(np.cumsum(steps)[: len(moment)]))
            self._check(context, int(bounds[-1]))
            entry = spread(enter, leave, bounds)
            spans = replace(pairs.take(entry), of=np.repeat(moment, np.diff(bounds)))
        if context.emit == "rows":
            moment = np.unique(spans.of)
        return moment, spans

    def _by_how(
        self, spans: Spans, line: Timeline, sequences: Sequences, context: WindowContext
    ) -> tuple[Spans, tuple[Mask, Mask]]:
        """Return what comes out of pairs and of rows without a partner, and which rows had one on the left, the right.

        A row of one log may be on both sides: what came out of it before may have been without a partner on one, or
        with one on the other, so the state says of each side whether it had one there.
        """
        how, left, right = self.spec.join.how, line.left, line.right
        shown = np.zeros(len(sequences), np.bool_) if context.restored is None else context.restored.row_state.shown
        side = combined(sequences.rows.column(SIDE)).to_numpy()
        before, met_right = (np.where(side & TOLD, side & (MET * each) > 0, shown) for each in (LEFT, RIGHT))
        met_left = before.copy()
        met_left[spans.left] = True
        met_right[right.row[covered(spans.lo, spans.hi, len(right.row))]] = True
        met = (met_left, met_right)
        if how == "semi":
            spans = spans.take(np.sort(np.unique(spans.left, return_index=True)[1]))
            spans = spans.take(np.flatnonzero(~before[spans.left]))
            return replace(spans, hi=spans.lo), met
        parts = [Spans(*(np.empty(0, np.int64),) * 4)]
        if how in {"left", "full", "anti"}:
            row = np.flatnonzero(~met_left[left.row] & ~line.silent[left.leave])
            nothing = np.zeros(len(row), np.int64)
            parts.append(Spans(left.leave[row], left.row[row], nothing, nothing))
        if how in {"right", "full"}:
            alone = ~met_right[right.row] & ~line.silent[right.leave]
            if how == "full":  # a row that equals nothing comes out once, also where it is on both sides
                alone &= right.meets | ~np.isin(right.row, left.row)
            row = np.flatnonzero(alone)
            parts.append(Spans(right.leave[row], np.full(len(row), -1), row, row + 1))
        every = _concatenated([*parts] if how == "anti" else [spans, *parts])
        return every.take(np.argsort(every.of, kind="stable")), met

    def _panes_of(self, line: Timeline, sequences: Sequences, moment: Ints, spans: Spans, kept: Any) -> Panes:
        right = line.right.row
        bounds = np.append(np.searchsorted(spans.of, moment), len(spans.of))
        what, event = line.what[moment], line.event[moment]
        is_event = event >= 0
        event = np.where(is_event, event, 0)
        phase, complete = np.append(line.phase, 0)[event], np.append(line.is_complete, False)[event]
        reasons = [np.int8(reason(each)) for each in ("trigger", "batch", "expiry", "end")]
        of_clock = np.where(complete, np.where(phase == TICK, *reasons[1:3]), reasons[3])
        of_rows = np.where(np.isin(moment, np.append(line.left.full, line.right.full)), *reasons[1::-1])
        closed_by = np.where(is_event, of_clock, np.where(what == AT_END, reasons[3], of_rows))
        # the end brings out a lot that is not full first, so what follows is its own
        ends_lots = any(map(enters_in_lots, (self.windows.left, self.windows.right)))
        by_clock = is_event & complete if ends_lots else is_event
        key = np.searchsorted(line.first, moment, side="right") - 1
        number = np.arange(len(key)) - np.searchsorted(key, key)
        at = None
        if line.grid is not None:
            at = line.grid.to_arrow(np.append(line.instants, np.zeros(1, line.instants.dtype))[event])
        turn = np.where(by_clock, np.where(phase == EXPIRY, 0, 2), 1).astype(np.int8)
        start, end = _edges(sequences, spans, bounds, right)
        pairs = Pairs(bounds, spans.left, spans.lo, spans.hi, right, kept=kept)
        rows, cause = ranges(pairs.ends[:-1], pairs.ends[1:]), np.where(by_clock, BY_TICK, np.maximum(what, AT_END))
        rejects = line.rejects if len(line.rejects) else None
        return Panes(key, number, rows, cause, closed_by, start, end, at, rejects=rejects, pairs=pairs, turn=turn)

    # --- from run to run

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows that windows hold or store."""
        assert panes is not None
        assert panes.pairs is not None
        assert panes.pairs.kept is not None
        return panes.pairs.kept & BOTH > 0

    def settled_rows(self, sequences: Sequences, panes: Panes | None, retained: Mask) -> Mask:
        """Return the rows with a partner where only those without come out: they stay for their places."""
        kept = None if panes is None or panes.pairs is None else panes.pairs.kept
        if self.spec.join.how != "anti" or kept is None:
            return np.zeros(len(sequences), np.bool_)
        return retained & (kept & (MET * LEFT) > 0)

    def kept(self, rows: pa.RecordBatch, panes: Panes | None) -> pa.RecordBatch:
        """Let rows of one log be on the sides alone on which they are still there: the other has let them go."""
        kept = None if panes is None or panes.pairs is None else panes.pairs.kept
        if self.spec.join.path is not None or kept is None:
            return rows
        at = rows.schema.get_field_index(SIDE)
        return rows.set_column(at, rows.schema.field(at), pa.array(kept))

    # --- why rows are pairs, or none

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield what brought a pane out, and which partners rows have that come or go with it."""
        line, row = line_up_sides(self.windows, pane.sequences, pane.context), pane.cause_row
        moment = self._found(line, pane.sequences, pane.context)[0][pane.at]
        if pane.closed_by == "end":
            yield pane.by_end()
        else:
            text = f"{pane.name(row)} came" if row is not None else f"the clock reached {pane.head_text('_at')}"
            yield Fact("closed", text, None if row is None else pane.pos(row), pane.closed_by)
        yield from SidesOfKey(pane, line, self.is_brief).at(int(moment), pane.rows)

    def explain_rows(self, panes: KeyPanes, rows: Ints) -> Iterator[Fact]:
        """Yield which partners rows have, and when these came and went."""
        line = line_up_sides(self.windows, panes.sequences, panes.context)
        yield from SidesOfKey(panes, line, self.is_brief).of_rows(rows)
        yield how_fact(self.spec.join.how)


def _kept(line: Timeline, rows: int, met: tuple[Mask, Mask] | None) -> Any:
    """Return `Pairs.kept`. ``met``: which rows had a partner on each side; None: nobody asks."""
    out = np.zeros(rows, np.int8) if met is None else np.full(rows, TOLD, np.int8)
    for at, (bit, side) in enumerate(((LEFT, line.left), (RIGHT, line.right))):
        out[side.row[side.holds]] |= bit
        if met is not None:
            out[met[at]] |= MET * bit
    return out


def _concatenated(parts: list[Spans]) -> Spans:
    if len(parts) == 1:
        return parts[0]
    fields = [[part.of, part.left, part.lo, part.hi] for part in parts]
    return Spans(*(np.concatenate(each) for each in zip(*fields, strict=True)))


def _edges(sequences: Sequences, spans: Spans, bounds: Ints, right: Ints) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the first and the last order value of the rows of each pane; None where rows have no order."""
    if not sequences.order:
        return None, None
    n, is_right = len(sequences), spans.lo < spans.hi
    rights = np.append(right, 0)
    first = np.minimum(np.where(spans.left < 0, n, spans.left), np.where(is_right, rights[spans.lo], n))
    last = np.maximum(spans.left, np.where(is_right, rights[spans.hi - 1], -1))
    filled = np.flatnonzero(bounds[:-1] < bounds[1:])
    edges = []
    for fold, each in ((np.minimum, first), (np.maximum, last)):
        row = np.full(len(bounds) - 1, -1)
        if len(filled):
            row[filled] = fold.reduceat(each, bounds[filled])
        edges.append(take_or_null(sequences.rows.column(sequences.order[0]), row))
    return edges[0], edges[1]


def _stored(window: Sliding | Batched, join: Join) -> Sliding | Batched:
    """Return the window of the right side over the columns of the one sequence."""
    if isinstance(window, Batched):
        unique = None if window.unique is None else join.stored(window.unique)
        return replace(window, unique=unique, partition_by=tuple(map(join.stored, window.partition_by)))
    if not isinstance(window.evict, Delta):
        return window
    return replace(window, evict=replace(window.evict, attribute=join.stored(window.evict.attribute)))


def sides_kind(spec: Joined) -> SidesKind:
    """Return windows on both sides of a join as a kind."""
    assert isinstance(spec.window, SideWindows)
    windows = replace(spec.window, right=_stored(spec.window.right, spec.join))
    both = (windows.left, windows.right)
    clock, options = any(map(spans_of, both)), set[Option]({"changes", "left"})
    if any(isinstance(each, Batched) and each.within is not None and each.every is not None for each in both):
        options.add("origin")
    needs = Needs(
        attributes=tuple(dict.fromkeys(name for each in both for name in attributes_of(each))),
        clock=clock,
        causes="both" if clock else "rows",
        waits=clock,
        options=frozenset(options),
        go_on=False,
        in_turn=spec.join.how != "inner",  # whether a row had a partner
        rows_out_per_row=Fraction(2),
    )
    return SidesKind(spec, windows, needs)
