"""Loops over the outputs of event-time panes: flat functions over arrays, key after key, for `event_time.panes`."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints, Mask
from ...rows.panes import AT_END, TIMING, reason
from ...support.jit import kernel

Labels: TypeAlias = npt.NDArray[np.int8]

_END, _LATE, _WATERMARK = (np.int8(reason(name)) for name in ("end", "late", "watermark"))
_TIMING = tuple(np.int8(TIMING.index(name)) for name in ("late", "on_time"))


@kernel
def causes(advance: Ints, late: Mask, advances: int, rows: int) -> tuple[Ints, Labels, Labels]:
    """Return the cause, the close reason and the timing of each output."""
    # one loop: arrays of conditions and of choices, one after the other, took a tenth of the time of a hop's panes
    cause = np.empty(len(advance), np.int64)
    closed_by, timing = np.empty(len(advance), np.int8), np.empty(len(advance), np.int8)
    for p in range(len(advance)):
        at_end = advance[p] == advances
        cause[p] = AT_END if at_end else rows + advance[p]
        closed_by[p] = _END if at_end else _LATE if late[p] else _WATERMARK
        timing[p] = _TIMING[0] if late[p] else _TIMING[1]
    return cause, closed_by, timing


@kernel
def union_sizes(bounds: Ints, lo: Ints, hi: Ints) -> Ints:
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
def union_members(bounds: Ints, lo: Ints, hi: Ints, first: Ints) -> Ints:
    """Return the integers that `union_sizes` counts, ascending in each group; ``first``: bounds of the groups."""
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
def completed(bounds: Ints, pane: Ints, level: Ints) -> Ints:
    """Return for each pane the first advance at whose level it is complete; the number of advances if none."""
    out = np.empty(len(pane), np.int64)
    # panes ascend within a key and levels ascend, so the search goes on from the place of the pane before
    for s in range(len(bounds) - 1):
        for p in range(bounds[s], bounds[s + 1]):
            out[p] = _first_rising(level, out[p - 1] if p > bounds[s] else 0, pane[p])
    return out


@kernel
def _first_rising(level: Ints, begin: int, value: int) -> int:
    """Return the first place from ``begin`` on of a level not smaller, the number of levels if none."""
    if begin >= len(level) or level[begin] >= value:
        return begin
    # Most advances complete one pane, so levels mostly rise by 1, and the place is as far as the value. With a search
    # for it, panes that are far apart took three times as long.
    rise = value - level[begin]
    guess = begin + rise if 0 < rise < len(level) - begin else len(level)
    if level[guess - 1] < value:
        return _first_from(level, guess, len(level), value)
    return _first_from(level, begin + 1, guess - 1, value)


@kernel
def places(first: Ints, pane: Ints, repeated_first: Ints, repeated: Ints) -> Ints:
    """Return the places of the outputs of late rows among all outputs: each after the on-time output of its pane."""
    out = np.empty(len(repeated), np.int64)
    for s in range(len(first) - 1):
        i = first[s]
        for j in range(repeated_first[s], repeated_first[s + 1]):
            i = _first_from(pane, i, first[s + 1], repeated[j] + 1)
            out[j] = i + j
    return out


@kernel
def ranks(bounds: Ints, pane: Ints) -> tuple[Ints, Ints]:
    """Return the rank of each output among those of its key, and among those of its pane."""
    number = np.empty(len(pane), np.int64)
    index = np.zeros(len(pane), np.int64)
    for s in range(len(bounds) - 1):
        begin = bounds[s]
        for p in range(begin, bounds[s + 1]):
            number[p] = p - begin
            if p > begin and pane[p] == pane[p - 1]:
                index[p] = index[p - 1] + 1
    return number, index


@kernel
def entry_runs(
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
                own = _first_from(advance, begin, behind, epoch[i])
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
    stop = min(stop, end)
    # not `np.searchsorted`: its call alone takes longer than the usual search, which ends at the first look
    while begin < stop:
        middle = (begin + stop) >> 1
        if ascending[middle] < value:
            begin = middle + 1
        else:
            stop = middle
    return begin
