"""Loops of batched windows: when each row enters and leaves, and which moments change what is visible (section 6).

A *moment* is when the content of a key's window may change. Moments are numbered key after key, within each key in the
order of time; ``first``, int64 (K+1,), holds the bounds of the keys among them. A row is in the window at the moments
``[enter, leave)``: a row that stays to the end has the bound of its key as ``leave``, and a row that never enters has
``enter == leave``.
"""

from __future__ import annotations

import numpy as np

from ...columns.arrays import Ints, Mask, Measures
from ...columns.radix_sort import Codes
from ...rows.panes import AT_END, BY_TICK
from ...support.jit import kernel


@kernel
def expiries(bounds: Ints, comes: Measures, goes: Measures) -> tuple[Ints, Ints, Ints, Ints, Measures]:
    """Return the moments of a window in which each row enters alone, and leaves with all rows of the same instant.

    ``comes``, ``goes``: instants (n,) of entering and leaving, ascending within a key, ``comes < goes``; at one instant
    rows leave before others enter. Returns ``first``, ``enter`` and ``leave``, and for each moment the row that enters
    (`BY_TICK` where rows leave) and the instant.
    """
    n = len(comes)
    first = np.zeros(len(bounds), np.int64)
    enter = np.empty(n, np.int64)
    leave = np.empty(n, np.int64)
    cause = np.empty(2 * n, np.int64)
    instant = np.empty(2 * n, comes.dtype)
    m = 0
    for k in range(len(bounds) - 1):
        # A merge of two ascending lists: the rows [old, new) are in the window. Each turn enters one row or lets at
        # least one leave, so a key has at most two moments a row.
        new, old, end = bounds[k], bounds[k], bounds[k + 1]
        while old < end:
            if new < end and comes[new] < goes[old]:
                cause[m] = new
                instant[m] = comes[new]
                enter[new] = m
                new += 1
            else:
                cause[m] = BY_TICK
                instant[m] = goes[old]
                while old < new and goes[old] == instant[m]:
                    leave[old] = m
                    old += 1
            m += 1
        first[k + 1] = m
    return first, enter, leave, cause[:m], instant[:m]


@kernel
def changing_ticks(bounds: Ints, comes: Ints, goes: Ints, last: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the moments of a window that changes at ticks only: the ticks up to ``last`` at which rows enter or leave.

    ``comes``, ``goes``: int64 (n,), ticks of entering and leaving, ascending within a key, ``comes <= goes``; all rows
    enter by ``last``. Returns ``first``, ``enter`` and ``leave``, and the tick of each moment.
    """
    n = len(comes)
    first = np.zeros(len(bounds), np.int64)
    enter = np.empty(n, np.int64)
    leave = np.empty(n, np.int64)
    tick = np.empty(2 * n, np.int64)
    m = 0
    for k in range(len(bounds) - 1):
        new, old, end = bounds[k], bounds[k], bounds[k + 1]
        while old < end and (new < end or goes[old] <= last):
            tick[m] = min(comes[new], goes[old]) if new < end else goes[old]
            # rows enter before others leave, so a row with one tick for both gets ``enter == leave``: never visible
            while new < end and comes[new] == tick[m]:
                enter[new] = m
                new += 1
            while old < new and goes[old] == tick[m]:
                leave[old] = m
                old += 1
            m += 1
        leave[old:end] = m
        first[k + 1] = m
    return first, enter, leave, tick[:m]


@kernel
def full_lots(bounds: Ints, part: Codes, parts: int, size: int) -> tuple[Ints, Ints, Ints]:
    """Return the moments at which ``size`` stored rows of one partition enter together as a lot.

    An incomplete lot enters at the end. ``part``: the partition of each row, below ``parts``; no partition has rows of
    two keys. Returns ``first`` and ``enter``, and for each moment the row that completes the lot; `AT_END` for the end,
    which every key has.
    """
    n = len(part)
    first = np.zeros(len(bounds), np.int64)
    enter = np.full(n, -1, np.int64)
    cause = np.empty(n // size + len(bounds) - 1, np.int64)
    stored = np.zeros(parts, np.int64)
    newest = np.full(parts, -1, np.int64)
    # The stored rows of a partition are a linked list from its newest row back: any number of partitions needs no
    # more memory than one entry a row, and each row is visited twice.
    older = np.empty(n, np.int64)  # the row stored before, -1 for the first of a lot
    m = 0
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            p = part[i]
            older[i] = newest[p]
            newest[p] = i
            stored[p] += 1
            if stored[p] == size:
                cause[m] = i
                _enter_all(enter, older, i, m)
                newest[p] = -1
                stored[p] = 0
                m += 1
        for i in range(bounds[k], bounds[k + 1]):
            newest[part[i]] = -1
            stored[part[i]] = 0
            if enter[i] < 0:
                enter[i] = m
        cause[m] = AT_END
        m += 1
        first[k + 1] = m
    return first, enter, cause[:m]


@kernel
def _enter_all(enter: Ints, older: Ints, newest: int, moment: int) -> None:
    """Let a row and all rows that are linked to it enter at a moment."""
    i = newest
    while i >= 0:
        enter[i] = moment
        i = older[i]


@kernel
def hide_older(enter: Ints, leave: Ints, code: Codes, codes: int) -> None:
    """Let each row leave, at the latest, when the next row of its code enters. Codes are below ``codes``.

    The rows of a code are in one partition, so they enter and leave in their order: the next row hides all rows before
    it, and does not leave while one of them is in the window. Rows that never enter change nothing: by the moment at
    which they would have entered, all older rows of their partition have left. Rows of later keys change nothing
    either, because their moments all come later.
    """
    # Backwards, the entry of the next row of a code is known when a row is visited: one pass, one number a code.
    hidden = np.full(codes, np.iinfo(np.int64).max, np.int64)
    for i in range(len(enter) - 1, -1, -1):
        leave[i] = min(leave[i], hidden[code[i]])
        hidden[code[i]] = enter[i]


@kernel
def displace_oldest(enter: Ints, leave: Ints, part: Codes, parts: int, places: int) -> None:
    """Let each row leave, at the latest, when the row enters that is ``places`` after it in its partition.

    Hidden rows count. The rows of a partition enter in their order. ``part``: the partition of each row, below
    ``parts``.
    """
    # invariant: the ``held`` newest rows of each partition, at most ``places``, are linked from oldest to newest
    held = np.zeros(parts, np.int64)
    oldest = np.zeros(parts, np.int64)
    newest = np.zeros(parts, np.int64)
    newer = np.empty(len(part), np.int64)  # the next row of the same partition
    for i in range(len(part)):
        p = part[i]
        if held[p] == 0:
            oldest[p] = i
        else:
            newer[newest[p]] = i
        newest[p] = i
        held[p] += 1
        if held[p] > places:
            gone = oldest[p]
            leave[gone] = min(leave[gone], enter[i])
            oldest[p] = newer[gone]
            held[p] -= 1


@kernel
def visible_changes(bounds: Ints, first: Ints, enter: Ints, leave: Ints) -> Mask:
    """Return the moments at which a row becomes visible or invisible, bool (m,)."""
    # a row whose ``leave`` is the bound of its key stays to the end: no moment shows its leaving
    out = np.zeros(first[-1], np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            if enter[i] < leave[i]:
                out[enter[i]] = True
                if leave[i] < first[k + 1]:
                    out[leave[i]] = True
    return out
