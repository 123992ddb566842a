"""The lifetimes of keys: an eviction ends the window of a key, and the next row begins a new one (semantics section 4).

An eviction cuts the rows of a key in two. Every kind of window runs over the lifetimes as if they were keys, because
nothing but the window number survives an eviction; then `merge` makes panes of keys from the panes of lifetimes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask
from ..rows.panes import AT_END, BY_TICK, Panes, reason
from ..rows.sequence import Sequences, places_among
from ..state.window_state import KeyState, RestoredState
from .evictions import Evictions

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The rows of some sequences, cut where their keys were evicted: S lifetimes, key after key.

    ``bounds``: int64 (S+1,), the bounds of the lifetimes among the rows, as in `Sequences`.
    ``key``: int64 (S,), the key of each lifetime.
    ``eviction``: int64 (S,), the index in ``evictions`` of the eviction that ends it, -1 where none does.
    ``evictions``: the evictions of these keys.
    """

    bounds: Ints
    key: Ints
    eviction: Ints
    evictions: Evictions

    @property
    def last_tick(self) -> Ints:
        """The last tick of a sliding window's trigger that may find each lifetime, int64 (S,)."""
        # index -1, of lifetimes that no eviction ends, takes the last value
        return np.append(self.evictions.tick - 1, _MOST)[self.eviction]

    @property
    def is_first(self) -> Mask:
        return np.append(True, self.key[1:] != self.key[:-1])[: len(self.key)]

    @property
    def lives(self) -> Mask:
        return np.append(self.is_first[1:], True)[: len(self.key)] & (self.eviction < 0)

    def restored(self, restored: RestoredState) -> RestoredState:
        """Return the restored state of lifetimes: that of the key for its first lifetime, and none for the others."""
        known, key_state = self.is_first, restored.key_state.take(self.key)
        baseline = pc.if_else(pa.array(known), key_state.baseline, pa.scalar(None, key_state.baseline.type))
        rows, begin, windows = (np.where(known, n, 0) for n in (key_state.rows, key_state.begin, key_state.windows))
        key_state = KeyState(rows, begin, windows, key_state.full & known, baseline, key_state.operator)
        return replace(
            restored, restored_rows=np.where(known, restored.restored_rows[self.key], 0), key_state=key_state
        )


def lifetimes(evictions: Evictions, sequences: Sequences) -> Lifetimes:
    """Cut some sequences at the evictions of their keys; ``evictions`` may have more keys than these, or fewer."""
    assert sequences.keys is not None
    bounds = sequences.bounds
    key = places_among(sequences.keys, evictions.keys)[evictions.key]
    here = np.flatnonzero(key >= 0)
    cuts = bounds[key[here]] + evictions.rows[here]
    is_cut = np.zeros(len(sequences) + 1, np.bool_)
    is_cut[cuts] = True
    is_end = is_cut.copy()
    is_end[bounds[1:]] = True
    ends = np.flatnonzero(is_end)
    eviction = np.full(len(ends), -1)
    eviction[is_cut[ends]] = np.arange(len(here))  # both by key, then by row
    of_these = replace(
        evictions,
        key=evictions.key[here],
        rows=evictions.rows[here],
        causes=evictions.causes.take(here),
        by_tick=evictions.by_tick[here],
        tick=evictions.tick[here],
    )
    return Lifetimes(np.append(0, ends), np.searchsorted(bounds, ends) - 1, eviction, of_these)


def merge_tumbling(panes: Panes, lifetimes: Lifetimes, sequences: Sequences, marks: int, emit_evicted: bool) -> Panes:
    """Return the tumbling panes of lifetimes as panes of their keys, numbered consecutively.

    With ``emit_evicted`` an eviction emits the open window of the lifetime that it ends: its cause is the tick of the
    eviction, or ``n + marks + e`` for eviction e of `Lifetimes.evictions`. Without ``emit_evicted`` that window is
    dropped.
    """
    # Which tumbling windows were open at an eviction: the last ones of lifetimes that an eviction ends.
    is_last = np.ones(len(panes), np.bool_)
    np.not_equal(panes.key[1:], panes.key[:-1], out=is_last[:-1])
    caught = is_last & (lifetimes.eviction[panes.key] >= 0)
    # Set cause and close reason of the windows in ``caught``; causes that are no ticks count from ``first``.
    which = lifetimes.eviction[panes.key[caught]]
    cause, closed_by = panes.cause.copy(), panes.closed_by.copy()
    cause[caught] = np.where(lifetimes.evictions.by_tick[which], BY_TICK, (len(sequences) + marks) + which)
    closed_by[caught] = reason("evicted")
    return _of_keys(replace(panes, cause=cause, closed_by=closed_by), lifetimes, ~caught | emit_evicted)


def merge_sliding(panes: Panes, lifetimes: Lifetimes, sequences: Sequences, comes_with_row: bool) -> Panes:
    """Return the sliding panes of lifetimes as panes of their keys, numbered consecutively.

    The panes that are triggered after an eviction are dropped; they must have been computed with
    `WindowContext.last_tick`. ``comes_with_row``: whether a trigger comes after its row, and so after the eviction that
    this row causes.
    """
    which = lifetimes.eviction[panes.key]
    last = lifetimes.bounds[panes.key + 1] - 1
    by_itself = np.append(lifetimes.evictions.causes.pos, -1)[which] == sequences.pos[last]
    late = by_itself & (panes.cause == last) if comes_with_row else np.zeros(len(panes), np.bool_)
    return _of_keys(panes, lifetimes, (which < 0) | ((panes.cause != AT_END) & ~late))


def _of_keys(panes: Panes, lifetimes: Lifetimes, kept: Mask) -> Panes:
    key = lifetimes.key[panes.key]
    panes, key = replace(panes, key=key).take(np.flatnonzero(kept)), key[kept]
    return replace(panes, number=np.arange(len(panes)) - np.searchsorted(key, key))
