"""``gap(attribute, amount)``: until a row that is more than an amount above the row before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ....columns.arrays import Ints, Mask, Measures
from ....language.spec import Gap
from ....rows.marks import Marks
from ....rows.panes import Panes
from ....rows.sequence import Sequences, have_risen, measures_and_amount, rises
from ....support.jit import kernel
from ...context import WindowContext
from ...delta.kernels import comparable
from ..boundaries import ended_by_next_row
from ..measured_policy import MeasuredPolicy
from ..rules.gather import Gathered


@dataclass(frozen=True, slots=True)
class GapPolicy(MeasuredPolicy):
    """``gap(attribute, amount)``.

    ``value``: as in the spec.
    """

    value: Gap

    why: ClassVar[str] = "gap"

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that end before a row that rises above the row before it."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return ended_by_next_row(sequences, gap_starts(sequences.bounds, values, amount), "gap")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows rise above the row before them."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        if rules.has_holes:
            rules.rises_from_last_row(rule, values, amount, sequences)
        else:
            rules.ends_before(rule, _gap_flags(sequences.bounds, values, amount))

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[Any, Any]:  # noqa: ARG002
        """Return the values of the two rows, each with the amount in their measure."""
        values, amount = measures_and_amount(segment, self.value.attribute, self.value.amount)
        first, last = comparable(values)[np.array([0, len(segment) - 1])]
        return (first, amount), (last, amount)

    def splits(self, before: Any, after: Any) -> bool:
        """Return whether the later value rises above the earlier one."""
        (old, _), (new, amount) = before, after
        return bool(have_risen(new, old, amount))


def gap_starts(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Return the rows where a ``gap`` window starts: more than ``amount`` above the row before; int64, ascending."""
    return np.flatnonzero(_gap_flags(bounds, values, amount))


@kernel
def _gap_flags(bounds: Ints, values: Measures, amount: Any) -> Mask:
    """Flag the rows that start a ``gap`` window."""
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            flags[i] = i == bounds[k] or rises(values[i], values[i - 1], amount)
    return flags
