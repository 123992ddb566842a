"""Bound calls over panes: one array per call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, take_or_null, truth
from ..language.spec import Column
from ..rows.membership import Membership, Memberships, Ranges, as_simplest, gathered, with_filter
from . import quotients, selection, sketches, user
from .arithmetic import exact_means, exact_totals, float_means, value_ranges
from .exact_moments import MEAN
from .exact_sums import as_int64, as_wide, exact_sums, parts_of
from .float_sums import float_sums, sums_and_residuals
from .inputs import (
    Dense,
    Inputs,
    Ranked,
    as_ranges,
    dense,
    entries_of,
    floats,
    is_ticks,
    list_array,
    masked,
    order_keys,
    plain,
    plain_type,
)
from .quotients import Quotients
from .table import TABLE, Bound

# Partial aggregation: aggregates in two phases, before and after the exchange (semantics section 9).
#
# The first phase turns some rows of a pane into a few columns for each aggregate: exact sums that cannot overflow, a
# few floats with the same true sum as many, extremes. The second phase merges these columns. Its result is, to the
# bit, the result of one phase over all rows.


_WIDE = pa.decimal128(38, 0)  # has room for 2**63 integers of 64 bit
_MOST_VALUES = 1000  # of which an ``nth`` may leave as many
_SPREADS = {"var", "stddev", "var_pop", "stddev_pop"}


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """The two phases of one aggregate.

    ``columns``: how many columns the first phase leaves.
    ``split``: the first phase, over disjoint panes; returns that many arrays.
    ``merge``: the second phase, over inputs with these arrays as their columns.
    ``in_order``: whether a first phase must take rows that follow one another, and the second its results in order.
    """

    columns: int
    split: Callable[[Inputs], list[pa.Array]]
    merge: Callable[[Inputs], pa.Array]
    in_order: bool = False


def is_mergeable(bound: Bound, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether a call over columns of these types can be computed in two phases.

    ``are_neighbours``: as `TwoPhase.in_order` wants rows.
    """
    function = bound.call.function
    if bound.is_user_function:
        return are_neighbours and user.merge_of(user.load(function)) is not None
    if function not in STEPS or (STEPS[function].in_order and not are_neighbours):
        return False
    place = bound.call.arguments[-1] if function == "nth" else 0
    if isinstance(place, Fraction) and abs(place) > _MOST_VALUES:
        return False
    types = [plain_type(schema.field(name).type) for name in bound.columns]
    if function in _SPREADS:
        return not pa.types.is_decimal(types[0]) or is_ticks(types[0])
    return not (function in {"sum", "mean"} and pa.types.is_decimal256(types[0]))


def in_two_phases(bound: Bound, prefix: str) -> Bound:
    """Return the second phase of a call as a `Bound`, over columns whose names begin with ``prefix``."""
    names = tuple(f"{prefix}_{i}" for i in range(phases_of(bound).columns))
    return replace(bound, columns=names, is_second_step=True, filter=None)


def phases_of(bound: Bound) -> TwoPhase:
    """Return the two phases of a call that `is_mergeable`."""
    if not bound.is_user_function:
        return STEPS[bound.call.function]
    split, merge = user.states(bound.call), user.merged(bound.call)
    return TwoPhase(1, lambda inputs: [split(inputs)], merge, in_order=True)


def _each(compute: Callable[[Inputs], pa.Array]) -> TwoPhase:
    return TwoPhase(1, lambda inputs: [compute(inputs)], compute)


def _split_count(inputs: Inputs) -> list[pa.Array]:
    return [selection.counts(inputs)]


def _merge_counts(inputs: Inputs) -> pa.Array:
    totals, _ = as_int64(exact_sums(dense(inputs)))
    return pa.array(totals)


def _split_sum(inputs: Inputs) -> list[pa.Array]:
    """The sum as a wide integer or decimal, or as a list of a few floats; null where a pane has no value."""
    present = dense(inputs)
    dtype = present.columns[0].type
    if not pa.types.is_floating(dtype):
        wide = pa.decimal256(76, dtype.scale) if pa.types.is_decimal(dtype) else _WIDE
        return [as_wide(exact_sums(present), wide, present.empty)]
    bounds, parts = parts_of(floats(present.columns[0]), present.ranges.lo, present.ranges.hi)
    return [list_array(bounds, parts, present.empty)]


def _split_mean(inputs: Inputs) -> list[pa.Array]:
    return [*_split_sum(inputs), *_split_count(inputs)]


def _merge_sums(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column = present.columns[0]
    if pa.types.is_list(column.type):
        items, membership = _items(column, present)
        return masked(float_sums(floats(items), membership), present.empty, inputs.type)
    return exact_totals(inputs, present)


def _merge_means(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column, counts = present.columns
    sizes, _ = as_int64(exact_sums(replace(present, columns=(counts,))))
    if not pa.types.is_list(column.type):
        return exact_means(inputs, present, sizes)
    items, membership = _items(column, present)
    totals = sums_and_residuals(floats(items), membership)
    return float_means(inputs, Quotients(MEAN, items, items, membership, sizes), totals)


def _items(lists: pa.Array, present: Dense) -> tuple[pa.Array, Membership]:
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    first = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return lists.flatten(), entries_of(_of_items(present.membership, first))


def _of_items(membership: Membership, first: Ints) -> Membership:
    if isinstance(membership, Ranges):
        return Ranges(first[membership.lo], first[membership.hi], first[membership.base], membership.disjoint)
    repeats = np.diff(first)
    enter, leave = np.repeat(membership.enter, repeats), np.repeat(membership.leave, repeats)
    return Memberships(np.arange(first[-1]), enter, leave, first[membership.first_entry], membership.first_pane)


def _over_items(compute: Callable[[Inputs], pa.Array]) -> Callable[[Inputs], pa.Array]:
    def merge(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        items, membership = _items(present.columns[0], present)
        return compute(replace(inputs, columns=(items,), ranked=Ranked(membership)))

    return merge


def _split_nth(inputs: Inputs) -> list[pa.Array]:
    present, place = dense(inputs), int(inputs.literals[0])
    lo, hi = present.ranges.lo, present.ranges.hi
    lo, hi = (lo, np.minimum(hi, lo + place + 1)) if place >= 0 else (np.maximum(lo, hi + place), hi)
    return [_lists(present.columns[0], Ranges(lo, hi, lo, True))]


def _split_range(inputs: Inputs) -> list[pa.Array]:
    present = dense(inputs)
    ends = [selection.extreme_entries(inputs, present, is_largest) for is_largest in (False, True)]
    entries = np.stack(ends, axis=1).ravel()
    there = np.concatenate([[0], np.cumsum((ends[0] >= 0) * 2)])
    items = present.columns[0].take(pa.array(entries[entries >= 0]))
    return [list_array(there, items)]


def _lists(column: pa.Array, panes: Ranges) -> pa.Array:
    entries, bounds = gathered(panes, 0, len(panes))
    return list_array(bounds, column.take(pa.array(entries)))


def _arg_extreme(is_largest: bool) -> TwoPhase:
    def split_both(inputs: Inputs) -> list[pa.Array]:
        target, by = inputs.columns
        present = dense(replace(inputs, columns=(by,)))
        picks = present.original(selection.extreme_entries(inputs, present, is_largest))
        return [take_or_null(column, picks) for column in (target, by)]

    return TwoPhase(2, split_both, selection.arg_extremes(is_largest), in_order=True)


def _extreme_count(is_largest: bool) -> TwoPhase:
    find = selection.extreme_counts(is_largest)

    def split_both(inputs: Inputs) -> list[pa.Array]:
        present = dense(inputs)
        return [take_or_null(present.columns[0], selection.extreme_entries(inputs, present, is_largest)), find(inputs)]

    def merge(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        column, counts = present.columns
        extremes = replace(present, columns=(column,))
        keys, picks = order_keys(column), selection.extreme_entries(inputs, extremes, is_largest)
        entries, bounds = gathered(present.ranges, 0, len(present.ranges))
        pane = np.repeat(np.arange(len(present.ranges)), np.diff(bounds))
        entries, pane = entries[same := keys[entries] == keys[picks[pane]]], pane[same]
        totals = np.zeros(len(present.ranges), np.int64)
        np.add.at(totals, pane, counts.to_numpy()[entries])
        return pa.array(totals)

    return TwoPhase(2, split_both, merge, in_order=True)


def _spread(root: bool, sample: int) -> TwoPhase:
    return TwoPhase(quotients.COLUMNS, quotients.split_spread, quotients.merge_spread(root, sample), True)


def _sketch(merge: Callable[[Inputs], pa.Array]) -> TwoPhase:
    return TwoPhase(1, lambda inputs: [sketches.hll_sketches(inputs)], merge, in_order=True)


def _neighbours(phases: TwoPhase) -> TwoPhase:
    return replace(phases, in_order=True)


STEPS: dict[str, TwoPhase] = {
    "count": TwoPhase(1, _split_count, _merge_counts),
    "sum": TwoPhase(1, _split_sum, _merge_sums),
    "mean": TwoPhase(2, _split_mean, _merge_means),
    "min": _each(selection.extremes(False)),
    "max": _each(selection.extremes(True)),
    "bool_and": _each(selection.extremes(False)),
    "bool_or": _each(selection.extremes(True)),
    "first": _neighbours(_each(selection.firsts)),
    "last": _neighbours(_each(selection.lasts)),
    "nth": TwoPhase(1, _split_nth, _over_items(selection.nths), in_order=True),
    "arg_min": _arg_extreme(False),
    "arg_max": _arg_extreme(True),
    "range": TwoPhase(1, _split_range, _over_items(value_ranges), in_order=True),
    "min_count": _extreme_count(False),
    "max_count": _extreme_count(True),
    "var": _spread(False, 1),
    "stddev": _spread(True, 1),
    "var_pop": _spread(False, 0),
    "stddev_pop": _spread(True, 0),
    "hll_sketch": _sketch(sketches.merged_hll_sketches),
    "approx_count_distinct": _sketch(sketches.merged_distinct_counts),
}
"""The built-in aggregates that can be computed in two phases."""


_ONE, _TWO = np.array([0]), np.array([2])
_BOUNDS = np.array([0, 2])
_FORMS: tuple[Membership, ...] = (
    Ranges(_ONE, _TWO, _ONE, True),
    Ranges(_ONE, _TWO, _ONE, False),
    Memberships(np.array([0, 1]), np.array([0, 1]), np.array([2, 2]), _BOUNDS, _BOUNDS),
    Memberships(np.array([0, 1]), np.array([1, 0]), np.array([2, 1]), _BOUNDS, _BOUNDS),
)
"""Panes in every form over two rows, for `warm`. Disjoint panes come first; only the last ones are not ranges."""
_RANKS = np.array([0, 2])
"""Ranks of the two rows. A pane with both rows has a hole, a pane with one row has none, so every kernel runs."""


Results: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""Intermediate results that calls over the same panes of the same rows share, by the columns that the calls read."""


def compute(
    bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None = None, cached: Results | None = None
) -> pa.Array:
    """Return the value of one call for each pane, of length P and type ``bound.type`` (semantics section 9).

    The value of a pane depends, to the bit, only on the pane's own rows and their ranks; rows outside the pane do not
    matter. ``rank``: int64 (n,), how many rows of its sequence came before each row, ever; ascending within each
    sequence. With None the places of the entries in their sequence are the ranks, from 0. ``cached``: intermediate
    results of earlier calls over the same panes; they save time and change no value.

    Nulls are skipped; a pane without values is null, counts are 0. Raises `PaneOverflow` where an integer or decimal
    does not fit, and `PaneFailed` (a `DataError`) for a user function.
    """
    membership = as_simplest(membership)
    if bound.filter is not None:
        membership, rank = with_filter(membership, truth(rows, bound.filter)), None
    return _computer(bound)(_inputs(bound, rows, membership, rank, {} if cached is None else cached))


def split(bound: Bound, rows: pa.RecordBatch, panes: Ranges) -> list[pa.Array]:
    """Return the partial aggregates of each pane, as the columns that `in_two_phases` names.

    The call `is_mergeable`, and ``panes`` are disjoint. Raises `PaneFailed` for a user function.
    """
    if bound.filter is not None:
        panes = with_filter(panes, truth(rows, bound.filter))
    return phases_of(bound).split(_inputs(bound, rows, panes, None, {}))


def warm(bounds: Sequence[Bound], schema: pa.Schema, overlapping: bool = True) -> None:
    """Run the kernels that calls need on two null rows, so that the compiled kernels are on disk for all processes.

    ``overlapping``: whether panes may share rows; if not, only the kernels for disjoint panes run. User functions are
    not called.
    """
    names = sorted({name for bound in bounds for name in bound.columns})
    rows = pa.RecordBatch.from_arrays([pa.nulls(2, schema.field(name).type) for name in names], names=names)
    for bound, form in product(bounds, _FORMS if overlapping else _FORMS[:1]):
        if not bound.is_user_function:
            compute(bound, rows, form, _RANKS)


def _inputs(bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None, cached: Results) -> Inputs:
    arguments = bound.call.arguments
    names = tuple(a.name for a in arguments if isinstance(a, Column))
    read = bound.columns if bound.is_second_step else names
    columns = [plain(rows.column(name)) for name in read]
    if not bound.is_second_step and not bound.is_user_function:
        wanted = TABLE[bound.call.function].types_of([column.type for column in columns])
        columns = [
            column if column.type == dtype else column.cast(dtype)
            for column, dtype in zip(columns, wanted, strict=True)
        ]
    return Inputs(
        columns=tuple(
            (column if membership.row is None else column.take(pa.array(membership.row))) for column in columns
        ),
        names=names,
        literals=tuple(a for a in arguments if not isinstance(a, Column)),
        ranked=Ranked(entries_of(membership), rank, membership.row),
        type=bound.type,
        call=bound.text,
        cache=cached.setdefault(tuple(read), {}),
    )


def _computer(bound: Bound) -> Callable[[Inputs], pa.Array]:
    if bound.is_second_step:
        return phases_of(bound).merge
    if not bound.is_user_function:
        return TABLE[bound.call.function].compute
    return user.values(bound.call)
