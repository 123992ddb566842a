"""The window state: what the windows of a stage keep from one run to the next (semantics section 7, ``hold``).

An incremental run scans the retained rows of the state first, then its new rows (decision 012). Panes that an
earlier run emitted are not emitted again. What rows alone do not say is in the key state, a few values per key. Between
runs a state is kept as tables (`windowing.state.state_tables`), which reach the scan as the rows of any chunk do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..rows.merge import append
from ..rows.panes import ContinuedWindow
from ..rows.sequence import Sequences, group_codes, one_batch, places_among, take_rows


@dataclass(frozen=True, slots=True)
class KeyState:
    """The state of K keys that does not follow from their retained rows.

    ``rows``: int64 (K,), number of rows of the key so far.
    ``begin``: int64 (K,), how many of these came before the last partition eviction of the key.
    ``windows``: int64 (K,), number of the key's next window.
    ``full``: bool (K,), whether a sliding window that evicts by ``delta`` has evicted anything.
    ``baseline``: array (K,), the value that a ``delta`` trigger compares with, null where no row has set it; of type
        null if no trigger is a ``delta``. With ``previous(.., share)`` a list of smoothed values, as of `Panes.left`.
    ``operator``: string array (K,), what the operator of the key has saved, null where the key has none; of type null
        if the window has no operator.
    ``newest``: list of struct (K,), the last rows of the key, as far as rows to come look back at them, with what these
        look at (`Plan.looked_back`); null where they look at none; None if nothing looks back.
    ``ongoing``: struct (K,), for each aggregate that goes on from window to window the value that holds, or fills, by
        its text; null where the key has none; None if there are no such aggregates.
    """

    rows: Ints
    begin: Ints
    windows: Ints
    full: Mask
    baseline: pa.Array
    operator: pa.Array
    newest: pa.Array | None = None
    ongoing: pa.Array | None = None

    def take(self, picks: Ints) -> KeyState:
        """Return the state of the keys at ``picks``."""
        baseline, operator = (column.take(pa.array(picks)) for column in (self.baseline, self.operator))
        newest, ongoing = (None if a is None else a.take(pa.array(picks)) for a in (self.newest, self.ongoing))
        numbers = (self.rows[picks], self.begin[picks], self.windows[picks])
        return KeyState(*numbers, self.full[picks], baseline, operator, newest, ongoing)


@dataclass(frozen=True, slots=True)
class RowState:
    """The state of n rows.

    ``shown``: bool (n,), whether a pane showed the row.
    ``last``: bool (n,), whether the last pane of its key showed the row (for ``--emit entered`` and ``left``), or the
        operator of its key holds the row.
    """

    shown: Mask
    last: Mask

    def take(self, picks: Ints) -> RowState:
        """Return the state of the rows at ``picks``."""
        return RowState(self.shown[picks], self.last[picks])


@dataclass(frozen=True, slots=True)
class WindowState:
    """The window state of K keys at the end of a run.

    ``sequences``: the K keys and their n retained rows, in total order; a key may have no row. ``rank`` is not None in
        a state that is kept; without, rows are counted from the first of them.
    ``key_state``: of the K keys.
    ``row_state``: of the n rows.
    """

    sequences: Sequences
    key_state: KeyState
    row_state: RowState


@dataclass(frozen=True, slots=True)
class RestoredState:
    """A window state that is restored into K sequences of n rows: in each, the restored rows come first, then new rows.

    ``restored_rows``: int64 (K,), number of restored rows at the front of each sequence.
    ``key_state``: of the K keys, at the end of the previous run.
    ``row_state``: of the n rows; false for new rows.
    ``signals``: how many of the signals, in their order, the previous run has processed.
    ``continued``: the window that the one restored row stands for; None: restored rows stand for themselves.
    """

    restored_rows: Ints
    key_state: KeyState
    row_state: RowState
    signals: int = 0
    continued: ContinuedWindow | None = None

    def is_new(self, bounds: Ints) -> Mask:
        """Return which rows are new, bool (n,). ``bounds``: int64 (K+1,), of the sequences."""
        new = np.ones(bounds[-1], np.bool_)
        before = np.cumsum(self.restored_rows) - self.restored_rows
        new[np.repeat(bounds[:-1] - before, self.restored_rows) + np.arange(self.restored_rows.sum())] = False
        return new

    @property
    def ahead(self) -> Ints:
        """Rows of each key since its last partition eviction that came before its first row here, int64 (K,)."""
        return self.key_state.rows - self.key_state.begin - self.restored_rows


def baseline_type(baseline: str | pa.DataType | None, schema: pa.Schema) -> pa.DataType:
    """Return the type of `KeyState.baseline`. ``baseline``: it, or the attribute whose values that has; None: none."""
    if baseline is None:
        return pa.null()
    return schema.field(baseline).type if isinstance(baseline, str) else baseline


def fresh(baseline: str | pa.DataType | None, rows: pa.RecordBatch, keys: int) -> KeyState:
    """Return the key state of new keys. ``baseline``: as of `baseline_type`, for which ``rows`` give the types."""
    nothing = np.zeros(keys, np.int64)
    values = pa.nulls(keys, baseline_type(baseline, rows.schema))
    return KeyState(nothing, nothing, nothing, np.zeros(keys, np.bool_), values, pa.nulls(keys))


def no_row_state(rows: int) -> RowState:
    """Return the row state of new rows: no pane has shown them."""
    nothing = np.zeros(rows, np.bool_)
    return RowState(nothing, nothing)


def restore(
    baseline: str | pa.DataType | None, state: WindowState, new: Sequences
) -> tuple[Sequences, RestoredState, WindowState]:
    """Append new rows to the retained rows of a state, and restore its key state and row state.

    ``baseline``: as in `fresh`.

    Also return the rest of the state: the keys without retained and without new rows, whose key state does not change.
    """
    sequences, picks = append(state.sequences, new)
    restored = len(state.sequences)
    known = _places_in(state.sequences.keys, sequences)
    # One more key behind all known ones, from which new keys take their state.
    nothing_yet = fresh(baseline, new.rows, 1)
    known_baseline = state.key_state.baseline.cast(nothing_yet.baseline.type)
    padded = _joined([replace(state.key_state, baseline=known_baseline), nothing_yet])
    key_state = padded.take(np.where(known < 0, len(state.key_state.rows), known))
    restored_rows = np.zeros(len(sequences.bounds) - 1, np.int64)
    there = known >= 0
    restored_rows[there] = np.diff(state.sequences.bounds)[known[there]]
    more = no_row_state(len(new))
    joined = [np.concatenate([getattr(state.row_state, f.name), getattr(more, f.name)]) for f in fields(RowState)]
    row_state = joined if picks is None else [each[picks] for each in joined]
    if state.sequences.rank is not None:
        per_key = np.diff(sequences.bounds)
        place = np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1], per_key)
        rank = place + np.repeat(key_state.rows - restored_rows, per_key)
        rank[slice(restored) if picks is None else picks < restored] = state.sequences.rank
        sequences = replace(sequences, rank=rank)
    idle = np.ones(len(state.key_state.rows), np.bool_)
    idle[known[there]] = False
    rest = take_keys(state, np.flatnonzero(idle))
    return sequences, RestoredState(restored_rows, key_state, RowState(*row_state)), rest


def with_keys(
    state: WindowState, sequences: Sequences, others: WindowState | None, baseline: str | pa.DataType | None
) -> WindowState:
    """Return a state that also has the keys of some sequences that are neither in it nor in ``others``, without rows.

    ``baseline``: as in `fresh`.
    """
    keys = sequences.keys
    if keys is None or state.sequences.keys is None:
        return state
    known = [each.sequences.keys for each in (state, others) if each is not None]
    missing = np.logical_and.reduce([places_among(each, keys) < 0 for each in known])
    if not missing.any():
        return state
    picks, rows = np.flatnonzero(missing), state.sequences.rows
    return merge(state, without_rows(replace(sequences, rows=rows), picks, fresh(baseline, rows, len(picks))))


def without_rows(sequences: Sequences, picks: Ints, key_state: KeyState) -> WindowState:
    """Return a state of the keys of some sequences at ``picks``, without rows."""
    keys = None if sequences.keys is None else sequences.keys.take(pa.array(picks))
    bounds, nothing = np.zeros(len(picks) + 1, np.int64), np.empty(0, np.int64)
    empty = Sequences(keys, bounds, sequences.rows.slice(0, 0), nothing, sequences.order, nothing)
    return WindowState(empty, key_state, no_row_state(0))


def with_newest(state: WindowState, sequences: Sequences, newest: pa.Array) -> WindowState:
    """Return a state with the last rows of its keys. ``sequences``: those whose keys ``newest`` is of."""
    places = _places_in(sequences.keys, state.sequences)
    return replace(state, key_state=replace(state.key_state, newest=newest.take(pa.array(places, mask=places < 0))))


def concatenate(states: Sequence[WindowState]) -> WindowState:
    """Return states of different keys as one. All keys of a state sort before those of the next one."""
    if len(states) == 1:
        return states[0]
    parts = [state.sequences for state in states]
    keys = [part.keys for part in parts if part.keys is not None]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    bounds = np.concatenate([[0], *(part.bounds[1:] + start for part, start in zip(parts, starts, strict=False))])
    rows = one_batch(pa.Table.from_batches([part.rows for part in parts]))
    pos, rank = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pos", "rank"))
    row_state: list[Any] = [
        np.concatenate([getattr(state.row_state, f.name) for state in states]) for f in fields(RowState)
    ]
    distinct = pa.concat_tables(keys) if keys else None
    return WindowState(
        Sequences(distinct, bounds, rows, pos, parts[0].order, rank),
        _joined([state.key_state for state in states]),
        RowState(*row_state),
    )


def merge(one: WindowState, other: WindowState) -> WindowState:
    """Return two states of different keys as one, sorted by key."""
    both = concatenate([one, other])
    if both.sequences.keys is None:
        return one if len(one.key_state.rows) else other
    codes, _ = group_codes([combined(column) for column in both.sequences.keys.columns])
    return take_keys(both, np.argsort(codes, kind="stable"))


def with_row_counts(state: WindowState) -> WindowState:
    """Return a state with ranks and row counts as if its keys never had other rows than the retained ones."""
    sequences = state.sequences
    counts = np.diff(sequences.bounds)
    rank = np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1], counts)
    key_state = replace(state.key_state, rows=counts, begin=np.zeros_like(counts))
    return replace(state, sequences=replace(sequences, rank=rank), key_state=key_state)


def take_keys(state: WindowState, picks: Ints) -> WindowState:
    """Return the state of the keys at ``picks``, in that order."""
    sequences = state.sequences
    counts = np.diff(sequences.bounds)[picks]
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.repeat(sequences.bounds[:-1][picks] - bounds[:-1], counts) + np.arange(bounds[-1])
    keys = None if sequences.keys is None else sequences.keys.take(pa.array(picks))
    rank = None if sequences.rank is None else sequences.rank[rows]
    kept = Sequences(keys, bounds, take_rows(sequences.rows, rows), sequences.pos[rows], sequences.order, rank)
    return WindowState(kept, state.key_state.take(picks), state.row_state.take(rows))


def only_rows(sequences: Sequences, picks: Ints) -> Sequences:
    """Return sequences with only the rows at ``picks``, which must ascend. Without ranks, places become ranks."""
    if sequences.rank is None:
        rank = picks - sequences.bounds[np.searchsorted(sequences.bounds, picks, side="right") - 1]
    else:
        rank = sequences.rank[picks]
    bounds = np.searchsorted(picks, sequences.bounds)
    rows, pos = take_rows(sequences.rows, picks), sequences.pos[picks]
    return Sequences(sequences.keys, bounds, rows, pos, sequences.order, rank)


def _places_in(keys: pa.Table | None, sequences: Sequences) -> Ints:
    """The place among ``keys`` of each key of the sequences, -1 if it is not among them: int64 (K,)."""
    if keys is None or sequences.keys is None:
        return np.zeros(len(sequences.bounds) - 1, np.int64)
    return places_among(keys, sequences.keys)


def _joined(states: Sequence[KeyState]) -> KeyState:
    numbers = [np.concatenate([getattr(one, f.name) for one in states]) for f in fields(KeyState)[:-4]]
    # saved texts of keys that have no operator yet are of type null; keys that nothing looked back at have no last rows
    has_none = all(pa.types.is_null(one.operator.type) for one in states)
    operator = pa.concat_arrays([one.operator.cast(pa.null() if has_none else pa.string()) for one in states])
    optional = [_joined_columns(states, [getattr(one, name) for one in states]) for name in ("newest", "ongoing")]
    columns: list[Any] = [*numbers, pa.concat_arrays([one.baseline for one in states]), operator, *optional]
    return KeyState(*columns)


def _joined_columns(states: Sequence[KeyState], columns: Sequence[pa.Array | None]) -> pa.Array | None:
    known = [each.type for each in columns if each is not None]
    if not known:
        return None
    parts = zip(states, columns, strict=True)
    return pa.concat_arrays([pa.nulls(len(one.rows), known[0]) if each is None else each for one, each in parts])
