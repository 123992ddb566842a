"""One segment of a sequence: its summary, and its scan from an entry state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..emit.aggregate_rows import can_combine, combine_window, merging_plan
from ..emit.result_columns import HiddenPanes
from ..kinds.context import Signals
from ..kinds.segment_summary import EntryState, SegmentSummary
from ..planning.plan import Plan, panes_only
from ..rows.panes import ContinuedWindow
from ..rows.sequence import Sequences, one_batch, take_rows
from ..rows.sequence import concatenate as concatenate_sequences
from ..state.window_state import RestoredState, RowState, fresh, no_row_state
from .scan import RunExtent, ScanResult, compares_with_previous_pane, scan


def can_be_cut(plan: Plan) -> bool:
    """Whether keys may be cut into segments; else each key stays whole."""
    options = plan.options
    if plan.lag_columns:  # the first rows of a segment look back at rows of the one before
        return False
    if options.operator is not None or compares_with_previous_pane(plan) or options.empty == "mark":
        return False
    # Float aggregates of groups in overlapping panes may depend on cuts.
    if options.group_by and plan.kind.needs.overlaps:
        return False
    return plan.kind.can_cut(bool(plan.key), plan.context)


def summarise(plan: Plan, segment: Sequences, signals: Signals) -> tuple[SegmentSummary, Ints]:
    """Summarise a segment, which must not be empty.

    Also return which of its rows later segments may show, as far as these rows decide: int64, ascending. Empty for
    tumbling windows, whose entry states name them.
    """
    return plan.kind.summarise(segment, signals, plan.context)


@dataclass(frozen=True, slots=True)
class EarlierRows:
    """The rows of earlier segments that a segment may show.

    ``rows``: the rows, in order.
    ``rank``: int64 (rows,), how many rows of the key came before each.
    ``row_state``: bool (rows,), whether a pane has shown the row.
    ``baseline``: array of length 1, what a ``delta`` trigger compares with; None: no baseline yet.
    ``continued``: the window that the only row stands for; None: rows stand for themselves.
    """

    rows: Sequences
    rank: Ints
    row_state: Mask
    baseline: pa.Array | None = None
    continued: ContinuedWindow | None = None


def scan_segment(
    plan: Plan,
    entry: EntryState,
    before: EarlierRows,
    segment: Sequences,
    signals: Signals,
    extent: RunExtent,
    is_last: bool,
) -> ScanResult:
    """Scan a segment from its entry state.

    ``signals``: those before the next segment. ``extent``: that of the whole run. Rows that later segments may show are
    counted there: this segment's row accounting leaves them out, unless it is the last.
    """
    if not entry.emits:
        return ScanResult(iter(()), 0, HiddenPanes(), 0, 0, 0, 0, 0, np.empty(0, np.int64), None)
    rows, restored = _restore(plan, entry, before, segment)
    if not is_last:
        plan = replace(plan, options=replace(plan.options, at_end="hold"))
        extent = replace(
            extent,
            clock=None,
            is_continued=True,
            last_closed=plan.kind.last_closed(signals, len(signals), plan.context),
        )
    scanned = scan(plan, rows, signals, replace(extent, since=entry.clock), restored)
    return replace(scanned, held=0)


def count_segment(
    plan: Plan, entry: EntryState, before: EarlierRows, segment: Sequences, signals: Signals
) -> tuple[int, Ints]:
    """Count the panes of a segment that is not the last, and find the rows it shows that later segments may show again.

    Returns the count and the arrival positions of these rows, int64.
    """
    scanned = scan_segment(panes_only(plan), entry, before, segment, signals, RunExtent(), False)
    assert scanned.state is not None
    return scanned.windows, scanned.state.sequences.pos[scanned.state.row_state.shown]


def retained_before(
    plan: Plan, entry: EntryState, earlier: Sequence[Sequences], rank: Ints, signals: Signals, segment: Sequences
) -> EarlierRows:
    """Return the rows of earlier segments that are still retained where a segment begins.

    ``earlier``: the rows that each segment before retained at its end. ``rank``: their ranks, all in one. No row counts
    as shown yet.
    """
    rows = concatenate([*earlier, _empty_like(segment)])
    kind, context = plan.kind, replace(plan.context, clock=entry.clock, hold=True)
    last_closed = kind.last_closed(signals, entry.signals, context)
    picks = np.flatnonzero(kind.retained_rows(rows, context, None, None, last_closed))
    retained = replace(rows, bounds=np.array([0, len(picks)]), rows=take_rows(rows.rows, picks), pos=rows.pos[picks])
    return EarlierRows(retained, rank[picks], np.zeros(len(picks), np.bool_))


def concatenate(earlier: Sequence[Sequences]) -> Sequences:
    """Concatenate rows of one key into one sequence."""
    filled = [part for part in earlier if len(part)]
    if len(filled) < 2:
        return (filled or earlier)[-1]
    rows = one_batch(pa.Table.from_batches([part.rows for part in earlier]))
    pos = np.concatenate([part.pos for part in earlier])
    return replace(earlier[-1], bounds=np.array([0, len(pos)]), rows=rows, pos=pos)


def open_before(earlier: Sequence[Sequences], segment: Sequences) -> EarlierRows:
    """Return the rows of the tumbling window that is open where a segment begins."""
    rows = concatenate([*earlier, _empty_like(segment)])
    return EarlierRows(rows, np.arange(len(rows)), np.zeros(len(rows), np.bool_))


def _empty_like(segment: Sequences) -> Sequences:
    return replace(segment, bounds=np.zeros(2, np.int64), rows=segment.rows.slice(0, 0), pos=segment.pos[:0])


def _restore(plan: Plan, entry: EntryState, before: EarlierRows, segment: Sequences) -> tuple[Sequences, RestoredState]:
    retained, key_state = len(before.rows), fresh(plan.kind.needs.baseline, segment.rows, 1)
    rows = concatenate([before.rows, segment])
    flags = RowState(np.append(before.row_state, np.zeros(len(segment), np.bool_)), no_row_state(len(rows)).last)
    rows_before = retained
    if plan.kind.needs.overlaps:  # else nothing looks back beyond the first row of a window
        rows_before = entry.rows
        rows = replace(rows, rank=np.append(before.rank, entry.rows + np.arange(len(segment))))
    if before.baseline is not None:
        key_state = replace(key_state, baseline=before.baseline)
    windows, full = np.array([entry.windows]), np.array([entry.full])
    key_state = replace(key_state, rows=np.array([rows_before]), windows=windows, full=full)
    restored = RestoredState(np.array([retained]), key_state, flags, entry.signals, entry.clock, before.continued)
    return rows, restored


# What travels of a tumbling window that is open at the end of a segment: partial aggregates, where these merge.
#
# A window that goes through many segments may have more rows than fit into memory. So each segment combines its rows
# of the window into one, or one for each group, and the segment in which the window comes out merges these. Where the
# window ends say its last row and what the loop over rules keeps of it; the bounds of its pane are its first and its
# last row. Aggregates that need all rows make the rows travel (docs/decisions/061).


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


def continued_before(plan: Plan, parts: Sequence[WindowPart], value: Any, segment: Sequences) -> EarlierRows:
    """Return the window that is open where a segment begins. ``value``: as in `ContinuedWindow`."""
    filled = [part for part in parts if len(part.edges_pos)]
    if not filled:
        return open_before([], segment)
    first, last = filled[0], filled[-1]
    edges = concatenate_sequences([pa.Table.from_batches([first.edges.slice(0, 1), last.edges.slice(1, 1)])])
    standing = replace(segment, bounds=np.array([0, 1]), rows=edges.slice(1, 1), pos=last.edges_pos[1:])
    partials = concatenate_sequences([pa.Table.from_batches([part.partials]) for part in filled])
    rows = int(combined(partials.column(str(merging_plan(plan).weight))).to_numpy().sum())
    continued = ContinuedWindow(rows, edges, partials, value)
    return EarlierRows(standing, np.zeros(1, np.int64), np.zeros(1, np.bool_), continued=continued)
