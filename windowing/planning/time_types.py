"""The types of the instants in a result: interval bounds, ticks and expiries."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from ..clock.calendar_grid import calendar_type
from ..clock.interval_grid import make_intervals
from ..clock.values import batched_grid, clock_values, time_grid
from ..language.spec import Batched, Calendar, Sliding, Time, TimeInterval, Tumbling, WindowSpec


def bounds_type(spec: WindowSpec, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
    """Return the type of a window's interval bounds on a clock column; None where the bounds are values of rows."""
    match spec:
        case Tumbling(Time(seconds)):
            return time_grid(clock, seconds, origin).type
        case Tumbling(Calendar()):
            return calendar_type(_or_integers(clock))
        case TimeInterval():
            return make_intervals(clock, spec).type
        case Batched(within) if within is not None:
            return batched_grid(spec, clock, origin).type
    return None


def instants_type(spec: WindowSpec, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
    """Return the type of the instants at which the clock triggers panes; None where it triggers none."""
    match spec:
        case Sliding(_, Time(seconds)):
            return time_grid(clock, seconds, origin).type
        case Tumbling(Time() | Calendar()) | Batched():
            return bounds_type(spec, clock, origin)
    return None


def to_tick_type(spec: WindowSpec, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
    """Return clock values in the `instants_type` of a window, bit for bit as bounds have the same instant."""
    match spec:
        case Tumbling(Time(seconds)) | Sliding(_, Time(seconds)):
            grid = time_grid(column.type, seconds, origin)
        case Batched(within) if within is not None:
            grid = batched_grid(spec, column.type, origin)
        case _:
            return column.cast(instants_type(spec, column.type, origin) or column.type)
    return grid.to_arrow(grid.instants(clock_values(column, name)))


def _or_integers(dtype: pa.DataType) -> pa.DataType:
    """Return the type of a column; int64 where it has no value."""
    return pa.int64() if pa.types.is_null(dtype) else dtype
