"""The order of rows that have no arrival: where they tie, the values of other columns decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..columns.sort_keys import sort_keys
from ..errors import DataError
from ..sequences.key_search import places_among
from ..sequences.sequence import Sequences, order_of, take_rows


@dataclass(frozen=True, slots=True)
class TieOrder:
    """What decides between rows of a key that tie in the order columns.

    ``columns``: the columns that decide, most significant first. Rows that tie in these, too, stay as they come.
    ``arrival``: an integer column that decides before these, and is the arrival position; None: there is none, and the
        position of a row is its number among the rows of its key.
    """

    columns: tuple[str, ...]
    arrival: str | None = None

    def settle(self, sequences: Sequences, table: pa.Table) -> Sequences:
        """Return sequences with rows that tie in their order, and the positions of ``arrival``, if there is one.

        ``table``: the rows, where ``sequences.pos`` says which is which. Raises `DataError` where an arrival is null.
        """
        settled = self._in_order(sequences, table)
        if self.arrival is None:
            return settled
        pos = combined(table.column(self.arrival)).take(pa.array(settled.pos))
        return replace(settled, pos=arrival_positions(pos, self.arrival))

    def _in_order(self, sequences: Sequences, table: pa.Table) -> Sequences:
        ties = _ties(sequences)
        places = np.flatnonzero(np.append(ties, False) | np.append(False, ties))
        if not len(places):
            return sequences
        group = np.cumsum(np.append(True, ~ties))[places]
        names = [*([] if self.arrival is None else [self.arrival]), *self.columns]
        tied = table.select(names).take(pa.array(sequences.pos[places]))
        picks = np.arange(len(sequences))
        picks[places] = places[order_of([pa.array(group), *_deciding(tied)])]
        return replace(sequences, rows=take_rows(sequences.rows, picks), pos=sequences.pos[picks])


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """How many rows of each key have been numbered: the positions of rows that have no arrival.

    ``keys``: keys, no duplicates; None: no row yet.
    ``counts``: int64 (K,), how many rows each has had. Other keys had none.
    """

    keys: pa.Table | None = None
    counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def of(self, keys: pa.Table) -> Ints:
        """Return how many rows each of some keys has had, int64 (keys,)."""
        if self.keys is None or not len(self.counts):
            return np.zeros(keys.num_rows, np.int64)
        place = places_among(self.keys, keys)
        return np.where(place < 0, 0, self.counts[place])

    def number(self, sequences: Sequences) -> tuple[Sequences, RowNumbers]:
        """Return new rows whose positions number those of each key from 0, and the counts after them."""
        assert sequences.keys is not None
        begin, counts = self.of(sequences.keys), np.diff(sequences.bounds)
        pos = np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1] - begin, counts)
        return replace(sequences, pos=pos), self._with(sequences.keys, begin + counts)

    def _with(self, keys: pa.Table, counts: Ints) -> RowNumbers:
        if self.keys is None or not len(self.counts):
            return RowNumbers(keys, counts)
        others = np.flatnonzero(places_among(keys, self.keys) < 0)
        both = pa.concat_tables([keys, self.keys.take(pa.array(others))])
        return RowNumbers(both, np.concatenate([counts, self.counts[others]]))


def _ties(sequences: Sequences) -> Mask:
    """Return which rows have a next one of their key with equal order columns, bool (n - 1,)."""
    if len(sequences) < 2:
        return np.zeros(0, np.bool_)
    words = [sort_keys(sequences.rows.column(name)) for name in sequences.order]
    ties = np.ones(len(sequences) - 1, np.bool_)
    for word in words:
        ties &= word[1:] == word[:-1]
    ends = sequences.bounds[1:-1]
    ties[ends[(ends > 0) & (ends < len(sequences))] - 1] = False
    return ties


def _deciding(tied: pa.Table) -> list[pa.Array]:
    """Return the columns that decide, and the bits of floats: the two zeros are one value, but not one row."""
    columns = [combined(column) for column in tied.columns]
    return columns + [_bits(column) for column in columns if pa.types.is_float64(column.type)]


def _bits(column: pa.Array) -> pa.Array:
    values: Ints = column.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    return pa.array(values)


def arrival_positions(column: pa.Array, name: str) -> Ints:
    """Return arrival positions, int64 (n,), of the column ``name``. Raises `DataError` where one is null."""
    if column.null_count:
        raise DataError(f"{column.null_count} rows have no {name}", "give each row a number, or drop it before")
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found
