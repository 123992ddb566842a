"""What operators are called for: rows, panes and evictions of some keys, each by its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..kinds.context import Signals, WindowContext
from ..kinds.key_lifetimes import lifetimes
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.panes import BY_TICK, Panes
from ..rows.sequence import Sequences
from .operator_timetable import NO_HEAD, Head, Timetable, make_timetable
from .result_columns import stream_columns, stream_values

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
    parts = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    steps = plan.kind.row_steps(sequences, signals, panes, parts, context)
    table = make_timetable(plan, sequences, marks, panes, steps, context, parts, head)
    at = _no_stamps(plan)
    if parts is not None:
        by_tick, behind = parts.evictions.by_tick, len(sequences) + len(signals.marks)
        cause = np.where(by_tick, BY_TICK, behind + np.arange(len(by_tick)))
        at = stream_columns(plan, stream_values(plan, sequences, marks), cause, steps.evicted_at)
    return Scene(plan, sequences, emitted, at, panes, table)


def no_events(plan: Plan, sequences: Sequences) -> Described:
    """Return what there is to say of keys to which nothing happens."""
    return Described(plan, sequences, plan.schema.empty_table(), _no_stamps(plan))


def _no_stamps(plan: Plan) -> list[pa.Array]:
    return [pa.nulls(0)] * len(plan.stream_names)


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


# What calls of operators need besides rows and panes, and what they come to.


@dataclass(slots=True)
class OperatorOutcome:
    """What the calls of operators have come to, for n rows of K keys; complete once all tables have been read.

    ``shown``: bool (n,), the rows that a pane has shown.
    ``held``: bool (n,), the rows that are in a window.
    ``first``: int64 (K,), the first row of the window that each key has at the end.
    ``panes``: int64 (K,), how many panes were emitted.
    ``signals``: numbers of the signals that emitted a pane.
    ``saved``: what each operator has saved; None where there is none.
    ``asked``: bool (K,), the keys that were evicted because their operator asked for it.
    """

    shown: Mask
    held: Mask
    first: Ints
    panes: Ints
    signals: set[int]
    saved: list[str | None]
    asked: Mask


def no_outcome(sequences: Sequences) -> OperatorOutcome:
    """Return the outcome before the first call."""
    rows, keys = len(sequences), len(sequences.bounds) - 1
    masks = [np.zeros(size, np.bool_) for size in (rows, rows, keys)]
    first = sequences.bounds[:-1].copy()
    return OperatorOutcome(masks[0], masks[1], first, np.zeros(keys, np.int64), set(), [None] * keys, masks[2])


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """What calls of operators need besides rows and panes.

    ``signals``, ``context``: with which the panes were computed.
    ``columns``: as in `windowing.emit.operator_scenes.scene_anew`.
    ``saves``: whether another run restores what the operators leave.
    ``outcome``: takes what the calls come to.
    """

    signals: Signals
    context: WindowContext
    columns: PaneColumns
    saves: bool
    outcome: OperatorOutcome
