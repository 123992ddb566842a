"""The clock column as numbers, and the grid of ticks over it (semantics section 1, *clock*)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, Measures, latest_clock
from ..columns.numeric import measures
from ..errors import DataError
from ..language.spec import Batched
from ..sequences.sequence import Sequences
from .tick_grid import Grid, make_grid, ticks_array


def time_grid(dtype: pa.DataType, seconds: Fraction, origin: Fraction) -> Grid:
    """Return the grid of ticks on a clock column of type ``dtype``; a column without values counts as int64."""
    return make_grid(pa.int64() if pa.types.is_null(dtype) else dtype, seconds, origin)


def now(values: Measures, clock: ClockValue | None) -> ClockValue | None:
    """Return the current time of the one clock: the largest value, or ``clock`` if later; None without any (section 1).

    ``values`` and ``clock`` are measures of the clock column.
    """
    return latest_clock([values.max().item() if len(values) else None, clock])


def now_as_measure(values: Measures, clock: ClockValue | None) -> Measures:
    """Return the current time of the one clock as an array of one measure; 0 where the clock has not begun."""
    return np.array([now(values, clock) or 0], np.int64 if values.dtype == np.int64 else np.float64)


def clock_values(column: pa.Array, name: str) -> Measures:
    """Return the clock column as measures; raises `DataError` for unsigned values beyond int64."""
    if pa.types.is_uint64(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError(f"column {name!r} holds numbers beyond 2**63 - 1", "a clock has 64 signed bits") from None
    return measures(column)


def instants_at(clock: ClockValue, sequences: Sequences, dtype: pa.DataType) -> pa.Scalar:
    """Return the time of the clock, a measure of the clock column of some sequences, as a scalar of type ``dtype``."""
    kind = sequences.rows.schema.field(sequences.order[0]).type
    if pa.types.is_floating(kind):
        return pa.scalar(clock, pa.float64()).cast(dtype)
    return ticks_array(np.array([clock], np.int64), kind)[0].cast(dtype)


def batched_grid(spec: Batched, dtype: pa.DataType, origin: Fraction) -> Grid:
    """Return the grid of a window with ``within`` on a clock column of type ``dtype``; instants have the grid's type.

    Its ticks are those of ``every``; without ``every`` the ticks have no meaning.
    """
    assert spec.within is not None
    if spec.every is None:
        return make_grid(dtype, spec.within, Fraction(0))
    return make_grid(dtype, Fraction(spec.every), origin, spec.within)
