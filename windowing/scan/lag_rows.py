"""Columns with ``lag`` of rows in order, also of the rows that earlier runs have seen (semantics section 11).

They are computed of the new rows before a window sees any. Rows that a state retains keep the values that they had, and
for each key the state keeps the last rows, as far as new rows look back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined
from ..errors import DataError
from ..planning.plan import Plan
from ..projection.lag_columns import LagColumn, Shift, depth_of, inputs_of
from ..sequences.sequence import Sequences, append, take_rows
from ..state.window_state import WindowState, with_newest
from .scan import ScanResult

_NOTHING = ""
"""A column that says how many rows there are, where an expression reads none."""


@dataclass(frozen=True, slots=True)
class Lookback:
    """The last rows of each key, as far as columns look back.

    ``sequences``: the sequences of these keys.
    ``newest``: as in `windowing.state.window_state.KeyState`.
    """

    sequences: Sequences
    newest: pa.Array


def with_lag_columns(plan: Plan, new: Sequences, state: WindowState | None = None) -> tuple[Sequences, Lookback | None]:
    """Return new rows, which have `Plan.read_values`, with `Plan.values`, and what the next run needs of their keys.

    ``state``: what earlier runs have kept. Raises `DataError` where an expression fails for a new row.
    """
    late = plan.lag_columns
    if not late:
        return new, None
    both, is_new = _with_earlier(_inputs(plan, new), state)
    rows = both.rows
    for column in late:
        rows = rows.append_column(column.name, _values(column, rows, both.bounds, is_new))
    picks = pa.array(np.flatnonzero(is_new))
    own = set(new.rows.schema.names) - {column.name for column in late}
    values = [new.rows.column(name) if name in own else rows.column(name).take(picks) for name in plan.values]
    found = replace(new, rows=pa.RecordBatch.from_arrays(values, names=list(plan.values)))
    return found, Lookback(both, _newest(both, depth_of(late)))


def keep_lookback(plan: Plan, scanned: ScanResult, lookback: Lookback | None) -> ScanResult:
    """Return the result of a scan whose state holds the last rows of each key, where windows go on."""
    if lookback is None or scanned.state is None or plan.options.at_end != "hold":
        return scanned
    return replace(scanned, state=with_newest(scanned.state, lookback.sequences, lookback.newest))


def _inputs(plan: Plan, new: Sequences) -> Sequences:
    """Return sequences with the columns that lags need, in the types that expressions are bound to."""
    schema = plan.projection.schema
    columns = {name: combined(new.rows.column(name)).cast(schema.field(name).type) for name in _names(plan)}
    return replace(new, rows=pa.RecordBatch.from_pydict(columns or {_NOTHING: np.zeros(len(new), np.bool_)}))


def _names(plan: Plan) -> tuple[str, ...]:
    return inputs_of(plan.lag_columns)


def _with_earlier(new: Sequences, state: WindowState | None) -> tuple[Sequences, Mask]:
    """Put the last rows of earlier runs before new rows; also return which rows are new, bool (n,)."""
    newest = None if state is None else state.key_state.newest
    if state is None or newest is None:
        return new, np.ones(len(new), np.bool_)
    counts = pc.list_value_length(newest).fill_null(0).to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = pa.RecordBatch.from_struct_array(newest.flatten()).select(new.rows.schema.names)
    first = Sequences(
        state.sequences.keys, bounds, rows.cast(new.rows.schema), np.zeros(len(rows), np.int64), new.order
    )
    both, origin = append(first, replace(new, order=()))
    return both, origin >= len(first)


def _values(column: LagColumn, rows: pa.RecordBatch, bounds: Ints, is_new: Mask) -> pa.Array:
    for shift in column.shifts:
        values = _argument(shift, column.label, rows, is_new)
        rows = rows.append_column(shift.name, values.take(_rows_before(bounds, shift.n)))
    found = column.value.evaluate(rows)
    _check(found.failures, found.details, column.label, is_new)
    return combined(found.values)


def _argument(shift: Shift, label: str, rows: pa.RecordBatch, is_new: Mask) -> pa.Array:
    if isinstance(shift.argument, str):
        return combined(rows.column(shift.argument))
    found = shift.argument.evaluate(rows)
    _check(found.failures, found.details, label, is_new)
    return combined(found.values)


def _check(failures: Mask | None, details: pa.Array, label: str, is_new: Mask) -> None:
    """Raise `DataError` where an expression fails for a new row; an earlier run has seen the others."""
    failed = np.empty(0, np.int64) if failures is None else np.flatnonzero(is_new[np.flatnonzero(failures)])
    if len(failed):
        raise DataError(f"{label} fails for a row: {details[failed[0]].as_py()}", "mend the row, or the expression")


def _rows_before(bounds: Ints, n: int) -> pa.Array:
    """Return for each row the n-th row before it of its key; null where there is none."""
    rows = np.arange(bounds[-1]) - n
    return pa.array(rows, mask=rows < np.repeat(bounds[:-1], np.diff(bounds)))


def _newest(sequences: Sequences, depth: int) -> pa.Array:
    """Return the last ``depth`` rows of each key, list of struct (K,)."""
    begin = np.maximum(sequences.bounds[1:] - depth, sequences.bounds[:-1])
    counts = sequences.bounds[1:] - begin
    offsets = np.concatenate([[0], np.cumsum(counts)])
    picks = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], counts)
    rows = take_rows(sequences.rows, picks)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows.to_struct_array())
