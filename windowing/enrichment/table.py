"""An enrich table in memory, sorted by key and order, and the search for the row that a row of the input gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, Measures, combined
from ..columns.numeric import measures
from ..errors import DataError
from ..sequences.kernels import bounds_of
from ..sequences.sequence import arrange
from .binding import BoundEnrichment, ComparedPair
from .kernels import newest_before
from .key_index import KeyIndex, index_keys, is_key


@dataclass(frozen=True, slots=True)
class EnrichTable:
    """The rows of an enrich table that can match, sorted by key, order and arrival.

    ``bound``: the enrichment.
    ``index``: the distinct keys.
    ``starts``: int64 (keys + 1,), where the rows of each key begin.
    ``order``: int64 ticks or float64 (rows,); None for a plain lookup.
    ``columns``: the taken columns (rows,), in the order of ``bound.taken``.
    ``row``: int64 (rows,), the place of each row in the table as it was read.
    """

    bound: BoundEnrichment
    index: KeyIndex
    starts: Ints
    order: Measures | None
    columns: tuple[pa.Array, ...]
    row: Ints

    def match(self, rows: pa.Table) -> Ints:
        """Return, for each row of the input, the row of this table that it gets, -1 for none: int64 (n,).

        ``rows``: a table with the columns ``bound.left``.
        """
        keys = [compared(rows.column(pair.left), pair) for pair in self.bound.keys]
        codes = self.index.codes(keys)
        asof = self.bound.asof
        if asof is None:
            return codes
        assert self.order is not None
        column = compared(rows.column(asof.order.left), asof.order)
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        at = order_values(column)
        found = newest_before(codes, at, self.starts, self.order, asof.strict)
        if asof.within is not None:
            found[is_too_far(found, at, self.order, asof.within)] = -1
        return found


def enrich_table(bound: BoundEnrichment, rows: pa.Table, pos: Ints) -> EnrichTable:
    """Sort the rows of an enrich table. Rows with a null or NaN in a key or in the order match nothing: left out.

    ``rows``: the columns ``bound.right``, in arrival order. ``pos``: their arrival positions, int64 (n,).
    Raises `DuplicateKeyError` where a plain lookup has a key twice.
    """
    parts = [compared(rows.column(pair.right), pair) for pair in bound.compared]
    row = np.flatnonzero(np.logical_and.reduce([is_key(part) for part in parts]))
    if len(row) < rows.num_rows:
        parts = [part.take(pa.array(row)) for part in parts]
    index, codes = index_keys(parts[: len(bound.keys)])
    starts = bounds_of(codes.astype(np.int32), index.size)
    permutation = arrange(codes.astype(np.int32), starts, parts[len(bound.keys) :])
    if permutation is not None:
        parts, row = [part.take(pa.array(permutation)) for part in parts], row[permutation]
    if bound.asof is None:
        _check_unique(bound, starts, parts, pos[row])
    order = order_values(parts[-1]) if bound.asof is not None else None
    columns = tuple(combined(rows.column(name)).take(pa.array(row)) for name in bound.taken)
    starts.flags.writeable = False
    return EnrichTable(bound, index, starts, order, columns, row)


def last_rows(table: EnrichTable, rows: pa.Table) -> pa.Table:
    """Return the last row of each key, of the ``rows`` that a table was made of."""
    return rows.take(pa.array(table.row[table.starts[1:] - 1]))


class DuplicateKeyError(DataError):
    """A key that two rows of a lookup table have.

    ``positions``: the arrival positions of the two rows.
    """

    def __init__(self, who: str, key: str, positions: tuple[int, int]) -> None:
        super().__init__(f"{who}: key {key} is there twice", "keep one row for each key, or say asof and an order")
        self._arguments = (who, key, positions)
        self.positions = positions

    def __reduce__(self) -> tuple[type[DuplicateKeyError], tuple[str, str, tuple[int, int]]]:
        return DuplicateKeyError, self._arguments


def compared(column: pa.ChunkedArray | pa.Array, pair: ComparedPair) -> pa.Array:
    """Return a column in the type in which it is compared; dictionary encoded text stays so.

    Raises `DataError` for a value that this type does not hold.
    """
    array = combined(column)
    if pa.types.is_dictionary(array.type):
        if pa.types.is_large_string(pair.type) or array.type.value_type == pair.type:
            return array
        array = array.dictionary_decode()
    if array.type == pair.type or (pa.types.is_string(array.type) and pa.types.is_large_string(pair.type)):
        return array if array.type == pair.type else array.cast(pair.type)
    try:
        return array.cast(pair.type)
    except pa.ArrowInvalid as error:
        what = f"--enrich: a value of {pair.left!r} or {pair.right!r} does not fit {pair.type}: {error}"
        raise DataError(what, "give both columns one type before") from error


def order_values(column: pa.Array) -> Measures:
    """Return order values as int64 ticks or float64 (n,), read-only; those of nulls are arbitrary."""
    values = measures(column)
    values = np.asarray(values, np.float64 if values.dtype.kind == "f" else np.int64)
    values.flags.writeable = False
    return values


def is_too_far(found: Ints, at: Measures, order: Measures, within: int | float) -> Mask:
    """Return which matches are further away than the tolerance, bool (n,); arbitrary where there is no match."""
    if not len(order):
        return np.zeros(len(found), np.bool_)
    if order.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # an infinite time less itself
            return np.asarray(at - order[found] > within, np.bool_)
    # As unsigned numbers: the distance of two int64 may need 64 bits, and a match is never after its row.
    return np.asarray(at.view(np.uint64) - order[found].view(np.uint64) > np.uint64(within), np.bool_)


def taken_by(column: pa.Array, found: Ints) -> pa.Array:
    """Return the values of a column at the rows that were found, null at -1: (n,)."""
    return column.take(pa.array(found, mask=found < 0))


def _check_unique(bound: BoundEnrichment, starts: Ints, keys: Sequence[pa.Array], pos: Ints) -> None:
    twice = np.flatnonzero(np.diff(starts) > 1)
    if not len(twice):
        return
    firsts = starts[twice]
    at = int(firsts[np.argmin(pos[firsts + 1])])  # the one that a reader of the files finds first
    values = ", ".join(repr(_plain(key[at])) for key in keys)
    raise DuplicateKeyError(f"--enrich {bound.enrichment.name}", values, (int(pos[at]), int(pos[at + 1])))


def _plain(value: pa.Scalar) -> object:
    return pc.cast(value, pa.string()).as_py() if pa.types.is_temporal(value.type) else value.as_py()
