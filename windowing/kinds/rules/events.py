"""Marks and ticks as events between the rows of a key, of which the first ends a window (semantics section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...clock.grids import AnyGrid, clock_cell
from ...clock.interval_grid import clock_values
from ...columns.arrays import ClockValue, Ints, Mask, Measures
from ...language.spec import PartitionEviction
from ...rows.marks import Marks, epochs
from ...rows.panes import BY_TICK
from ...rows.sequence import Sequences
from ...support.jit import inline, kernel
from ..evictions import (
    BEGIN,
    BY_EVENT,
    NEWER,
    NO_PLACES,
    STAYS,
    STOP,
    Evictions,
    Keys,
    Times,
    TotalOrder,
    by_key,
    date,
    evict,
    evict_aged,
    insert,
    leave,
    limits,
    no_keys,
    row_seconds,
    whole_seconds,
)
from ..evictions import Rules as EvictionRules
from .gather import Said
from .machine import FAILED, Conditions, first_true
from .previous import Earlier
from .reach import Reaches, begin_sums, is_reached, pass_over, save_sums, see, take_back
from .walk import RowRules, Rules, first_full, first_risen, first_risen_float, has_risen, move_first


@dataclass(frozen=True, slots=True)
class Events:
    """The first event behind each of n rows that comes before the next row of its key, or before the end.

    ``rule``: int16 (n,), the rule that it makes fire; -1: there is no event; of length 0 where no rule has any.
    ``cause``: int64 (n,), the mark, numbered after the rows, or `BY_TICK`; of any value where there is no event.
    ``at``: array (n,), the tick, of any value where no tick is the cause; None where no rule has ticks.
    """

    rule: Rules
    cause: Ints
    at: pa.Array | None = None


def no_events(rows: int) -> Events:
    """Return that no event lies between the rows, for those of `with_ticks` and `with_marks`."""
    return Events(np.full(rows, -1, np.int16), np.full(rows, BY_TICK))


NO_EVENTS = no_events(0)
"""Where no rule has any."""


def instants_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type in which the ticks of several grids on one clock are written and compared: the finest."""
    if all(one == types[0] for one in types):
        return types[0]
    stamps = [one for one in types if pa.types.is_timestamp(one) or pa.types.is_duration(one)]
    if len(stamps) == len(types):
        return max(types, key=lambda one: ("s", "ms", "us", "ns").index(one.unit))
    return pa.float64()


def with_ticks(
    events: Events,
    rule: int,
    bounds: Ints,
    values: Measures,
    grid: AnyGrid,
    clock: ClockValue | None,
    dtype: pa.DataType,
) -> Events:
    """Add the ticks of one rule; ``events`` are those of the rules before it in the spec, without marks.

    ``values``: measures (n,), the clock column; ``grid``: the grid over them, whose ticks these are; ``clock``: the
    current time of the clock, None: the largest value; ``dtype``: the type in which ticks of all rules are written.
    """
    if not len(values):
        return Events(events.rule, events.cause, pa.nulls(0, dtype) if events.at is None else events.at)
    cells = grid.cells(values)
    tick = _as_type(grid.bounds(cells + 1), dtype)
    comes = _changes(cells, bounds, cells < clock_cell(grid, values, clock))
    if events.at is not None:  # of two ticks the earlier comes first, of equal ones that of the first rule
        earlier = pc.less(tick, events.at).to_numpy(zero_copy_only=False)
        comes &= (events.rule < 0) | earlier
        tick = pc.if_else(pa.array(comes | (events.rule < 0)), tick, events.at)
    return Events(np.where(comes, np.int16(rule), events.rule).astype(np.int16), events.cause, tick)


def with_marks(events: Events, rule: int, sequences: Sequences, marks: Marks, waits: bool) -> Events:
    """Add the window marks, which must be in order.

    ``waits``: whether a tick comes behind the rows and marks of its instant; else it comes before them.
    """
    if not len(marks) or not len(sequences):
        return events
    epoch = epochs(sequences, marks)
    comes = _changes(epoch, sequences.bounds, epoch < len(marks))
    mark = np.minimum(epoch, len(marks) - 1)
    if events.at is not None:
        column = _as_type(marks.rows.column(0), events.at.type).take(pa.array(mark))
        before_tick = (
            (pc.less_equal if waits else pc.less)(column, events.at).fill_null(True).to_numpy(zero_copy_only=False)
        )
        comes &= before_tick | (events.rule < 0)
    return Events(
        np.where(comes, np.int16(rule), events.rule).astype(np.int16),
        np.where(comes, len(sequences) + mark, events.cause),
        events.at,
    )


def _changes(labels: Ints, bounds: Ints, at_end: Mask) -> Mask:
    """Return behind which rows of a key the label changes; behind its last row ``at_end`` says so."""
    out = at_end.copy()
    ends = np.zeros(len(labels), np.bool_)
    ends[bounds[1:][bounds[1:] > 0] - 1] = True
    inside = ~ends[:-1]
    out[:-1][inside] = (labels[1:] != labels[:-1])[inside]
    return out


def _as_type(instants: pa.Array, dtype: pa.DataType) -> pa.Array:
    return instants.cast(dtype, safe=not pa.types.is_floating(dtype))


# Where one window ends by its rows, as far as one looks ahead: what partition eviction asks (semantics section 12).
#
# A partition eviction may cut a window anywhere, so the pass over all keys cannot take windows from `walk`. It asks,
# where a window begins, how it ends if nothing evicts its key. Marks and ticks are not asked: they end the windows of
# all keys.


BEFORE, AFTER, NEVER = range(3)
"""What ends a window: the row behind it, its own last row, or none of the rows that were looked at."""


@inline
def _first_end_by_conditions(  # noqa: PLR0912 - as `walk`
    rules: RowRules, reaches: Reaches | None, conditions: Conditions, earlier: Earlier | None, begin: int, stop: int
) -> tuple[int, int]:
    """Return what `first_end` does. Rows that a condition rejects are asked anew with each window.

    ``earlier``: amounts that each row says, where they move; none that asks for the window before.
    """
    flags, count_rule, befores = rules.flags, rules.counts.rule, conditions.befores[0]
    delta_rule, integers, amounts, float_rule, bits, floats, float_amounts = rules.deltas
    _, first, first_float, amount, float_amount, limit, sums, kept = rules.window
    rows = 0
    for i in range(begin, stop):
        conditions.problem[i] = 0
        if i > begin:
            fired = int(flags.before[i]) if len(flags.before) else -1
            fired = first_risen(delta_rule, integers, first, amount, fired, i)
            fired = first_risen_float(float_rule, bits, floats, first_float, float_amount, fired, i)
            fired = first_true(conditions, 0, befores, fired, i, kept, i)
            if fired >= 0:
                return i, BEFORE
            if fired == FAILED:
                pass_over(kept, conditions.kept, i)
                if reaches is not None:
                    pass_over(sums, reaches.kept, i)
                continue
        rows += 1
        fired = first_full(count_rule, limit, rows, int(flags.after[i]) if len(flags.after) else -1)
        save_sums(sums)
        save_sums(kept)
        see(kept, conditions.kept, i)
        if reaches is not None:
            see(sums, reaches.kept, i)
            for r in range(len(reaches.rule)):
                if (fired < 0 or reaches.rule[r] < fired) and is_reached(sums, reaches, r, i):
                    fired = reaches.rule[r]
        fired = first_true(conditions, befores, len(conditions.rule), fired, i, kept, i + 1)
        if fired >= 0:
            return i + 1, AFTER
        if fired == FAILED:
            rows -= 1
            take_back(kept)
            pass_over(kept, conditions.kept, i)
            if reaches is not None:
                take_back(sums)
                pass_over(sums, reaches.kept, i)
            if rows == 0:
                return i + 1, NEVER
        elif earlier is not None and rows > 1:
            move_first(earlier, first, amount, integers, amounts, first_float, float_amount, floats, float_amounts, i)
    return stop, NEVER


@inline
def first_end(
    rules: RowRules,
    reaches: Reaches | None,
    conditions: Conditions | None,
    earlier: Earlier | None,
    begin: int,
    stop: int,
) -> tuple[int, int]:
    """Return how a window that begins at row ``begin`` ends, looking at its key's rows below ``stop``.

    The row behind its last row, and `BEFORE` if it ends when that row comes, `AFTER` if with its last row; or ``stop``
    and `NEVER` where none of these rows ends it. The problems of ``conditions`` say which of the rows it rejects.
    """
    # Inlined into the loop that asks: to pass so many arrays took as long as to look where windows have a row or two.
    before, after = rules.flags.before, rules.flags.after
    _, integers, amounts, _, bits, floats, float_amounts = rules.deltas
    count_rule, most = rules.counts
    _, first, first_float, amount, float_amount, limit, sums, kept = rules.window
    for j in range(len(first)):
        first[j], amount[j] = integers[j, begin], amounts[j, min(begin, amounts.shape[1] - 1)]
    for j in range(len(first_float)):
        first_float[j] = floats[j, begin]
        float_amount[j] = float_amounts[j, min(begin, float_amounts.shape[1] - 1)]
    for c in range(len(limit)):
        limit[c] = most[c, min(begin, most.shape[1] - 1)]
    begin_sums(sums, begin)
    if conditions is not None:
        begin_sums(kept, begin)
        return _first_end_by_conditions(rules, reaches, conditions, earlier, begin, stop)
    for i in range(begin, stop):
        if i > begin and (
            (len(before) > 0 and before[i] >= 0)
            or has_risen(integers, first, amount, bits, floats, first_float, float_amount, i)
        ):
            return i, BEFORE
        ends = len(after) > 0 and after[i] >= 0
        for c in range(len(count_rule)):
            ends |= i + 1 - begin >= limit[c]
        if reaches is not None:
            see(sums, reaches.kept, i)
            for r in range(len(reaches.rule)):
                ends |= is_reached(sums, reaches, r, i)
        if ends:
            return i + 1, AFTER
    return stop, NEVER


# Partition eviction of windows under several rules: which keys go, and when (semantics sections 4 and 12).
#
# The loop is that of `windowing.kinds.evictions`, and so is the list of keys; but here the rows of a window
# decide where it ends, a row may be in no window, and what comes first of all marks and ticks ends the windows of all
# keys.


_AT_FIRST = 8  # rows that are looked at where a window begins; doubled while it goes on


def evictions_by_rules(
    eviction: PartitionEviction,
    order: TotalOrder,
    sequences: Sequences,
    marks: Marks,
    said: Said,
    events: Events,
) -> Evictions:
    """Return all evictions; ``sequences`` hold all rows of all keys.

    ``said``: what rules say of these rows. ``events``: of the places in the total order, as if of one key. Raises
    `DataError` where ages are beyond 2**62 seconds.
    """
    seconds = row_seconds(eviction, sequences, order.row)
    times = Times(seconds, NO_PLACES, 0, NO_PLACES, NO_PLACES, NO_PLACES)
    comes = events.rule >= 0
    at = _seconds_of(events, sequences, marks) if len(seconds) else NO_PLACES
    keys = no_keys(len(sequences.bounds) - 1, np.full(len(order.row), STAYS), np.zeros(len(order.row), np.int64))
    _follow(
        keys, order.row, order.key, sequences.bounds, order.begin, limits(eviction), times, comes, at, *said,
    )  # fmt: skip
    last = np.flatnonzero(keys.cause != STAYS)
    cause, place = keys.cause[last], keys.event[last]
    by_event = np.flatnonzero(cause == BY_EVENT)
    mark = events.cause[place[by_event]]
    cause[by_event] = np.where(mark >= 0, mark, BY_EVENT)
    return by_key(sequences, marks, last, cause, place)


def _seconds_of(events: Events, sequences: Sequences, marks: Marks) -> Ints:
    """Return the whole second of the event behind each place, of any value where there is none."""
    comes = events.rule >= 0
    second = np.zeros(len(comes), np.int64)
    by_mark = comes & (events.cause >= 0)
    name = sequences.order[0]
    for picks, column, which in (
        (by_mark, marks.rows.column(0), events.cause - len(comes)),
        (comes & ~by_mark, events.at, np.arange(len(comes))),
    ):
        if column is not None and picks.any():
            instants = column.take(pa.array(which[picks]))
            second[picks] = whole_seconds(clock_values(instants, name), instants.type)
    return second


@inline
def _ends_by_rows(rules: RowRules) -> bool:
    flags, deltas = rules.flags, rules.deltas
    sizes = len(flags.before) + len(flags.after) + len(deltas.rule) + len(deltas.float_rule)
    return sizes + len(rules.counts.rule) > 0


@kernel
def _happen(keys: Keys, seconds: Ints, age: int, place: int) -> None:
    """Process what comes behind a place: it finds keys too old, and ends the windows of all others."""
    nodes, head = keys.nodes, len(keys.nodes) - 1
    if len(seconds):
        evict_aged(keys, age, seconds[place], BY_EVENT, place)
    while nodes[head, NEWER] != head:
        leave(keys, nodes[head, NEWER])


@kernel
def _follow(  # noqa: PLR0912 - one loop, which follows the rule step by step
    keys: Keys,
    order: Ints,
    key: npt.NDArray[np.int32],
    bounds: Ints,
    begin: int,
    rules: EvictionRules,
    times: Times,
    comes: Mask,
    at: Ints,
    row_rules: RowRules,
    reaches: Reaches | None,
    conditions: Conditions | None,
    earlier: Earlier | None,
) -> None:
    """Process the rows in their total order; nothing is evicted before place ``begin``, as in `evicted_by`.

    ``comes``: bool (n,), whether a mark or a tick comes behind the place, before the next one; of length 0: none does.
    ``at``: int64 (n,), the whole second of the first one, where ages count; else of length 0.
    """
    nodes, count, opens = keys.nodes, len(bounds) - 1, row_rules.flags.opens
    how = np.full(count, NEVER)
    has_events, first = len(comes) > 0, max(begin, 1)
    seconds, has_ages = times.seconds, len(times.seconds) > 0
    looks = (
        reaches is not None or conditions is not None or _ends_by_rows(row_rules)
    )  # else marks and ticks alone end windows
    # The steps are those of `evicted_by`. Where rows are in no window they are not inserted, and the ages of keys are
    # asked for all the same: whether a row is inserted depends on whether its key is still there.
    for place in range(len(order)):
        row = order[place]
        k = key[row]
        if has_events and place >= first and comes[place - 1]:
            _happen(keys, at, rules.age, place - 1)
        if has_ages and place >= begin:
            evict_aged(keys, rules.age, seconds[place], row, place)
        if looks and nodes[k, BEGIN] >= 0 and nodes[k, STOP] == row:
            if how[k] == NEVER:
                ahead = 2 * (row - nodes[k, BEGIN])
                nodes[k, STOP], how[k] = first_end(
                    row_rules, reaches, conditions, earlier, nodes[k, BEGIN], min(row + ahead, bounds[k + 1])
                )
            if how[k] == BEFORE and nodes[k, STOP] == row:
                leave(keys, k)
        if nodes[k, BEGIN] < 0:
            if len(opens) and not opens[row]:
                continue
            if looks:
                nodes[k, STOP], how[k] = first_end(
                    row_rules, reaches, conditions, earlier, row, min(row + _AT_FIRST, bounds[k + 1])
                )
        if conditions is not None and conditions.problem[row] > 0:
            continue
        insert(keys, k, row)
        if has_ages:
            date(nodes, k, times, place)
        while place >= begin and (keys.total[0] > rules.most_keys or keys.total[1] > rules.most_rows):
            evict(keys, nodes[count, NEWER], row, place)
        if how[k] == AFTER and nodes[k, BEGIN] >= 0 and nodes[k, STOP] == row + 1:
            leave(keys, k)
    if has_events and len(order) and comes[-1]:
        _happen(keys, at, rules.age, len(order) - 1)
