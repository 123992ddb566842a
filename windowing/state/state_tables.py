"""The window state as two Arrow tables, for Parquet files and for slices: one line for each row, one for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import combined
from ..rows.sequence import Sequences, group_codes, one_batch
from .window_state import KeyState, RowState, WindowState

POS, RANK, SHOWN, LAST = "__pos", "__rank", "__shown", "__last"
"""Columns of the row table, after those of the input."""
ROWS, BEGIN, WINDOWS, FULL, BASELINE = "__rows", "__begin", "__windows", "__full", "__baseline"
"""Columns of the key table, after those of the key."""
OPERATOR = "__operator"
"""One more column of the key table, where the window has an operator."""
NEWEST = "__newest"
"""One more, where a column looks back at rows before."""
ONGOING = "__ongoing"
"""One more, where an aggregate goes on from window to window."""


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
    if key_state.ongoing is not None:
        columns, names = [*columns, key_state.ongoing], [*names, ONGOING]
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
    newest, ongoing = (combined(keys.column(name)) if name in keys.column_names else None for name in (NEWEST, ONGOING))
    key_state = KeyState(*[*known, combined(keys.column(BASELINE)), saved, newest, ongoing])
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


# What of a window state decides the windows to come: two states that are equal in it are followed by the same
# windows.
#
# A state also counts, of each key, all its rows and all its windows. Most windows are the same whatever these numbers
# are: a correction that adds a row or a window early on moves them for ever, and must not run all later units again.


PHASE, FILLED = "__phase", "__filled"
"""What of the number of a key's rows decides panes, in place of `ROWS` and `BEGIN`."""


@dataclass(frozen=True, slots=True)
class DecidingNumbers:
    """Which of the numbers that a state counts decide what comes of it. It pickles.

    ``windows``: whether the number of a key's next window does: something reads the numbers of windows.
    ``ranks``: whether the number of rows before a row does: an aggregate associates by it.
    ``every``, ``held``: the number of a key's rows since its window was reset decides by its remainder by the one, and
        up to the other.
    ``carried``: the columns that hold numbers of windows of earlier stages which decide nothing.
    """

    windows: bool = True
    ranks: bool = True
    every: int = 1
    held: int = 0
    carried: frozenset[str] = frozenset()

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Return what decides of rows, or of advances of the watermark; of arrival positions only the order does."""
        left_out = {POS, *self.carried, *(() if self.ranks else (RANK,))}
        return rows.select([name for name in rows.column_names if name not in left_out])

    def of_keys(self, keys: pa.Table) -> pa.Table:
        """Return what decides of keys and their key state, without keys that go on as a new key would."""
        rows, begin = (combined(keys.column(name)).to_numpy() for name in (ROWS, BEGIN))
        since = rows - begin
        numbers = {PHASE: since % self.every, FILLED: np.minimum(since, self.held)}
        numbers |= {ROWS: rows} if self.ranks else {}
        numbers |= {WINDOWS: combined(keys.column(WINDOWS)).to_numpy()} if self.windows else {}
        told = keys.drop_columns([ROWS, BEGIN, WINDOWS])
        is_known = combined(told.column(FULL)).to_numpy(zero_copy_only=False).copy()
        for name in (BASELINE, OPERATOR, NEWEST, ONGOING):
            if name in told.column_names:
                is_known |= combined(told.column(name)).is_valid().to_numpy(zero_copy_only=False)
        for name, column in numbers.items():
            told = told.append_column(name, pa.array(column))
            is_known |= column != 0
        return told.filter(pa.array(is_known))


def window_numbers(keys: pa.Table) -> pa.Table:
    """Return the number of the next window of each key that had one."""
    left_out = {ROWS, BEGIN, FULL, BASELINE, OPERATOR, NEWEST, ONGOING}
    told = keys.select([name for name in keys.column_names if name not in left_out])
    return told.filter(pc.greater(told.column(WINDOWS), 0))
