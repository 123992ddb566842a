"""When rows enter and leave event-time panes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from ...clock.interval_grid import Intervals, make_intervals
from ...clock.values import clock_values
from ...columns.arrays import Ints, combined
from ...language.spec import TimeInterval
from ...panes.membership import Memberships
from ...panes.panes import AT_END, Panes
from ...sequences.marks import Marks, epochs
from ...sequences.sequence import Sequences
from ..context import WindowContext
from ..row_steps import NEVER, RowSteps, steps_of_rows


def interval_steps(
    spec: TimeInterval, sequences: Sequences, marks: Marks, panes: Panes, lives: Memberships, context: WindowContext
) -> RowSteps:
    """Return when rows enter and leave: a row enters by itself, and leaves after the last pane that shows it."""
    assert context.event_time is not None
    order = np.lexsort([panes.number, panes.key])
    place = _after_marks(sequences, marks, panes)
    leaving = _after_last(panes, order, lives, len(sequences))
    intervals, first, last = _interval_bounds(context.event_time, spec, sequences)
    if context.drop:
        leaving[_not_yet_emitted(intervals, first, last, sequences, panes, place)] = NEVER
    return replace(steps_of_rows(place, len(sequences)), stepping=first <= last, leaving=leaving)


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
    """Return for each row the last emitted pane that shows it; `NEVER` if none, or if the end triggered that pane."""
    rank = np.empty(len(order) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(order)), NEVER
    latest = np.full(rows, NEVER)
    if len(lives.row):
        runs = np.stack([lives.enter, lives.leave], axis=1).ravel()
        np.maximum.at(latest, lives.row, np.maximum.reduceat(rank, runs)[::2])
    pane = np.append(order, NEVER)[latest]
    return np.where(np.append(panes.cause, AT_END)[pane] == AT_END, NEVER, pane)


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
