"""Event-time panes: intervals of event time, each complete when the watermark passes its end (semantics section 5).

A pane of a key comes out once with the rows that were on time, at the advance of the watermark that completes it, and
again at the next advance after each late row. So an *output* is a pane and an advance. Outputs stand by pane, then
advance, since a row shows in all outputs of a pane from its first on: if it was on time for all its panes, that is one
run of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...clock.interval_grid import make_intervals
from ...clock.values import clock_values
from ...clock.watermark import NO_LEVEL, Watermarks
from ...columns.arrays import Ints, Mask, combined
from ...errors import DataError
from ...language.spec import TimeInterval
from ...panes.membership import Memberships
from ...panes.panes import AT_END, TIMING, Outputs, Panes, reason
from ...sequences.marks import epochs
from ...sequences.sequence import Sequences
from ...support.jit import kernel

_MOST = 60_000_000
_END, _LATE, _WATERMARK = (np.int8(reason(name)) for name in ("end", "late", "watermark"))
_TIMING = tuple(np.int8(TIMING.index(name)) for name in ("late", "on_time"))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where each of n rows belongs, int64 (n,) each.

    It is late for the panes ``[first, late]`` and on time for ``[late + 1, last]``; either may be none. ``epoch``
    listed advances stand before it.
    """

    first: Ints
    late: Ints
    last: Ints
    epoch: Ints


@dataclass(frozen=True, slots=True)
class _Outputs:
    """P outputs, key after key, by pane and advance.

    ``bounds``: int64 (K+1,), those of the keys. ``pane``: int64 (P,). ``advance``: int64 (P,), which of the listed
    advances brought it out; their number where none did. ``late``: (P,), whether it shows a row late for the pane.
    """

    bounds: Ints
    pane: Ints
    advance: Ints
    late: Mask


def interval_panes(spec: TimeInterval, sequences: Sequences, watermarks: Watermarks, event_time: str) -> Panes:
    """Return the outputs of event-time panes, those that only the end of the data brings out included.

    ``sequences``: rows in arrival order, or ordered by the event time; none beyond repair; those that no interval
    holds show in no pane. ``watermarks``: in order; what they stand for is all that is known of other rows. A key's
    panes stand by interval and ``index``, and are numbered by cause and interval.

    Raises `DataError` where outputs or bounds do not fit, `ConfigError` where a row is in absurdly many panes.
    """
    column = combined(sequences.rows.column(event_time))
    intervals = make_intervals(column.type, spec)
    epoch = epochs(sequences, watermarks.marks)
    first, last = intervals.holding(clock_values(column, event_time))
    level = np.append(watermarks.level, NO_LEVEL)[epoch - 1]  # epoch 0 takes the last
    rows = _Rows(first, np.minimum(np.maximum(level, first - 1), last), last, epoch)
    shown = _outputs(sequences.bounds, rows, watermarks.level)
    number, index = _ranks(shown.bounds, shown.pane, shown.advance)
    start, end = intervals.bounds(shown.pane)
    open_at_end = shown.advance == len(watermarks)
    return Panes(
        key=np.repeat(np.arange(len(shown.bounds) - 1), np.diff(shown.bounds)),
        number=number,
        membership=_membership(sequences.bounds, rows, shown),
        cause=np.where(open_at_end, AT_END, len(sequences) + shown.advance),
        closed_by=np.where(open_at_end, _END, np.where(shown.late, _LATE, _WATERMARK)),
        start=start,
        end=end,
        outputs=Outputs(np.where(shown.late, *_TIMING), index),
    )


def interval_rest(spec: TimeInterval, sequences: Sequences, event_time: str, dead: int) -> Mask:
    """Return which rows are in a pane that may still come out, (n,); ``dead``: the last that may not."""
    column = combined(sequences.rows.column(event_time))
    first, last = make_intervals(column.type, spec).holding(clock_values(column, event_time))
    return (first <= last) & (last > dead)


def _outputs(bounds: Ints, rows: _Rows, level: Ints) -> _Outputs:
    """All outputs: of each key the panes with rows on time, and of each epoch of a key those with late rows."""
    first, pane = _union(bounds, rows.late + 1, rows.last)
    on_time = _Outputs(first, pane, _completed(first, pane, level), np.zeros(len(pane), np.bool_))
    late = np.flatnonzero(rows.first <= rows.late)
    if not len(late):
        return on_time
    key, epoch = np.searchsorted(bounds, late, side="right") - 1, rows.epoch[late]
    starts = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(epoch) != 0)))
    groups, pane = _union(np.append(starts, len(late)), rows.first[late], rows.late[late])
    group = np.repeat(starts, np.diff(groups))
    ascending = np.lexsort([epoch[group], pane, key[group]])
    first = np.searchsorted(key[group], np.arange(len(bounds)))
    again = _Outputs(first, pane[ascending], epoch[group][ascending], np.ones(len(pane), np.bool_))
    return _both(on_time, again)


def _both(on_time: _Outputs, again: _Outputs) -> _Outputs:
    """Merge outputs key by key."""
    _check_count(len(on_time.pane) + len(again.pane))
    place = _places(on_time.bounds, on_time.pane, again.bounds, again.pane)
    late = np.zeros(len(on_time.pane) + len(again.pane), np.bool_)
    late[place] = True
    pane, advance = np.empty(len(late), np.int64), np.empty(len(late), np.int64)
    for out, first, second in ((pane, on_time.pane, again.pane), (advance, on_time.advance, again.advance)):
        out[~late], out[late] = first, second
    return _Outputs(on_time.bounds + again.bounds, pane, advance, late)


def _union(bounds: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Of each group of ranges the whole numbers in any of ``[lo, hi]``: the bounds of the groups, and the numbers."""
    lo, hi = _ascending(bounds, lo, hi)
    counts = _union_sizes(bounds, lo, hi)
    first = np.append(0, np.cumsum(counts))
    _check_count(int(first[-1]))
    return first, _union_members(bounds, lo, hi, first)


def _membership(bounds: Ints, rows: _Rows, shown: _Outputs) -> Memberships:
    """The run, or runs, of outputs that show each row."""
    room = len(rows.first) + int(np.maximum(rows.late - rows.first + 1, 0).sum())
    if room > _MOST:
        late = int(np.count_nonzero(rows.late >= rows.first))
        raise DataError(
            f"{late:,} rows came late for {room - len(rows.first):,} panes together, more than a task holds",
            "use a longer creationPeriod, or a smaller --slice-size",
        )
    entries = _entries(
        bounds, rows.first, rows.late, rows.last, rows.epoch, shown.bounds, shown.pane, shown.advance, room
    )
    return Memberships(*entries, shown.bounds)


def _check_count(count: int) -> None:
    """Refuse what no memory holds."""
    if count > _MOST:
        raise DataError(f"{count:,} panes would come out of one slice", "use a longer creationPeriod")


@kernel
def _ascending(bounds: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """The same ranges, sorted by ``lo`` within each group."""
    out_lo, out_hi = lo, hi
    copied = False
    for g in range(len(bounds) - 1):
        begin, end = bounds[g], bounds[g + 1]
        i = begin + 1
        while i < end and lo[i] >= lo[i - 1]:
            i += 1
        if i >= end:
            continue
        if not copied:
            out_lo, out_hi = lo.copy(), hi.copy()
            copied = True
        turn = np.argsort(lo[begin:end])
        out_lo[begin:end] = lo[begin:end][turn]
        out_hi[begin:end] = hi[begin:end][turn]
    return out_lo, out_hi


@kernel
def _union_sizes(bounds: Ints, lo: Ints, hi: Ints) -> Ints:
    sizes = np.zeros(len(bounds) - 1, np.int64)
    for g in range(len(sizes)):
        reached = np.iinfo(np.int64).min
        for i in range(bounds[g], bounds[g + 1]):
            begin = max(lo[i], reached)
            if begin <= hi[i]:
                sizes[g] += hi[i] - begin + 1
                reached = hi[i] + 1
    return sizes


@kernel
def _union_members(bounds: Ints, lo: Ints, hi: Ints, first: Ints) -> Ints:
    members = np.empty(first[-1], np.int64)
    place = 0
    for g in range(len(bounds) - 1):
        reached = np.iinfo(np.int64).min
        for i in range(bounds[g], bounds[g + 1]):
            for k in range(max(lo[i], reached), hi[i] + 1):
                members[place] = k
                place += 1
                reached = k + 1
    return members


@kernel
def _completed(bounds: Ints, pane: Ints, level: Ints) -> Ints:
    """For each pane the first advance at whose level it is complete; their number where there is none."""
    out = np.empty(len(pane), np.int64)
    for s in range(len(bounds) - 1):
        place = 0
        for p in range(bounds[s], bounds[s + 1]):
            place = _first_from(level, place, len(level), pane[p])
            out[p] = place
    return out


@kernel
def _places(first: Ints, pane: Ints, again_first: Ints, again: Ints) -> Ints:
    """Where the outputs of late rows come to stand among all: each behind the one on time of its pane."""
    out = np.empty(len(again), np.int64)
    for s in range(len(first) - 1):
        i = first[s]
        for j in range(again_first[s], again_first[s + 1]):
            i = _first_from(pane, i, first[s + 1], again[j] + 1)
            out[j] = i + j
    return out


@kernel
def _ranks(bounds: Ints, pane: Ints, advance: Ints) -> tuple[Ints, Ints]:
    """Rank of each output among those of its key, by advance, then pane; and among those of its pane."""
    number = np.empty(len(pane), np.int64)
    index = np.zeros(len(pane), np.int64)
    for s in range(len(bounds) - 1):
        begin, end = bounds[s], bounds[s + 1]
        falls = False
        for p in range(begin, end):
            number[p] = p - begin
            if p > begin:
                falls |= advance[p] < advance[p - 1]
                if pane[p] == pane[p - 1]:
                    index[p] = index[p - 1] + 1
        if falls:
            number[begin:end][np.argsort(advance[begin:end], kind="mergesort")] = np.arange(end - begin)
    return number, index


@kernel
def _entries(
    bounds: Ints,
    first: Ints,
    late: Ints,
    last: Ints,
    epoch: Ints,
    shown_bounds: Ints,
    pane: Ints,
    advance: Ints,
    room: int,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Row, enter and leave of each run of outputs that shows a row, and the bounds of the keys among them."""
    row = np.empty(room, np.int64)
    enter = np.empty(room, np.int64)
    leave = np.empty(room, np.int64)
    first_entry = np.zeros(len(bounds), np.int64)
    count = 0
    for s in range(len(bounds) - 1):
        end = shown_bounds[s + 1]
        place = shown_bounds[s]
        for i in range(bounds[s], bounds[s + 1]):
            if first[i] > last[i]:
                continue
            if place > shown_bounds[s] and pane[place - 1] >= first[i]:
                place = shown_bounds[s]
            place = _first_from(pane, place, end, first[i])
            begin = place
            mine = count
            for k in range(first[i], late[i] + 1):
                behind = _first_from(pane, begin, end, k + 1)
                own = begin + np.searchsorted(advance[begin:behind], epoch[i])
                if count > mine and leave[count - 1] == own:
                    leave[count - 1] = behind
                else:
                    row[count], enter[count], leave[count] = i, own, behind
                    count += 1
                begin = behind
            if late[i] < last[i]:
                # each pane has an output at least, and few have more
                behind = _first_from(pane, begin + last[i] - late[i], end, last[i] + 1)
                if count > mine:
                    leave[count - 1] = behind
                else:
                    row[count], enter[count], leave[count] = i, begin, behind
                    count += 1
        first_entry[s + 1] = count
    return row[:count], enter[:count], leave[:count], first_entry


@kernel
def _first_from(ascending: Ints, begin: int, end: int, value: int) -> int:
    """First place in ``[begin, end)`` of a value not smaller, ``end`` where there is none; quick if it is near."""
    step, stop = 1, begin
    while stop < end and ascending[stop] < value:
        begin = stop + 1
        stop += step
        step *= 2
    return int(begin + np.searchsorted(ascending[begin : min(stop, end)], value))
