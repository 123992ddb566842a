"""Partial aggregation: aggregates in two phases, before and after the exchange (semantics section 9).

The first phase turns some rows of a pane into a few columns for each aggregate: exact sums that cannot overflow, a few
floats with the same true sum as many, extremes. The second phase merges these columns. Its result is, to the bit, the
result of one phase over all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..panes.membership import Membership, Memberships, Ranges
from .bind import Bound
from .folds.exact_sums import parts_of
from .folds.inputs import Dense, Inputs, Ranked, dense, entries_of, masked
from .folds.values import floats, plain_type
from .folds.wide_sums import as_int64, as_wide, exact_sums
from .functions import collection, selection
from .functions.arithmetic import exact_means, exact_totals, float_means
from .moments.exact_moments import MEAN
from .moments.float_sums import float_sums, sums_and_residuals
from .moments.quotients import Quotients

_WIDE = pa.decimal128(38, 0)  # has room for 2**63 integers of 64 bit


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """The two phases of one aggregate.

    ``columns``: how many columns the first phase leaves.
    ``split``: the first phase, over disjoint panes; returns that many arrays.
    ``merge``: the second phase, over inputs with these arrays as their columns.
    """

    columns: int
    split: Callable[[Inputs], list[pa.Array]]
    merge: Callable[[Inputs], pa.Array]


def is_mergeable(bound: Bound, schema: pa.Schema) -> bool:
    """Whether a call over columns of these types can be computed in two phases."""
    summed = bound.call.function in {"sum", "mean"}
    types = [plain_type(schema.field(name).type) for name in bound.columns]
    return bound.call.function in STEPS and not (summed and pa.types.is_decimal256(types[0]))


def in_two_phases(bound: Bound, prefix: str) -> Bound:
    """Return the second phase of a call as a `Bound`, over columns whose names begin with ``prefix``."""
    names = tuple(f"{prefix}_{i}" for i in range(STEPS[bound.call.function].columns))
    return replace(bound, columns=names, is_second_step=True)


def _each(compute: Callable[[Inputs], pa.Array]) -> TwoPhase:
    """Return the phases of an aggregate that merges its own results, such as ``max``."""
    return TwoPhase(1, lambda inputs: [compute(inputs)], compute)


def _split_count(inputs: Inputs) -> list[pa.Array]:
    return [collection.counts(inputs)]


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
    return [pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), parts, mask=pa.array(present.empty))]


def _split_mean(inputs: Inputs) -> list[pa.Array]:
    return [*_split_sum(inputs), *_split_count(inputs)]


def _merge_sums(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column = present.columns[0]
    if pa.types.is_list(column.type):
        items, membership = _items(column, present)
        return masked(float_sums(floats(items), membership, Ranked(membership)), present.empty, inputs.type)
    return exact_totals(inputs, present)


def _merge_means(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column, counts = present.columns
    sizes, _ = as_int64(exact_sums(replace(present, columns=(counts,))))
    if not pa.types.is_list(column.type):
        return exact_means(inputs, present, sizes)
    items, membership = _items(column, present)
    totals = sums_and_residuals(floats(items), membership, Ranked(membership))
    return float_means(inputs, Quotients(MEAN, items, items, membership, sizes), totals)


def _items(lists: pa.Array, present: Dense) -> tuple[pa.Array, Membership]:
    """The items of all lists in one array, and the panes over these items."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    first = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return lists.flatten(), entries_of(_of_items(present.membership, first))


def _of_items(membership: Membership, first: Ints) -> Membership:
    """Panes over the items of lists, from the panes over the lists and the first item of each list."""
    if isinstance(membership, Ranges):
        return Ranges(first[membership.lo], first[membership.hi], first[membership.base], membership.disjoint)
    repeats = np.diff(first)
    enter, leave = np.repeat(membership.enter, repeats), np.repeat(membership.leave, repeats)
    return Memberships(np.arange(first[-1]), enter, leave, first[membership.first_entry], membership.first_pane)


STEPS: dict[str, TwoPhase] = {
    "count": TwoPhase(1, _split_count, _merge_counts),
    "sum": TwoPhase(1, _split_sum, _merge_sums),
    "mean": TwoPhase(2, _split_mean, _merge_means),
    "min": _each(selection.extremes(False)),
    "max": _each(selection.extremes(True)),
    "bool_and": _each(selection.extremes(False)),
    "bool_or": _each(selection.extremes(True)),
}
"""The aggregates that can be computed in two phases, in any order of the rows."""
