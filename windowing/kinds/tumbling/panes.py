"""Tumbling windows: every row of a key belongs to exactly one window (semantics section 2).

A tumbling policy consists of the rows where windows start and a rule for what closed each window. The kernels below
find the starts; they read like the rules in the semantics and know nothing of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...columns.arrays import Ints, Mask, Measures, combined
from ...language.spec import Calendar, Count, Delta, Gap, Punct, Time, Tumbling
from ...panes.panes import Panes
from ...sequences.attribute_distance import measures_and_amount, rises
from ...sequences.marks import Marks, epochs
from ...sequences.sequence import Sequences
from ...support.jit import kernel
from ..context import WindowContext
from .boundaries import change_starts, closed_by, panes_at, ranges
from .clock_windows import timed_panes


class Baselines(NamedTuple):
    """The values with which the rows of K keys are compared first.

    ``begin``: int64 (K,), the first row of each key that is compared.
    ``known``: bool (K,), whether an earlier row has set the value.
    ``value``: int64 or float64 (K,), the value; of any length where none is known.
    """

    begin: Ints
    known: Mask
    value: Measures


def tumbling_panes(spec: Tumbling, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
    """Return the panes of a tumbling window, including those that only the end of the data closes.

    ``marks`` must be in total order; only ``punct()`` reads them.
    """
    match spec.policy:
        case Count(n):
            return _count_windows(sequences, n)
        case Delta(attribute, amount):
            starts = delta_starts(sequences.bounds, *measures_and_amount(sequences, attribute, amount))
            return _ended_by_next_row(sequences, starts, "delta")
        case Gap(attribute, amount):
            starts = gap_starts(sequences.bounds, *measures_and_amount(sequences, attribute, amount))
            return _ended_by_next_row(sequences, starts, "gap")
        case Time() | Calendar():
            return timed_panes(spec.policy, sequences, context)
        case Punct(None):
            return _punctuated(sequences, marks)
        case Punct(column):
            return _ended_by_row(sequences, str(column))
    raise NotImplementedError(str(spec))


def count_starts(bounds: Ints, n: int) -> Ints:
    """Return the rows where a window of ``n`` rows starts: int64, ascending. ``bounds``: int64 (K+1,)."""
    return np.flatnonzero(_count_flags(bounds, n))


def delta_starts(bounds: Ints, values: Measures, amount: Any, baselines: Baselines | None = None) -> Ints:
    """Return the rows where a ``delta`` window starts: ``new >= first and new - first > amount``; int64, ascending.

    ``values``, ``amount``: as `windowing.sequences.attribute_distance.measures_and_amount` returns them; NaN compares
    false. ``baselines``: the baselines of keys that have one already; None: the first row of each key sets it, and
    counts as a start.
    """
    if baselines is None:
        baselines = Baselines(bounds[:-1], np.zeros(len(bounds) - 1, np.bool_), np.zeros(1, values.dtype))
    return np.flatnonzero(_delta_flags(bounds, values, amount, baselines))


def gap_starts(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Return the rows where a ``gap`` window starts: more than ``amount`` above the row before; int64, ascending."""
    return np.flatnonzero(_gap_flags(bounds, values, amount))


def _count_windows(sequences: Sequences, n: int) -> Panes:
    key, number, lo, hi, _ = panes_at(sequences, count_starts(sequences.bounds, n))
    return Panes(key, number, ranges(lo, hi), *closed_by(hi - lo == n, hi - 1, "count"))


def _ended_by_next_row(sequences: Sequences, starts: Ints, why: str) -> Panes:
    """Return the panes of windows that the row after them ends."""
    key, number, lo, hi, last = panes_at(sequences, starts)
    return Panes(key, number, ranges(lo, hi), *closed_by(~last, hi, why))


def _ended_by_row(sequences: Sequences, column: str) -> Panes:
    """Return the panes of ``punct(column)``: a row whose value is true ends the window that contains it."""
    ends = combined(sequences.rows.column(column)).to_numpy(zero_copy_only=False).astype(np.bool_)
    starts = change_starts(sequences.bounds, np.cumsum(ends) - ends)
    key, number, lo, hi, _ = panes_at(sequences, starts)
    return Panes(key, number, ranges(lo, hi), *closed_by(ends[hi - 1], hi - 1, "punct"))


def _punctuated(sequences: Sequences, marks: Marks) -> Panes:
    """Return the panes of ``punct()``: windows that window marks end."""
    epoch = epochs(sequences, marks)
    key, number, lo, hi, _ = panes_at(sequences, change_starts(sequences.bounds, epoch))
    ended_by = epoch[lo]
    return Panes(key, number, ranges(lo, hi), *closed_by(ended_by < len(marks), len(sequences) + ended_by, "punct"))


@kernel
def _count_flags(bounds: Ints, n: int) -> Mask:
    """Flag every n-th row of each key, from its first on."""
    flags = np.zeros(bounds[-1], np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1], n):
            flags[i] = True
    return flags


@kernel
def _delta_flags(bounds: Ints, values: Measures, amount: Any, baselines: Baselines) -> Mask:
    """Flag the rows that start a ``delta`` window; NaN starts none unless it is a key's first row."""
    # Each start depends on the one before it, so the loop over the rows of a key cannot be a vector operation.
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        begin = baselines.begin[k]
        if begin == bounds[k + 1]:
            continue
        if baselines.known[k]:
            first = baselines.value[k]
        else:
            first = values[begin]
            flags[begin] = True
            begin += 1
        for i in range(begin, bounds[k + 1]):
            if rises(values[i], first, amount):
                flags[i] = True
                first = values[i]
    return flags


@kernel
def _gap_flags(bounds: Ints, values: Measures, amount: Any) -> Mask:
    """Flag the rows that start a ``gap`` window."""
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            flags[i] = i == bounds[k] or rises(values[i], values[i - 1], amount)
    return flags
