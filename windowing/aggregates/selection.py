"""Aggregates that pick one row of each pane and give a value of it, of any type (semantics section 9).

Kernels and index arithmetic return rows; the values are taken from the column at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from windowing.aggregates import kernels
from windowing.aggregates.inputs import Inputs, Ranges, dense, taken
from windowing.aggregates.values import codes, order_keys
from windowing.columns import Ints


def extremes(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return ``max`` or ``min``: NaN skipped, null where there is nothing else."""

    def compute(inputs: Inputs) -> pa.Array:
        part = dense(inputs.columns, inputs.ranges)
        return taken(part.columns[0], _extreme_rows(part.columns[0], part.ranges, largest))

    return compute


def extreme_counts(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return how often the extreme occurs in each pane, 0 where there is none."""

    def compute(inputs: Inputs) -> pa.Array:
        part = dense(inputs.columns, inputs.ranges)
        rows = _extreme_rows(part.columns[0], part.ranges, largest)
        return pa.array(kernels.equal_counts(order_keys(part.columns[0]), rows, part.ranges.lo, part.ranges.hi))

    return compute


def arg_extremes(largest: bool) -> Callable[[Inputs], pa.Array]:
    """Return y, null or not, of the first row with the extreme x."""

    def compute(inputs: Inputs) -> pa.Array:
        target, by = inputs.columns
        part = dense([by], inputs.ranges)
        rows = _extreme_rows(part.columns[0], part.ranges, largest)
        return taken(target, part.original(rows))

    return compute


def firsts(inputs: Inputs) -> pa.Array:
    """Value of the first row that has one."""
    return _nth(inputs, 0)


def lasts(inputs: Inputs) -> pa.Array:
    """Value of the last row that has one."""
    return _nth(inputs, -1)


def nths(inputs: Inputs) -> pa.Array:
    """The i-th value from 0, or from the newest for a negative i (-1 is the newest)."""
    return _nth(inputs, int(inputs.literals[0]))


def modes(inputs: Inputs) -> pa.Array:
    """Most frequent value, the first to appear among equals; -0.0 is 0.0 and NaN is a value."""
    part = dense(inputs.columns, inputs.ranges)
    column_codes, distinct = codes(part.columns[0])
    rows = kernels.most_frequent(column_codes, distinct, part.ranges.lo, part.ranges.hi)
    return taken(part.columns[0], rows)


def _extreme_rows(column: pa.Array, ranges: Ranges, largest: bool) -> Ints:
    kernel = kernels.first_largest if largest else kernels.first_smallest
    rows: Ints = kernel(order_keys(column), ranges.lo, ranges.hi)
    return rows


def _nth(inputs: Inputs, place: int) -> pa.Array:
    part = dense(inputs.columns, inputs.ranges)
    lo, hi = part.ranges.lo, part.ranges.hi
    there = part.ranges.sizes > (place if place >= 0 else -place - 1)
    return taken(part.columns[0], np.where(there, (lo if place >= 0 else hi) + place, -1))
