"""When rows enter and leave a window, as its panes and their causes imply.

Where rows enter one by one, a pane has a *place* among the rows of its key: rows before it have done their steps.
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
    """Lists of items by number, each ascending.

    ``items``: int64 (I,), one list after the other.
    ``first``: int64 (numbers + 1,), the bounds of the lists.
    """

    items: Ints
    first: Ints

    def at(self, number: int) -> list[int]:
        """Return the list of a number."""
        return self.items[self.first[number] : self.first[number + 1]].tolist()


@dataclass(frozen=True, slots=True)
class RowLifetimes:
    """When the n rows enter and leave, and the P panes between them.

    ``order``: int64 (P,), the panes by key and number.
    ``place``: int64 (P,), the place of each pane.
    ``stepping``: bool (n,), the rows with a step of their own, at which they enter.
    ``driven``: by row, the rows that leave at its step.
    ``entering``: by pane, the rows that enter at it.
    ``leaving``: by pane, the rows that leave after it.
    ``drops_unseen``: whether rows that a pane no longer shows have left by then.
    ``memberships``: which panes show the rows.
    ``entries``: by row, its entries in ``memberships``.
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
    """Return when the rows of a window enter and leave; causes of panes from n on refer to ``marks``."""
    n = len(sequences)
    lives = memberships_of(panes.membership)
    order = np.lexsort([panes.number, panes.key])
    place, stepping, drops_unseen = np.empty(0, np.int64), np.ones(n, np.bool_), False
    driven, entering, leaving = np.full(n, _NEVER), np.full(n, _NEVER), np.full(n, _NEVER)
    match plan.spec:
        case Tumbling():
            place = _after_rows(panes)
            leaving[lives.row] = np.where(panes.cause[lives.enter] == AT_END, _NEVER, lives.enter)
        case Sliding():
            place, drops_unseen = _after_rows(panes), True
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
            place, stepping, drops_unseen = sequences.bounds[panes.key], np.zeros(n, np.bool_), True
            entering[lives.row] = lives.enter
    lists = _lists_by_number(driven, n), _lists_by_number(entering, len(panes)), _lists_by_number(leaving, len(panes))
    return RowLifetimes(order, place, stepping, *lists, drops_unseen, lives, _lists_by_number(lives.row, n))


def _lists_by_number(numbers: Ints, count: int) -> Lists:
    """List the places of numbers below ``count``; `_NEVER` and others are in no list."""
    items = np.flatnonzero((numbers >= 0) & (numbers < count))
    items = items[np.argsort(numbers[items], kind="stable")]
    return Lists(items, np.searchsorted(numbers[items], np.arange(count + 1)))


def _after_rows(panes: Panes) -> Ints:
    """Return the place right after the newest row of each pane: a window that is not empty holds the newest row."""
    if isinstance(panes.membership, Ranges):
        return panes.membership.hi
    return edge_rows(panes.membership)[1] + 1


def _after_marks(sequences: Sequences, marks: Marks, panes: Panes) -> Ints:
    """Return the places of the marks, or the end of the key, that triggered panes."""
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
    """Return for each row the last emitted pane that shows it; `_NEVER` if none, or if the end triggered that pane."""
    rank = np.empty(len(order) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(order)), _NEVER
    latest = np.full(rows, _NEVER)
    if len(lives.row):
        runs = np.stack([lives.enter, lives.leave], axis=1).ravel()
        np.maximum.at(latest, lives.row, np.maximum.reduceat(rank, runs)[::2])
    pane = np.append(order, _NEVER)[latest]
    return np.where(np.append(panes.cause, AT_END)[pane] == AT_END, _NEVER, pane)


def _interval_bounds(name: str, spec: TimeInterval, sequences: Sequences) -> tuple[Intervals, Ints, Ints]:
    """Return the intervals, and the first and last that hold each row; where none does, the first is the greater."""
    column = combined(sequences.rows.column(name))
    intervals = make_intervals(column.type, spec)
    return intervals, *intervals.holding(clock_values(column, name))


def _not_yet_emitted(
    intervals: Intervals, first: Ints, last: Ints, sequences: Sequences, panes: Panes, place: Ints
) -> list[int]:
    """Return the rows of intervals with new rows since their last output, which the dropped end would have shown."""
    key = np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds)).tolist()
    held = [
        [(k, interval) for interval in range(low, high + 1)]
        for k, low, high in zip(key, first.tolist(), last.tolist(), strict=True)
    ]
    newest = {one: row for row, mine in enumerate(held) for one in mine}
    known = np.array(sorted({interval for _, interval in newest}), np.int64)
    interval = known[pc.index_in(panes.start, value_set=intervals.bounds(known)[0]).to_numpy()]
    outputs = zip(panes.key.tolist(), interval.tolist(), strict=True)
    shown = dict(zip(outputs, place.tolist(), strict=True))  # the last output of an interval wins
    fresh = {one for one, row in newest.items() if row >= shown.get(one, 0)}
    return [row for row, mine in enumerate(held) if not fresh.isdisjoint(mine)]
