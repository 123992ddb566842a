"""Panes of a run that goes on from another: those that came out before are left out, the others numbered on from them.

The rows carried bring panes out once more, of which only the cause is right. What a new pane shows is right, and what
it shows that the pane before it did not is told from the rows which that one is known to have shown.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.values import instants_at
from ..columns.arrays import Ints, Mask
from ..language.spec import Batched, Tumbling, WindowSpec
from ..panes.membership import Memberships, memberships_of, sizes
from ..panes.panes import BY_TICK, MarkOnly, Panes
from ..sequences.sequence import Sequences
from ..state.window_state import RestoredState


def already_emitted(spec: WindowSpec, panes: Panes, past: RestoredState, sequences: Sequences) -> Mask:
    """Return which panes came out in an earlier run, (P,): caused by carried rows, old signals, or ticks up to then.

    Empty windows that tumble come out once the next row of their key is there, so they are new.
    """
    before = _caused_before(spec, panes.cause, panes.at, past, sequences)
    return before & (sizes(panes.membership) > 0) if isinstance(spec, Tumbling) else before


def marks_already_emitted(spec: WindowSpec, bare: MarkOnly, past: RestoredState, sequences: Sequences) -> Mask:
    """Return which marks without rows came out in an earlier run, of any shape."""
    return _caused_before(spec, bare.cause, bare.at, past, sequences)


def renumbered(panes: Panes, first: Ints) -> Panes:
    """Return panes with numbers that count on from ``first``, int64 (K,)."""
    return replace(panes, number=panes.number + first[panes.key])


def with_previous_pane(panes: Panes, last: Mask, sequences: Sequences) -> Panes:
    """Put before each key's panes the one of which all that is known are the rows that it showed, ``last``, (n,).

    It has a number below 0. Keys that have no panes get none.
    """
    lives = memberships_of(panes.membership)
    key = panes.key[np.minimum(lives.first_pane[:-1], max(len(panes) - 1, 0))] if len(panes) else panes.key[:0]
    is_there = np.diff(lives.first_pane) > 0
    key = np.where(is_there, key, -1) if len(panes) else np.full(len(is_there), -1)
    per_entry = np.repeat(np.arange(len(key)), np.diff(lives.first_entry))
    shift = np.cumsum(is_there)
    enter, leave = lives.enter + shift[per_entry], lives.leave + shift[per_entry]
    first_pane = np.append(0, np.cumsum(np.diff(lives.first_pane) + is_there))
    row, enter, leave, first_entry = _with_rows(lives, enter, leave, per_entry, first_pane, key, last, sequences)
    begins, fronts = lives.first_pane[:-1][is_there], first_pane[:-1][is_there]
    source = np.insert(np.arange(len(panes)), begins, begins)
    number = panes.number[source]
    number[fronts] = -1
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
    lives: Memberships,
    enter: Ints,
    leave: Ints,
    per_entry: Ints,
    first_pane: Ints,
    key: Ints,
    last: Mask,
    sequences: Sequences,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Entries that the first pane of each sequence shows, too, if their rows are among the ``last``."""
    of_key = np.full(len(sequences.bounds) - 1, -1)
    of_key[key[key >= 0]] = np.flatnonzero(key >= 0)
    rows = np.flatnonzero(last)
    sequence = np.repeat(of_key, np.diff(sequences.bounds))[rows]
    rows, sequence = rows[sequence >= 0], sequence[sequence >= 0]
    front = first_pane[:-1]
    goes_on = last[lives.row] & (enter == front[per_entry] + 1)
    enter = enter - goes_on
    alone = ~np.isin(rows, lives.row[goes_on])
    rows, sequence = rows[alone], sequence[alone]
    every = np.concatenate([per_entry, sequence])
    row = np.concatenate([lives.row, rows])
    enter = np.concatenate([enter, front[sequence]])
    leave = np.concatenate([leave, front[sequence] + 1])
    ascending = np.lexsort([enter, row, every])
    first_entry = np.searchsorted(every[ascending], np.arange(len(key) + 1))
    return row[ascending], enter[ascending], leave[ascending], first_entry


def _caused_before(
    spec: WindowSpec, cause: Ints, at: pa.Array | None, past: RestoredState, sequences: Sequences
) -> Mask:
    rows = len(sequences)
    carried = np.append(~past.is_new(sequences.bounds), False)
    out = carried[np.where((cause >= 0) & (cause < rows), cause, rows)]
    out |= (cause >= rows) & (cause < rows + past.signals)
    if at is None or past.since is None:
        return out
    by_tick = cause == BY_TICK
    stood = instants_at(past.since, sequences, at.type)
    # rows may yet have come at the instant of a tick of ``every``, so that it has not been told
    compare = pc.less if isinstance(spec, Batched) and spec.every is not None else pc.less_equal
    return out | (by_tick & compare(at, stood).fill_null(False).to_numpy(zero_copy_only=False))
