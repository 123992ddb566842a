"""The stream columns: ``_at``, ``_pos`` and the others that put a result in emission order (section 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined, is_true
from ..errors import DataError
from ..language.joins import LEFT, RIGHT, SIDE
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, MARK, POS, TURN, numbered
from ..rows.marks import Marks, with_marks_behind
from ..rows.panes import AT_END, BY_TICK, MarkOnly, Panes
from ..rows.projection import ComputedColumn
from ..rows.sequence import Sequences


def stream_values(plan: Plan, sequences: Sequences, marks: Marks) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` of all rows and, behind them, all marks.

    There are none where a plain result has no such columns, and where only ticks are causes.
    """
    if plan.options.plain or plan.causes == "ticks":
        return []
    both = zip(_row_columns(plan, sequences.rows, sequences.pos), mark_columns(plan, marks), strict=True)
    return [with_marks_behind(rows, behind) for rows, behind in both]


def stream_columns(plan: Plan, values: list[pa.Array], sequences: Sequences, panes: Panes | MarkOnly) -> list[pa.Array]:
    """Return the columns of `Plan.stream_names` for panes, or for marks without a row.

    ``values``: what `stream_values` returns for the rows and marks of the causes. The columns hold the values of the
    row or mark that is the cause; the instant, and -1 for the position, where the clock is the cause; else null.
    """
    cause, at = panes.cause, panes.at
    ticks, by_tick = dict[str, pa.Array](), pa.array(cause == BY_TICK)
    of_panes = _pair_ties(plan, sequences, panes) if isinstance(panes, Panes) and plan.pair_ties else {}
    if at is not None:
        turn = panes.turn if isinstance(panes, Panes) else None
        turns = pa.scalar(0, pa.int8()) if turn is None else pa.array(turn)
        ticks = {
            "_at": pc.if_else(by_tick, at, pa.scalar(None, at.type)),
            POS: pc.if_else(by_tick, pa.scalar(-1, pa.int64()), pa.scalar(None, pa.int64())),
            TURN: pc.if_else(by_tick, turns, pa.scalar(None, pa.int8())),
        }
    if plan.causes == "ticks":
        ticks |= of_panes
        return [ticks[name] for name in plan.stream_names]
    found = _at_causes(values, cause)
    for i, name in enumerate(plan.stream_names):
        if name in of_panes:
            found[i] = of_panes[name]
        elif name in ticks:
            found[i] = pc.if_else(by_tick, ticks[name], found[i])
    return found


def _pair_ties(plan: Plan, sequences: Sequences, panes: Panes) -> dict[str, pa.Array]:
    """Return `Plan.pair_ties` of panes, each of one left row, or of one right row without a partner."""
    pairs = panes.pairs
    assert pairs is not None
    first = pairs.bounds[:-1]
    is_left, row = pairs.left[first] >= 0, pairs.left[first].copy()
    row[~is_left] = pairs.right[pairs.lo[first[~is_left]]]
    rows, found = pa.array(row), dict[str, pa.Array]()
    for tie, name in plan.pair_ties.items():
        if name == "_at":
            assert panes.at is not None
            is_end = pa.array(panes.cause == AT_END)
            found[tie] = pc.if_else(is_end, panes.at, pa.scalar(None, panes.at.type))
        elif name == SIDE:
            found[tie] = pa.array(np.where(is_left, np.int8(LEFT), np.int8(RIGHT)))
        else:
            values = pa.array(sequences.pos) if name is None else sequences.rows.column(name)
            found[tie] = values.take(rows)
    return found


def _at_causes(columns: list[pa.Array], cause: Ints) -> list[pa.Array]:
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
    columns = {numbered("_at", i): rows.column(name) for i, name in enumerate(plan.at)}
    if plan.causes == "both":
        columns["_at"] = plan.times(columns["_at"].type).to_instants(columns["_at"], plan.at[0])
    columns = columns or {"_at": pa.nulls(len(pos), pa.int64())}
    columns[POS] = pa.array(pos) if plan.pos is None or plan.pairs is not None else rows.column(plan.pos)
    columns[TURN] = pa.array(np.ones(len(pos), np.int8))
    columns |= {numbered("_tie", i): rows.column(name) for i, name in enumerate(plan.ties)}
    columns |= {name: pa.nulls(len(pos)) for name in plan.pair_ties}  # panes have them, and no row
    return [columns[name] for name in plan.stream_names]


# Values that expressions compute of result rows, and the condition of the rows that are written (section 11).


@dataclass(slots=True)
class HiddenPanes:
    """How many panes had rows, and none that the condition of the result lets through.

    ``count``: it grows as the tables of a result are read.
    """

    count: int = 0


def with_result_values(plan: Plan, tables: Iterator[pa.Table], hidden: HiddenPanes) -> Iterator[pa.Table]:
    """Add the columns of `Plan.results`, and yield the rows for which `Plan.having` is true, in the plan's columns.

    The rows of a pane may be in several tables, one after the other. A mark of a row that is left out stays, as a
    mark-only row. Raises `DataError` where an expression fails, with key and window.
    """
    marks: list[pa.Table] = []
    last: tuple[Any, bool] = (None, True)
    for table in tables:
        for computed in plan.results:
            table = table.append_column(  # noqa: PLW2901 - the same rows with one more column
                pa.field(computed.name, computed.value.type), _values(plan, table, computed)
            )
        if plan.having is None:
            yield table.select(plan.schema.names)
            continue
        own = combined(pc.greater_equal(table["window"], 0))  # a pane of an earlier run has a number below 0
        kept = is_true(combined(_values(plan, table, plan.having))) | ~is_true(own)
        more, last = _panes_without(plan, table, kept, last)
        hidden.count += more
        if not plan.options.plain:
            marked = np.flatnonzero(~kept & combined(table[MARK]).is_valid().to_numpy(zero_copy_only=False))
            own = table.select(list(plan.stream_names)).take(pa.array(marked))
            marks.append(only_marks(plan, {name: own[name] for name in plan.stream_names}))
        yield table.select(plan.schema.names).filter(pa.array(kept))
    yield from (table for table in marks if table.num_rows)


def _values(plan: Plan, table: pa.Table, computed: ComputedColumn) -> pa.ChunkedArray | pa.Array:
    found = computed.value.evaluate(table)
    if found.failures is not None:
        at = int(np.flatnonzero(found.failures)[0])
        names = [name for name in (*plan.key, *plan.options.group_by) if name in table.column_names]
        row = table.slice(at, 1)
        cells = ", ".join(f"{name}={row[name].cast(pa.string())[0].as_py()!r}" for name in names)
        where = f"window {row['window'][0].as_py()}{' of ' + cells if cells else ''}"
        raise DataError(
            f"{computed.label} fails for {where}: {found.details[0].as_py()}", "guard it with CASE or TRY_CAST"
        )
    return found.values


def _panes_without(plan: Plan, table: pa.Table, kept: Mask, last: tuple[Any, bool]) -> tuple[int, tuple[Any, bool]]:
    """Count the panes none of whose rows is kept; rows of a pane are neighbours.

    ``last``: what names the last pane of the tables before, and whether a row of it is kept; where none is, it was
    counted. Also return this for the next table.
    """
    if not len(kept):
        return 0, last
    names = [name for name in (*plan.key, *FIXED, "index") if name in table.column_names]
    begins = np.ones(len(kept), np.bool_)
    if len(kept) > 1:
        begins[1:] = np.logical_or.reduce([_differs(combined(table[name])) for name in names])
    shown = np.logical_or.reduceat(kept, np.flatnonzero(begins))
    first, end = (table.select(names).slice(at, 1).to_pylist() for at in (0, len(kept) - 1))
    goes_on = first == last[0]
    shown[0] |= goes_on and last[1]
    return int((~shown).sum()) - int(goes_on and not last[1]), (end, bool(shown[-1]))


def _differs(column: pa.Array) -> Mask:
    """Return where a column differs from the row before, bool (n - 1,); null equals null."""
    if pa.types.is_dictionary(column.type):
        column = column.indices
    new, old = column.slice(1), column.slice(0, len(column) - 1)
    differs = pc.fill_null(pc.not_equal(new, old), False)
    found = pc.or_(differs, pc.xor(new.is_null(), old.is_null()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
