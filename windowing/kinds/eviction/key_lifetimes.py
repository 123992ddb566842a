"""What partition eviction does to the windows of a key: it ends them, and they begin anew (semantics section 4).

An eviction cuts a key's rows in two. Every kind of window runs over the pieces as if they were keys, for nothing is
remembered beyond a cut but the window number; then the panes are put together again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, Mask, combined
from ...language.spec import Count, Sliding, Tumbling
from ...panes.panes import AT_END, BY_TICK, Panes, reason
from ...sequences.sequence import Sequences, group_codes
from ...state.window_state import KeyState, RestoredState
from .evictions import Evictions

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The rows of some sequences cut where their keys were evicted: S pieces, key after key.

    ``bounds``: int64 (S+1,), as in `Sequences`. ``key``: int64 (S,), the key of each. ``eviction``: int64 (S,), the
    place among ``evictions`` of the one that ends it, -1 where none does. ``evictions``: those of these keys.
    """

    bounds: Ints
    key: Ints
    eviction: Ints
    evictions: Evictions

    @property
    def last_tick(self) -> Ints:
        """The last tick of a sliding window's trigger that may find each piece, int64 (S,)."""
        return np.append(self.evictions.tick - 1, _MOST)[self.eviction]  # -1: the last, which is for those that stay

    @property
    def is_first(self) -> Mask:
        """Which pieces are the first of their keys, (S,)."""
        return np.append(True, self.key[1:] != self.key[:-1])[: len(self.key)]

    @property
    def lives(self) -> Mask:
        """Which pieces are the last of their keys, and not ended by an eviction, (S,)."""
        return np.append(self.is_first[1:], True)[: len(self.key)] & (self.eviction < 0)

    def restored(self, past: RestoredState) -> RestoredState:
        """Return what came before the pieces: what came before a key before its first, and nothing before others."""
        known, registers = self.is_first, past.key_state.take(self.key)
        baseline = pc.if_else(pa.array(known), registers.baseline, pa.scalar(None, registers.baseline.type))
        rows, begin, windows = (np.where(known, n, 0) for n in (registers.rows, registers.begin, registers.windows))
        registers = KeyState(rows, begin, windows, registers.full & known, baseline)
        return replace(past, restored_rows=np.where(known, past.restored_rows[self.key], 0), key_state=registers)


def lifetimes(evictions: Evictions, sequences: Sequences) -> Lifetimes:
    """Cut some sequences, of which the evictions may know more keys, or fewer."""
    assert sequences.keys is not None
    bounds, count = sequences.bounds, sequences.keys.num_rows
    both = pa.concat_tables([sequences.keys, evictions.keys])
    codes, _ = group_codes([combined(column) for column in both.columns])
    index = np.full(len(codes), -1)
    index[codes[:count]] = np.arange(count)
    key = index[codes[count:]][evictions.key]
    here = np.flatnonzero(key >= 0)
    cuts = bounds[key[here]] + evictions.rows[here]
    is_cut = np.zeros(len(sequences) + 1, np.bool_)
    is_cut[cuts] = True
    is_end = is_cut.copy()
    is_end[bounds[1:]] = True
    ends = np.flatnonzero(is_end)
    eviction = np.full(len(ends), -1)
    eviction[is_cut[ends]] = np.arange(len(here))  # both by key, then by row
    return Lifetimes(np.append(0, ends), np.searchsorted(bounds, ends) - 1, eviction, _take(evictions, here))


def _take(evictions: Evictions, picks: Ints) -> Evictions:
    return replace(
        evictions,
        key=evictions.key[picks],
        rows=evictions.rows[picks],
        causes=evictions.causes.take(picks),
        by_tick=evictions.by_tick[picks],
        tick=evictions.tick[picks],
    )


def merge(
    spec: Tumbling | Sliding, panes: Panes, segments: Lifetimes, sequences: Sequences, marks: int, emit_evicted: bool
) -> Panes:
    """Return the panes of segments as panes of their keys, numbered through.

    Where windows tumble, the last one of a segment that an eviction ends came out by it with ``emit_evicted``: by the
    tick at its end, or caused by ``n + marks + e``, where e is the place in `Lifetimes.evictions`. Else it vanishes,
    as does what a sliding window shows after it. ``panes``: of a sliding window, under `WindowContext.last_tick`.
    """
    key = segments.key[panes.key]
    if isinstance(spec, Tumbling):
        caught = _is_open_at_eviction(panes, segments)
        panes = _as_evicted(panes, caught, segments, len(sequences) + marks)
        kept = ~caught | emit_evicted
    else:
        kept = _is_before_eviction(spec, panes, segments, sequences)
    panes, key = replace(panes, key=key).take(np.flatnonzero(kept)), key[kept]
    return replace(panes, number=np.arange(len(panes)) - np.searchsorted(key, key))


def _is_open_at_eviction(panes: Panes, segments: Lifetimes) -> Mask:
    """Which tumbling windows an eviction found open: the last ones of their segments."""
    is_last = np.ones(len(panes), np.bool_)
    np.not_equal(panes.key[1:], panes.key[:-1], out=is_last[:-1])
    return is_last & (segments.eviction[panes.key] >= 0)


def _as_evicted(panes: Panes, caught: Mask, segments: Lifetimes, first: int) -> Panes:
    """Tell of the windows that were caught what evicted them; the causes that are no ticks count from ``first``."""
    which = segments.eviction[panes.key[caught]]
    cause, closed_by = panes.cause.copy(), panes.closed_by.copy()
    cause[caught] = np.where(segments.evictions.by_tick[which], BY_TICK, first + which)
    closed_by[caught] = reason("evicted")
    return replace(panes, cause=cause, closed_by=closed_by)


def _is_before_eviction(spec: Sliding, panes: Panes, segments: Lifetimes, sequences: Sequences) -> Mask:
    """Which panes of a sliding window came out before their key went. A count trigger stands behind the eviction."""
    which = segments.eviction[panes.key]
    last = segments.bounds[panes.key + 1] - 1
    by_itself = np.append(segments.evictions.causes.pos, -1)[which] == sequences.pos[last]
    late = by_itself & (panes.cause == last) if isinstance(spec.trigger, Count) else np.zeros(len(panes), np.bool_)
    return (which < 0) | ((panes.cause != AT_END) & ~late)
