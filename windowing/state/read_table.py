"""The one table of a state taken apart: its keys, their rows, and the registers of all keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined
from ..columns.sort_keys import last_in_order
from ..errors import ConfigError
from ..sequences.sequence import group_codes
from .one_table import HIDDEN, NEXT, NO_KEY, OF_STATE, PART, PARTS, REGISTERS, ROWS, STATE, Registers
from .state_tables import BASELINE

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


@dataclass(frozen=True, slots=True)
class StateRows:
    """The rows of keys of a state, taken apart.

    ``keys``: the keys and their key state, as `state_tables.key_table` has them, ascending.
    ``rows``: their rows, as `state_tables.row_table` has them.
    ``next_rows``: int64 (K,), nullable: the arrival position of the key's next row, where keys count their own rows.
    """

    keys: pa.Table
    rows: pa.Table
    next_rows: pa.Array


def keys_and_rows(table: pa.Table, key: Sequence[str]) -> StateRows:
    """Return the keys of a state and their rows, from rows in any order.

    Raises `ConfigError` where a part is missing, or there twice.
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
    _check_parts(told, firsts, part)
    columns = {name: combined(table.column(name)).take(pa.array(firsts)) for name in key}
    fields = zip((field.name for field in told.type), told.flatten(), strict=True)
    columns |= {HIDDEN + name: values for name, values in fields if name not in (PARTS, NEXT)}
    keys = pa.table({BASELINE: pa.nulls(len(firsts)), **columns})
    return StateRows(keys, _held_rows(table, key), pc.struct_field(told, NEXT))


def _check_parts(told: pa.StructArray, firsts: Ints, part: Ints) -> None:
    counts = np.diff(np.append(firsts, len(part)))
    expected = np.arange(len(part)) - np.repeat(firsts, counts)
    if told.null_count or (part != expected).any() or (pc.struct_field(told, PARTS).to_numpy(False) != counts).any():
        raise ConfigError("the state has not each part of a key once", _GIVE_ALL)


def _held_rows(table: pa.Table, key: Sequence[str]) -> pa.Table:
    lists = combined(table.column(ROWS))
    counts = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    of_part = pa.array(np.repeat(np.arange(len(counts)), counts))
    held = lists.flatten()
    columns = {name: combined(table.column(name)).take(of_part) for name in key}
    columns |= {field.name: values for field, values in zip(held.type, held.flatten(), strict=True)}
    return pa.table(columns)


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
    lists = told["advances"].drop_null() if "advances" in told else pa.array([], pa.list_(pa.null()))
    return Registers(
        next(iter(told["job"].drop_null().to_pylist()), None),
        pc.sum(told["rows"]).as_py() or 0,
        pc.max(told["clock"]).as_py(),
        pc.max(told["watermark"]).as_py(),
        _last(told.get("position")),
        pa.table(pa.RecordBatch.from_struct_array(lists.flatten())) if len(lists) else None,
    )


def no_registers() -> ConfigError:
    """Return the error for a table that says nothing of all keys."""
    return ConfigError(f"the state has no registers (a row whose {PART} is {NO_KEY})", _GIVE_ALL)


def _last(positions: pa.StructArray | None) -> pa.Table | None:
    positions = None if positions is None else positions.drop_null()
    return last_in_order(pa.Table.from_struct_array(positions)) if positions is not None and len(positions) else None
