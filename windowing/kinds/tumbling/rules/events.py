"""Marks and ticks as events between the rows of a key, of which the first ends a window (semantics section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....clock.grids import AnyGrid, clock_cell
from ....columns.arrays import ClockValue, Ints, Mask, Measures
from ....rows.marks import Marks, epochs
from ....rows.panes import BY_TICK
from ....rows.sequence import Sequences
from .walk import Rules


@dataclass(frozen=True, slots=True)
class Events:
    """The first event behind each of n rows that comes before the next row of its key, or before the end.

    ``rule``: int16 (n,), the rule that it makes fire; -1: there is no event.
    ``cause``: int64 (n,), the mark, numbered after the rows, or `BY_TICK`; of any value where there is no event.
    ``at``: array (n,), the tick, of any value where no tick is the cause; None where no rule has ticks.
    """

    rule: Rules
    cause: Ints
    at: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of one rule.

    ``values``: measures (n,), the clock column.
    ``grid``: the grid over them, whose ticks these are.
    ``clock``: the current time of the clock; None: the largest value.
    ``type``: the type in which ticks of all rules are written.
    """

    values: Measures
    grid: AnyGrid
    clock: ClockValue | None
    type: pa.DataType


def no_events(rows: int) -> Events:
    """Return that no event lies between the rows."""
    return Events(np.full(rows, -1, np.int16), np.full(rows, BY_TICK))


def instants_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type in which the ticks of several grids on one clock are written and compared: the finest."""
    if all(one == types[0] for one in types):
        return types[0]
    stamps = [one for one in types if pa.types.is_timestamp(one) or pa.types.is_duration(one)]
    if len(stamps) == len(types):
        return max(types, key=lambda one: ("s", "ms", "us", "ns").index(one.unit))
    return pa.float64()


def with_ticks(events: Events, rule: int, bounds: Ints, ticks: Ticks) -> Events:
    """Add the ticks of one rule; ``events`` are those of the rules before it in the spec, without marks."""
    grid, values = ticks.grid, ticks.values
    if not len(values):
        return Events(events.rule, events.cause, pa.nulls(0, ticks.type) if events.at is None else events.at)
    cells = grid.cells(values)
    tick = _as_type(grid.bounds(cells + 1), ticks.type)
    comes = _changes(cells, bounds, cells < clock_cell(grid, values, ticks.clock))
    if events.at is not None:  # of two ticks the earlier comes first, of equal ones that of the first rule
        earlier = pc.less(tick, events.at).to_numpy(zero_copy_only=False)
        comes &= (events.rule < 0) | earlier
        tick = pc.if_else(pa.array(comes | (events.rule < 0)), tick, events.at)
    return Events(np.where(comes, np.int16(rule), events.rule).astype(np.int16), events.cause, tick)


def with_marks(events: Events, rule: int, sequences: Sequences, marks: Marks, waits: bool) -> Events:
    """Add the window marks, which must be in order.

    ``waits``: whether a tick comes behind the rows and marks of its instant; else it comes before them.
    """
    if not len(marks) or not len(sequences):
        return events
    epoch = epochs(sequences, marks)
    comes = _changes(epoch, sequences.bounds, epoch < len(marks))
    mark = np.minimum(epoch, len(marks) - 1)
    if events.at is not None:
        column = _as_type(marks.rows.column(0), events.at.type).take(pa.array(mark))
        before_tick = (
            (pc.less_equal if waits else pc.less)(column, events.at).fill_null(True).to_numpy(zero_copy_only=False)
        )
        comes &= before_tick | (events.rule < 0)
    return Events(
        np.where(comes, np.int16(rule), events.rule).astype(np.int16),
        np.where(comes, len(sequences) + mark, events.cause),
        events.at,
    )


def _changes(labels: Ints, bounds: Ints, at_end: Mask) -> Mask:
    """Return behind which rows of a key the label changes; behind its last row ``at_end`` says so."""
    out = at_end.copy()
    ends = np.zeros(len(labels), np.bool_)
    ends[bounds[1:][bounds[1:] > 0] - 1] = True
    inside = ~ends[:-1]
    out[:-1][inside] = (labels[1:] != labels[:-1])[inside]
    return out


def _as_type(instants: pa.Array, dtype: pa.DataType) -> pa.Array:
    return instants.cast(dtype, safe=not pa.types.is_floating(dtype))
