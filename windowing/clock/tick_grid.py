"""The grid of ticks on the clock: ``origin + k * period`` (semantics section 2, ``time``).

Clocks with ticks (timestamps, dates, integers, decimals) are computed in exact integers; where the period is finer
than the unit of the column, the bounds get a finer unit. On float clocks a bound is the float nearest to the exact
tick, and the rule is that a value lies in ``[bound(k), bound(k + 1))`` for the bounds as they are written.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, Measures, scale_of
from ..errors import ConfigError, DataError
from ..support.column_types import PER_SECOND

_FLOAT_INTEGERS = 2**53


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid over the values of one clock column.

    ``type``: the type of its bounds.
    ``exact``: whether the clock column has ticks; else it holds floats.
    ``refine``: ticks of the bounds per tick of the column.
    ``origin``: in ticks of the bounds.
    ``period``: in ticks of the bounds.
    ``divide``: ticks of the bounds in one unit of the written values, where these are floats; else 1.
    ``reach``: how far from the values their bounds may lie, in ticks of the bounds.

    An *instant* is a point on the clock in the unit of the bounds: int64 ticks of the bounds, or a float.
    """

    type: pa.DataType
    exact: bool
    refine: int
    origin: float
    period: float
    divide: int = 1
    reach: float = 0

    def cells(self, values: Measures) -> Ints:
        """Return for each value the k of its window ``[bound(k), bound(k + 1))``, int64 of shape (n,).

        ``values`` are measures of the clock column. Raises `DataError` where a bound would not fit 64 bit.
        """
        return self._cells(self.instants(values))

    def bounds(self, cells: Ints) -> pa.Array:
        """Return the lower bounds of cells, in the grid's type."""
        return self.to_arrow(self.ticks(cells))

    def instants(self, values: Measures) -> Measures:
        """Return measures of the clock column as instants, of shape (n,). Raises `DataError` as `cells` does."""
        if not self.exact:
            return values.astype(np.float64)
        some = values if len(values) else np.zeros(1, np.int64)
        low, high = int(some.min()) * self.refine, int(some.max()) * self.refine
        if low - self.reach < -(2**63) or high + self.reach >= 2**63:
            what = f"the time grid does not reach from {low} to {high} in 64 bit"
            raise DataError(what, "use shorter spans, or a coarser unit")
        return values * np.int64(self.refine)

    def on_bound(self, values: Measures, cells: Ints) -> npt.NDArray[np.bool_]:
        """Return which values are the lower bounds of their cells, bool (n,)."""
        return np.asarray(self.ticks(cells) == self.instants(values))

    def lasting(self, cells: Ints) -> npt.NDArray[np.bool_]:
        """Return that all cells hold an instant."""
        return np.ones(len(cells), np.bool_)

    def first_ticks(self, instants: Measures) -> Ints:
        """Return for each instant the k of the first tick at or after it, int64 of shape (n,)."""
        cells = self._cells(instants)
        return cells + (self.ticks(cells) < instants)

    def later(self, instants: Measures, seconds: Fraction) -> Measures:
        """Return instants plus ``seconds``, which must be one of the spans of `make_grid`, or its negative.

        Raises `DataError` where a float does not change, because the next float is too far away.
        """
        if self.exact:
            per_second = Fraction(self.divide) if pa.types.is_floating(self.type) else ticks_per_second(self.type)
            return instants + np.int64(int(seconds * per_second))
        with np.errstate(over="ignore", invalid="ignore"):
            high = float(seconds)
            low = float(seconds - Fraction(high))
            sums = instants + high
            added = sums - instants
            error = (instants - (sums - added)) + (high - added)
            moved = sums + (error + low)
        if not bool((np.isfinite(moved) & (moved != instants)).all()):
            furthest = float(np.max(np.abs(instants)))
            raise DataError(
                f"a clock of floats at {furthest} cannot resolve {float(abs(seconds))} s", "use a longer window"
            )
        return moved

    def to_arrow(self, instants: Measures) -> pa.Array:
        """Return instants in the grid's type."""
        if not self.exact:
            return pa.array(instants, pa.float64())
        if self.divide != 1:
            return pa.array(instants / self.divide, pa.float64())
        return ticks_array(instants, self.type)

    def _cells(self, instants: Measures) -> Ints:
        if not self.exact:
            furthest = float(np.max(np.abs(instants), initial=0.0))
            if furthest * (self.divide / self.period) > _FLOAT_INTEGERS:
                raise DataError(f"the time grid does not reach to {furthest}", "use a longer period")
            cells = np.floor((instants * self.divide - self.origin) / self.period).astype(np.int64)
            cells -= self._float_bounds(cells) > instants
            cells += self._float_bounds(cells + 1) <= instants
            return cells
        return np.floor_divide(instants - np.int64(self.origin), np.int64(self.period))

    def ticks(self, cells: Ints) -> Measures:
        """Return the lower bounds of cells as instants."""
        if not self.exact:
            return self._float_bounds(cells)
        return cells * np.int64(self.period) + np.int64(self.origin)

    def _float_bounds(self, cells: Ints) -> npt.NDArray[np.float64]:
        """Return the floats nearest to the ticks: a quotient of integers below 2**53 is rounded only once."""
        return (cells * self.period + self.origin) / self.divide


def make_grid(dtype: pa.DataType, period: Fraction, origin: Fraction, *spans: Fraction) -> Grid:
    """Make the grid of a clock column of type ``dtype``; period, origin and spans in seconds.

    ``spans``: distances of other instants from the values, so that the type of the bounds can represent these instants
    too. A column without any value counts as int64.

    Raises `ConfigError` where any of these is finer than nanoseconds.
    """
    dtype = pa.int64() if pa.types.is_null(dtype) else dtype
    if pa.types.is_floating(dtype):
        divide = math.lcm(period.denominator, origin.denominator)
        if max(Fraction(divide), abs(origin) * divide, period * divide) > _FLOAT_INTEGERS:
            return Grid(pa.float64(), False, 1, float(origin), float(period))
        return Grid(pa.float64(), False, 1, int(origin * divide), int(period * divide), divide)
    bound_type, per_second, divide = _bound_type(dtype, period, origin, *spans)
    refine = int(per_second / ticks_per_second(dtype))
    start, step, *more = (int(seconds * per_second) for seconds in (origin, period, *spans))
    reach = abs(start) + 2 * step + sum(map(abs, more))
    return Grid(bound_type, True, refine, start, step, divide, reach)


def ticks_array(ticks: Ints, dtype: pa.DataType) -> pa.Array:
    """Turn int64 ticks into an array of an integer, decimal, date, timestamp or duration type."""
    if pa.types.is_decimal(dtype):
        pairs = np.stack([ticks, ticks >> 63], axis=1)
        return pa.Array.from_buffers(dtype, len(ticks), [None, pa.py_buffer(np.ascontiguousarray(pairs))])
    if pa.types.is_date32(dtype):
        reach = np.iinfo(np.int32)
        if len(ticks) and (ticks.min() < reach.min or ticks.max() > reach.max):
            raise DataError("a window reaches beyond the first or the last date that there is", "order by a timestamp")
        return pa.array(ticks.astype(np.int32), pa.int32()).cast(dtype)
    return pa.array(ticks, pa.int64()).cast(dtype)


def ticks_per_second(dtype: pa.DataType) -> Fraction:
    """Return how many ticks of a type that has ticks make one second, or one unit of a plain number."""
    per_second = scale_of(dtype).per_second
    assert per_second is not None
    return per_second


def _bound_type(
    dtype: pa.DataType, period: Fraction, origin: Fraction, *spans: Fraction
) -> tuple[pa.DataType, Fraction, int]:
    own = ticks_per_second(dtype)
    every = (period, origin, *spans)
    if _whole(own, *every):
        return roomy(dtype), own, 1
    if pa.types.is_decimal(dtype) or pa.types.is_integer(dtype):
        fine = own * math.lcm(*((seconds * own).denominator for seconds in every))
        return pa.float64(), fine, int(fine)
    for unit, per_second in PER_SECOND.items():
        if per_second >= own and _whole(Fraction(per_second), *every):
            finer = pa.duration(unit) if pa.types.is_duration(dtype) else pa.timestamp(unit, getattr(dtype, "tz", None))
            return finer, Fraction(per_second), 1
    amounts = " and ".join(f"{float(seconds)} s" for seconds in (period, *spans))
    raise ConfigError(f"a grid of {amounts} from {float(origin)} s is finer than a nanosecond", "round them")


def roomy(dtype: pa.DataType) -> pa.DataType:
    """Return the type of bounds on a clock column with ticks: its own, with room for all of them."""
    if pa.types.is_integer(dtype) or pa.types.is_null(dtype):
        return pa.int64()
    return pa.decimal128(38, dtype.scale) if pa.types.is_decimal(dtype) else dtype


def _whole(per_second: Fraction, *seconds: Fraction) -> bool:
    return all((value * per_second).denominator == 1 for value in seconds)


# Numbers that count time since 1970: which unit they have, by how large they are.


EpochUnit = Literal["s", "ms", "us", "ns"]
DIGITS: Final[dict[EpochUnit, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""The units, each with the digits that it has below a second."""
ENOUGH: Final = 0.5
"""The share of values that must be of one kind to say what a column is."""

_FIRST, _LAST = 631_152_000, 4_102_444_800  # seconds since 1970 that count as an instant: from 1990 to 2099


def epoch_unit(numbers: Collection[float], among: int) -> EpochUnit | None:
    """Return the unit in which numbers are instants from 1990 to 2099; None where too few of them are in any.

    ``among``: how many values there are, with those that are no numbers.
    """
    values = np.fromiter(numbers, np.float64, len(numbers))
    for unit, digits in DIGITS.items():
        near = np.count_nonzero((values / 10.0**digits >= _FIRST) & (values / 10.0**digits < _LAST))
        if near and near >= ENOUGH * among:
            return unit
    return None
