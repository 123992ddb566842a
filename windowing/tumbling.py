"""Tumbling windows: every row of a key belongs to exactly one (semantics section 2).

A tumbling kind is nothing but the rows where windows start, and a rule for what closed each. The kernels below
find the starts; they read like the rules in the semantics and know nothing of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowing.columns import Ints, Measures, combined, measures, scale_of
from windowing.errors import DataError
from windowing.grid import Grid, make_grid
from windowing.jit import kernel
from windowing.marks import Marks, epochs
from windowing.panes import AT_END, BY_TICK, Panes, reason
from windowing.sequence import Sequences
from windowing.spec import Count, Delta, Gap, Punct, Time, Tumbling

Flags = npt.NDArray[np.bool_]
_MOST_EMPTY = 20_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What a scan is told besides the window itself.

    ``clock``: where the one clock stands, in measures of the first order column; None: at the largest value here.
    ``origin``: of the time grid, in seconds. ``empty``: ``skip``, ``mark`` or ``row``.
    """

    clock: int | float | None = None
    origin: Fraction = Fraction(0)
    empty: str = "skip"


def tumbling_panes(spec: Tumbling, sequences: Sequences, marks: Marks, setting: Setting) -> Panes:
    """Return the panes of a tumbling window, those that only the end of the data closes included.

    ``marks`` must stand in order; only ``punct()`` looks at them.
    """
    match spec.policy:
        case Count(n):
            return _counted(sequences, n)
        case Delta(attribute, amount):
            starts = delta_starts(sequences.bounds, *_distance(sequences, attribute, amount))
            return _tripped(sequences, starts)
        case Gap(attribute, amount):
            starts = gap_starts(sequences.bounds, *_distance(sequences, attribute, amount))
            return _tripped(sequences, starts)
        case Time(seconds):
            return _timed(sequences, seconds, setting)
        case Punct(None):
            return _punctuated(sequences, marks)
        case Punct(column):
            return _ended_by_row(sequences, str(column))
    raise NotImplementedError(str(spec))


def count_starts(bounds: Ints, n: int) -> Ints:
    """Rows where a window of ``n`` rows starts; ``bounds`` int64 (K+1,). Returns int64, ascending."""
    return np.flatnonzero(_count_flags(bounds, n))


def delta_starts(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Rows where a ``delta`` window starts: ``new >= first and new - first > amount`` flushes before the row.

    ``values``: int64 ticks or floats (n,); NaN compares false. ``amount``: in the same measure, not negative.
    """
    if values.dtype == np.int64:
        return np.flatnonzero(_delta_flags_int(bounds, values, _unsigned(amount)))
    return np.flatnonzero(_delta_flags_float(bounds, values, values.dtype.type(amount)))


def gap_starts(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Rows where a ``gap`` window starts: the row is more than ``amount`` after the row before it."""
    if values.dtype == np.int64:
        return np.flatnonzero(_gap_flags_int(bounds, values, _unsigned(amount)))
    return np.flatnonzero(_gap_flags_float(bounds, values, values.dtype.type(amount)))


def change_starts(bounds: Ints, labels: Ints) -> Ints:
    """Rows whose label differs from that of the row before them in their sequence."""
    flags = np.ones(len(labels), np.bool_)
    np.not_equal(labels[1:], labels[:-1], out=flags[1:])
    flags[bounds[:-1][bounds[:-1] < len(labels)]] = True
    return np.flatnonzero(flags)


def time_grid(dtype: pa.DataType, seconds: Fraction, origin: Fraction) -> Grid:
    """The grid of a ``time`` window on a clock column of type ``dtype``; of whole numbers where it has no value."""
    return make_grid(pa.int64() if pa.types.is_null(dtype) else dtype, seconds, origin)


def clock_values(column: pa.Array, name: str) -> Measures:
    """Values of the clock column; raises `DataError` for unsigned values beyond int64."""
    if pa.types.is_uint64(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError(f"column {name!r} holds numbers beyond 2**63 - 1", "a clock has 64 signed bits") from None
    return measures(column)


def empty_ticks(grid: Grid, values: Measures, clock: int | float | None) -> pa.Array:
    """Instants of the ticks, after the first row and up to the clock, since whose tick before no row came."""
    if not len(values):
        return grid.bounds(np.empty(0, np.int64))
    cells = np.unique(grid.cells(values))
    stop = max(_clock_cell(grid, values, clock), int(cells[0]))
    _check_empty(stop - int(cells[0]))
    every = np.arange(cells[0], stop)
    return grid.bounds(np.setdiff1d(every, cells, assume_unique=True) + 1)


def _distance(sequences: Sequences, attribute: str, amount: Fraction) -> tuple[Measures, Any]:
    """The attribute's measures and the amount in the same measure (semantics section 2, ``delta``)."""
    column = combined(sequences.rows.column(attribute))
    scale = scale_of(column.type)
    return measures(column), float(amount) if scale.per_second is None else scale.floor(amount)


def _unsigned(amount: int) -> np.uint64:
    """Differences of int64 fill 64 unsigned bits; an amount beyond them is never exceeded."""
    return np.uint64(min(int(amount), 2**64 - 1))


def _panes(sequences: Sequences, starts: Ints) -> tuple[Ints, Ints, Ints, Ints, Flags]:
    """Key, number, lo, hi of the windows that start at ``starts``, and which are the last of their key."""
    bounds = sequences.bounds
    first = np.searchsorted(starts, bounds)
    per_key = np.diff(first)
    key = np.repeat(np.arange(len(per_key)), per_key)
    number = np.arange(len(starts)) - np.repeat(first[:-1], per_key)
    hi = np.append(starts[1:], len(sequences)) if len(starts) else starts
    last = hi == bounds[key + 1]
    return key, number, starts, hi, last


def _closed(closed: Flags, cause: Ints, why: str) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Causes and close reasons: ``why`` where ``closed``, else the end of the data."""
    return np.where(closed, cause, AT_END), np.where(closed, reason(why), reason("end")).astype(np.int8)


def _counted(sequences: Sequences, n: int) -> Panes:
    key, number, lo, hi, _ = _panes(sequences, count_starts(sequences.bounds, n))
    return Panes(key, number, lo, hi, *_closed(hi - lo == n, hi - 1, "count"))


def _tripped(sequences: Sequences, starts: Ints) -> Panes:
    """Windows ended by the row after them."""
    key, number, lo, hi, last = _panes(sequences, starts)
    return Panes(key, number, lo, hi, *_closed(~last, hi, "delta"))


def _ended_by_row(sequences: Sequences, column: str) -> Panes:
    """``punct(expr)``: a true row ends the window it is in."""
    ends = combined(sequences.rows.column(column)).to_numpy(zero_copy_only=False).astype(np.bool_)
    starts = change_starts(sequences.bounds, np.cumsum(ends) - ends)
    key, number, lo, hi, _ = _panes(sequences, starts)
    return Panes(key, number, lo, hi, *_closed(ends[hi - 1], hi - 1, "punct"))


def _punctuated(sequences: Sequences, marks: Marks) -> Panes:
    epoch = epochs(sequences, marks)
    key, number, lo, hi, _ = _panes(sequences, change_starts(sequences.bounds, epoch))
    ended_by = epoch[lo]
    return Panes(key, number, lo, hi, *_closed(ended_by < len(marks), len(sequences) + ended_by, "punct"))


def _timed(sequences: Sequences, seconds: Fraction, setting: Setting) -> Panes:
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    grid = time_grid(column.type, seconds, setting.origin)
    values = clock_values(column, name)
    cells = grid.cells(values)
    key, number, lo, hi, _ = _panes(sequences, change_starts(sequences.bounds, cells))
    cell = cells[lo]
    if setting.empty == "row":
        key, number, lo, hi, cell = _with_empty(key, lo, hi, cell)
    complete = cell < _clock_cell(grid, values, setting.clock) if len(values) else np.empty(0, np.bool_)
    cause, closed_by = _closed(complete, np.full(len(cell), BY_TICK), "time")
    return Panes(key, number, lo, hi, cause, closed_by, grid.bounds(cell), grid.bounds(cell + 1))


def _clock_cell(grid: Grid, values: Measures, clock: int | float | None) -> int:
    """The cell in which the clock stands: those before it are complete."""
    now = values.max() if clock is None else max(values.max(), clock)
    return int(grid.cells(np.array([now], np.int64 if grid.exact else np.float64))[0])


def _with_empty(key: Ints, lo: Ints, hi: Ints, cell: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Put an empty pane into every cell that a key skips, and number anew."""
    same_key = key[1:] == key[:-1]
    skipped = np.where(same_key, np.diff(cell) - 1, 0)
    _check_empty(int(skipped.sum()))
    repeats = np.append(skipped, 0)[: len(key)] + 1
    source = np.repeat(np.arange(len(key)), repeats)
    step = np.arange(len(source)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    key, cell = key[source], cell[source] + step
    lo, hi = np.where(step == 0, lo[source], hi[source]), hi[source]
    first = np.searchsorted(key, key)
    return key, np.arange(len(key)) - first, lo, hi, cell


def _check_empty(count: int) -> None:
    """Refuse what no memory holds: a grid of milliseconds over years."""
    if count > _MOST_EMPTY:
        raise DataError(f"{count:,} windows or ticks would be empty", "use a longer period, or --empty skip")


@kernel
def _count_flags(bounds: Ints, n: int) -> Flags:
    flags = np.zeros(bounds[-1], np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1], n):
            flags[i] = True
    return flags


@kernel
def _delta_flags_int(bounds: Ints, values: Ints, amount: np.uint64) -> Flags:
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        if bounds[k] == bounds[k + 1]:
            continue
        first = values[bounds[k]]
        flags[bounds[k]] = True
        for i in range(bounds[k] + 1, bounds[k + 1]):
            new = values[i]
            # the difference of two int64 may need 64 unsigned bits: it wraps into them exactly
            if new >= first and np.uint64(new - first) > amount:
                flags[i] = True
                first = new
    return flags


@kernel
def _delta_flags_float(bounds: Ints, values: Measures, amount: float) -> Flags:
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        if bounds[k] == bounds[k + 1]:
            continue
        first = values[bounds[k]]
        flags[bounds[k]] = True
        for i in range(bounds[k] + 1, bounds[k + 1]):
            new = values[i]
            if new >= first and new - first > amount:
                flags[i] = True
                first = new
    return flags


@kernel
def _gap_flags_int(bounds: Ints, values: Ints, amount: np.uint64) -> Flags:
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            first = i == bounds[k]
            flags[i] = first or (values[i] >= values[i - 1] and np.uint64(values[i] - values[i - 1]) > amount)
    return flags


@kernel
def _gap_flags_float(bounds: Ints, values: Measures, amount: float) -> Flags:
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            flags[i] = i == bounds[k] or values[i] - values[i - 1] > amount
    return flags
