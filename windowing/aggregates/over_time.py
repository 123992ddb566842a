"""Aggregates over the clock: values that hold until the next one, and lines through values (semantics section 9).

What a key has on the clock is a step function: each value holds until the next. A pane covers a part of the clock, so
its integral is a sum of values times the lengths of pieces: a weighted sum, as exact as that (`arithmetic.weighted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..columns.arrays import Ints, scale_of
from ..errors import DataError
from ..rows.membership import Ranges
from ..support.jit import kernel
from .arithmetic import weighted
from .inputs import Dense, Inputs, Ranked, Spans, dense, floats, frozen, masked
from .inputs import scale_of as places_of
from .loops import Floats, Numbers, sum_and_error
from .moments import SHARED
from .quotients import Quotients, exactly

_PIECES = 1 << 21
"""About how many pieces there are at a time."""


@kernel
def reached(clock: Numbers, first: Ints, sequence: Ints, begin: Numbers, end: Numbers) -> tuple[Ints, Ints]:
    """Return for each pane its first entry behind its begin, and the end of those before its end."""
    at, till = np.empty(len(begin), np.int64), np.empty(len(begin), np.int64)
    i = known = -1
    for p in range(len(begin)):
        low, high = first[sequence[p]], first[sequence[p] + 1]
        if sequence[p] != known or (i > low and clock[i - 1] > begin[p]):
            i, known = low + np.searchsorted(clock[low:high], begin[p], side="right"), sequence[p]
        while i < high and clock[i] <= begin[p]:
            i += 1
        at[p] = j = i
        while j < high and clock[j] < end[p]:
            j += 1
        till[p] = j
    return at, till


@kernel
def _pieces(
    clock: Numbers, at: Ints, till: Ints, held: Ints, begin: Numbers, end: Numbers, in_ticks: bool
) -> tuple[Ints, Ints, Floats]:
    """Cut what panes cover where values change: the bounds of the pieces of each pane; of each its entry, and a length.

    ``held``: the entry that holds where the pane begins; -1: none. No piece is empty. A length that is no float is that
    of two pieces of one entry.
    """
    bounds, most = np.zeros(len(at) + 1, np.int64), 2 * ((till - at).sum() + len(at))
    entry, length = np.empty(most, np.int64), np.empty(most, np.float64)
    count = 0
    for p in range(len(at)):
        i, own, since = at[p], held[p], begin[p]
        if own < 0 and i < till[p]:
            own, since = i, clock[i]
            i += 1
        while own >= 0:
            until = clock[i] if i < till[p] else end[p]
            if until > since:
                whole = until - since
                near, rest = sum_and_error(np.float64(until), -np.float64(since))
                if in_ticks:
                    near = np.float64(whole)
                    rest = np.float64(whole - np.int64(near))
                entry[count], length[count] = own, near
                count += 1
                if rest != 0.0:
                    entry[count], length[count] = own, rest
                    count += 1
            if i >= till[p]:
                break
            own, since = i, clock[i]
            i += 1
        bounds[p + 1] = count
    return bounds, entry[:count], length[:count]


def integrals(inputs: Inputs) -> pa.Array:
    """Values times seconds: the float nearest to the exact sum; null where a pane has no value yet."""
    assert inputs.spans is not None
    return _over_pieces(inputs, inputs.spans, inputs.spans.per_second)


def time_weighted_means(inputs: Inputs) -> pa.Array:
    """The same over the seconds from the first value on; null where these are 0."""
    assert inputs.spans is not None
    return _over_pieces(inputs, inputs.spans, 0)


def _over_pieces(inputs: Inputs, spans: Spans, unit: int) -> pa.Array:
    column, sequence = inputs.columns[0], spans.sequence
    rows = spans.having_values(column)
    is_dense = len(rows) == len(column)
    values = column if is_dense else column.take(pa.array(rows))
    clock, first = frozen(spans.clock if is_dense else spans.clock[rows]), np.searchsorted(rows, spans.bounds)
    known = spans.before.is_valid().to_numpy(zero_copy_only=False)
    entries = pa.concat_arrays([values, spans.before.drop_null().cast(column.type)])
    earlier = np.where(known, len(values) + np.cumsum(known) - 1, -1)[sequence]
    begin, end = frozen(spans.begin), frozen(spans.end)
    at, till = map(frozen, reached(clock, frozen(first), frozen(sequence), begin, end))
    held = frozen(np.where(at > first[sequence], at - 1, earlier))
    # a later row at the instant of the last one is not known yet
    has_value = (earlier >= 0) | (np.where(spans.stop > 0, np.searchsorted(rows, spans.stop), at) > first[sequence])
    found, null = np.empty(len(at), np.float64), ~has_value
    turns = np.append(0, np.cumsum(till - at + 1)) // _PIECES
    for low, high in _runs(turns[:-1]):
        some = slice(low, high)
        bounds, entry, length = _pieces(
            clock, at[some], till[some], held[some], begin[some], end[some], clock.dtype.kind == "i"
        )
        own = entries.take(pa.array(entry))
        if pa.types.is_floating(own.type):  # an infinity holds for some time, whatever the rest of a length is
            length = np.where(np.isfinite(floats(own)), length, np.abs(length))
        ranges = Ranges(frozen(bounds[:-1]), frozen(bounds[1:]), frozen(bounds[:-1]), True)
        present = Dense((own, pa.array(length)), ranges, np.diff(bounds), None, Ranked(ranges))
        found[some], is_null = weighted(present, unit)
        null[some] |= is_null
    return masked(found, null, inputs.type)


def _runs(turns: Ints) -> list[tuple[int, int]]:
    """Return the bounds of runs of equal numbers."""
    edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(turns)]
    return list(pairwise(edges)) if len(turns) else []


def slopes(inputs: Inputs) -> pa.Array:
    """Least squares of the first column over the clock, per second: the nearest float; null for less than two instants.

    NaN where a value is infinite or NaN.
    """
    present = dense(inputs)
    column, clock = present.columns
    (times,), unit = ticks_of([clock])
    wanted = Quotients(SHARED, pa.array(times), column, present.membership, present.sizes, places_of(column), unit=unit)
    found = exactly(wanted, np.arange(len(present.sizes)))
    null = np.isnan(found)
    if null.any() and pa.types.is_floating(column.type):
        picks = np.flatnonzero(null)
        zeros = pa.array(np.zeros(len(column)))
        null[picks] = np.isnan(exactly(replace(wanted, b=zeros), picks))  # no line at all, whatever the values
    return masked(found, null, inputs.type)


def ticks_of(columns: Sequence[pa.Array]) -> tuple[list[Numbers], int]:
    """Return instants as int64 ticks of one length, or as floats where some are; and how many ticks make one second."""
    scales = [scale_of(column.type).per_second for column in columns]
    known = [each for each in scales if each is not None]
    if len(known) < len(scales):
        return [floats(column) for column in columns], 1
    unit = max(Fraction(1), *known)
    return [_refined(column, scale, unit) for column, scale in zip(columns, known, strict=True)], int(unit)


def _refined(column: pa.Array, scale: Fraction, unit: Fraction) -> Ints:
    ticks, factor = clock_values(column, "clock"), int(unit / scale)
    if factor != 1 and len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) * factor >= 2**63:
        what = f"bounds of windows have {int(unit):,} ticks a second, in which a clock does not reach"
        do = "give the bounds no finer unit than the clock"
        raise DataError(f"{what} from {ticks.min()} to {ticks.max()} of its own", do)
    return frozen(ticks * np.int64(factor)) if factor != 1 else frozen(ticks)
