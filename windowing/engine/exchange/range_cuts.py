"""Where the total order is cut into slices: between keys, and inside those that weigh more than a slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined
from ...columns.sort_keys import sort_keys
from ...sequences.key_search import lower_bounds
from ...sequences.sequence import Sequences, group_codes

PLACE = "__place"
"""Name of the column of samples and cuts that holds arrival positions."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Some rows of all: ``rows`` holds their keys and, where keys may be cut, what orders them and their positions;
    ``weights``: how much each counts."""

    rows: pa.Table
    weights: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SliceBounds:
    """C cuts, each before some row of the total order, ascending: slices are what lies between them.

    ``keys``: (C rows), the key of the first row behind each; None where there is no key. ``places``: (C rows), the
    order values and the position of that row. ``inside``: (C,), whether the cut is before just that row; else it is
    before its key.
    """

    keys: pa.Table | None
    places: pa.Table
    inside: Mask

    def __len__(self) -> int:
        return len(self.inside)


def choose_bounds(samples: Samples, key: Sequence[str], count: int, may_cut_keys: bool) -> SliceBounds | None:
    """Choose up to ``count - 1`` cuts that leave ranges of about equal weight; None where there is nothing to cut.

    Keys that weigh no more than a slice stay whole. ``may_cut_keys``: whether others are cut, so that ``samples`` has
    the order of rows.
    """
    rows, total = samples.rows, samples.weights.sum()
    if not rows.num_rows:
        return None
    codes = np.zeros(rows.num_rows, np.int64)
    if key:
        codes = group_codes([combined(rows.column(name)) for name in key])[0].astype(np.int64)
    order = [name for name in rows.column_names if name not in key] if may_cut_keys else []
    ascending = np.lexsort([*(sort_keys(combined(rows.column(name))) for name in reversed(order)), codes])
    codes, weights = codes[ascending], samples.weights[ascending]
    wanted = total * np.arange(1, count) / count
    picks = np.searchsorted(np.cumsum(weights), wanted, side="right")
    picks = picks[picks < len(codes)]
    heavy = np.bincount(codes, weights=weights)[codes[picks]] > total / count
    first = np.searchsorted(codes, codes[picks])
    picks = np.where(heavy & bool(order), picks, first)
    picks = np.unique(picks[picks > 0])
    if not len(picks):
        return None
    chosen = rows.take(pa.array(ascending[picks]))
    inside = codes[picks] == codes[picks - 1]
    return SliceBounds(chosen.select(list(key)) if key else None, chosen.select(order), inside)


def slices_of(cuts: SliceBounds | None) -> int:
    """Return how many slices there are."""
    return 1 if cuts is None else len(cuts) + 1


def slice_offsets(sequences: Sequences, cuts: SliceBounds | None) -> Ints:
    """Return where the slices begin and end among the rows: int64 (slices + 1,)."""
    if cuts is None:
        return np.array([0, len(sequences)], np.int64)
    if cuts.keys is None or sequences.keys is None:
        first = np.zeros(len(cuts), np.int64)
        is_there = np.ones(len(cuts), np.bool_)
    else:
        first = slice_bounds(sequences.keys, cuts.keys)[1:-1]
        is_there = _same_keys(sequences.keys, first, cuts.keys)
    places = sequences.bounds[first]
    for k in np.unique(first[cuts.inside & is_there]):
        chosen = np.flatnonzero(cuts.inside & is_there & (first == k))
        places[chosen] = _offsets_in(sequences, int(k), cuts.places.take(pa.array(chosen)))
    return np.concatenate([[0], places, [len(sequences)]]).astype(np.int64)


def same_key(keys: pa.Table | None, index: int, cuts: SliceBounds, cut: int) -> bool:
    """Whether key ``index`` of some keys is that of a cut."""
    if keys is None or cuts.keys is None:
        return True
    return bool(_same_keys(keys, np.array([index]), cuts.keys.slice(cut, 1))[0])


def slice_bounds(keys: pa.Table, cuts: pa.Table) -> Ints:
    """Return where the slices begin and end among ascending distinct ``keys``: int64 (slices + 1,).

    ``cuts``: keys, ascending, each the first of its slice.
    """
    inner = lower_bounds(keys, cuts)
    return np.concatenate([[0], inner, [keys.num_rows]]).astype(np.int64)


def _same_keys(keys: pa.Table, picks: Ints, others: pa.Table) -> Mask:
    """Whether the key at each place is the other one; not where the place is behind all keys."""
    there = picks < keys.num_rows
    mine = keys.take(pa.array(np.minimum(picks, keys.num_rows - 1))) if keys.num_rows else keys
    if not keys.num_rows:
        return there
    pairs = zip(mine.columns, others.columns, strict=True)
    codes, _ = group_codes([pa.concat_arrays([combined(a), combined(b)]) for a, b in pairs])
    return there & (codes[: len(picks)] == codes[len(picks) :])


def _offsets_in(sequences: Sequences, key: int, cuts: pa.Table) -> Ints:
    """Where cuts lie in one sequence: the first row that does not sort before each, int64 (cuts,)."""
    begin, end = int(sequences.bounds[key]), int(sequences.bounds[key + 1])
    low, high = np.full(cuts.num_rows, begin), np.full(cuts.num_rows, end)
    for name in sequences.order:
        if name not in cuts.column_names:  # it is a column of the key: all rows here have one value
            continue
        column, wanted = sequences.rows.column(name), combined(cuts.column(name))
        first, stop = int(low.min()), int(high.max())
        both = sort_keys(pa.concat_arrays([column.slice(first, stop - first), wanted.cast(column.type)]))
        for i, word in enumerate(both[stop - first :]):
            span = both[low[i] - first : high[i] - first]
            begin, end = np.searchsorted(span, word, "left"), np.searchsorted(span, word, "right")
            low[i], high[i] = low[i] + begin, low[i] + end
    pos = combined(cuts.column(PLACE)).to_numpy()
    return np.array([low[i] + np.searchsorted(sequences.pos[low[i] : high[i]], pos[i]) for i in range(len(pos))])
