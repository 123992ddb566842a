"""Aggregates that select one row of each pane and return its value, of any type (semantics section 9).

Kernels and index arithmetic find entries; the values are taken from the column at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, measures, take_or_null
from ..rows.membership import Membership, Memberships, Ranges, batches, edge_rows, gathered, part
from . import loops, order_statistics, pane_deltas
from .folds import SMALLEST, fold
from .inputs import (
    Dense,
    Inputs,
    Ranked,
    TwoPhase,
    as_disjoint,
    as_ranges,
    codes,
    dense,
    entries_of,
    first_equals,
    frozen,
    halves,
    is_disjoint,
    list_array,
    masked,
    order_keys,
)
from .live_trees import live_extremes


def extremes(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return ``max`` or ``min``: NaN skipped, null if there is no other value; a zero is 0.0, never -0.0."""

    def compute(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        return _one_zero(take_or_null(present.columns[0], extreme_entries(inputs, present, largest)))

    return compute


def extreme_counts(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate of how often the extreme value occurs in each pane, 0 if there is none."""

    def compute(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        column, membership = present.columns[0], present.membership
        picks = extreme_entries(inputs, present, largest)
        if is_disjoint(membership):
            return pa.array(loops.equal_counts(order_keys(column), picks, membership.lo, membership.hi))
        return pa.array(pane_deltas.equal_counts(*codes(column), picks, pane_deltas.pane_deltas(membership)))

    return compute


def most_at_once(inputs: Inputs) -> pa.Array:
    """Return the most rows of each pane that last at one instant, 0 if there is none: ``max_overlap``."""
    present = as_disjoint(dense(inputs))
    begins, until = (frozen(measures(column)) for column in present.columns)
    return pa.array(loops.most_at_once(begins, until, present.ranges.lo, present.ranges.hi))


def arg_extremes(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate of y in the first row with the extreme x; y may be null."""

    def compute(inputs: Inputs) -> pa.Array:
        target, by = inputs.columns
        present = dense(replace(inputs, columns=(by,)))
        picks = extreme_entries(inputs, present, largest)
        return take_or_null(target, present.original(picks))

    return compute


def nths(at: int | None) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate of the value at a place among those that are not null: from 0, or from the newest, -1.

    ``at``: the place; None: the first literal of the call.
    """

    def compute(inputs: Inputs) -> pa.Array:
        place = int(inputs.literals[0]) if at is None else at
        present = dense(inputs)
        there = present.sizes > (place if place >= 0 else -place - 1)
        wanted = np.where(there, place if place >= 0 else present.sizes + place, -1)
        column, membership = present.columns[0], present.membership
        if isinstance(membership, Ranges):
            return take_or_null(column, np.where(wanted < 0, -1, membership.lo + wanted))
        deltas = pane_deltas.pane_deltas(membership)
        return take_or_null(column, order_statistics.order_statistics(np.arange(len(column)), wanted, 1, deltas)[:, 0])

    return compute


def modes(inputs: Inputs) -> pa.Array:
    """Most frequent value, the first to appear among equals; -0.0 is 0.0 and NaN is a value."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if is_disjoint(membership):
        first = inputs.cached("first equals", lambda: first_equals(column, membership.lo, membership.hi))
        return take_or_null(column, loops.most_frequent(first, membership.lo, membership.hi))
    if isinstance(membership, Ranges):
        return take_or_null(column, order_statistics.most_frequent(*codes(column), pane_deltas.pane_deltas(membership)))
    picks = [np.empty(0, np.int64)]
    for run in batches(membership):
        written = part(membership, *run)
        assert written.row is not None
        lo, hi = frozen(written.lo), frozen(written.hi)
        first = first_equals(column.take(pa.array(written.row)), lo, hi)
        picks.append(np.append(written.row, -1)[loops.most_frequent(first, lo, hi)])
    return take_or_null(column, np.concatenate(picks))


def extreme_entries(inputs: Inputs, present: Dense, largest: bool) -> Ints:
    """Entry of each pane's extreme, int64 (P,): the first of equals, NaN skipped; -1 where there is none.

    ``present``: one column of ``inputs`` and its panes. All calls over these columns must ask for the same one.
    """
    keys, membership = order_keys(present.columns[0]), present.membership
    if is_disjoint(membership):
        kernel = loops.first_largest if largest else loops.first_smallest
        entries: Ints = kernel(keys, membership.lo, membership.hi)
        return entries
    if isinstance(membership, Memberships):
        return inputs.cached("extremes", lambda: live_extremes(keys, membership))[largest]
    high, low = halves(keys)
    places, _ = fold(SMALLEST, -high if largest else high, -low if largest else low, Ranked(membership))
    return places.astype(np.int64)


def _one_zero(values: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, because an extreme must not depend on which of two equal zeros comes first."""
    if pa.types.is_float16(values.type):
        return _one_zero(values.cast(pa.float32())).cast(values.type)
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


TIES = ("average", "min", "max")
"""Which of the ranks of equal values each of them gets: their mean, the least or the largest."""


def ranks(inputs: Inputs) -> pa.Array:
    """Rank of the newest row's value among the values of the pane, from 1; null where it is null; NaN ranks last."""
    present, (_, newest) = dense(inputs), edge_rows(inputs.ranked.membership)
    before = present.ranked.valid_before
    picks = newest
    if before.size:
        picks = np.where((newest >= 0) & (before[newest + 1] > before[newest]), before[newest], -1)
    keys, membership = order_keys(present.columns[0]), present.membership
    if is_disjoint(membership):
        below, equal = loops.below_and_equal(keys, frozen(picks), membership.lo, membership.hi)
    else:
        below, equal = order_statistics.below_and_equal(keys, picks, membership)
    least, largest = below + 1, below + equal
    found = {"average": (least + largest) / 2, "min": least, "max": largest}[(*inputs.literals, TIES[0])[0]]
    return masked(found.astype(np.float64), picks < 0, inputs.type)


# Aggregates that count, list or join the values of each pane (semantics section 9).


def counts(inputs: Inputs) -> pa.Array:
    """Number of rows of each pane; with a column, number of its values that are not null."""
    return pa.array(dense(inputs).sizes)


def distinct_counts(inputs: Inputs) -> pa.Array:
    """Number of different values without nulls; -0.0 equals 0.0, and NaN is one value."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if is_disjoint(membership):
        first = inputs.cached("first equals", lambda: first_equals(column, membership.lo, membership.hi))
        return pa.array(loops.distinct_counts(first, membership.lo, membership.hi))
    return pa.array(pane_deltas.distinct_counts(*codes(column), pane_deltas.pane_deltas(membership)))


def lists(inputs: Inputs) -> pa.Array:
    """All values that are not null, in row order."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if isinstance(membership, Ranges) and (
        len(membership) > 0 and bool((membership.lo[1:] == membership.hi[:-1]).all())
    ):
        values = column.slice(membership.lo[0], membership.hi[-1] - membership.lo[0])
    else:
        values = column.take(pa.array(gathered(membership, 0, len(membership))[0]))
    return list_array(np.append(0, np.cumsum(present.sizes)), values, present.empty)


def distinct_lists(inputs: Inputs) -> pa.Array:
    """Each different value once, in the order of first appearance."""
    present = as_disjoint(dense(inputs))
    column, ranges = present.columns[0], present.ranges
    first = first_equals(column, ranges.lo, ranges.hi)
    sizes = loops.distinct_counts(first, ranges.lo, ranges.hi)
    rows = loops.distinct_rows(first, int(sizes.sum()), ranges.lo, ranges.hi)
    return list_array(np.append(0, np.cumsum(sizes)), column.take(pa.array(rows)), present.empty)


def joins(inputs: Inputs) -> pa.Array:
    """All texts in row order with the separator between them."""
    return pc.binary_join(lists(inputs), pa.scalar(inputs.literals[0], inputs.type))


# What is left of the rows of a part, and what it makes of that of several parts (`TwoPhase`).


_MOST_VALUES = 1000  # of which an ``nth`` may leave as many


def items_of(lists: pa.Array, present: Dense) -> tuple[pa.Array, Membership]:
    """Return the items of lists, a value an entry of ``present``, and the panes over them."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    first = np.append(0, np.cumsum(lengths, dtype=np.int64))
    panes: Membership = present.membership
    if isinstance(panes, Ranges):
        panes = Ranges(first[panes.lo], first[panes.hi], first[panes.base], panes.disjoint)
    else:
        enter, leave = np.repeat(panes.enter, lengths), np.repeat(panes.leave, lengths)
        panes = Memberships(np.arange(first[-1]), enter, leave, first[panes.first_entry], panes.first_pane)
    return lists.flatten(), entries_of(panes)


def over_items(compute: Callable[[Inputs], pa.Array]) -> Callable[[Inputs], pa.Array]:
    """Return the second phase that takes the items of lists, which the first phase leaves, as values."""

    def merge(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        items, membership = items_of(present.columns[0], present)
        return compute(replace(inputs, columns=(items,), ranked=Ranked(membership)))

    return merge


def _split_nth(inputs: Inputs) -> list[pa.Array]:
    present, place = dense(inputs), int(inputs.literals[0])
    lo, hi = present.ranges.lo, present.ranges.hi
    lo, hi = (lo, np.minimum(hi, lo + place + 1)) if place >= 0 else (np.maximum(lo, hi + place), hi)
    entries, bounds = gathered(Ranges(lo, hi, lo, True), 0, len(lo))
    return [list_array(bounds, present.columns[0].take(pa.array(entries)))]


def arg_extreme_phases(is_largest: bool) -> TwoPhase:
    """Return the two phases of `arg_extremes`: y and x of the row that each part selects."""

    def split_both(inputs: Inputs) -> list[pa.Array]:
        target, by = inputs.columns
        present = dense(replace(inputs, columns=(by,)))
        picks = present.original(extreme_entries(inputs, present, is_largest))
        return [take_or_null(column, picks) for column in (target, by)]

    return TwoPhase(2, split_both, arg_extremes(is_largest), in_order=True)


def extreme_count_phases(is_largest: bool) -> TwoPhase:
    """Return the two phases of `extreme_counts`: the extreme of each part, and how often it occurs there."""
    find = extreme_counts(is_largest)

    def split_both(inputs: Inputs) -> list[pa.Array]:
        present = dense(inputs)
        return [take_or_null(present.columns[0], extreme_entries(inputs, present, is_largest)), find(inputs)]

    def merge(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        column, counts = present.columns
        extremes = replace(present, columns=(column,))
        keys, picks = order_keys(column), extreme_entries(inputs, extremes, is_largest)
        entries, bounds = gathered(present.ranges, 0, len(present.ranges))
        pane = np.repeat(np.arange(len(present.ranges)), np.diff(bounds))
        entries, pane = entries[same := keys[entries] == keys[picks[pane]]], pane[same]
        totals = np.zeros(len(present.ranges), np.int64)
        np.add.at(totals, pane, counts.to_numpy()[entries])
        return pa.array(totals)

    return TwoPhase(2, split_both, merge, in_order=True)


NTH_PHASES = TwoPhase(
    1,
    _split_nth,
    over_items(nths(None)),
    in_order=True,
    fits=lambda _types, literals: abs(literals[0]) <= _MOST_VALUES,
)
