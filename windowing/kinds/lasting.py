"""Windows of the clock over rows that last: a row is in every window that it overlaps (semantics section 18).

A row lasts from its clock value to that of another column, half open; one of length 0 is in the window of its instant.
So a row of positive length is in the same windows whichever side of these is closed: those with which it shares time.
The windows are cells of the grid of a tumbling policy, and complete when the clock has reached their end, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, takewhile
from typing import Final

import numpy as np
import pyarrow as pa

from ..clock.grids import AnyGrid, RightClosed, clock_cell
from ..clock.interval_grid import clock_values
from ..columns.arrays import ClockValue, Ints, Mask, Measures, combined, is_measurable, is_number, measures, scale_of
from ..errors import ConfigError, DataError
from ..language.clock_policies import Calendar, Time
from ..language.spec import Lasting, Tumbling
from ..language.tokens import rows as row_count
from ..rows.marks import Marks
from ..rows.membership import Memberships, places_among, united
from ..rows.panes import Panes, reason
from ..rows.sequence import Sequences
from .context import Signals, WindowContext
from .contract import WindowKind
from .facts import Fact, KeyPane, amount_text
from .key_lifetimes import Lifetimes
from .needs import Explain, Needs, PaneTimes
from .tumbling.clock_policies import ClockPolicy, causes_by_clock, instants_after, ticks_without
from .tumbling.kind import TumblingKind, tumbling_kind

PANE_COLUMNS: Final = {"_overlap": pa.float64(), "_share": pa.float64()}
"""The columns that rows that last have in a window: the seconds of the row inside it, and the share."""
MOST_WINDOWS = 100_000
"""Over how many windows a row may last."""
_MOST_PANES = 60_000_000
_LONGEST = {"day": 25 * 3_600, "week": 7 * 86_400 + 3_600, "month": 31 * 86_400 + 3_600, "quarter": 93 * 86_400,
            "year": 367 * 86_400}  # fmt: skip


# The end of a row as the clock has it: in the type of the clock column, so that both are points of one grid.


def ends_as_clock(column: pa.Array, clock: pa.DataType) -> pa.Array:
    """Return the ends of rows in the type of the clock. The types go together, and no value is null or too large."""
    return column if column.type == clock else column.cast(clock)


def spans(spec: Lasting, rows: pa.RecordBatch, clock: str) -> tuple[Measures, Measures]:
    """Return from when to when each row lasts, measures of the clock column, both (n,)."""
    column, ends = combined(rows.column(clock)), spec.ends
    return clock_values(column, clock), clock_values(ends_as_clock(combined(rows.column(ends)), column.type), ends)


def check_ends(schema: pa.Schema, clock: str, ends: str) -> None:
    """Raise `ConfigError` where not every value of the column ``ends`` is one of the clock, in its type."""
    kinds = [schema.field(name).type for name in (clock, ends)]
    if kinds[0] == kinds[1] or any(map(pa.types.is_null, kinds)):
        return
    advice = f"read them alike, as with --schema, or cast one of them: --let {ends}_2='CAST({ends} AS ..)'"
    scales = [scale_of(kind).per_second for kind in kinds] if all(map(is_measurable, kinds)) else []
    fits = bool(scales) and is_number(kinds[0]) == is_number(kinds[1])
    fits &= all(pa.types.is_time(kind) is False and pa.types.is_duration(kind) is False for kind in kinds)
    fits &= pa.types.is_uint64(kinds[0]) == pa.types.is_uint64(kinds[1])
    if fits and not is_number(kinds[0]):
        fits = bool(getattr(kinds[0], "tz", None)) == bool(getattr(kinds[1], "tz", None))
    if fits and scales[0] is not None:
        fits = scales[1] is not None and (scales[0] / scales[1]).denominator == 1
    if not fits:
        what = f"--ends: {ends!r} is {kinds[1]} and {clock!r} is {kinds[0]}: these do not compare"
        raise ConfigError(what, advice)


def beyond_clock(column: pa.Array, clock: pa.DataType) -> Mask:
    """Return which ends do not fit the ticks of the clock, bool (n,); arbitrary at nulls."""
    of_clock, own = scale_of(clock).per_second, scale_of(column.type).per_second
    if of_clock is None or own is None or of_clock == own or pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    most = (2**63 - 1) // int(of_clock / own)
    return np.asarray(np.abs(measures(column)) > most)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The windows of n rows, all on one grid.

    ``grid``: with the side on which they are closed; ``left``: closed on the left.
    ``starts``: measures (n,), the values of the clock.
    ``first``, ``last``: int64 (n,), the first and the last window of each row, both inclusive.
    """

    grid: AnyGrid
    left: AnyGrid
    starts: Measures
    first: Ints
    last: Ints


@dataclass(frozen=True, slots=True)
class LastingKind(WindowKind):
    """A window over rows that last. ``inner``: the window, ``policy``: its policy."""

    spec: Lasting
    inner: TumblingKind
    policy: ClockPolicy
    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        self.inner.check_attribute(name, dtype, explain)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        return self.policy.times(clock, origin)

    def _cells(self, sequences: Sequences, context: WindowContext) -> _Cells:
        name = sequences.order[0]
        starts, ends = spans(self.spec, sequences.rows, name)
        # rows may last over years in which none begins, so no years are left out of a grid of dates
        every = replace(context, empty="row")
        grid = self.policy.grid(sequences.rows.schema.field(name).type, np.concatenate([starts, ends]), every)
        # a row is in the window of its last instant: the one before its end, where that is a bound
        before_ends = RightClosed(grid)
        if context.closed == "right":
            first = np.where(ends > starts, grid.cells(starts), before_ends.cells(starts))
        else:
            first = grid.cells(starts)
        last = np.maximum(first, before_ends.cells(ends))
        over = np.flatnonzero(last - first >= MOST_WINDOWS)
        if len(over):
            row, count = int(over[0]), int(last[over[0]] - first[over[0]]) + 1
            raise too_many(self.spec, sequences.rows, row, count, f"the row at arrival position {sequences.pos[row]}")
        return _Cells(before_ends if context.closed == "right" else grid, grid, starts, first, last)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        found = self._cells(sequences, context)
        bounds, lo, hi = sequences.bounds, found.first, found.last
        if context.empty == "row" and len(lo):  # one range from the first to the last window of each key
            filled = np.flatnonzero(np.diff(bounds))
            lo, hi = (each.reduceat(part, bounds[filled]) for each, part in ((np.minimum, lo), (np.maximum, hi)))
            bounds = np.searchsorted(filled, np.arange(len(bounds)))
        of_keys, cell = united(bounds, lo, hi, _check_count)
        kept = found.grid.lasting(cell)
        if not kept.all():
            of_keys, cell = np.append(0, np.cumsum(kept))[of_keys], cell[kept]
        key = np.repeat(np.arange(len(of_keys) - 1), np.diff(of_keys))
        number = np.arange(len(cell)) - np.repeat(of_keys[:-1], np.diff(of_keys))
        enter, leave = places_among(sequences.bounds, found.first, found.last, of_keys, cell)
        rows = Memberships(np.arange(len(sequences)), enter, leave, sequences.bounds, of_keys)
        complete = np.empty(0, np.bool_)
        if len(cell):
            complete = cell < clock_cell(found.grid, found.starts, context.clock)
        cause, closed_by = causes_by_clock(complete, np.int8(reason(self.policy.why)), np.int8(reason("end")))
        start, end = found.grid.bounds(cell), found.grid.bounds(cell + 1)
        return Panes(key, number, rows, cause, closed_by, start, end, at=end), signals.marks

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        found = self._cells(sequences, context)
        _, cells = united(np.array([0, len(found.first)]), found.first, found.last, _check_count)
        begin = None
        if context.since is not None:
            before = clock_cell(found.grid, found.starts[:0], context.since)
            # closed on the right, the window that ends where the clock stood may be empty: its tick had not come
            stood_on_bound = before != clock_cell(found.left, found.starts[:0], context.since)
            begin = before + (not (stood_on_bound and bool(len(cells)) and int(cells[0]) <= before))
        return ticks_without(cells, found.grid, found.starts, begin, context.clock)

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of windows to come; with ``--empty`` also one of the last window of each key."""
        found = self._cells(sequences, context)
        if not len(sequences):
            return np.zeros(0, np.bool_)
        now = clock_cell(found.grid, found.starts, context.clock)
        kept: Mask = found.last >= now
        if context.empty != "skip":  # decides how many empty windows lie between it and the next row
            counts = np.diff(sequences.bounds)
            filled = np.flatnonzero(counts)
            # closed on the right, a row that begins on the bound that the clock has reached is in no window up to it
            last = np.where(found.first <= now, found.last, np.iinfo(np.int64).min)
            of_last = last == np.repeat(np.maximum.reduceat(last, sequences.bounds[filled]), counts[filled])
            rows = np.flatnonzero(of_last)
            kept[rows[np.searchsorted(rows, sequences.bounds[filled + 1]) - 1]] = True
        return kept

    def check_lengths(self, rows: pa.RecordBatch, clock: str, picks: Ints | None, name: Callable[[int], str]) -> None:
        found = _longest_row(self, rows, clock, picks)
        if found is not None:
            row, count = found
            raise too_many(self.spec, rows, row, count, name(row))

    def begin_before(self, sequences: Sequences, context: WindowContext, of_clock: ClockValue | None) -> Mask:
        found = self._cells(sequences, context)
        if not len(sequences):
            return np.zeros(0, np.bool_)
        seen, clock = (found.starts, context.clock) if of_clock is None else (found.starts[:0], of_clock)
        return np.asarray(found.grid.cells(found.starts) < clock_cell(found.grid, seen, clock))

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        return facts_of(self.spec, pane)


def lasting_kind(spec: Lasting) -> LastingKind:
    """Return a window over rows that last as a kind."""
    assert isinstance(spec.window, Tumbling)
    inner, ends = tumbling_kind(spec.window), (spec.ends,)
    policy = inner.grid
    assert policy is not None
    needs = replace(
        inner.needs,
        attributes=(*inner.needs.attributes, *ends),
        required=(*inner.needs.required, *ends),
        ends=spec.ends,
        pane_columns=PANE_COLUMNS,
        overlaps=True,
        cells=False,
    )
    return LastingKind(spec, inner, policy, needs)


# Why a window has the rows that last into it.


def facts_of(spec: Lasting, pane: KeyPane) -> Iterator[Fact]:
    """Yield what it holds, what brought it out, and the rows of its key that are next to its bounds."""
    start, end, rule = pane.head_text("window_start"), pane.head_text("window_end"), pane.closed_by
    if not len(pane.rows):
        yield Fact("other", "no row of this key lasts into it; --empty writes such windows")
        return
    order, ends = pane.sequences.order[0], spec.ends
    begins, lasts = spans(spec, pane.sequences.rows, order)
    low, high = (
        measures(combined(pane.head.column(name)).slice(pane.at, 1).cast(pane.column(order).type, safe=False))[0]
        for name in ("window_start", "window_end")
    )
    before, behind = (int(np.count_nonzero(each)) for each in (begins[pane.rows] < low, lasts[pane.rows] > high))
    counts = {"before": str(before), "behind": str(behind)}
    text = f"it holds the rows of its key that last into the time from {start} to {end}: {row_count(before)} of "
    text += f"{len(pane.rows)} began before it, and {row_count(behind)} last on behind it"
    yield Fact("opened", text, pane.pos(int(pane.rows[0])), None, counts)
    passed = "passed" if pane.context.closed == "right" and pane.panes.source is not None else "reached"
    text = f"the clock {passed} {end}, where it ends"
    if rule == "end":
        text = "the end of the data brought it out: its rows last into it, and the clock had not reached its end"
    yield Fact("closed", text, None, rule, {} if rule == "end" else {"end": end})
    others = np.setdiff1d(np.arange(len(begins)), pane.rows)
    over, ahead = others[lasts[others] <= low], others[begins[others] >= high]
    if len(over):
        row = int(over[np.argmax(lasts[over])])
        apart = pane.below(pane.head.column("window_start")[pane.at], ends, row)
        amount = amount_text(pane.column(ends).type, apart)
        yield pane.near(f"{pane.name(row)} ended {amount} before it starts", row, rule, apart)
    if len(ahead):
        row = int(ahead[0])
        apart = -pane.below(pane.head.column("window_end")[pane.at], order, row)
        amount = amount_text(pane.column(order).type, apart)
        yield pane.near(f"{pane.name(row)} begins {amount} after its end", row, rule, apart)


# A row over very many windows: found as it is read, before its windows take time and memory.


def _longest_row(kind: LastingKind, rows: pa.RecordBatch, clock: str, picks: Ints | None) -> tuple[int, int] | None:
    """Return a row that lasts over too many windows, and over about how many; None: none does.

    ``picks``: int64, the rows that no reason rejects; None: all. Of dates it looks at the longest row alone.
    """
    rows = rows if picks is None else rows.take(pa.array(picks))
    starts, ends = spans(kind.spec, rows, clock)
    if not len(starts):
        return None
    lengths = ends.astype(np.float64) - starts.astype(np.float64)
    row, per_second = int(np.argmax(lengths)), scale_of(rows.schema.field(clock).type).per_second
    seconds = float(lengths[row]) / float(per_second or 1)
    count = _least_windows(kind.policy, float(starts[row]) / float(per_second or 1), seconds)
    if count <= MOST_WINDOWS:
        return None
    return (row if picks is None else int(picks[row])), count


def _least_windows(policy: ClockPolicy, begin: float, seconds: float) -> int:
    """Return how many windows a row overlaps at least. ``begin``: in epoch seconds; ``seconds``: its length."""
    value = policy.value
    if isinstance(value, Time):
        return int(seconds / float(value.seconds))
    if isinstance(value, Calendar):
        return int(seconds / _LONGEST[value.unit])
    if seconds < MOST_WINDOWS * 60:  # cron counts minutes
        return 0
    instants = takewhile(lambda instant: instant < begin + seconds, instants_after(value, int(begin)))
    return sum(1 for _ in islice(instants, MOST_WINDOWS + 1))


def too_many(spec: Lasting, rows: pa.RecordBatch, row: int, count: int, name: str) -> DataError:
    """Return the error of a row that lasts over too many windows. ``name``: which row it is."""
    until = rows.column(spec.ends).slice(row, 1).cast(pa.string())[0]
    window = spec.window.policy if isinstance(spec.window, Tumbling) else spec.window
    what = f"{name}: lasts until {until}, over {count:,} windows of {window}; the most is {MOST_WINDOWS:,}"
    return DataError(what, "leave such rows out with --where, or use longer windows")


def _check_count(count: int) -> None:
    if count > _MOST_PANES:
        raise DataError(f"{count:,} panes would come out of one slice", "use longer windows, or a smaller --slice-size")
