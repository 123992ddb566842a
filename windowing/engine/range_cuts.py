"""Slice bounds: cuts of the total order between keys, and inside keys that are heavier than a slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..columns.sort_keys import sort_keys
from ..rows.sequence import Sequences, group_codes, lower_bounds

PLACE = "__place"
"""Name of the column with arrival positions, in samples and slice bounds."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A sample of the rows.

    ``rows``: their keys and, where keys may be cut, their order values and arrival positions.
    ``weights``: float64 (rows,), how much each row counts.
    """

    rows: pa.Table = field(default_factory=lambda: pa.table({}))
    weights: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class SliceBounds:
    """C cuts of the total order, ascending, each just before some row. Slices lie between them.

    ``keys``: C rows, the key of the first row after each cut; None where there is no key.
    ``places``: C rows, the order values and the arrival position of that row.
    ``inside``: bool (C,), whether the cut lies just before that row; else it lies before the first row of its key.
    """

    keys: pa.Table | None
    places: pa.Table
    inside: Mask

    def __len__(self) -> int:
        return len(self.inside)


def choose_bounds(samples: Samples, key: Sequence[str], count: int, may_cut_keys: bool) -> SliceBounds | None:
    """Choose up to ``count - 1`` cuts that leave slices of about equal weight; None where there is nothing to cut.

    Keys no heavier than a slice stay whole. ``may_cut_keys``: whether heavier keys are cut; ``samples`` must then have
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
    # A key that is cut must be summarised and scanned in a second round of tasks, so keys that fit a slice stay whole.
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
    """Return the number of slices."""
    return 1 if cuts is None else len(cuts) + 1


def slice_offsets(sequences: Sequences, cuts: SliceBounds | None) -> Ints:
    """Return the offsets of the slices among the rows: int64 (slices + 1,)."""
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
    """Whether key ``index`` of ``keys`` is the key of a cut."""
    if keys is None or cuts.keys is None:
        return True
    return bool(_same_keys(keys, np.array([index]), cuts.keys.slice(cut, 1))[0])


def slice_bounds(keys: pa.Table, cuts: pa.Table) -> Ints:
    """Return the offsets of the slices among ascending distinct ``keys``: int64 (slices + 1,).

    ``cuts``: the first key of each slice but the first, ascending.
    """
    inner = lower_bounds(keys, cuts)
    return np.concatenate([[0], inner, [keys.num_rows]]).astype(np.int64)


def _same_keys(keys: pa.Table, picks: Ints, others: pa.Table) -> Mask:
    """Compare the key at each place with another, element by element; False for a place after all keys."""
    there = picks < keys.num_rows
    own = keys.take(pa.array(np.minimum(picks, keys.num_rows - 1))) if keys.num_rows else keys
    if not keys.num_rows:
        return there
    pairs = zip(own.columns, others.columns, strict=True)
    codes, _ = group_codes([pa.concat_arrays([combined(a), combined(b)]) for a, b in pairs])
    return there & (codes[: len(picks)] == codes[len(picks) :])


def _offsets_in(sequences: Sequences, key: int, cuts: pa.Table) -> Ints:
    """Return the offset of each cut in one sequence, the first row that does not sort before it: int64 (cuts,)."""
    begin, end = int(sequences.bounds[key]), int(sequences.bounds[key + 1])
    low, high = np.full(cuts.num_rows, begin), np.full(cuts.num_rows, end)
    # Invariant: in `[low[i], high[i])` the columns compared so far equal those of cut i, so the next one ascends there.
    for name in sequences.order:
        if name not in cuts.column_names:  # a column of the key: all rows of this sequence have one value
            continue
        column, wanted = sequences.rows.column(name), combined(cuts.column(name))
        first, stop = int(low.min()), int(high.max())
        both_keys = sort_keys(pa.concat_arrays([column.slice(first, stop - first), wanted.cast(column.type)]))
        for i, key_of_cut in enumerate(both_keys[stop - first :]):
            span = both_keys[low[i] - first : high[i] - first]
            begin, end = np.searchsorted(span, key_of_cut, "left"), np.searchsorted(span, key_of_cut, "right")
            low[i], high[i] = low[i] + begin, low[i] + end
    pos = combined(cuts.column(PLACE)).to_numpy()
    return np.array([low[i] + np.searchsorted(sequences.pos[low[i] : high[i]], pos[i]) for i in range(len(pos))])
