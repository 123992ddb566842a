"""What operators are called for: rows, panes and evictions of some keys, each by its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...kinds.context import WindowContext
from ...kinds.eviction.key_lifetimes import Lifetimes, lifetimes
from ...kinds.signals import Signals
from ...panes.membership import memberships_of
from ...panes.panes import BY_TICK, Panes
from ...planning.plan import Plan
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences
from ..stream_columns import stream_columns, stream_values
from .timetable import NO_HEAD, Head, Timetable, make_timetable

PaneColumns = Callable[[Sequences, Marks, Panes], tuple[Panes, pa.Table]]
"""Returns those of all panes that are emitted, and the columns that describe them in a result."""


@dataclass(frozen=True, slots=True)
class Described:
    """What the result says of the panes, rows and evictions of some keys, by their numbers.

    ``plan``: the plan of the window.
    ``sequences``: the rows.
    ``emitted``: the columns of key, pane and stream of each pane, as the result has them.
    ``evicted_at``: the stream columns of evictions, one array for each of `Plan.stream_names`.
    """

    plan: Plan
    sequences: Sequences
    emitted: pa.Table
    evicted_at: list[pa.Array]


@dataclass(frozen=True, slots=True)
class Scene(Described):
    """The rows of some keys, and what happens to them.

    ``panes``: the panes that are emitted.
    ``timetable``: when operators are called.
    """

    panes: Panes
    timetable: Timetable


def make_scene(
    plan: Plan,
    sequences: Sequences,
    marks: Marks,
    panes: Panes,
    emitted: pa.Table,
    signals: Signals,
    context: WindowContext,
    head: Head = NO_HEAD,
) -> Scene:
    """Return a scene; ``marks`` and ``panes`` as the kind of the window returned them for ``signals``."""
    steps = plan.kind.row_steps(sequences, signals, panes, memberships_of(panes.membership), context)
    parts = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    table = make_timetable(plan, sequences, marks, panes, steps, context, parts, head)
    at = _no_stamps(plan) if parts is None else _evicted_at(plan, sequences, marks, parts, signals, context)
    return Scene(plan, sequences, emitted, at, panes, table)


def no_events(plan: Plan, sequences: Sequences) -> Described:
    """Return what there is to say of keys to which nothing happens."""
    return Described(plan, sequences, plan.schema.empty_table(), _no_stamps(plan))


def _no_stamps(plan: Plan) -> list[pa.Array]:
    return [pa.nulls(0)] * len(plan.stream_names)


def _evicted_at(
    plan: Plan, sequences: Sequences, marks: Marks, parts: Lifetimes, signals: Signals, context: WindowContext
) -> list[pa.Array]:
    """Return the stream columns of evictions: those of the rows or marks that cause them, or of ticks."""
    by_tick = parts.evictions.by_tick
    behind: Ints = len(sequences) + len(signals.marks) + np.arange(len(by_tick))
    instants = plan.kind.eviction_instants(sequences, signals.marks, parts, context) if by_tick.any() else None
    return stream_columns(plan, stream_values(plan, sequences, marks), np.where(by_tick, BY_TICK, behind), instants)


def scene_anew(
    plan: Plan,
    sequences: Sequences,
    signals: Signals,
    context: WindowContext,
    number: int,
    columns: PaneColumns,
    head: Head,
) -> Scene:
    """Return the scene of windows that begin anew with these rows. ``number``: of the first pane."""
    context = replace(context, restored=None, last_tick=None)
    panes, marks = plan.kind.panes(sequences, signals, context)
    panes = replace(panes, number=panes.number + number)
    emitted, described = columns(sequences, marks, panes)
    return make_scene(plan, sequences, marks, emitted, described, signals, context, head)


def rows_of(sequences: Sequences, key: int, first: int, stop: int) -> Sequences:
    """Return the rows ``[first, stop)`` of one key as sequences of their own, without ranks."""
    keys = None if sequences.keys is None else sequences.keys.slice(key, 1)
    rows, pos = sequences.rows.slice(first, stop - first), sequences.pos[first:stop]
    return Sequences(keys, np.array([0, stop - first]), rows, pos, sequences.order)
