"""Panes of an incremental run: leave out those that an earlier run emitted, and number the others on from them.

Restored rows bring their panes out once more, and of such a pane only the cause is right. A new pane shows the right
rows. What it shows and the pane before it did not is computed from the rows that the state recorded as shown last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.values import instants_at
from ..columns.arrays import Ints, Mask
from ..kinds.context import WindowContext
from ..kinds.contract import WindowKind
from ..panes.membership import Memberships, memberships_of
from ..panes.panes import BY_TICK, MarkOnly, Panes
from ..sequences.sequence import Sequences


def already_emitted(kind: WindowKind, panes: Panes, context: WindowContext, sequences: Sequences) -> Mask:
    """Return which panes an earlier run emitted, bool (P,).

    Those are panes caused by restored rows, by earlier signals, or by ticks up to the clock of that run. Empty tumbling
    windows come out with the next row of their key, so they are new.
    """
    return kind.already_emitted(panes, _caused_before(kind, panes.cause, panes.at, context, sequences))


def marks_already_emitted(kind: WindowKind, marks_only: MarkOnly, context: WindowContext, sequences: Sequences) -> Mask:
    """Return which mark-only entries an earlier run emitted, bool, in the shape of ``marks_only.cause``."""
    return _caused_before(kind, marks_only.cause, marks_only.at, context, sequences)


def renumbered(panes: Panes, first: Ints) -> Panes:
    """Return panes numbered on from ``first``, int64 (K,)."""
    return replace(panes, number=panes.number + first[panes.key])


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
    """Return membership entries in which the first pane of each sequence also shows its rows among ``last``."""
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


def _caused_before(
    kind: WindowKind, cause: Ints, at: pa.Array | None, context: WindowContext, sequences: Sequences
) -> Mask:
    restored = context.restored
    assert restored is not None
    rows = len(sequences)
    is_restored = np.append(~restored.is_new(sequences.bounds), False)
    out = is_restored[np.where((cause >= 0) & (cause < rows), cause, rows)]
    out |= (cause >= rows) & (cause < rows + restored.signals)
    if at is None or restored.since is None:
        return out
    by_tick = cause == BY_TICK
    clock_before = instants_at(restored.since, sequences, at.type)
    # more rows may have come at the instant of an ``every`` tick, so the earlier run did not emit that tick
    compare = pc.less if kind.waits_at_ticks(context) else pc.less_equal
    return out | (by_tick & compare(at, clock_before).fill_null(False).to_numpy(zero_copy_only=False))
