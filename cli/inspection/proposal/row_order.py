"""What a sample shows of the order of its rows: late ones, ties, repeated rows, and holes in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .sample import Sample
from .times import RowTimes

_REGULAR = 0.75
"""The share of distances that are the usual one, from which on rows come at a steady pace."""
_ODD, _MIXER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # as in splitmix64
_HOLE = 3
"""A hole is a distance of more than so many times the usual one."""


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """The order of the rows of a sample. All times are in microseconds.

    ``first``, ``last``: the earliest and the latest time, since 1970.
    ``early``: how many rows are before the latest row that arrived before them.
    ``latest``: by how much at most.
    ``ties``: how many rows have the time of another row of their key.
    ``repeats``: how many rows are the same as one before, in all columns.
    ``untimed``: how many rows have no time, or one that cannot be read.
    """

    first: int
    last: int
    early: int
    latest: int
    ties: int
    repeats: int
    untimed: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """The times between neighbouring rows of a key. All times are in microseconds.

    ``between``: int64 (G,), in the order of ``row``.
    ``rows``: how many rows the keys have together.
    ``usual``: the distance that rows usually have; None: there is none, rows come at no steady pace.
    ``share``: the share of distances that are the usual one, within a tenth.
    ``holes``: how many distances are more than three times the usual one.
    ``longest``: the longest distance.
    ``longest_at``: the time of the row before it, since 1970.
    """

    between: npt.NDArray[np.int64]
    rows: int
    usual: int | None
    share: float
    holes: int
    longest: int
    longest_at: int


@dataclass(frozen=True, slots=True)
class RowsInOrder:
    """The rows of a sample that have a time and a key, by key and time.

    ``micros``: int64 (M,), the times.
    ``begins``: bool (M,), whether a row is the first of its key, or of its run of neighbouring rows.
    """

    micros: npt.NDArray[np.int64]
    begins: npt.NDArray[np.bool_]


def order_rows(sample: Sample, times: RowTimes, codes: npt.NDArray[np.int64]) -> RowsInOrder:
    """Bring the rows of a sample into order by run, key and time. ``codes``: the key of each row; negative: none."""
    there = times.known & (codes >= 0)
    micros, key, piece = times.micros[there], codes[there], sample.piece[there]
    order = np.lexsort([micros, key, piece])
    micros, key, piece = micros[order], key[order], piece[order]
    begins = np.ones(len(micros), np.bool_)
    begins[1:] = (np.diff(key) != 0) | (np.diff(piece) != 0)
    return RowsInOrder(micros, begins)


def look_at_order(sample: Sample, times: RowTimes, ordered: RowsInOrder, by_file: bool) -> OrderFacts:
    """Look at the order in which rows arrived. ``by_file``: each file is a series, and has an order of its own."""
    runs = sample.file if by_file else sample.piece
    micros, piece = times.micros[times.known], runs[times.known]
    early, latest = 0, 0
    for run in np.unique(piece):
        own = micros[piece == run]
        behind = np.maximum.accumulate(own) - own
        early, latest = early + int((behind > 0).sum()), max(latest, int(behind.max(initial=0)))
    ties = int(((np.diff(ordered.micros) == 0) & ~ordered.begins[1:]).sum())
    untimed = int((~times.known).sum())
    return OrderFacts(int(micros.min()), int(micros.max()), early, latest, ties, _repeats(sample, by_file), untimed)


def look_at_gaps(ordered: RowsInOrder) -> Gaps:
    """Look at the times between neighbouring rows of a key."""
    inside = ~ordered.begins[1:]
    between = np.diff(ordered.micros)[inside]
    before = ordered.micros[:-1][inside]
    if not len(between):
        return Gaps(between, len(ordered.micros), None, 0.0, 0, 0, 0)
    moving = between[between > 0]
    usual = int(np.median(moving)) if len(moving) else 0
    share = float((np.abs(moving - usual) <= usual / 10).mean()) if len(moving) else 0.0
    at = int(between.argmax())
    is_steady = usual > 0 and share >= _REGULAR and len(moving) > len(between) / 2
    holes = int((between > _HOLE * usual).sum()) if is_steady else 0
    pace = usual if is_steady else None
    return Gaps(between, len(ordered.micros), pace, share, holes, int(between[at]), int(before[at]))


def _repeats(sample: Sample, by_file: bool) -> int:
    """Return how many rows have the values of a row before in every column, by 64-bit hashes of rows."""
    mixed = sample.file.astype(np.uint64) if by_file else np.zeros(sample.rows.num_rows, np.uint64)
    for column in sample.rows.columns:
        if pa.types.is_nested(column.type):
            return 0  # a nested value has no code, and without it rows would look the same that are not
        codes = column.combine_chunks()
        encoded = codes if pa.types.is_dictionary(codes.type) else pc.dictionary_encode(codes)
        numbers = encoded.indices.fill_null(-1).to_numpy().astype(np.int64).view(np.uint64)
        mixed = (mixed ^ (numbers + _ODD + (mixed << np.uint64(6)))) * _MIXER
        mixed ^= mixed >> np.uint64(31)
    return len(mixed) - len(np.unique(mixed))
