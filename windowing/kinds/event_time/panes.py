"""Event-time panes: intervals of event time, each complete when the watermark passes its end (semantics section 5).

The advance of the watermark that completes a pane of a key emits it with the rows that were on time; the next advance
after each late row emits it again. So an *output* is a pane and an advance. Outputs are sorted by pane, then advance,
because a row is in all outputs of a pane from its first one on: the outputs of a row that was on time for all its
panes are one contiguous run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...clock.interval_grid import clock_values, make_intervals
from ...clock.watermark import NO_LEVEL, Watermarks
from ...columns.arrays import Ints, Mask, combined
from ...columns.radix_sort import pair_order
from ...errors import DataError
from ...language.spec import TimeInterval
from ...rows.marks import epochs
from ...rows.membership import Memberships
from ...rows.panes import Outputs, Panes
from ...rows.sequence import Sequences
from .kernels import causes, completed, entry_runs, places, ranks, union_members, union_sizes

_MOST = 60_000_000


@dataclass(frozen=True, slots=True)
class _Rows:
    """The panes of each of n rows: it is late for ``[first, late]`` and on time for ``[late + 1, last]``.

    ``first``: int64 (n,), the first pane that holds each row.
    ``late``: int64 (n,), the last pane for which it is late; less than ``first`` where there is none.
    ``last``: int64 (n,), the last pane that holds it.
    ``epoch``: int64 (n,), how many of the listed advances come before it.
    """

    first: Ints
    late: Ints
    last: Ints
    epoch: Ints


@dataclass(frozen=True, slots=True)
class _Outputs:
    """P outputs, key after key, by pane and advance.

    ``bounds``: int64 (K+1,), the bounds of the keys among the outputs.
    ``pane``: int64 (P,), the pane of each output.
    ``advance``: int64 (P,), the listed advance that emits it; the number of advances where none does.
    ``late``: bool (P,), whether it shows a row that is late for the pane.
    """

    bounds: Ints
    pane: Ints
    advance: Ints
    late: Mask


def interval_panes(spec: TimeInterval, sequences: Sequences, watermarks: Watermarks, event_time: str) -> Panes:
    """Return the outputs of event-time panes, including those that only the end of the data emits.

    ``sequences``: rows in arrival order, or ordered by the event time; rows late beyond repair must be left out
    before, and rows that no interval holds are in no pane. ``watermarks``: the advances, in order; they are all that
    the function knows of the rows of other tasks. The panes of a key are sorted by interval and ``index``, and
    numbered by cause and interval.

    Raises `DataError` where outputs or bounds do not fit, `ConfigError` where a row is in too many panes.
    """
    column = combined(sequences.rows.column(event_time))
    intervals = make_intervals(column.type, spec)
    epoch = epochs(sequences, watermarks.marks)
    first, last = intervals.holding(clock_values(column, event_time))
    level = np.append(watermarks.level, NO_LEVEL)[epoch - 1]  # epoch 0 takes the last
    rows = _Rows(first, np.minimum(np.maximum(level, first - 1), last), last, epoch)
    shown = _outputs(sequences.bounds, rows, watermarks.level)
    key = np.repeat(np.arange(len(shown.bounds) - 1), np.diff(shown.bounds))
    number, index = _ranks(shown, key)
    start, end = intervals.bounds(shown.pane)
    cause, closed_by, timing = causes(shown.advance, shown.late, len(watermarks), len(sequences))
    return Panes(
        key=key,
        number=number,
        membership=_membership(sequences.bounds, rows, shown),
        cause=cause,
        closed_by=closed_by,
        start=start,
        end=end,
        outputs=Outputs(timing, index),
    )


def interval_rest(spec: TimeInterval, sequences: Sequences, event_time: str, last_closed: int) -> Mask:
    """Return which rows are in a pane that may still be emitted, bool (n,); ``last_closed``: the last that may not."""
    column = combined(sequences.rows.column(event_time))
    first, last = make_intervals(column.type, spec).holding(clock_values(column, event_time))
    return (first <= last) & (last > last_closed)


def _outputs(bounds: Ints, rows: _Rows, level: Ints) -> _Outputs:
    """Return all outputs: for each key the panes with rows on time, and for each of its epochs those with late rows."""
    first, pane = _union(bounds, rows.late + 1, rows.last)
    on_time = _Outputs(first, pane, completed(first, pane, level), np.zeros(len(pane), np.bool_))
    late = np.flatnonzero(rows.first <= rows.late)
    if not len(late):
        return on_time
    key, epoch = np.searchsorted(bounds, late, side="right") - 1, rows.epoch[late]
    starts = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(epoch) != 0)))
    groups, pane = _union(np.append(starts, len(late)), rows.first[late], rows.late[late])
    group = np.repeat(starts, np.diff(groups))
    ascending = np.lexsort([epoch[group], pane, key[group]])
    first = np.searchsorted(key[group], np.arange(len(bounds)))
    repeated = _Outputs(first, pane[ascending], epoch[group][ascending], np.ones(len(pane), np.bool_))
    return _both(on_time, repeated)


def _ranks(shown: _Outputs, key: Ints) -> tuple[Ints, Ints]:
    """Return the rank of each output among those of its key, by advance, then pane; and among those of its pane."""
    number, index = ranks(shown.bounds, shown.pane)
    # the order is stable, so the panes of one advance stay in order; without late rows nothing is sorted
    order = pair_order(key, shown.advance)
    if order is not None:
        number[order] = number.copy()
    return number, index


def _both(on_time: _Outputs, repeated: _Outputs) -> _Outputs:
    """Merge outputs key by key."""
    _check_count(len(on_time.pane) + len(repeated.pane))
    place = places(on_time.bounds, on_time.pane, repeated.bounds, repeated.pane)
    late = np.zeros(len(on_time.pane) + len(repeated.pane), np.bool_)
    late[place] = True
    pane, advance = np.empty(len(late), np.int64), np.empty(len(late), np.int64)
    for out, first, second in ((pane, on_time.pane, repeated.pane), (advance, on_time.advance, repeated.advance)):
        out[~late], out[late] = first, second
    return _Outputs(on_time.bounds + repeated.bounds, pane, advance, late)


def _union(bounds: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Return for each group of ranges ``[lo, hi]`` the integers in any of them: bounds of the groups, and integers."""
    # rows ordered by event time come with ``lo`` ascending; others are not sorted in a kernel: numba compiles that for
    # two seconds
    turn = pair_order(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), lo)
    if turn is not None:
        lo, hi = lo[turn], hi[turn]
    counts = union_sizes(bounds, lo, hi)
    first = np.append(0, np.cumsum(counts))
    _check_count(int(first[-1]))
    return first, union_members(bounds, lo, hi, first)


def _membership(bounds: Ints, rows: _Rows, shown: _Outputs) -> Memberships:
    """Return the run, or runs, of outputs that show each row."""
    room = len(rows.first) + int(np.maximum(rows.late - rows.first + 1, 0).sum())
    if room > _MOST:
        late = int(np.count_nonzero(rows.late >= rows.first))
        raise DataError(
            f"{late:,} rows came late for {room - len(rows.first):,} panes in all, more than a task holds",
            "use a longer creationPeriod, or a smaller --slice-size",
        )
    entries = entry_runs(
        bounds, rows.first, rows.late, rows.last, rows.epoch, shown.bounds, shown.pane, shown.advance, room
    )
    return Memberships(*entries, shown.bounds)


def _check_count(count: int) -> None:
    """Raise `DataError` for more panes than fit into memory."""
    if count > _MOST:
        raise DataError(f"{count:,} panes would come out of one slice", "use a longer creationPeriod")
