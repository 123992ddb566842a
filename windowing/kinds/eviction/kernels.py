"""The loop of partition eviction: all rows of all keys in their total order, and a list of keys (semantics section 4).

The list holds the keys that hold rows, the one inserted into longest ago first. Every step is O(1): a key is a node
of a doubly linked list, and what is known of its window is the row before which it ends. Where time empties windows,
the keys that it has emptied are the first ones of the list. The loop knows nothing of columns: where a window ends that
begins at a row, and when a row leaves a sliding window, has been found before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...support.jit import kernel

STAYS = -1
BY_EVENT = -2
"""What `evicted_by` says of rows that no eviction follows, and of evictions by an event."""

_OLDER, _NEWER, _BEGIN, _STOP, _ROW, _HELD, _SECOND, _DUE, _STALE, _LOST, _FIELDS = range(11)
"""A node: its neighbours; the row where its window begins, or from which on it may hold rows, -1 where the key is not
in the list; the row before which the window ends, or the place by which time has emptied it; the row inserted last; how
many it holds; `Times` of the last row."""
_NEVER = np.iinfo(np.int64).max

_Nodes = npt.NDArray[np.int64]  # (K + 1, _FIELDS); node K is the head and the tail of the list


class Rules(NamedTuple):
    """How many rows and keys may stay, and how old keys may be: whole seconds, where any are asked for."""

    most_rows: int
    most_keys: int
    age: int


class Windows(NamedTuple):
    """What the windows of the n rows are like. Places are of the total order; an empty array: there is no such thing.

    ``tumbles``: whether they do, or slide. ``stop``: int64 (n,), for each row the one before which a window ends that
    begins at it; ``before``: whether it ends when that row comes, else with the insertion of the row before it.
    ``leaves``: int64 (n,), for each row the place at which it leaves a window that slides; n: never. ``empties``:
    whether it leaves by time, so that a key may be left without rows.
    """

    tumbles: bool
    stop: Ints
    before: bool
    leaves: Ints
    empties: bool


class Times(NamedTuple):
    """Seconds and events (ticks or marks, numbered) of the n places. An empty array: none are asked for.

    ``seconds``: int64 (n,), of the clock, whole, where ages count: below 2**62. ``passed``: int64 (n,), the last event
    before each place, and ``end``, the last of all. ``due``, ``stale``: int64 (n,), where ages count: the first event
    at which a key that was inserted into at this place is more than the age old, and at least so old. ``lost``: int64
    (n,), the first that no longer finds the row in its window, where time evicts rows as well.
    """

    seconds: Ints
    passed: Ints
    end: int
    due: Ints
    stale: Ints
    lost: Ints


class _Keys(NamedTuple):
    """The list of keys, how many there are in it and how many rows they hold, and what has been found so far."""

    nodes: _Nodes
    total: Ints  # keys, rows
    cause: Ints
    event: Ints


@kernel
def evicted_by(
    order: Ints, key: npt.NDArray[np.int32], count: int, rules: Rules, windows: Windows, times: Times, begin: int
) -> tuple[Ints, Ints]:
    """Return for each row what evicts its key after it: a row, `BY_EVENT`, or `STAYS`; and, where there are events,
    the first that the window no longer sees. int64 (n,).

    ``order``: int64 (n,), the row at each place; ``key``: int32 (n,), the key of each row; ``count``: of keys.
    Nothing is evicted before place ``begin``: those rows were gone through before, and they are what has stayed.
    """
    n = len(order)
    has_events, has_stops, before = len(times.passed) > 0, len(windows.stop) > 0, windows.before
    keys = _no_keys(count, np.full(n, STAYS), np.zeros(n if has_events else 0, np.int64))
    nodes = keys.nodes
    counts_rows = len(windows.leaves) > 0 and rules.most_rows < _NEVER
    first, following = _leaving(windows.leaves if counts_rows else windows.leaves[:0])
    now = times.passed[0] if has_events else 0
    for place in range(n):
        row = order[place]
        k = key[row]
        if has_events and place <= begin and place > 0:
            now = times.passed[place - 1]
        if has_events and place >= begin and times.passed[place] > now:
            _happen(keys, windows.tumbles, len(times.due) > 0, now + 1, times.passed[place])
            now = times.passed[place]
        _leave_empty(keys, windows.empties, place)
        if len(times.seconds) and place >= begin:
            _evict_aged(keys, rules.age, times.seconds[place], row, now + 1)
        if before and nodes[k, _BEGIN] >= 0 and nodes[k, _STOP] == row:
            _leave(keys, k)
        if has_stops and nodes[k, _BEGIN] < 0:
            nodes[k, _STOP] = windows.stop[row]
        _insert(keys, k, row)
        if windows.empties:
            nodes[k, _STOP] = windows.leaves[row]
        if len(times.seconds):
            _date(nodes, k, times, place)
        if counts_rows:
            _drop(keys, key, first[place], following)
        while place >= begin and (keys.total[0] > rules.most_keys or keys.total[1] > rules.most_rows):
            _evict(keys, nodes[count, _NEWER], row, now + 1)
        if has_stops and not before and nodes[k, _BEGIN] >= 0 and nodes[k, _STOP] == row + 1:
            _leave(keys, k)
    if has_events and times.end > now:
        _happen(keys, windows.tumbles, len(times.due) > 0, now + 1, times.end)
    return keys.cause, keys.event


@kernel
def _happen(keys: _Keys, tumbles: bool, ages: bool, first: int, last: int) -> None:
    """The events from ``first`` to ``last``. The first of them ends all windows that tumble, and leaves none.

    A key that holds no rows any more when it is due has left the list before; those behind it were inserted into later.
    """
    nodes, head = keys.nodes, len(keys.nodes) - 1
    last = first if tumbles else last
    while ages and nodes[head, _NEWER] != head:
        oldest = nodes[head, _NEWER]
        now = min(nodes[oldest, _DUE], nodes[oldest, _LOST])
        if now > last:
            break
        if now == nodes[oldest, _LOST]:
            _leave(keys, oldest)
            continue
        while nodes[head, _NEWER] != head and nodes[nodes[head, _NEWER], _STALE] <= now:
            _evict(keys, nodes[head, _NEWER], BY_EVENT, now)
    while tumbles and nodes[head, _NEWER] != head:
        _leave(keys, nodes[head, _NEWER])


@kernel
def _leave_empty(keys: _Keys, empties: bool, place: int) -> None:
    """Take the keys out of the list that time has emptied by some place."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    while empties and nodes[head, _NEWER] != head and nodes[nodes[head, _NEWER], _STOP] <= place:
        _leave(keys, nodes[head, _NEWER])


@kernel
def _evict_aged(keys: _Keys, age: int, second: int, row: int, event: int) -> None:
    """If the oldest key is more than ``age`` old, every key goes that is at least so old."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    k = nodes[head, _NEWER]
    if k == head or second - nodes[k, _SECOND] <= age:
        return
    while k != head and second - nodes[k, _SECOND] >= age:
        _evict(keys, k, row, event)
        k = nodes[head, _NEWER]


@kernel
def _evict(keys: _Keys, k: int, cause: int, event: int) -> None:
    row = keys.nodes[k, _ROW]
    keys.cause[row] = cause
    if len(keys.event):
        keys.event[row] = event
    _leave(keys, k)


@kernel
def _insert(keys: _Keys, k: int, row: int) -> None:
    """Put a row into the window of key k, which becomes the newest of the list."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    if nodes[k, _BEGIN] < 0:
        nodes[k, _BEGIN] = row
        keys.total[0] += 1
    else:
        _unlink(nodes, k)
    newest = nodes[head, _OLDER]
    nodes[newest, _NEWER] = k
    nodes[k, _OLDER] = newest
    nodes[k, _NEWER] = head
    nodes[head, _OLDER] = k
    nodes[k, _ROW] = row
    nodes[k, _HELD] += 1
    keys.total[1] += 1


@kernel
def _date(nodes: _Nodes, k: int, times: Times, place: int) -> None:
    """Note when a row was put into the window of key k."""
    nodes[k, _SECOND] = times.seconds[place]
    if len(times.due):
        nodes[k, _DUE] = times.due[place]
        nodes[k, _STALE] = times.stale[place]
        nodes[k, _LOST] = times.lost[place] if len(times.lost) else _NEVER


@kernel
def _drop(keys: _Keys, key: npt.NDArray[np.int32], row: int, following: Ints) -> None:
    """Let rows leave their windows, if their keys still hold them."""
    while row >= 0:
        k = key[row]
        if 0 <= keys.nodes[k, _BEGIN] <= row:
            keys.nodes[k, _HELD] -= 1
            keys.total[1] -= 1
        row = following[row]


@kernel
def _leave(keys: _Keys, k: int) -> None:
    """Take a key that holds nothing any more out of the list."""
    nodes = keys.nodes
    _unlink(nodes, k)
    keys.total[0] -= 1
    keys.total[1] -= nodes[k, _HELD]
    nodes[k, _BEGIN] = -1
    nodes[k, _HELD] = 0


@kernel
def _unlink(nodes: _Nodes, k: int) -> None:
    older, newer = nodes[k, _OLDER], nodes[k, _NEWER]
    nodes[older, _NEWER] = newer
    nodes[newer, _OLDER] = older


@kernel
def _no_keys(count: int, cause: Ints, event: Ints) -> _Keys:
    nodes = np.zeros((count + 1, _FIELDS), np.int64)
    nodes[:, _BEGIN] = -1
    nodes[count, _OLDER] = count
    nodes[count, _NEWER] = count
    return _Keys(nodes, np.zeros(2, np.int64), cause, event)


@kernel
def _leaving(leaves: Ints) -> tuple[Ints, Ints]:
    """Return the rows that leave at each place as chains: the first, and the one that follows each row; -1: none."""
    first = np.full(len(leaves), -1)
    following = np.full(len(leaves), -1)
    for row in range(len(leaves)):
        if leaves[row] < len(leaves):
            following[row] = first[leaves[row]]
            first[leaves[row]] = row
    return first, following
