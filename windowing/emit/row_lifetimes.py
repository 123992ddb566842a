"""When rows come into a window and go out of it: nothing but what its panes, with their causes, imply.

Where rows come one by one, a pane stands at a *place* among the rows of its key: those before it have done their steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ..clock.interval_grid import Intervals, make_intervals
from ..clock.values import clock_values
from ..columns.arrays import Ints, Mask, combined
from ..kinds.sliding.panes import evicted_at
from ..language.spec import Batched, Sliding, TimeInterval, Tumbling
from ..panes.membership import Memberships, Ranges, edge_rows, memberships_of
from ..panes.panes import AT_END, Panes
from ..planning.plan import Plan
from ..sequences.marks import Marks, epochs
from ..sequences.sequence import Sequences

_NEVER = -1


@dataclass(frozen=True, slots=True)
class Lists:
    """Items listed by number, ascending under each. ``items``: int64 (I,), one list after the other, the lists between
    the bounds ``first``, int64 (numbers + 1,)."""

    items: Ints
    first: Ints

    def at(self, number: int) -> list[int]:
        """Return the items under a number."""
        return self.items[self.first[number] : self.first[number + 1]].tolist()


@dataclass(frozen=True, slots=True)
class RowLifetimes:
    """When the n rows come and go, and P panes between them.

    ``order``: int64 (P,), the panes by key and number. ``place``: int64 (P,), the place of each pane. ``stepping``:
    bool (n,), the rows with a step of their own, at which they come.
    ``driven``: by row, those that go at its step. ``entering``, ``leaving``: by pane, the rows that come at it, and
    those that go after it. ``unseen_go``: whether rows that a pane does not show any more are gone by then.
    ``lives``: which panes show the rows; ``entries``: its entries, by row.
    """

    order: Ints
    place: Ints
    stepping: Mask
    driven: Lists
    entering: Lists
    leaving: Lists
    drops_unseen: bool
    memberships: Memberships
    entries: Lists


def row_lifetimes(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> RowLifetimes:
    """Return when the rows of a window come and go. ``marks``: what causes of panes from n on count."""
    n = len(sequences)
    lives = memberships_of(panes.membership)
    order = np.lexsort([panes.number, panes.key])
    place, stepping, unseen_go = np.empty(0, np.int64), np.ones(n, np.bool_), False
    driven, entering, leaving = np.full(n, _NEVER), np.full(n, _NEVER), np.full(n, _NEVER)
    match plan.spec:
        case Tumbling():
            place = _after_rows(panes)
            leaving[lives.row] = np.where(panes.cause[lives.enter] == AT_END, _NEVER, lives.enter)
        case Sliding():
            place, unseen_go = _after_rows(panes), True
            driven = evicted_at(plan.spec, sequences)
            stepping = driven != np.arange(n)  # count(0) holds nothing
        case TimeInterval():
            place = _after_marks(sequences, marks, panes)
            leaving = _after_last(panes, order, lives, n)
            assert plan.options.event_time is not None
            intervals, first, last = _interval_bounds(plan.options.event_time, plan.spec, sequences)
            stepping = first <= last
            if plan.options.at_end == "drop":
                leaving[_not_yet_emitted(intervals, first, last, sequences, panes, place)] = _NEVER
        case Batched():
            place, stepping, unseen_go = sequences.bounds[panes.key], np.zeros(n, np.bool_), True
            entering[lives.row] = lives.enter
    lists = _lists_by_number(driven, n), _lists_by_number(entering, len(panes)), _lists_by_number(leaving, len(panes))
    return RowLifetimes(order, place, stepping, *lists, unseen_go, lives, _lists_by_number(lives.row, n))


def _lists_by_number(numbers: Ints, count: int) -> Lists:
    """List the places of numbers below ``count``; `_NEVER` and others are in no list."""
    items = np.flatnonzero((numbers >= 0) & (numbers < count))
    items = items[np.argsort(numbers[items], kind="stable")]
    return Lists(items, np.searchsorted(numbers[items], np.arange(count + 1)))


def _after_rows(panes: Panes) -> Ints:
    """Places right behind the newest row of each pane: a window that is not empty holds the newest row there is."""
    if isinstance(panes.membership, Ranges):
        return panes.membership.hi
    return edge_rows(panes.membership)[1] + 1


def _after_marks(sequences: Sequences, marks: Marks, panes: Panes) -> Ints:
    """Places of the marks that brought panes out, and of the end."""
    epoch = epochs(sequences, marks)
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    place = sequences.bounds[panes.key + 1]
    for key in np.flatnonzero(np.diff(first)):
        own, begin, end = slice(first[key], first[key + 1]), sequences.bounds[key], sequences.bounds[key + 1]
        mark = panes.cause[own] - len(sequences)
        behind = begin + np.searchsorted(epoch[begin:end], mark, side="right")
        place[own] = np.where(panes.cause[own] == AT_END, end, behind)
    return place


def _after_last(panes: Panes, order: Ints, lives: Memberships, rows: int) -> Ints:
    """For each row the last pane to come out that shows it; `_NEVER` where there is none or the end brought it out."""
    rank = np.empty(len(order) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(order)), _NEVER
    latest = np.full(rows, _NEVER)
    if len(lives.row):
        runs = np.stack([lives.enter, lives.leave], axis=1).ravel()
        np.maximum.at(latest, lives.row, np.maximum.reduceat(rank, runs)[::2])
    pane = np.append(order, _NEVER)[latest]
    return np.where(np.append(panes.cause, AT_END)[pane] == AT_END, _NEVER, pane)


def _interval_bounds(name: str, spec: TimeInterval, sequences: Sequences) -> tuple[Intervals, Ints, Ints]:
    """The intervals, and the first and the last that hold each row: the first is the greater one where none does."""
    column = combined(sequences.rows.column(name))
    intervals = make_intervals(column.type, spec)
    return intervals, *intervals.holding(clock_values(column, name))


def _not_yet_emitted(
    intervals: Intervals, first: Ints, last: Ints, sequences: Sequences, panes: Panes, place: Ints
) -> list[int]:
    """The rows of intervals that got rows since they last came out: the end would show them, were it not dropped."""
    key = np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds)).tolist()
    held = [
        [(k, interval) for interval in range(low, high + 1)]
        for k, low, high in zip(key, first.tolist(), last.tolist(), strict=True)
    ]
    newest = {one: row for row, mine in enumerate(held) for one in mine}
    known = np.array(sorted({interval for _, interval in newest}), np.int64)
    interval = known[pc.index_in(panes.start, value_set=intervals.bounds(known)[0]).to_numpy()]
    outputs = zip(panes.key.tolist(), interval.tolist(), strict=True)
    shown = dict(zip(outputs, place.tolist(), strict=True))  # of several outputs of one the last, which stands behind
    fresh = {one for one, row in newest.items() if row >= shown.get(one, 0)}
    return [row for row, mine in enumerate(held) if not fresh.isdisjoint(mine)]
