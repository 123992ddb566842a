"""The panes of one key, computed once more by the plan of the job, and one of them with its rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.columns.arrays import ClockValue, Ints, Mask, combined
from ....windowing.emit.result_tables import emitted_panes, pane_columns
from ....windowing.engine.map_side import MappedChunk, no_sequences, read_assessed, sequences_of
from ....windowing.engine.slice_scan import run_global_pass, signals_of
from ....windowing.engine.task import TaskContext, pack, row_width, with_projection
from ....windowing.expressions.pruning import bounds_of
from ....windowing.kinds.context import Signals
from ....windowing.kinds.row_values import RowValues
from ....windowing.local_executor import LocalExecutor
from ....windowing.planning.plan import Plan, panes_only
from ....windowing.ports import ChunkAccount, ColumnRange, Source, Split
from ....windowing.rows.marks import Marks
from ....windowing.rows.membership import gathered
from ....windowing.rows.merge import merge
from ....windowing.rows.panes import CLOSED_BY, Panes, reason
from ....windowing.rows.sequence import Sequences, take_rows
from ....windowing.scan.lag_rows import with_lag_columns
from ....windowing.scan.row_validation import split_by_reason
from ....windowing.scan.scan import latest
from ...console.table import texts_of

# The rows of one key, read from the files and row groups that may hold them, as the run would have read them.


_CHUNK = 1 << 20
"""Bytes that are read at once, or one row group that is larger: only rows of one key are kept of them."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of values of the first order column, or of arrival positions, both inclusive; None: open."""

    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A `windowing.ports.Condition`: rows that have the values of a key, and an order value in a range.

    ``key``: value by column.
    ``order``: the first order column; None: rows are in arrival order.
    ``span``: the range.
    """

    key: Mapping[str, pa.Scalar]
    order: str | None
    span: Span
    schema: pa.Schema

    @property
    def columns(self) -> Sequence[str]:
        own = (*self.key, *([self.order] if self.order is not None else []))
        return [name for name in dict.fromkeys(own) if name in self.schema.names]

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        for name in self.columns:
            if name not in ranges:
                continue
            found, value = ranges[name], self.key.get(name)
            low, high = (self.span.low, self.span.high) if value is None else (value, value)
            bounds = bounds_of(found.low, found.high, found.nulls, found.rows, self.schema.field(name).type)
            if not bounds.may_be_value:
                return True
            # Of floats only lower bounds count: NaN is above.
            is_above = high is not None and bounds.low is not None and pc.greater(bounds.low, high).as_py()
            is_below = low is not None and bounds.high is not None and pc.less(bounds.high, low).as_py()
            if is_above or is_below:
                return True
        return False


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of a key as its windows see them.

    ``plan``: the plan of their panes.
    ``sequences``: the rows, at most one sequence.
    ``signals``: marks, watermark advances, evictions.
    ``clock``: the largest clock of all rows that were read, in measures; None: the window uses no clock.
    ``rejected``: reason to how many rows of the key are rejected.
    """

    plan: Plan
    sequences: Sequences
    signals: Signals
    clock: ClockValue | None
    rejected: Mapping[str, int]


def read_key(plan: Plan, source: Source, marks: str, key: Mapping[str, pa.Scalar], span: Span) -> KeyRows:
    """Read the rows of a key that may have an order value in ``span``, in their total order.

    ``plan``: as `only_panes` returns it. ``marks``: where marks come from, as `StagePlan.marks`. Parts of files are
    left out where no other key and no row before matters. Memory grows with the rows of the key.
    """
    nowhere: Any = None  # nothing is written
    work = with_projection(TaskContext(plan, source, nowhere, marks))
    parts = parts_of_key(plan, source, key, span)
    chunks = pack(parts, row_width(work.source.schema, parts, work.columns), _CHUNK)
    work, assigned = run_global_pass(work, chunks, LocalExecutor())
    rejected: Counter[str] = Counter()
    mapped = []
    for chunk in assigned:  # of its rows those of the key are kept
        read, level = read_assessed(work, chunk)
        mine = np.flatnonzero(is_of_key(read.rows, key)) if key else np.arange(len(read.pos))
        reasons = None if read.reasons is None else read.reasons[mine]
        rejected.update(each for each in (() if reasons is None else reasons) if each is not None)
        own = sequences_of(work, take_rows(read.rows, mine), read.pos[mine], reasons)
        marks_of = read.marks.take(np.arange(len(read.marks)))  # a copy: a slice of no rows keeps all rows in memory
        kept = read.rows if read.reasons is None else read.rows.take(pa.array(split_by_reason(read.reasons)[0]))
        mapped.append(MappedChunk(own, marks_of, level, latest(plan, kept), ChunkAccount()))
    sequences = merge([no_sequences(work), *(each.sequences for each in mapped)])
    signals = signals_of(work, mapped)
    ordered = with_lag_columns(plan, sequences)
    rejected.update(ordered.rejects.by_reason)
    clock = max((each.clock for each in mapped if each.clock is not None), default=None)
    return KeyRows(plan, ordered.sequences, signals, clock, rejected)


def only_panes(plan: Plan) -> Plan:
    """Return the plan of the panes of a window: their rows, and the columns that describe them."""
    found = panes_only(plan)
    if plan.options.operator is not None or plan.options.emit not in ("entered", "left"):
        return found
    return replace(found, options=replace(found.options, emit=plan.options.emit))


def parts_of_key(plan: Plan, source: Source, key: Mapping[str, pa.Scalar], span: Span) -> list[Split]:
    """Return the smallest parts of files that may hold rows that matter for a key, in order."""
    if plan.takes_marks or (plan.kind.needs.watermark and not plan.order.columns):
        return [part for split in source.splits for part in source.parts_of(split)]
    kind = plan.kind
    # Rows of other keys decide when windows of a key end: by a watermark, evictions, or the one clock.
    is_of_all = kind.needs.watermark or kind.needs.eviction is not None or (kind.needs.clock and span == Span())
    own = {} if is_of_all else key
    order = next(iter(plan.sort), None)
    condition = KeyCondition(own, order, span, source.schema)
    parts = [part for split in source.splits for part in parts_with(source, split, condition)]
    if order is not None:
        return parts
    low, high = (None if each is None else each.as_py() for each in (span.low, span.high))
    parts = [part for part in parts if high is None or part.base <= high]
    return [part for part in parts if low is None or part.base + part.rows > low]


def parts_with(source: Source, split: Split, condition: KeyCondition) -> Iterator[Split]:
    """Yield the smallest parts of a split that may have rows for which a condition is true."""
    found = source.parts_with(split, condition) if condition.columns else [split]
    for part in found:
        yield from source.parts_of(part)


def is_of_key(rows: pa.RecordBatch | pa.Table, key: Mapping[str, pa.Scalar]) -> Mask:
    """Return which rows have the values of a key, bool (n,). The two float zeros are one value, and so is NaN."""
    mask = np.ones(rows.num_rows, np.bool_)
    for name, value in key.items():
        column = combined(rows.column(name))
        if pa.types.is_dictionary(column.type):
            found = pc.equal(column.dictionary, value.cast(column.type.value_type)).take(column.indices)
        else:
            found = pc.equal(column, value.cast(column.type))
        mask &= found.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


# Values in words.


def scalar_text(value: Any) -> str:
    """Return a scalar as text."""
    if pa.types.is_dictionary(value.type):
        value = value.value
    is_instant = pa.types.is_timestamp(value.type)  # its text is not that of a value of Python
    return str(texts_of(pa.repeat(value, 1) if is_instant else pa.array([value.as_py()], value.type))[0])


BEFORE = frozenset({"delta", "gap", "change", "when", "while"})
"""Close reasons of windows that end before a row, which may open the next."""
AFTER = frozenset({"count", "until", "reaches", "punct"})
"""Close reasons of windows that end with a row, or at a mark behind it."""
CLOCK = frozenset({"time", "calendar", "cron"})
"""Close reasons of windows that end at an instant of the clock."""


@dataclass(frozen=True, slots=True)
class KeyPanes:
    """The panes of a key.

    ``plan``: the plan of its panes.
    ``sequences``: the rows of the key, in order.
    ``panes``: its panes in order, also those that only the end of the data brings out.
    ``marks``: what causes of panes count after the rows.
    ``head``: for each pane the columns that describe it in the result.
    """

    plan: Plan
    sequences: Sequences
    panes: Panes
    marks: Marks
    head: pa.Table

    def rows_of(self, at: int) -> Ints:
        """Return the rows of pane ``at`` among those of the key, int64, in the order of the pane."""
        return gathered(self.panes.membership, at, at + 1)[0]

    def closed_by(self, at: int) -> str:
        """Return the close reason of pane ``at``."""
        return CLOSED_BY[self.panes.closed_by[at]]

    @property
    def came_out(self) -> Ints:
        """Return the panes that came out, int64: all but those of the end of the data, where that does not flush."""
        is_end = self.panes.closed_by == reason("end")
        shown = np.ones(len(self.panes), np.bool_) if self.plan.options.at_end == "flush" else ~is_end
        return np.flatnonzero(shown)


@dataclass(frozen=True, slots=True)
class KeyPane:
    """One of the panes of a key, as `pane_at` makes it.

    ``panes``: all panes of the key.
    ``at``: which of these it is.
    ``rows``: its rows among those of the key, int64, in the order of the pane.
    ``before``: why the window before it was closed; None: there is none, or windows do not follow one another.
    """

    panes: KeyPanes
    at: int
    rows: Ints
    before: str | None

    @property
    def values(self) -> RowValues:
        return RowValues(self.panes.sequences, texts_of)

    @property
    def closed_by(self) -> str:
        return self.panes.closed_by(self.at)

    @property
    def cause(self) -> int:
        return int(self.panes.panes.cause[self.at])

    @property
    def cause_row(self) -> int | None:
        """The row of the key that brought it out; None: no such row did."""
        return self.cause if 0 <= self.cause < len(self.panes.sequences) else None

    @property
    def next_row(self) -> int | None:
        """The row of the key behind its last row; None: there is none."""
        after = int(self.rows[-1]) + 1 if len(self.rows) else len(self.panes.sequences)
        return after if after < len(self.panes.sequences) else None

    def text(self, name: str) -> str:
        """Return a column of the result as text; ``-`` where it has no such column."""
        head = self.panes.head
        return scalar_text(combined(head.column(name))[self.at]) if name in head.column_names else "-"


def pane_at(panes: KeyPanes, at: int, before: str | None = None) -> KeyPane:
    """Return pane ``at`` with its rows. ``before``: as of `KeyPane`."""
    return KeyPane(panes, at, panes.rows_of(at), before)


def panes_of(rows: KeyRows, clock: ClockValue | None = None) -> KeyPanes:
    """Compute the panes of a key. ``clock``: the clock at the end; None: that of all rows that were read."""
    plan, sequences = rows.plan, rows.sequences
    context = replace(plan.context, clock=rows.clock if clock is None else clock)
    panes, marks = plan.kind.panes(sequences, rows.signals, context)
    panes = emitted_panes(plan, sequences, panes)
    return KeyPanes(plan, sequences, panes, marks, pane_columns(plan, sequences, marks, panes))


def matching(head: pa.Table, pane: Mapping[str, pa.Scalar], but: frozenset[str] = frozenset()) -> Ints:
    """Return the panes that are as a result describes one, int64: equal in all columns of both, except ``but``."""
    mask = np.ones(head.num_rows, np.bool_)
    for name in head.column_names:
        if name not in pane or name in but:
            continue
        column, value = combined(head.column(name)), pane[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not value.is_valid:
            found = column.is_null()
        elif pa.types.is_floating(value.type) and math.isnan(value.as_py()):
            found = pc.is_nan(column)
        else:  # the two float zeros are one
            found = pc.equal(column.cast(value.type), value)
        mask &= np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))
    return np.flatnonzero(mask)
