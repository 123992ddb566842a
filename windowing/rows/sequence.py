"""Sequences: the rows of each key together, in their one total order (semantics section 1).

The total order is (key, order columns, arrival). Sorting is a chain of stable passes over rows in arrival order, the
least significant column first and the key last. A pass that would change nothing is skipped, so a log that is already
in time order costs one counting sort by key (decision 001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, Measures, Scale, combined, measures, scale_of
from ..columns.radix_sort import Codes, radix_order, ranked_words
from ..columns.sort_keys import as_values, distinct, hardly_repeats, sort_keys, sort_rows
from ..columns.text_sort import take_column
from ..support.jit import kernel

# Loops of `sequence`: counting sorts by key, and tests whether rows are already in order.
#
# Keys are dense codes, so a counting sort takes two passes whatever the number of keys, and it is stable: rows of a
# key keep their order, which is why the key is the last of the chain of sorts (decision 001).


@kernel
def bounds_of(codes: Codes, count: int) -> Ints:
    """Bounds of the rows of each code after a sort by code: int64 (count + 1,)."""
    bounds = np.zeros(count + 1, np.int64)
    for i in range(len(codes)):
        bounds[codes[i] + 1] += 1
    for code in range(count):
        bounds[code + 1] += bounds[code]
    return bounds


@kernel
def by_code(codes: Codes, cursors: Ints) -> Ints:
    """Counting sort: the row at each place, int64 (n,). ``cursors``: where each code's rows begin; they are moved."""
    out = np.empty(len(codes), np.int64)
    # Invariant: cursors[c] is the place of the next row of code c; rows are taken in order, so the sort is stable.
    for i in range(len(codes)):
        code = codes[i]
        out[cursors[code]] = i
        cursors[code] += 1
    return out


@kernel
def falls_and_ties(first: Ints) -> tuple[bool, bool]:
    """Whether some row's word is smaller than that of the row before it, and whether some is equal."""
    # No early exit: the loop has no branches, and in logs, the common case, it has to reach the end anyway.
    falls, ties = False, False
    for i in range(1, len(first)):
        falls |= first[i] < first[i - 1]
        ties |= first[i] == first[i - 1]
    return falls, ties


@kernel
def falls_and_ties_of(codes: Codes, first: Ints, key_count: int) -> tuple[bool, bool]:
    """Whether some row's word is smaller than that of its key's row before it, and whether some is equal.

    The loop ends at the first word that is smaller, because the rows are then sorted whatever follows.
    """
    last = np.full(key_count, np.iinfo(np.int64).min, np.int64)
    ties = False
    # The smallest int64 stands for "no row yet"; a first word of that value counts as a tie, which costs one sort.
    for i in range(len(codes)):
        word = first[i]
        if word < last[codes[i]]:
            return True, ties
        ties |= word == last[codes[i]]
        last[codes[i]] = word
    return False, ties


@kernel
def interleave(codes: Codes, counts: Ints, cursors: Ints, total: int) -> Ints:
    """Counting sort of runs: run r is ``counts[r]`` neighbouring rows of key ``codes[r]``. Returns int64 (total,).

    ``cursors``: where each key's rows begin; they are moved. Codes are read once for each run and not for each row.
    """
    out = np.empty(total, np.int64)
    row = 0
    for r in range(len(codes)):
        code = codes[r]
        at = cursors[code]
        for _ in range(counts[r]):
            out[at] = row
            at += 1
            row += 1
        cursors[code] = at
    return out


@kernel
def runs_follow(first: Ints, bounds: Ints, codes: Codes, last: Ints, seen: Mask, may_tie: bool) -> bool:
    """Whether run r, the rows ``[bounds[r], bounds[r+1])`` of key ``codes[r]``, comes after the key's last row so far.

    ``first``: the words by which rows are ordered. ``last``, ``seen``: by key, the word of the last row, and whether
    there is one; both are brought up to date. ``may_tie``: whether a run may begin with the word of the last row.
    """
    # Rows within a run are in order, so its two ends decide.
    for r in range(len(codes)):
        if bounds[r] == bounds[r + 1]:
            continue
        key, begin = codes[r], first[bounds[r]]
        if seen[key] and (begin < last[key] or (begin == last[key] and not may_tie)):
            return False
        last[key], seen[key] = first[bounds[r + 1] - 1], True
    return True


@kernel
def move_runs(values: Any, bounds: Ints, places: Ints, out: Any) -> None:
    """Copy run r, the values ``[bounds[r], bounds[r+1])``, to ``places[r]`` and behind it."""
    # Values are read from the first to the last and written run by run: both go through memory in order.
    for r in range(len(places)):
        at = places[r]
        for i in range(bounds[r], bounds[r + 1]):
            out[at] = values[i]
            at += 1


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
        return bool((self.pos[1:] > self.pos[:-1]).all())


def build(
    rows: pa.RecordBatch, pos: Ints, key: Sequence[str], order: Sequence[str], values: Sequence[str]
) -> Sequences:
    """Sort rows, given in arrival order, into sequences.

    No key may be null. Nulls in order columns sort last. ``values``: names of the columns that the sequences keep,
    including those of ``order``.
    """
    columns = [combined(rows.column(name)) for name in order]
    permutation: Ints | None
    keys, bounds = None, np.array([0, len(pos)], np.int64)
    if alone := _by_keys_alone(rows, key, columns):
        permutation, keys, bounds = alone
    elif key:
        codes, keys = group_codes([combined(rows.column(name)) for name in key])
        keys, bounds = keys.rename_columns(list(key)), bounds_of(codes, keys.num_rows)
        permutation = arrange(codes, bounds, columns)
    else:
        permutation = arrange(None, bounds, columns)
    kept = rows.select(list(values))
    kept = kept if permutation is None else take_rows(kept, permutation)
    return Sequences(keys, bounds, kept, take_ints(pos, permutation), tuple(order))


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
    few (decision 029).
    """
    first = sort_keys(columns[0])
    # Long ascending runs are merged; other words are sorted by radix.
    if np.count_nonzero(first[1:] < first[:-1]) * _RUN < len(first):
        permutation = np.argsort(first, kind="stable")
    else:
        permutation = radix_order(first.view(np.uint64) ^ np.uint64(1 << 63))
    if len(columns) == 1 or len(first) < 2:
        return permutation
    ordered = first[permutation]
    ties = ordered[1:] == ordered[:-1]
    places = np.flatnonzero(np.append(ties, False) | np.append(False, ties))
    rows = permutation[places]
    further = [sort_keys(column.take(pa.array(rows))) for column in columns[1:]]
    permutation[places] = rows[np.lexsort([*reversed(further), ordered[places]])]
    return permutation


def group_codes(columns: Sequence[pa.Array]) -> tuple[Codes, pa.Table]:
    """Return for each row the rank of its tuple of values, and the distinct tuples in ascending order.

    Null is a value after all others, NaN one before it. The two float zeros are one value.
    """
    codes, values = _column_codes(columns[0])
    tables = [values]
    for column in columns[1:]:
        more, values = _column_codes(column)
        both = codes.astype(np.int64) * max(1, len(values)) + more
        codes, picks = ranked_words(both.view(np.uint64))
        picks = both[picks]
        tables = [t.take(pa.array(picks // max(1, len(values)))) for t in tables]
        tables.append(values.take(pa.array(picks % max(1, len(values)))))
    return codes, pa.Table.from_arrays(tables, names=[f"{i}" for i in range(len(tables))])


def _by_keys_alone(
    rows: pa.RecordBatch, key: Sequence[str], columns: Sequence[pa.Array]
) -> tuple[Ints, pa.Table, Ints] | None:
    """Sort rows by one key column, if nearly every row has its own key and all rows are in order, whatever their keys.

    Then no codes are needed. Returns the permutation, the keys and their bounds; None for all other rows.
    """
    column = as_values(combined(rows.column(key[0]))) if len(key) == 1 else None
    if column is None or not hardly_repeats(column) or not _is_in_order(None, 1, columns):
        return None
    permutation, begins = sort_rows(column)
    starts = np.flatnonzero(begins)
    keys = pa.table([take_column(column, permutation[starts])], names=list(key))
    return permutation, keys, np.append(starts, rows.num_rows)


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


def _is_in_order(codes: Codes | None, key_count: int, columns: Sequence[pa.Array]) -> bool:
    if not columns:
        return True
    first = sort_keys(columns[0])
    falls, ties = falls_and_ties(first)  # of all rows first: logs are in order over all keys, and no codes are read
    if codes is not None and (falls or (ties and len(columns) > 1)):
        falls, ties = falls_and_ties_of(codes, first, key_count)
    return not falls and (len(columns) == 1 or not ties)


def take_ints(values: Ints, permutation: Ints | None) -> Ints:
    """Return the values at a permutation's places, or all where it is None."""
    return values if permutation is None else values.take(permutation, mode="clip")  # in range; "clip" saves the check


def change_starts(bounds: Ints, labels: Ints) -> Ints:
    """Return the rows whose label differs from that of the row before them in their sequence: int64, ascending."""
    flags = np.ones(len(labels), np.bool_)
    np.not_equal(labels[1:], labels[:-1], out=flags[1:])
    flags[bounds[:-1][bounds[:-1] < len(labels)]] = True
    return np.flatnonzero(flags)


# Search for keys among other keys; for a few among very many sorted keys without ranking all of them.


def lower_bounds(keys: pa.Table, wanted: pa.Table) -> Ints:
    """Return how many of ascending distinct ``keys`` are smaller than each of the ``wanted`` ones: int64 (wanted,).

    The search first compares with every ``sqrt(keys)``-th key, and then with the keys of the blocks found there.
    """
    step = max(1, int(np.sqrt(keys.num_rows)))
    coarse = np.arange(0, keys.num_rows, step)
    block = _places(keys.take(pa.array(coarse)), wanted)
    blocks = np.unique(block)
    between = (np.repeat((blocks - 1) * step + 1, step) + np.tile(np.arange(step), len(blocks))).clip(0)
    fine = np.unique(between[between < keys.num_rows])
    return np.append(fine, keys.num_rows)[_places(keys.take(pa.array(fine)), wanted)]


def places_among(keys: pa.Table, wanted: pa.Table) -> Ints:
    """Return the place of each of the ``wanted`` keys among distinct ``keys``, -1 if it is none: int64 (wanted,)."""
    both = pa.concat_tables([keys, wanted])
    codes, distinct = group_codes([combined(column) for column in both.columns])
    place = np.full(distinct.num_rows, -1)
    place[codes[: keys.num_rows]] = np.arange(keys.num_rows)
    return place[codes[keys.num_rows :]]


def _places(keys: pa.Table, wanted: pa.Table) -> Ints:
    columns = [pa.concat_arrays([combined(a), combined(b)]) for a, b in zip(wanted.columns, keys.columns, strict=True)]
    codes, _ = group_codes(columns)
    return np.searchsorted(codes[wanted.num_rows :], codes[: wanted.num_rows]).astype(np.int64)


# A key as messages name it.


def key_text(sequences: Sequences, key: int) -> str:
    """Return `` of key `` and the cells of a key, by its number; nothing where there is no key."""
    if sequences.keys is None:
        return ""
    cells = zip(sequences.keys.column_names, sequences.keys.slice(key, 1).columns, strict=True)
    return " of key " + ", ".join(f"{name}={_cell_text(combined(column))}" for name, column in cells)


def _cell_text(cell: pa.Array) -> str:
    if pa.types.is_string(cell.type) or pa.types.is_binary(cell.type):
        return repr(cell[0].as_py())
    try:
        return str(cell.cast(pa.string())[0].as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return str(sort_keys(cell)[0])


# Attribute values and an amount in one unit, which ``delta``, ``gap`` and ages compare (semantics section 2).


def measures_and_amount(sequences: Sequences, attribute: str, amount: Fraction) -> tuple[Measures, Any]:
    """Return the attribute as `measures`, int64 or floats (n,), and the amount by `amount_in_measure`."""
    column = combined(sequences.rows.column(attribute))
    values = measures(column)
    return values, amount_in_measure(values, scale_of(column.type), amount)


def amount_in_measure(values: Measures, scale: Scale, amount: Fraction) -> Any:
    """Return an amount in the unit of values. For int64 it is uint64, because differences of int64 need 64 bits."""
    if scale.per_second is None:
        with np.errstate(
            over="ignore"
        ):  # an amount that exceeds float32 becomes infinite, and no distance exceeds either
            return values.dtype.type(float(amount))
    return np.uint64(min(scale.floor(amount), 2**64 - 1))


@kernel
def rises(new: Any, old: Any, amount: Any) -> Any:
    """Return whether ``new >= old and new - old > amount``; false where one of them is NaN."""
    # The difference of two int64 wraps into the 64 unsigned bits of the amount exactly, since new >= old. Both sides
    # are computed, so that numpy can apply the rule to arrays, too (`have_risen`); compiled loops are as fast.
    return (new >= old) & (type(amount)(new - old) > amount)


def have_risen(new: Any, old: Any, amount: Any) -> Mask:
    """Return which values rise above others, in their shape: numbers or arrays.

    Numpy and not a kernel: the driver calls this while no task runs, and to load its first kernel would take 0.2 s.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a difference that wraps, or inf - inf: new >= old excludes it
        return np.asarray(rises.py_func(new, old, amount))  # type: ignore[attr-defined]
