"""When rows enter and leave event-time panes.

A row leaves when the last of its intervals is closed: no further row can enter it, so no pane will show the row again.
It leaves after the pane that this advance of the watermark triggers; where there is none, with the next step of its
key. Neither depends on rows to come, so incremental runs give the same steps as one run.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...clock.interval_grid import clock_values, make_intervals
from ...clock.watermark import NO_LEVEL
from ...columns.arrays import Ints, Mask, combined
from ...language.spec import TimeInterval
from ...rows.marks import epochs
from ...rows.membership import Memberships
from ...rows.panes import AT_END, Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..row_steps import NEVER, RowSteps, steps_of_rows
from ..signals import Signals


def interval_steps(
    spec: TimeInterval,
    sequences: Sequences,
    signals: Signals,
    panes: Panes,
    lives: Memberships,
    context: WindowContext,
) -> RowSteps:
    """Return when rows enter and leave: a row enters by itself, and leaves when its last interval is closed."""
    assert context.event_time is not None
    column = combined(sequences.rows.column(context.event_time))
    intervals = make_intervals(column.type, spec)
    first, last = intervals.holding(clock_values(column, context.event_time))
    epoch = epochs(sequences, signals.marks)
    order = np.lexsort([panes.number, panes.key])
    place = _after_marks(sequences, epoch, panes)
    closing = np.searchsorted(_closed(spec, signals, intervals.scale.per_second is None, context), last)
    closing[(closing == len(signals)) | (first > last)] = NEVER
    leaving = _after_last(panes, order, lives, closing, len(sequences))
    is_new = first <= last
    if context.restored is not None:
        is_new &= context.restored.is_new(sequences.bounds)
    rest = np.flatnonzero((closing != NEVER) & (leaving == NEVER))
    outdated, driven = np.full(len(sequences), NEVER), np.full(len(sequences), NEVER)
    outdated[rest], driven[rest] = _next_steps(sequences, epoch, panes, order, place, is_new, rest, closing[rest])
    steps = steps_of_rows(place, len(sequences))
    return replace(steps, stepping=first <= last, driven=driven, leaving=leaving, outdated=outdated)


def _closed(spec: TimeInterval, signals: Signals, is_float: bool, context: WindowContext) -> Ints:
    """Return the last interval that is closed after each advance: the discard age in whole periods before the level."""
    assert signals.watermarks is not None
    level = signals.watermarks.level
    if context.in_event_order or not spec.discard_age:
        return level
    # the bounds of a float clock are rounded, and so is what is late
    behind = math.ceil(spec.discard_age / spec.period) + is_float
    return np.where(level < NO_LEVEL + behind, NO_LEVEL, level - min(behind, 2**62))


def _after_marks(sequences: Sequences, epoch: Ints, panes: Panes) -> Ints:
    """Return the places of the marks, or the end of the key, that triggered panes."""
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    place = sequences.bounds[panes.key + 1]
    for key in np.flatnonzero(np.diff(first)):
        own, begin, end = slice(first[key], first[key + 1]), sequences.bounds[key], sequences.bounds[key + 1]
        mark = panes.cause[own] - len(sequences)
        behind = begin + np.searchsorted(epoch[begin:end], mark, side="right")
        place[own] = np.where(panes.cause[own] == AT_END, end, behind)
    return place


def _after_last(panes: Panes, order: Ints, lives: Memberships, closing: Ints, rows: int) -> Ints:
    """Return for each row the last pane that shows it and is caused by the advance that closes its last interval."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    counts = lives.leave - lives.enter
    row = np.repeat(lives.row, counts)
    pane = np.repeat(lives.enter - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    at_closing = panes.cause[pane] - rows == closing[row]
    latest = np.full(rows, NEVER)
    np.maximum.at(latest, row[at_closing], rank[pane[at_closing]])
    return np.append(order, NEVER)[latest]


def _next_steps(
    sequences: Sequences, epoch: Ints, panes: Panes, order: Ints, place: Ints, steps: Mask, rest: Ints, closing: Ints
) -> tuple[Ints, Ints]:
    """Return the next pane, or the next row with a step, after the advance ``closing``; one of them is `NEVER`.

    ``rest``: int64 (R,), the rows that look for one. ``steps``: bool (n,), rows with a step in this run.
    """
    n, key_of_row = len(sequences), np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds))
    size = 2 + max(int(numbers.max(initial=0)) for numbers in (epoch, panes.cause - n, closing))
    wanted = key_of_row[rest] * size + closing + 1
    at_signal = order[panes.cause[order] != AT_END]
    pane = np.searchsorted(panes.key[at_signal] * size + panes.cause[at_signal] - n, wanted)
    stepping = np.flatnonzero(steps)
    row = np.searchsorted(key_of_row[stepping] * size + epoch[stepping], wanted)
    pane, row = np.append(at_signal, NEVER)[pane], np.append(stepping, NEVER)[row]
    pane[np.append(panes.key, -1)[pane] != key_of_row[rest]] = NEVER
    row[np.append(key_of_row, -1)[row] != key_of_row[rest]] = NEVER
    is_pane = (pane != NEVER) & ((row == NEVER) | (np.append(place, n)[pane] <= row))
    return np.where(is_pane, pane, NEVER), np.where(is_pane, NEVER, row)
