"""Batched windows as a kind: a pane for each change of the visible rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..clock.interval_grid import batched_grid, clock_values, now_as_measure
from ..clock.tick_grid import make_grid
from ..columns.arrays import Ints, Mask, Measures, combined
from ..columns.radix_sort import Codes
from ..columns.sort_keys import is_sortable
from ..errors import ConfigError
from ..language.spec import Batched
from ..rows.marks import Marks
from ..rows.membership import Membership, Memberships, Ranges, as_ranges, memberships_of
from ..rows.panes import AT_END, BY_TICK, Panes, reason
from ..rows.sequence import Sequences, group_codes
from ..support.jit import kernel
from .context import NEVER, RowSteps, Signals, WindowContext
from .contract import WindowKind
from .facts import Fact, KeyPane, exact_text
from .key_lifetimes import Lifetimes
from .needs import Causes, Explain, Needs, Option, PanesByCount, PaneTimes

# Loops of batched windows: when each row enters and leaves, and which moments change what is visible (section 6).
#
# A *moment* is when the content of a key's window may change. Moments are numbered key after key, within each key in
# the order of time; ``first``, int64 (K+1,), holds the bounds of the keys among them. A row is in the window at the
# moments ``[enter, leave)``: a row that stays to the end has the bound of its key as ``leave``, and a row that never
# enters has ``enter == leave``.


@kernel
def expiries(bounds: Ints, comes: Measures, goes: Measures) -> tuple[Ints, Ints, Ints, Ints, Measures]:
    """Return the moments of a window in which each row enters alone, and leaves with all rows of the same instant.

    ``comes``, ``goes``: instants (n,) of entering and leaving, ascending within a key, ``comes < goes``; at one instant
    rows leave before others enter. Returns ``first``, ``enter`` and ``leave``, and for each moment the row that enters
    (`BY_TICK` where rows leave) and the instant.
    """
    n = len(comes)
    first = np.zeros(len(bounds), np.int64)
    enter = np.empty(n, np.int64)
    leave = np.empty(n, np.int64)
    cause = np.empty(2 * n, np.int64)
    instant = np.empty(2 * n, comes.dtype)
    m = 0
    for k in range(len(bounds) - 1):
        # A merge of two ascending lists: the rows [old, new) are in the window. Each turn enters one row or lets at
        # least one leave, so a key has at most two moments a row.
        new, old, end = bounds[k], bounds[k], bounds[k + 1]
        while old < end:
            if new < end and comes[new] < goes[old]:
                cause[m] = new
                instant[m] = comes[new]
                enter[new] = m
                new += 1
            else:
                cause[m] = BY_TICK
                instant[m] = goes[old]
                while old < new and goes[old] == instant[m]:
                    leave[old] = m
                    old += 1
            m += 1
        first[k + 1] = m
    return first, enter, leave, cause[:m], instant[:m]


@kernel
def changing_ticks(bounds: Ints, comes: Ints, goes: Ints, last: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the moments of a window that changes at ticks only: the ticks up to ``last`` at which rows enter or leave.

    ``comes``, ``goes``: int64 (n,), ticks of entering and leaving, ascending within a key, ``comes <= goes``; all rows
    enter by ``last``. Returns ``first``, ``enter`` and ``leave``, and the tick of each moment.
    """
    n = len(comes)
    first = np.zeros(len(bounds), np.int64)
    enter = np.empty(n, np.int64)
    leave = np.empty(n, np.int64)
    tick = np.empty(2 * n, np.int64)
    m = 0
    for k in range(len(bounds) - 1):
        new, old, end = bounds[k], bounds[k], bounds[k + 1]
        while old < end and (new < end or goes[old] <= last):
            tick[m] = min(comes[new], goes[old]) if new < end else goes[old]
            # rows enter before others leave, so a row with one tick for both gets ``enter == leave``: never visible
            while new < end and comes[new] == tick[m]:
                enter[new] = m
                new += 1
            while old < new and goes[old] == tick[m]:
                leave[old] = m
                old += 1
            m += 1
        leave[old:end] = m
        first[k + 1] = m
    return first, enter, leave, tick[:m]


@kernel
def full_lots(bounds: Ints, part: Codes, parts: int, size: int) -> tuple[Ints, Ints, Ints]:
    """Return the moments at which ``size`` stored rows of one partition enter together as a lot.

    An incomplete lot enters at the end. ``part``: the partition of each row, below ``parts``; no partition has rows of
    two keys. Returns ``first`` and ``enter``, and for each moment the row that completes the lot; `AT_END` for the end,
    which every key has.
    """
    n = len(part)
    first = np.zeros(len(bounds), np.int64)
    enter = np.full(n, -1, np.int64)
    cause = np.empty(n // size + len(bounds) - 1, np.int64)
    stored = np.zeros(parts, np.int64)
    newest = np.full(parts, -1, np.int64)
    # The stored rows of a partition are a linked list from its newest row back: any number of partitions needs no
    # more memory than one entry a row, and each row is visited twice.
    older = np.empty(n, np.int64)  # the row stored before, -1 for the first of a lot
    m = 0
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            p = part[i]
            older[i] = newest[p]
            newest[p] = i
            stored[p] += 1
            if stored[p] == size:
                cause[m] = i
                while newest[p] >= 0:
                    enter[newest[p]] = m
                    newest[p] = older[newest[p]]
                stored[p] = 0
                m += 1
        for i in range(bounds[k], bounds[k + 1]):
            newest[part[i]] = -1
            stored[part[i]] = 0
            if enter[i] < 0:
                enter[i] = m
        cause[m] = AT_END
        m += 1
        first[k + 1] = m
    return first, enter, cause[:m]


@kernel
def hide_older(enter: Ints, leave: Ints, code: Codes, codes: int) -> None:
    """Let each row leave, at the latest, when the next row of its code enters. Codes are below ``codes``.

    The rows of a code are in one partition, so they enter and leave in their order: the next row hides all rows before
    it, and does not leave while one of them is in the window. Rows that never enter change nothing: by the moment at
    which they would have entered, all older rows of their partition have left. Rows of later keys change nothing
    either, because their moments all come later.
    """
    # Backwards, the entry of the next row of a code is known when a row is visited: one pass, one number a code.
    hidden = np.full(codes, np.iinfo(np.int64).max, np.int64)
    for i in range(len(enter) - 1, -1, -1):
        leave[i] = min(leave[i], hidden[code[i]])
        hidden[code[i]] = enter[i]


@kernel
def displace_oldest(enter: Ints, leave: Ints, part: Codes, parts: int, places: int) -> None:
    """Let each row leave, at the latest, when the row enters that is ``places`` after it in its partition.

    Hidden rows count. The rows of a partition enter in their order. ``part``: the partition of each row, below
    ``parts``.
    """
    # invariant: the ``held`` newest rows of each partition, at most ``places``, are linked from oldest to newest
    held = np.zeros(parts, np.int64)
    oldest = np.zeros(parts, np.int64)
    newest = np.zeros(parts, np.int64)
    newer = np.empty(len(part), np.int64)  # the next row of the same partition
    for i in range(len(part)):
        p = part[i]
        if held[p] == 0:
            oldest[p] = i
        else:
            newer[newest[p]] = i
        newest[p] = i
        held[p] += 1
        if held[p] > places:
            gone = oldest[p]
            leave[gone] = min(leave[gone], enter[i])
            oldest[p] = newer[gone]
            held[p] -= 1


@kernel
def visible_changes(bounds: Ints, first: Ints, enter: Ints, leave: Ints) -> Mask:
    """Return the moments at which a row becomes visible or invisible, bool (m,)."""
    # a row whose ``leave`` is the bound of its key stays to the end: no moment shows its leaving
    out = np.zeros(first[-1], np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            if enter[i] < leave[i]:
                out[enter[i]] = True
                if leave[i] < first[k + 1]:
                    out[leave[i]] = True
    return out


# Batched windows: one pane for each change of the visible rows (semantics section 6).
#
# Every form of the clause takes the same three steps. First the clock, the lots or the arrivals determine the
# *moments* at which rows enter and leave. Then ``retain`` and ``with unique`` let some rows leave sooner. The moments
# that change what is visible are the panes.


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


def shortened(spec: Batched, sequences: Sequences, moments: Moments) -> Moments:
    """Let rows leave sooner: those that ``with unique`` hides, and those that ``retain`` has no place for."""
    leave = moments.leave.copy()
    if spec.unique is not None:
        hide_older(moments.enter, leave, *partition_codes(sequences, (*spec.partition_by, spec.unique)))
    if spec.retain is not None:
        displace_oldest(moments.enter, leave, *partition_codes(sequences, spec.partition_by), spec.retain)
    return replace(moments, leave=leave)


def partition_codes(sequences: Sequences, names: Sequence[str]) -> tuple[Codes, int]:
    """Return the partition of each row by some columns, and how many there are; without columns all rows are in one."""
    if not names:
        return np.zeros(len(sequences), np.int32), 1
    codes, values = group_codes([combined(sequences.rows.column(name)) for name in names])
    return codes, values.num_rows


@dataclass(frozen=True, slots=True)
class BatchedKind(WindowKind):
    """A batched window."""

    spec: Batched
    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        if self.spec.within is None:
            return PaneTimes()
        grid = batched_grid(self.spec, clock, origin)
        return PaneTimes(grid.type, grid.type, grid)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes, including those that only the end of the data emits.

        Bounds are those of `batched_grid` where ``within`` is given, else None. Panes whose instant is after the last
        time of the clock have that instant in ``at``, and ``end`` as their close reason.

        Raises `DataError` where an instant does not fit 64 bit, or ``within`` is too short for a float clock.
        """
        spec, bounds = self.spec, sequences.bounds
        moments = shortened(spec, sequences, self._moments(sequences, context))
        flags = visible_changes(bounds, moments.first, moments.enter, moments.leave)
        if not flags.all():
            before = np.concatenate([[0], np.cumsum(flags)])
            moments = Moments(
                before[moments.first],
                before[moments.enter],
                before[moments.leave],
                moments.cause[flags],
                moments.closed_by[flags],
                None if moments.when is None else moments.when[flags],
            )
        counts = np.diff(moments.first)
        key = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(key))
        number -= moments.first[key]
        start, end = self._bounds(sequences, context.origin, moments.when)
        contents: Membership
        enter, leave = moments.enter, moments.leave
        if spec.unique is None and not (spec.partition_by and spec.retain):
            found = as_ranges(Memberships(np.arange(len(enter)), enter, leave, bounds, moments.first))
            contents = Ranges(found.lo, found.hi, found.base, disjoint=False)
        else:
            rows = np.flatnonzero(enter < leave)
            contents = Memberships(rows, enter[rows], leave[rows], np.searchsorted(rows, bounds), moments.first)
        return Panes(key, number, contents, moments.cause, moments.closed_by, start, end, at=end), signals.marks

    def _moments(self, sequences: Sequences, context: WindowContext) -> Moments:
        spec, bounds = self.spec, sequences.bounds
        if spec.within is not None:
            return _on_the_clock(spec, spec.within, sequences, context)
        rows, counts = np.arange(len(sequences)), np.diff(bounds)
        if spec.every is not None:  # rows enter when a lot of them is stored
            first, enter, cause = full_lots(bounds, *partition_codes(sequences, spec.partition_by), int(spec.every))
            reasons = np.where(cause == AT_END, np.int8(reason("end")), np.int8(reason("batch")))
            return Moments(first, enter, np.repeat(first[1:], counts), cause, reasons)
        trigger = np.full(len(rows), reason("trigger"), np.int8)
        return Moments(bounds, rows, np.repeat(bounds[1:], counts), rows, trigger)

    def _bounds(
        self, sequences: Sequences, origin: Fraction, when: Measures | None
    ) -> tuple[pa.Array | None, pa.Array | None]:
        """Return start (exclusive) and end (inclusive) of the time that each pane covers, ``(T - within, T]``."""
        spec = self.spec
        if spec.within is None or when is None:
            return None, None
        dtype = sequences.rows.column(sequences.order[0]).type
        grid = batched_grid(spec, dtype, origin)
        if spec.every is None:
            return grid.to_arrow(grid.later(when, -spec.within)), grid.to_arrow(when)
        starts = make_grid(dtype, Fraction(spec.every), origin - spec.within, origin)
        return starts.bounds(when), grid.bounds(when)

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        rows, lives = len(sequences), memberships_of(panes.membership)
        never, entering = np.full(rows, NEVER), np.full(rows, NEVER)
        entering[lives.row] = lives.enter
        return RowSteps(sequences.bounds[panes.key], np.zeros(rows, np.bool_), never, entering, never, True)

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return which rows the next run needs.

        These are the rows that have yet to enter or to leave after the last moment before the end, and, with lots, all
        rows of their lots, so that the next run counts lots from the same row. Hidden rows are included, because they
        take places; so are the rows that hide them, because these are in the same partition and leave later.
        """
        spec, bounds = self.spec, sequences.bounds
        moments = self._moments(sequences, context)
        first, places = moments.first, shortened(replace(spec, unique=None), sequences, moments)
        is_end = np.append(0, np.cumsum(moments.closed_by == reason("end")))
        until = np.repeat(first[1:] - np.diff(is_end[first]), np.diff(bounds))
        stays = (moments.enter >= until) | (places.leave >= until)
        if spec.every is not None and spec.within is None:
            lots = np.zeros(first[-1] + 1, np.bool_)
            lots[moments.enter[stays]] = True
            stays = lots[moments.enter]
        return stays

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        spec, row = self.spec, pane.cause_row
        yield from pane.oldest_row()
        name = "a row" if row is None else pane.name(row)
        if pane.closed_by == "end":
            yield pane.by_end()
        else:
            text = f"{name} came in"
            if pane.closed_by == "expiry":
                age = exact_text(Fraction(spec.within or 0))
                text = f"rows expired at {pane.head_text('_at')}: they were {age} s old"
            elif pane.closed_by == "batch" and spec.within is not None:
                text = f"the tick of every at {pane.head_text('_at')} changed what is visible"
            elif pane.closed_by == "batch":
                text = f"{name} filled a batch of {spec.every} rows"
            yield Fact("closed", text, None if row is None else pane.pos(row), pane.closed_by)
        order = next(iter(pane.sequences.order), None)
        if spec.within is not None and order is not None and len(pane.rows):
            oldest = int(pane.rows[0])
            text = f"{pane.name(oldest)} expires next, at an age of {exact_text(spec.within)} s"
            yield pane.age(order, oldest, text)
        yield from pane.changes()


def batched_kind(spec: Batched) -> BatchedKind:
    """Return a batched window as a kind."""
    names = tuple(dict.fromkeys(name for name in (*spec.partition_by, spec.unique) if name is not None))
    has_ticks = spec.within is not None and spec.every is not None
    given: dict[Option, bool] = {"changes": True, "left": not spec.retain_all, "origin": has_ticks}
    causes: Causes = "rows"
    if spec.within is not None:
        causes = "both" if spec.every is None else "ticks"
    by_count = None
    if spec.within is None and not spec.partition_by and spec.unique is None:
        by_count = PanesByCount(2**62 if spec.retain is None else spec.retain, int(spec.every or 1))
    # about how many panes a row causes: one when it enters, and with time one when it leaves
    rows_out = Fraction(2) if spec.within is not None else Fraction(1) if spec.every is None else Fraction(0)
    needs = Needs(
        go_on=False,
        attributes=names,
        required=names,
        clock=spec.within is not None,
        causes=causes,
        waits=spec.every is not None,
        options=frozenset(option for option, is_given in given.items() if is_given),
        can_cut=spec.within is not None or spec.retain is not None,
        changes_of_groups=True,
        sum_of_nothing=0,
        by_count=by_count,
        rows_out_per_row=rows_out,
    )
    return BatchedKind(spec, needs)
