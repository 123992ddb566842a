"""The stream columns: ``_at``, ``_pos`` and the others that put a result in emission order (section 10)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints
from ..panes.panes import BY_TICK
from ..planning.plan import Plan
from ..planning.result_schema import MARK, POS, TURN, numbered
from ..sequences.marks import Marks, with_marks_behind
from ..sequences.sequence import Sequences


def stream_values(plan: Plan, sequences: Sequences, marks: Marks) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` of all rows and, behind them, all marks; none if only ticks cause."""
    if plan.causes == "ticks":
        return []
    both = zip(_row_columns(plan, sequences.rows, sequences.pos), mark_columns(plan, marks), strict=True)
    return [with_marks_behind(rows, behind) for rows, behind in both]


def stream_columns(plan: Plan, values: list[pa.Array], cause: Ints, at: pa.Array | None) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` for panes with the given causes, or instants ``at`` of the clock.

    ``values``: what `stream_values` returns for the rows and marks of the causes. The columns hold the values of the
    row or mark that is the cause; the instant, and -1 for the position, where the clock is the cause; else null.
    """
    ticks = _tick_columns(cause, at) if at is not None else {}
    if plan.causes == "ticks":
        return [ticks[name] for name in plan.stream_names]
    found = _at_causes(values, cause)
    if not ticks:
        return found
    by_tick = pa.array(cause == BY_TICK)
    return [
        pc.if_else(by_tick, ticks[name], column) if name in ticks else column
        for name, column in zip(plan.stream_names, found, strict=True)
    ]


def _at_causes(columns: list[pa.Array], cause: Ints) -> list[pa.Array]:
    """Return the values at causes, null where the cause is neither a row nor a mark."""
    known = cause >= 0
    if known.all() or not len(columns[0]):
        picks = pa.array(cause, mask=~known)
        return [pc.take(column, picks) for column in columns]
    # not one `take` by places with nulls: that takes four times as long
    picks, mask = pa.array(np.maximum(cause, 0)), pa.array(known)
    taken = (pc.take(column, picks, boundscheck=False) for column in columns)
    return [pc.if_else(mask, column, pa.scalar(None, column.type)) for column in taken]


def mark_columns(plan: Plan, marks: Marks) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` of marks."""
    return _row_columns(plan, marks.rows, marks.pos)


def constant(text: str, size: int) -> pa.Array:
    """Return a column that repeats one text."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int8)), pa.array([text]), safe=False)


def only_marks(plan: Plan, stream: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Return mark-only rows: all columns but the stream columns are null."""
    size = len(stream["_at"])
    columns = {**stream, MARK: constant("only", size)}
    arrays = [columns[f.name] if f.name in columns else pa.nulls(size, f.type) for f in plan.schema]
    return pa.Table.from_arrays(arrays, names=plan.schema.names)


def _row_columns(plan: Plan, rows: pa.RecordBatch, pos: Ints) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` of rows that hold the sort columns."""
    columns = {numbered("_at", i): rows.column(name) for i, name in enumerate(plan.at)}
    if plan.causes == "both":
        columns["_at"] = plan.kind.to_tick_type(columns["_at"], plan.at[0], plan.options.origin)
    columns = columns or {"_at": pa.nulls(len(pos), pa.int64())}
    columns[POS] = pa.array(pos) if plan.pos is None else rows.column(plan.pos)
    columns[TURN] = pa.array(np.ones(len(pos), np.int8))
    columns |= {numbered("_tie", i): rows.column(name) for i, name in enumerate(plan.ties)}
    return [columns[name] for name in plan.stream_names]


def _tick_columns(cause: Ints, at: pa.Array) -> dict[str, pa.Array]:
    by_tick = pa.array(cause == BY_TICK)
    nothing = pa.scalar(None, pa.int64())
    return {
        "_at": pc.if_else(by_tick, at, pa.scalar(None, at.type)),
        POS: pc.if_else(by_tick, pa.scalar(-1, pa.int64()), nothing),
        TURN: pc.if_else(by_tick, pa.scalar(0, pa.int8()), pa.scalar(None, pa.int8())),
    }
