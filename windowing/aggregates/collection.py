"""Aggregates that count or gather the values of each pane (semantics section 9)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowing.aggregates import kernels
from windowing.aggregates.inputs import Inputs, Mask, Ranges, dense
from windowing.aggregates.values import codes
from windowing.columns import Ints


def counts(inputs: Inputs) -> pa.Array:
    """Rows of each pane, or its values that are not null where a column is given."""
    return pa.array(dense(inputs.columns, inputs.ranges).ranges.sizes)


def distinct_counts(inputs: Inputs) -> pa.Array:
    """How many different values, nulls apart; -0.0 is 0.0 and NaN is one value."""
    part = dense(inputs.columns, inputs.ranges)
    return pa.array(kernels.distinct_counts(*codes(part.columns[0]), part.ranges.lo, part.ranges.hi))


def lists(inputs: Inputs) -> pa.Array:
    """All values that are not null, in row order."""
    part = dense(inputs.columns, inputs.ranges)
    column, ranges = part.columns[0], part.ranges
    values = column.slice(ranges.lo[0], ranges.hi[-1] - ranges.lo[0]) if _adjoin(ranges) else _gathered(column, ranges)
    return _list_array(ranges.sizes, values, ranges.empty)


def distinct_lists(inputs: Inputs) -> pa.Array:
    """Each different value once, in the order of first appearance."""
    part = dense(inputs.columns, inputs.ranges)
    lo, hi = part.ranges.lo, part.ranges.hi
    column_codes, distinct = codes(part.columns[0])
    sizes = kernels.distinct_counts(column_codes, distinct, lo, hi)
    rows = kernels.distinct_rows(column_codes, distinct, int(sizes.sum()), lo, hi)
    return _list_array(sizes, part.columns[0].take(pa.array(rows)), part.ranges.empty)


def joins(inputs: Inputs) -> pa.Array:
    """All texts in row order with the separator between them."""
    return pc.binary_join(lists(inputs), pa.scalar(inputs.literals[0], inputs.type))


def _adjoin(ranges: Ranges) -> bool:
    return len(ranges) > 0 and bool((ranges.lo[1:] == ranges.hi[:-1]).all())


def _gathered(column: pa.Array, ranges: Ranges) -> pa.Array:
    """Rows of all panes one after the other, those of overlapping panes more than once."""
    before = np.cumsum(ranges.sizes) - ranges.sizes
    rows = np.repeat(ranges.lo - before, ranges.sizes) + np.arange(ranges.sizes.sum())
    return column.take(pa.array(rows))


def _list_array(sizes: Ints, values: pa.Array, null: Mask) -> pa.Array:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return pa.ListArray.from_arrays(pa.array(offsets).cast(pa.int32()), values, mask=pa.array(null))
