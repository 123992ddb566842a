"""Event-time panes: intervals of event time, each complete when the watermark passes its end (semantics section 5).

The advance of the watermark that completes a pane of a key emits it with the rows that were on time; the next advance
after each late row emits it again. So an *output* is a pane and an advance. Outputs are sorted by pane, then advance,
because a row is in all outputs of a pane from its first one on: the outputs of a row that was on time for all its
panes are one contiguous run.
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
    """The panes of each of n rows: it is late for ``[first, late]`` and on time for ``[late + 1, last]``.

    ``first``: int64 (n,), the first pane that holds each row.
    ``late``: int64 (n,), the last pane for which it is late; less than ``first`` where there is none.
    ``last``: int64 (n,), the last pane that holds it.
    ``epoch``: int64 (n,), how many of the listed advances come before it.
    """

    first: Ints
    late: Ints
    last: Ints
    epoch: Ints


@dataclass(frozen=True, slots=True)
class _Outputs:
    """P outputs, key after key, by pane and advance.

    ``bounds``: int64 (K+1,), the bounds of the keys among the outputs.
    ``pane``: int64 (P,), the pane of each output.
    ``advance``: int64 (P,), the listed advance that emits it; the number of advances where none does.
    ``late``: bool (P,), whether it shows a row that is late for the pane.
    """

    bounds: Ints
    pane: Ints
    advance: Ints
    late: Mask


def interval_panes(spec: TimeInterval, sequences: Sequences, watermarks: Watermarks, event_time: str) -> Panes:
    """Return the outputs of event-time panes, including those that only the end of the data emits.

    ``sequences``: rows in arrival order, or ordered by the event time; rows late beyond repair must be left out
    before, and rows that no interval holds are in no pane. ``watermarks``: the advances, in order; they are all that
    the function knows of the rows of other tasks. The panes of a key are sorted by interval and ``index``, and
    numbered by cause and interval.

    Raises `DataError` where outputs or bounds do not fit, `ConfigError` where a row is in too many panes.
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


def interval_rest(spec: TimeInterval, sequences: Sequences, event_time: str, last_closed: int) -> Mask:
    """Return which rows are in a pane that may still be emitted, bool (n,); ``last_closed``: the last that may not."""
    column = combined(sequences.rows.column(event_time))
    first, last = make_intervals(column.type, spec).holding(clock_values(column, event_time))
    return (first <= last) & (last > last_closed)


def _outputs(bounds: Ints, rows: _Rows, level: Ints) -> _Outputs:
    """Return all outputs: for each key the panes with rows on time, and for each of its epochs those with late rows."""
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
    repeated = _Outputs(first, pane[ascending], epoch[group][ascending], np.ones(len(pane), np.bool_))
    return _both(on_time, repeated)


def _both(on_time: _Outputs, repeated: _Outputs) -> _Outputs:
    """Merge outputs key by key."""
    _check_count(len(on_time.pane) + len(repeated.pane))
    place = _places(on_time.bounds, on_time.pane, repeated.bounds, repeated.pane)
    late = np.zeros(len(on_time.pane) + len(repeated.pane), np.bool_)
    late[place] = True
    pane, advance = np.empty(len(late), np.int64), np.empty(len(late), np.int64)
    for out, first, second in ((pane, on_time.pane, repeated.pane), (advance, on_time.advance, repeated.advance)):
        out[~late], out[late] = first, second
    return _Outputs(on_time.bounds + repeated.bounds, pane, advance, late)


def _union(bounds: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Return for each group of ranges ``[lo, hi]`` the integers in any of them: bounds of the groups, and integers."""
    lo, hi = _ascending(bounds, lo, hi)
    counts = _union_sizes(bounds, lo, hi)
    first = np.append(0, np.cumsum(counts))
    _check_count(int(first[-1]))
    return first, _union_members(bounds, lo, hi, first)


def _membership(bounds: Ints, rows: _Rows, shown: _Outputs) -> Memberships:
    """Return the run, or runs, of outputs that show each row."""
    room = len(rows.first) + int(np.maximum(rows.late - rows.first + 1, 0).sum())
    if room > _MOST:
        late = int(np.count_nonzero(rows.late >= rows.first))
        raise DataError(
            f"{late:,} rows came late for {room - len(rows.first):,} panes in all, more than a task holds",
            "use a longer creationPeriod, or a smaller --slice-size",
        )
    entries = _entries(
        bounds, rows.first, rows.late, rows.last, rows.epoch, shown.bounds, shown.pane, shown.advance, room
    )
    return Memberships(*entries, shown.bounds)


def _check_count(count: int) -> None:
    """Raise `DataError` for more panes than fit into memory."""
    if count > _MOST:
        raise DataError(f"{count:,} panes would come out of one slice", "use a longer creationPeriod")


@kernel
def _ascending(bounds: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Return the same ranges, sorted by ``lo`` within each group."""
    # rows ordered by event time come with ``lo`` ascending: then nothing is copied or sorted
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
    """Return how many integers the ranges of each group cover, int64 (groups,). Ranges ascend by ``lo``."""
    sizes = np.zeros(len(bounds) - 1, np.int64)
    for g in range(len(sizes)):
        # invariant: all integers of the ranges so far are below ``reached``, so only the rest of a range is new
        reached = np.iinfo(np.int64).min
        for i in range(bounds[g], bounds[g + 1]):
            begin = max(lo[i], reached)
            if begin <= hi[i]:
                sizes[g] += hi[i] - begin + 1
                reached = hi[i] + 1
    return sizes


@kernel
def _union_members(bounds: Ints, lo: Ints, hi: Ints, first: Ints) -> Ints:
    """Return the integers that `_union_sizes` counts, ascending in each group; ``first``: bounds of the groups."""
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
    """Return for each pane the first advance at whose level it is complete; the number of advances if none."""
    out = np.empty(len(pane), np.int64)
    # panes ascend within a key and levels ascend, so the search goes on from the place of the pane before
    for s in range(len(bounds) - 1):
        place = 0
        for p in range(bounds[s], bounds[s + 1]):
            place = _first_from(level, place, len(level), pane[p])
            out[p] = place
    return out


@kernel
def _places(first: Ints, pane: Ints, repeated_first: Ints, repeated: Ints) -> Ints:
    """Return the places of the outputs of late rows among all outputs: each after the on-time output of its pane."""
    out = np.empty(len(repeated), np.int64)
    for s in range(len(first) - 1):
        i = first[s]
        for j in range(repeated_first[s], repeated_first[s + 1]):
            i = _first_from(pane, i, first[s + 1], repeated[j] + 1)
            out[j] = i + j
    return out


@kernel
def _ranks(bounds: Ints, pane: Ints, advance: Ints) -> tuple[Ints, Ints]:
    """Return the rank of each output among those of its key, by advance, then pane; and among those of its pane."""
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
        # a stable sort by advance keeps the panes of one advance in order; without late rows nothing is sorted
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
    """Return row, enter and leave of each run of outputs that shows a row, and the bounds of the keys among them."""
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
            # A late row is in the outputs of a pane from the first advance after it on, so each late pane is a run
            # of its own, unless it continues the run before it.
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
                # The outputs of the panes that are on time are one run. Each pane has at least one output and few
                # have more, so the search for its end begins at one output a pane.
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
    """Return the first place in ``[begin, end)`` of a value not smaller, ``end`` if none; fast where it is near."""
    step, stop = 1, begin
    while stop < end and ascending[stop] < value:
        begin = stop + 1
        stop += step
        step *= 2
    return int(begin + np.searchsorted(ascending[begin : min(stop, end)], value))
