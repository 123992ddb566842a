"""Attribute values and an amount in one unit, which ``delta``, ``gap`` and ages compare (semantics section 2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..columns.arrays import Mask, Measures, combined
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
def rises(new: Any, old: Any, amount: Any) -> Any:
    """Return whether ``new >= old and new - old > amount``; false where one of them is NaN."""
    # The difference of two int64 wraps into the 64 unsigned bits of the amount exactly, since new >= old. Both sides
    # are computed, so that numpy can apply the rule to arrays, too (`have_risen`); compiled loops are as fast.
    return (new >= old) & (type(amount)(new - old) > amount)


def have_risen(new: Any, old: Any, amount: Any) -> Mask:
    """Return which values rise above others, in their shape: numbers or arrays.

    Numpy and not a kernel: the driver calls this while no task runs, and to load its first kernel would take 0.2 s.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a difference that wraps, or inf - inf: new >= old excludes it
        return np.asarray(rises.py_func(new, old, amount))  # type: ignore[attr-defined]
