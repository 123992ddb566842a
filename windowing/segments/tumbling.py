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
from ..scan.scan import setting_of
from ..sequences.attribute_distance import measured
from ..sequences.marks import Marks, epochs, no_marks
from ..sequences.sequence import Sequences, one_batch
from .delta_chains import Chains, End, chains, have_risen
from .summary import Entry, Fixed, Follow, Summary, chained, stands_at_end


def tumbling_summary(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> Summary:
    """Summarise a piece, whatever comes before it. ``marks`` must stand in order."""
    outline = tumbling_outline(plan, spec, piece, marks)
    if not isinstance(spec.policy, Delta):
        return outline
    values, too_much = measured(piece, spec.policy.attribute, spec.policy.amount)
    return replace(outline, window=chains(comparable(values), too_much, plan.is_sorted_by(spec.policy.attribute)))


def tumbling_outline(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> Summary:
    """Summarise a piece but for the chains of a ``delta``, which cost more than to follow the one that is taken."""
    watched = None
    if (name := plan.watches_falls) is not None:
        ends = measures(piece.rows.column(name).take(pa.array([0, len(piece) - 1])))
        watched = (ends[0], ends[1])
    summary = Summary(len(piece), None, watched=watched, stands=stands_at_end(plan, piece))
    match spec.policy:
        case Count() | Delta():
            return summary
        case Punct(None):
            first, last = epochs(piece, marks)[[0, -1]].tolist()
            summary = replace(summary, epochs=(first, last))
    return replace(summary, window=_fixed(plan, spec, piece, marks))


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a tumbling window stands between two pieces of a key.

    ``rows``: how many came before. ``starts``: how many windows have begun, and ``begun``: the piece and the row in it
    where the last one did; None where none has. ``closed``: whether that one came out by its own last row. ``value``: a
    ``delta``'s start value. ``last``: the summary of the last piece, without chains.
    """

    rows: int = 0
    starts: int = 0
    begun: tuple[int, int] | None = None
    closed: bool = False
    value: Any = None
    last: Summary | None = None

    @property
    def windows(self) -> int:
        """How many windows have come out."""
        return self.starts if self.begun is None or self.closed else self.starts - 1


def tumbling_entries(plan: Plan, pieces: Sequence[Summary], follow: Follow) -> list[Entry]:
    """Compose the summaries of the pieces of one key, in order."""
    stand, found = Stand(), []
    for i, piece in enumerate(pieces):
        after = passed(plan, stand, i, piece, follow)
        ends_later = i + 1 < len(pieces) and not _marked(piece, pieces[i + 1])
        found.append(entered(stand, i, piece, after, not ends_later))
        stand = after
    return found


def passed(plan: Plan, stand: Stand, index: int, piece: Summary, follow: Follow) -> Stand:
    """Return where the window stands behind piece ``index``."""
    assert isinstance(plan.spec, Tumbling)
    rows, closed, value = stand.rows + piece.rows, False, None
    match plan.spec.policy:
        case Count(n):
            starts = -(-rows // n) - stand.starts
            end = End(starts, (stand.starts + starts - 1) * n - stand.rows if starts else -1, None)
            closed = rows % n == 0
        case Delta():
            assert piece.window is None or isinstance(piece.window, Chains)
            end = chained(piece.window, stand.value, follow, index)
            value = end.value
        case _:
            assert isinstance(piece.window, Fixed)
            before = stand.last.window if stand.last is not None else None
            end = _fixed_end(plan, piece.window, before if isinstance(before, Fixed) else None)
            closed = piece.window.closed
    begun = (index, end.last) if end.last >= 0 else stand.begun
    last = replace(piece, window=piece.window if isinstance(piece.window, Fixed) else None)
    return Stand(rows, stand.starts + end.starts, begun, closed, value, last)


def entered(stand: Stand, index: int, piece: Summary, after: Stand, is_end: bool) -> Entry:
    """Return where piece ``index`` begins. ``after``: `passed` of it. ``is_end``: whether the window that is open
    behind it comes out there, because no piece follows or a mark does."""
    last = stand.last
    is_closed = stand.closed or (last is not None and _marked(last, piece))
    windows = stand.starts if is_closed else stand.windows
    tells = is_end or after.windows > windows
    begun = stand.begun if tells and not is_closed else None
    before = () if begun is None else (begun, *((j, 0) for j in range(begun[0] + 1, index)))
    falls = last is not None and _falls(last, piece)
    return Entry(windows, stand.rows, before, falls, tells, since=None if last is None else last.stands)


def _falls(before: Summary, piece: Summary) -> bool:
    return before.watched is not None and piece.watched is not None and bool(piece.watched[0] < before.watched[1])


def _marked(before: Summary, piece: Summary) -> bool:
    """Whether a mark stands between the last row of a piece and the first of the next."""
    return piece.epochs[0] > before.epochs[1]


def _fixed_end(plan: Plan, window: Fixed, before: Fixed | None) -> End:
    if before is None or before.closed or _parts(window, before):
        between = 0 if before is None else _empty_between(plan, before, window)
        return End(window.starts + 1 + between, window.last, None)
    return End(window.starts, window.last if window.starts else -1, None)


def _empty_between(plan: Plan, before: Fixed, window: Fixed) -> int:
    """How many windows without rows lie between those of the last row of a piece and of the first of the next."""
    if before.edges is None or window.edges is None:
        return 0
    assert isinstance(plan.spec, Tumbling)
    rows = one_batch(pa.Table.from_batches([before.edges.slice(1, 1), window.edges.slice(0, 1)]))
    pair = Sequences(None, np.array([0, 2]), rows, np.arange(2), plan.sort)
    return len(tumbling_panes(plan.spec, pair, no_marks(rows, plan.sort), setting_of(plan))) - 2


def _parts(window: Fixed, before: Fixed) -> bool:
    """Whether a window starts between the last row of a piece and the first of the next."""
    new, old = window.labels[0], before.labels[1]
    return bool(new != old if window.amount is None else have_risen(new, old, window.amount))


def _fixed(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> Fixed:
    panes = tumbling_panes(spec, piece, marks, setting_of(plan))
    contents = panes.contents
    assert isinstance(contents, Ranges)
    last, amount, is_closed = int(contents.lo[-1]), None, False
    edges = np.array([0, len(piece) - 1])
    rows = piece.rows.take(pa.array(edges)) if plan.options.empty == "row" else None
    match spec.policy:
        case Gap(attribute, seconds):
            values, amount = measured(piece, attribute, seconds)
            labels = comparable(values)[edges]
        case Punct(None):
            labels = epochs(piece, marks)[edges]
        case Punct():
            labels, is_closed = np.zeros(2, np.int64), bool(panes.cause[-1] != AT_END)
        case _:
            assert panes.start is not None
            labels = measures(panes.start.take(pa.array([0, len(panes) - 1])))
    return Fixed(len(panes) - 1, last, labels, amount, is_closed, rows)
