"""A piece of a sequence scanned on from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..kinds.sliding.kernels import comparable
from ..language.spec import Delta, Sliding, Tumbling
from ..planning.plan import Plan, panes_only
from ..scan.scan import RunExtent, ScanResult, scan
from ..scan.signals import Signals
from ..sequences.attribute_distance import measures_and_amount
from ..sequences.sequence import Sequences, one_batch, take_rows
from ..state.window_state import RestoredState, RowState, fresh, no_row_state
from .delta_chains import Exit, run_through
from .overlapping import last_closed_at, lookback_entries, lookback_summary, still_retained
from .summary import EntryState, RunThrough, SegmentSummary
from .tumbling import tumbling_entries, tumbling_summary


def summarise(plan: Plan, piece: Sequences, signals: Signals) -> tuple[SegmentSummary, Ints]:
    """Summarise a piece of one key that is not empty.

    Also return which of its rows pieces behind it may show, as far as these rows tell: int64, ascending; empty where
    the entries name them.
    """
    if isinstance(plan.spec, Tumbling):
        return tumbling_summary(plan, plan.spec, piece, signals.marks), np.empty(0, np.int64)
    return lookback_summary(plan, piece, signals)


def entry_states(plan: Plan, pieces: Sequence[SegmentSummary], follow: RunThrough) -> list[EntryState]:
    """Compose the summaries of the pieces of one key, in order."""
    if isinstance(plan.spec, Tumbling):
        return tumbling_entries(plan, pieces, follow)
    return lookback_entries(pieces, follow)


def exit_through(plan: Plan, piece: Sequences, value: Any) -> Exit:
    """Follow the chain of a start value of a ``delta`` through a piece, None: that of its first row."""
    assert isinstance(plan.spec, Tumbling | Sliding)
    policy = plan.spec.policy if isinstance(plan.spec, Tumbling) else plan.spec.trigger
    assert isinstance(policy, Delta)
    values, too_much = measures_and_amount(piece, policy.attribute, policy.amount)
    return run_through(comparable(values), value, too_much, plan.is_sorted_by(policy.attribute))


@dataclass(frozen=True, slots=True)
class EarlierRows:
    """What a piece sees of those before it: ``rows`` of its key, in order.

    ``rank``: int64, how many rows of the key came before each. ``shown``: which of them a pane has shown.
    ``baseline``: what a ``delta`` trigger compares with, of length 1; None where nothing has set it.
    """

    rows: Sequences
    rank: Ints
    row_state: Mask
    baseline: pa.Array | None = None


def scan_segment(
    plan: Plan,
    entry: EntryState,
    before: EarlierRows,
    piece: Sequences,
    signals: Signals,
    bounds: RunExtent,
    is_last: bool,
) -> ScanResult:
    """Scan a piece. ``signals``: those that stand before the piece behind it. ``bounds``: as of the whole run.

    Where it is not the last one, rows that pieces behind it may show are left to these, and in no account.
    """
    if not entry.emits:
        return ScanResult(iter(()), 0, 0, 0, 0, 0, 0, np.empty(0, np.int64), None)
    rows, past = _restore(plan, entry, before, piece)
    if not is_last:
        plan = replace(plan, options=replace(plan.options, at_end="hold"))
        bounds = replace(bounds, clock=None, is_continued=True, last_closed=last_closed_at(plan, signals, len(signals)))
    scanned = scan(plan, rows, signals, replace(bounds, since=entry.clock), past)
    return replace(scanned, held=0)


def count_segment(
    plan: Plan, entry: EntryState, before: EarlierRows, piece: Sequences, signals: Signals
) -> tuple[int, Ints]:
    """Return how many windows come out in a piece that is not the last, and which rows that pieces behind it may show
    it has shown: their arrival positions, int64."""
    scanned = scan_segment(panes_only(plan), entry, before, piece, signals, RunExtent(), False)
    assert scanned.state is not None
    return scanned.windows, scanned.state.sequences.pos[scanned.state.row_state.shown]


def retained_before(
    plan: Plan, entry: EntryState, parts: Sequence[Sequences], rank: Ints, signals: Signals, piece: Sequences
) -> EarlierRows:
    """Return what is still held where a piece begins, of all that the pieces before it hold each; none of it shown."""
    rows = concatenate([*parts, _none_of(piece)])
    picks = np.flatnonzero(still_retained(plan, rows, entry.clock, last_closed_at(plan, signals, entry.signals)))
    held = replace(rows, bounds=np.array([0, len(picks)]), rows=take_rows(rows.rows, picks), pos=rows.pos[picks])
    return EarlierRows(held, rank[picks], np.zeros(len(picks), np.bool_))


def concatenate(parts: Sequence[Sequences]) -> Sequences:
    """Return rows of one key as one sequence."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return (filled or parts)[-1]
    rows = one_batch(pa.Table.from_batches([part.rows for part in parts]))
    pos = np.concatenate([part.pos for part in parts])
    return replace(parts[-1], bounds=np.array([0, len(pos)]), rows=rows, pos=pos)


def open_before(parts: Sequence[Sequences], piece: Sequences) -> EarlierRows:
    """Return the rows of the tumbling window that is open where a piece begins."""
    rows = concatenate([*parts, _none_of(piece)])
    return EarlierRows(rows, np.arange(len(rows)), np.zeros(len(rows), np.bool_))


def _none_of(piece: Sequences) -> Sequences:
    return replace(piece, bounds=np.zeros(2, np.int64), rows=piece.rows.slice(0, 0), pos=piece.pos[:0])


def _restore(plan: Plan, entry: EntryState, before: EarlierRows, piece: Sequences) -> tuple[Sequences, RestoredState]:
    held, registers = len(before.rows), fresh(plan.spec, piece.rows, 1)
    rows = concatenate([before.rows, piece])
    flags = RowState(np.append(before.row_state, np.zeros(len(piece), np.bool_)), no_row_state(len(rows)).last)
    count = held
    if not isinstance(plan.spec, Tumbling):  # no window that tumbles looks at ranks
        count = entry.rows
        rows = replace(rows, rank=np.append(before.rank, entry.rows + np.arange(len(piece))))
    if before.baseline is not None:
        registers = replace(registers, baseline=before.baseline)
    windows, full = np.array([entry.windows]), np.array([entry.full])
    registers = replace(registers, rows=np.array([count]), windows=windows, full=full)
    return rows, RestoredState(np.array([held]), registers, flags, entry.signals, entry.clock)
