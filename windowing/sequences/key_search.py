"""Search for keys among other keys; for a few among very many sorted keys without ranking all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from .sequence import group_codes


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
