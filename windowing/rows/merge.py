"""Sequences of several parts brought together: merged by their order, or one appended to the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, combined, view_of
from ..columns.radix_sort import Codes
from ..columns.sort_keys import has_common_words, sort_keys
from ..columns.text_sort import is_text, merge_runs, take_column
from ..support.jit import kernel
from .sequence import (
    Sequences,
    arrange,
    bounds_of,
    by_code,
    concatenate,
    group_codes,
    interleave,
    move_runs,
    runs_follow,
    take_rows,
)

_WORD = 64  # bits: intervals of months, days and nanoseconds have more
Values = npt.NDArray[Any]


@kernel
def _merged_places(words: Ints, begins: Ints, runs: Ints, first: Ints, bounds: Ints) -> Ints:
    """Return the place of each row once the runs of each key are merged, int64 (n,); equal words stay in turn.

    ``words``: int64 (n,), by which rows are ordered. ``begins``: int64 (R+1,), the rows of run r are
    ``[begins[r], begins[r+1])``, ascending. ``runs``: int64 (R,), those of key k are ``runs[first[k]:first[k+1]]``.
    ``bounds``: int64 (K+1,), the places of each key.
    """
    longest, most = 0, 0
    for k in range(len(bounds) - 1):
        longest, most = max(longest, bounds[k + 1] - bounds[k]), max(most, first[k + 1] - first[k])
    rows, spare, starts = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(most, np.int64)
    out = np.empty(len(words), np.int64)
    for k in range(len(bounds) - 1):
        size, count = 0, 0
        for j in range(first[k], first[k + 1]):
            low, high = begins[runs[j]], begins[runs[j] + 1]
            # a run behind the rows so far makes theirs longer: the chunks of a log, however many, are one run
            if low < high and (size == 0 or words[low] < words[rows[size - 1]]):
                starts[count] = size
                count += 1
            for row in range(low, high):
                rows[size] = row
                size += 1
        while count > 1:
            # Invariant: from one of ``starts`` to the next words ascend, and equal words of the key stand in turn.
            merged = 0
            for i in range(0, count, 2):
                left = at = starts[i]
                right = middle = starts[i + 1] if i + 1 < count else size
                stop = starts[i + 2] if i + 2 < count else size
                while at < stop:
                    if right == stop or (left < middle and words[rows[left]] <= words[rows[right]]):
                        spare[at] = rows[left]
                        left += 1
                    else:
                        spare[at] = rows[right]
                        right += 1
                    at += 1
                starts[merged] = starts[i]
                merged += 1
            rows, spare, count = spare, rows, merged
        for i in range(size):
            out[rows[i]] = bounds[k] + i
    return out


@kernel
def _put(values: Any, places: Ints, out: Any) -> None:
    """Copy each value to its place."""
    for i in range(len(values)):
        out[places[i]] = values[i]


def merge(parts: Sequence[Sequences]) -> Sequences:
    """Merge sequences of several parts. In arrival order, all rows of a part come before those of the next part.

    A text column stays in a dictionary where it is in one in all parts that have values of it.
    """
    if len(parts) == 1:
        return parts[0]
    found, keys, bounds = _merge_keys(parts)
    codes = np.zeros(len(parts), np.int32) if found is None else found
    layout = _Layout(
        parts, codes, bounds, None if _follow(parts, codes, len(bounds) - 1) else _places(parts, codes, bounds)
    )
    fields = parts[0].rows.schema.names
    columns = [layout.column([part.rows.column(at) for part in parts]) for at in range(len(fields))]
    pos = layout.moved([part.pos for part in parts])
    return Sequences(keys, bounds, pa.RecordBatch.from_arrays(columns, names=fields), pos, parts[0].order)


def _follow(parts: Sequence[Sequences], codes: Codes, key_count: int) -> bool:
    """Whether each key's rows of a part come after those of the parts before. A wrong False costs a merge.

    The usual case of blocks of a log: only the first and last row of each key's run are looked at.
    """
    order = parts[0].order
    if not order:
        return True
    last, seen = np.zeros(key_count, np.int64), np.zeros(key_count, np.bool_)
    for part, own in zip(parts, _divided(codes, [len(part.bounds) - 1 for part in parts]), strict=True):
        first = part.rows.column(order[0])
        if not has_common_words(first):
            return False
        if not runs_follow(sort_keys(first), part.bounds, own, last, seen, len(order) == 1):
            return False
    return True


def _divided(values: Values, sizes: Sequence[int]) -> list[Values]:
    return np.split(values, np.cumsum(sizes[:-1]))


def _places(parts: Sequence[Sequences], codes: Codes, bounds: Ints) -> Ints:
    """Return the place of each row, part after part, among those of all parts, int64 (n,)."""
    counts, columns = _runs(parts), [[part.rows.column(name) for part in parts] for name in parts[0].order]
    if len(columns) == 1 and all(map(has_common_words, columns[0])):
        words, first = np.concatenate([sort_keys(column) for column in columns[0]]), bounds_of(codes, len(bounds) - 1)
        return _merged_places(words, _bounds(counts), by_code(codes, first[:-1].copy()), first, bounds)
    whole = [combined(pa.chunked_array(pieces)) for pieces in columns]
    every = np.arange(bounds[-1])
    permutation, place = arrange(np.repeat(codes, counts), bounds, whole), np.empty_like(every)
    if permutation is None:
        return every
    _put(every, permutation, place)
    return place


class _Layout:
    """Where the rows of parts stand among all.

    ``codes``: int32 (R,), the key of each run. ``bounds``: int64 (K+1,), the rows of each key among all.
    ``place``: int64 (n,), that of each row; None: runs of a key follow one another.
    """

    def __init__(self, parts: Sequence[Sequences], codes: Codes, bounds: Ints, place: Ints | None) -> None:
        self.parts, self.codes, self.bounds, self.place = parts, codes, bounds, place
        self.sizes, counts = [len(part) for part in parts], _runs(parts)
        if place is None:
            turn, goals = by_code(codes, bounds_of(codes, len(bounds) - 1)[:-1].copy()), np.empty_like(counts)
            goals[turn] = _bounds(counts[turn])[:-1]
            self.goals = _divided(goals, [len(part.bounds) - 1 for part in parts])
        else:
            self.goals = _divided(place, self.sizes)
        self._valid: dict[tuple[bool, ...], pa.Buffer] = {}

    def moved(self, pieces: Sequence[Values | None]) -> Values:
        """Return the values of all rows of those of each part; zero for those of a part that is None."""
        there = [values for values in pieces if values is not None]
        out = (np.empty if len(there) == len(pieces) else np.zeros)(int(self.bounds[-1]), there[0].dtype)
        for values, part, goals in zip(pieces, self.parts, self.goals, strict=True):
            if values is not None and self.place is None:
                move_runs(values, part.bounds, goals, out)
            elif values is not None:
                _put(values, goals, out)
        return out

    @cached_property
    def picks(self) -> Ints:
        """The row at each place, int64 (n,), where rows are numbered part after part."""
        size = int(self.bounds[-1])
        if self.place is None:
            return interleave(self.codes, _runs(self.parts), self.bounds[:-1].copy(), size)
        return self.moved(_divided(np.arange(size), self.sizes))

    def valid(self, has: tuple[bool, ...]) -> pa.Buffer:
        """Return the validity where all rows of some parts have a value, and those of the others none."""
        if has not in self._valid:
            masks = [np.ones(size, np.bool_) if own else None for size, own in zip(self.sizes, has, strict=True)]
            self._valid[has] = _packed(self.moved(masks))
        return self._valid[has]

    def column(self, pieces: Sequence[pa.Array]) -> pa.Array:
        """Return a column of all rows of its pieces. Those that have nothing but nulls are not moved."""
        has = tuple(piece.null_count < len(piece) for piece in pieces)
        there = [piece for piece, own in zip(pieces, has, strict=True) if own]
        if not there:
            return pa.nulls(int(self.bounds[-1]), pieces[0].type)
        kind = there[0].type
        if pa.types.is_dictionary(kind) and all(piece.type == kind for piece in there):
            chunks = pa.chunked_array(there).unify_dictionaries().chunks
            return pa.DictionaryArray.from_arrays(self._fixed([c.indices for c in chunks], has), chunks[0].dictionary)
        is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
        if is_plain and kind.bit_width <= _WORD:
            return self._fixed(there, has)
        # texts may be plain in some parts
        plain = [piece.dictionary_decode() if pa.types.is_dictionary(piece.type) else piece for piece in pieces]
        whole = combined(pa.chunked_array(plain))
        return whole if self.place is None and len(self.bounds) == 2 else take_column(whole, self.picks)

    def _fixed(self, there: Sequence[pa.Array], has: tuple[bool, ...]) -> pa.Array:
        """Return a column of fixed width. ``there``: the pieces that have values; ``has``: which do."""
        kind, each = there[0].type, iter(there)
        width = np.dtype(f"u{kind.bit_width // 8}")  # values are moved as they lie in memory
        pieces = [next(each) if own else None for own in has]
        values, valid = self.moved([None if piece is None else view_of(piece, width) for piece in pieces]), None
        if any(piece.null_count for piece in there):
            masks = [None if piece is None else piece.is_valid().to_numpy(zero_copy_only=False) for piece in pieces]
            valid = _packed(self.moved(masks))
        elif not all(has):
            valid = self.valid(has)
        return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


def _packed(mask: Values) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _runs(parts: Sequence[Sequences]) -> Ints:
    return np.concatenate([np.diff(part.bounds) for part in parts])


def append(first: Sequences, then: Sequences) -> tuple[Sequences, Ints | None]:
    """Append the rows of ``then`` to those of ``first``, key by key, without a look at their order columns.

    Keys may have no rows; those of ``first`` alone that have none are left out. Also return the origin of each row,
    int64 (n,): its index among the rows of ``first``, or ``len(first)`` plus its index among those of ``then``. It is
    None where all rows stand in that order.
    """
    codes, keys, bounds = _merge_keys([first, then])
    runs = np.concatenate([np.diff(first.bounds), np.diff(then.bounds)])
    rows = concatenate([pa.Table.from_batches([part.rows]) for part in (first, then)])
    pos = np.concatenate([first.pos, then.pos])
    if codes is None or keys is None or (keys.num_rows == 1 and len(pos)):  # one key: its rows stand in place
        return Sequences(keys, bounds, rows, pos, then.order), None
    picks = interleave(codes, runs, bounds[:-1].copy(), len(pos))
    is_there = np.diff(bounds) > 0
    is_there[codes[len(first.bounds) - 1 :]] = True
    there = np.flatnonzero(is_there)
    keys, bounds = keys.take(pa.array(there)), np.append(bounds[there], bounds[-1])
    return Sequences(keys, bounds, take_rows(rows, picks), pos[picks], then.order), picks


def _merge_keys(parts: Sequence[Sequences]) -> tuple[Codes | None, pa.Table | None, Ints]:
    """Codes of each part's keys among all keys, part after part; all keys; and the bounds of the merged rows."""
    if parts[0].keys is None:
        return None, None, np.array([0, sum(len(part) for part in parts)], np.int64)
    tables = [part.keys for part in parts if part.keys is not None]  # all of them
    every = pa.concat_tables(tables)
    columns = [combined(column) for column in every.columns]
    if len(columns) == 1 and is_text(columns[0].type) and not columns[0].null_count:
        codes, picks = merge_runs(columns[0], _bounds([table.num_rows for table in tables]))
        keys = pa.table([take_column(columns[0], picks)], names=every.column_names)
    else:
        codes, keys = group_codes(columns)
        keys = keys.rename_columns(every.column_names)
    counts = np.zeros(keys.num_rows, np.int64)
    np.add.at(counts, codes, np.concatenate([np.diff(part.bounds) for part in parts]))
    return codes, keys, _bounds(counts)


def _bounds(counts: Ints | Sequence[int]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
