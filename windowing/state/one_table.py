"""The window state as one Arrow table that users keep: one row a key and part, and a row of registers of all keys.

Columns: those of the key, then ``_part``, ``_state``, ``_rows`` and ``_registers`` (docs/state.md#as-one-table). The
rows of a key are cut into parts of about a mebibyte, so that no cell grows with the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.watermark import Belief, advance_table, advances_of
from ..columns.arrays import Ints, combined
from ..columns.sort_keys import last_in_order
from ..errors import ConfigError
from ..rows.sequence import group_codes
from .carry import Carry, Registers
from .state_tables import BASELINE, key_table, row_table
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


def state_table(schema: pa.Schema, job: str | None, carry: Carry) -> pa.Table:
    """Return a carry as one table of ``schema``; ``job`` as in `register_rows`."""
    tables = [register_rows(schema, job, carry.registers)]
    if carry.state is not None and len(carry.state.key_state.rows):
        tables.append(key_rows(schema, carry.state, carry.next_rows))
    return pa.concat_tables(tables)


def register_rows(schema: pa.Schema, job: str | None, registers: Registers) -> pa.Table:
    """Return the one row of registers.

    ``job``: the identity of the job, as JSON; None: it stands in other registers of the state.
    """
    kind = schema.field(REGISTERS).type
    values: dict[str, Any] = {"job": pa.array([job], kind.field("job").type)}
    for name in ("rows", "clock", "watermark"):
        values[name] = pa.array([getattr(registers, name)], kind.field(name).type)
    if registers.belief is not None:
        values["belief"] = pa.array([asdict(registers.belief)], kind.field("belief").type)
    if registers.position is not None:
        values["position"] = combined_struct(registers.position)
    if registers.advances is not None:
        held = combined_struct(advance_table(registers.advances))
        values["advances"] = pa.ListArray.from_arrays(pa.array([0, len(held)], pa.int32()), held)
    if registers.windows is not None:
        held = combined_struct(registers.windows)
        values["windows"] = pa.ListArray.from_arrays(pa.array([0, len(held)], pa.int32()), held)
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
    # About how many bytes each row takes, int64 (n,).
    fixed = 8 * held.type.num_fields
    weights = np.full(len(held), fixed, np.int64)
    for column in held.flatten():
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_string(column.type):
            weights += pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(weights)])
    chunk = (before[:-1] - before[bounds[of_row]]) // _PART_BYTES
    begins = np.ones(len(of_row), np.bool_)
    begins[1:] = (of_row[1:] != of_row[:-1]) | (chunk[1:] != chunk[:-1])
    empty = np.flatnonzero(np.diff(bounds) == 0)
    starts, of_key = np.flatnonzero(begins), np.concatenate([of_row[begins], empty])
    in_order = np.argsort(of_key, kind="stable")
    return of_key[in_order], np.append(np.concatenate([starts, bounds[empty]])[in_order], len(of_row))


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


# The one table of a state taken apart: its keys, their rows, and the registers of all keys.


_GIVE_ALL = "give all rows of the state that a call has returned"


def check_columns(names: Sequence[str]) -> None:
    """Raise `ConfigError` where a table is no state."""
    missing = [name for name in OF_STATE if name not in names]
    if missing:
        raise ConfigError(f"the state has no column {missing[0]!r}", _GIVE_ALL)


def job_of(table: pa.Table) -> str | None:
    """Return the identity of the job of a state, as JSON; None: it says none."""
    kind = table.schema.field(REGISTERS).type
    if not pa.types.is_struct(kind) or kind.get_field_index("job") < 0:
        return None
    found = combined(pc.struct_field(table.column(REGISTERS), "job")).drop_null()
    return found[0].as_py() if len(found) else None


def keys_and_rows(table: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table, pa.Array]:
    """Return the keys of a state with their key state, ascending, and their rows, from rows in any order.

    They are as `state_tables.key_table` and `row_table` have them. Also returns, int64 (K,), nullable, the arrival
    position of each key's next row, where keys count their own rows. Raises `ConfigError` where a part is missing, or
    there twice.
    """
    table = table.filter(pc.greater_equal(table.column(PART), 0))
    codes = (
        group_codes([combined(table.column(name)) for name in key])[0] if key else np.zeros(table.num_rows, np.int64)
    )
    part = combined(table.column(PART)).to_numpy()
    order = np.lexsort((part, codes))
    if not (order[1:] > order[:-1]).all():
        table, codes, part = table.take(pa.array(order)), codes[order], part[order]
    firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
    told = combined(table.column(STATE)).take(pa.array(firsts))
    counts = np.diff(np.append(firsts, len(part)))
    expected = np.arange(len(part)) - np.repeat(firsts, counts)
    if told.null_count or (part != expected).any() or (pc.struct_field(told, PARTS).to_numpy(False) != counts).any():
        raise ConfigError("the state has not each part of a key once", _GIVE_ALL)
    columns = {name: combined(table.column(name)).take(pa.array(firsts)) for name in key}
    fields = zip((field.name for field in told.type), told.flatten(), strict=True)
    columns |= {HIDDEN + name: values for name, values in fields if name not in (PARTS, NEXT)}
    keys = pa.table({BASELINE: pa.nulls(len(firsts)), **columns})
    lists = combined(table.column(ROWS))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    of_part, held = pa.array(np.repeat(np.arange(len(lengths)), lengths)), lists.flatten()
    rows = {name: combined(table.column(name)).take(of_part) for name in key}
    rows |= {field.name: values for field, values in zip(held.type, held.flatten(), strict=True)}
    return keys, pa.table(rows), pc.struct_field(told, NEXT)


def registers_of(table: pa.Table) -> Registers:
    """Return what a state says of all keys: in one row, or in several that tasks have written.

    Raises `ConfigError` where there is none.
    """
    column = combined(table.column(REGISTERS))
    found = column.filter(pc.equal(table.column(PART), NO_KEY).combine_chunks())
    if not len(found):  # of one key alone: its rows may say it
        found = column.drop_null()[:1]
    if not len(found) or found.null_count:
        raise no_registers()
    told = dict(zip((field.name for field in found.type), found.flatten(), strict=True))
    lists, windows = (
        told[name].drop_null() if name in told else pa.array([], pa.list_(pa.null()))
        for name in ("advances", "windows")
    )
    positions = told["position"].drop_null() if "position" in told else ()
    beliefs = told["belief"].drop_null().to_pylist() if "belief" in told else ()
    return Registers(
        pc.sum(told["rows"]).as_py() or 0,
        pc.max(told["clock"]).as_py(),
        pc.max(told["watermark"]).as_py(),
        last_in_order(pa.Table.from_struct_array(positions)) if len(positions) else None,
        advances_of(pa.table(pa.RecordBatch.from_struct_array(lists.flatten()))) if len(lists) else None,
        pa.table(pa.RecordBatch.from_struct_array(windows[:1].flatten())) if len(windows) else None,
        Belief(**beliefs[0]) if beliefs else None,
    )


def belief_type(measure: pa.DataType) -> pa.DataType:
    """Return the type of what registers say of `Belief`; ``measure``: that of event times."""
    return pa.struct([("latest", measure), ("votes", pa.int64()), ("least", measure)])


def no_registers() -> ConfigError:
    """Return the error for a table that says nothing of all keys."""
    return ConfigError(f"the state has no registers (a row whose {PART} is {NO_KEY})", _GIVE_ALL)
