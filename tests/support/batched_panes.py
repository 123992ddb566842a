"""Panes of batched windows by the kernels, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from references import tumbling as reference
from support import strategies as my
from wincli.windowing.clock.interval_grid import batched_grid
from wincli.windowing.kinds.context import Signals, WindowContext
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.spec import Batched
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import Membership, Memberships, Ranges, entered_rows, gathered, left_rows
from wincli.windowing.rows.panes import AT_END, BY_TICK, CLOSED_BY, Panes
from wincli.windowing.rows.sequence import Sequences, build, one_batch

PLAIN = WindowContext()


@dataclass(frozen=True, slots=True)
class EmittedPane:
    """A pane or a lot in plain values: rows by arrival position, where there is a clock instants in exact seconds."""

    key: tuple[Any, ...]
    number: int
    rows: tuple[int, ...]
    entered: tuple[int, ...]
    left: tuple[int, ...]
    closed_by: str
    at: tuple[Any, ...] | None
    pos: int | None
    start: Any
    end: Any


def sequences_of(stream: my.Stream) -> Sequences:
    rows = one_batch(stream.table)
    return build(rows, np.arange(rows.num_rows), stream.key, stream.order, stream.table.column_names)


def batched_panes(spec: Batched, sequences: Sequences, setting: WindowContext) -> Panes:
    return kind_of(spec).panes(sequences, Signals(no_marks(sequences.rows, sequences.order)), setting)[0]


def by_kernel(spec: Batched, stream: my.Stream, setting: WindowContext = PLAIN) -> list[EmittedPane]:
    sequences = sequences_of(stream)
    panes = batched_panes(spec, sequences, setting)
    check_form(spec, panes)
    lots = [panes.membership, entered_rows(panes.membership), left_rows(panes.membership)]
    shown = zip(*(positions(contents, sequences) for contents in lots), strict=True)
    starts, ends, ats = bounds_of(spec, panes, stream, setting)
    columns = [reference.ticks_of(pa.chunked_array([sequences.rows[name]])) for name in stream.order]
    if spec.within is not None:
        columns[0] = converted(columns[0], stream.kind("clock"), instant_type(spec, stream, setting.origin))
    keys = () if sequences.keys is None else [reference.ticks_of(column) for column in sequences.keys.columns]
    emitted: list[EmittedPane] = []
    for p, (rows, came, went) in enumerate(shown):
        cause = int(panes.cause[p])
        at, pos = None, None
        if cause == BY_TICK:
            at, pos = (ats[p], *(None for _ in columns[1:])), -1
        elif cause != AT_END:
            at, pos = tuple(column[cause] for column in columns) or None, int(sequences.pos[cause])
        key = tuple(values[panes.key[p]] for values in keys)
        closed_by = CLOSED_BY[panes.closed_by[p]]
        emitted.append(EmittedPane(key, int(panes.number[p]), rows, came, went, closed_by, at, pos, starts[p], ends[p]))
    return emitted


def check_form(spec: Batched, panes: Panes) -> None:
    """Lives where rows may go before older ones, ranges everywhere else."""
    out_of_turn = spec.unique is not None or (spec.retain is not None and bool(spec.partition_by))
    assert isinstance(panes.membership, Memberships if out_of_turn else Ranges)
    if isinstance(panes.membership, Ranges):
        assert not panes.membership.disjoint
        assert panes.membership.row is None
    else:
        assert (panes.membership.enter < panes.membership.leave).all()


def positions(contents: Membership, sequences: Sequences) -> list[tuple[int, ...]]:
    rows, bounds = gathered(contents, 0, len(contents))
    return [tuple(sequences.pos[rows[a:b]].tolist()) for a, b in pairwise(bounds.tolist())]


def bounds_of(spec: Batched, panes: Panes, stream: my.Stream, setting: WindowContext) -> list[list[Any]]:
    """Start, end and instant of each pane; without a clock all are null, as the kernel leaves them to the result."""
    columns = [panes.start, panes.end, panes.at]
    if spec.within is None:
        assert columns == [None] * 3
        return [[None] * len(panes)] * 3
    kind = instant_type(spec, stream, setting.origin)
    assert [column.type for column in columns] == [kind] * 3
    assert batched_grid(spec, stream.kind("clock"), setting.origin).type == kind
    return [in_seconds(reference.ticks_of(pa.chunked_array([column])), kind) for column in columns]


def instant_type(spec: Batched, stream: my.Stream, origin: Fraction) -> pa.DataType:
    grid = () if spec.every is None else (Fraction(spec.every), origin)
    return reference.type_of_ticks(stream.kind("clock"), spec.within, *grid)


def in_seconds(values: list[Any], kind: pa.DataType) -> list[Fraction]:
    return [Fraction(value) * reference.seconds_per_unit(kind) for value in values]


def converted(values: list[Any], kind: pa.DataType, other: pa.DataType) -> list[Fraction]:
    """Values of one type as exact seconds after they were told in another."""
    return in_seconds([reference.as_value(exact, other) for exact in in_seconds(values, kind)], other)
