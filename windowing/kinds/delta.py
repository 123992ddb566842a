"""Delta transitions: what a ``delta`` window makes of a segment, as a function of the start value it is entered with.

The first row of a segment that rises above a start value by more than the amount is a record high of the segment. Once
a window starts at a row, all later window starts of the segment are decided. So each record begins one path of window
starts to the end of the segment, and a start value only selects the record. Paths merge, and records whose paths have
the same end and the same number of starts are one transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..columns.arrays import Ints, Mask, Measures
from ..rows.sequence import Sequences, have_risen, measures_and_amount, rises
from ..support.jit import kernel

# The loops of sliding windows: which row evicts another by ``delta``, and which is the oldest row young enough.
#
# The loops know nothing of columns, triggers or panes. Values are as `comparable` returns them, amounts of the same
# type.


_LOWEST = np.int64(-(2**63))


def comparable(values: Measures) -> Measures:
    """Return values whose differences do not wrap, shape (n,): int64 moved up by 2**63 as uint64, floats unchanged."""
    return (values ^ _LOWEST).view(np.uint64) if values.dtype == np.int64 else values


@kernel
def risen_pairs(new: Measures, old: Measures, amount: Any) -> Mask:
    """Return for each pair of values whether it `rises`, bool (n,): as `have_risen`, in one pass over the rows."""
    out = np.empty(len(new), np.bool_)
    for i in range(len(new)):
        out[i] = rises(new[i], old[i], amount)
    return out


@kernel
def evicted_by_delta(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Return for each row the row of its key that evicts it; n where no row does, int64 of shape (n,).

    The evicting row is the first later row that rises above it by more than ``amount`` (semantics section 3,
    ``delta``). While no row has fallen below the one before it, only the oldest rows are checked, up to the first that
    stays. The result is the same, except that a NaN, which is never evicted, protects the rows after it until the
    first fall. O(n log n), and O(n) where no row falls.
    """
    n = len(values)
    out = np.full(n, n, np.int64)
    records = np.empty(n, np.int64)
    for k in range(len(bounds) - 1):
        begin, end = bounds[k], bounds[k + 1]
        fall = _first_fall(values, begin, end)
        oldest = begin
        # Before the first fall the values ascend, so rows are evicted in the order of their arrival: one pointer
        # to the oldest row replaces the search.
        for i in range(begin, fall):
            while oldest < i and rises(values[i], values[oldest], amount):
                out[oldest] = i
                oldest += 1
        height = 0
        # Backwards, ``records[:height]`` are the later rows that no row between i and them reaches: a stack whose
        # values descend towards its top, so bisection finds the nearest row that rises enough. Rows before the fall
        # are never pushed: the loop above has shown that none of them evicts another one that is left.
        for i in range(end - 1, oldest - 1, -1):
            found = _nearest(records, height, values, i, amount)
            if found >= 0:
                out[i] = records[found]
            if i >= fall:
                height = _recorded(records, height, values, i)
    return out


@kernel
def oldest_retained(begin: Ints, place: Ints, at: Measures, values: Measures, age: Any) -> Ints:
    """Return for each trigger the first row of ``[begin, place)`` that is not more than ``age`` before ``at``.

    The triggers of one key share one ``begin``, and neither ``place`` nor ``at`` descends among them. The result is
    ``place`` where all rows are older. int64 of shape (triggers,).
    """
    out = np.empty(len(place), np.int64)
    # Within a key neither place nor time goes back, so the oldest row never does: one pass, O(rows + triggers).
    low = 0
    for p in range(len(place)):
        low = max(low, begin[p])
        while low < place[p] and rises(at[p], values[low], age):
            low += 1
        out[p] = low
    return out


@kernel
def _first_fall(values: Measures, begin: int, end: int) -> int:
    """Return the first row below the one before it; ``end`` where there is none."""
    for i in range(begin + 1, end):
        if values[i] < values[i - 1]:
            return i
    return end


@kernel
def _nearest(records: Ints, height: int, values: Measures, i: int, amount: Any) -> int:
    """Return the index of the nearest record that rises above row i; -1 where none does.

    The last record is the nearest and the lowest, so the records that rise enough are the first ones. The search
    begins at the last record, in growing steps, because most rows are evicted by a row that is not far away.
    """
    # invariant: the records from ``high`` on do not rise enough
    low, high, step = height - 1, height, 1
    while low >= 0 and not rises(values[records[low]], values[i], amount):
        high = low
        low -= step
        step *= 2
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if rises(values[records[middle]], values[i], amount):
            low = middle
        else:
            high = middle
    return low


@kernel
def _recorded(records: Ints, height: int, values: Measures, i: int) -> int:
    """Remove the records that row i reaches and put row i on top; NaN reaches no record and is none itself."""
    if not values[i] == values[i]:  # noqa: SIM201 - only NaN is not itself
        return height
    # row i comes before the reached records and is at least as high: it evicts whatever they would evict, and sooner
    while height > 0 and values[records[height - 1]] <= values[i]:
        height -= 1
    records[height] = i
    return height + 1


MOST_TRANSITIONS = 1 << 12
"""The most transitions in the summary of a segment; beyond that, those for the largest start values are left out."""
_NEAR = 4  # rows compared one by one before the steps of the search grow


@dataclass(frozen=True, slots=True)
class Exit:
    """The window starts of a segment for one start value.

    ``starts``: how many windows start in the segment.
    ``last``: the row at which the last of them starts; -1 where none does.
    ``value``: the value of that row; the start value where none does.
    """

    starts: int
    last: int
    value: Any


@dataclass(frozen=True, slots=True)
class DeltaTransitions:
    """The transitions of a segment, by the start value that it is entered with.

    A start value takes the first transition whose limit rises above it by more than ``amount``. Where none does, no
    window starts in the segment.

    ``amount``: the amount of the ``delta``, in measures.
    ``limit``: measures (B,), ascending.
    ``starts``: int64 (B,), as in `Exit`.
    ``last``: int64 (B,), as in `Exit`.
    ``value``: measures (B,), as in `Exit`.
    ``fresh``: the exit where a window starts at the first row.
    ``is_complete``: whether no transition for large start values was left out.
    """

    amount: Any
    limit: Measures
    starts: Ints
    last: Ints
    value: Measures
    fresh: Exit
    is_complete: bool


def delta_transitions(values: Measures, amount: Any, sorted_by: bool) -> DeltaTransitions:
    """Return the transitions of a segment that is not empty, at most `MOST_TRANSITIONS` of them.

    ``sorted_by``: whether rows are sorted by these values first of all, so that no start value is above the first row.
    Transitions that only such a start value would take are left out then.

    ``values``, ``amount``: as `windowing.kinds.delta.comparable` and
    `windowing.rows.sequence.measures_and_amount` return them, without NaN.
    """
    if sorted_by:
        records, last, starts = _distinct_records_rising(values, amount)
    else:
        records, last, starts = _distinct_records(
            values, *_ends(evicted_by_delta(np.array([0, len(values)]), values, amount))
        )
    fresh = Exit(int(starts[0]), int(last[0]), values[last[0]])
    kept, last, starts = records[:MOST_TRANSITIONS], last[:MOST_TRANSITIONS], starts[:MOST_TRANSITIONS]
    return DeltaTransitions(amount, values[kept], starts, last, values[last], fresh, len(kept) == len(records))


def transitions_of(segment: Sequences, attribute: str, amount: Fraction) -> DeltaTransitions:
    """Return the transitions of a segment by an attribute."""
    values, too_much = measures_and_amount(segment, attribute, amount)
    return delta_transitions(comparable(values), too_much, segment.order[:1] == (attribute,))


def exit_through(segment: Sequences, attribute: str, amount: Fraction, value: Any) -> Exit:
    """Return the exit of a segment for a start value of an attribute, as `run_through` does."""
    values, too_much = measures_and_amount(segment, attribute, amount)
    return run_through(comparable(values), value, too_much, segment.order[:1] == (attribute,))


def exit_for(transitions: DeltaTransitions, value: Any) -> Exit | None:
    """Return the exit for a start value; None where its transition was left out."""
    candidates = np.flatnonzero(have_risen(transitions.limit, value, transitions.amount))
    if not len(candidates):
        return Exit(0, -1, value) if transitions.is_complete else None
    transition = candidates[0]
    return Exit(int(transitions.starts[transition]), int(transitions.last[transition]), transitions.value[transition])


def run_through(values: Measures, value: Any, amount: Any, sorted_by: bool) -> Exit:
    """Return the exit for a start value without computing all transitions; None: a window starts at the first row.

    ``sorted_by``: whether values never fall, so that most rows need not be read.
    """
    if value is None:
        found = run_through(values, values[0], amount, sorted_by)
        return Exit(found.starts + 1, max(found.last, 0), found.value)
    starts, last = (_run_through_rising if sorted_by else _run_through)(values, value, amount)
    return Exit(int(starts), int(last), values[last] if last >= 0 else value)


@kernel
def _ends(next_start: Ints) -> tuple[Ints, Ints]:
    n = len(next_start)
    last = np.arange(n)
    starts = np.ones(n, np.int64)
    # Backwards: the path of a row is one start more than that of its next start, which is known by then.
    for i in range(n - 1, -1, -1):
        if next_start[i] < n:
            last[i] = last[next_start[i]]
            starts[i] = starts[next_start[i]] + 1
    return last, starts


@kernel
def _distinct_records(values: Measures, last: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    out = np.empty(len(values), np.int64)
    count, newest = 0, 0
    for i in range(1, len(values)):
        if values[i] > values[newest]:
            # A run of records with equal ends is one transition. Its last record is kept, for it has the highest limit.
            if last[i] != last[newest] or starts[i] != starts[newest]:
                out[count] = newest
                count += 1
            newest = i
    out[count] = newest
    out = out[: count + 1].copy()
    return out, last[out], starts[out]


@kernel
def _distinct_records_rising(values: Measures, amount: Any) -> tuple[Ints, Ints, Ints]:
    """As `_distinct_records` for values that never fall: records up to the first that rises above the first row.

    All paths advance in parallel, start by start: none overtakes another, and paths that meet are one from there on.
    So most rows are never read, and none is read for more than one start.
    """
    record = _records(values, amount)
    last, starts = record.copy(), np.empty(len(record), np.int64)
    running, done_from, windows = len(record), len(record), 1  # running paths, first finished one, starts so far
    # Invariant: paths of higher records are never behind those of lower ones, so `last[:running]` ascends. Elements
    # from `done_from` on hold finished paths, in order. All running paths have `windows` starts.
    while running:
        count, place = 0, last[running - 1]  # the first path's next start is not before the last path's start
        for path in range(running):
            place = _next_risen(values, place, values[last[path]], amount)
            if place == len(values):  # so do all paths after this one, whose starts are not below its start
                for finished in range(running - 1, path - 1, -1):
                    done_from -= 1
                    record[done_from], last[done_from], starts[done_from] = record[finished], last[finished], windows
                break
            # Two paths that meet are one from there on; the later record replaces the earlier, its limit is higher.
            if count == 0 or last[count - 1] != place:
                count += 1
            record[count - 1], last[count - 1] = record[path], place
        running, windows = count, windows + 1
    return record[done_from:], last[done_from:], starts[done_from:]


@kernel
def _records(values: Measures, amount: Any) -> Ints:
    """Return the records of values that never fall, up to the first that rises above the first row."""
    size = min(_next_risen(values, 0, values[0], amount) + 1, len(values))
    out = np.empty(size, np.int64)
    count = 0
    for i in range(size):
        if i == 0 or values[i] > values[i - 1]:
            out[count] = i
            count += 1
    return out[:count].copy()


@kernel
def _next_risen(values: Measures, first: int, value: Any, amount: Any) -> int:
    """Return the first row from ``first`` on that rises above a value, or ``len(values)``. Values never fall.

    As a rule it is near, so the search takes steps that grow.
    """
    # Steps of 1 for the first `_NEAR` rows, then doubled: windows of a few rows cost no binary search.
    low, step = first, 1
    while low + step <= len(values) and not rises(values[low + step - 1], value, amount):
        low += step
        if low - first >= _NEAR:
            step *= 2
    return low if step == 1 else _first_risen(values, low, min(low + step, len(values)), value, amount)


@kernel
def _first_risen(values: Measures, low: int, high: int, value: Any, amount: Any) -> int:
    """Return the first of the ascending values ``[low, high)`` that rises above a value; ``high`` where none does."""
    while low < high:
        middle = (low + high) // 2
        if rises(values[middle], value, amount):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _run_through(values: Measures, value: Any, amount: Any) -> tuple[int, int]:
    starts, last = 0, -1
    for i in range(len(values)):
        if rises(values[i], value, amount):
            starts += 1
            last = i
            value = values[i]
    return starts, last


@kernel
def _run_through_rising(values: Measures, value: Any, amount: Any) -> tuple[int, int]:
    starts, last = 0, -1
    place = _next_risen(values, 0, value, amount)
    while place < len(values):
        starts += 1
        last = place
        place = _next_risen(values, place, values[place], amount)
    return starts, last


# Where ``delta`` starts a window: the rows that rise above the first row of a window by more than an amount.


class Baselines(NamedTuple):
    """The values with which the rows of K keys are compared first.

    ``begin``: int64 (K,), the first row of each key that is compared.
    ``known``: bool (K,), whether an earlier row has set the value.
    ``value``: int64 or float64 (K,), the value; of any length where none is known.
    """

    begin: Ints
    known: Mask
    value: Measures


def delta_starts(bounds: Ints, values: Measures, amount: Any, baselines: Baselines | None = None) -> Ints:
    """Return the rows where a ``delta`` window starts: ``new >= first and new - first > amount``; int64, ascending.

    ``values``, ``amount``: as `windowing.rows.sequence.measures_and_amount` returns them; NaN compares
    false. ``baselines``: the baselines of keys that have one already; None: the first row of each key sets it, and
    counts as a start.
    """
    if baselines is None:
        baselines = Baselines(bounds[:-1], np.zeros(len(bounds) - 1, np.bool_), np.zeros(1, values.dtype))
    return np.flatnonzero(_delta_flags(bounds, values, amount, baselines))


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
