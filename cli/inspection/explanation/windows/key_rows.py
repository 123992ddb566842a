"""The rows of one key, read from the files and row groups that may hold them, as the run would have read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.columns.arrays import ClockValue, Mask, combined
from .....windowing.engine.exchange.global_pass import run_global_pass
from .....windowing.engine.exchange.map_side import MappedChunk, read_assessed
from .....windowing.engine.exchange.read_chunk import ChunkRows, no_sequences, sequences_of
from .....windowing.engine.scan.slice_scan import signals_of
from .....windowing.engine.tasks.sizing import Chunk, pack, row_width
from .....windowing.engine.tasks.task import TaskContext, with_projection
from .....windowing.expressions.pruning import bounds_of
from .....windowing.kinds.signals import Signals
from .....windowing.local_executor import LocalExecutor
from .....windowing.planning.plan import Plan, panes_only
from .....windowing.ports import ChunkAccount, ColumnRange, Source, Split
from .....windowing.scan.lag_rows import with_lag_columns
from .....windowing.scan.row_validation import split_by_reason
from .....windowing.scan.scan import latest
from .....windowing.sequences.merge import merge
from .....windowing.sequences.sequence import Sequences, take_rows

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
        """The columns that it depends on."""
        own = (*self.key, *([self.order] if self.order is not None else []))
        return [name for name in dict.fromkeys(own) if name in self.schema.names]

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """Return whether no row with such values can be one."""
        return any(
            _is_apart(ranges[name], self.schema.field(name).type, *self._wanted(name))
            for name in self.columns
            if name in ranges
        )

    def _wanted(self, name: str) -> tuple[Any, Any]:
        if name in self.key:
            return self.key[name], self.key[name]
        return self.span.low, self.span.high


def _is_apart(found: ColumnRange, kind: pa.DataType, low: Any, high: Any) -> bool:
    """Whether all values of a part of a file lie outside a range. Of floats only lower bounds count: NaN is above."""
    bounds = bounds_of(found.low, found.high, found.nulls, found.rows, kind)
    if not bounds.may_be_value:
        return True
    is_above = high is not None and bounds.low is not None and pc.greater(bounds.low, high).as_py()
    is_below = low is not None and bounds.high is not None and pc.less(bounds.high, low).as_py()
    return bool(is_above or is_below)


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
    chunks = _chunks(work, parts_of_key(plan, source, key, span))
    work, assigned = run_global_pass(work, chunks, LocalExecutor())
    rejected: Counter[str] = Counter()
    mapped = [_of_key(work, chunk, key, rejected) for chunk in assigned]
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
    if plan.takes_marks or (plan.kind.has_watermark and not plan.order.columns):
        return [part for split in source.splits for part in source.parts_of(split)]
    own = {} if _has_clock_of_all(plan, span) else key
    order = next(iter(plan.sort), None)
    condition = KeyCondition(own, order, span, source.schema)
    parts = [part for split in source.splits for part in parts_with(source, split, condition)]
    return parts if order is not None else [part for part in parts if _is_within(part, span)]


def _has_clock_of_all(plan: Plan, span: Span) -> bool:
    """Whether rows of other keys decide when windows of a key end: by a watermark, evictions, or the one clock."""
    kind = plan.kind
    return kind.has_watermark or kind.eviction is not None or (kind.needs_clock and span == Span())


def parts_with(source: Source, split: Split, condition: KeyCondition) -> Iterator[Split]:
    """Yield the smallest parts of a split that may have rows for which a condition is true."""
    found = source.parts_with(split, condition) if condition.columns else [split]
    for part in found:
        yield from source.parts_of(part)


def _is_within(part: Split, span: Span) -> bool:
    """Whether a part has an arrival position in a range."""
    is_after = span.high is not None and part.base > span.high.as_py()
    return not is_after and (span.low is None or part.base + part.rows > span.low.as_py())


def _chunks(work: TaskContext, parts: Sequence[Split]) -> list[Chunk]:
    return pack(parts, row_width(work.source.schema, parts, work.columns), _CHUNK)


def _of_key(work: TaskContext, chunk: Chunk, key: Mapping[str, pa.Scalar], rejected: Counter[str]) -> MappedChunk:
    """Read a chunk; of its rows keep those of the key, and count those that are rejected."""
    read, level = read_assessed(work, chunk)
    mine = np.flatnonzero(is_of_key(read.rows, key)) if key else np.arange(len(read.pos))
    reasons = None if read.reasons is None else read.reasons[mine]
    if reasons is not None:
        rejected.update(each for each in reasons if each is not None)
    sequences = sequences_of(work, take_rows(read.rows, mine), read.pos[mine], reasons)
    marks = read.marks.take(np.arange(len(read.marks)))  # a copy: a slice of no rows would keep all rows in memory
    return MappedChunk(sequences, marks, level, _clock(work.plan, read), ChunkAccount())


def _clock(plan: Plan, read: ChunkRows) -> ClockValue | None:
    if read.reasons is None:
        return latest(plan, read.rows)
    kept, _ = split_by_reason(read.reasons)
    return latest(plan, read.rows.take(pa.array(kept)))


def is_of_key(rows: pa.RecordBatch | pa.Table, key: Mapping[str, pa.Scalar]) -> Mask:
    """Return which rows have the values of a key, bool (n,). The two float zeros are one value, and so is NaN."""
    mask = np.ones(rows.num_rows, np.bool_)
    for name, value in key.items():
        column = combined(rows.column(name))
        mask &= _equal(column, value).fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _equal(column: pa.Array, value: pa.Scalar) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return pc.equal(column, value.cast(column.type))
    found = pc.equal(column.dictionary, value.cast(column.type.value_type))
    return found.take(column.indices)
