"""Values of panes that depend on what their key had before: values that hold on, and values that fill (section 9).

They are computed of all panes of a scan at once, before these are divided. What goes on behind a cut is one value of
each such aggregate and key: the value that held where the first open window began, or the last one that fills.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.inputs import Spans, frozen, plain
from ..aggregates.over_time import reached, ticks_of
from ..aggregates.table import Results
from ..clock.interval_grid import clock_values, now
from ..clock.tick_grid import ticks_array
from ..columns.arrays import Ints, Mask, combined, take_or_null
from ..errors import DataError
from ..kinds.context import Signals, WindowContext
from ..kinds.key_lifetimes import lifetimes
from ..planning.plan import Plan
from ..rows.membership import Ranges, edge_rows
from ..rows.panes import AT_END, Panes, reason
from ..rows.sequence import Sequences
from .aggregate_rows import values_of_panes


@dataclass(frozen=True, slots=True)
class Lives:
    """The sequences that values go on in: keys, or their lifetimes where partition eviction ends these.

    ``bounds``: int64 (S+1,), among the rows.
    ``first``, ``last``: int64 (K,), the first life of each key, and the one that is left at the end; -1 where none is.
    """

    bounds: Ints
    first: Ints
    last: Ints


def values_over_time(
    plan: Plan, sequences: Sequences, signals: Signals, context: WindowContext, every: Panes, emitted: Panes
) -> tuple[Panes, pa.Array | None]:
    """Return panes with their values over time, and those that go on behind the rows, as `KeyState.ongoing`.

    ``every``: all panes. ``emitted``: those of them that come out. None goes on where there is no such aggregate.
    """
    bounds = plan.over_time
    if not bounds:
        return emitted, None
    lives = _lives(sequences, signals)
    of_pane = _life_of(emitted, lives)
    known, ends = _rows_with_a_say(plan, sequences, context, every), _ends(plan, sequences, context, every)
    before = {name: _before(name, dtype, context, lives) for name, dtype in plan.ongoing.items()}
    spans = None
    if any(bound.holds_on for bound in bounds):
        spans = _spans(plan, sequences, context, emitted, lives, of_pane, known)
    values, after, results = dict[str, pa.Array](), dict[str, pa.Array](), Results()
    for bound in bounds:
        own, name = None, bound.call.unfilled
        if spans is not None and bound.holds_on:
            own = replace(spans, before=before[name])
            after[name] = _last_values(own, plain(combined(sequences.rows.column(bound.columns[0]))), ends, lives)
        found = values_of_panes(plan, sequences, emitted, bound, own, results)
        if bound.call.fills:
            found, after[bound.text] = _filled(found, emitted, of_pane, before[bound.text], lives)
        values[bound.name] = found
    nothing = np.logical_and.reduce([each.is_null().to_numpy(zero_copy_only=False) for each in after.values()])
    ongoing = pa.StructArray.from_arrays([*after.values()], [*after], mask=pa.array(nothing))
    return replace(emitted, values=pa.table(values)), ongoing


def _lives(sequences: Sequences, signals: Signals) -> Lives:
    keys = np.arange(len(sequences.bounds) - 1)
    if signals.evictions is None:
        return Lives(sequences.bounds, keys, keys)
    parts = lifetimes(signals.evictions, sequences)
    last = np.full(len(keys), -1)
    last[parts.key[parts.lives]] = np.flatnonzero(parts.lives)
    return Lives(parts.bounds, np.searchsorted(parts.key, keys), last)


def _life_of(panes: Panes, lives: Lives) -> Ints:
    if len(lives.bounds) - 1 == len(lives.first):
        return panes.key
    first, _ = edge_rows(panes.membership)
    if isinstance(panes.membership, Ranges) and panes.membership.row is None:
        first = panes.membership.lo  # an empty window lies before a row of its life
    return np.searchsorted(lives.bounds, first, side="right") - 1


def _rows_with_a_say(plan: Plan, sequences: Sequences, context: WindowContext, every: Panes) -> Mask | None:
    """Return the rows whose values count: not those that are rejected, nor those that are only looked back at."""
    left_out = np.zeros(len(sequences), np.bool_)
    if context.restored is not None and plan.kind.needs.ends is not None:
        is_kept = ~context.restored.is_new(sequences.bounds)
        if is_kept.any():  # rows that began before the window that was open have their say in the values before
            left_out |= is_kept & plan.kind.begin_before(sequences, context, context.since)
    elif context.restored is not None and not plan.kind.needs.overlaps:
        left_out |= context.restored.row_state.shown  # what they have left is among the values before
    if every.rejects is not None:
        left_out[every.rejects.row[every.rejects.row >= 0]] = True
    return ~left_out if left_out.any() else None


def _ends(plan: Plan, sequences: Sequences, context: WindowContext, every: Panes) -> Ints:
    """Return where the first open window of each key begins, or else its rows end, int64 (K,)."""
    if plan.kind.needs.ends is not None:  # its first row may have begun long before others that it does not hold
        counts = np.append(0, np.cumsum(plan.kind.begin_before(sequences, context, None)))
        return sequences.bounds[:-1] + np.diff(counts[sequences.bounds])
    ends = sequences.bounds[1:].copy()
    is_open = np.flatnonzero(every.cause == AT_END)
    first, _ = edge_rows(every.take(is_open).membership)
    there = first >= 0
    np.minimum.at(ends, every.key[is_open[there]], first[there])
    return ends


def _before(name: str, dtype: pa.DataType, context: WindowContext, lives: Lives) -> pa.Array:
    """Return what each life has from earlier runs, (S,): only the first life of a key has something."""
    kept = None if context.restored is None else context.restored.key_state.ongoing
    if kept is None:
        return pa.nulls(len(lives.bounds) - 1, dtype)
    column = kept.flatten()[kept.type.get_field_index(name)].cast(dtype)
    picks = np.full(len(lives.bounds) - 1, -1)
    picks[lives.first] = np.arange(len(lives.first))
    return take_or_null(column, picks)


def _spans(
    plan: Plan,
    sequences: Sequences,
    context: WindowContext,
    panes: Panes,
    lives: Lives,
    of_pane: Ints,
    known: Mask | None,
) -> Spans:
    """Return what panes cover: their bounds, up to the end of the data; without bounds from the first to the last row.

    A window whose key is evicted is covered up to its last row.
    """
    column = plain(combined(sequences.rows.column(plan.sort[0])))
    first, last = edge_rows(panes.membership)
    if panes.start is None or panes.end is None:
        (clock,), unit = ticks_of([column])
        begin, end = clock[first], clock[last]
    else:
        (clock, begin, end, until), unit = ticks_of([column, panes.start, panes.end, _now(column, context)])
        end = np.where(panes.closed_by == reason("end"), np.minimum(end, until), end)
        evicted = panes.closed_by == reason("evicted")
        end[evicted] = np.minimum(end[evicted], clock[last[evicted]])
        end = np.maximum(begin, end)
    if clock.dtype.kind == "i" and len(clock) and int(clock.max()) - int(clock.min()) >= 2**63:
        raise DataError(f"column {plan.sort[0]!r} reaches further than 2**63 ticks", "use a coarser unit")
    stop = last + 1
    if plan.kind.needs.ends is not None:  # a row may be over before the window, and come behind its rows
        stop = np.maximum(stop, reached(*map(frozen, (clock, lives.bounds, of_pane, begin, end)))[0])
    nothing = pa.nulls(len(lives.bounds) - 1)
    return Spans(clock, unit, lives.bounds, of_pane, begin, end, stop, known, nothing)


def _now(column: pa.Array, context: WindowContext) -> pa.Array:
    """Return the clock where the data ended, in the type of its column: one value, none where there is no row."""
    clock = now(clock_values(column, "clock"), context.clock)
    if pa.types.is_floating(column.type):
        return pa.array([] if clock is None else [clock], column.type)
    return ticks_array(np.array([] if clock is None else [clock], np.int64), column.type)


def _last_values(spans: Spans, column: pa.Array, ends: Ints, lives: Lives) -> pa.Array:
    """Return the last value of each key before a row, ``ends``; else the one before all rows; (K,)."""
    rows = spans.having_values(column)
    at = np.searchsorted(rows, ends) - 1
    row, last = np.append(rows, -1)[at], lives.last
    row = np.where((at >= 0) & (row >= lives.bounds[last]), row, -1)
    earlier = np.where((row < 0) & (last == lives.first), last, -1)
    own = take_or_null(column, np.where(last < 0, -1, row))
    return pc.coalesce(own, take_or_null(spans.before, earlier).cast(own.type))


def _filled(values: pa.Array, panes: Panes, of_pane: Ints, before: pa.Array, lives: Lives) -> tuple[pa.Array, pa.Array]:
    """Fill nulls with the last value of the life before; also return that of each key behind all panes, (K,)."""
    order = np.lexsort((panes.number, of_pane))
    life, place = of_pane[order], np.arange(len(order))
    valid = values.is_valid().to_numpy(zero_copy_only=False)[order]
    newest = np.maximum.accumulate(np.where(valid, place, -1)) if len(order) else place
    starts = np.searchsorted(life, life)
    source = np.where(newest >= starts, newest, -1)
    every = pa.concat_arrays([values, before.cast(values.type)])
    at = np.where(source >= 0, order[source] if len(order) else source, len(values) + life)
    found = np.empty(len(order), np.int64)
    found[order] = at
    last = lives.last
    ends = np.searchsorted(life, last, side="right") - 1
    is_there = (ends >= 0) & (np.append(life, -1)[ends] == last)
    of_key = np.where(is_there, np.append(at, -1)[ends], np.where(last == lives.first, len(values) + last, -1))
    return every.take(pa.array(found)), take_or_null(every, np.where(last < 0, -1, of_key))
