"""Panes: what every kind of window returns, and all that aggregates and the result see of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints
from .membership import Membership, take

CLOSED_BY: tuple[str, ...] = (
    "count", "delta", "gap", "time", "punct", "trigger", "watermark", "late", "batch", "expiry", "evicted", "end",
)  # fmt: skip
"""Close reasons (semantics section 1); `Panes.closed_by` holds indices into this."""

TIMING: tuple[str, ...] = ("on_time", "late")
"""What `Outputs.timing` holds indices into (semantics section 5)."""

AT_END = -1
"""Cause of a pane that only the end of the data brought out."""
BY_TICK = -2
"""Cause of a pane that the clock brought out, at the instant in ``at``."""


def reason(name: str) -> int:
    """Index of a close reason."""
    return CLOSED_BY.index(name)


@dataclass(frozen=True, slots=True)
class MarkOnly:
    """Marks that come out without a row. ``cause`` and ``at``: as in `Panes`."""

    cause: Ints
    at: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """What an event-time pane says of its outputs (section 5).

    ``timing``: int8 (P,), indices into `TIMING`. ``index``: int64 (P,), how often the pane had come out before.
    """

    timing: npt.NDArray[np.int8]
    index: Ints


@dataclass(frozen=True, slots=True)
class Panes:
    """P panes over the n rows of some sequences, key after key; in a key in the order that suits ``contents``.

    ``key``: int64 (P,), the key's index, ascending. ``number``: int64 (P,), window number: of each key 0, 1, 2, .. in
    the order in which its panes come out, which for most kinds is the order they stand in.
    ``contents``: the rows that each shows. ``cause``: int64 (P,), the row that brought the pane out; ``n + m`` for
    mark m; `AT_END`; `BY_TICK`. ``closed_by``: int8 (P,), indices into `CLOSED_BY`.
    ``start``, ``end``: interval bounds where the kind has some, else None: then the result takes the order values of
    the first and last row. ``at``: the instants of the panes caused `BY_TICK`, of any value elsewhere; None where no
    tick brings panes out. ``bare``: marks without a row, where the kind itself knows them. ``outputs``: of event-time
    panes.
    """

    key: Ints
    number: Ints
    membership: Membership
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    start: pa.Array | None = None
    end: pa.Array | None = None
    at: pa.Array | None = None
    marks_only: MarkOnly | None = None
    outputs: Outputs | None = None

    def __len__(self) -> int:
        return len(self.key)

    def take(self, picks: Ints) -> Panes:
        """Return the panes at the given places, which ascend. Their numbers stay."""
        start, end, at = (None if a is None else a.take(pa.array(picks)) for a in (self.start, self.end, self.at))
        outputs = self.outputs and Outputs(self.outputs.timing[picks], self.outputs.index[picks])
        return replace(
            self,
            key=self.key[picks],
            number=self.number[picks],
            membership=take(self.membership, picks),
            cause=self.cause[picks],
            closed_by=self.closed_by[picks],
            start=start,
            end=end,
            at=at,
            outputs=outputs,
        )
