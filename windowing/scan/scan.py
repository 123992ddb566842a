"""The scan: sequences in, result rows out. Everything else moves bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.interval_grid import clock_values
from ..clock.watermark import highest
from ..columns.arrays import ClockValue, Ints, Mask, combined, measures
from ..emit.aggregate_rows import can_combine, combine
from ..emit.operator_scenes import OperatorRun, no_outcome
from ..emit.result_columns import HiddenPanes, stream_values
from ..emit.result_tables import emitted_panes, mark_rows, pane_columns, result_tables, tick_rows
from ..emit.values_over_time import values_over_time
from ..kinds.context import Signals, WindowContext
from ..planning.plan import Plan
from ..rows.marks import Marks, epochs, unoccupied
from ..rows.membership import Ranges, ranges, take
from ..rows.panes import AT_END, NO_REJECTS, ContinuedWindow, MarkOnly, Panes, reason, rows_shown
from ..rows.sequence import Sequences, change_starts
from ..state.window_state import RestoredState, WindowState
from .operator_scan import (
    OperatorScan,
    ScanResult,
    already_emitted,
    caused_before,
    emission_of,
    settle,
    snapshot,
    with_previous_pane,
)
from .row_validation import is_ordered_by_time, is_read_in_order

# Row weights: how many rows of the input a row of a scan stands for. It is 1 unless rows have been combined.


@dataclass(frozen=True, slots=True)
class RowWeights:
    """The weights of the rows of a scan.

    ``rows``: number of rows.
    ``each``: int64 (n,), how many rows of the input each stands for; None: each for itself.
    ``first``: how many the first stands for where ``each`` is None.
    """

    rows: int
    each: Ints | None
    first: int = 1

    @property
    def total(self) -> int:
        return self.rows - 1 + self.first if self.each is None else int(self.each.sum())

    def of(self, some: Mask) -> int:
        """Return how many rows of the input some rows stand for. ``some``: bool (n,)."""
        if self.each is not None:
            return int(self.each[some].sum())
        return int(np.count_nonzero(some)) + (self.first - 1) * bool(some[:1].any())

    def shown(self, panes: Panes) -> int:
        """Return how many rows of the input those rows stand for that at least one pane shows."""
        membership, is_plain = panes.membership, panes.pairs is None and self.each is None
        # else a row may have several entries
        if is_plain and isinstance(membership, Ranges) and membership.disjoint and membership.row is None:
            has_first = ((membership.lo == 0) & (membership.hi > 0)).any()
            return int((membership.hi - membership.lo).sum()) + (self.first - 1) * bool(has_first)
        return self.of(rows_shown(panes, self.rows))


def row_weights(plan: Plan, sequences: Sequences, continued: ContinuedWindow | None = None) -> RowWeights:
    """Return the weights of the rows of some sequences. ``continued``: what the first row stands for, if for others."""
    if continued is not None:
        return RowWeights(len(sequences), None, continued.rows)
    each = None if plan.weight is None else combined(sequences.rows.column(plan.weight)).to_numpy()
    return RowWeights(len(sequences), each)


def scan(plan: Plan, sequences: Sequences, signals: Signals, context: WindowContext, is_continued: bool) -> ScanResult:
    """Compute all panes of some sequences and the result rows of those that come out.

    ``is_continued``: whether another run restores the state of this one. Mark-only rows of ``punct()`` and ``--empty
    mark`` are left to `mark_only_rows`: whether a mark or tick is empty depends on all keys.
    """
    options, restored = plan.options, context.restored
    if signals.evictions is None and plan.kind.needs.eviction is not None:  # else the global pass has decided them
        signals = replace(signals, evictions=plan.kind.evictions(sequences, signals.marks, context))
    panes, marks = plan.kind.panes(sequences, signals, context)
    rows = len(sequences)
    is_new = (
        np.ones(len(panes), np.bool_) if restored is None else ~already_emitted(plan.kind, panes, context, sequences)
    )
    is_end = panes.closed_by == reason("end")
    emitted = np.flatnonzero(is_new if options.at_end == "flush" else is_new & ~is_end)
    hidden = HiddenPanes()
    emitted_here = replace(
        _emitted(plan, sequences, panes, emitted, restored),
        marks_only=_emitted_marks(plan, sequences, panes.marks_only, context),
    )
    emitted_here, ongoing = values_over_time(plan, sequences, signals, context, panes, emitted_here)
    if options.operator:
        if context.clock is None:
            context = replace(context, clock=latest(plan, sequences.rows))
        outcome = no_outcome(sequences)
        done = OperatorScan(plan, sequences, signals, context, panes, is_continued, outcome)
        run = OperatorRun(signals, context, partial(_described, plan), is_continued and context.hold, outcome)
        tables = result_tables(plan, sequences, marks, emitted_here, hidden, run)
        nothing = np.empty(0, np.int64)
        undecided = ScanResult(tables, 0, hidden, 0, 0, 0, 0, 0, nothing, None, panes.rejects or NO_REJECTS)
        return replace(undecided, settle=cache(partial(settle, done, undecided)))
    state = None
    if is_continued:
        looks_back = compares_with_previous_pane(plan)
        emission = emission_of(looks_back, sequences, context, panes, emitted)
        state = snapshot(plan.kind, sequences, signals, context, panes, emission)
        if context.hold and ongoing is not None:
            state = replace(state, key_state=replace(state.key_state, ongoing=ongoing))
    windowed, dropped, filtered, held = _row_account(plan, sequences, panes, is_new, emitted, restored, state)
    rejects = panes.rejects or NO_REJECTS
    row_account = windowed, dropped, filtered - len(rejects), held
    panes = emitted_here
    windows = len(panes) if restored is None else int(np.count_nonzero(panes.number >= 0))
    tables = result_tables(plan, sequences, marks, panes, hidden)
    if windows < len(panes):
        # without the pane before them
        tables = (table.filter(pc.greater_equal(table.column("window"), 0).fill_null(True)) for table in tables)
    by_mark = np.empty(0, np.int64)
    if plan.takes_marks:
        by_mark = panes.cause[panes.cause >= rows] - rows
        by_mark = by_mark[by_mark < len(signals)]
    still_open = int(np.count_nonzero(is_end)) if options.at_end == "hold" else 0
    return ScanResult(tables, windows, hidden, still_open, *row_account, by_mark, state, rejects)


def latest(plan: Plan, rows: pa.RecordBatch) -> ClockValue | None:
    """Return the largest value of the clock among rows; None where there are none, or nothing uses a clock."""
    if not plan.uses_clock or not rows.num_rows:
        return None
    return highest(clock_values(combined(rows.column(plan.sort[0])), plan.sort[0]))


def _described(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> tuple[Panes, pa.Table]:
    if plan.options.at_end != "flush":
        panes = panes.take(np.flatnonzero(panes.closed_by != reason("end")))
    panes = emitted_panes(plan, sequences, panes)
    return panes, pane_columns(plan, stream_values(plan, sequences, marks), sequences, panes)


def _emitted(plan: Plan, sequences: Sequences, panes: Panes, emitted: Ints, restored: RestoredState | None) -> Panes:
    if restored is None:
        return emitted_panes(plan, sequences, panes if len(emitted) == len(panes) else panes.take(emitted))
    before = np.bincount(panes.key, minlength=len(restored.restored_rows)) - np.bincount(
        panes.key[emitted], minlength=len(restored.restored_rows)
    )
    ends = np.bincount(panes.key[panes.closed_by == reason("end")], minlength=len(restored.restored_rows))
    before -= ends if plan.options.at_end != "flush" else 0
    panes = replace(panes, continued=restored.continued).take(emitted)
    panes = replace(panes, number=panes.number + (restored.key_state.windows - before)[panes.key])
    if compares_with_previous_pane(plan):
        panes = with_previous_pane(panes, restored.row_state.last, sequences)
    return emitted_panes(plan, sequences, panes)


def compares_with_previous_pane(plan: Plan) -> bool:
    """Whether the result of a pane depends on what the pane before it of its key showed."""
    changes = plan.kind.needs.changes_of_groups and bool(plan.options.group_by)
    return changes or (plan.options.emit in {"entered", "left"} and plan.pairs is None)


def _emitted_marks(
    plan: Plan, sequences: Sequences, marks_only: MarkOnly | None, context: WindowContext
) -> MarkOnly | None:
    if marks_only is None:
        return None
    emitted = np.ones(len(marks_only.cause), np.bool_)
    if context.restored is not None:
        emitted &= ~caused_before(plan.kind, marks_only.cause, marks_only.at, context, sequences)
    if plan.options.at_end != "flush":
        emitted &= marks_only.cause != AT_END
    picks = np.flatnonzero(emitted)
    return MarkOnly(marks_only.cause[picks], None if marks_only.at is None else marks_only.at.take(pa.array(picks)))


def _row_account(
    plan: Plan,
    sequences: Sequences,
    panes: Panes,
    is_new: Mask,
    emitted: Ints,
    restored: RestoredState | None,
    state: WindowState | None,
) -> tuple[int, int, int, int]:
    """Count the rows windowed, dropped at the end, filtered and held.

    ``panes``: all panes. Those that are not new only approximate those of earlier runs, and may be missing.
    ``emitted``: which of them came out.
    """
    continued = None if restored is None else restored.continued
    at_end, weights = plan.options.at_end, row_weights(plan, sequences, continued)
    rows, came_out = weights.rows, _some(panes, emitted)
    if restored is None and at_end != "hold":
        placed = weights.shown(panes)
        windowed = weights.shown(came_out) if at_end == "drop" else placed
        return windowed, placed - windowed, weights.total - placed, 0
    before = np.zeros(rows, np.bool_) if restored is None else restored.row_state.shown
    shown = rows_shown(came_out, rows)
    windowed = weights.of(shown & ~before)
    held = 0 if state is None else row_weights(plan, state.sequences).of(~state.row_state.shown)
    dropped = 0
    if at_end == "drop":
        placed_now = rows_shown(_some(panes, np.flatnonzero(is_new)), rows)
        dropped = weights.of(placed_now & ~shown & ~before)
    return windowed, dropped, weights.total - weights.of(before) - windowed - dropped - held, held


def _some(panes: Panes, picks: Ints) -> Panes:
    """Return the panes at ``picks``, ascending, for a look at what they show alone."""
    if len(picks) == len(panes):
        return panes
    if panes.pairs is not None:
        return replace(panes, pairs=panes.pairs.chosen(picks))
    return replace(panes, membership=take(panes.membership, picks))


def mark_only_rows(
    plan: Plan, scanned: ScanResult, sequences: Sequences, marks: Marks, context: WindowContext
) -> Iterator[pa.Table]:
    """Yield the mark-only rows of a scan of all keys: for marks and ticks that found no key with rows.

    It needs no other scan to know them; after its tables.
    """
    if plan.options.plain:
        return
    if plan.takes_marks:
        yield empty_mark_rows(plan, marks, scanned.settled().by_mark)
    elif plan.options.empty == "mark":
        yield tick_rows(plan, plan.kind.empty_ticks(sequences, context))


def empty_mark_rows(plan: Plan, marks: Marks, by_mark: Ints) -> pa.Table:
    """Return mark-only rows for marks that found no key with rows (``punct()``)."""
    return mark_rows(plan, marks, unoccupied(by_mark, len(marks)))


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


# Map-side partial aggregation: rows of one key and cell are combined in the map task, before the exchange.
#
# A cell is the set of rows that are in the same panes of a window on a grid. Where rows may be late, those of a cell
# are combined that have the same watermark behind them, for an event-time pane comes out again with late rows. Rows
# are combined only where no aggregate depends on which of them came first. The scan treats combined rows as rows,
# with a plan whose aggregates do their final step; row accounting counts what each row stands for. Which rows were
# combined changes no bit of any result.


def can_preaggregate(plan: Plan, schema: pa.Schema) -> bool:
    """Whether rows of an input with this schema may be combined.

    They may for windows that the clock ends, and for ``timeInterval``, with aggregates that have a partial and a final
    step, where rows look at none before, and without groups. Not where a global pass decides which rows are late.
    """
    if plan.looks_back or plan.options.group_by:
        return False
    if plan.kind.needs.watermark and not (is_ordered_by_time(plan) or is_read_in_order(plan)):
        return False
    return can_combine(plan, schema, are_neighbours=False) and plan.kind.needs.cells


def preaggregate(plan: Plan, scan_plan: Plan, sequences: Sequences, marks: Marks) -> Sequences:
    """Combine rows that were read for ``plan`` into rows of ``scan_plan``, its `merging_plan`.

    A combined row takes the place in the order of the first of its rows. ``marks``: as in `cell_boundaries`.
    """
    starts = cell_boundaries(plan, sequences, marks)
    cells = ranges(starts, np.append(starts[1:], len(sequences)) if len(starts) else starts)
    rows = combine(plan, scan_plan, sequences.rows, cells)
    return replace(sequences, bounds=np.searchsorted(starts, sequences.bounds), rows=rows, pos=sequences.pos[starts])


def cell_boundaries(plan: Plan, sequences: Sequences, marks: Marks) -> Ints:
    """Return the rows that are in other panes than the row before them of their key: int64, ascending.

    ``marks``: the advances of the watermark among the rows, in order, where there is one. Between two of them all rows
    of a cell are late for the same panes, and come out with the same advances.
    """
    starts = change_starts(sequences.bounds, plan.kind.cells(sequences, plan.context))
    if not plan.kind.needs.watermark or is_ordered_by_time(plan):
        return starts
    return np.union1d(starts, change_starts(sequences.bounds, epochs(sequences, marks)))
