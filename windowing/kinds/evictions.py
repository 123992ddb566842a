"""Partition eviction: which keys are evicted, and when (semantics section 4).

An eviction depends on all keys together, so one pass over all rows in their total order decides it (the global pass,
docs/decisions/013). Of a window the pass only needs to know when it ends or how many rows it holds. Afterwards the
keys are independent again: see `windowing.kinds.key_lifetimes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..clock.tick_grid import Grid
from ..columns.arrays import Ints, Mask, Measures, combined, scale_of
from ..errors import DataError
from ..language.spec import PartitionEviction
from ..rows.marks import NO_FILE, Marks, with_marks_behind
from ..rows.sequence import Sequences, arrange
from ..state.window_state import RestoredState
from .eviction_kernels import BY_EVENT, Rules

_MOST_SECONDS = 2**62  # seconds are less than this, so that differences fit 64 bit


def first_ticks(grid: Grid, dtype: pa.DataType, clock_now: Measures, seconds: Ints, ahead: int) -> Ints:
    """Return the first tick at least ``ahead`` seconds after each of ``seconds``, of a grid on a clock of this type.

    ``clock_now``: as `now_as_measure` returns it. Where that tick comes after the current time of the clock, the result
    is any later one.
    """
    ahead = min(ahead, _MOST_SECONDS - int(seconds.min(initial=_MOST_SECONDS)))
    seconds = np.minimum(np.minimum(seconds, _MOST_SECONDS - ahead) + ahead, whole_seconds(clock_now, dtype) + 1)
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return grid.first_ticks(seconds.astype(np.float64))
    fine = per_second * grid.refine
    if int(np.abs(seconds).max(initial=1)) * fine.numerator >= 2**63 - grid.reach:
        raise DataError("the ticks do not reach to the end of a second in 64 bit", "use a coarser unit")
    return grid.first_ticks(-(-seconds * np.int64(fine.numerator) // np.int64(fine.denominator)))


def whole_seconds(values: Measures, dtype: pa.DataType) -> Ints:
    """Return the whole second of each clock value."""
    per_second = scale_of(dtype).per_second or Fraction(1)
    ends = np.array([values.min(), values.max()]) if len(values) else values
    if not all(abs(end) * per_second.denominator < _MOST_SECONDS * per_second.numerator for end in ends.tolist()):
        raise DataError("the clock is too far from 0 to count ages in seconds", "leave such rows out")
    if values.dtype != np.int64:
        return np.floor(values).astype(np.int64)
    if per_second >= 2**63:
        return -(values < 0).astype(np.int64)
    return values * np.int64(per_second.denominator) // np.int64(per_second.numerator)


_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Evictions:
    """V evictions, by key, then in the order in which they happened. Keys are stored by value, rows never by number.

    ``keys``: the evicted keys, ascending, one row each.
    ``key``: int64 (V,), the index of each eviction's key in ``keys``.
    ``rows``: int64 (V,), how many rows of the key had come before the eviction, at least 1.
    ``causes``: V marks, on the row that caused each eviction or that precedes the window mark that caused it.
    ``by_tick``: bool (V,), which evictions the clock caused; their marks have no meaning.
    ``tick``: int64 (V,), the first tick that no longer finds the key, where ticks trigger a sliding window; of any
        value elsewhere.
    """

    keys: pa.Table
    key: Ints
    rows: Ints
    causes: Marks
    by_tick: Mask
    tick: Ints


NO_PLACES: Ints = np.empty(0, np.int64)
"""Places that do not apply."""


@dataclass(frozen=True, slots=True)
class TotalOrder:
    """All n rows of all keys in their total order.

    ``row``: int64 (n,), the row at each place.
    ``key``: int32 (n,), the key of each row; ``keys``: how many there are.
    ``begin``: how many of these rows are restored; they come first.
    """

    row: Ints
    key: npt.NDArray[np.int32]
    keys: int
    begin: int


def total_order(sequences: Sequences, restored: RestoredState | None) -> TotalOrder:
    """Return the total order of the rows of all keys."""
    key = np.repeat(np.arange(len(sequences.bounds) - 1, dtype=np.int32), np.diff(sequences.bounds))
    by_arrival = np.argsort(sequences.pos, kind="stable")
    columns = [sequences.rows.column(name).take(pa.array(by_arrival)) for name in sequences.order]
    permutation = arrange(None, np.array([0, len(sequences)]), columns)
    row = by_arrival if permutation is None else by_arrival[permutation]
    if restored is None:
        return TotalOrder(row, key, len(sequences.bounds) - 1, 0)
    new = restored.is_new(sequences.bounds)[row]
    row = np.concatenate([row[~new], row[new]])
    return TotalOrder(row, key, len(sequences.bounds) - 1, int(restored.restored_rows.sum()))


def row_seconds(eviction: PartitionEviction, sequences: Sequences, row: Ints) -> Ints:
    """Return the whole second of each of some rows, int64; of length 0 where ages do not count."""
    if eviction.kind != "partitionAge":
        return NO_PLACES
    clock = combined(sequences.rows.column(sequences.order[0]))
    return whole_seconds(clock_values(clock, sequences.order[0]), clock.type)[row]


def by_key(sequences: Sequences, marks: Marks, last: Ints, cause: Ints, tick: Ints) -> Evictions:
    """Return the evictions after the rows ``last``, ascending, as `Evictions` has them.

    ``cause``: int64, a row, n + m for mark m, or `BY_EVENT` for a tick.
    """
    assert sequences.keys is not None
    key = np.searchsorted(sequences.bounds, last, side="right") - 1
    evicted = np.flatnonzero(np.bincount(key, minlength=sequences.keys.num_rows))
    by_tick = cause == BY_EVENT
    rows = sequences.rows.select(list(sequences.order))
    joined = [with_marks_behind(*columns) for columns in zip(rows.columns, marks.rows.columns, strict=True)]
    both = Marks(
        pa.RecordBatch.from_arrays(joined, schema=rows.schema),
        np.concatenate([sequences.pos, marks.pos]),
        np.full(len(sequences) + len(marks), NO_FILE),
    )
    return Evictions(
        sequences.keys.take(pa.array(evicted)),
        np.searchsorted(evicted, key),
        last + 1 - sequences.bounds[key],
        both.take(np.where(by_tick, last, cause)),
        by_tick,
        tick,
    )


# --- arguments of the loop ------------------------------------------------------------------------------------------


def limits(eviction: PartitionEviction) -> Rules:
    """Return the limits of a partition eviction."""
    amount = min(eviction.amount.__floor__(), _MOST)
    match eviction.kind:
        case "partitionAge":
            return Rules(_MOST, _MOST, amount)
        case "partitionCount":
            return Rules(_MOST, amount, _MOST)
    return Rules(amount, _MOST, _MOST)
