"""Partition eviction of windows under several rules: which keys go, and when (semantics sections 4 and 12).

The loop is that of `windowing.kinds.eviction.kernels`, and so is the list of keys; but here the rows of a window decide
where it ends, a row may be in no window, and what comes first of all marks and ticks ends the windows of all keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....clock.interval_grid import clock_values
from ....columns.arrays import Ints, Mask
from ....language.spec import PartitionEviction
from ....rows.marks import Marks
from ....rows.sequence import Sequences
from ....support.jit import kernel
from ...eviction.events import whole_seconds
from ...eviction.evictions import NO_PLACES, Evictions, TotalOrder, by_key, limits, row_seconds
from ...eviction.kernels import (
    BEGIN,
    BY_EVENT,
    NEWER,
    STAYS,
    STOP,
    Keys,
    Rules,
    Times,
    date,
    evict,
    evict_aged,
    insert,
    leave,
    no_keys,
)
from .events import Events
from .first_end import RowRules, first_end
from .walk import AFTER, BEFORE, NEVER

_AT_FIRST = 8  # rows that are looked at where a window begins; doubled while it goes on


class _Happening(NamedTuple):
    """What comes between the n places of the total order.

    ``comes``: bool (n,), whether a mark or a tick comes behind the place, before the next one; of length 0: none does.
    ``second``: int64 (n,), the whole second of the first one, where ages count; else of length 0.
    """

    comes: Mask
    second: Ints


def evictions_by_rules(
    eviction: PartitionEviction,
    order: TotalOrder,
    sequences: Sequences,
    marks: Marks,
    rules: RowRules,
    events: Events | None,
) -> Evictions:
    """Return all evictions; ``sequences`` hold all rows of all keys.

    ``rules``: what they say of these rows. ``events``: of the places in the total order, as if of one key; None where
    neither marks nor ticks end windows. Raises `DataError` where ages are beyond 2**62 seconds.
    """
    seconds = row_seconds(eviction, sequences, order.row)
    times = Times(seconds, NO_PLACES, 0, NO_PLACES, NO_PLACES, NO_PLACES)
    happening = _happening(events, sequences, marks, len(seconds) > 0)
    keys = no_keys(order.keys, np.full(len(order.row), STAYS), np.zeros(len(order.row), np.int64))
    _follow(keys, order.row, order.key, sequences.bounds, order.begin, limits(eviction), times, happening, rules)
    last = np.flatnonzero(keys.cause != STAYS)
    cause, place = keys.cause[last], keys.event[last]
    if events is not None:
        by_event = np.flatnonzero(cause == BY_EVENT)
        mark = events.cause[place[by_event]]
        cause[by_event] = np.where(mark >= 0, mark, BY_EVENT)
    return by_key(sequences, marks, last, cause, place)


def _happening(events: Events | None, sequences: Sequences, marks: Marks, ages: bool) -> _Happening:
    if events is None:
        return _Happening(np.zeros(0, np.bool_), NO_PLACES)
    comes = events.rule >= 0
    if not ages:
        return _Happening(comes, NO_PLACES)
    second = np.zeros(len(comes), np.int64)
    by_mark = comes & (events.cause >= 0)
    name = sequences.order[0]
    for picks, column, which in (
        (by_mark, marks.rows.column(0), events.cause - len(comes)),
        (comes & ~by_mark, events.at, np.arange(len(comes))),
    ):
        if column is not None and picks.any():
            instants = column.take(pa.array(which[picks]))
            second[picks] = whole_seconds(clock_values(instants, name), instants.type)
    return _Happening(comes, second)


@kernel
def _follow(
    keys: Keys,
    order: Ints,
    key: npt.NDArray[np.int32],
    bounds: Ints,
    begin: int,
    rules: Rules,
    times: Times,
    happening: _Happening,
    row_rules: RowRules,
) -> None:
    """Process the rows in their total order; nothing is evicted before place ``begin``, as in `evicted_by`."""
    nodes, count, opens = keys.nodes, len(bounds) - 1, row_rules.flags.opens
    how = np.full(count, NEVER)
    comes, has_events, first = happening.comes, len(happening.comes) > 0, max(begin, 1)
    seconds, has_ages = times.seconds, len(times.seconds) > 0
    # The steps are those of `evicted_by`. Where rows are in no window they are not inserted, and the ages of keys are
    # asked for all the same: whether a row is inserted depends on whether its key is still there.
    for place in range(len(order)):
        row = order[place]
        k = key[row]
        if has_events and place >= first and comes[place - 1]:
            _happen(keys, happening.second, rules.age, place - 1)
        if has_ages and place >= begin:
            evict_aged(keys, rules.age, seconds[place], row, place)
        if nodes[k, BEGIN] >= 0 and nodes[k, STOP] == row:
            if how[k] == NEVER:
                ahead = 2 * (row - nodes[k, BEGIN])
                nodes[k, STOP], how[k] = first_end(row_rules, nodes[k, BEGIN], min(row + ahead, bounds[k + 1]))
            if how[k] == BEFORE and nodes[k, STOP] == row:
                leave(keys, k)
        if nodes[k, BEGIN] < 0:
            if len(opens) and not opens[row]:
                continue
            nodes[k, STOP], how[k] = first_end(row_rules, row, min(row + _AT_FIRST, bounds[k + 1]))
        insert(keys, k, row)
        if has_ages:
            date(nodes, k, times, place)
        while place >= begin and (keys.total[0] > rules.most_keys or keys.total[1] > rules.most_rows):
            evict(keys, nodes[count, NEWER], row, place)
        if how[k] == AFTER and nodes[k, BEGIN] >= 0 and nodes[k, STOP] == row + 1:
            leave(keys, k)
    if has_events and len(order) and comes[-1]:
        _happen(keys, happening.second, rules.age, len(order) - 1)


@kernel
def _happen(keys: Keys, seconds: Ints, age: int, place: int) -> None:
    """Process what comes behind a place: it finds keys too old, and ends the windows of all others."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    if len(seconds):
        evict_aged(keys, age, seconds[place], BY_EVENT, place)
    while nodes[head, NEWER] != head:
        leave(keys, nodes[head, NEWER])
