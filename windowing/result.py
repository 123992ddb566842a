"""Panes into the table that is written (design section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowing.aggregates import Bound, PaneFailed, PaneOverflow, compute
from windowing.columns import Ints, combined, words
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


def mark_rows(plan: Plan, stamps: Sequence[pa.Array]) -> pa.Table:
    """Return mark-only rows: null but for where the mark stands. ``stamps``: the columns of `Plan.stamp_names`."""
    size = len(stamps[0])
    stamped = {**dict(zip(plan.stamp_names, stamps, strict=True)), "_mark": _constant("only", size)}
    columns = [stamped[f.name] if f.name in stamped else pa.nulls(size, f.type) for f in plan.schema]
    return pa.Table.from_arrays(columns, names=plan.schema.names)


def mark_stamps(plan: Plan, marks: Marks) -> list[pa.Array]:
    """The columns of `Plan.stamp_names` of marks."""
    return _stamps_of(plan, marks.rows, marks.pos)


def _stamps_of(plan: Plan, rows: pa.RecordBatch, pos: Ints) -> list[pa.Array]:
    """The columns of `Plan.stamp_names` of rows that hold the sort columns."""
    at = [rows.column(name) for name in plan.at] or [pa.nulls(len(pos), pa.int64())]
    place = pa.array(pos) if plan.pos is None else rows.column(plan.pos)
    return [*at, place, *(rows.column(name) for name in plan.ties)]


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
    cells = zip(sequences.keys.column_names, sequences.keys.slice(key, 1).columns, strict=True)
    return " of key " + ", ".join(f"{name}={_cell_text(combined(column))}" for name, column in cells)


def _cell_text(cell: pa.Array) -> str:
    """Text of the one value of an array, of any type that can be a key."""
    if pa.types.is_string(cell.type) or pa.types.is_binary(cell.type):
        return repr(cell[0].as_py())
    try:
        return str(cell.cast(pa.string())[0].as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return str(words(cell)[0])


def _stamps(plan: Plan, sequences: Sequences, marks: Marks, cause: Ints, ticks: pa.Array | None) -> list[pa.Array]:
    """The columns of `Plan.stamp_names`: of the row or mark that caused each pane, else the tick, else null."""
    if ticks is not None:
        by_tick = pa.array(cause == BY_TICK)
        at = pc.if_else(by_tick, ticks, pa.scalar(None, ticks.type))
        return [at, pc.if_else(by_tick, pa.scalar(-1, pa.int64()), pa.scalar(None, pa.int64()))]
    picks = pa.array(cause, mask=cause < 0)
    both = zip(_stamps_of(plan, sequences.rows, sequences.pos), mark_stamps(plan, marks), strict=True)
    return [_joined(rows, behind).take(picks) for rows, behind in both]


def _joined(rows: pa.Array, marks: pa.Array) -> pa.Array:
    return pa.concat_arrays([rows, marks]) if len(marks) else rows


def _constant(text: str, size: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int8)), pa.array([text]))
