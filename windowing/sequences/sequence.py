"""Sequences: the rows of each key together, in their one total order (semantics section 1).

The total order is (key, order columns, arrival). Sorting is a chain of stable passes over rows in arrival order, the
least significant column first and the key last. A pass that would change nothing is skipped, so a log that is already
in time order costs one counting sort by key (docs/decisions/001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from ..columns.radix_sort import Codes, radix_order, ranked_words
from ..columns.sort_keys import as_values, distinct, hardly_repeats, sort_keys, sort_rows
from ..columns.texts.take import take_column
from .kernels import bounds_of, by_code, falls_and_ties, falls_and_ties_of

_Sorted: TypeAlias = tuple[Ints | None, pa.Table | None, Ints]
"""The permutation that sorts rows, None if they are sorted; the keys; and the bounds of each key's rows."""

_RUN = 1000  # rows: numpy merges 2.5 M rows in 0.02 s for 16 runs and in 0.2 s for 10,000; by radix it is always 0.08


@dataclass(frozen=True, slots=True)
class Sequences:
    """The rows of some keys, key after key, each key's rows in total order.

    ``keys``: K rows, one for each key, ascending, no duplicates; None if there is no key, and so one sequence.
    ``bounds``: int64 (K+1,), the rows of key k are ``[bounds[k], bounds[k+1])``.
    ``rows``: n rows, the columns that windows and aggregates need.
    ``pos``: int64 (n,), arrival positions of the rows.
    ``order``: names of the order columns, most significant first; empty for arrival order.
    ``rank``: int64 (n,), how many rows of its key came before each row, ever; None if all of them are here.
    """

    keys: pa.Table | None
    bounds: Ints
    rows: pa.RecordBatch
    pos: Ints
    order: tuple[str, ...]
    rank: Ints | None = None

    def __len__(self) -> int:
        return len(self.pos)

    @property
    def newest(self) -> Ints:
        """The last row of each sequence that has rows, int64."""
        return self.bounds[1:][np.diff(self.bounds) > 0] - 1

    @property
    def arrived_in_order(self) -> bool:
        """Whether the rows of each key arrived in their total order, and the keys one after the other."""
        return bool((self.pos[1:] > self.pos[:-1]).all())


def build(
    rows: pa.RecordBatch, pos: Ints, key: Sequence[str], order: Sequence[str], values: Sequence[str]
) -> Sequences:
    """Sort rows, given in arrival order, into sequences.

    No key may be null. Nulls in order columns sort last. ``values``: names of the columns that the sequences keep,
    including those of ``order``.
    """
    columns = [combined(rows.column(name)) for name in order]
    permutation, keys, bounds = _by_keys_alone(rows, key, columns) or _by_codes(rows, key, columns, len(pos))
    kept = rows.select(list(values))
    return Sequences(keys, bounds, _take(kept, permutation), take_ints(pos, permutation), tuple(order))


def take_rows(rows: pa.RecordBatch, picks: Ints) -> pa.RecordBatch:
    """Return the rows at ``picks``. A batch without columns is returned unchanged."""
    if not rows.num_columns:
        return rows
    # Picks are computed here and in range: a check of the bounds would take a third of the time.
    return pa.RecordBatch.from_arrays([take_column(column, picks) for column in rows.columns], schema=rows.schema)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one contiguous batch. A table without columns gives a batch without rows."""
    return pa.RecordBatch.from_arrays([combined(column) for column in table.columns], names=table.column_names)


def concatenate(tables: Sequence[pa.Table]) -> pa.RecordBatch:
    """Return tables with equal columns as one batch. A column stays dictionary encoded if it is so in all tables."""
    types = [{field.type for field in fields} for fields in zip(*(table.schema for table in tables), strict=True)]
    plain = [next((kind for kind in kinds if not pa.types.is_dictionary(kind)), None) for kinds in types]
    fields = zip(tables[0].schema, plain, strict=True)
    schema = pa.schema([field if kind is None else pa.field(field.name, kind) for field, kind in fields])
    alike = [table if table.schema.types == schema.types else table.cast(schema) for table in tables]
    return one_batch(pa.concat_tables(alike))


def arrange(codes: Codes | None, bounds: Ints, columns: Sequence[pa.Array]) -> Ints | None:
    """Return the permutation that sorts rows by (code, columns, place), or None where they are sorted already.

    ``codes``: the key of each row, or None for one key. ``bounds``: int64 (K+1,), bounds of the rows of each key.
    """
    # By the columns over all keys first, then one counting sort by key: the second is stable and O(n).
    permutation = None if _is_in_order(codes, len(bounds) - 1, columns) else order_of(columns)
    if codes is None or len(bounds) <= 2:
        return permutation
    if permutation is None:
        return None if bool((codes[1:] >= codes[:-1]).all()) else by_code(codes, bounds[:-1].copy())
    return permutation[by_code(codes[permutation], bounds[:-1].copy())]


def order_of(columns: Sequence[pa.Array]) -> Ints:
    """Return the stable permutation that sorts rows by one or more columns, most significant first; nulls last.

    The other columns are read only for rows that tie in the first one. In a result that is read as a stream these are
    few (docs/decisions/029).
    """
    first = sort_keys(columns[0])
    permutation = _order_of_words(first)
    if len(columns) == 1 or len(first) < 2:
        return permutation
    ordered = first[permutation]
    ties = ordered[1:] == ordered[:-1]
    places = np.flatnonzero(np.append(ties, False) | np.append(False, ties))
    rows = permutation[places]
    further = [sort_keys(column.take(pa.array(rows))) for column in columns[1:]]
    permutation[places] = rows[np.lexsort([*reversed(further), ordered[places]])]
    return permutation


def _order_of_words(first: Ints) -> Ints:
    """The stable permutation that sorts words. Long ascending runs are merged; other words are sorted by radix."""
    falls = np.count_nonzero(first[1:] < first[:-1])
    if falls * _RUN < len(first):
        return np.argsort(first, kind="stable")
    return radix_order(first.view(np.uint64) ^ np.uint64(1 << 63))


def group_codes(columns: Sequence[pa.Array]) -> tuple[Codes, pa.Table]:
    """Return for each row the rank of its tuple of values, and the distinct tuples in ascending order.

    Null is a value after all others, NaN one before it. The two float zeros are one value.
    """
    codes, values = _column_codes(columns[0])
    tables = [values]
    for column in columns[1:]:
        more, values = _column_codes(column)
        codes, picks = _dense(codes.astype(np.int64) * max(1, len(values)) + more)
        tables = [t.take(pa.array(picks // max(1, len(values)))) for t in tables]
        tables.append(values.take(pa.array(picks % max(1, len(values)))))
    return codes, pa.Table.from_arrays(tables, names=[f"{i}" for i in range(len(tables))])


def _by_keys_alone(rows: pa.RecordBatch, key: Sequence[str], columns: Sequence[pa.Array]) -> _Sorted | None:
    """Sort rows by one key column, if nearly every row has its own key and all rows are in order, whatever their keys.

    Then no codes are needed. Returns None for all other rows.
    """
    column = as_values(combined(rows.column(key[0]))) if len(key) == 1 else None
    if column is None or not hardly_repeats(column) or not _is_in_order(None, 1, columns):
        return None
    permutation, begins = sort_rows(column)
    starts = np.flatnonzero(begins)
    keys = pa.table([take_column(column, permutation[starts])], names=list(key))
    return permutation, keys, np.append(starts, rows.num_rows)


def _by_codes(rows: pa.RecordBatch, key: Sequence[str], columns: Sequence[pa.Array], size: int) -> _Sorted:
    codes, keys, bounds = None, None, np.array([0, size], np.int64)
    if key:
        codes, keys = group_codes([combined(rows.column(name)) for name in key])
        bounds = bounds_of(codes, keys.num_rows)
        keys = keys.rename_columns(list(key))
    return arrange(codes, bounds, columns), keys, bounds


def _column_codes(column: pa.Array) -> tuple[Codes, pa.Array]:
    """Dense codes of one column's values, int32 (n,), and the values, ascending, each of which occurs."""
    codes, values = distinct(column)
    if column.null_count:
        codes = np.where(column.is_null().to_numpy(zero_copy_only=False), len(values), codes)
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    present = np.zeros(len(values), np.bool_)
    present[codes] = True
    if present.all():
        return codes.astype(np.int32), values
    return (np.cumsum(present, dtype=np.int32) - np.int32(1))[codes], values.filter(pa.array(present))


def _dense(codes: Ints) -> tuple[Codes, Ints]:
    """Renumber codes from 0 without gaps; also return the old code of each number, ascending."""
    dense, picks = ranked_words(codes.view(np.uint64))
    return dense, codes[picks]


def _is_in_order(codes: Codes | None, key_count: int, columns: Sequence[pa.Array]) -> bool:
    """Whether each key's rows are already in the order of the columns. A wrong False is possible and costs a sort."""
    if not columns:
        return True
    first = sort_keys(columns[0])
    falls, ties = falls_and_ties(first)  # of all rows first: logs are in order over all keys, and no codes are read
    if codes is not None and (falls or (ties and len(columns) > 1)):
        falls, ties = falls_and_ties_of(codes, first, key_count)
    return not falls and (len(columns) == 1 or not ties)


def _take(rows: pa.RecordBatch, permutation: Ints | None) -> pa.RecordBatch:
    return rows if permutation is None else take_rows(rows, permutation)


def take_ints(values: Ints, permutation: Ints | None) -> Ints:
    """Return the values at a permutation's places, or all where it is None."""
    return values if permutation is None else values.take(permutation, mode="clip")  # in range; "clip" saves the check
