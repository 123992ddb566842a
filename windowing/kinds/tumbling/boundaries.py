"""Panes of tumbling windows from the rows where they start: each row of a key belongs to exactly one window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints, Mask
from ...rows.membership import Ranges
from ...rows.panes import AT_END, Panes, reason
from ...rows.sequence import Sequences
from ...support.jit import kernel


def change_starts(bounds: Ints, labels: Ints) -> Ints:
    """Return the rows whose label differs from that of the row before them in their sequence: int64, ascending."""
    flags = np.ones(len(labels), np.bool_)
    np.not_equal(labels[1:], labels[:-1], out=flags[1:])
    flags[bounds[:-1][bounds[:-1] < len(labels)]] = True
    return np.flatnonzero(flags)


def panes_at(sequences: Sequences, starts: Ints) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Return key, number, lo and hi of the windows that start at ``starts``, and which are the last of their key."""
    key, number, hi, last = _windows_at(sequences.bounds, starts, len(sequences))
    return key, number, starts, hi, last


@kernel
def _windows_at(bounds: Ints, starts: Ints, rows: int) -> tuple[Ints, Ints, Ints, Mask]:
    """Return key, number and hi of the windows that start at ``starts``, and which are the last of their key."""
    # one loop over keys and windows, both ascending: with a key for each few rows, searches took twice as long
    key, number = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    hi, last = np.empty(len(starts), np.int64), np.empty(len(starts), np.bool_)
    p = 0
    for k in range(len(bounds) - 1):
        first = p
        while p < len(starts) and starts[p] < bounds[k + 1]:
            key[p], number[p] = k, p - first
            hi[p] = starts[p + 1] if p + 1 < len(starts) else rows
            last[p] = hi[p] == bounds[k + 1]
            p += 1
    return key, number, hi, last


def ranges(lo: Ints, hi: Ints) -> Ranges:
    """Return the membership of windows ``[lo, hi)`` that share no row."""
    return Ranges(lo, hi, lo, True)


def closed_by(is_closed: Mask, cause: Ints, why: str) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Return causes and close reasons: ``cause`` and ``why`` where ``is_closed``, else the end of the data."""
    return _causes(is_closed, cause, np.int8(reason(why)), np.int8(reason("end")))


@kernel
def _causes(is_closed: Mask, cause: Ints, why: np.int8, at_end: np.int8) -> tuple[Ints, npt.NDArray[np.int8]]:
    # one loop without branches: of many keys, it is random which window is the last
    causes, reasons = np.empty(len(cause), np.int64), np.empty(len(cause), np.int8)
    for p in range(len(cause)):
        causes[p] = cause[p] if is_closed[p] else AT_END
        reasons[p] = why if is_closed[p] else at_end
    return causes, reasons


def ended_by_next_row(sequences: Sequences, starts: Ints, why: str) -> Panes:
    """Return the panes of windows that the row after them ends."""
    key, number, lo, hi, last = panes_at(sequences, starts)
    return Panes(key, number, ranges(lo, hi), *closed_by(~last, hi, why))
