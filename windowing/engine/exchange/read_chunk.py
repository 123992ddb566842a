"""Chunks into rows: read, marks told apart, screened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...columns.sort_keys import sorts_before
from ...planning.plan import panes_only
from ...planning.result_schema import MARK
from ...ports import Batch, Split
from ...scan.preaggregate import cell_boundaries
from ...scan.row_validation import Reasons, split_by_reason, validate_rows
from ...scan.signals import Signals, window_marks
from ...sequences.marks import Marks, no_marks
from ...sequences.sequence import Sequences, build, concatenate, one_batch
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .input_marks import input_marks
from .range_cuts import PLACE


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of a chunk, in arrival order, those that are mere marks left out.

    ``pos``: their arrival positions. ``reasons``: why rows are rejected, None where none is. ``marks``: window marks
    that come with them. ``batches``: as the splits were read.
    """

    rows: pa.RecordBatch
    pos: Ints
    reasons: Reasons | None
    marks: Marks
    batches: Sequence[Batch]


def read_rows(work: TaskContext, chunk: Chunk) -> ChunkRows:
    """Read all splits of a chunk, the columns that the plan needs, and screen them."""
    batches = [work.source.read(split, work.columns, work.encoded) for split in chunk.splits]
    rows = concatenate([batch.rows for batch in batches])
    pos = batches[0].pos if len(batches) == 1 else np.concatenate([batch.pos for batch in batches])
    marks = input_marks(work, chunk, batches, rows, pos)
    if (
        work.restore_point is not None and work.restore_point.position is not None
    ):  # the mark of a late row is late itself
        marks = marks.take(np.flatnonzero(~late_for_restore_point(work, marks.rows)))
    rows, pos = _without_mark_rows(work, rows, pos)
    return ChunkRows(rows, pos, validate_rows(work.plan, rows), marks, batches)


def sequences_of(work: TaskContext, rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None) -> Sequences:
    """Sort the rows that are not rejected into sequences."""
    if reasons is not None:
        kept, _ = split_by_reason(reasons)
        rows, pos = rows.take(pa.array(kept)), pos[kept]
    return build(rows, pos, work.plan.key, work.plan.sort, work.plan.values)


def late_for_restore_point(work: TaskContext, rows: pa.RecordBatch) -> Mask:
    """Return which rows belong before those of the runs before, (n,): all keys together, by the order columns."""
    if work.restore_point is None or work.restore_point.position is None:
        return np.zeros(rows.num_rows, np.bool_)
    return sorts_before(rows, work.restore_point.position)


def no_rows(work: TaskContext) -> pa.RecordBatch:
    """The columns that sort rows, without a row."""
    return one_batch(pa.schema([work.source.schema.field(name) for name in work.plan.sort]).empty_table())


def no_signals(work: TaskContext) -> Signals:
    """Where neither marks nor a watermark tell anything."""
    return window_marks(no_marks(no_rows(work), work.plan.sort))


def nothing(work: TaskContext) -> Sequences:
    """Sequences without a row."""
    schema = pa.schema([work.source.schema.field(name) for name in work.plan.columns])
    return sequences_of(work, one_batch(schema.empty_table()), np.empty(0, np.int64), None)


def read_columns(work: TaskContext, chunk: Chunk, columns: Sequence[str]) -> tuple[pa.RecordBatch, Ints]:
    """Read only some columns of a chunk, rows that are mere marks left out; also return arrival positions."""
    stream = [MARK] if work.source.stream else []
    wanted = list(dict.fromkeys([*columns, *stream]))
    batches = [work.source.read(split, wanted) for split in chunk.splits]
    rows = one_batch(pa.concat_tables([batch.rows for batch in batches]))
    return _without_mark_rows(work, rows, np.concatenate([batch.pos for batch in batches]))


def sample_rows(work: TaskContext, most: int, with_order: bool, split: Split) -> pa.Table:
    """Keys of at most ``most`` evenly spaced rows of a split, or of the middle of it where that can be read alone.

    Also what orders them, with their arrival positions. Rows that hold null in these columns have no place and are left
    out.
    """
    parts = work.source.parts_of(split)
    split = parts[len(parts) // 2]
    names = list(dict.fromkeys([*work.plan.key, *(work.plan.sort if with_order else ())]))
    if not names:
        return pa.table({PLACE: split.base + np.arange(0, split.rows, max(1, -(-split.rows // most)))})
    batch = work.source.read(split, names, work.encoded)
    picks = np.arange(0, len(batch.pos), max(1, -(-len(batch.pos) // most)))
    rows = batch.rows.take(pa.array(picks)).cast(pa.schema([work.source.schema.field(name) for name in names]))
    if with_order:
        rows = rows.append_column(PLACE, pa.array(batch.pos[picks]))
    for name in names:
        rows = rows.filter(rows.column(name).is_valid())
    return rows


def rows_per_cell(work: TaskContext, split: Split) -> float:
    """Return how many rows go as one, where rows are combined, in the middle of a split that can be read alone."""
    parts = work.source.parts_of(split)
    work = replace(work, plan=panes_only(work.plan))
    read = read_rows(work, Chunk(0, split.base, (parts[len(parts) // 2],)))
    sequences = sequences_of(work, read.rows, read.pos, read.reasons)
    return len(sequences) / max(1, len(cell_boundaries(work.plan, sequences)))


def _without_mark_rows(work: TaskContext, rows: pa.RecordBatch, pos: Ints) -> tuple[pa.RecordBatch, Ints]:
    """Leave out what is no row of a stream, only a mark."""
    if work.source.stream is None:
        return rows, pos
    only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
    kept = np.flatnonzero(~only)
    return (rows, pos) if len(kept) == len(pos) else (rows.take(pa.array(kept)), pos[kept])
