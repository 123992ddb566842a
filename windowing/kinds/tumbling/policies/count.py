"""``count(n)``: windows of n rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....columns.arrays import Ints, Mask
from ....language.spec import Count
from ....rows.marks import Marks
from ....rows.panes import Panes
from ....rows.sequence import Sequences
from ....support.jit import kernel
from ...context import WindowContext
from ...delta.chains import Exit
from ...segment_summary import RunThrough, SegmentSummary, WindowPosition
from ..boundaries import closed_by, panes_at, ranges
from ..policy import Passage, TumblingPolicy
from ..rules.gather import Gathered


@dataclass(frozen=True, slots=True)
class CountPolicy(TumblingPolicy):
    """``count(n)``.

    ``value``: as in the spec.
    """

    value: Count

    why: ClassVar[str] = "count"

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that their n-th row ends."""
        n, ahead = self.value.n, rows_ahead(context)
        key, number, lo, hi, _ = panes_at(sequences, count_starts(sequences.bounds, n, ahead))
        size = hi - lo
        size[:1] += ahead
        return Panes(key, number, ranges(lo, hi), *closed_by(size == n, hi - 1, "count"))

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:  # noqa: ARG002
        """Say how many rows a window holds."""
        rules.counts.append((rule, self.value.n))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return the n-th row after each."""
        rows = len(sequences)
        return np.arange(rows) + min(self.value.n, rows + 1)

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int:  # noqa: ARG002
        """Return how many rows each window has."""
        return self.value.n

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> None:
        """Return nothing: the number of rows says where windows start."""

    def pass_through(
        self,
        position: WindowPosition,
        index: int,  # noqa: ARG002
        segment: SegmentSummary,
        run_through: RunThrough,  # noqa: ARG002
        context: WindowContext,  # noqa: ARG002
    ) -> Passage:
        """Return the windows that start among the segment's rows, counted from the first row of the key."""
        n, rows = self.value.n, position.rows + segment.rows
        starts = -(-rows // n) - position.starts
        last = (position.starts + starts - 1) * n - position.rows if starts else -1
        return Passage(Exit(starts, last, None), rows % n == 0)


def rows_ahead(context: WindowContext) -> int:
    """Return how many rows the first row of a scan stands for, besides itself."""
    continued = None if context.restored is None else context.restored.continued
    return 0 if continued is None else continued.rows - 1


def count_starts(bounds: Ints, n: int, ahead: int) -> Ints:
    """Return the rows where a window of ``n`` rows starts: int64, ascending. ``bounds``: int64 (K+1,).

    ``ahead``: how many rows each first row stands for, besides itself: fewer than ``n``.
    """
    return np.flatnonzero(_count_flags(bounds, n, ahead))


@kernel
def _count_flags(bounds: Ints, n: int, ahead: int) -> Mask:
    """Flag every n-th row of each key, from its first on."""
    flags = np.zeros(bounds[-1], np.bool_)
    for k in range(len(bounds) - 1):
        if bounds[k] < bounds[k + 1]:
            flags[bounds[k]] = True
        for i in range(bounds[k] + n - ahead, bounds[k + 1], n):
            flags[i] = True
    return flags
