"""Rows and key state that windows keep at the end of a run, for the next run (semantics section 7).

For each kind of window this says which rows are still of use: rows that a pane to come may show, and rows that decide
how rows in the window are counted. A run that ends with ``flush`` or ``drop`` retains no rows: its windows begin anew,
and only their numbers go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..kinds.context import WindowContext
from ..kinds.contract import WindowKind
from ..kinds.eviction.key_lifetimes import Lifetimes, lifetimes
from ..kinds.signals import Signals
from ..panes.membership import shown
from ..panes.panes import Panes
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


@dataclass(frozen=True, slots=True)
class Emission:
    """What came out of a run over n rows of K keys, as far as the next run depends on it.

    ``shown``: bool (n,), the rows that a pane has shown.
    ``last``: bool (n,), the rows that the next run must know one by one, as `RowState.last` says.
    ``windows``: int64 (K,), how many panes came out.
    ``operator``: array (K,), as in `KeyState`.
    """

    shown: Mask
    last: Mask
    windows: Ints
    operator: pa.Array


def emission_of(looks_back: bool, sequences: Sequences, context: WindowContext, panes: Panes, picks: Ints) -> Emission:
    """Return what came out where there is no operator.

    ``looks_back``: whether the next pane of a key depends on what its last pane showed. ``panes``: all panes.
    ``picks``: int64, ascending, which of them came out.
    """
    keys = len(sequences.bounds) - 1
    last = _last_shown(panes, picks, context.restored, sequences) if looks_back else np.zeros(len(sequences), np.bool_)
    windows = np.bincount(panes.key[picks], minlength=keys)
    return Emission(shown(panes.take(picks).membership, len(sequences)), last, windows, pa.nulls(keys))


def snapshot(
    kind: WindowKind,
    sequences: Sequences,
    signals: Signals,
    context: WindowContext,
    panes: Panes,
    emission: Emission,
    last_closed: int,
) -> WindowState:
    """Return the window state for the next run.

    ``panes``: all panes. ``last_closed``: the last event-time pane that no row can enter any more.
    """
    restored = context.restored or nothing_restored(kind, sequences)
    key_lifetimes = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    is_retained = np.zeros(len(sequences), np.bool_)
    if context.hold:
        is_retained = kind.retained_rows(sequences, context, panes, key_lifetimes, last_closed) | emission.last
    settled = kind.settled_rows(sequences, panes, is_retained)
    key_state = _key_state(kind, sequences, context, restored, key_lifetimes)
    key_state = replace(key_state, windows=restored.key_state.windows + emission.windows, operator=emission.operator)
    row_state = RowState(restored.row_state.shown | emission.shown | settled, emission.last)
    state = take_state_rows(WindowState(sequences, key_state, row_state), np.flatnonzero(is_retained))
    # A tumbling window never looks back beyond its first row: equal windows give equal states, whatever came before.
    return state if kind.overlaps else with_row_counts(state)


def nothing_restored(kind: WindowKind, sequences: Sequences) -> RestoredState:
    """Return the restored state of a first run."""
    keys = len(sequences.bounds) - 1
    key_state = fresh(kind.baseline_attribute, sequences.rows, keys)
    return RestoredState(np.zeros(keys, np.int64), key_state, no_row_state(len(sequences)))


def _key_state(
    kind: WindowKind,
    sequences: Sequences,
    context: WindowContext,
    restored: RestoredState,
    key_lifetimes: Lifetimes | None,
) -> KeyState:
    """Return the key state at the end of the run, without the numbers of windows."""
    bounds = sequences.bounds
    new = fresh(kind.baseline_attribute, sequences.rows, len(bounds) - 1)
    rows = restored.key_state.rows + np.diff(bounds) - restored.restored_rows
    if not context.hold:
        return replace(new, rows=rows, begin=rows)
    begin, per_lifetime, lifetime_of_key = restored.key_state.begin, sequences, np.arange(len(bounds) - 1)
    if key_lifetimes is not None:
        per_lifetime = replace(sequences, bounds=key_lifetimes.bounds)
        restored = key_lifetimes.restored(restored)
        lives = np.flatnonzero(key_lifetimes.lives)
        lifetime_of_key = np.full(len(bounds) - 1, -1)
        lifetime_of_key[key_lifetimes.key[lives]] = lives
        size = np.where(lifetime_of_key < 0, 0, np.diff(key_lifetimes.bounds)[lifetime_of_key])
        is_cut = (lifetime_of_key < 0) | ~key_lifetimes.is_first[lifetime_of_key]
        begin = np.where(is_cut, rows - size, begin)
    full, baseline = kind.full_and_baseline(per_lifetime, restored)
    full, baseline = np.append(full, False), pa.concat_arrays([baseline, pa.nulls(1, baseline.type)])
    picked = baseline.take(pa.array(lifetime_of_key % len(full)))
    return KeyState(rows, begin, new.windows, full[lifetime_of_key], picked, new.operator)


def _last_shown(panes: Panes, emitted: Ints, restored: RestoredState | None, sequences: Sequences) -> Mask:
    """Return which rows the last pane of each key showed, of panes that came out in this run or before."""
    newest = emitted[np.append(panes.key[emitted][1:] != panes.key[emitted][:-1], True)[: len(emitted)]]
    out = np.zeros(len(sequences), np.bool_) if restored is None else restored.row_state.last.copy()
    has_emitted = np.zeros(len(sequences.bounds) - 1, np.bool_)
    has_emitted[panes.key[newest]] = True
    out &= ~np.repeat(has_emitted, np.diff(sequences.bounds))
    return out | shown(panes.take(newest).membership, len(sequences))
