"""Batched windows: one pane for each change of the visible rows (semantics section 6).

Every form of the clause takes the same three steps. First the clock, the lots or the arrivals determine the *moments*
at which rows enter and leave. Then ``retain`` and ``with unique`` let some rows leave sooner. The moments that change
what is visible are the panes. The loops over rows are in `windowing.kinds.batched.kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...clock.interval_grid import batched_grid, clock_values, now_as_measure
from ...clock.tick_grid import make_grid
from ...columns.arrays import Ints, Mask, Measures, combined
from ...columns.radix_sort import Codes
from ...language.spec import Batched
from ...rows.membership import Membership, Memberships, Ranges, as_ranges
from ...rows.panes import AT_END, BY_TICK, Panes, reason
from ...rows.sequence import Sequences, group_codes
from ..context import WindowContext
from .kernels import changing_ticks, displace_oldest, expiries, full_lots, hide_older, visible_changes


@dataclass(frozen=True, slots=True)
class Moments:
    """The m moments at which the content of each key's window may change, and the rows in it.

    ``first``: int64 (K+1,), the bounds of the keys among the moments.
    ``enter``: int64 (n,), the moment at which each row enters.
    ``leave``: int64 (n,), the moment at which it leaves; equal to ``enter`` where it never enters.
    ``cause``: int64 (m,), as in `Panes`.
    ``closed_by``: int8 (m,), as in `Panes`.
    ``when``: int64 or float64 (m,), the instant of each moment, or its tick of ``every``; None without a clock.
    """

    first: Ints
    enter: Ints
    leave: Ints
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    when: Measures | None = None


def batched_panes(spec: Batched, sequences: Sequences, context: WindowContext) -> Panes:
    """Return the panes of a batched window, including those that only the end of the data emits.

    Bounds are those of `batched_grid` where ``within`` is given, else None. Panes whose instant is after the last time
    of the clock have that instant in ``at``, and ``end`` as their close reason.

    Raises `DataError` where an instant does not fit 64 bit, or ``within`` is too short for a float clock.
    """
    moments = _visible_only(sequences.bounds, _shortened(spec, sequences, _moments(spec, sequences, context)))
    counts = np.diff(moments.first)
    key = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(key))
    number -= moments.first[key]
    start, end = _bounds(spec, sequences, context.origin, moments.when)
    contents = _membership(spec, sequences.bounds, moments)
    return Panes(key, number, contents, moments.cause, moments.closed_by, start, end, at=end)


def batched_rest(spec: Batched, sequences: Sequences, context: WindowContext) -> Mask:
    """Return which rows the next run needs, bool (n,).

    These are the rows that have yet to enter or to leave after the last moment before the end, and, with lots, all rows
    of their lots, so that the next run counts lots from the same row. Hidden rows are included, because they take
    places; so are the rows that hide them, because these are in the same partition and leave later.
    """
    moments = _moments(spec, sequences, context)
    places = _shortened(replace(spec, unique=None), sequences, moments)
    bounds, first = sequences.bounds, moments.first
    is_end = np.append(0, np.cumsum(moments.closed_by == reason("end")))
    until = np.repeat(first[1:] - np.diff(is_end[first]), np.diff(bounds))
    stays = (moments.enter >= until) | (places.leave >= until)
    if spec.every is not None and spec.within is None:
        lots = np.zeros(first[-1] + 1, np.bool_)
        lots[moments.enter[stays]] = True
        stays = lots[moments.enter]
    return stays


def _moments(spec: Batched, sequences: Sequences, context: WindowContext) -> Moments:
    if spec.within is not None:
        return _on_the_clock(spec, spec.within, sequences, context)
    if spec.every is not None:
        return _in_lots(spec, int(spec.every), sequences)
    rows = np.arange(len(sequences))
    reasons = np.full(len(rows), reason("trigger"), np.int8)
    return Moments(sequences.bounds, rows, _never(sequences.bounds, sequences.bounds), rows, reasons)


def _on_the_clock(spec: Batched, within: Fraction, sequences: Sequences, context: WindowContext) -> Moments:
    """Return the moments of ``within``: rows leave when they are too old, at once or at the next tick of ``every``."""
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    grid = batched_grid(spec, column.type, context.origin)
    values = clock_values(column, name)
    comes = grid.instants(values)
    goes = grid.later(comes, within)
    clock_now = now_as_measure(values, context.clock)
    if spec.every is None:
        first, enter, leave, cause, when = expiries(sequences.bounds, comes, goes)
        by_clock = np.where(when <= grid.instants(clock_now)[0], np.int8(reason("expiry")), np.int8(reason("end")))
        return Moments(first, enter, leave, cause, np.where(cause < 0, by_clock, np.int8(reason("trigger"))), when)
    # where the data continues, more rows may arrive at the instant of a tick and enter at that tick
    next_tick = (
        int(grid.first_ticks(grid.instants(clock_now))[0]) if context.hold else int(grid.cells(clock_now)[0]) + 1
    )
    comes, goes = grid.first_ticks(comes), grid.first_ticks(goes)
    first, enter, leave, when = changing_ticks(sequences.bounds, comes, goes, next_tick)
    reasons = np.where(when < next_tick, np.int8(reason("batch")), np.int8(reason("end")))
    return Moments(first, enter, leave, np.full(len(when), BY_TICK), reasons, when)


def _in_lots(spec: Batched, size: int, sequences: Sequences) -> Moments:
    """Return the moments of ``every`` next to ``retain`` alone: rows enter when a lot of them is stored."""
    first, enter, cause = full_lots(sequences.bounds, *_codes(sequences, spec.partition_by), size)
    reasons = np.where(cause == AT_END, np.int8(reason("end")), np.int8(reason("batch")))
    return Moments(first, enter, _never(sequences.bounds, first), cause, reasons)


def _shortened(spec: Batched, sequences: Sequences, moments: Moments) -> Moments:
    """Let rows leave sooner where a newer row hides them or takes their place."""
    leave = moments.leave.copy()
    if spec.unique is not None:
        hide_older(moments.enter, leave, *_codes(sequences, (*spec.partition_by, spec.unique)))
    if spec.retain is not None:
        displace_oldest(moments.enter, leave, *_codes(sequences, spec.partition_by), spec.retain)
    return replace(moments, leave=leave)


def _visible_only(bounds: Ints, moments: Moments) -> Moments:
    """Leave out the moments that change nothing that is visible."""
    flags = visible_changes(bounds, moments.first, moments.enter, moments.leave)
    if flags.all():
        return moments
    before = np.concatenate([[0], np.cumsum(flags)])
    return Moments(
        before[moments.first],
        before[moments.enter],
        before[moments.leave],
        moments.cause[flags],
        moments.closed_by[flags],
        None if moments.when is None else moments.when[flags],
    )


def _membership(spec: Batched, bounds: Ints, moments: Moments) -> Membership:
    """Return ranges where rows leave in the order in which they entered, else `Memberships`."""
    enter, leave = moments.enter, moments.leave
    if spec.unique is None and not (spec.partition_by and spec.retain):
        ranges = as_ranges(Memberships(np.arange(len(enter)), enter, leave, bounds, moments.first))
        return Ranges(ranges.lo, ranges.hi, ranges.base, disjoint=False)
    rows = np.flatnonzero(enter < leave)
    return Memberships(rows, enter[rows], leave[rows], np.searchsorted(rows, bounds), moments.first)


def _bounds(
    spec: Batched, sequences: Sequences, origin: Fraction, when: Measures | None
) -> tuple[pa.Array | None, pa.Array | None]:
    """Return start (exclusive) and end (inclusive) of the time that each pane covers, ``(T - within, T]``."""
    if spec.within is None or when is None:
        return None, None
    dtype = sequences.rows.column(sequences.order[0]).type
    grid = batched_grid(spec, dtype, origin)
    if spec.every is None:
        return grid.to_arrow(grid.later(when, -spec.within)), grid.to_arrow(when)
    starts = make_grid(dtype, Fraction(spec.every), origin - spec.within, origin)
    return starts.bounds(when), grid.bounds(when)


def _never(bounds: Ints, first: Ints) -> Ints:
    """Return for each row the bound of its key among the moments, as ``leave`` of rows that stay."""
    return np.repeat(first[1:], np.diff(bounds))


def _codes(sequences: Sequences, names: Sequence[str]) -> tuple[Codes, int]:
    """Return a code from 0 for each row by its values in some columns, and the number of codes."""
    if not names:
        return np.zeros(len(sequences), np.int32), 1
    codes, values = group_codes([combined(sequences.rows.column(name)) for name in names])
    return codes, values.num_rows
