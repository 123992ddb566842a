"""Pieces of one sequence that is cut: what a tumbling window has to know of the pieces before, and how it gets to know.

Each piece is summarised by itself, in any order; `entries` composes the summaries, piece after piece, and says of each
where its first window began. With the rows from there on before its own, a piece is scanned as a run that goes on from
another (`windowing.carry`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windowing.carry import Past, fresh, no_flags
from windowing.chains import Chains, End, chains, end_of, follow
from windowing.columns import Measures, measures
from windowing.contents import Ranges
from windowing.distance import measured
from windowing.marks import Marks, epochs
from windowing.panes import AT_END
from windowing.plan import Plan
from windowing.scan import Bounds, Scanned, falls_of, scan, setting_of
from windowing.sequence import Sequences, one_batch
from windowing.signals import Signals
from windowing.sliding_kernels import comparable, rises
from windowing.spec import Count, Delta, Gap, Punct, Tumbling
from windowing.tumbling import tumbling_panes

MOST_BRANCHES = 1 << 16


@dataclass(frozen=True, slots=True)
class Fixed:
    """How windows start in a piece where the row before a row decides whether one starts at it.

    ``starts``: how many start behind the first row; ``last``: where the last of all starts, 0 if that is the first row.
    ``labels``: what the window compares of the first and the last row: a window starts where the labels of two
    neighbours differ, or, with an ``amount``, where the later one rises by more than that. ``closed``: whether the last
    row ends its window itself.
    """

    starts: int
    last: int
    labels: Measures
    amount: Any = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What is told of a piece of ``rows`` rows, at least one. ``window``: how windows start in it, nothing for
    ``count``. ``epochs``: how many marks stand before its first row and its last. ``watched``: the watched attribute
    of these two rows, where falls are counted."""

    rows: int
    window: Fixed | Chains | None
    epochs: tuple[int, int] = (0, 0)
    watched: tuple[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a piece begins. ``windows``: how many have come out before. ``begun``: the piece and the row in it of the
    first row of the window that is open; None where none is. ``falls``: whether the watched attribute falls between
    the piece before and this one. ``tells``: whether any window comes out in it."""

    windows: int
    begun: tuple[int, int] | None
    falls: bool
    tells: bool = True


Follow: TypeAlias = Callable[[int, Any], End]
"""Follows the chain of a start value through a piece, where its summary does not tell."""


def can_be_cut(plan: Plan) -> bool:
    """Whether keys may be cut into pieces: else each stays whole."""
    spec, options = plan.spec, plan.options
    if not isinstance(spec, Tumbling) or spec.eviction is not None:
        return False
    return options.empty == "skip" and options.operator is None and options.emit in {"aggregates", "rows"}


def summarise(plan: Plan, piece: Sequences, marks: Marks, most: int = MOST_BRANCHES) -> Summary:
    """Summarise a piece of one key that is not empty. ``marks`` must stand in order. ``most``: branches of a delta."""
    spec = plan.spec
    assert isinstance(spec, Tumbling)
    name = plan.watches_falls
    watched = None
    if name is not None:
        ends = measures(piece.rows.column(name).take(pa.array([0, len(piece) - 1])))
        watched = (ends[0], ends[1])
    summary = Summary(len(piece), None, watched=watched)
    match spec.policy:
        case Count():
            return summary
        case Delta(attribute, amount):
            values, too_much = measured(piece, attribute, amount)
            return replace(summary, window=chains(comparable(values), too_much, most))
        case Punct(None):
            first, last = epochs(piece, marks)[[0, -1]].tolist()
            summary = replace(summary, epochs=(first, last))
    return replace(summary, window=_fixed(plan, spec, piece, marks))


def entries(plan: Plan, pieces: Sequence[Summary], follow: Follow) -> list[Entry]:
    """Compose the summaries of the pieces of one key, in order."""
    spec = plan.spec
    assert isinstance(spec, Tumbling)
    steps = _counted(spec.policy.n, pieces) if isinstance(spec.policy, Count) else _stepped(pieces, follow)
    found: list[Entry] = []
    for i, (windows, begun) in enumerate(steps):
        pair = pieces[i - 1].watched, pieces[i].watched
        falls = i > 0 and pair[0] is not None and pair[1] is not None and bool(pair[1][0] < pair[0][1])
        found.append(Entry(windows, begun, falls))
    return [
        replace(entry, tells=i == len(found) - 1 or found[i + 1].windows > entry.windows)
        for i, entry in enumerate(found)
    ]


def scan_piece(
    plan: Plan,
    entry: Entry,
    before: Sequence[Sequences],
    piece: Sequences,
    signals: Signals,
    bounds: Bounds,
    is_last: bool,
) -> Scanned:
    """Scan a piece. ``before``: the rows of its key in the window that is open where it begins, in order.

    ``signals``: those that stand before the piece behind it. ``bounds``: as of the whole run. Where it is not the last
    one, rows of the window that is open at its end are left to the pieces behind it, and in no account.
    """
    falls = falls_of(plan, piece) + entry.falls
    if not entry.tells:
        return _untold(falls)
    held = sum(len(part) for part in before)
    rows = _behind([*before, piece]) if held else piece
    registers = replace(fresh(plan.spec, piece.rows, 1), rows=np.array([held]), windows=np.array([entry.windows]))
    past = Past(np.array([held]), registers, no_flags(len(rows)))
    if not is_last:
        plan = replace(plan, options=replace(plan.options, at_end="hold"))
        bounds = replace(bounds, clock=None, keeps=True)
    return replace(scan(plan, rows, signals, bounds, past), held=0, falls=falls)


def _untold(falls: int) -> Scanned:
    return Scanned(iter(()), 0, 0, 0, 0, 0, 0, falls, np.empty(0, np.int64), None)


def _behind(parts: Sequence[Sequences]) -> Sequences:
    rows = one_batch(pa.Table.from_batches([part.rows for part in parts]))
    pos = np.concatenate([part.pos for part in parts])
    return replace(parts[-1], bounds=np.array([0, len(pos)]), rows=rows, pos=pos)


def chain_through(plan: Plan, piece: Sequences, value: Any) -> End:
    """Follow the chain of a start value through a piece of a ``delta`` window, row by row."""
    assert isinstance(plan.spec, Tumbling)
    assert isinstance(plan.spec.policy, Delta)
    values, too_much = measured(piece, plan.spec.policy.attribute, plan.spec.policy.amount)
    return follow(comparable(values), value, too_much)


_Step: TypeAlias = tuple[int, tuple[int, int] | None]


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


def _stepped(pieces: Sequence[Summary], follow: Follow) -> list[_Step]:
    steps: list[_Step] = []
    begun: tuple[int, int] | None = None
    starts, value = 0, None
    for i, piece in enumerate(pieces):
        is_closed = i > 0 and _is_closed(piece, pieces[i - 1])
        steps.append((starts, None) if begun is None or is_closed else (starts - 1, begun))
        if isinstance(piece.window, Chains):
            end = _chained(piece.window, value, follow, i)
            value = end.value
        else:
            assert piece.window is not None
            before = pieces[i - 1].window if i else None
            end = _fixed_end(piece.window, before if isinstance(before, Fixed) else None)
        starts += end.starts
        if end.last >= 0:
            begun = (i, end.last)
    return steps


def _chained(chains: Chains, value: Any, follow: Follow, index: int) -> End:
    if value is None:
        return chains.fresh
    return end_of(chains, value) or follow(index, value)


def _fixed_end(window: Fixed, before: Fixed | None) -> End:
    is_first = before is None or before.closed or _parts(window, before)
    has_start = is_first or window.starts > 0
    return End(window.starts + is_first, window.last if has_start else -1, None)


def _parts(window: Fixed, before: Fixed) -> bool:
    """Whether a window starts between the last row of a piece and the first of the next."""
    new, old = window.labels[0], before.labels[1]
    return bool(new != old if window.amount is None else rises(new, old, window.amount))


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
    return Fixed(len(panes) - 1, last, labels, amount, is_closed)
