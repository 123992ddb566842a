"""Panes: what every kind of window returns, and all that aggregates and the result see of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowing.columns import Ints

CLOSED_BY: tuple[str, ...] = (
    "count", "delta", "time", "punct", "trigger", "watermark", "late", "batch", "expiry", "evicted", "end",
)  # fmt: skip
"""Close reasons (semantics section 1); `Panes.closed_by` holds indices into this."""

AT_END = -1
"""Cause of a pane that only the end of the data brought out."""
BY_TICK = -2
"""Cause of a pane that the clock brought out: the instant is the pane's upper bound."""


def reason(name: str) -> int:
    """Index of a close reason."""
    return CLOSED_BY.index(name)


@dataclass(frozen=True, slots=True)
class Panes:
    """P panes over the n rows of some sequences, by key, then window number.

    ``key``: int64 (P,), the key's index. ``number``: int64 (P,), window number, per key from 0.
    ``lo``, ``hi``: int64 (P,), the pane's rows are ``[lo, hi)``; equal for an empty one.
    ``cause``: int64 (P,), the row that brought the pane out; ``n + m`` for mark m; `AT_END`; `BY_TICK`.
    ``closed_by``: int8 (P,), indices into `CLOSED_BY`.
    ``start``, ``end``: half-open interval bounds where the kind has a grid, else None: then the result takes the
    order values of the first and last row.
    """

    key: Ints
    number: Ints
    lo: Ints
    hi: Ints
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    start: pa.Array | None = None
    end: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, picks: Ints) -> Panes:
        """Return the panes at the given places, in that order."""
        start, end = (None if b is None else b.take(pa.array(picks)) for b in (self.start, self.end))
        key, number, lo, hi, cause = (a[picks] for a in (self.key, self.number, self.lo, self.hi, self.cause))
        return Panes(key, number, lo, hi, cause, self.closed_by[picks], start, end)
