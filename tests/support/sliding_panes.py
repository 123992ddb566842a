"""Panes of sliding windows by the kernels, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from references import tumbling as reference
from support import strategies as my
from wincli.windowing.kinds.context import Signals, WindowContext
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language import spec
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import Ranges, gathered, sizes
from wincli.windowing.rows.panes import AT_END, BY_TICK, CLOSED_BY, Panes
from wincli.windowing.rows.sequence import Sequences, build, one_batch


@dataclass(frozen=True, slots=True)
class Pane:
    """One output as both sides tell it. ``rows`` are arrival positions; ``number`` None: a mark and no row."""

    key: tuple[Any, ...] | None
    number: int | None
    rows: tuple[int, ...]
    closed_by: str | None
    at: Any
    pos: int | None


def sequences_of(stream: my.Stream) -> Sequences:
    rows = one_batch(stream.table)
    return build(rows, np.arange(len(stream.table)), stream.key, stream.order, stream.table.column_names)


def kernel_panes(window: spec.Sliding, sequences: Sequences, setting: WindowContext) -> Panes:
    signals = Signals(no_marks(sequences.rows, sequences.order))
    return kind_of(window).panes(sequences, signals, setting)[0]


def by_kernels(stream: my.Stream, window: spec.Sliding, setting: WindowContext) -> list[Pane]:
    """The panes by key, in each as they come, then the marks alone."""
    sequences = sequences_of(stream)
    panes = kernel_panes(window, sequences, setting)
    check_form(panes, sequences)
    keys = keys_of(sequences)
    rows, bounds = gathered(panes.membership, 0, len(panes))
    stamps = stamps_of(sequences, panes.cause, panes.at)
    out = [
        Pane(
            keys[panes.key[p]],
            int(panes.number[p]),
            tuple(sequences.pos[rows[bounds[p] : bounds[p + 1]]].tolist()),
            CLOSED_BY[panes.closed_by[p]],
            *stamps[p],
        )
        for p in range(len(panes))
    ]
    assert (panes.marks_only is not None) == (setting.partial and not stream.key)
    marks = stamps_of(sequences, panes.marks_only.cause, panes.marks_only.at) if panes.marks_only is not None else []
    return out + [Pane(None, None, (), None, *stamp) for stamp in marks]


def check_form(panes: Panes, sequences: Sequences) -> None:
    """What the contract says of the arrays, beside what they mean."""
    assert (np.diff(panes.key) >= 0).all()
    assert (sizes(panes.membership) > 0).all()
    assert panes.start is None
    assert panes.end is None
    if isinstance(panes.membership, Ranges):
        assert not panes.membership.disjoint
        assert panes.membership.base.tolist() == sequences.bounds[panes.key].tolist()
        same = np.diff(panes.key) == 0
        assert (np.diff(panes.membership.lo)[same] >= 0).all()
        assert (np.diff(panes.membership.hi)[same] >= 0).all()
    else:
        assert len(panes.membership.first_entry) == len(panes.membership.first_pane) == len(sequences.bounds)
        assert panes.membership.first_pane[-1] == len(panes)


def keys_of(sequences: Sequences) -> list[tuple[Any, ...]]:
    if sequences.keys is None:
        return [()]
    return list(zip(*(reference.ticks_of(column) for column in sequences.keys.columns), strict=True))


def stamps_of(sequences: Sequences, cause: Any, at: pa.Array | None) -> list[tuple[Any, int | None]]:
    """``_at`` of the first order column, and ``_pos``."""
    order = reference.ticks_of(sequences.rows.column(sequences.order[0])) if sequences.order else None
    ticks = None if at is None else reference.ticks_of(at)
    out: list[tuple[Any, int | None]] = []
    for index, row in enumerate(cause.tolist()):
        if row == AT_END:
            out.append((None, None))
        elif row == BY_TICK:
            assert ticks is not None
            out.append((ticks[index], -1))
        else:
            out.append((order[row] if order else None, int(sequences.pos[row])))
    return out
