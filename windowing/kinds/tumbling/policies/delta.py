"""``delta(attribute, amount)``: until a row that is more than an amount above the first row of the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ....columns.arrays import Ints
from ....language.spec import Delta
from ....rows.marks import Marks
from ....rows.panes import Panes
from ....rows.sequence import Sequences, measures_and_amount
from ...context import WindowContext
from ...delta.chains import DeltaTransitions, Exit, exit_through, transitions_of
from ...delta.kernels import comparable, evicted_by_delta
from ...delta.starts import delta_starts
from ...segment_summary import RunThrough, SegmentSummary, WindowPosition, exit_of
from ..boundaries import ended_by_next_row
from ..measured_policy import MeasuredPolicy
from ..policy import Passage
from ..rules.gather import Gathered, delta_rule


@dataclass(frozen=True, slots=True)
class DeltaPolicy(MeasuredPolicy):
    """``delta(attribute, amount)``.

    ``value``: as in the spec.
    """

    value: Delta

    why: ClassVar[str] = "delta"
    first_row_decides: ClassVar[bool] = True
    is_known_by_sample: ClassVar[bool] = True

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that end before a row that rises above their first row."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return ended_by_next_row(sequences, delta_starts(sequences.bounds, values, amount), "delta")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say what the rows are compared by, and the amount."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        rules.deltas.append(delta_rule(rule, values, amount))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return the row that would evict each from a sliding window: it ends a window that begins there."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return evicted_by_delta(sequences.bounds, comparable(values), amount)

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> None:
        """Return nothing: transitions cost more than to run through the one that is taken."""

    def summarise(self, segment: Sequences, marks: Marks, context: WindowContext) -> DeltaTransitions:  # noqa: ARG002
        """Return the transitions of a segment."""
        return transitions_of(segment, self.value.attribute, self.value.amount)

    def pass_through(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        run_through: RunThrough,
        context: WindowContext,  # noqa: ARG002
    ) -> Passage:
        """Return the windows that start in a segment that is entered with a start value."""
        assert segment.window is None or isinstance(segment.window, DeltaTransitions)
        found = exit_of(segment.window, position.value, run_through, index)
        return Passage(found, value=found.value)

    def run_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:  # noqa: ARG002
        """Return the exit of a segment for a start value."""
        return exit_through(segment, self.value.attribute, self.value.amount, value)
