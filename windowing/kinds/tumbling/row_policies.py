"""``count(n)``: windows of n rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, Mask, Measures, combined, truth
from ...columns.sort_keys import as_values, is_sortable
from ...errors import ConfigError
from ...language.conditions import Operand, operand_column
from ...language.row_policies import Change
from ...language.spec import Count, Delta, Gap, Punct
from ...rows.marks import Marks, epochs
from ...rows.panes import AT_END, Panes
from ...rows.sequence import Sequences, have_risen, measures_and_amount, one_batch, rises
from ...support.jit import kernel
from ..context import WindowContext
from ..contract import Explain
from ..delta import DeltaTransitions, Exit, comparable, delta_starts, evicted_by_delta, exit_through, transitions_of
from ..evictions import NO_PLACES, Events, mark_events
from ..rules.gather import Gathered, delta_rule
from ..segment_summary import RunThrough, SegmentSummary, WindowPosition, exit_of
from .policy import (
    ConditionPolicy,
    MeasuredPolicy,
    Passage,
    TumblingPolicy,
    change_starts,
    closed_by,
    ended_by_next_row,
    panes_at,
    ranges,
)


@dataclass(frozen=True, slots=True)
class CountPolicy(TumblingPolicy):
    """``count(n)``.

    ``value``: as in the spec.
    """

    value: Count

    why: ClassVar[str] = "count"

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        n, ahead = self.value.n, rows_ahead(context)
        key, number, lo, hi, _ = panes_at(sequences, count_starts(sequences.bounds, n, ahead))
        size = hi - lo
        size[:1] += ahead
        return Panes(key, number, ranges(lo, hi), *closed_by(size == n, hi - 1, "count"))

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:  # noqa: ARG002
        rules.counts.append((rule, self.value.n))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        rows = len(sequences)
        return np.arange(rows) + min(self.value.n, rows + 1)

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int:  # noqa: ARG002
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
    flags = np.zeros(bounds[-1], np.bool_)
    for k in range(len(bounds) - 1):
        if bounds[k] < bounds[k + 1]:
            flags[bounds[k]] = True
        for i in range(bounds[k] + n - ahead, bounds[k + 1], n):
            flags[i] = True
    return flags


# ``delta(attribute, amount)``: until a row that is more than an amount above the first row of the window.


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
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return ended_by_next_row(sequences, delta_starts(sequences.bounds, values, amount), "delta")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        rules.deltas.append(delta_rule(rule, values, amount))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return the row that would evict each from a sliding window: it ends a window that begins there."""
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return evicted_by_delta(sequences.bounds, comparable(values), amount)

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> None:
        """Return nothing: transitions cost more than to run through the one that is taken."""

    def summarise(self, segment: Sequences, marks: Marks, context: WindowContext) -> DeltaTransitions:  # noqa: ARG002
        return transitions_of(segment, self.value.attribute, self.value.amount)

    def pass_through(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        run_through: RunThrough,
        context: WindowContext,  # noqa: ARG002
    ) -> Passage:
        assert segment.window is None or isinstance(segment.window, DeltaTransitions)
        found = exit_of(segment.window, position.value, run_through, index)
        return Passage(found, value=found.value)

    def run_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:  # noqa: ARG002
        return exit_through(segment, self.value.attribute, self.value.amount, value)


# ``gap(attribute, amount)``: until a row that is more than an amount above the row before it.


@dataclass(frozen=True, slots=True)
class GapPolicy(MeasuredPolicy):
    """``gap(attribute, amount)``.

    ``value``: as in the spec.
    """

    value: Gap

    why: ClassVar[str] = "gap"

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return ended_by_next_row(sequences, gap_starts(sequences.bounds, values, amount), "gap")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        if rules.has_holes:
            rules.rises_from_last_row(rule, values, amount, sequences)
        else:
            rules.ends_before(rule, _gap_flags(sequences.bounds, values, amount))

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[Any, Any]:  # noqa: ARG002
        values, amount = measures_and_amount(segment, self.value.attribute, self.value.amount)
        first, last = comparable(values)[np.array([0, len(segment) - 1])]
        return (first, amount), (last, amount)

    def splits(self, before: Any, after: Any) -> bool:
        (old, _), (new, amount) = before, after
        return bool(have_risen(new, old, amount))


def gap_starts(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Return the rows where a ``gap`` window starts: more than ``amount`` above the row before; int64, ascending."""
    return np.flatnonzero(_gap_flags(bounds, values, amount))


@kernel
def _gap_flags(bounds: Ints, values: Measures, amount: Any) -> Mask:
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            flags[i] = i == bounds[k] or rises(values[i], values[i - 1], amount)
    return flags


# ``change(column, ..)``: until a row whose value is distinct from that of the key's row before it.


@dataclass(frozen=True, slots=True)
class ChangePolicy(TumblingPolicy):
    """``change(column, ..)``.

    ``value``: as in the spec.
    """

    value: Change

    why: ClassVar[str] = "change"
    ends_before: ClassVar[bool] = True

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(map(operand_column, self.value.columns))

    @property
    def required(self) -> tuple[str, ...]:
        """None: null is a value like others, and so is NaN."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: ARG002
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        flags = self._changes(sequences)
        begins = sequences.bounds[:-1]
        flags[begins[begins < sequences.bounds[1:]]] = True
        return ended_by_next_row(sequences, np.flatnonzero(flags), "change")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rules.ends_before(rule, self._changes(sequences))

    def edge_labels(
        self,
        segment: Sequences,
        marks: Marks,  # noqa: ARG002
        panes: Panes,  # noqa: ARG002
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        ends = segment.rows.select(list(self.attributes)).take(pa.array([0, len(segment) - 1]))
        return ends.slice(0, 1), ends.slice(1, 1)

    def splits(self, before: pa.RecordBatch, after: pa.RecordBatch) -> bool:
        return bool(self._distinct_from_row_before(one_batch(pa.Table.from_batches([before, after])))[0])

    def _changes(self, sequences: Sequences) -> Mask:
        """Return which rows are distinct from the row before them, of whatever key, bool (n,)."""
        flags = np.zeros(len(sequences), np.bool_)
        flags[1:] = self._distinct_from_row_before(sequences.rows)
        return flags

    def _distinct_from_row_before(self, rows: pa.RecordBatch) -> Mask:
        columns = [_distinct(combined(rows.column(name))) for name in self.attributes]
        return np.logical_or.reduce(columns) if rows.num_rows else np.empty(0, np.bool_)


def _distinct(column: pa.Array) -> Mask:
    """Return where a column's value is distinct from the one before: null equals null, NaN NaN, and 0.0 equals -0.0."""
    if pa.types.is_null(column.type) or len(column) < 2:
        return np.zeros(max(len(column) - 1, 0), np.bool_)
    column = as_values(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    new, old = column.slice(1), column.slice(0, len(column) - 1)
    distinct = pc.not_equal(new, old)
    if column.null_count:
        distinct = pc.if_else(distinct.is_valid(), distinct, pc.xor(new.is_null(), old.is_null()))
    if pa.types.is_floating(column.type):
        both = pc.and_(pc.is_nan(new), pc.is_nan(old)).fill_null(False)
        distinct = pc.and_(distinct, pc.invert(both))
    return distinct.to_numpy(zero_copy_only=False)


# ``punct()``: until a window mark; ``punct(E)``: until a row for which a condition is true.


def punct_policy(value: Punct) -> TumblingPolicy:
    """Return the policy of ``punct()`` or of ``punct(E)``."""
    return MarkPolicy() if value.column is None else PunctPolicy(value.column)


@dataclass(frozen=True, slots=True)
class MarkPolicy(TumblingPolicy):
    """``punct()``."""

    why: ClassVar[str] = "punct"

    @property
    def takes_marks(self) -> bool:
        return True

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        epoch = epochs(sequences, marks)
        key, number, lo, hi, _ = panes_at(sequences, change_starts(sequences.bounds, epoch))
        ended_by = epoch[lo]
        return Panes(key, number, ranges(lo, hi), *closed_by(ended_by < len(marks), len(sequences) + ended_by, "punct"))

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return nothing: marks end windows."""
        return NO_PLACES

    def events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events:  # noqa: ARG002
        return mark_events(sequences, marks)

    def epochs_at_edges(self, segment: Sequences, marks: Marks) -> tuple[int, int]:
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
        return (self.condition,)

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        ends = truth(sequences.rows, operand_column(self.condition))
        starts = change_starts(sequences.bounds, np.cumsum(ends) - ends)
        key, number, lo, hi, _ = panes_at(sequences, starts)
        return Panes(key, number, ranges(lo, hi), *closed_by(ends[hi - 1], hi - 1, "punct"))

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rules.ends_with(rule, truth(sequences.rows, operand_column(self.condition)))

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[int, int]:  # noqa: ARG002
        """Return equal labels: only the row before ends a window."""
        return 0, 0

    def last_row_closes(self, panes: Panes) -> bool:
        return bool(panes.cause[-1] != AT_END)
