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
ENOUGH = 10
"""So many rows ahead of their time are believed."""
_MOST_TICKS = 2**64 - 1


@dataclass(frozen=True, slots=True)
class WatermarkPath:
    """The watermark before, at and after n rows, as readings (see `Lateness`).

    ``before``: int64 or float64 (n,), the watermark before each row; without meaning where it is not ``known``.
    ``known``: bool (n,), false for the first row of all, true for all others.
    ``advances``: bool (n,), the rows that announce a new watermark.
    ``final``: the watermark after the last row; None before the first row of all.
    ``belief``: what is believed after the last row; None without ``--max-ahead``.
    ``ahead``: bool (n,), the rows ahead of their time; None without ``--max-ahead``.
    """

    before: Measures
    known: Mask
    advances: Mask
    final: ClockValue | None
    belief: Belief | None = None
    ahead: Mask | None = None

    @property
    def after(self) -> Measures:
        """The watermark after each row, (n,)."""
        if self.final is None or not len(self.before):
            return self.before
        return np.append(self.before[1:], self.before.dtype.type(self.final))


@dataclass(frozen=True, slots=True)
class Belief:
    """How far event time is believed to have come where rows may be ahead of their time (semantics section 19).

    ``latest``: the latest event time believed, a measure; None: not enough rows yet.
    ``votes``: how many rows said that it is later, less those that did not; fewer than `ENOUGH`.
    ``least``: the smallest event time among them since there were none; None: there are none.
    """

    latest: ClockValue | None = None
    votes: int = 0
    least: ClockValue | None = None

    def passed(self, highest: ClockValue, rows: int) -> Belief:
        """Return what is believed after ``rows`` none of which is ahead, at least one; ``highest`` is their largest."""
        votes = max(0, self.votes - rows)
        return Belief(after(self.latest, highest), votes, self.least if votes else None)


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
    ``duration``: how long each is, in seconds.
    ``lag``: how far the watermark stays behind the largest event time, in seconds, at least 0.
    ``min_gap``: the least rise that takes effect, in seconds, at least 0.
    ``age``: the discard age, in seconds, at least 0.
    ``max_ahead``: how far a row may be ahead of those before it, in seconds, to be believed at once; None: any row is.

    A *reading* is a watermark as it is stored. Where the column has ticks, a reading is the event time of the row that
    announced it; the lag, which may be finer than a tick, is subtracted in each comparison, so that nothing is rounded.
    On a float clock a reading is the float nearest to that event time minus the lag, as are all instants there.

    All methods take event times of rows in arrival order, in measures, without nulls, NaN and infinities.
    """

    intervals: Intervals
    duration: Fraction
    lag: Fraction
    min_gap: Fraction
    age: Fraction
    max_ahead: Fraction | None = None

    def readings(self, values: Measures) -> Measures:
        """Return the watermark that each row alone would announce, of shape (n,)."""
        return values if self._per_second is not None else _moved_by(values, *_float_pair(-self.lag))

    def advance(self, values: Measures, current: ClockValue | None, belief: Belief | None = None) -> WatermarkPath:
        """Let rows raise the watermark from the reading ``current``; None: no row came before.

        ``belief``: what was believed there; None: as much as ``current`` says.
        """
        if self.max_ahead is None:
            return self._risen(values, current)
        latest, first, belief, ahead = self.believe(values, self.belief_at(current) if belief is None else belief)
        path, unknown = self._risen(latest[first:], current), np.zeros(first, np.bool_)
        before = np.append(np.zeros(first, path.before.dtype), path.before)
        known, advances = np.append(unknown, path.known), np.append(unknown, path.advances)
        return WatermarkPath(before, known, advances, path.final, belief, ahead)

    def believe(self, values: Measures, belief: Belief) -> tuple[Measures, int, Belief, Mask]:
        """Return the latest event time believed after each row, (n,), from which row on there is one, what is believed
        after all, and which rows are ahead of their time, bool (n,): the first of all are not.
        """
        values = values if self._per_second is not None else values.astype(np.float64)
        start, least = (values.dtype.type(0 if one is None else one) for one in (belief.latest, belief.least))
        latest, first, end, is_known, votes, least, ahead = _believed(
            values, start, belief.latest is not None, belief.votes, least, self.farthest
        )
        return latest, first, Belief(end if is_known else None, votes, least if votes else None), ahead

    @property
    def farthest(self) -> ClockValue:
        """How far ahead a row is believed at once, in measures, rounded down; -1 where no 64 bits hold it."""
        assert self.max_ahead is not None
        if self._per_second is None:
            return float(self.max_ahead)
        ticks = math.floor(self.max_ahead * self._per_second)
        return ticks if ticks < 2**63 else -1

    def belief_at(self, current: ClockValue | None) -> Belief:
        """Return what was believed where only a reading is known: the event time that announced it."""
        if current is None or self._per_second is not None:
            return Belief(current)
        return Belief(_moved_by(np.array([current]), *_float_pair(self.lag))[0].item())

    def _risen(self, values: Measures, current: ClockValue | None) -> WatermarkPath:
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
        level = self._level(path.after[places])
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


def make_lateness(
    dtype: pa.DataType, spec: TimeInterval, lag: Fraction, min_gap: Fraction, max_ahead: Fraction | None = None
) -> Lateness:
    """Bind a window to the type of its event-time column. Raises `ConfigError` as `make_intervals` does."""
    return Lateness(make_intervals(dtype, spec), spec.duration, lag, min_gap, spec.discard_age, max_ahead)


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
def _believed(
    values: Measures, latest: ClockValue, is_known: bool, votes: int, least: ClockValue, most: ClockValue
) -> tuple[Measures, int, ClockValue, bool, int, ClockValue, Mask]:
    """Let rows vote; see `Lateness.believe`. ``most`` below 0: no row is ahead once there is a latest event time."""
    out, ahead = np.empty_like(values), np.zeros(len(values), np.bool_)
    first = 0 if is_known else len(values)
    for i in range(len(values)):
        value = values[i]
        bound = latest + most  # of ticks it wraps below ``latest`` where no value is beyond it
        if not is_known or (most >= 0 and bound >= latest and value > bound):
            ahead[i] = is_known
            least = value if votes == 0 else min(least, value)
            votes += 1
            if votes == ENOUGH:
                first, latest, is_known, votes = min(first, i), least, True, 0
        else:
            latest, votes = max(latest, value), max(votes - 1, 0)
        out[i] = latest
    return out, first, latest, is_known, votes, least, ahead


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
