"""Sequences of several parts brought together: merged by their order, or one appended to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, combined, view_of
from ..columns.radix_sort import Codes
from ..columns.sort_keys import has_common_words, sort_keys
from ..columns.text_sort import is_text, merge_runs, take_column
from .sequence import (
    Sequences,
    arrange,
    group_codes,
    interleave,
    move_runs,
    one_batch,
    runs_follow,
    take_ints,
    take_rows,
)

_WORD = 64  # bits: intervals of months, days and nanoseconds have more


def merge(parts: Sequence[Sequences]) -> Sequences:
    """Merge sequences of several parts. In arrival order, all rows of a part come before those of the next part."""
    if len(parts) == 1:
        return parts[0]
    codes, keys, bounds = _merge_keys(parts)
    if _follow(parts, codes, len(bounds) - 1):
        rows, pos = _joined_runs(parts, codes, bounds)
        return Sequences(keys, bounds, rows, pos, parts[0].order)
    rows, pos = _one_after_another(parts)
    columns = [rows.column(name) for name in parts[0].order]
    permutation = arrange(None if codes is None else np.repeat(codes, _runs(parts)), bounds, columns)
    if permutation is not None:
        rows, pos = take_rows(rows, permutation), take_ints(pos, permutation)
    return Sequences(keys, bounds, rows, pos, parts[0].order)


def _follow(parts: Sequence[Sequences], codes: Codes | None, key_count: int) -> bool:
    """Whether each key's rows of a part come after those of the parts before. A wrong False costs a sort.

    The usual case of blocks of a log: only the first and last row of each key's run are looked at.
    """
    order = parts[0].order
    if not order:
        return True
    last, seen = np.zeros(key_count, np.int64), np.zeros(key_count, np.bool_)
    for part, own in zip(parts, _codes_of_parts(parts, codes), strict=True):
        first = part.rows.column(order[0])
        if not has_common_words(first):
            return False
        if not runs_follow(sort_keys(first), part.bounds, own, last, seen, len(order) == 1):
            return False
    return True


def _codes_of_parts(parts: Sequence[Sequences], codes: Codes | None) -> list[Codes]:
    """Return the code of each run of each part; without keys each part is one run of one key."""
    counts = [len(part.bounds) - 1 for part in parts]
    every = np.zeros(sum(counts), np.int32) if codes is None else codes
    return np.split(every, np.cumsum(counts[:-1]))


def _joined_runs(parts: Sequence[Sequences], codes: Codes | None, bounds: Ints) -> tuple[pa.RecordBatch, Ints]:
    """Return rows and positions of parts whose runs of a key follow one another: runs are moved, no row is compared."""
    if codes is None:
        return _one_after_another(parts)
    fields = parts[0].rows.schema
    places, joined = None, []
    for at, kind in enumerate(fields.types):
        pieces = [part.rows.column(at) for part in parts]
        is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
        if is_plain and kind.bit_width <= _WORD and not any(piece.null_count for piece in pieces):
            width = np.dtype(f"u{kind.bit_width // 8}")  # its values are moved as they lie in memory
            moved = _move([view_of(piece, width) for piece in pieces], parts, codes, bounds)
            joined.append(pa.Array.from_buffers(kind, len(moved), [None, pa.py_buffer(moved)]))
            continue
        if places is None:
            places = interleave(codes, _runs(parts), bounds[:-1].copy(), int(bounds[-1]))
        joined.append(take_column(combined(pa.chunked_array(pieces)), places))
    rows = pa.RecordBatch.from_arrays(joined, schema=fields.remove_metadata())
    return rows, _move([part.pos for part in parts], parts, codes, bounds)


def _move(
    pieces: Sequence[npt.NDArray[Any]], parts: Sequence[Sequences], codes: Codes, bounds: Ints
) -> npt.NDArray[Any]:
    out, cursors = np.empty(int(bounds[-1]), pieces[0].dtype), bounds[:-1].copy()
    for values, part, own in zip(pieces, parts, _codes_of_parts(parts, codes), strict=True):
        move_runs(values, part.bounds, own, cursors, out)
    return out


def _runs(parts: Sequence[Sequences]) -> Ints:
    return np.concatenate([np.diff(part.bounds) for part in parts])


def _one_after_another(parts: Sequence[Sequences]) -> tuple[pa.RecordBatch, Ints]:
    rows = one_batch(pa.Table.from_batches([part.rows for part in parts]))
    return rows, np.concatenate([part.pos for part in parts])


def append(first: Sequences, then: Sequences) -> tuple[Sequences, Ints | None]:
    """Append the rows of ``then`` to those of ``first``, key by key, without a look at their order columns.

    Keys may have no rows; those of ``first`` alone that have none are left out. Also return the origin of each row,
    int64 (n,): its index among the rows of ``first``, or ``len(first)`` plus its index among those of ``then``. It is
    None where all rows stand in that order.
    """
    codes, keys, bounds = _merge_keys([first, then])
    runs = np.concatenate([np.diff(first.bounds), np.diff(then.bounds)])
    rows = one_batch(pa.Table.from_batches([first.rows, then.rows]))
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
