"""Pieces under a tumbling window: where windows start in each, and which one is open between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from windowing.chains import Chains, End, chains, have_risen
from windowing.columns import measures
from windowing.contents import Ranges
from windowing.distance import measured
from windowing.marks import Marks, epochs, no_marks
from windowing.panes import AT_END
from windowing.pieces import Entry, Fixed, Follow, Summary, chained, stands_at_end
from windowing.plan import Plan
from windowing.scan import setting_of
from windowing.sequence import Sequences, one_batch
from windowing.sliding_kernels import comparable
from windowing.spec import Count, Delta, Gap, Punct, Tumbling
from windowing.tumbling import tumbling_panes

_Step: TypeAlias = tuple[int, tuple[int, int] | None]
"""How many windows have come out, and the piece and the row in it where the one that is open began."""


def tumbling_summary(plan: Plan, spec: Tumbling, piece: Sequences, marks: Marks) -> Summary:
    """Summarise a piece. ``marks`` must stand in order."""
    watched = None
    if (name := plan.watches_falls) is not None:
        ends = measures(piece.rows.column(name).take(pa.array([0, len(piece) - 1])))
        watched = (ends[0], ends[1])
    summary = Summary(len(piece), None, watched=watched, stands=stands_at_end(plan, piece))
    match spec.policy:
        case Count():
            return summary
        case Delta(attribute, amount):
            values, too_much = measured(piece, attribute, amount)
            return replace(summary, window=chains(comparable(values), too_much, plan.sort[:1] == (attribute,)))
        case Punct(None):
            first, last = epochs(piece, marks)[[0, -1]].tolist()
            summary = replace(summary, epochs=(first, last))
    return replace(summary, window=_fixed(plan, spec, piece, marks))


def tumbling_entries(plan: Plan, spec: Tumbling, pieces: Sequence[Summary], follow: Follow) -> list[Entry]:
    """Compose the summaries of the pieces of one key, in order."""
    steps = _counted(spec.policy.n, pieces) if isinstance(spec.policy, Count) else _stepped(plan, pieces, follow)
    found: list[Entry] = []
    rows = 0
    for i, (windows, begun) in enumerate(steps):
        before = () if begun is None else (begun, *((j, 0) for j in range(begun[0] + 1, i)))
        since = pieces[i - 1].stands if i else None
        found.append(Entry(windows, rows, before, i > 0 and _falls(pieces[i - 1], pieces[i]), since=since))
        rows += pieces[i].rows
    return [
        replace(entry, tells=i == len(found) - 1 or found[i + 1].windows > entry.windows)
        for i, entry in enumerate(found)
    ]


def _falls(before: Summary, piece: Summary) -> bool:
    return before.watched is not None and piece.watched is not None and bool(piece.watched[0] < before.watched[1])


def _counted(n: int, pieces: Sequence[Summary]) -> list[_Step]:
    ends = np.cumsum([piece.rows for piece in pieces])
    steps: list[_Step] = []
    for end, piece in zip(ends.tolist(), pieces, strict=True):
        before = end - piece.rows
        began = before - before % n
        where = int(np.searchsorted(ends, began, side="right"))
        row = began - (int(ends[where]) - pieces[where].rows)
        steps.append((before // n, None if began == before else (where, row)))
    return steps


def _stepped(plan: Plan, pieces: Sequence[Summary], follow: Follow) -> list[_Step]:
    steps: list[_Step] = []
    begun: tuple[int, int] | None = None
    starts, value = 0, None
    for i, piece in enumerate(pieces):
        is_closed = i > 0 and _is_closed(piece, pieces[i - 1])
        steps.append((starts, None) if begun is None or is_closed else (starts - 1, begun))
        if isinstance(piece.window, Chains):
            end = chained(piece.window, value, follow, i)
            value = end.value
        else:
            assert isinstance(piece.window, Fixed)
            before = pieces[i - 1].window if i else None
            end = _fixed_end(plan, piece.window, before if isinstance(before, Fixed) else None)
        starts += end.starts
        if end.last >= 0:
            begun = (i, end.last)
    return steps


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


def _is_closed(piece: Summary, before: Summary) -> bool:
    """Whether the window at the end of the piece before came out there: by its last row, or a mark behind it."""
    ends = isinstance(before.window, Fixed) and before.window.closed
    return ends or piece.epochs[0] > before.epochs[1]


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
