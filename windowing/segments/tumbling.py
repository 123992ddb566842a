"""Pieces under a tumbling window: where windows start in each, and which one is open between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.numeric import measures
from ..kinds.sliding.kernels import comparable
from ..kinds.tumbling.panes import tumbling_panes
from ..language.spec import Count, Delta, Gap, Punct, Tumbling
from ..panes.membership import Ranges
from ..panes.panes import AT_END
from ..planning.plan import Plan
from ..scan.scan import context_of
from ..sequences.attribute_distance import measures_and_amount
from ..sequences.marks import Marks, epochs, no_marks
from ..sequences.sequence import Sequences, one_batch
from .delta_chains import DeltaTransitions, Exit, delta_transitions, have_risen
from .summary import BoundarySummary, EntryState, RunThrough, SegmentSummary, clock_at_end, exit_of


def tumbling_summary(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> SegmentSummary:
    """Summarise a piece, whatever comes before it. ``marks`` must stand in order."""
    outline = tumbling_outline(plan, spec, piece, marks)
    if not isinstance(spec.policy, Delta):
        return outline
    values, too_much = measures_and_amount(piece, spec.policy.attribute, spec.policy.amount)
    return replace(
        outline, window=delta_transitions(comparable(values), too_much, plan.is_sorted_by(spec.policy.attribute))
    )


def tumbling_outline(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> SegmentSummary:
    """Summarise a piece but for the chains of a ``delta``, which cost more than to follow the one that is taken."""
    watched = None
    if (name := plan.watches_falls) is not None:
        ends = measures(piece.rows.column(name).take(pa.array([0, len(piece) - 1])))
        watched = (ends[0], ends[1])
    summary = SegmentSummary(len(piece), None, watched=watched, clock=clock_at_end(plan, piece))
    match spec.policy:
        case Count() | Delta():
            return summary
        case Punct(None):
            first, last = epochs(piece, marks)[[0, -1]].tolist()
            summary = replace(summary, epochs=(first, last))
    return replace(summary, window=_boundary_summary(plan, spec, piece, marks))


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """Where a tumbling window stands between two pieces of a key.

    ``rows``: how many came before. ``starts``: how many windows have begun, and ``begun``: the piece and the row in it
    where the last one did; None where none has. ``closed``: whether that one came out by its own last row. ``value``: a
    ``delta``'s start value. ``last``: the summary of the last piece, without chains.
    """

    rows: int = 0
    starts: int = 0
    open_at: tuple[int, int] | None = None
    closed: bool = False
    value: Any = None
    last: SegmentSummary | None = None

    @property
    def windows(self) -> int:
        """How many windows have come out."""
        return self.starts if self.open_at is None or self.closed else self.starts - 1


def tumbling_entries(plan: Plan, pieces: Sequence[SegmentSummary], follow: RunThrough) -> list[EntryState]:
    """Compose the summaries of the pieces of one key, in order."""
    stand, found = WindowPosition(), []
    for i, piece in enumerate(pieces):
        after = advance(plan, stand, i, piece, follow)
        ends_later = i + 1 < len(pieces) and not _has_mark_between(piece, pieces[i + 1])
        found.append(entry_state(stand, i, piece, after, not ends_later))
        stand = after
    return found


def advance(plan: Plan, stand: WindowPosition, index: int, piece: SegmentSummary, follow: RunThrough) -> WindowPosition:
    """Return where the window stands behind piece ``index``."""
    assert isinstance(plan.spec, Tumbling)
    rows, closed, value = stand.rows + piece.rows, False, None
    match plan.spec.policy:
        case Count(n):
            starts = -(-rows // n) - stand.starts
            end = Exit(starts, (stand.starts + starts - 1) * n - stand.rows if starts else -1, None)
            closed = rows % n == 0
        case Delta():
            assert piece.window is None or isinstance(piece.window, DeltaTransitions)
            end = exit_of(piece.window, stand.value, follow, index)
            value = end.value
        case _:
            assert isinstance(piece.window, BoundarySummary)
            before = stand.last.window if stand.last is not None else None
            end = _boundary_exit(plan, piece.window, before if isinstance(before, BoundarySummary) else None)
            closed = piece.window.closed
    begun = (index, end.last) if end.last >= 0 else stand.open_at
    last = replace(piece, window=piece.window if isinstance(piece.window, BoundarySummary) else None)
    return WindowPosition(rows, stand.starts + end.starts, begun, closed, value, last)


def entry_state(
    stand: WindowPosition, index: int, piece: SegmentSummary, after: WindowPosition, is_end: bool
) -> EntryState:
    """Return where piece ``index`` begins. ``after``: `passed` of it. ``is_end``: whether the window that is open
    behind it comes out there, because no piece follows or a mark does."""
    last = stand.last
    is_closed = stand.closed or (last is not None and _has_mark_between(last, piece))
    windows = stand.starts if is_closed else stand.windows
    tells = is_end or after.windows > windows
    begun = stand.open_at if tells and not is_closed else None
    before = () if begun is None else (begun, *((j, 0) for j in range(begun[0] + 1, index)))
    falls = last is not None and _falls(last, piece)
    return EntryState(windows, stand.rows, before, falls, tells, clock=None if last is None else last.clock)


def _falls(before: SegmentSummary, piece: SegmentSummary) -> bool:
    return before.watched is not None and piece.watched is not None and bool(piece.watched[0] < before.watched[1])


def _has_mark_between(before: SegmentSummary, piece: SegmentSummary) -> bool:
    """Whether a mark stands between the last row of a piece and the first of the next."""
    return piece.epochs[0] > before.epochs[1]


def _boundary_exit(plan: Plan, window: BoundarySummary, before: BoundarySummary | None) -> Exit:
    if before is None or before.closed or _parts(window, before):
        between = 0 if before is None else _empty_between(plan, before, window)
        return Exit(window.starts + 1 + between, window.last, None)
    return Exit(window.starts, window.last if window.starts else -1, None)


def _empty_between(plan: Plan, before: BoundarySummary, window: BoundarySummary) -> int:
    """How many windows without rows lie between those of the last row of a piece and of the first of the next."""
    if before.edges is None or window.edges is None:
        return 0
    assert isinstance(plan.spec, Tumbling)
    rows = one_batch(pa.Table.from_batches([before.edges.slice(1, 1), window.edges.slice(0, 1)]))
    pair = Sequences(None, np.array([0, 2]), rows, np.arange(2), plan.sort)
    return len(tumbling_panes(plan.spec, pair, no_marks(rows, plan.sort), context_of(plan))) - 2


def _parts(window: BoundarySummary, before: BoundarySummary) -> bool:
    """Whether a window starts between the last row of a piece and the first of the next."""
    new, old = window.labels[0], before.labels[1]
    return bool(new != old if window.amount is None else have_risen(new, old, window.amount))


def _boundary_summary(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> BoundarySummary:
    panes = tumbling_panes(spec, piece, marks, context_of(plan))
    contents = panes.membership
    assert isinstance(contents, Ranges)
    last, amount, is_closed = int(contents.lo[-1]), None, False
    edges = np.array([0, len(piece) - 1])
    rows = piece.rows.take(pa.array(edges)) if plan.options.empty == "row" else None
    match spec.policy:
        case Gap(attribute, seconds):
            values, amount = measures_and_amount(piece, attribute, seconds)
            labels = comparable(values)[edges]
        case Punct(None):
            labels = epochs(piece, marks)[edges]
        case Punct():
            labels, is_closed = np.zeros(2, np.int64), bool(panes.cause[-1] != AT_END)
        case _:
            assert panes.start is not None
            labels = measures(panes.start.take(pa.array([0, len(panes) - 1])))
    return BoundarySummary(len(panes) - 1, last, labels, amount, is_closed, rows)
