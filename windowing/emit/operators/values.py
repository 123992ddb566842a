"""Conversion for operators: Arrow columns to Python values, rows and panes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, combined
from ...errors import DataError
from ...operator import PaneInfo, Row, reason_of
from ...planning.plan import Plan
from ...planning.result_schema import FIXED, OUTPUTS
from ...sequences.sequence import Sequences


def key_of(sequences: Sequences, key: int) -> Row:
    """Return the values of the key columns; empty where there is no key."""
    if sequences.keys is None:
        return MappingProxyType({})
    one = sequences.keys.slice(key, 1)
    return MappingProxyType({name: python_values(name, one.column(name))[0] for name in one.column_names})


def python_rows(sequences: Sequences, picks: Ints) -> list[Row]:
    """Return the rows at ``picks`` as read-only mappings of all their columns, including those of the key.

    Each mapping holds its own values, so a row that an operator keeps keeps no other row in memory.
    """
    columns = dict[str, Sequence[Any]]()
    if sequences.keys is not None:
        keys, key = np.unique(np.searchsorted(sequences.bounds, picks, side="right") - 1, return_inverse=True)
        places = key.tolist()
        for name in sequences.keys.column_names:
            values = python_values(name, sequences.keys.column(name).take(pa.array(keys)))
            columns[name] = list(map(values.__getitem__, places))
    rows = pa.array(picks)
    columns |= {
        name: python_values(name, sequences.rows.column(name).take(rows)) for name in sequences.rows.schema.names
    }
    # no line of Python for a row: this takes two thirds of the time of a loop
    pairs = map(zip, repeat(tuple(columns)), zip(*columns.values(), strict=True))
    return list(map(MappingProxyType, map(dict, pairs)))


def pane_infos(plan: Plan, pane_columns: pa.Table, picks: Ints) -> list[PaneInfo]:
    """Return `PaneInfo` for the panes at ``picks``; ``pane_columns``: the columns of all panes in the result."""
    block = pane_columns.select(columns_of_pane(plan)).take(pa.array(picks))
    columns = [python_values(name, block.column(i)) for i, name in enumerate(block.column_names)]
    columns += [[None] * len(picks)] * (len(_SETTERS) - len(columns))
    infos = list(map(object.__new__, repeat(PaneInfo, len(picks))))
    for set_field, values in zip(_SETTERS, columns, strict=True):
        deque(map(set_field, infos, values), maxlen=0)
    return infos


_SETTERS = [getattr(PaneInfo, one.name).__set__ for one in fields(PaneInfo)]
"""Set a field of an instance: column by column takes half the time of the constructor of a frozen value."""


def python_values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; times in nanoseconds, which Python does not have, as integers.

    Raises `DataError` for times beyond Python's range.
    """
    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns":
        column = column.cast(pa.int64())
    try:
        whole = combined(column)
        return _numbers(whole) or _texts(whole) or _times(whole) or whole.to_pylist()
    except (OverflowError, ValueError) as error:
        what = f"column {name!r} holds {column.type} beyond Python's, which an operator would get ({reason_of(error)})"
        raise DataError(what, "make it a number, or leave such rows out") from None


def _numbers(column: pa.Array) -> list[Any]:
    """Return numbers and truth values as `to_pylist` does, in a tenth of the time; nothing where one is null."""
    is_number = pa.types.is_integer(column.type) or column.type in (pa.float64(), pa.float32(), pa.bool_())
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist() if is_number and not column.null_count else []
    return values


def _texts(column: pa.Array) -> list[Any]:
    """Return texts as `to_pylist` does, each different one made once; nothing where most are different."""
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return []
    codes = column.dictionary_encode()  # no work for a dictionary
    if 2 * len(codes.dictionary) > len(column):
        return []
    values = [*codes.dictionary.to_pylist(), None]
    return list(map(values.__getitem__, codes.indices.cast(pa.int64()).fill_null(-1).to_numpy().tolist()))


def _times(column: pa.Array) -> list[Any]:
    """Return timestamps without a zone as `to_pylist` does, in a twentieth of the time; nothing for other values."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return []
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()  # None for null; integers beyond Python's range
    times = sum(type(value) is datetime for value in values)
    return values if times + column.null_count == len(values) else []


def columns_of_pane(plan: Plan) -> list[int]:
    """Return the indices of the columns that describe a pane: those between the key and the stream columns."""
    count = len(FIXED) + (len(OUTPUTS) if plan.options.event_time else 0)
    return list(range(len(plan.key), len(plan.key) + count))


def of_key(sequences: Sequences, key: int) -> str:
    """Return `` of key NAME=VALUE, ..``, for messages; empty where there is no key."""
    words = ", ".join(f"{name}={_text(value)}" for name, value in key_of(sequences, key).items())
    return f" of key {words}" if words else ""


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str | bytes) else str(value)
