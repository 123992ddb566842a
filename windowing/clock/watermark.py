"""How far event time has come, and which panes are complete by then (semantics section 5).

The watermark is one for all keys. All that a slice has to know of it fits into a list: the rows after which more
panes are complete than before, and those at which panes that got late rows come out again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, Ints, Mask, Measures
from ..columns.numeric import Scale
from ..language.spec import TimeInterval
from ..sequences.marks import NO_FILE, Marks
from ..sequences.sequence import one_batch, order_of
from ..support.jit import kernel
from .interval_grid import Intervals, make_intervals

NO_LEVEL = int(np.iinfo(np.int64).min)
"""The level before the first watermark: no pane is complete."""
_MOST_TICKS = 2**64 - 1


@dataclass(frozen=True, slots=True)
class WatermarkPath:
    """The watermark while n rows come, told in readings (see `Lateness`).

    ``before``: (n,), where it stands before each row; of no meaning where it is not ``known``, which is before the
    first row of all. ``advances``: (n,), the rows that announce a new one. ``stands``: where it stands after the last
    row; None: no row has come yet.
    """

    before: Measures
    known: Mask
    advances: Mask
    final: ClockValue | None


def highest(readings: Measures) -> ClockValue | None:
    """Return all that rows do to the watermark where every rise is announced."""
    return readings.max().item() if len(readings) else None


def after(stands: ClockValue | None, told: ClockValue | None) -> ClockValue | None:
    """Return where the watermark stands after rows of which `highest` is ``told``, where every rise is announced."""
    return told if stands is None else stands if told is None else max(stands, told)


@dataclass(frozen=True, slots=True)
class Lateness:
    """How the watermark of one event-time column moves, and what is late by it. All amounts in seconds, at least 0.

    A *reading* is a watermark as it is held. Where the column has ticks it is the event time of the row that announced
    it, and the lag, which may be finer than a tick, is taken off wherever it is compared; so nothing is rounded. On a
    float clock it is the float nearest to that event time less the lag, as are all instants there.

    All methods take event times of rows in arrival order, in measures, without nulls, NaN and infinities.
    """

    intervals: Intervals
    lag: Fraction
    min_gap: Fraction
    age: Fraction

    def readings(self, values: Measures) -> Measures:
        """Return the watermark that each row alone would announce, of shape (n,)."""
        return values if self._per_second is not None else _moved_by(values, *_float_pair(-self.lag))

    def advance(self, values: Measures, stands: ClockValue | None) -> WatermarkPath:
        """Let rows raise the watermark from where it ``stands``, a reading; None: there was no row yet."""
        readings = self.readings(values)
        if not len(readings):
            nothing = np.empty(0, np.bool_)
            return WatermarkPath(readings, nothing, nothing, stands)
        announced = self._announced(readings, readings[0] if stands is None else stands)
        known, advances = np.ones(len(readings), np.bool_), announced[1:] > announced[:-1]
        if stands is None:
            known[0], advances[0] = False, True
        return WatermarkPath(announced[:-1], known, advances, announced[-1].item())

    def beyond_repair(self, values: Measures, course: WatermarkPath) -> Mask:
        """Return the rows older than the watermark before them less the discard age, which are rejected as ``late``."""
        if self._per_second is None:
            return course.known & (values < _moved_by(course.before, *_float_pair(-self.age)))
        ticks = min(math.floor((self.lag + self.age) * self._per_second), _MOST_TICKS)
        # the difference of two int64 may need 64 unsigned bits: it wraps into them exactly
        behind = (course.before - values).view(np.uint64)
        return course.known & (course.before > values) & (behind > np.uint64(ticks))

    def last_closed(self, stands: ClockValue) -> int:
        """Return the last pane that no row is early enough for any more, where the watermark ``stands``, a reading."""
        dtype = np.int64 if self._per_second is not None else np.float64
        reading = np.array([stands], dtype)
        if self._per_second is None:
            return int(self.intervals.level(_moved_by(reading, *_float_pair(-self.age)))[0])
        return int(self.intervals.level(reading, self.lag + self.age)[0])

    def in_no_pane(self, values: Measures) -> Mask:
        """Return the rows between panes that do not meet."""
        first, last = self.intervals.holding(values)
        return first > last

    def list_advances(self, values: Measures, course: WatermarkPath) -> tuple[Ints, Ints]:
        """Return the advances of a chunk that `Watermarks` lists: their places among the rows, and their levels.

        These are the advances at which the level rises, the first one after each row that is late for a pane, and the
        first of the chunk, for such a row may be the last of the chunk before.
        """
        places = np.flatnonzero(course.advances)
        level = self._level(self.readings(values[places]))
        wanted = _new(level)
        following = np.searchsorted(places, self._late(values, course))
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
        """Where the watermark stands before each row, and after the last."""
        if not self.min_gap:
            return np.maximum.accumulate(np.append(readings.dtype.type(start), readings))
        if self._per_second is None:
            return _announced_floats(readings, start, *_float_pair(self.min_gap))
        short = min(math.ceil(self.min_gap * self._per_second) - 1, _MOST_TICKS)
        return _announced_ints(readings, start, np.uint64(short))

    def _late(self, values: Measures, course: WatermarkPath) -> Ints:
        """Places of the rows that are late for some pane, but not beyond repair."""
        places = np.flatnonzero(course.known & ~self.beyond_repair(values, course) & (values < course.before))
        first, last = self.intervals.holding(values[places])
        return places[first <= np.minimum(last, self._level(course.before[places]))]


def make_lateness(dtype: pa.DataType, spec: TimeInterval, lag: Fraction, min_gap: Fraction) -> Lateness:
    """Bind a window to the type of its event-time column. Raises `ConfigError` as `make_intervals` does."""
    return Lateness(make_intervals(dtype, spec), lag, min_gap, spec.discard_age)


@dataclass(frozen=True, slots=True)
class Watermarks:
    """Advances of the watermark in total order: each at least at the level of the one before it.

    ``marks``: the rows after which they stand. ``level``: int64 (m,), the last pane that is complete from then on.
    """

    marks: Marks
    level: Ints

    def __len__(self) -> int:
        return len(self.level)


def watermarks_at(order: pa.RecordBatch, pos: Ints, places: Ints, level: Ints) -> Watermarks:
    """Return the advances listed at some places of a chunk, given the order columns and positions of its rows."""
    rows = order.take(pa.array(places)) if order.num_columns else order
    return Watermarks(Marks(rows, pos[places], np.full(len(places), NO_FILE)), level)


def in_order(parts: Sequence[Watermarks]) -> Watermarks:
    """Put the advances that one or more chunks list in their total order."""
    rows = one_batch(pa.Table.from_batches([part.marks.rows for part in parts]))
    pos = np.concatenate([part.marks.pos for part in parts])
    level = np.concatenate([part.level for part in parts])
    ascending = order_of([*rows.columns, pa.array(pos)])
    return watermarks_at(rows, pos, ascending, level[ascending])


def rises(watermarks: Watermarks) -> Watermarks:
    """Keep the advances at which the level rises, which are all that count where nothing is late."""
    picks = np.flatnonzero(_new(watermarks.level))
    return Watermarks(watermarks.marks.take(picks), watermarks.level[picks])


def explicit(
    events: Sequence[tuple[int, Fraction]], intervals: Intervals, age: Fraction, values: Measures, pos: Ints
) -> tuple[Watermarks, Mask]:
    """Return watermarks that are given and not derived from rows, and which rows are late beyond repair by them.

    ``events``: (p, seconds), the watermark stands before the row at position p; those that do not rise do nothing.
    ``values``, ``pos``: event times and positions of the rows, in arrival order.
    """
    risen: list[tuple[int, Fraction]] = []
    for position, seconds in sorted(events, key=lambda event: event[0]):
        if not risen or seconds > risen[-1][1]:
            risen.append((position, seconds))
    late = np.zeros(len(values), np.bool_)
    for position, seconds in risen:
        behind = slice(np.searchsorted(pos, position), None)
        late[behind] = values[behind] < _least_measure(seconds, age, intervals.scale)
    follows = np.array([position - 1 for position, _ in risen], np.int64)
    level = np.array([intervals.level_at(seconds) for _, seconds in risen], np.int64)
    no_columns = pa.RecordBatch.from_arrays([], names=[])
    return Watermarks(Marks(no_columns, follows, np.full(len(follows), NO_FILE)), level), late


def _least_measure(seconds: Fraction, age: Fraction, scale: Scale) -> ClockValue:
    """The smallest measure that is not older than ``age`` at an instant."""
    if scale.per_second is None:
        return float(Fraction(float(seconds)) - age)
    return math.ceil((seconds - age) * scale.per_second)


def _new(level: Ints) -> Mask:
    """Where ascending levels rise; the first one does."""
    return np.append(True, level[1:] > level[:-1])[: len(level)]


def _float_pair(seconds: Fraction) -> tuple[float, float]:
    """The nearest float, and what it leaves out."""
    near = float(seconds)
    return near, float(seconds - Fraction(near))


@kernel
def _nearest_sum(value: float, near: float, rest: float) -> float:
    """The float nearest to ``value + near + rest``."""
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
    """Where the watermark stands before each row and after the last; rises of up to ``short`` ticks are kept back."""
    out = np.empty(len(readings) + 1, np.int64)
    stands = out[0] = start
    for i in range(len(readings)):
        if readings[i] > stands and np.uint64(readings[i] - stands) > short:
            stands = readings[i]
        out[i + 1] = stands
    return out


@kernel
def _announced_floats(readings: Measures, start: ClockValue, near: float, rest: float) -> Measures:
    """The same for floats, which have to reach the float nearest to the sum of where it stands and the gap."""
    out = np.empty(len(readings) + 1, np.float64)
    stands = out[0] = start
    for i in range(len(readings)):
        if readings[i] > stands and readings[i] >= _nearest_sum(stands, near, rest):
            stands = readings[i]
        out[i + 1] = stands
    return out
