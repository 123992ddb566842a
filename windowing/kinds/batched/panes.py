"""Batched windows: one pane for each change of the rows in sight (semantics section 6).

Every form of the clause is the same three steps. The clock, the lots or the mere arrivals say at which *moments* rows
come and go; ``retain`` and ``with unique`` let some go sooner; the moments at which anybody sees a difference are the
panes. What it takes to loop over rows is in `windowing.kinds.batched.kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...clock.tick_grid import make_grid
from ...clock.values import batched_grid, clock_values, now
from ...columns.arrays import Ints, Mask, Measures, combined
from ...language.spec import Batched
from ...panes.membership import Membership, Memberships, Ranges, as_ranges
from ...panes.panes import AT_END, BY_TICK, Panes, reason
from ...sequences.sequence import Codes, Sequences, group_codes
from ..context import WindowContext
from .kernels import changing_ticks, displace_oldest, expiries, full_lots, hide_older, visible_changes


@dataclass(frozen=True, slots=True)
class Moments:
    """When the content of each key's window may change, and which rows are in it.

    ``first``: int64 (K+1,), the bounds of the keys among the m moments. ``enter``, ``leave``: int64 (n,), each row is
    in the window at the moments ``[enter, leave)``; not at all where these are equal. ``cause``: int64 (m,) and
    ``closed_by``: int8 (m,), as in `Panes`. ``when``: (m,), the instant of each moment, or its tick of ``every``; None
    for windows without a clock.
    """

    first: Ints
    enter: Ints
    leave: Ints
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    when: Measures | None = None


def batched_panes(spec: Batched, sequences: Sequences, setting: WindowContext) -> Panes:
    """Return the panes of a batched window, those that only the end of the data brings out included.

    Bounds are those of `batched_grid` where ``within`` is given, else None. What the clock brings out after it has
    stopped has its instant in ``at``, and ``end`` as its close reason.

    Raises `DataError` where an instant does not fit 64 bit, or a float clock cannot tell ``within``.
    """
    moments = _visible_only(sequences.bounds, _shortened(spec, sequences, _moments(spec, sequences, setting)))
    counts = np.diff(moments.first)
    key = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(key))
    number -= moments.first[key]
    start, end = _bounds(spec, sequences, setting.origin, moments.when)
    contents = _membership(spec, sequences.bounds, moments)
    return Panes(key, number, contents, moments.cause, moments.closed_by, start, end, at=end)


def batched_rest(spec: Batched, sequences: Sequences, setting: WindowContext) -> Mask:
    """Return which rows are of use after the last moment before the end, (n,).

    Those that are yet to come or to go, and all that came with such a one by ``every``, so that what is stored later is
    counted from where a lot began. Hidden rows are among them, for they take places; so is who hides them, for he
    is of their part and leaves after them.
    """
    moments = _moments(spec, sequences, setting)
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


def _moments(spec: Batched, sequences: Sequences, setting: WindowContext) -> Moments:
    if spec.within is not None:
        return _on_the_clock(spec, spec.within, sequences, setting)
    if spec.every is not None:
        return _in_lots(spec, int(spec.every), sequences)
    rows = np.arange(len(sequences))
    reasons = np.full(len(rows), reason("trigger"), np.int8)
    return Moments(sequences.bounds, rows, _never(sequences.bounds, sequences.bounds), rows, reasons)


def _on_the_clock(spec: Batched, within: Fraction, sequences: Sequences, setting: WindowContext) -> Moments:
    """``within``: rows go when they are too old, at once or at the next tick of ``every``."""
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    grid = batched_grid(spec, column.type, setting.origin)
    values = clock_values(column, name)
    comes = grid.instants(values)
    goes = grid.later(comes, within)
    stands = _clock_as_measure(values, setting.clock)
    if spec.every is None:
        first, enter, leave, cause, when = expiries(sequences.bounds, comes, goes)
        by_clock = np.where(when <= grid.instants(stands)[0], np.int8(reason("expiry")), np.int8(reason("end")))
        return Moments(first, enter, leave, cause, np.where(cause < 0, by_clock, np.int8(reason("trigger"))), when)
    # more rows may come at the instant of a tick, and are in at it
    next_tick = int(grid.first_ticks(grid.instants(stands))[0]) if setting.hold else int(grid.cells(stands)[0]) + 1
    comes, goes = grid.first_ticks(comes), grid.first_ticks(goes)
    first, enter, leave, when = changing_ticks(sequences.bounds, comes, goes, next_tick)
    reasons = np.where(when < next_tick, np.int8(reason("batch")), np.int8(reason("end")))
    return Moments(first, enter, leave, np.full(len(when), BY_TICK), reasons, when)


def _in_lots(spec: Batched, size: int, sequences: Sequences) -> Moments:
    """``every`` next to a lone ``retain``: rows come when enough of them are stored."""
    first, enter, cause = full_lots(sequences.bounds, *_codes(sequences, spec.partition_by), size)
    reasons = np.where(cause == AT_END, np.int8(reason("end")), np.int8(reason("batch")))
    return Moments(first, enter, _never(sequences.bounds, first), cause, reasons)


def _shortened(spec: Batched, sequences: Sequences, moments: Moments) -> Moments:
    """Let rows go sooner that are hidden or have lost their place."""
    leave = moments.leave.copy()
    if spec.unique is not None:
        hide_older(moments.enter, leave, *_codes(sequences, (*spec.partition_by, spec.unique)))
    if spec.retain is not None:
        displace_oldest(moments.enter, leave, *_codes(sequences, spec.partition_by), spec.retain)
    return replace(moments, leave=leave)


def _visible_only(bounds: Ints, moments: Moments) -> Moments:
    """Leave out the moments at which nobody sees a difference."""
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
    """Ranges where rows go in the order in which they came, else lives."""
    enter, leave = moments.enter, moments.leave
    if spec.unique is None and not (spec.partition_by and spec.retain):
        ranges = as_ranges(Memberships(np.arange(len(enter)), enter, leave, bounds, moments.first))
        return Ranges(ranges.lo, ranges.hi, ranges.base, disjoint=False)
    rows = np.flatnonzero(enter < leave)
    return Memberships(rows, enter[rows], leave[rows], np.searchsorted(rows, bounds), moments.first)


def _bounds(
    spec: Batched, sequences: Sequences, origin: Fraction, when: Measures | None
) -> tuple[pa.Array | None, pa.Array | None]:
    """Start and end of the stretch of time that each pane shows, ``(T - within, T]``."""
    if spec.within is None or when is None:
        return None, None
    dtype = sequences.rows.column(sequences.order[0]).type
    grid = batched_grid(spec, dtype, origin)
    if spec.every is None:
        return grid.to_arrow(grid.later(when, -spec.within)), grid.to_arrow(when)
    starts = make_grid(dtype, Fraction(spec.every), origin - spec.within, origin)
    return starts.bounds(when), grid.bounds(when)


def _clock_as_measure(values: Measures, clock: int | float | None) -> Measures:
    """Where the one clock stands, as an array of one measure."""
    return np.array([now(values, clock) or 0], np.int64 if values.dtype == np.int64 else np.float64)


def _never(bounds: Ints, first: Ints) -> Ints:
    """Of each row the bound of its key among the moments: it stays."""
    return np.repeat(first[1:], np.diff(bounds))


def _codes(sequences: Sequences, names: Sequence[str]) -> tuple[Codes, int]:
    """Number the rows by their values in some columns, from 0; also return how many numbers there are."""
    if not names:
        return np.zeros(len(sequences), np.int32), 1
    codes, values = group_codes([combined(sequences.rows.column(name)) for name in names])
    return codes, values.num_rows
