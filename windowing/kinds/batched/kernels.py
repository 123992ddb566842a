"""Loops of batched windows: when each row comes and goes, and which moments anybody sees (semantics section 6).

A *moment* is when the content of a key's window may change. Moments are numbered key after key, in each key in the
order of time; ``first`` (K+1,) holds the bounds of the keys among them. A row is in the window at the moments
``[enter, leave)``; one that stays has the bound of its key as ``leave``, and one that never enters has
``enter == leave``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints, Mask, Measures
from ...panes.panes import AT_END, BY_TICK
from ...sequences.sequence import Codes
from ...support.jit import kernel

Reasons = npt.NDArray[np.int8]


@kernel
def expiries(bounds: Ints, comes: Measures, goes: Measures) -> tuple[Ints, Ints, Ints, Ints, Measures]:
    """Moments of a window in which each row comes by itself, and goes with all rows of its instant.

    ``comes``, ``goes``: instants (n,) that rise within a key, ``comes < goes``; who goes does so before others come.
    Returns first, enter, leave, and of each moment the row that comes (`BY_TICK` where rows go) and the instant.
    """
    n = len(comes)
    first = np.zeros(len(bounds), np.int64)
    enter = np.empty(n, np.int64)
    leave = np.empty(n, np.int64)
    cause = np.empty(2 * n, np.int64)
    instant = np.empty(2 * n, comes.dtype)
    m = 0
    for k in range(len(bounds) - 1):
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
    """Moments of a window that changes at ticks only: those up to ``last`` at which a row comes or goes.

    ``comes <= goes``: ticks (n,) that rise within a key; all come by ``last``. Returns first, enter, leave, and the
    tick of each moment.
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
    """Moments at which ``size`` rows of one part are stored and enter together; what is short enters at the end.

    ``part``: of each row, below ``parts``; keys have parts of their own. Returns first, enter, and of each moment the
    row that fills the lot; `AT_END` for the end, which every key has.
    """
    n = len(part)
    first = np.zeros(len(bounds), np.int64)
    enter = np.full(n, -1, np.int64)
    cause = np.empty(n // size + len(bounds) - 1, np.int64)
    stored = np.zeros(parts, np.int64)
    newest = np.full(parts, -1, np.int64)
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
    i = newest
    while i >= 0:
        enter[i] = moment
        i = older[i]


@kernel
def hide_older(enter: Ints, leave: Ints, code: Codes, codes: int) -> None:
    """Let each row go at the latest when the next one of its code enters. Codes are below ``codes``.

    The rows of a code are of one part, so that they enter and leave in their order: the next one hides all before it,
    and has not left while one of them is there. Rows that never enter change nothing: by the time they might have,
    whatever is older in their part has left. Nor do the rows of later keys: their moments are all behind.
    """
    hidden = np.full(codes, np.iinfo(np.int64).max, np.int64)
    for i in range(len(enter) - 1, -1, -1):
        leave[i] = min(leave[i], hidden[code[i]])
        hidden[code[i]] = enter[i]


@kernel
def displace_oldest(enter: Ints, leave: Ints, part: Codes, parts: int, places: int) -> None:
    """Let each row go at the latest when the row enters that is ``places`` after it in its part, hidden or not.

    The rows of a part enter in their order. ``part``: of each row, below ``parts``.
    """
    held = np.zeros(parts, np.int64)
    oldest = np.zeros(parts, np.int64)
    newest = np.zeros(parts, np.int64)
    newer = np.empty(len(part), np.int64)  # the row after each in its part
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
    """Return at which moments a row comes into sight or goes out of it."""
    out = np.zeros(first[-1], np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            if enter[i] < leave[i]:
                out[enter[i]] = True
                if leave[i] < first[k + 1]:
                    out[leave[i]] = True
    return out
