"""The window state as two Arrow tables, for Parquet files and for slices: one line for each row, one for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import combined
from ..sequences.sequence import Sequences, group_codes, one_batch
from .window_state import KeyState, RowState, WindowState

POS, RANK, SHOWN, LAST = "__pos", "__rank", "__shown", "__last"
"""Columns of the row table, after those of the input."""
ROWS, BEGIN, WINDOWS, FULL, BASELINE = "__rows", "__begin", "__windows", "__full", "__baseline"
"""Columns of the key table, after those of the key."""
OPERATOR = "__operator"
"""One more column of the key table, where the window has an operator."""
NEWEST = "__newest"
"""One more, where a column looks back at rows before."""


def key_table(state: WindowState) -> pa.Table:
    """Return the keys and their key state, one line for each key; one line if there is no key."""
    key_state = state.key_state
    columns = [key_state.rows, key_state.begin, key_state.windows, key_state.full, key_state.baseline]
    keys = state.sequences.keys
    own = {} if keys is None else dict(zip(keys.column_names, keys.columns, strict=True))
    names = [ROWS, BEGIN, WINDOWS, FULL, BASELINE]
    if not pa.types.is_null(key_state.operator.type):
        columns, names = [*columns, key_state.operator], [*names, OPERATOR]
    if key_state.newest is not None:
        columns, names = [*columns, key_state.newest], [*names, NEWEST]
    return _table(own, dict(zip(names, columns, strict=True)))


def row_table(state: WindowState) -> pa.Table:
    """Return the rows, key after key in total order: key columns, the columns that the window needs, and row state."""
    sequences, row_state = state.sequences, state.row_state
    of_key = pa.array(np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds)))
    own = dict(zip(sequences.rows.schema.names, sequences.rows.columns, strict=True))
    if sequences.keys is not None:
        keys = zip(sequences.keys.column_names, sequences.keys.columns, strict=True)
        own = {**{name: combined(column).take(of_key) for name, column in keys}, **own}
    columns = [sequences.pos, sequences.rank, row_state.shown, row_state.last]
    return _table(own, dict(zip((POS, RANK, SHOWN, LAST), columns, strict=True)))


def row_schema(keys: pa.Table, schema: pa.Schema, key: Sequence[str], values: Sequence[str]) -> pa.Schema:
    """Return the schema of `row_table` for these ``keys`` and an input of this ``schema``."""
    own = [keys.schema.field(name) for name in key] + [schema.field(name) for name in values if name not in key]
    row_state = [(name, pa.bool_()) for name in (SHOWN, LAST)]
    return pa.schema([*own, (POS, pa.int64()), (RANK, pa.int64()), *row_state])


def read_state(
    keys: pa.Table, rows: pa.Table, key: Sequence[str], order: Sequence[str], values: Sequence[str]
) -> WindowState:
    """Return the window state that `key_table` and `row_table` describe; names as in `sequences.sequence.build`."""
    known: list[Any] = [_numpy(keys, name) for name in (ROWS, BEGIN, WINDOWS, FULL)]
    saved = combined(keys.column(OPERATOR)) if OPERATOR in keys.column_names else pa.nulls(keys.num_rows)
    newest = combined(keys.column(NEWEST)) if NEWEST in keys.column_names else None
    key_state = KeyState(*[*known, combined(keys.column(BASELINE)), saved, newest])
    row_state = RowState(*(_numpy(rows, name) for name in (SHOWN, LAST)))
    distinct = keys.select(list(key)) if key else None
    counts = np.array([rows.num_rows])
    if distinct is not None:
        both = pa.concat_tables([distinct, rows.select(list(key))])
        codes, _ = group_codes([combined(column) for column in both.columns])
        counts = np.bincount(codes[distinct.num_rows :], minlength=distinct.num_rows)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = one_batch(rows.select(list(values)))
    sequences = Sequences(distinct, bounds, values, _numpy(rows, POS), tuple(order), _numpy(rows, RANK))
    return WindowState(sequences, key_state, row_state)


def _table(own: Mapping[str, Any], more: Mapping[str, Any]) -> pa.Table:
    arrays = [*own.values(), *(pa.array(column) for column in more.values())]
    return pa.Table.from_arrays(arrays, names=[*own, *more])


def _numpy(table: pa.Table, name: str) -> Any:
    return combined(table.column(name)).to_numpy(zero_copy_only=False)
