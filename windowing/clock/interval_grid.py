"""The panes of event time as a grid: the panes that hold an instant, and those that end before it (section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, Ints, Measures, Scale, latest_clock, measures, scale_of
from ..errors import ConfigError, DataError
from ..language.spec import Batched, TimeInterval
from ..rows.sequence import Sequences
from .tick_grid import Grid, make_grid, ticks_array

_MOST_PANES_A_ROW = 100_000


@dataclass(frozen=True, slots=True)
class Intervals:
    """The panes of an event-time window on the values of one column.

    Pane k is ``[bound(k * step), bound(k * step + length))`` of a grid on which all starts and all ends lie.

    ``grid``: that grid.
    ``step``: cells of the grid between the starts of two panes.
    ``length``: cells of the grid in a pane.
    ``scale``: the scale of the column.
    """

    grid: Grid
    step: int
    length: int
    scale: Scale

    @property
    def type(self) -> pa.DataType:
        return self.grid.type

    def holding(self, values: Measures) -> tuple[Ints, Ints]:
        """Return for each event time the first and the last pane that holds it, int64 (n,).

        Where no pane holds it, the first is greater than the last. Raises `DataError` where a bound of these panes
        would not fit 64 bit.
        """
        cells = self.grid.cells(values)
        return (cells - self.length) // self.step + 1, cells // self.step

    def level(self, values: Measures, lag: Fraction = Fraction(0)) -> Ints:
        """Return for each instant the last pane that ends at least ``lag`` seconds before it, int64 (n,).

        The lag may be finer than a tick. On float clocks it must be 0.
        """
        shift = math.ceil(lag * self._ticks_per_second) if self.grid.exact else 0
        moved = replace(self.grid, origin=self.grid.origin + shift, reach=self.grid.reach + shift)
        return (moved.cells(values) - self.length) // self.step

    def level_at(self, seconds: Fraction) -> int:
        """Return the last pane that ends at an instant or before; the instant may be between two ticks."""
        if not self.grid.exact:
            return int(self.level(np.array([float(seconds)]))[0])
        ticks = seconds * self._ticks_per_second - int(self.grid.origin)
        return int((ticks // int(self.grid.period) - self.length) // self.step)

    def bounds(self, panes: Ints) -> tuple[pa.Array, pa.Array]:
        """Return the starts (inclusive) and the ends (exclusive) of panes."""
        if not self.grid.exact:
            cells = panes * self.step
            return self.grid.bounds(cells), self.grid.bounds(cells + self.length)
        # in place, and the ends from the starts: a result of hops has more panes than the log has rows
        starts = panes * self.step
        starts *= np.int64(self.grid.period)
        starts += np.int64(self.grid.origin)
        return self.grid.to_arrow(starts), self.grid.to_arrow(starts + np.int64(self.length * int(self.grid.period)))

    @property
    def _ticks_per_second(self) -> Fraction:
        assert self.scale.per_second is not None
        return self.scale.per_second * self.grid.refine


def make_intervals(dtype: pa.DataType, spec: TimeInterval) -> Intervals:
    """Bind the panes of a window to the type of its event-time column; a column without values counts as int64.

    Raises `ConfigError` where bounds are finer than a nanosecond, or where a row would be in too many panes.
    """
    if spec.duration > _MOST_PANES_A_ROW * spec.period:
        raise ConfigError(
            f"an intervalDuration of {float(spec.duration)} s and a creationPeriod of {float(spec.period)} s put a row "
            f"into more than {_MOST_PANES_A_ROW:,} panes",
            "use a longer creationPeriod",
        )
    denominator = math.lcm(spec.duration.denominator, spec.period.denominator)
    unit = Fraction(math.gcd(int(spec.duration * denominator), int(spec.period * denominator)), denominator)
    step, length = int(spec.period / unit), int(spec.duration / unit)
    if step + length >= 2**62:
        raise ConfigError(f"the panes of {spec} have bounds too fine for 64 bit", "round the amounts")
    return Intervals(make_grid(dtype, unit, spec.offset % spec.period, spec.duration), step, length, scale_of(dtype))


# The clock column as numbers, and the grid of ticks over it (semantics section 1, *clock*).


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
