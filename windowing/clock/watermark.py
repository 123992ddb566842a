"""The watermark: how far event time has come, and which panes are complete by then (semantics section 5).

There is one watermark for all keys (decision 011). A slice needs only a list of its advances: the rows after
which more panes are complete than before, and the rows at which panes with late rows are emitted again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ..language.spec import TimeInterval
from ..rows.marks import NO_FILE, Marks
from ..rows.sequence import one_batch, order_of
from ..support.jit import kernel
from .interval_grid import Intervals, make_intervals

NO_LEVEL = int(np.iinfo(np.int64).min)
"""The level before the first watermark: no pane is complete."""
_MOST_TICKS = 2**64 - 1


@dataclass(frozen=True, slots=True)
class WatermarkPath:
    """The watermark before, at and after n rows, as readings (see `Lateness`).

    ``before``: int64 or float64 (n,), the watermark before each row; without meaning where it is not ``known``.
    ``known``: bool (n,), false for the first row of all, true for all others.
    ``advances``: bool (n,), the rows that announce a new watermark.
    ``final``: the watermark after the last row; None before the first row of all.
    """

    before: Measures
    known: Mask
    advances: Mask
    final: ClockValue | None


def highest(readings: Measures) -> ClockValue | None:
    """Return the highest reading, which is the whole effect of rows on a watermark that announces every rise."""
    return readings.max().item() if len(readings) else None


def after(current: ClockValue | None, reading: ClockValue | None) -> ClockValue | None:
    """Return the watermark after rows whose `highest` is ``reading``, where every rise is announced."""
    return reading if current is None else current if reading is None else max(current, reading)


@dataclass(frozen=True, slots=True)
class Lateness:
    """The rules of the watermark of one event-time column, and of lateness.

    ``intervals``: the panes.
    ``lag``: how far the watermark stays behind the largest event time, in seconds, at least 0.
    ``min_gap``: the least rise that takes effect, in seconds, at least 0.
    ``age``: the discard age, in seconds, at least 0.

    A *reading* is a watermark as it is stored. Where the column has ticks, a reading is the event time of the row that
    announced it; the lag, which may be finer than a tick, is subtracted in each comparison, so that nothing is rounded.
    On a float clock a reading is the float nearest to that event time minus the lag, as are all instants there.

    All methods take event times of rows in arrival order, in measures, without nulls, NaN and infinities.
    """

    intervals: Intervals
    lag: Fraction
    min_gap: Fraction
    age: Fraction

    def readings(self, values: Measures) -> Measures:
        """Return the watermark that each row alone would announce, of shape (n,)."""
        return values if self._per_second is not None else _moved_by(values, *_float_pair(-self.lag))

    def advance(self, values: Measures, current: ClockValue | None) -> WatermarkPath:
        """Let rows raise the watermark from the reading ``current``; None: no row came before."""
        readings = self.readings(values)
        if not len(readings):
            nothing = np.empty(0, np.bool_)
            return WatermarkPath(readings, nothing, nothing, current)
        announced = self._announced(readings, readings[0] if current is None else current)
        known, advances = np.ones(len(readings), np.bool_), announced[1:] > announced[:-1]
        if current is None:
            known[0], advances[0] = False, True
        return WatermarkPath(announced[:-1], known, advances, announced[-1].item())

    def beyond_repair(self, values: Measures, path: WatermarkPath) -> Mask:
        """Return the rows older than the watermark before them less the discard age, which are rejected as ``late``."""
        if self._per_second is None:
            return path.known & (values < _moved_by(path.before, *_float_pair(-self.age)))
        ticks = min(math.floor((self.lag + self.age) * self._per_second), _MOST_TICKS)
        # the difference of two int64 may need 64 unsigned bits: it wraps into them exactly where it is positive
        behind = (path.before - values).view(np.uint64)
        return path.known & (path.before > values) & (behind > np.uint64(ticks))

    def last_closed(self, current: ClockValue) -> int:
        """Return the last pane for which every further row is too late, at the watermark ``current``, a reading."""
        dtype = np.int64 if self._per_second is not None else np.float64
        reading = np.array([current], dtype)
        if self._per_second is None:
            return int(self.intervals.level(_moved_by(reading, *_float_pair(-self.age)))[0])
        return int(self.intervals.level(reading, self.lag + self.age)[0])

    def list_advances(self, values: Measures, path: WatermarkPath) -> tuple[Ints, Ints]:
        """Return the advances of a chunk for `Watermarks`: their places among the rows, and their levels.

        These are the advances at which the level rises, the first advance after each row that is late for a pane, and
        the first advance of the chunk, because the last row of the chunk before may be late for a pane.
        """
        places = np.flatnonzero(path.advances)
        level = self._level(self.readings(values[places]))
        wanted = _new(level)
        following = np.searchsorted(places, self._late(values, path))
        wanted[following[following < len(places)]] = True
        return places[wanted], level[wanted]

    def list_advances_in_order(self, values: Measures) -> tuple[Ints, Ints]:
        """Return the same where event time orders the rows and nothing is late: the first row of each level."""
        ascending = np.argsort(values, kind="stable")
        level = self._level(self.readings(values[ascending]))
        first = _new(level)
        return ascending[first], level[first]

    @property
    def _per_second(self) -> Fraction | None:
        return self.intervals.scale.per_second

    def _level(self, readings: Measures) -> Ints:
        return self.intervals.level(readings, Fraction(0) if self._per_second is None else self.lag)

    def _announced(self, readings: Measures, start: ClockValue) -> Measures:
        if not self.min_gap:
            return np.maximum.accumulate(np.append(readings.dtype.type(start), readings))
        if self._per_second is None:
            return _announced_floats(readings, start, *_float_pair(self.min_gap))
        short = min(math.ceil(self.min_gap * self._per_second) - 1, _MOST_TICKS)
        return _announced_ints(readings, start, np.uint64(short))

    def _late(self, values: Measures, path: WatermarkPath) -> Ints:
        places = np.flatnonzero(path.known & ~self.beyond_repair(values, path) & (values < path.before))
        first, last = self.intervals.holding(values[places])
        return places[first <= np.minimum(last, self._level(path.before[places]))]


def make_lateness(dtype: pa.DataType, spec: TimeInterval, lag: Fraction, min_gap: Fraction) -> Lateness:
    """Bind a window to the type of its event-time column. Raises `ConfigError` as `make_intervals` does."""
    return Lateness(make_intervals(dtype, spec), lag, min_gap, spec.discard_age)


@dataclass(frozen=True, slots=True)
class Watermarks:
    """M advances of the watermark in total order, with levels that never fall.

    ``marks``: the rows after which the advances come.
    ``level``: int64 (m,), the last pane that is complete from then on.
    """

    marks: Marks
    level: Ints

    def __len__(self) -> int:
        return len(self.level)


def watermarks_at(order: pa.RecordBatch, pos: Ints, places: Ints, level: Ints) -> Watermarks:
    """Return the advances at ``places`` of a chunk, given the order columns and positions of its rows."""
    rows = order.take(pa.array(places)) if order.num_columns else order
    return Watermarks(Marks(rows, pos[places], np.full(len(places), NO_FILE)), level)


def in_order(parts: Sequence[Watermarks]) -> Watermarks:
    """Return the advances of one or more chunks in total order."""
    rows = one_batch(pa.Table.from_batches([part.marks.rows for part in parts]))
    pos = np.concatenate([part.marks.pos for part in parts])
    level = np.concatenate([part.level for part in parts])
    ascending = order_of([*rows.columns, pa.array(pos)])
    return watermarks_at(rows, pos, ascending, level[ascending])


def rises(watermarks: Watermarks) -> Watermarks:
    """Keep the advances at which the level rises; without late rows no other advance has an effect."""
    picks = np.flatnonzero(_new(watermarks.level))
    return Watermarks(watermarks.marks.take(picks), watermarks.level[picks])


def explicit(
    events: Sequence[tuple[int, Fraction]], intervals: Intervals, age: Fraction, values: Measures, pos: Ints
) -> tuple[Watermarks, Mask]:
    """Return the advances of explicit watermarks, and which rows are late beyond repair by them, bool (n,).

    ``events``: pairs (p, seconds), the watermark before the row at position p; events that do not rise have no effect.
    ``values``, ``pos``: event times and positions of the rows, in arrival order.
    """
    risen: list[tuple[int, Fraction]] = []
    for position, seconds in sorted(events, key=lambda event: event[0]):
        if not risen or seconds > risen[-1][1]:
            risen.append((position, seconds))
    late, per_second = np.zeros(len(values), np.bool_), intervals.scale.per_second
    for position, seconds in risen:
        if per_second is None:
            least: ClockValue = float(Fraction(float(seconds)) - age)
        else:
            least = math.ceil((seconds - age) * per_second)
        behind = slice(np.searchsorted(pos, position), None)
        late[behind] = values[behind] < least
    follows = np.array([position - 1 for position, _ in risen], np.int64)
    level = np.array([intervals.level_at(seconds) for _, seconds in risen], np.int64)
    no_columns = pa.RecordBatch.from_arrays([], names=[])
    return Watermarks(Marks(no_columns, follows, np.full(len(follows), NO_FILE)), level), late


def _new(level: Ints) -> Mask:
    """Return where ascending levels rise; the first level counts as a rise."""
    return np.append(True, level[1:] > level[:-1])[: len(level)]


def _float_pair(seconds: Fraction) -> tuple[float, float]:
    near = float(seconds)
    return near, float(seconds - Fraction(near))


@kernel
def _nearest_sum(value: float, near: float, rest: float) -> float:
    # Compensated (two-sum): ``error`` is exactly what the first addition rounds away, so only the last one rounds.
    rounded = value + near
    added = rounded - value
    error = (value - (rounded - added)) + (near - added)
    return rounded + (error + rest)


@kernel
def _moved_by(values: Measures, near: float, rest: float) -> Measures:
    out = np.empty(len(values), np.float64)
    for i in range(len(values)):
        out[i] = _nearest_sum(np.float64(values[i]), near, rest)
    return out


@kernel
def _announced_ints(readings: Ints, start: ClockValue, short: np.uint64) -> Ints:
    """Return the watermark before each row and after the last; rises of up to ``short`` ticks have no effect yet."""
    # Each comparison is with the last announced watermark, so this is a loop and not a running maximum.
    out = np.empty(len(readings) + 1, np.int64)
    current = out[0] = start
    for i in range(len(readings)):
        # the difference of two int64 wraps into 64 unsigned bits exactly, since it is positive here
        if readings[i] > current and np.uint64(readings[i] - current) > short:
            current = readings[i]
        out[i + 1] = current
    return out


@kernel
def _announced_floats(readings: Measures, start: ClockValue, near: float, rest: float) -> Measures:
    """Return the same for floats: a reading must reach the float nearest to the sum of the watermark and the gap."""
    out = np.empty(len(readings) + 1, np.float64)
    current = out[0] = start
    for i in range(len(readings)):
        if readings[i] > current and readings[i] >= _nearest_sum(current, near, rest):
            current = readings[i]
        out[i + 1] = current
    return out


# Watermark advances as a table, for states.


POS, LEVEL = "__pos", "__level"
"""Columns after those that sort rows."""


def advance_table(advances: Watermarks) -> pa.Table:
    """Return advances as a table: the columns that sort rows, arrival positions, levels."""
    rows = advances.marks.rows
    columns = [*rows.columns, pa.array(advances.marks.pos), pa.array(advances.level)]
    return pa.Table.from_arrays(columns, names=[*rows.schema.names, POS, LEVEL])


def advances_of(table: pa.Table) -> Watermarks:
    """Return the advances that `advance_table` describes."""
    pos, level = (combined(table.column(name)).to_numpy() for name in (POS, LEVEL))
    rows = one_batch(table.drop_columns([POS, LEVEL]))
    return Watermarks(Marks(rows, pos, np.full(len(pos), NO_FILE)), level)
