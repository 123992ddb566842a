"""The order of rows that have no arrival: where they tie, the values of other columns decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..columns.sort_keys import sort_keys
from ..errors import DataError
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
        if pos.null_count:
            raise DataError(
                f"{pos.null_count} rows have no {self.arrival}", "give each row a number, or drop it before"
            )
        return replace(settled, pos=pos.cast(pa.int64()).to_numpy())

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


def number_rows(sequences: Sequences) -> Sequences:
    """Return sequences whose positions number the rows of each key, from 0 at its first row ever."""
    if sequences.rank is not None:
        return replace(sequences, pos=sequences.rank)
    counts = np.diff(sequences.bounds)
    return replace(sequences, pos=np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1], counts))


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
