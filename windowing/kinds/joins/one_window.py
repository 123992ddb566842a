"""Both sides of a join in one window: the left rows of a pane times its right rows (semantics section 16.7).

time(5)     left   L1    L2       |      L3         a window of one input over the rows of both sides
            right     R1      R2  |                 (L1 R1) (L1 R2) (L2 R1) (L2 R2) | (L3 -) where rows alone come out

The window is any other kind: it is asked for its panes, and of each the pairs are its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.watermark import Lateness
from ...columns.arrays import Ints, Mask, combined, take_or_null
from ...language.joins import LEFT, RIGHT, SIDE
from ...language.spec import Joined
from ...rows.marks import Marks
from ...rows.membership import covered, edge_rows, gathered, ranges, take
from ...rows.pairs import Pairs
from ...rows.panes import BY_TICK, CLOSED_BY, Outputs, Panes, reason
from ...rows.sequence import Sequences
from ...state.window_state import RestoredState
from ..context import Signals, WindowContext, ticks_before
from ..contract import WindowKind
from ..facts import Fact, KeyPane, KeyPanes
from ..key_lifetimes import Lifetimes
from ..needs import Explain, Needs, PaneTimes
from .matching import Spans, matching, meets
from .partners import how_fact, partners_in, partners_of_pane


@dataclass(frozen=True, slots=True)
class OneWindowKind(WindowKind):
    """A window over the rows of both sides. ``inner``: the window."""

    spec: Joined
    inner: WindowKind
    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        self.inner.check_attribute(name, dtype, explain)

    def check_types(self, schema: pa.Schema) -> None:
        self.inner.check_types(schema)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        return self.inner.times(clock, origin)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        return self.inner.empty_ticks(sequences, context)

    def lateness(self, dtype: pa.DataType, lag: Fraction, min_gap: Fraction) -> Lateness:
        return self.inner.lateness(dtype, lag, min_gap)

    # --- the panes

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes that show something; with ``--empty row`` all. Raises what the window raises."""
        whole, marks = self.inner.panes(sequences, signals, context)
        rows, bounds = gathered(whole.membership, 0, len(whole))
        side = combined(sequences.rows.column(SIDE)).to_numpy()[rows]
        is_left, is_right = side & LEFT > 0, side & RIGHT > 0
        pane = np.repeat(np.arange(len(whole)), np.diff(bounds))
        rights = np.append(0, np.cumsum(is_right))[bounds]
        left, right, of = rows[is_left], rows[is_right], pane[is_left]
        lo, hi = rights[of], rights[of + 1]
        every = matching(context.match, sequences.rows, Spans(of, left, lo, hi), right)
        spans, how = every.coming_out(self.spec.join.how), self.spec.join.how
        if how in {"right", "full"}:
            met = every.lo < every.hi
            alone = np.flatnonzero(~covered(every.lo[met], every.hi[met], len(right)))
            of = pane[is_right][alone]
            at = np.searchsorted(spans.of, of, side="right")  # behind the left rows of their pane
            more = ((spans.of, of), (spans.left, -1), (spans.lo, alone), (spans.hi, alone + 1))
            spans = Spans(*(np.insert(each, at, new) for each, new in more))
        of = spans.of
        shown = np.bincount(of, minlength=len(whole))
        kept = shown > 0
        may_meet = meets(sequences)
        if context.empty == "row":
            kept |= (bounds[1:] == bounds[:-1]) | ~self._out_before(whole, sequences, context)
        kept &= may_meet[whole.key]
        picks, spans = np.flatnonzero(kept), spans.take(np.flatnonzero(kept[of]))
        pairs = Pairs(np.append(0, np.cumsum(shown[picks])), spans.left, spans.lo, spans.hi, right)
        found = _with_bounds(whole, sequences).take(picks)
        number = _renumbered(found.key, found.number)
        found = replace(
            found,
            number=number,
            membership=ranges(pairs.ends[:-1], pairs.ends[1:]),
            pairs=pairs,
            whole=whole,
            source=picks,
        )
        if not may_meet.all():
            found = self._with_alone(found, sequences, np.flatnonzero(~may_meet), context)
        return found, marks

    def _out_before(self, whole: Panes, sequences: Sequences, context: WindowContext) -> Mask:
        """Return which panes that have rows came out before a cut, bool (P,)."""
        if context.restored is None or whole.at is None:
            return np.zeros(len(whole), np.bool_)
        return (whole.cause == BY_TICK) & ticks_before(whole.at, context, sequences, self.needs.waits)

    def _with_alone(self, panes: Panes, sequences: Sequences, keys: Ints, context: WindowContext) -> Panes:
        """Add the rows of keys that equal nothing, each alone and at once: they take no place in a window."""
        how, bounds, pairs = self.spec.join.how, sequences.bounds, panes.pairs
        assert pairs is not None
        key = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        side = combined(sequences.rows.column(SIDE)).to_numpy()
        is_left = (side & LEFT > 0) & (how in {"left", "full", "anti"})
        row = np.flatnonzero(np.isin(key, keys) & (is_left | ((side & RIGHT > 0) & (how in {"right", "full"}))))
        own, is_left, key = np.arange(len(row)), is_left[row], np.append(panes.key, key[row])
        lo, turn = len(pairs.right) + own, np.argsort(key, kind="stable")
        pairs = replace(pairs, right=np.append(pairs.right, row))
        every = pairs.with_alone(np.where(is_left, row, -1), lo, lo + ~is_left).chosen(turn)

        def added(old: Any, new: Any) -> Any:
            return np.append(old, np.full(len(row), new, old.dtype) if np.isscalar(new) else new)[turn]

        start, end, at = panes.start, panes.end, panes.at
        if start is not None and end is not None:
            name = context.event_time or sequences.order[0]
            column = combined(sequences.rows.column(name))
            instants = self.times(column.type, context.origin).to_instants(column, name).cast(start.type)
            start, end = (
                pa.concat_arrays([each, instants.take(pa.array(row))]).take(pa.array(turn)) for each in (start, end)
            )
        if at is not None:
            at = pa.concat_arrays([at, pa.nulls(len(row), at.type)]).take(pa.array(turn))
        outputs = panes.outputs and Outputs(added(panes.outputs.timing, 0), added(panes.outputs.index, 0))
        found = replace(
            panes,
            key=key[turn],
            number=added(panes.number, own),
            membership=ranges(every.ends[:-1], every.ends[1:]),
            cause=added(panes.cause, row),
            closed_by=added(panes.closed_by, reason("trigger")),
            start=start,
            end=end,
            at=at,
            outputs=outputs,
            pairs=every,
            source=added(panes.source, -1),
        )
        return replace(found, number=_renumbered(found.key, found.number))

    # --- from run to run

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows that the window holds open."""
        retained = self.inner.retained_rows(sequences, context, _whole(panes), key_lifetimes)
        return retained & np.repeat(meets(sequences), np.diff(sequences.bounds))

    def settled_rows(self, sequences: Sequences, panes: Panes | None, retained: Mask) -> Mask:
        return self.inner.settled_rows(sequences, _whole(panes), retained)

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
        return self.inner.full_and_baseline(sequences, restored)

    def last_closed(self, signals: Signals, context: WindowContext) -> int:
        return self.inner.last_closed(signals, context)

    # --- why a window has these pairs, or none

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield what the window says of itself, and which of its rows have partners."""
        found, whole = pane.panes, pane.panes.whole
        assert whole is not None
        assert found.source is not None
        if not meets(pane.sequences)[0]:
            yield Fact(
                "closed", "it came out at once: its key is null or NaN, and equals nothing", None, pane.closed_by
            )
            return
        at = int(found.source[pane.at])
        before = CLOSED_BY[whole.closed_by[at - 1]] if at else None
        inner = replace(found, membership=take(whole.membership, found.source), pairs=None)
        own = replace(pane, panes=inner, before=before)
        rows = own.rows_of(pane.at)
        yield from self.inner.explain(replace(own, rows=rows))
        yield from partners_of_pane(pane, rows)

    def explain_rows(self, panes: KeyPanes, rows: Ints) -> Iterator[Fact]:
        """Yield how many partners rows have in the windows that they are in."""
        whole = panes.panes.whole
        assert whole is not None
        every, bounds = gathered(whole.membership, 0, len(whole))
        for row in rows.tolist():
            of = np.unique(np.searchsorted(bounds, np.flatnonzero(every == row), side="right") - 1)
            if not len(of):
                yield from self.inner.explain_rows(replace(panes, panes=whole), np.array([row]))
            for at in of[:1].tolist():
                yield from partners_in(panes, every[bounds[at] : bounds[at + 1]], np.array([row]))
        yield how_fact(self.spec.join.how)


def _whole(panes: Panes | None) -> Panes | None:
    return None if panes is None else panes.whole  # also where no pane shows a pair


def _with_bounds(panes: Panes, sequences: Sequences) -> Panes:
    """Return panes with bounds: where the window has none, the first and the last order value of its rows."""
    if panes.start is not None or not sequences.order:
        return panes
    column = sequences.rows.column(sequences.order[0])
    start, end = (take_or_null(column, edge) for edge in edge_rows(panes.membership))
    return replace(panes, start=start, end=end)


def _renumbered(key: Ints, number: Ints) -> Ints:
    """Return window numbers without gaps in the order of others, int64 (P,). ``key``: ascending."""
    out = np.empty(len(key), np.int64)
    out[np.lexsort([number, key])] = np.arange(len(key)) - np.searchsorted(key, key)
    return out


def one_window_kind(spec: Joined, inner: WindowKind) -> OneWindowKind:
    """Return a window of one input over both sides of a join as a kind. ``inner``: the window."""
    causes = inner.needs.causes
    if spec.join.how not in {"inner", "semi"} and causes == "ticks":
        causes = "both"  # a row whose key equals nothing comes out at once
    needs = replace(
        inner.needs,
        causes=causes,
        options=inner.needs.options - {"ends", "partial", "changes", "left", "emit evicted"},
        go_on=False,
        cells=False,
        can_cut=True,
        run_through=False,
        in_turn=not inner.needs.overlaps,
        changes_of_groups=False,
        by_count=None,
        rows_out_per_row=max(Fraction(2), inner.needs.rows_out_per_row),
    )
    return OneWindowKind(spec, inner, needs)
