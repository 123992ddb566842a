"""What a scan with an operator comes to: its operators decide it, so it is known once the tables have been read.

An operator may ask for the eviction of its key. Then the rows before that are gone as if they had never been there, and
the account of rows, the open windows and the window state are those of the rows that are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask
from ..emit.operators.outcome import OperatorOutcome
from ..kinds.context import WindowContext
from ..kinds.signals import Signals
from ..panes.membership import shown
from ..panes.panes import Panes, reason
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, take_rows
from ..state.window_state import KeyState, RestoredState, RowState, WindowState, merge, no_row_state, with_row_counts
from .emitted_panes import already_emitted
from .retained_rows import Emission, nothing_restored, snapshot


@dataclass(frozen=True, slots=True)
class OperatorScan:
    """A scan with an operator.

    ``plan``, ``sequences``, ``signals``, ``context``: as the panes were computed with.
    ``panes``: all panes.
    ``last_closed``: the last event-time pane that no row can enter any more.
    ``is_continued``: whether another run restores the state of this one.
    ``outcome``: what the calls have come to.
    """

    plan: Plan
    sequences: Sequences
    signals: Signals
    context: WindowContext
    panes: Panes
    last_closed: int
    is_continued: bool
    outcome: OperatorOutcome


@dataclass(frozen=True, slots=True)
class Settled:
    """What a scan has come to: fields as in `windowing.scan.scan.ScanResult`."""

    windows: int
    open: int
    windowed: int
    dropped: int
    filtered: int
    held: int
    by_mark: Ints
    state: WindowState | None


def settle(done: OperatorScan) -> Settled:
    """Return what a scan has come to, once its tables have been read."""
    outcome, options = done.outcome, done.plan.options
    before = np.zeros(len(done.sequences), np.bool_)
    if done.context.restored is not None:
        before = done.context.restored.row_state.shown
    now, picks, emptied = _without_evicted(done) if outcome.asked.any() else (done, None, None)
    is_end = now.panes.closed_by == reason("end")
    state = _state(now, emptied) if done.is_continued else None
    windowed = int(np.count_nonzero(outcome.shown & ~before))
    held = 0 if state is None else int(np.count_nonzero(~state.row_state.shown))
    dropped = 0
    if options.at_end == "drop":
        placed = _in_new_panes(now) & ~now.outcome.shown & ~(before if picks is None else before[picks])
        dropped = int(np.count_nonzero(placed))
    rejected = 0 if done.panes.rejects is None else len(done.panes.rejects)
    filtered = len(before) - int(np.count_nonzero(before)) - windowed - dropped - held - rejected
    still_open = int(np.count_nonzero(is_end)) if options.at_end == "hold" else 0
    by_mark = np.array(sorted(outcome.signals), np.int64)
    return Settled(int(outcome.panes.sum()), still_open, windowed, dropped, filtered, held, by_mark, state)


def _in_new_panes(done: OperatorScan) -> Mask:
    panes, restored = done.panes, done.context.restored
    if restored is not None:
        panes = panes.take(np.flatnonzero(~already_emitted(done.plan.kind, panes, done.context, done.sequences)))
    return shown(panes.membership, len(done.sequences))


def _state(done: OperatorScan, emptied: WindowState | None) -> WindowState:
    outcome = done.outcome
    saved = pa.array(outcome.saved, pa.string())
    if not len(done.sequences) and emptied is not None:
        return emptied
    emission = Emission(outcome.shown, outcome.held, outcome.panes, saved)
    state = snapshot(done.plan.kind, done.sequences, done.signals, done.context, done.panes, emission, done.last_closed)
    return state if emptied is None else merge(state, emptied)


def _without_evicted(done: OperatorScan) -> tuple[OperatorScan, Ints, WindowState | None]:
    """Leave out the rows before evictions that operators asked for, and keys without other rows.

    Also return which rows are left, int64, and the state of the keys that are left out, None where there are none.
    """
    sequences, outcome = done.sequences, done.outcome
    restored = _begun_anew(done)
    counts = np.diff(sequences.bounds)
    picks = np.flatnonzero(np.arange(len(sequences)) >= np.repeat(outcome.first, counts))
    keys = np.flatnonzero(outcome.first < sequences.bounds[1:])
    empty = np.flatnonzero(outcome.first == sequences.bounds[1:])
    rest = _take(sequences, keys, picks)
    restored_rows = restored.restored_rows[keys]
    restored = replace(
        restored,
        restored_rows=restored_rows,
        key_state=restored.key_state.take(keys),
        row_state=restored.row_state.take(picks),
    )
    left = replace(
        outcome,
        shown=outcome.shown[picks],
        held=outcome.held[picks],
        panes=outcome.panes[keys],
        saved=[outcome.saved[key] for key in keys.tolist()],
    )
    context = replace(done.context, restored=restored)
    panes = done.panes.take(np.empty(0, np.int64))
    if len(keys):
        panes, _ = done.plan.kind.panes(rest, done.signals, context)
    now = replace(done, sequences=rest, context=context, panes=panes, outcome=left)
    return now, picks, _emptied(done, empty) if len(empty) else None


def _begun_anew(done: OperatorScan) -> RestoredState:
    """Return the restored state of all keys, in which evicted ones begin at the row after their eviction."""
    sequences, asked = done.sequences, done.outcome.asked
    restored = done.context.restored or nothing_restored(done.plan.kind, sequences)
    state = restored.key_state
    before = state.rows - restored.restored_rows + done.outcome.first - sequences.bounds[:-1]
    begun = replace(
        state,
        rows=np.where(asked, before, state.rows),
        begin=np.where(asked, before, state.begin),
        full=state.full & ~asked,
        baseline=pc.if_else(pa.array(asked), pa.scalar(None, state.baseline.type), state.baseline),
    )
    return replace(restored, restored_rows=np.where(asked, 0, restored.restored_rows), key_state=begun)


def _take(sequences: Sequences, keys: Ints, picks: Ints) -> Sequences:
    """Return the rows at ``picks`` of the keys at ``keys``, with ranks."""
    bounds = np.searchsorted(picks, sequences.bounds)
    rank = sequences.rank
    if rank is None:
        rank = np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1], np.diff(sequences.bounds))
    named = None if sequences.keys is None else sequences.keys.take(pa.array(keys))
    bounds = np.append(bounds[:-1][keys], bounds[-1])
    rows, pos = take_rows(sequences.rows, picks), sequences.pos[picks]
    return Sequences(named, bounds, rows, pos, sequences.order, rank[picks])


def _emptied(done: OperatorScan, empty: Ints) -> WindowState:
    """Return the state of keys whose rows are all gone: their counts of rows and windows go on."""
    sequences, kind = done.sequences, done.plan.kind
    restored = done.context.restored or nothing_restored(kind, sequences)
    state = restored.key_state.take(empty)
    rows = state.rows - restored.restored_rows[empty] + np.diff(sequences.bounds)[empty]
    key_state = KeyState(
        rows,
        rows,
        state.windows + done.outcome.panes[empty],
        np.zeros(len(empty), np.bool_),
        pa.nulls(len(empty), state.baseline.type),
        pa.nulls(len(empty), pa.string()),
    )
    nothing = np.empty(0, np.int64)
    named = None if sequences.keys is None else sequences.keys.take(pa.array(empty))
    rest = Sequences(
        named, np.zeros(len(empty) + 1, np.int64), sequences.rows.slice(0, 0), nothing, sequences.order, nothing
    )
    window_state = WindowState(rest, key_state, RowState(*[no_row_state(0).shown] * 2))
    return window_state if kind.overlaps else with_row_counts(window_state)
