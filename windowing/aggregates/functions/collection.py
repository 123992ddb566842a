"""Aggregates that count, list or join the values of each pane (semantics section 9)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, Mask
from ...panes.membership import Ranges, gathered
from ..folds.inputs import Inputs, as_disjoint, dense, first_equals, is_disjoint
from ..folds.values import codes
from ..kernels import equal_entries, pane_deltas


def counts(inputs: Inputs) -> pa.Array:
    """Number of rows of each pane; with a column, number of its values that are not null."""
    return pa.array(dense(inputs).sizes)


def distinct_counts(inputs: Inputs) -> pa.Array:
    """Number of different values without nulls; -0.0 equals 0.0, and NaN is one value."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if is_disjoint(membership):
        first = inputs.cached("first equals", lambda: first_equals(column, membership.lo, membership.hi))
        return pa.array(equal_entries.distinct_counts(first, membership.lo, membership.hi))
    return pa.array(pane_deltas.distinct_counts(*codes(column), pane_deltas.pane_deltas(membership)))


def lists(inputs: Inputs) -> pa.Array:
    """All values that are not null, in row order."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if isinstance(membership, Ranges) and _adjoin(membership):
        values = column.slice(membership.lo[0], membership.hi[-1] - membership.lo[0])
    else:
        values = column.take(pa.array(gathered(membership, 0, len(membership))[0]))
    return _list_array(present.sizes, values, present.empty)


def distinct_lists(inputs: Inputs) -> pa.Array:
    """Each different value once, in the order of first appearance."""
    present = as_disjoint(dense(inputs))
    column, ranges = present.columns[0], present.ranges
    first = first_equals(column, ranges.lo, ranges.hi)
    sizes = equal_entries.distinct_counts(first, ranges.lo, ranges.hi)
    rows = equal_entries.distinct_rows(first, int(sizes.sum()), ranges.lo, ranges.hi)
    return _list_array(sizes, column.take(pa.array(rows)), present.empty)


def joins(inputs: Inputs) -> pa.Array:
    """All texts in row order with the separator between them."""
    return pc.binary_join(lists(inputs), pa.scalar(inputs.literals[0], inputs.type))


def _adjoin(ranges: Ranges) -> bool:
    return len(ranges) > 0 and bool((ranges.lo[1:] == ranges.hi[:-1]).all())


def _list_array(sizes: Ints, values: pa.Array, null: Mask) -> pa.Array:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return pa.ListArray.from_arrays(pa.array(offsets).cast(pa.int32()), values, mask=pa.array(null))
