"""One segment of a sequence, scanned from what the segments before it leave, and what travels of an open window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, latest_clock
from ..emit.aggregate_rows import can_combine, combine_window, merging_plan
from ..kinds.context import Signals
from ..kinds.segment_summary import EntryState
from ..planning.plan import Plan, panes_only
from ..rows.panes import ContinuedWindow
from ..rows.sequence import Sequences, take_rows
from ..rows.sequence import concatenate as concatenate_sequences
from ..state.carry import Carry, Registers
from ..state.window_state import WindowState, fresh, no_row_state
from .continue_scan import End, continue_scan, retain
from .lag_rows import OrderedRows
from .operator_scan import ScanResult
from .scan import compares_with_previous_pane, latest


def can_be_cut(plan: Plan) -> bool:
    """Whether keys may be cut into segments; else each key stays whole."""
    options = plan.options
    if plan.looks_back or plan.over_time:  # the first rows of a segment look at rows of the one before
        return False
    if options.operator is not None or compares_with_previous_pane(plan) or options.empty == "mark":
        return False
    # Float aggregates of groups in panes that share rows may depend on cuts.
    if options.group_by and plan.kind.needs.shares_rows and not plan.pane_schema.names:
        return False
    if options.partial and not plan.key:  # mark-only rows come last in a result, so one task must write them
        return False
    return plan.kind.needs.can_cut


def entry_carry(
    plan: Plan, entry: EntryState, rows: Sequences, segment: Sequences, continued: ContinuedWindow | None = None
) -> Carry:
    """Return what the segments before one leave to it under a tumbling window.

    ``rows``: those of the window that is open, of earlier segments. ``continued``: as in `Carry`.
    """
    numbers = fresh(plan.kind.needs.baseline, segment.rows, 1)
    # nothing looks back beyond the first row of a window
    key_state = replace(numbers, rows=np.array([len(rows)]), windows=np.array([entry.windows]))
    state = WindowState(replace(rows, keys=segment.keys), key_state, no_row_state(len(rows)))
    return Carry(Registers(clock=entry.clock), state, continued=continued)


def scan_segment(plan: Plan, carry: Carry, segment: Sequences, signals: Signals, end: End) -> ScanResult:
    """Scan a segment from what the segments before it leave.

    ``signals``: those before the next segment. ``end``: of the whole run; it is continued by the next segment of the
    key. Rows that later segments may show are counted there: this segment's row accounting leaves them out, unless it
    is the last.
    """
    if end.is_continued:
        plan, end = replace(plan, options=replace(plan.options, at_end="hold")), replace(end, clock=None)
    return replace(continue_scan(plan, OrderedRows(segment), signals, carry, end).scanned, held=0)


def count_segment(plan: Plan, carry: Carry, segment: Sequences, signals: Signals) -> tuple[int, Ints]:
    """Count the panes of a segment that is not the last, and find the rows it shows that later segments may show again.

    Returns the count and the arrival positions of these rows, int64.
    """
    scanned = scan_segment(_quiet(plan), carry, segment, signals, End(is_continued=True))
    assert scanned.state is not None
    return scanned.windows, scanned.state.sequences.pos[scanned.state.row_state.shown]


def carry_behind(plan: Plan, carry: Carry, segment: Sequences, signals: Signals) -> Carry:
    """Return with what the next segment begins, where segments are chained (`Needs.is_chained`).

    ``carry``: with what this one begins. ``signals``: those before the next one. Unless segments are scanned in turn,
    what panes have shown, and how many they are, takes `count_segment`.
    """
    if not plan.kind.needs.in_turn:
        return retain(plan, segment, signals, carry)
    clock = latest_clock([latest(plan, segment.rows), carry.registers.clock])
    quiet = _quiet(plan)
    quiet = replace(quiet, options=replace(quiet.options, at_end="hold"))
    _, behind = continue_scan(quiet, OrderedRows(segment), signals, carry, End(clock, is_continued=True)).settle()
    return Carry(Registers(clock=clock, advances=signals.watermarks), behind.state)


def _quiet(plan: Plan) -> Plan:
    """Return the plan of the same panes without results; which panes of pairs there are depends on ``emit``."""
    quiet = panes_only(plan)
    return replace(quiet, options=replace(quiet.options, emit=plan.options.emit))


def open_before(earlier: Sequence[Sequences], segment: Sequences) -> Sequences:
    """Return the rows of the tumbling window that is open where a segment begins; ``earlier``: of those before it."""
    nothing = _empty_like(segment)
    filled = [part for part in earlier if len(part)]
    if len(filled) < 2:
        return (filled or [nothing])[0]
    rows = concatenate_sequences([pa.Table.from_batches([part.rows]) for part in filled])
    pos = np.concatenate([part.pos for part in filled])
    return replace(nothing, bounds=np.array([0, len(pos)]), rows=rows, pos=pos)


def _empty_like(segment: Sequences) -> Sequences:
    return replace(segment, bounds=np.zeros(2, np.int64), rows=segment.rows.slice(0, 0), pos=segment.pos[:0])


# What travels of a tumbling window that is open at the end of a segment: partial aggregates, where these merge.
#
# A window that goes through many segments may have more rows than fit into memory. So each segment combines its rows
# of the window into one, or one for each group, and the segment in which the window comes out merges these. Where the
# window ends say its last row and what the loop over rules keeps of it; the bounds of its pane are its first and its
# last row. Aggregates that need all rows make the rows travel (decision 061).


@dataclass(frozen=True, slots=True)
class WindowPart:
    """The rows of an open window in one segment.

    ``edges``: the first of them and the last; none where there are none.
    ``edges_pos``: int64, their arrival positions.
    ``partials``: their partial aggregates, with their number as weights.
    """

    edges: pa.RecordBatch
    edges_pos: Ints
    partials: pa.RecordBatch


def sends_partials(plan: Plan, schema: pa.Schema) -> bool:
    """Whether open windows of an input with this schema travel as partial aggregates; else as rows."""
    return not plan.kind.needs.overlaps and can_combine(plan, schema, are_neighbours=True)


def window_part(plan: Plan, rows: Sequences, window: int) -> WindowPart:
    """Combine the rows of an open window; ``rows``: those of one segment, there may be none.

    ``window``: its number. Raises `DataError` where a user function fails.
    """
    size = len(rows)
    ends = np.array([0, size - 1] if size else [], np.int64)
    return WindowPart(take_rows(rows.rows, ends), rows.pos[ends], combine_window(plan, rows, 0, size, window))


def continued_before(
    plan: Plan, parts: Sequence[WindowPart], value: Any, segment: Sequences
) -> tuple[Sequences, ContinuedWindow | None]:
    """Return the row that stands for the window that is open where a segment begins, and that window; None: none is.

    ``value``: as in `ContinuedWindow`.
    """
    filled = [part for part in parts if len(part.edges_pos)]
    if not filled:
        return _empty_like(segment), None
    first, last = filled[0], filled[-1]
    edges = concatenate_sequences([pa.Table.from_batches([first.edges.slice(0, 1), last.edges.slice(1, 1)])])
    standing = replace(segment, bounds=np.array([0, 1]), rows=edges.slice(1, 1), pos=last.edges_pos[1:])
    partials = concatenate_sequences([pa.Table.from_batches([part.partials]) for part in filled])
    rows = int(combined(partials.column(str(merging_plan(plan).weight))).to_numpy().sum())
    return standing, ContinuedWindow(rows, edges, partials, value)
