"""``punct()``: until a window mark; ``punct(E)``: until a row for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....columns.arrays import Ints, truth
from ....language.conditions import Operand, operand_column
from ....language.spec import Punct
from ....rows.marks import Marks, epochs
from ....rows.panes import AT_END, Panes
from ....rows.sequence import Sequences
from ...context import WindowContext
from ...eviction.events import Events, mark_events
from ...eviction.evictions import NO_PLACES
from ..boundaries import change_starts, closed_by, panes_at, ranges
from ..condition_policy import ConditionPolicy
from ..policy import TumblingPolicy
from ..rules.gather import Gathered


def punct_policy(value: Punct) -> TumblingPolicy:
    """Return the policy of ``punct()`` or of ``punct(E)``."""
    return MarkPolicy() if value.column is None else PunctPolicy(value.column)


@dataclass(frozen=True, slots=True)
class MarkPolicy(TumblingPolicy):
    """``punct()``."""

    why: ClassVar[str] = "punct"

    @property
    def takes_marks(self) -> bool:
        """Window marks end windows."""
        return True

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that window marks end."""
        epoch = epochs(sequences, marks)
        key, number, lo, hi, _ = panes_at(sequences, change_starts(sequences.bounds, epoch))
        ended_by = epoch[lo]
        return Panes(key, number, ranges(lo, hi), *closed_by(ended_by < len(marks), len(sequences) + ended_by, "punct"))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return nothing: marks end windows."""
        return NO_PLACES

    def events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events:  # noqa: ARG002
        """Return the marks."""
        return mark_events(sequences, marks)

    def epochs_at_edges(self, segment: Sequences, marks: Marks) -> tuple[int, int]:
        """Return how many marks come before the first row of a segment, and before its last row."""
        first, last = epochs(segment, marks)[[0, -1]].tolist()
        return first, last

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[int, int]:  # noqa: ARG002
        """Return the same: two rows are in one window if no mark lies between them."""
        return self.epochs_at_edges(segment, marks)


@dataclass(frozen=True, slots=True)
class PunctPolicy(ConditionPolicy):
    """``punct(E)``.

    ``condition``: a row for which it is true ends the window that contains it.
    """

    condition: Operand

    why: ClassVar[str] = "punct"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The condition."""
        return (self.condition,)

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that a row for which the condition is true ends."""
        ends = truth(sequences.rows, operand_column(self.condition))
        starts = change_starts(sequences.bounds, np.cumsum(ends) - ends)
        key, number, lo, hi, _ = panes_at(sequences, starts)
        return Panes(key, number, ranges(lo, hi), *closed_by(ends[hi - 1], hi - 1, "punct"))

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows end the window that contains them."""
        rules.ends_with(rule, truth(sequences.rows, operand_column(self.condition)))

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[int, int]:  # noqa: ARG002
        """Return equal labels: only the row before ends a window."""
        return 0, 0

    def last_row_closes(self, panes: Panes) -> bool:
        """Return whether the condition is true for the last row."""
        return bool(panes.cause[-1] != AT_END)
