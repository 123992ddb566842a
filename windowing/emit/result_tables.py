"""Converting panes to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, take_or_null
from ..columns.texts.take import take_column
from ..panes.membership import edge_rows, entered_rows, left_rows
from ..panes.panes import CLOSED_BY, TIMING, Panes
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, OUTPUTS, POS, TURN
from ..sequences.marks import Marks
from ..sequences.sequence import Sequences
from ..state.window_state import WindowState
from .aggregate_rows import aggregate_rows
from .continued_rows import continued_rows
from .operators.calls import finishing_batches, operator_batches
from .operators.outcome import OperatorRun
from .pane_batches import pane_batches
from .pane_rows import row_batches
from .result_values import HiddenPanes, with_result_values
from .row_counts import check_panes
from .stream_columns import mark_columns, only_marks, stream_columns, stream_values

_REPEATS = 8
"""Rows a key: with fewer, plain text is written faster than a dictionary (four times at 1 row), and is smaller."""
_CLOSED_BY = pa.array(CLOSED_BY, pa.string())
_TIMING = pa.array(TIMING, pa.string())


def result_tables(
    plan: Plan, sequences: Sequences, marks: Marks, panes: Panes, hidden: HiddenPanes, run: OperatorRun | None = None
) -> Iterator[pa.Table]:
    """Yield the result in the plan's columns, a bounded number of rows at a time; texts may be dictionary arrays.

    ``panes``: as `emitted_panes` returns them. ``hidden``: counts the panes that the condition of the result hides.
    ``run``: what calls of an operator need. The result is sorted by key, then window number, then group; mark-only rows
    come last. Raises `DataError` where an exact aggregate overflows, with key and window, and, before any row is
    computed, where there would be more than ``max_rows`` rows.
    """
    check_panes(plan, panes)
    stream = [] if plan.options.plain else stream_values(plan, sequences, marks)
    if run is not None:
        parts = operator_batches(plan, sequences, marks, panes, _pane_columns(plan, stream, sequences, panes), run)
    elif panes.continued is not None:
        parts = continued_rows(plan, sequences, panes, _pane_columns(plan, stream, sequences, panes))
    else:
        parts = _rows_in_batches(plan, stream, sequences, panes)
    yield from _result_rows(plan, parts, hidden)
    if not plan.options.plain:
        yield from _mark_only_rows(plan, stream, panes)


def finishing_tables(plan: Plan, idle: WindowState, hidden: HiddenPanes) -> Iterator[pa.Table]:
    """Yield what operators return at the end of the data whose keys have no rows any more, in the plan's columns.

    ``idle``: the state of these keys. Raises what calls of operators raise.
    """
    yield from _result_rows(plan, finishing_batches(plan, idle), hidden)


def _rows_in_batches(plan: Plan, stream: list[pa.Array], sequences: Sequences, panes: Panes) -> Iterator[pa.Table]:
    rows_of = row_batches if plan.emits_rows else aggregate_rows
    for own, batch in pane_batches(plan, sequences, panes):
        yield from rows_of(plan, own, batch, _pane_columns(plan, stream, own, batch))


def _result_rows(plan: Plan, parts: Iterator[pa.Table], hidden: HiddenPanes) -> Iterator[pa.Table]:
    if plan.results or plan.having is not None:
        yield from with_result_values(plan, parts, hidden)
    else:
        yield from (part.select(plan.schema.names) for part in parts)


def pane_columns(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> pa.Table:
    """Return the columns that identify each pane, and its stream columns, of panes as `emitted_panes` returns them."""
    stream = [] if plan.options.plain else stream_values(plan, sequences, marks)
    return _pane_columns(plan, stream, sequences, panes)


def _pane_columns(plan: Plan, stream: list[pa.Array], sequences: Sequences, panes: Panes) -> pa.Table:
    """Return what `pane_columns` does; ``stream``: `stream_values` of the rows and marks that the causes refer to."""
    columns = _head(plan, sequences, panes)
    if not plan.options.plain:
        columns += stream_columns(plan, stream, panes.cause, panes.at)
    return pa.Table.from_arrays(columns, names=_head_names(plan))


def emitted_panes(plan: Plan, sequences: Sequences, panes: Panes) -> Panes:
    """Return panes as the result has them: with ``--emit entered`` or ``left`` as lots, which keep the bounds."""
    if plan.options.emit not in {"entered", "left"}:
        return panes
    start, end = _bounds(plan, sequences, panes)
    return _lots(plan, replace(panes, start=start, end=end))


def mark_rows(plan: Plan, marks: Marks, picks: Ints) -> pa.Table:
    """Return mark-only rows for the marks at ``picks``."""
    return only_marks(plan, _by_name(plan, mark_columns(plan, marks.take(picks))))


def tick_rows(plan: Plan, ticks: pa.Array) -> pa.Table:
    """Return mark-only rows for instants of the clock."""
    first = pa.array(np.zeros(len(ticks), np.int8))
    return only_marks(plan, {"_at": ticks, POS: pa.array(np.full(len(ticks), -1, np.int64)), TURN: first})


def _by_name(plan: Plan, stream: list[pa.Array]) -> dict[str, pa.Array]:
    return dict(zip(plan.stream_names, stream, strict=True))


def _mark_only_rows(plan: Plan, stream: list[pa.Array], panes: Panes) -> Iterator[pa.Table]:
    if panes.marks_only is not None and len(panes.marks_only.cause):
        columns = stream_columns(plan, stream, panes.marks_only.cause, panes.marks_only.at)
        yield only_marks(plan, _by_name(plan, columns))


def _lots(plan: Plan, panes: Panes) -> Panes:
    """Replace the rows of panes by those that entered or left; drop empty ones."""
    lots = (entered_rows if plan.options.emit == "entered" else left_rows)(panes.membership)
    return replace(panes, membership=lots).take(np.flatnonzero(lots.lo < lots.hi))


def _head_names(plan: Plan) -> list[str]:
    names = [*plan.key, *FIXED, *(OUTPUTS if plan.options.event_time else ())]
    return names if plan.options.plain else [*names, *plan.stream_names]


def _head(plan: Plan, sequences: Sequences, panes: Panes) -> list[pa.Array]:
    """Return the columns that identify a pane, except its groups."""
    columns = _key_columns(sequences, panes)
    columns += [pa.array(panes.number), *_bounds(plan, sequences, panes)]
    columns += [pa.DictionaryArray.from_arrays(pa.array(panes.closed_by), _CLOSED_BY, safe=False)]
    if panes.outputs is not None:
        columns.append(pa.DictionaryArray.from_arrays(pa.array(panes.outputs.timing), _TIMING, safe=False))
        columns.append(pa.array(panes.outputs.index))
    return columns


def _key_columns(sequences: Sequences, panes: Panes) -> list[pa.Array]:
    if sequences.keys is None:
        return []
    return [_picked(combined(column), panes.key) for column in sequences.keys.columns]


def _picked(values: pa.Array, picks: Ints) -> pa.Array:
    repeats = len(picks) >= _REPEATS * len(values)
    if repeats and (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        codes = pa.array(picks.astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, values, safe=False)  # picks are places of keys, in range
    return take_column(values, picks)


def _bounds(plan: Plan, sequences: Sequences, panes: Panes) -> tuple[pa.Array, pa.Array]:
    """Return the interval bounds of the window, else the first order values of the first and last row."""
    if panes.start is not None and panes.end is not None:
        return panes.start, panes.end
    if not plan.sort:
        return pa.nulls(len(panes), pa.int64()), pa.nulls(len(panes), pa.int64())
    column = sequences.rows.column(plan.at[0])
    edges = edge_rows(panes.membership)
    first, last = (take_or_null(column, edge) for edge in edges)
    if panes.continued is None:
        return first, last
    begins, ends = (panes.continued.edges.column(plan.at[0]).slice(row, 1) for row in (0, 1))
    goes_on = edges[0][0] < edges[1][0]
    first = pa.concat_arrays([begins, first.slice(1)])
    return first, last if goes_on else pa.concat_arrays([ends, last.slice(1)])
