"""Weighted sums and sums of weights over panes of any form, each in two floats."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...columns.arrays import Ints
from ...support.jit import kernel
from ..folds.exact_sums import nearest_of
from ..folds.inputs import Dense, is_disjoint
from ..kernels.loops import Floats, error_of_product, products_and_errors, sum_and_error
from .float_sums import sums_of_shared

Both: TypeAlias = tuple[Floats, Floats, Floats, Floats]

_NONE = np.empty(0, np.float64)


def weighted_sums(values: Floats, weights: Floats, present: Dense) -> Both:
    """Return ``sum(values * weights)`` and ``sum(weights)`` of each pane, both as `sums_and_residuals` does."""
    membership = present.membership
    if is_disjoint(membership):
        both: Both = _disjoint(values, weights, membership.lo, membership.hi)
        return both
    products = products_and_errors(values, weights)
    return *sums_of_shared(*products, membership), *sums_of_shared(weights, _NONE, membership)


@kernel
def _disjoint(values: Floats, weights: Floats, lo: Ints, hi: Ints) -> Both:
    """The sums of disjoint panes."""
    first, first_residuals = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    second, second_residuals = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    for p in range(lo.size):
        # Both sums as `exact_sums._with_errors`; the error of each product is one more number of the first sum. One
        # loop for both reads the rows once.
        total = rest = lost = weight = weight_rest = weight_lost = 0.0
        for i in range(lo[p], hi[p]):
            product = values[i] * weights[i]
            total, error = sum_and_error(total, product)
            rest, further = sum_and_error(rest, error)
            lost += abs(further)
            rest, further = sum_and_error(rest, error_of_product(values[i], weights[i], product))
            lost += abs(further)
            weight, error = sum_and_error(weight, weights[i])
            weight_rest, further = sum_and_error(weight_rest, error)
            weight_lost += abs(further)
        first[p], residual, is_proven = nearest_of(total, rest, lost)
        first_residuals[p] = residual if is_proven else np.nan
        second[p], residual, is_proven = nearest_of(weight, weight_rest, weight_lost)
        second_residuals[p] = residual if is_proven else np.nan
    return first, first_residuals, second, second_residuals
