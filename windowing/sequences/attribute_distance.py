"""An attribute and an amount in one measure: what ``delta``, ``gap`` and ages compare (semantics section 2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..columns.arrays import Measures, combined
from ..columns.numeric import Scale, measures, scale_of
from .sequence import Sequences


def measures_and_amount(sequences: Sequences, attribute: str, amount: Fraction) -> tuple[Measures, Any]:
    """Return the attribute's measures, int64 or floats of shape (n,), and the amount as `amount_in_measure` gives
    it."""
    column = combined(sequences.rows.column(attribute))
    values = measures(column)
    return values, amount_in_measure(values, scale_of(column.type), amount)


def amount_in_measure(values: Measures, scale: Scale, amount: Fraction) -> Any:
    """Return an amount in the measure of values: for int64 as uint64, whose bits their differences fill and no more."""
    if scale.per_second is None:
        with np.errstate(over="ignore"):  # an amount beyond 32 bit is infinite, and never exceeded either
            return values.dtype.type(float(amount))
    return np.uint64(min(scale.floor(amount), 2**64 - 1))
