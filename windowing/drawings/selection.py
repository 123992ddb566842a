"""Which rows of which keys are drawn, and the columns by which a scan says in which panes they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined
from ..columns.sort_keys import sort_keys
from ..errors import ConfigError
from ..sequences.marks import Marks
from ..sequences.sequence import Sequences
from ..support.suggest import did_you_mean

BITS = 62
"""Rows that one int64 column tells apart: sums of different powers of two below this do not overflow."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that are drawn.

    ``keys``: the keys that are drawn; None without a key.
    ``rows``: int64, the drawn rows among those of the sequences, in their total order over all keys.
    ``lane``: int64, for each of ``rows`` the number of its key among ``keys``.
    ``totals``: how many rows each key has, drawn or not.
    ``marks``: before each window mark, how many of ``rows`` stand.
    """

    keys: pa.Table | None
    rows: Ints
    lane: Ints
    totals: tuple[int, ...]
    marks: tuple[int, ...]


def choose(
    sequences: Sequences, marks: Marks, only: Mapping[str, Any], rows: int, keys: int, busiest: bool = False
) -> Selection:
    """Choose the first ``rows`` rows of the first ``keys`` keys, of those that have the values in ``only``.

    ``busiest``: the keys with the most rows are chosen, and not the first; they stand in ascending order all the same.
    Raises `ConfigError` for an ``only`` that no key has.
    """
    picks = _picks(sequences.keys, only)
    if busiest:
        counts = sequences.bounds[picks + 1] - sequences.bounds[picks]
        picks = picks[np.sort(np.argsort(-counts, kind="stable")[:keys])]
    picks = picks[:keys]
    bounds = [(int(sequences.bounds[pick]), int(sequences.bounds[pick + 1])) for pick in picks]
    found = [np.arange(low, min(high, low + rows)) for low, high in bounds]
    lane = np.repeat(np.arange(len(found)), [len(each) for each in found])
    candidates = np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)
    order, before = _in_total_order(sequences, candidates, marks)
    order, before = order[:rows], [count for count in before if count < rows or len(order) == len(sequences)]
    chosen = None if sequences.keys is None else sequences.keys.take(pa.array(picks))
    totals = tuple(high - low for low, high in bounds)
    return Selection(chosen, candidates[order], lane[order], totals, tuple(dict.fromkeys(before)))


def with_bits(table: pa.Table, names: list[str], sequences: Sequences, rows: Ints) -> pa.Table:
    """Add columns that hold, for the i-th drawn row, the i-th power of two, and else 0.

    The sum of such a column over a pane says which drawn rows are in the pane, whatever the kind of window. ``names``:
    one column for each `BITS` rows.
    """
    for number, name in enumerate(names):
        bits = np.zeros(table.num_rows, np.int64)
        mine = rows[number * BITS : (number + 1) * BITS]
        bits[sequences.pos[mine]] = np.int64(1) << np.arange(len(mine))
        table = table.append_column(name, pa.array(bits))
    return table


def places_of(sums: list[int | None]) -> list[int]:
    """Return the places of the drawn rows whose powers of two are in the sums of a pane, ascending."""
    return [number * BITS + bit for number, found in enumerate(sums) for bit in range(BITS) if (found or 0) >> bit & 1]


def _in_total_order(sequences: Sequences, rows: Ints, marks: Marks) -> tuple[Ints, list[int]]:
    """Return the permutation of rows of several keys into their total order, and how many stand before each mark."""
    names = list(sequences.order)
    taken = sequences.rows.select(names).take(pa.array(rows))
    pos, after = np.concatenate([sequences.pos[rows], marks.pos]), np.repeat([0, 1], [len(rows), len(marks)])
    has_place = np.append(np.ones(len(rows), np.bool_), marks.pos >= 0)  # a mark before all rows has no order value
    words = [
        sort_keys(combined(pa.chunked_array([column, marks.rows.column(name).cast(column.type)])))
        for name, column in zip(names, taken.columns, strict=True)
    ]
    order = np.lexsort([after, pos, *reversed(words), has_place])
    is_row = order < len(rows)
    return order[is_row], [int(count) for count in np.cumsum(is_row)[~is_row]]


def _picks(keys: pa.Table | None, only: Mapping[str, Any]) -> Ints:
    if keys is not None:
        return _keys(keys, only)
    if only:
        raise ConfigError("only: there is no key", "say key, or leave it out")
    return np.zeros(1, np.int64)


def _keys(keys: pa.Table, only: Mapping[str, Any]) -> Ints:
    chosen = np.ones(keys.num_rows, np.bool_)
    for name, value in only.items():
        if name not in keys.column_names:
            raise ConfigError(f"only: there is no key column {name!r}", did_you_mean(name, keys.column_names))
        chosen &= _is_in(keys.column(name), value)
    if only and not chosen.any():
        raise ConfigError(f"only: no key has {dict(only)!r}", "look at the values of the key columns")
    return np.flatnonzero(chosen)


def _is_in(column: pa.ChunkedArray, value: Any) -> Any:
    values = list(value) if isinstance(value, list | tuple | set) else [value]
    try:
        wanted = pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ConfigError(f"only: the key is {column.type} ({error})", "give values of that type") from None
    return pc.is_in(column, wanted).to_numpy()
