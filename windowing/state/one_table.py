"""The window state as one Arrow table that users keep: one row a key and part, and a row of registers of all keys.

Columns: those of the key, then ``_part``, ``_state``, ``_rows`` and ``_registers`` (docs/state.md#as-one-table). The
rows of a key are cut into parts of about a mebibyte, so that no cell grows with the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, Ints, combined
from .state_tables import key_table, row_table
from .state_types import exactly
from .window_state import WindowState

PART, STATE, ROWS, REGISTERS = "_part", "_state", "_rows", "_registers"
OF_STATE = (PART, STATE, ROWS, REGISTERS)
"""The columns after those of the key."""
NO_KEY = -1
"""The part of a row of registers, which belong to no key."""
NEXT, PARTS = "next_pos", "parts"
"""Fields of ``_state`` besides the key state: the arrival position of the key's next row, and how many parts it has."""
_PART_BYTES = 1 << 20
HIDDEN = "__"
"""What the names of key state begin with in `state_tables`, and not here."""


@dataclass(frozen=True, slots=True)
class Registers:
    """What a state says of all keys.

    ``job``: the identity of the job, as JSON; None: it stands in other registers of the state.
    ``rows``: how many rows have come, those that were rejected among them.
    ``clock``, ``watermark``, ``position``: as in `windowing.streaming.batch_rows.Progress`.
    ``advances``: the watermark advances that panes to come may still need: the columns that sort rows, their arrival
        positions and levels; None: no row yet, or no event time.
    """

    job: str | None
    rows: int = 0
    clock: ClockValue | None = None
    watermark: ClockValue | None = None
    position: pa.Table | None = None
    advances: pa.Table | None = None


def state_table(
    schema: pa.Schema, registers: Registers, state: WindowState | None, next_rows: pa.Array | None
) -> pa.Table:
    """Return registers and a window state as one table of ``schema``.

    ``next_rows``: int64 (K,), nullable: the arrival position of each key's next row, where keys count their own rows.
    """
    tables = [register_rows(schema, registers)]
    if state is not None and len(state.key_state.rows):
        tables.append(key_rows(schema, state, next_rows))
    return pa.concat_tables(tables)


def register_rows(schema: pa.Schema, registers: Registers) -> pa.Table:
    """Return the one row of registers."""
    kind = schema.field(REGISTERS).type
    values: dict[str, Any] = {
        name: pa.array([getattr(registers, name)], kind.field(name).type)
        for name in ("job", "rows", "clock", "watermark")
    }
    if registers.position is not None:
        values["position"] = combined_struct(registers.position)
    if registers.advances is not None:
        held = combined_struct(registers.advances)
        values["advances"] = pa.ListArray.from_arrays(pa.array([0, len(held)], pa.int32()), held)
    return conform(
        {PART: pa.array([NO_KEY]), REGISTERS: pa.StructArray.from_arrays([*values.values()], [*values])}, schema, 1
    )


def key_rows(schema: pa.Schema, state: WindowState, next_rows: pa.Array | None) -> pa.Table:
    """Return the rows of keys, sorted by key and part."""
    keys, rows = key_table(state), row_table(state)
    key = keys.column_names[: 0 if state.sequences.keys is None else state.sequences.keys.num_columns]
    held = combined_struct(rows.drop_columns([name for name in key if name in rows.column_names]))
    of_key, offsets = _cuts(held, state.sequences.bounds)
    first = np.searchsorted(of_key, np.arange(keys.num_rows))
    part = np.arange(len(of_key)) - first[of_key]
    told = {name.removeprefix(HIDDEN): combined(keys.column(name)) for name in keys.column_names if name not in key}
    told[PARTS] = pa.array(np.diff(np.append(first, len(of_key))))
    if next_rows is not None:
        told[NEXT] = next_rows
    of_state = pa.StructArray.from_arrays([*told.values()], [*told]).take(pa.array(of_key, mask=part > 0))
    values = {name: combined(keys.column(name)).take(pa.array(of_key)) for name in key}
    values |= {
        PART: pa.array(part),
        STATE: of_state,
        ROWS: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), held),
    }
    return conform(values, schema, len(of_key))


def _cuts(held: pa.StructArray, bounds: Ints) -> tuple[Ints, Ints]:
    """Return the key of each part, int64 (p,), and the offsets of the rows of the parts, int64 (p+1,).

    Where a key is cut depends on its own rows alone.
    """
    of_row = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    before = np.concatenate([[0], np.cumsum(_weights(held))])
    chunk = (before[:-1] - before[bounds[of_row]]) // _PART_BYTES
    begins = np.ones(len(of_row), np.bool_)
    begins[1:] = (of_row[1:] != of_row[:-1]) | (chunk[1:] != chunk[:-1])
    empty = np.flatnonzero(np.diff(bounds) == 0)
    starts, of_key = np.flatnonzero(begins), np.concatenate([of_row[begins], empty])
    in_order = np.argsort(of_key, kind="stable")
    return of_key[in_order], np.append(np.concatenate([starts, bounds[empty]])[in_order], len(of_row))


def _weights(held: pa.StructArray) -> Ints:
    """Return about how many bytes each row takes, int64 (n,)."""
    fixed = 8 * held.type.num_fields
    weights = np.full(len(held), fixed, np.int64)
    for column in held.flatten():
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_string(column.type):
            weights += pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return weights


def combined_struct(table: pa.Table) -> pa.StructArray:
    """Return rows as structs, with their columns as plain ones."""
    return combined(table.to_struct_array()) if table.num_columns else pa.array([{}] * table.num_rows)


def conform(columns: Mapping[str, Any], schema: pa.Schema, rows: int) -> pa.Table:
    """Return columns as a table of ``schema``; columns and fields that are not there are null."""
    arrays = [
        exactly(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
