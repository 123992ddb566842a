"""Event-time panes as a kind: intervals of event time that a watermark completes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.interval_grid import Intervals, clock_values, make_intervals
from ..clock.watermark import NO_LEVEL, Lateness, make_lateness
from ..columns.arrays import Ints, Mask, Measures, combined, measures
from ..columns.radix_sort import pair_order
from ..errors import DataError
from ..language.spec import TimeInterval
from ..language.tokens import rows as row_count
from ..rows.marks import Marks, epochs
from ..rows.membership import Memberships, first_from, memberships_of, united
from ..rows.panes import AT_END, BY_TICK, TIMING, Outputs, Panes, reason
from ..rows.sequence import Sequences
from ..support.jit import kernel
from .context import NEVER, RowSteps, Signals, WindowContext, steps_of_rows
from .contract import WindowKind
from .facts import Amount, Fact, KeyPane, amount_text, exact_text
from .key_lifetimes import Lifetimes
from .needs import Needs, PaneTimes

# Loops over the outputs of event-time panes: flat functions over arrays, key after key, for `event_time.panes`.


Labels: TypeAlias = npt.NDArray[np.int8]

_END, _LATE, _WATERMARK = (np.int8(reason(name)) for name in ("end", "late", "watermark"))
_TIMING = tuple(np.int8(TIMING.index(name)) for name in ("late", "on_time"))


@kernel
def causes(advance: Ints, late: Mask, advances: int, rows: int) -> tuple[Ints, Labels, Labels]:
    """Return the cause, the close reason and the timing of each output."""
    # one loop: arrays of conditions and of choices, one after the other, took a tenth of the time of a hop's panes
    cause = np.empty(len(advance), np.int64)
    closed_by, timing = np.empty(len(advance), np.int8), np.empty(len(advance), np.int8)
    for p in range(len(advance)):
        at_end = advance[p] == advances
        cause[p] = AT_END if at_end else rows + advance[p]
        closed_by[p] = _END if at_end else _LATE if late[p] else _WATERMARK
        timing[p] = _TIMING[0] if late[p] else _TIMING[1]
    return cause, closed_by, timing


@kernel
def _first_rising(level: Ints, begin: int, value: int) -> int:
    if begin >= len(level) or level[begin] >= value:
        return begin
    # Most advances complete one pane, so levels mostly rise by 1, and the place is as far as the value. With a search
    # for it, panes that are far apart took three times as long.
    rise = value - level[begin]
    guess = begin + rise if 0 < rise < len(level) - begin else len(level)
    if level[guess - 1] < value:
        return first_from(level, guess, len(level), value)
    return first_from(level, begin + 1, guess - 1, value)


@kernel
def completed(bounds: Ints, pane: Ints, level: Ints) -> Ints:
    """Return for each pane the first advance at whose level it is complete; the number of advances if none."""
    out = np.empty(len(pane), np.int64)
    # panes ascend within a key and levels ascend, so the search goes on from the place of the pane before
    for s in range(len(bounds) - 1):
        for p in range(bounds[s], bounds[s + 1]):
            out[p] = _first_rising(level, out[p - 1] if p > bounds[s] else 0, pane[p])
    return out


@kernel
def places(first: Ints, pane: Ints, repeated_first: Ints, repeated: Ints) -> Ints:
    """Return the places of the outputs of late rows among all outputs: each after the on-time output of its pane."""
    out = np.empty(len(repeated), np.int64)
    for s in range(len(first) - 1):
        i = first[s]
        for j in range(repeated_first[s], repeated_first[s + 1]):
            i = first_from(pane, i, first[s + 1], repeated[j] + 1)
            out[j] = i + j
    return out


@kernel
def ranks(bounds: Ints, pane: Ints) -> tuple[Ints, Ints]:
    """Return the rank of each output among those of its key, and among those of its pane."""
    number = np.empty(len(pane), np.int64)
    index = np.zeros(len(pane), np.int64)
    for s in range(len(bounds) - 1):
        begin = bounds[s]
        for p in range(begin, bounds[s + 1]):
            number[p] = p - begin
            if p > begin and pane[p] == pane[p - 1]:
                index[p] = index[p - 1] + 1
    return number, index


@kernel
def entry_runs(
    bounds: Ints,
    first: Ints,
    late: Ints,
    last: Ints,
    epoch: Ints,
    shown_bounds: Ints,
    pane: Ints,
    advance: Ints,
    room: int,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return row, enter and leave of each run of outputs that shows a row, and the bounds of the keys among them."""
    row = np.empty(room, np.int64)
    enter = np.empty(room, np.int64)
    leave = np.empty(room, np.int64)
    first_entry = np.zeros(len(bounds), np.int64)
    count = 0
    for s in range(len(bounds) - 1):
        end = shown_bounds[s + 1]
        place = shown_bounds[s]
        for i in range(bounds[s], bounds[s + 1]):
            if first[i] > last[i]:
                continue
            if place > shown_bounds[s] and pane[place - 1] >= first[i]:
                place = shown_bounds[s]
            place = first_from(pane, place, end, first[i])
            begin = place
            mine = count
            # A late row is in the outputs of a pane from the first advance after it on, so each late pane is a run
            # of its own, unless it continues the run before it.
            for k in range(first[i], late[i] + 1):
                behind = first_from(pane, begin, end, k + 1)
                own = first_from(advance, begin, behind, epoch[i])
                if count > mine and leave[count - 1] == own:
                    leave[count - 1] = behind
                else:
                    row[count], enter[count], leave[count] = i, own, behind
                    count += 1
                begin = behind
            if late[i] < last[i]:
                # The outputs of the panes that are on time are one run. Each pane has at least one output and few
                # have more, so the search for its end begins at one output a pane.
                behind = first_from(pane, begin + last[i] - late[i], end, last[i] + 1)
                if count > mine:
                    leave[count - 1] = behind
                else:
                    row[count], enter[count], leave[count] = i, begin, behind
                    count += 1
        first_entry[s + 1] = count
    return row[:count], enter[:count], leave[:count], first_entry


# Event-time panes: intervals of event time, each complete when the watermark passes its end (semantics section 5).
#
# The advance of the watermark that completes a pane of a key emits it with the rows that were on time; the next
# advance after each late row emits it again. So an *output* is a pane and an advance. Outputs are sorted by pane,
# then advance, because a row is in all outputs of a pane from its first one on: the outputs of a row that was on time
# for all its panes are one contiguous run.


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


def _outputs(bounds: Ints, rows: _Rows, level: Ints) -> _Outputs:
    """Return all outputs: for each key the panes with rows on time, and for each of its epochs those with late rows."""
    first, pane = united(bounds, rows.late + 1, rows.last, _check_count)
    on_time = _Outputs(first, pane, completed(first, pane, level), np.zeros(len(pane), np.bool_))
    late = np.flatnonzero(rows.first <= rows.late)
    if not len(late):
        return on_time
    key, epoch = np.searchsorted(bounds, late, side="right") - 1, rows.epoch[late]
    starts = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(epoch) != 0)))
    groups, pane = united(np.append(starts, len(late)), rows.first[late], rows.late[late], _check_count)
    group = np.repeat(starts, np.diff(groups))
    ascending = np.lexsort([epoch[group], pane, key[group]])
    first = np.searchsorted(key[group], np.arange(len(bounds)))
    repeated, repeats = pane[ascending], epoch[group][ascending]
    _check_count(len(on_time.pane) + len(repeated))
    is_late = np.zeros(len(on_time.pane) + len(repeated), np.bool_)
    is_late[places(on_time.bounds, on_time.pane, first, repeated)] = True
    panes, advances = np.empty(len(is_late), np.int64), np.empty(len(is_late), np.int64)
    panes[~is_late], panes[is_late] = on_time.pane, repeated
    advances[~is_late], advances[is_late] = on_time.advance, repeats
    return _Outputs(on_time.bounds + first, panes, advances, is_late)


def _membership(bounds: Ints, rows: _Rows, shown: _Outputs) -> Memberships:
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
    if count > _MOST:
        raise DataError(f"{count:,} panes would come out of one slice", "use a longer creationPeriod")


def _after_marks(sequences: Sequences, epoch: Ints, panes: Panes) -> Ints:
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    place = sequences.bounds[panes.key + 1]
    for key in np.flatnonzero(np.diff(first)):
        own, begin, end = slice(first[key], first[key + 1]), sequences.bounds[key], sequences.bounds[key + 1]
        mark = panes.cause[own] - len(sequences)
        behind = begin + np.searchsorted(epoch[begin:end], mark, side="right")
        place[own] = np.where(panes.cause[own] == AT_END, end, behind)
    return place


def _after_last(panes: Panes, order: Ints, closing: Ints, rows: int) -> Ints:
    lives = memberships_of(panes.membership)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    counts = lives.leave - lives.enter
    row = np.repeat(lives.row, counts)
    pane = np.repeat(lives.enter - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    at_closing = panes.cause[pane] - rows == closing[row]
    latest = np.full(rows, NEVER)
    np.maximum.at(latest, row[at_closing], rank[pane[at_closing]])
    return np.append(order, NEVER)[latest]


def _next_steps(
    sequences: Sequences, epoch: Ints, panes: Panes, order: Ints, place: Ints, steps: Mask, rest: Ints, closing: Ints
) -> tuple[Ints, Ints]:
    """Return the next pane, or the next row with a step, after the advance ``closing``; one of them is `NEVER`.

    ``rest``: int64 (R,), the rows that look for one. ``steps``: bool (n,), rows with a step in this run.
    """
    n, key_of_row = len(sequences), np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds))
    size = 2 + max(int(numbers.max(initial=0)) for numbers in (epoch, panes.cause - n, closing))
    wanted = key_of_row[rest] * size + closing + 1
    at_signal = order[panes.cause[order] != AT_END]
    pane = np.searchsorted(panes.key[at_signal] * size + panes.cause[at_signal] - n, wanted)
    stepping = np.flatnonzero(steps)
    row = np.searchsorted(key_of_row[stepping] * size + epoch[stepping], wanted)
    pane, row = np.append(at_signal, NEVER)[pane], np.append(stepping, NEVER)[row]
    pane[np.append(panes.key, -1)[pane] != key_of_row[rest]] = NEVER
    row[np.append(key_of_row, -1)[row] != key_of_row[rest]] = NEVER
    is_pane = (pane != NEVER) & ((row == NEVER) | (np.append(place, n)[pane] <= row))
    return np.where(is_pane, pane, NEVER), np.where(is_pane, NEVER, row)


@dataclass(frozen=True, slots=True)
class EventTimeKind(WindowKind):
    """Event-time panes.

    The event time is an option, and no attribute; it is the clock, and not the order column, since rows are in arrival
    order.
    """

    spec: TimeInterval
    needs: Needs

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        return PaneTimes(bounds=make_intervals(clock, self.spec).type)

    def _bound(self, sequences: Sequences, context: WindowContext) -> tuple[Intervals, Measures]:
        """Return the panes on the event time of some rows, and its values."""
        assert context.event_time is not None
        column = combined(sequences.rows.column(context.event_time))
        return make_intervals(column.type, self.spec), clock_values(column, context.event_time)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the outputs, including those that only the end of the data emits.

        ``sequences``: rows in arrival order, or ordered by the event time; rows late beyond repair must be left out
        before, and rows that no interval holds are in no pane. ``signals``: the advances, in order; they are all that
        it knows of the rows of other tasks. The panes of a key are sorted by interval and ``index``, and numbered by
        cause and interval.

        Raises `DataError` where outputs or bounds do not fit, `ConfigError` where a row is in too many panes.
        """
        assert signals.watermarks is not None
        intervals, values = self._bound(sequences, context)
        epoch, levels = epochs(sequences, signals.marks), signals.watermarks.level
        first, last = intervals.holding(values)
        level = np.append(levels, NO_LEVEL)[epoch - 1]  # epoch 0 takes the last
        rows = _Rows(first, np.minimum(np.maximum(level, first - 1), last), last, epoch)
        shown = _outputs(sequences.bounds, rows, levels)
        key = np.repeat(np.arange(len(shown.bounds) - 1), np.diff(shown.bounds))
        number, index = ranks(shown.bounds, shown.pane)
        # The rank among the outputs of the key is by advance, then pane. The order is stable, so the panes of one
        # advance stay in order; without late rows nothing is sorted.
        order = pair_order(key, shown.advance)
        if order is not None:
            number[order] = number.copy()
        start, end = intervals.bounds(shown.pane)
        cause, closed_by, timing = causes(shown.advance, shown.late, len(levels), len(sequences))
        membership, outputs = _membership(sequences.bounds, rows, shown), Outputs(timing, index)
        return Panes(key, number, membership, cause, closed_by, start, end, outputs=outputs), signals.marks

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Return when rows enter and leave: a row enters by itself, and leaves when its last interval is closed.

        No further row can enter that interval then, so no pane will show the row again. It leaves after the pane that
        this advance of the watermark triggers; where there is none, with the next step of its key. Neither depends on
        rows to come, so incremental runs give the same steps as one run.
        """
        intervals, values = self._bound(sequences, context)
        first, last = intervals.holding(values)
        epoch = epochs(sequences, signals.marks)
        order = np.lexsort([panes.number, panes.key])
        place = _after_marks(sequences, epoch, panes)
        closing = np.searchsorted(self._closed(signals, intervals.scale.per_second is None, context), last)
        closing[(closing == len(signals)) | (first > last)] = NEVER
        leaving = _after_last(panes, order, closing, len(sequences))
        is_new = first <= last
        if context.restored is not None:
            is_new &= context.restored.is_new(sequences.bounds)
        rest = np.flatnonzero((closing != NEVER) & (leaving == NEVER))
        outdated, driven = np.full(len(sequences), NEVER), np.full(len(sequences), NEVER)
        outdated[rest], driven[rest] = _next_steps(sequences, epoch, panes, order, place, is_new, rest, closing[rest])
        steps = steps_of_rows(place, len(sequences))
        return replace(steps, stepping=first <= last, driven=driven, leaving=leaving, outdated=outdated)

    def _closed(self, signals: Signals, is_float: bool, context: WindowContext) -> Ints:
        """Return the last interval closed after each advance: the discard age in whole periods before the level."""
        assert signals.watermarks is not None
        level, age = signals.watermarks.level, self.spec.discard_age
        if context.in_event_order or not age:
            return level
        # the bounds of a float clock are rounded, and so is what is late
        behind = math.ceil(age / self.spec.period) + is_float
        return np.where(level < NO_LEVEL + behind, NO_LEVEL, level - min(behind, 2**62))

    def lateness(self, dtype: pa.DataType, lag: Fraction, min_gap: Fraction) -> Lateness:
        return make_lateness(dtype, self.spec, lag, min_gap)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        intervals, values = self._bound(sequences, context)
        return intervals.grid.cells(values)

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        intervals, values = self._bound(sequences, context)
        first, last = intervals.holding(values)
        return (first <= last) & (last > context.last_closed)

    def last_closed(self, signals: Signals, context: WindowContext) -> int:
        if signals.watermarks is None or not len(signals):
            return NO_LEVEL
        level = int(signals.watermarks.level[-1])
        if context.in_event_order:
            return level
        return max(NO_LEVEL, level - math.ceil(self.spec.discard_age / self.spec.period) - 1)

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield what the watermark did, all outputs of the same pane, and the rows next to its bounds."""
        start, end, closed_by = pane.head_text("window_start"), pane.head_text("window_end"), pane.closed_by
        yield Fact("opened", f"it holds the rows of its key from {start} to before {end}", None, None)
        cause, marks, lag = int(pane.panes.cause[pane.at]), pane.marks, pane.context.lag
        at, pos, text = cause - len(pane.sequences), None, f"the watermark reached {end}"
        if closed_by == "end":
            text = "the end of the data sent the watermark to infinity"
        elif cause != BY_TICK and 0 <= at < len(marks):
            behind, pos = f", {exact_text(lag)} s behind it" if lag else "", int(marks.pos[at])
            text = f"the row with arrival position {pos} raised the watermark{behind} to {end} or later"
            text += ": it had been complete, and got rows since" if pane.head_text("index") != "0" else ""
        yield Fact("closed", text, pos, closed_by)
        starts = combined(pane.head.column("window_start"))
        same = np.flatnonzero(pc.equal(starts, starts[pane.at])).tolist()
        for before, at in zip([None, *same], same, strict=False):
            each = pane.pane(at)
            is_late = each.head_text("timing") == "late"
            if len(same) > 1 or is_late:
                which = f"output {each.head_text('index')}, window {each.head_text('window')},"
                which, late = "this output" if at == pane.at else which, ", late" if is_late else ""
                came = 0 if before is None else len(np.setdiff1d(each.rows, pane.rows_of(before)))
                since = "" if before is None else f"; {row_count(came)} came since the one before"
                yield Fact("late", f"{which} has {row_count(len(each.rows))}{late}{since}", None, each.closed_by)
        if len(pane.rows):
            yield from self._beside(pane, start, end)

    def _beside(self, pane: KeyPane, start: str, end: str) -> Iterator[Fact]:
        name = pane.context.event_time
        assert name is not None
        kind, times = pane.column(name).type, measures(pane.column(name))
        inside, starts, ends = times[pane.rows], pane.head.column("window_start"), pane.head.column("window_end")
        below, above = np.flatnonzero(times < inside.min()), np.flatnonzero(times > inside.max())
        near: list[tuple[int, Amount, str]] = []
        if len(below):
            row = int(below[np.argmax(times[below])])
            near.append((row, pane.below(starts[pane.at], name, row), f"before it starts, {start}"))
        if len(above):
            row = int(above[np.argmin(times[above])])
            near.append((row, -pane.below(ends[pane.at], name, row), f"at or after its end, {end}"))
        for row, apart, where in near:
            value, amount = pane.text(name, row), amount_text(kind, apart)
            yield pane.near(f"the nearest row {where}, has {name} {value}: {amount} away", row, None, apart)


def event_time_kind(spec: TimeInterval) -> EventTimeKind:
    """Return event-time panes as a kind."""
    needs = Needs(
        go_on=False,
        watermark=True,
        partitioned=spec.partitioned,
        options=frozenset({"event time"}),
        cells=True,
        rows_out_per_row=max(Fraction(1), spec.duration / spec.period),
    )
    return EventTimeKind(spec, needs)
