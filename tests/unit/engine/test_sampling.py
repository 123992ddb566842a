"""How many rows are sampled, and how even the slices are that they choose."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wincli.windowing.engine.range_cuts import Samples, choose_bounds
from wincli.windowing.engine.strategy import SAMPLED_SPLITS, rows_of_split


def largest(slices: int, sampled: int) -> float:
    """Return the largest slice as a multiple of the mean, of keys that are all as frequent."""
    rng = np.random.default_rng(1)
    rows = pa.table({"k": np.sort(rng.random(sampled))})
    cuts = choose_bounds(Samples(rows, np.ones(sampled)), ["k"], slices, False)
    assert cuts is not None
    assert cuts.keys is not None
    return float(np.diff([0.0, *cuts.keys.column(0).to_numpy(), 1.0]).max() * slices)


def test_thousands_of_slices_are_of_about_one_size() -> None:
    few, many = rows_of_split(4), rows_of_split(3200)
    assert (few, many) == (4000, 40_000)
    assert largest(3200, SAMPLED_SPLITS * few) > 1.8
    assert largest(3200, SAMPLED_SPLITS * many) < 1.35
