"""The scan: sequences in, result rows out. Everything else moves bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.watermark import NO_LEVEL
from ..columns.arrays import ClockValue, Ints, Mask, combined
from ..columns.numeric import measures
from ..emit.result_tables import emitted_panes, mark_rows, result_tables, tick_rows
from ..kinds.context import WindowContext
from ..kinds.eviction.evictions import evictions
from ..kinds.tumbling.clock_windows import empty_ticks
from ..language.spec import Batched, Calendar, Sliding, Time, Tumbling
from ..panes.membership import Membership, shown, take
from ..panes.panes import AT_END, MarkOnly, Panes, reason
from ..planning.plan import Plan
from ..sequences.marks import Marks, unoccupied
from ..sequences.sequence import Sequences
from ..state.window_state import RestoredState, WindowState
from .dispatch import panes_of
from .emitted_panes import already_emitted, marks_already_emitted, renumbered, with_previous_pane
from .retained_rows import snapshot
from .row_weights import row_weights
from .signals import Signals


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found: the ``tables`` of the result, to be gone through once, and the account of its rows.

    ``windowed``: rows that some pane shows, and none of a run before did; ``dropped``: that only the end would have
    shown, under ``--at-end drop``; ``held``: rows carried on that no pane has shown yet; ``filtered``: all others.
    ``open``: how many windows the end of the data would bring out, and the end of this run does not.
    ``by_mark``: for each pane that a mark brought out, which mark it was. ``carry``: what the next run goes on with,
    where there is going to be one.
    """

    tables: Iterator[pa.Table]
    windows: int
    open: int
    windowed: int
    dropped: int
    filtered: int
    held: int
    by_mark: Ints
    state: WindowState | None


@dataclass(frozen=True, slots=True)
class RunExtent:
    """Where the rows of a run begin and end in time, as all keys have it.

    ``clock``: where the one clock stands at the end, in measures of the clock column; None: at the largest value of the
    rows. ``since``: where it stood before them; None: nowhere. ``dead``: of event-time panes the last that no row can
    get into any more. ``keeps``: whether another run is to go on from the end of this one.
    """

    clock: ClockValue | None = None
    since: ClockValue | None = None
    last_closed: int = NO_LEVEL
    is_continued: bool = False


WHOLE_INPUT = RunExtent()
"""One run over everything."""


def scan(
    plan: Plan,
    sequences: Sequences,
    signals: Signals,
    bounds: RunExtent = WHOLE_INPUT,
    past: RestoredState | None = None,
) -> ScanResult:
    """Compute all panes of some sequences and what comes out of them.

    ``past``: what of them has been seen before; None: nothing. Mark-only rows of ``punct()`` and ``--empty mark`` are
    left to `empty_mark_rows` and `empty_tick_rows`, for whether a mark or tick is empty is known only of all keys
    together.
    """
    options = plan.options
    setting = replace(context_of(plan), clock=bounds.clock, since=bounds.since, restored=past)
    signals = _with_evictions(plan, sequences, signals, setting)
    panes, marks = panes_of(plan.spec, sequences, signals, setting)
    rows = len(sequences)
    is_new = np.ones(len(panes), np.bool_) if past is None else ~already_emitted(plan.spec, panes, past, sequences)
    is_end = panes.closed_by == reason("end")
    told = np.flatnonzero(is_new if options.at_end == "flush" else is_new & ~is_end)
    carry = None
    if bounds.is_continued:
        carry = snapshot(
            plan.spec, compares_with_previous_pane(plan), sequences, signals, setting, panes, told, bounds.last_closed
        )
    told_contents = panes.membership if len(told) == len(panes) else take(panes.membership, told)
    account = _row_account(plan, sequences, panes.membership, is_new, told_contents, past, carry)
    panes = replace(
        _emitted(plan, sequences, panes, told, past), marks_only=_emitted_marks(plan, sequences, panes.marks_only, past)
    )
    windows = len(panes) if past is None else int(np.count_nonzero(panes.number >= 0))
    tables = result_tables(plan, sequences, marks, panes)
    if windows < len(panes):
        tables = _without_previous_pane(tables)
    by_mark = panes.cause[panes.cause >= rows] - rows
    by_mark = by_mark[by_mark < len(signals)]
    still_open = int(np.count_nonzero(is_end)) if options.at_end == "hold" else 0
    return ScanResult(tables, windows, still_open, *account, by_mark, carry)


def context_of(plan: Plan) -> WindowContext:
    """What a scan is told of its options."""
    options = plan.options
    return WindowContext(
        origin=options.origin,
        empty=options.empty,
        partial=options.partial,
        event_time=options.event_time,
        emit_evicted=options.emit_evicted,
        hold=options.at_end == "hold",
    )


def _with_evictions(plan: Plan, sequences: Sequences, signals: Signals, setting: WindowContext) -> Signals:
    """Decide which keys are evicted, unless that was done for all keys together."""
    spec = plan.spec
    if signals.evictions is not None or not isinstance(spec, Tumbling | Sliding) or spec.eviction is None:
        return signals
    return replace(signals, evictions=evictions(spec, sequences, signals.marks, setting))


def _emitted(plan: Plan, sequences: Sequences, panes: Panes, told: Ints, past: RestoredState | None) -> Panes:
    """The panes that come out, numbered on from those of the run before."""
    if past is None:
        return emitted_panes(plan, sequences, panes if len(told) == len(panes) else panes.take(told))
    before = np.bincount(panes.key, minlength=len(past.restored_rows)) - np.bincount(
        panes.key[told], minlength=len(past.restored_rows)
    )
    ends = np.bincount(panes.key[panes.closed_by == reason("end")], minlength=len(past.restored_rows))
    before -= ends if plan.options.at_end != "flush" else 0
    panes = renumbered(panes.take(told), past.key_state.windows - before)
    if compares_with_previous_pane(plan):
        panes = with_previous_pane(panes, past.row_state.last, sequences)
    return emitted_panes(plan, sequences, panes)


def compares_with_previous_pane(plan: Plan) -> bool:
    """Whether what a pane gives depends on what the pane before it of its key showed."""
    changes = isinstance(plan.spec, Batched) and bool(plan.options.group_by)
    return changes or plan.options.emit in {"entered", "left"}


def _without_previous_pane(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Leave out what comes of the panes that `with_previous_pane` puts before others."""
    for table in tables:
        yield table.filter(pc.greater_equal(table.column("window"), 0).fill_null(True))


def _emitted_marks(
    plan: Plan, sequences: Sequences, bare: MarkOnly | None, past: RestoredState | None
) -> MarkOnly | None:
    """The marks without rows that come out."""
    if bare is None:
        return None
    told = np.ones(len(bare.cause), np.bool_)
    if past is not None:
        told &= ~marks_already_emitted(plan.spec, bare, past, sequences)
    if plan.options.at_end != "flush":
        told &= bare.cause != AT_END
    picks = np.flatnonzero(told)
    return MarkOnly(bare.cause[picks], None if bare.at is None else bare.at.take(pa.array(picks)))


def _row_account(
    plan: Plan,
    sequences: Sequences,
    contents: Membership,
    is_new: Mask,
    told: Membership,
    past: RestoredState | None,
    carry: WindowState | None,
) -> tuple[int, int, int, int]:
    """Rows windowed, dropped at the end, filtered and held.

    ``contents``: of all panes. Those that are not new are a guess at what came before, and may be none.
    """
    at_end, weights = plan.options.at_end, row_weights(plan, sequences)
    if past is None and at_end != "hold":
        placed = weights.shown(contents)
        windowed = weights.shown(told) if at_end == "drop" else placed
        return windowed, placed - windowed, weights.total - placed, 0
    rows = weights.rows
    before = np.zeros(rows, np.bool_) if past is None else past.row_state.shown
    windowed = weights.of(shown(told, rows) & ~before)
    held = 0 if carry is None else row_weights(plan, carry.sequences).of(~carry.row_state.shown)
    dropped = 0
    if at_end == "drop":
        placed_now = shown(take(contents, np.flatnonzero(is_new)), rows)
        dropped = weights.of(placed_now & ~shown(told, rows) & ~before)
    return windowed, dropped, weights.total - weights.of(before) - windowed - dropped - held, held


def empty_mark_rows(plan: Plan, marks: Marks, by_mark: Ints) -> pa.Table:
    """Return mark-only rows for marks that found no key with rows (``punct()``)."""
    return mark_rows(plan, marks, unoccupied(by_mark, len(marks)))


def empty_tick_rows(plan: Plan, sequences: Sequences, bounds: RunExtent = WHOLE_INPUT) -> pa.Table:
    """Return mark-only rows for ticks that found no key with rows (``--empty mark``)."""
    assert isinstance(plan.spec, Tumbling)
    assert isinstance(plan.spec.policy, Time | Calendar)
    setting = WindowContext(bounds.clock, bounds.since, origin=plan.options.origin)
    return tick_rows(plan, empty_ticks(plan.spec.policy, sequences, setting))


def falls_of(plan: Plan, sequences: Sequences) -> int:
    """Return how often the watched attribute is smaller than in the row before it of the same key."""
    name = plan.watches_falls
    if name is None or len(sequences) < 2:
        return 0
    values = measures(combined(sequences.rows.column(name)))
    falls = values[1:] < values[:-1]
    starts = sequences.bounds[1:-1]
    falls[starts - 1] = False
    return int(np.count_nonzero(falls))
