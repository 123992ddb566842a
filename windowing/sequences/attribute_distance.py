"""Attribute values and an amount in one unit, which ``delta``, ``gap`` and ages compare (semantics section 2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..columns.arrays import Measures, combined
from ..columns.numeric import Scale, measures, scale_of
from ..support.jit import kernel
from .sequence import Sequences


def measures_and_amount(sequences: Sequences, attribute: str, amount: Fraction) -> tuple[Measures, Any]:
    """Return the attribute as `measures`, int64 or floats (n,), and the amount by `amount_in_measure`."""
    column = combined(sequences.rows.column(attribute))
    values = measures(column)
    return values, amount_in_measure(values, scale_of(column.type), amount)


def amount_in_measure(values: Measures, scale: Scale, amount: Fraction) -> Any:
    """Return an amount in the unit of values. For int64 it is uint64, because differences of int64 need 64 bits."""
    if scale.per_second is None:
        with np.errstate(
            over="ignore"
        ):  # an amount that exceeds float32 becomes infinite, and no distance exceeds either
            return values.dtype.type(float(amount))
    return np.uint64(min(scale.floor(amount), 2**64 - 1))


@kernel
def rises(new: Any, old: Any, amount: Any) -> bool:
    """Return whether ``new >= old and new - old > amount``; false where one of them is NaN."""
    # the difference of two int64 wraps into the 64 unsigned bits of the amount exactly, since new >= old
    return new >= old and type(amount)(new - old) > amount
