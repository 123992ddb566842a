"""What a scan with an operator comes to: its operators decide it, so it is known once the tables have been read.

An operator may ask for the eviction of its key. Then the rows before that are gone as if they had never been there, and
the account of rows, the open windows and the window state are those of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask
from ..emit.operator_scenes import OperatorOutcome
from ..emit.result_columns import HiddenPanes
from ..kinds.context import Signals, WindowContext, ticks_before
from ..kinds.contract import WindowKind
from ..kinds.key_lifetimes import Lifetimes, lifetimes
from ..planning.plan import Plan
from ..rows.membership import Memberships, memberships_of, shown, sizes
from ..rows.panes import BY_TICK, NO_REJECTS, Panes, ScanRejects, concatenate, reason, rows_shown
from ..rows.sequence import Sequences
from ..state.window_state import (
    KeyState,
    RestoredState,
    RowState,
    WindowState,
    fresh,
    merge,
    no_row_state,
    only_rows,
    with_row_counts,
    without_rows,
)


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The result of a scan and the accounting of its rows.

    ``tables``: the tables of the result, an iterator that can be read once.
    ``windows``: number of panes that came out.
    ``hidden``: how many of them have no row in the result, known when the tables have been read.
    ``open``: number of windows that the end of the data would bring out, and the end of this run does not.
    ``windowed``: rows that a pane shows, and that no pane of an earlier run showed.
    ``dropped``: rows that only panes at the end would have shown, under ``--at-end drop``.
    ``filtered``: rows in none of the other counts.
    ``held``: rows in the state that no pane has shown yet.
    ``by_mark``: int64, for each pane that a mark brought out, the number of that mark; empty if the window takes none.
    ``state``: the window state for the next run; None where there is none.
    ``rejects``: rows that the window has rejected, in none of the counts.
    ``settle``: returns the result once the tables have been read, where an operator decides what it is.
    """

    tables: Iterator[pa.Table]
    windows: int
    hidden: HiddenPanes
    open: int
    windowed: int
    dropped: int
    filtered: int
    held: int
    by_mark: Ints
    state: WindowState | None
    rejects: ScanRejects = NO_REJECTS
    settle: Callable[[], ScanResult] | None = None

    def settled(self) -> ScanResult:
        """Return the result with what its operators have decided: only after ``tables`` have been read."""
        return self if self.settle is None else self.settle()


# Panes of an incremental run: leave out those that an earlier run emitted, and number the others on from them.
#
# Restored rows bring their panes out once more, and of such a pane only the cause is right. A new pane shows the
# right rows. What it shows and the pane before it did not is computed from the rows that the state recorded as shown
# last.


def already_emitted(kind: WindowKind, panes: Panes, context: WindowContext, sequences: Sequences) -> Mask:
    """Return which panes an earlier run emitted, bool (P,).

    Those are panes caused by restored rows, by earlier signals, or by ticks up to the clock of that run. Empty windows
    come out with the next row of their key, so they are new, unless that was there already.
    """
    caused = caused_before(kind, panes.cause, panes.at, context, sequences)
    if "empty" not in kind.needs.options:
        return caused
    known = sizes(panes.membership) > 0
    if kind.needs.ends is not None and context.windows is None and not known.all() and context.restored is not None:
        lives = memberships_of(panes.membership)
        latest = np.full(len(sequences.bounds), -1)
        np.maximum.at(latest, np.repeat(np.arange(len(lives.first_entry) - 1), np.diff(lives.first_entry)),
                      np.where(context.restored.is_new(sequences.bounds)[lives.row], -1, lives.enter))  # fmt: skip
        known |= np.arange(len(panes)) < latest[panes.key]
    return caused & known


def with_previous_pane(panes: Panes, last: Mask, sequences: Sequences) -> Panes:
    """Put before the panes of each key the last pane of the earlier run, of which only the rows it showed are known.

    ``last``: bool (n,), these rows. The added panes have numbers below 0. Keys without panes get none.
    """
    memberships = memberships_of(panes.membership)
    key = panes.key[np.minimum(memberships.first_pane[:-1], max(len(panes) - 1, 0))] if len(panes) else panes.key[:0]
    is_there = np.diff(memberships.first_pane) > 0
    key = np.where(is_there, key, -1) if len(panes) else np.full(len(is_there), -1)
    per_entry = np.repeat(np.arange(len(key)), np.diff(memberships.first_entry))
    shift = np.cumsum(is_there)  # each key with panes gets one more in front, which shifts all panes after it
    enter, leave = memberships.enter + shift[per_entry], memberships.leave + shift[per_entry]
    first_pane = np.append(0, np.cumsum(np.diff(memberships.first_pane) + is_there))
    row, enter, leave, first_entry = _with_rows(memberships, enter, leave, per_entry, first_pane, key, last, sequences)
    begins, firsts = memberships.first_pane[:-1][is_there], first_pane[:-1][is_there]
    source = np.insert(np.arange(len(panes)), begins, begins)
    number = panes.number[source]
    number[firsts] = -1
    start, end, at = (None if a is None else a.take(pa.array(source)) for a in (panes.start, panes.end, panes.at))
    return replace(
        panes,
        key=panes.key[source],
        number=number,
        membership=Memberships(row, enter, leave, first_entry, first_pane),
        cause=panes.cause[source],
        closed_by=panes.closed_by[source],
        start=start,
        end=end,
        at=at,
    )


def _with_rows(
    memberships: Memberships,
    enter: Ints,
    leave: Ints,
    per_entry: Ints,
    first_pane: Ints,
    key: Ints,
    last: Mask,
    sequences: Sequences,
) -> tuple[Ints, Ints, Ints, Ints]:
    of_key = np.full(len(sequences.bounds) - 1, -1)
    of_key[key[key >= 0]] = np.flatnonzero(key >= 0)
    rows = np.flatnonzero(last)
    sequence = np.repeat(of_key, np.diff(sequences.bounds))[rows]
    rows, sequence = rows[sequence >= 0], sequence[sequence >= 0]
    first_of_key = first_pane[:-1]
    # A row of the earlier pane that the first new pane still shows keeps one entry, which begins a pane earlier. Other
    # rows of the earlier pane get an entry of that pane alone.
    is_continued = last[memberships.row] & (enter == first_of_key[per_entry] + 1)
    enter = enter - is_continued
    only_last = ~np.isin(rows, memberships.row[is_continued])
    rows, sequence = rows[only_last], sequence[only_last]
    every = np.concatenate([per_entry, sequence])
    row = np.concatenate([memberships.row, rows])
    enter = np.concatenate([enter, first_of_key[sequence]])
    leave = np.concatenate([leave, first_of_key[sequence] + 1])
    ascending = np.lexsort([enter, row, every])
    first_entry = np.searchsorted(every[ascending], np.arange(len(key) + 1))
    return row[ascending], enter[ascending], leave[ascending], first_entry


def caused_before(
    kind: WindowKind, cause: Ints, at: pa.Array | None, context: WindowContext, sequences: Sequences
) -> Mask:
    """Return which causes an earlier run has seen, bool, in their shape. ``at``: the ticks among them."""
    restored = context.restored
    assert restored is not None
    rows = len(sequences)
    is_restored = np.append(~restored.is_new(sequences.bounds), False)
    out = is_restored[np.where((cause >= 0) & (cause < rows), cause, rows)]
    out |= (cause >= rows) & (cause < rows + restored.signals)
    if at is None or context.since is None:
        return out
    return out | ((cause == BY_TICK) & ticks_before(at, context, sequences, kind.needs.waits))


# Rows and key state that windows keep at the end of a run, for the next run (semantics section 7).
#
# For each kind of window this says which rows are still of use: rows that a pane to come may show, and rows that
# decide how rows in the window are counted. A run that ends with ``flush`` or ``drop`` retains no rows: its windows
# begin anew, and only their numbers go on.


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
    keys, rows, restored = len(sequences.bounds) - 1, len(sequences), context.restored
    last = np.zeros(rows, np.bool_)
    if looks_back:
        newest = picks[np.append(panes.key[picks][1:] != panes.key[picks][:-1], True)[: len(picks)]]
        has_emitted = np.zeros(keys, np.bool_)
        has_emitted[panes.key[newest]] = True
        if restored is not None:
            last = restored.row_state.last & ~np.repeat(has_emitted, np.diff(sequences.bounds))
        last = last | rows_shown(panes.take(newest), rows)
    windows = np.bincount(panes.key[picks], minlength=keys)
    return Emission(rows_shown(panes.take(picks), rows), last, windows, pa.nulls(keys))


def snapshot(
    kind: WindowKind,
    sequences: Sequences,
    signals: Signals,
    context: WindowContext,
    panes: Panes | None,
    emission: Emission,
    has_ranks: bool = False,
) -> WindowState:
    """Return the window state for the next run.

    ``panes``: all panes; None where windows overlap, and rows alone decide. ``has_ranks``: whether rows keep the
    numbers that they have among all of their key, whatever the kind.
    """
    restored = context.restored or nothing_restored(kind, sequences)
    key_lifetimes = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    is_retained = np.zeros(len(sequences), np.bool_)
    if context.hold:
        is_retained = kind.retained_rows(sequences, context, panes, key_lifetimes) | emission.last
    settled = kind.settled_rows(sequences, panes, is_retained)
    key_state = _key_state(kind, sequences, context, restored, key_lifetimes)
    if context.hold and panes is not None and panes.left is not None:
        key_state = replace(key_state, baseline=panes.left)
    key_state = replace(key_state, windows=restored.key_state.windows + emission.windows, operator=emission.operator)
    row_state = RowState(restored.row_state.shown | emission.shown | settled, emission.last)
    picks = np.flatnonzero(is_retained)
    kept = only_rows(replace(sequences, rows=kind.kept(sequences.rows, panes)), picks)
    state = WindowState(kept, key_state, row_state.take(picks))
    # A tumbling window never looks back beyond its first row: equal windows give equal states, whatever came before. No
    # window counts rows that are in panes as rows of their own.
    return state if has_ranks or kind.needs.shares_rows else with_row_counts(state)


def nothing_restored(kind: WindowKind, sequences: Sequences) -> RestoredState:
    """Return the restored state of a first run."""
    keys = len(sequences.bounds) - 1
    key_state = fresh(kind.needs.baseline, sequences.rows, keys)
    return RestoredState(np.zeros(keys, np.int64), key_state, no_row_state(len(sequences)))


def _key_state(
    kind: WindowKind,
    sequences: Sequences,
    context: WindowContext,
    restored: RestoredState,
    key_lifetimes: Lifetimes | None,
) -> KeyState:
    bounds = sequences.bounds
    new = fresh(kind.needs.baseline, sequences.rows, len(bounds) - 1)
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


@dataclass(frozen=True, slots=True)
class OperatorScan:
    """A scan with an operator.

    ``plan``, ``sequences``, ``signals``, ``context``: as the panes were computed with.
    ``panes``: all panes.
    ``is_continued``: whether another run restores the state of this one.
    ``outcome``: what the calls have come to.
    """

    plan: Plan
    sequences: Sequences
    signals: Signals
    context: WindowContext
    panes: Panes
    is_continued: bool
    outcome: OperatorOutcome


def settle(done: OperatorScan, undecided: ScanResult) -> ScanResult:
    """Return what a scan has come to, once its tables have been read. ``undecided``: what was known before."""
    outcome, options = done.outcome, done.plan.options
    before = np.zeros(len(done.sequences), np.bool_)
    if done.context.restored is not None:
        before = done.context.restored.row_state.shown
    now, picks, emptied = _without_evicted(done) if outcome.asked.any() else (done, None, None)
    is_end = now.panes.closed_by == reason("end")
    state = None
    if done.is_continued and not len(now.sequences) and emptied is not None:
        state = emptied
    elif done.is_continued:
        left = now.outcome
        emission = Emission(left.shown, left.held, left.panes, pa.array(left.saved, pa.string()))
        state = snapshot(now.plan.kind, now.sequences, now.signals, now.context, now.panes, emission)
        state = state if emptied is None else merge(state, emptied)
    windowed = int(np.count_nonzero(outcome.shown & ~before))
    held = 0 if state is None else int(np.count_nonzero(~state.row_state.shown))
    dropped = 0
    if options.at_end == "drop":
        panes = now.panes
        if done.context.restored is not None:
            panes = panes.take(np.flatnonzero(~already_emitted(now.plan.kind, panes, now.context, now.sequences)))
        placed = shown(panes.membership, len(now.sequences)) & ~now.outcome.shown
        dropped = int(np.count_nonzero(placed & ~(before if picks is None else before[picks])))
    rejects = done.panes.rejects or NO_REJECTS
    if outcome.asked.any():
        keys = np.searchsorted(done.sequences.bounds, rejects.row, side="right") - 1
        rejects = concatenate([rejects.take(np.flatnonzero(rejects.row < outcome.anew[keys])), *outcome.rejected])
    filtered = len(before) - int(np.count_nonzero(before)) - windowed - dropped - held - len(rejects)
    still_open = int(np.count_nonzero(is_end)) if options.at_end == "hold" else 0
    return replace(
        undecided,
        windows=int(outcome.panes.sum()),
        open=still_open,
        windowed=windowed,
        dropped=dropped,
        filtered=filtered,
        held=held,
        by_mark=np.array(sorted(outcome.signals), np.int64),
        state=state,
        rejects=rejects,
        settle=None,
    )


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
    rest = only_rows(sequences, picks)
    named = None if sequences.keys is None else sequences.keys.take(pa.array(keys))
    rest = replace(rest, keys=named, bounds=np.append(rest.bounds[:-1][keys], rest.bounds[-1]))
    restored = replace(
        restored,
        restored_rows=restored.restored_rows[keys],
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
    window_state = without_rows(sequences, empty, key_state)
    return window_state if kind.needs.shares_rows else with_row_counts(window_state)
