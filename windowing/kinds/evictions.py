"""Partition eviction: which keys are evicted, and when (semantics section 4).

An eviction depends on all keys together, so one pass over all rows in their total order decides it (the global pass,
decision 013). Of a window the pass only needs to know when it ends or how many rows it holds. Afterwards the
keys are independent again: see `windowing.kinds.key_lifetimes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..clock.tick_grid import Grid
from ..columns.arrays import Ints, Mask, Measures, combined, scale_of
from ..errors import DataError
from ..language.spec import PartitionEviction
from ..rows.marks import NO_FILE, Marks, with_marks_behind
from ..rows.sequence import Sequences, arrange
from ..state.window_state import RestoredState
from ..support.jit import kernel

# The loop of partition eviction: all rows of all keys in their total order, and a list of keys.
#
# The list holds the keys that hold rows, the least recently inserted-into key first. Every step is O(1): a key is a
# node of a doubly linked list. Where time empties windows, the keys that are empty come first in the list. The loop
# here, for sliding windows, knows nothing of columns: its arguments say when a row leaves its window. That of tumbling
# windows, with the same list, is in `windowing.kinds.rules.events`.


STAYS = -1
BY_EVENT = -2
"""Results of `evicted_by`: no eviction follows the row, or an event evicts the key."""

_OLDER, NEWER, BEGIN, STOP, _ROW, _HELD, _SECOND, _DUE, _STALE, _LOST, _FIELDS = range(11)
"""The fields of a node: its two neighbours; the row where its window begins, or from which on it may hold rows, -1
where the key is not in the list; the row before which its window ends, or the place at which time has emptied it; the
row inserted last; the number of rows it holds; and the `Times` of the last row."""
_NEVER = np.iinfo(np.int64).max

Nodes = npt.NDArray[np.int64]  # (K + 1, _FIELDS); node K is the head and the tail of the list


class Rules(NamedTuple):
    """The limits of a partition eviction; the largest int64 where there is no such limit.

    ``most_rows``: how many rows all keys together may hold.
    ``most_keys``: how many keys may hold rows.
    ``age``: how old the last insertion into a key may be, in whole seconds.
    """

    most_rows: int
    most_keys: int
    age: int


class Times(NamedTuple):
    """Seconds and events (ticks or marks, numbered) of the n places. Arrays are empty where they do not apply.

    ``seconds``: int64 (n,), the clock in whole seconds, below 2**62, where ages count.
    ``passed``: int64 (n,), the last event before each place.
    ``end``: the last event of all.
    ``due``: int64 (n,), where ages count: the first event at which a key last inserted into at this place is more
        than the age old.
    ``stale``: int64 (n,), the same for at least the age.
    ``lost``: int64 (n,), the first event that no longer finds the row in its window, where time evicts rows as well.
    """

    seconds: Ints
    passed: Ints
    end: int
    due: Ints
    stale: Ints
    lost: Ints


class Keys(NamedTuple):
    """The list of keys and the evictions so far.

    ``nodes``: int64 (K+1, fields), one node a key; node K is head and tail.
    ``total``: int64 (2,), how many keys the list has, and how many rows they hold.
    ``cause``: int64 (n,), the first result of `evicted_by`.
    ``event``: int64 (n,) or (0,), the second result of `evicted_by`.
    """

    nodes: Nodes
    total: Ints
    cause: Ints
    event: Ints


@kernel
def _unlink(nodes: Nodes, k: int) -> None:
    older, newer = nodes[k, _OLDER], nodes[k, NEWER]
    nodes[older, NEWER] = newer
    nodes[newer, _OLDER] = older


@kernel
def leave(keys: Keys, k: int) -> None:
    """Remove a key from the list: it holds no rows any more."""
    nodes = keys.nodes
    _unlink(nodes, k)
    keys.total[0] -= 1
    keys.total[1] -= nodes[k, _HELD]
    nodes[k, BEGIN] = -1
    nodes[k, _HELD] = 0


@kernel
def evict(keys: Keys, k: int, cause: int, event: int) -> None:
    """Remove key k from the list, and note what evicts it, and the event."""
    row = keys.nodes[k, _ROW]
    keys.cause[row] = cause
    if len(keys.event):
        keys.event[row] = event
    leave(keys, k)


@kernel
def _happen(keys: Keys, ages: bool, last: int) -> None:
    """Process the events up to ``last``.

    A key that holds no rows any more at its due event has left the list before. The keys after it in the list were
    inserted into later, so they are due later.
    """
    nodes, head = keys.nodes, len(keys.nodes) - 1
    # the list is in order of insertion and so in order of due events: the first key that is not due ends the loop
    while ages and nodes[head, NEWER] != head:
        oldest = nodes[head, NEWER]
        now = min(nodes[oldest, _DUE], nodes[oldest, _LOST])
        if now > last:
            break
        if now == nodes[oldest, _LOST]:
            leave(keys, oldest)
            continue
        while nodes[head, NEWER] != head and nodes[nodes[head, NEWER], _STALE] <= now:
            evict(keys, nodes[head, NEWER], BY_EVENT, now)


@kernel
def _leave_empty(keys: Keys, empties: bool, place: int) -> None:
    nodes, head = keys.nodes, len(keys.nodes) - 1
    while empties and nodes[head, NEWER] != head and nodes[nodes[head, NEWER], STOP] <= place:
        leave(keys, nodes[head, NEWER])


@kernel
def evict_aged(keys: Keys, age: int, second: int, row: int, event: int) -> None:
    """If the oldest key is more than ``age`` old, evict every key that is at least ``age`` old."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    k = nodes[head, NEWER]
    if k == head or second - nodes[k, _SECOND] <= age:
        return
    while k != head and second - nodes[k, _SECOND] >= age:
        evict(keys, k, row, event)
        k = nodes[head, NEWER]


@kernel
def insert(keys: Keys, k: int, row: int) -> None:
    """Insert a row into the window of key k, which becomes the newest key of the list."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    if nodes[k, BEGIN] < 0:
        nodes[k, BEGIN] = row
        keys.total[0] += 1
    else:
        _unlink(nodes, k)
    newest = nodes[head, _OLDER]
    nodes[newest, NEWER] = k
    nodes[k, _OLDER] = newest
    nodes[k, NEWER] = head
    nodes[head, _OLDER] = k
    nodes[k, _ROW] = row
    nodes[k, _HELD] += 1
    keys.total[1] += 1


@kernel
def date(nodes: Nodes, k: int, times: Times, place: int) -> None:
    """Store the times of the last insertion into the window of key k."""
    nodes[k, _SECOND] = times.seconds[place]
    if len(times.due):
        nodes[k, _DUE] = times.due[place]
        nodes[k, _STALE] = times.stale[place]
        nodes[k, _LOST] = times.lost[place] if len(times.lost) else _NEVER


@kernel
def _drop(keys: Keys, key: npt.NDArray[np.int32], row: int, following: Ints) -> None:
    while row >= 0:
        k = key[row]
        # a row before BEGIN was in an earlier window of the key and is not counted any more
        if 0 <= keys.nodes[k, BEGIN] <= row:
            keys.nodes[k, _HELD] -= 1
            keys.total[1] -= 1
        row = following[row]


@kernel
def no_keys(count: int, cause: Ints, event: Ints) -> Keys:
    """Return an empty list for ``count`` keys, with the arrays that it notes evictions in."""
    nodes = np.zeros((count + 1, _FIELDS), np.int64)
    nodes[:, BEGIN] = -1
    nodes[count, _OLDER] = count
    nodes[count, NEWER] = count
    return Keys(nodes, np.zeros(2, np.int64), cause, event)


@kernel
def _leaving(leaves: Ints) -> tuple[Ints, Ints]:
    """Return the rows that leave at each place as chains: the first row, and the row that follows each; -1: none."""
    # linked chains need two arrays and one pass; sorting the rows by their place of leaving would be O(n log n)
    first = np.full(len(leaves), -1)
    following = np.full(len(leaves), -1)
    for row in range(len(leaves)):
        if leaves[row] < len(leaves):
            following[row] = first[leaves[row]]
            first[leaves[row]] = row
    return first, following


@kernel
def evicted_by(
    order: Ints,
    key: npt.NDArray[np.int32],
    count: int,
    rules: Rules,
    leaves: Ints,
    empties: bool,
    times: Times,
    begin: int,
) -> tuple[Ints, Ints]:
    """Return for each row the cause that evicts its key after it: a row, `BY_EVENT` or `STAYS`, int64 (n,).

    The second result, int64 (n,) where there are events and else int64 (0,), is the first event that no longer finds
    the window. ``order``: int64 (n,), the row at each place; ``key``: int32 (n,), the key of each row; ``count``: the
    number of keys. ``leaves``: int64 (n,), for each row the place at which it leaves its window, n: never; of length 0
    where neither the number of rows counts nor time evicts any. ``empties``: whether time evicts rows, so that a key
    may be left without rows. Nothing is evicted before place ``begin``: an earlier run has processed those rows, and
    they are the ones it retained.
    """
    n = len(order)
    has_events = len(times.passed) > 0
    keys = no_keys(count, np.full(n, STAYS), np.zeros(n if has_events else 0, np.int64))
    nodes = keys.nodes
    counts_rows = len(leaves) > 0 and rules.most_rows < _NEVER
    first, following = _leaving(leaves if counts_rows else leaves[:0])
    now = times.passed[0] if has_events else 0
    # The order of the steps is that of section 4: events before the row, ages before the insertion, counts right
    # after it.
    for place in range(n):
        row = order[place]
        k = key[row]
        if has_events and place <= begin and place > 0:
            now = times.passed[place - 1]
        if has_events and place >= begin and times.passed[place] > now:
            _happen(keys, len(times.due) > 0, times.passed[place])
            now = times.passed[place]
        _leave_empty(keys, empties, place)
        if len(times.seconds) and place >= begin:
            evict_aged(keys, rules.age, times.seconds[place], row, now + 1)
        insert(keys, k, row)
        if empties:
            nodes[k, STOP] = leaves[row]
        if len(times.seconds):
            date(nodes, k, times, place)
        if counts_rows:
            _drop(keys, key, first[place], following)
        while place >= begin and (keys.total[0] > rules.most_keys or keys.total[1] > rules.most_rows):
            evict(keys, nodes[count, NEWER], row, now + 1)
    if has_events and times.end > now:
        _happen(keys, len(times.due) > 0, times.end)
    return keys.cause, keys.event


# What the loop is asked and what it has found, in columns.


_MOST_SECONDS = 2**62  # seconds are less than this, so that differences fit 64 bit


def first_ticks(grid: Grid, dtype: pa.DataType, clock_now: Measures, seconds: Ints, ahead: int) -> Ints:
    """Return the first tick at least ``ahead`` seconds after each of ``seconds``, of a grid on a clock of this type.

    ``clock_now``: as `now_as_measure` returns it. Where that tick comes after the current time of the clock, the result
    is any later one.
    """
    ahead = min(ahead, _MOST_SECONDS - int(seconds.min(initial=_MOST_SECONDS)))
    seconds = np.minimum(np.minimum(seconds, _MOST_SECONDS - ahead) + ahead, whole_seconds(clock_now, dtype) + 1)
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return grid.first_ticks(seconds.astype(np.float64))
    fine = per_second * grid.refine
    if int(np.abs(seconds).max(initial=1)) * fine.numerator >= 2**63 - grid.reach:
        raise DataError("the ticks do not reach to the end of a second in 64 bit", "use a coarser unit")
    return grid.first_ticks(-(-seconds * np.int64(fine.numerator) // np.int64(fine.denominator)))


def whole_seconds(values: Measures, dtype: pa.DataType) -> Ints:
    """Return the whole second of each clock value."""
    per_second = scale_of(dtype).per_second or Fraction(1)
    ends = np.array([values.min(), values.max()]) if len(values) else values
    if not all(abs(end) * per_second.denominator < _MOST_SECONDS * per_second.numerator for end in ends.tolist()):
        raise DataError("the clock is too far from 0 to count ages in seconds", "leave such rows out")
    if values.dtype != np.int64:
        return np.floor(values).astype(np.int64)
    if per_second >= 2**63:
        return -(values < 0).astype(np.int64)
    return values * np.int64(per_second.denominator) // np.int64(per_second.numerator)


@dataclass(frozen=True, slots=True)
class Evictions:
    """V evictions, by key, then in the order in which they happened. Keys are stored by value, rows never by number.

    ``keys``: the evicted keys, ascending, one row each.
    ``key``: int64 (V,), the index of each eviction's key in ``keys``.
    ``rows``: int64 (V,), how many rows of the key had come before the eviction, at least 1.
    ``causes``: V marks, on the row that caused each eviction or that precedes the window mark that caused it.
    ``by_tick``: bool (V,), which evictions the clock caused; their marks have no meaning.
    ``tick``: int64 (V,), the first tick that no longer finds the key, where ticks trigger a sliding window; of any
        value elsewhere.
    """

    keys: pa.Table
    key: Ints
    rows: Ints
    causes: Marks
    by_tick: Mask
    tick: Ints


NO_PLACES: Ints = np.empty(0, np.int64)
"""Places that do not apply."""


@dataclass(frozen=True, slots=True)
class TotalOrder:
    """All n rows of all keys in their total order.

    ``row``: int64 (n,), the row at each place.
    ``key``: int32 (n,), the key of each row.
    ``begin``: how many of these rows are restored; they come first.
    """

    row: Ints
    key: npt.NDArray[np.int32]
    begin: int


def total_order(sequences: Sequences, restored: RestoredState | None) -> TotalOrder:
    """Return the total order of the rows of all keys."""
    key = np.repeat(np.arange(len(sequences.bounds) - 1, dtype=np.int32), np.diff(sequences.bounds))
    by_arrival = np.argsort(sequences.pos, kind="stable")
    columns = [sequences.rows.column(name).take(pa.array(by_arrival)) for name in sequences.order]
    permutation = arrange(None, np.array([0, len(sequences)]), columns)
    row = by_arrival if permutation is None else by_arrival[permutation]
    if restored is None:
        return TotalOrder(row, key, 0)
    new = restored.is_new(sequences.bounds)[row]
    row = np.concatenate([row[~new], row[new]])
    return TotalOrder(row, key, int(restored.restored_rows.sum()))


def row_seconds(eviction: PartitionEviction, sequences: Sequences, row: Ints) -> Ints:
    """Return the whole second of each of some rows, int64; of length 0 where ages do not count."""
    if eviction.kind != "partitionAge":
        return NO_PLACES
    clock = combined(sequences.rows.column(sequences.order[0]))
    return whole_seconds(clock_values(clock, sequences.order[0]), clock.type)[row]


def by_key(sequences: Sequences, marks: Marks, last: Ints, cause: Ints, tick: Ints) -> Evictions:
    """Return the evictions after the rows ``last``, ascending, as `Evictions` has them.

    ``cause``: int64, a row, n + m for mark m, or `BY_EVENT` for a tick.
    """
    assert sequences.keys is not None
    key = np.searchsorted(sequences.bounds, last, side="right") - 1
    evicted = np.flatnonzero(np.bincount(key, minlength=sequences.keys.num_rows))
    by_tick = cause == BY_EVENT
    rows = sequences.rows.select(list(sequences.order))
    joined = [with_marks_behind(*columns) for columns in zip(rows.columns, marks.rows.columns, strict=True)]
    both = Marks(
        pa.RecordBatch.from_arrays(joined, schema=rows.schema),
        np.concatenate([sequences.pos, marks.pos]),
        np.full(len(sequences) + len(marks), NO_FILE),
    )
    return Evictions(
        sequences.keys.take(pa.array(evicted)),
        np.searchsorted(evicted, key),
        last + 1 - sequences.bounds[key],
        both.take(np.where(by_tick, last, cause)),
        by_tick,
        tick,
    )


def limits(eviction: PartitionEviction) -> Rules:
    """Return the limits of a partition eviction."""
    amount = min(eviction.amount.__floor__(), _NEVER)
    match eviction.kind:
        case "partitionAge":
            return Rules(_NEVER, _NEVER, amount)
        case "partitionCount":
            return Rules(_NEVER, amount, _NEVER)
    return Rules(amount, _NEVER, _NEVER)
