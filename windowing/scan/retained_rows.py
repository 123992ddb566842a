"""What windows hold at the end of a run: the rows and registers that the next one goes on with (semantics section 7).

Each kind is asked which rows are still of use: those that a pane to come may show, and those that decide how the rows
in the window are counted. A run that ends with ``flush`` or ``drop`` holds no rows, and its windows begin anew; only
their numbers go on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..kinds.batched.panes import batched_rest
from ..kinds.context import WindowContext
from ..kinds.event_time.panes import interval_rest
from ..kinds.eviction.key_lifetimes import Lifetimes, lifetimes
from ..kinds.sliding.panes import evicted_at, rows_at_end, tripping
from ..language.spec import Batched, Delta, Sliding, TimeInterval, Tumbling, WindowSpec
from ..panes.membership import shown
from ..panes.panes import AT_END, Panes
from ..sequences.sequence import Sequences
from ..state.window_state import (
    KeyState,
    RestoredState,
    RowState,
    WindowState,
    fresh,
    no_row_state,
    take_state_rows,
    with_row_counts,
)
from .signals import Signals


def snapshot(
    spec: WindowSpec,
    looks_back: bool,
    sequences: Sequences,
    signals: Signals,
    setting: WindowContext,
    panes: Panes,
    told: Ints,
    dead: int,
) -> WindowState:
    """Return what the next run goes on with.

    ``looks_back``: whether the next pane of a key needs to know what its last one showed. ``panes``: all of them;
    ``told``: which of these have come out, ascending. ``dead``: of event-time panes the last that no row can get into
    any more.
    """
    past = setting.restored or RestoredState(
        np.zeros(len(sequences.bounds) - 1, np.int64),
        fresh(spec, sequences.rows, len(sequences.bounds) - 1),
        no_row_state(len(sequences)),
    )
    cut = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    last = _last_shown(panes, told, past, sequences) if looks_back else past.row_state.last
    kept = np.zeros(len(sequences), np.bool_)
    if setting.hold:
        kept = retained_rows(spec, sequences, setting, panes, cut, dead) | last
    seen = past.row_state.shown | shown(panes.take(told).membership, len(sequences))
    registers = _key_state(spec, sequences, setting, past, cut)
    registers = replace(
        registers, windows=past.key_state.windows + np.bincount(panes.key[told], minlength=len(registers.rows))
    )
    carry = take_state_rows(WindowState(sequences, registers, RowState(seen, last)), np.flatnonzero(kept))
    # no window that tumbles looks back behind its first row: whatever came before must not make states differ
    return with_row_counts(carry) if isinstance(spec, Tumbling) else carry


def retained_rows(
    spec: WindowSpec,
    sequences: Sequences,
    setting: WindowContext,
    panes: Panes | None,
    cut: Lifetimes | None,
    dead: int,
) -> Mask:
    """Return which rows are of use at the end, (n,).

    ``panes``: of a tumbling window. ``cut``: where keys were evicted. ``dead``: as in `snapshot`.
    """
    match spec:
        case Tumbling():
            assert panes is not None
            kept = shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))
            if setting.empty == "row":  # tells how many windows there are between it and the next
                kept[_newest(sequences.bounds)] = True
            return kept
        case Sliding():
            pieces = sequences if cut is None else replace(sequences, bounds=cut.bounds)
            kept = rows_at_end(spec, pieces, setting)
            if setting.partial and sequences.keys is None:
                kept[_newest(pieces.bounds)] = True
            if cut is not None:
                kept &= np.repeat(cut.lives, np.diff(cut.bounds))
            return kept
        case TimeInterval():
            assert setting.event_time is not None
            return interval_rest(spec, sequences, setting.event_time, dead)
        case Batched():
            return batched_rest(spec, sequences, setting)


def _newest(bounds: Ints) -> Ints:
    """The last row of each sequence that has rows."""
    return bounds[1:][np.diff(bounds) > 0] - 1


def _key_state(
    spec: WindowSpec, sequences: Sequences, setting: WindowContext, past: RestoredState, cut: Lifetimes | None
) -> KeyState:
    """The registers, but for the numbers of windows."""
    bounds = sequences.bounds
    new = fresh(spec, sequences.rows, len(bounds) - 1)
    rows = past.key_state.rows + np.diff(bounds) - past.restored_rows
    if not setting.hold:
        return replace(new, rows=rows, begin=rows)
    begin, pieces, living = past.key_state.begin, sequences, np.arange(len(bounds) - 1)
    if cut is not None:
        pieces = replace(sequences, bounds=cut.bounds)
        past = cut.restored(past)
        lives = np.flatnonzero(cut.lives)
        living = np.full(len(bounds) - 1, -1)
        living[cut.key[lives]] = lives
        size = np.where(living < 0, 0, np.diff(cut.bounds)[living])
        is_cut = (living < 0) | ~cut.is_first[living]
        begin = np.where(is_cut, rows - size, begin)
    full, baseline = _sliding_key_state(spec, pieces, past)
    full, baseline = np.append(full, False), pa.concat_arrays([baseline, pa.nulls(1, baseline.type)])
    return KeyState(rows, begin, new.windows, full[living], baseline.take(pa.array(living % len(full))))


def _sliding_key_state(spec: WindowSpec, sequences: Sequences, past: RestoredState) -> tuple[Mask, pa.Array]:
    """Whether anything was evicted by ``delta``, and the baselines of ``delta`` triggers, of each sequence."""
    full, baseline, bounds = past.key_state.full, past.key_state.baseline, sequences.bounds
    if isinstance(spec, Sliding) and isinstance(spec.evict, Delta):
        gone = np.append(0, np.cumsum(evicted_at(spec, sequences) < len(sequences)))
        full = full | (np.diff(gone[bounds]) > 0)
    if isinstance(spec, Sliding) and isinstance(spec.trigger, Delta):
        moved = tripping(spec.trigger, sequences, past)
        newest = np.searchsorted(moved, bounds[1:]) - 1
        is_moved = newest >= np.searchsorted(moved, bounds[:-1])
        values = combined(sequences.rows.column(spec.trigger.attribute))
        own = len(values) + np.arange(len(bounds) - 1)
        picks = np.where(is_moved, np.append(moved, 0)[newest], own)
        baseline = pa.concat_arrays([values, baseline.cast(values.type)]).take(pa.array(picks))
    return full, baseline


def _last_shown(panes: Panes, told: Ints, past: RestoredState, sequences: Sequences) -> Mask:
    """Which rows the last pane of each key that came out showed."""
    newest = told[np.append(panes.key[told][1:] != panes.key[told][:-1], True)[: len(told)]]
    out = past.row_state.last.copy()
    anew = np.zeros(len(sequences.bounds) - 1, np.bool_)
    anew[panes.key[newest]] = True
    out &= ~np.repeat(anew, np.diff(sequences.bounds))
    return out | shown(panes.take(newest).membership, len(sequences))
