"""Numbers that count time since 1970: which unit they have, by how large they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

import numpy as np

EpochUnit = Literal["s", "ms", "us", "ns"]
DIGITS: Final[dict[EpochUnit, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""The units, each with the digits that it has below a second."""
ENOUGH: Final = 0.5
"""The share of values that must be of one kind to say what a column is."""

_FIRST, _LAST = 631_152_000, 4_102_444_800  # seconds since 1970 that count as an instant: from 1990 to 2099


def epoch_unit(numbers: Collection[float], among: int) -> EpochUnit | None:
    """Return the unit in which numbers are instants from 1990 to 2099; None where too few of them are in any.

    ``among``: how many values there are, with those that are no numbers.
    """
    values = np.fromiter(numbers, np.float64, len(numbers))
    for unit, digits in DIGITS.items():
        near = np.count_nonzero((values / 10.0**digits >= _FIRST) & (values / 10.0**digits < _LAST))
        if near and near >= ENOUGH * among:
            return unit
    return None
