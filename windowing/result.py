"""Panes into the table that is written (design section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowing.aggregates import Bound, PaneFailed, PaneOverflow, compute
from windowing.columns import Ints, combined
from windowing.errors import DataError
from windowing.marks import Marks
from windowing.panes import BY_TICK, CLOSED_BY, Panes
from windowing.plan import Plan
from windowing.sequence import Sequences

_CLOSED_BY = pa.array(CLOSED_BY, pa.string())


def result_table(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> pa.Table:
    """Return one row per pane, in the plan's columns; text keys and ``closed_by`` are dictionary arrays.

    Raises `DataError` where an exact aggregate overflows, naming key and window.
    """
    columns = _key_columns(sequences, panes)
    columns += [pa.array(panes.number), *_bounds(plan, sequences, panes)]
    columns += [pa.DictionaryArray.from_arrays(pa.array(panes.closed_by), _CLOSED_BY)]
    columns += [_aggregate(bound, sequences, panes) for bound in plan.aggregates]
    if not plan.plain:
        columns += _stamps(plan, sequences, marks, panes.cause, panes.end)
        columns += [_constant("window", len(panes))]
    return pa.Table.from_arrays(columns, names=plan.schema.names)


def mark_rows(plan: Plan, at: Sequence[pa.Array], pos: pa.Array) -> pa.Table:
    """Return mark-only rows: null but for where the mark stands. ``at``: the ``_at`` columns."""
    size = len(pos)
    stamped = dict(zip([n for n in plan.schema.names if n.startswith("_at")], at, strict=True))
    stamped |= {"_pos": pos, "_mark": _constant("only", size)}
    columns = [stamped[f.name] if f.name in stamped else pa.nulls(size, f.type) for f in plan.schema]
    return pa.Table.from_arrays(columns, names=plan.schema.names)


def mark_stamps(plan: Plan, marks: Marks) -> tuple[list[pa.Array], pa.Array]:
    """The ``_at`` columns and ``_pos`` of marks."""
    if not plan.sort:
        return [pa.nulls(len(marks), pa.int64())], pa.array(marks.pos)
    at = [marks.rows.column(name) for name in plan.at]
    return at, pa.array(marks.pos) if plan.pos is None else marks.rows.column(plan.pos)


def _key_columns(sequences: Sequences, panes: Panes) -> list[pa.Array]:
    if sequences.keys is None:
        return []
    picks = pa.array(panes.key.astype(np.int32))
    return [_picked(combined(column), picks) for column in sequences.keys.columns]


def _picked(values: pa.Array, picks: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return pa.DictionaryArray.from_arrays(picks, values)
    return values.take(picks)


def _bounds(plan: Plan, sequences: Sequences, panes: Panes) -> list[pa.Array]:
    if panes.start is not None:
        return [panes.start, panes.end]
    if not plan.sort:
        return [pa.nulls(len(panes), pa.int64())] * 2
    column = sequences.rows.column(plan.at[0])
    return [column.take(pa.array(panes.lo)), column.take(pa.array(panes.hi - 1))]


def _aggregate(bound: Bound, sequences: Sequences, panes: Panes) -> pa.Array:
    try:
        return compute(bound, sequences.rows, panes.lo, panes.hi)
    except PaneOverflow as over:
        where = _where(sequences, panes, over.pane)
        raise DataError(
            f"{over.call} does not fit {over.type} in {where} (column {over.column!r})",
            "aggregate it as float (a mean, or a cast of the input) or use smaller windows",
        ) from None
    except PaneFailed as failed:
        raise DataError(f"{failed.call} failed in {_where(sequences, panes, failed.pane)}: {failed.reason}") from failed


def _where(sequences: Sequences, panes: Panes, pane: int) -> str:
    return f"window {panes.number[pane]}{_key_text(sequences, int(panes.key[pane]))}"


def _key_text(sequences: Sequences, key: int) -> str:
    if sequences.keys is None:
        return ""
    row = sequences.keys.slice(key, 1).to_pylist()[0]
    return " of key " + ", ".join(f"{name}={value!r}" for name, value in row.items())


def _stamps(plan: Plan, sequences: Sequences, marks: Marks, cause: Ints, ticks: pa.Array | None) -> list[pa.Array]:
    """The ``_at`` columns and ``_pos``: of the row or mark that caused each pane, else the tick, else null."""
    if ticks is not None:
        by_tick = pa.array(cause == BY_TICK)
        at = pc.if_else(by_tick, ticks, pa.scalar(None, ticks.type))
        return [at, pc.if_else(by_tick, pa.scalar(-1, pa.int64()), pa.scalar(None, pa.int64()))]
    picks = pa.array(cause, mask=cause < 0)
    mark_at, mark_pos = mark_stamps(plan, marks)
    row_at = [sequences.rows.column(name) for name in plan.at] or [pa.nulls(len(sequences), pa.int64())]
    row_pos = pa.array(sequences.pos) if plan.pos is None else sequences.rows.column(plan.pos)
    both = zip([*row_at, row_pos], [*mark_at, mark_pos], strict=True)
    return [_joined(rows, behind).take(picks) for rows, behind in both]


def _joined(rows: pa.Array, marks: pa.Array) -> pa.Array:
    return pa.concat_arrays([rows, marks]) if len(marks) else rows


def _constant(text: str, size: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int8)), pa.array([text]))
