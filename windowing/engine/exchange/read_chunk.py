"""Read a chunk: rows, their marks, and the reject reasons of row validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...columns.sort_keys import sorts_before
from ...kinds.signals import Signals, window_marks
from ...planning.plan import panes_only
from ...planning.result_schema import MARK
from ...ports import Batch, Split
from ...scan.lateness import assess
from ...scan.preaggregate import cell_boundaries
from ...scan.row_validation import Reasons, add_late, split_by_reason, validate_rows
from ...sequences.marks import Marks, no_marks
from ...sequences.sequence import Sequences, build, concatenate, one_batch
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .input_marks import input_marks
from .range_cuts import PLACE
from .row_selection import select_rows


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of a chunk in arrival order, without mark-only rows and those that the condition of the run leaves out.

    ``rows``: the columns that the plan needs.
    ``pos``: int64 (n,), arrival positions.
    ``reasons``: reject reasons (n,); None where no row is rejected.
    ``marks``: window marks of the chunk.
    ``batches``: the splits as they were read.
    ``mark_only``: how many mark-only rows the chunk has.
    ``filtered``: how many rows the condition of the run leaves out.
    """

    rows: pa.RecordBatch
    pos: Ints
    reasons: Reasons | None
    marks: Marks
    batches: Sequence[Batch]
    mark_only: int = 0
    filtered: int = 0


def read_rows(work: TaskContext, chunk: Chunk) -> ChunkRows:
    """Read all splits of a chunk with the columns that the plan needs, and validate the rows."""
    batches = [work.source.read(split, work.columns, work.encoded) for split in chunk.splits]
    rows = concatenate([batch.rows for batch in batches])
    pos = batches[0].pos if len(batches) == 1 else np.concatenate([batch.pos for batch in batches])
    marks = input_marks(work, chunk, batches, rows, pos)
    if work.restore_point is not None and work.restore_point.position is not None:  # marks of late rows are late, too
        marks = marks.take(np.flatnonzero(~late_for_restore_point(work, marks.rows)))
    selection = select_rows(work, batches, rows)
    rows, pos = selection.take(rows, pos)
    reasons = add_late(validate_rows(work.plan, rows), late_for_restore_point(work, rows))
    reasons = selection.add_failures(reasons)
    return ChunkRows(rows, pos, reasons, marks, batches, selection.mark_only, selection.filtered)


def read_sequences(work: TaskContext, chunk: Chunk) -> Sequences:
    """Read a chunk, and sort the rows that are not rejected into sequences."""
    read = read_rows(work, chunk)
    return sequences_of(work, read.rows, read.pos, read.reasons)


def sequences_of(work: TaskContext, rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None) -> Sequences:
    """Sort the rows that are not rejected into sequences."""
    if reasons is not None:
        kept, _ = split_by_reason(reasons)
        rows, pos = rows.take(pa.array(kept)), pos[kept]
    return build(rows, pos, work.plan.key, work.plan.sort, work.plan.read_values)


def late_for_restore_point(work: TaskContext, rows: pa.RecordBatch) -> Mask:
    """Return which rows sort before the last row of earlier runs, bool (n,): by the order columns, over all keys."""
    if work.restore_point is None or work.restore_point.position is None:
        return np.zeros(rows.num_rows, np.bool_)
    return sorts_before(rows, work.restore_point.position)


def no_rows(work: TaskContext) -> pa.RecordBatch:
    """Return a batch without rows that has the sort columns."""
    return one_batch(pa.schema([work.source.schema.field(name) for name in work.plan.sort]).empty_table())


def no_signals(work: TaskContext) -> Signals:
    """Return signals without marks and without watermark advances."""
    return window_marks(no_marks(no_rows(work), work.plan.sort))


def no_sequences(work: TaskContext) -> Sequences:
    """Return sequences without rows."""
    schema = pa.schema([work.source.schema.field(name) for name in work.plan.columns])
    return sequences_of(work, one_batch(schema.empty_table()), np.empty(0, np.int64), None)


def read_columns(work: TaskContext, chunk: Chunk, columns: Sequence[str]) -> tuple[pa.RecordBatch, Ints]:
    """Read only some columns of the rows of a chunk that no expression fails for; also return arrival positions."""
    stream = [MARK] if work.source.stream else []
    wanted = list(dict.fromkeys([*columns, *stream]))
    batches = [work.source.read(split, wanted) for split in chunk.splits]
    rows = one_batch(pa.concat_tables([batch.rows for batch in batches]))
    selection = select_rows(work, batches, rows).without_failures()
    return selection.take(rows, np.concatenate([batch.pos for batch in batches]))


def sample_rows(work: TaskContext, most: int, with_order: bool, split: Split) -> pa.Table:
    """Sample the keys of about ``most`` evenly spaced rows of the small parts that stand for a split.

    ``with_order``: sample order values and arrival positions, too. Rows with a null in these columns are left out:
    they will be rejected.
    """
    names = list(dict.fromkeys([*work.plan.key, *(work.plan.sort if with_order else ())]))
    if not names:
        return pa.table({PLACE: split.base + np.arange(0, split.rows, max(1, -(-split.rows // most)))})
    looks = work.source.looks_of(split)
    share = -(-most // len(looks))
    return pa.concat_tables([_sample_look(work, share, names, with_order, look) for look in looks])


def _sample_look(work: TaskContext, most: int, names: Sequence[str], with_order: bool, look: Split) -> pa.Table:
    batch = work.source.read(look, names, work.encoded)
    picks = np.arange(len(batch.pos)) if batch.kept is None else np.flatnonzero(batch.kept)
    picks = picks[:: max(1, -(-len(picks) // most))]
    rows = batch.rows.take(pa.array(picks)).cast(pa.schema([work.source.schema.field(name) for name in names]))
    if with_order:
        rows = rows.append_column(PLACE, pa.array(batch.pos[picks]))
    for name in names:
        rows = rows.filter(rows.column(name).is_valid())
    return rows


def rows_per_cell(work: TaskContext, split: Split) -> float:
    """Measure the rows per cell of partial aggregation in a split, or in its middle where that can be read alone."""
    parts = work.source.parts_of(split)
    work = replace(work, plan=panes_only(work.plan))
    read = read_rows(work, Chunk(0, split.base, (parts[len(parts) // 2],)))
    sequences = sequences_of(work, read.rows, read.pos, read.reasons)
    marks = (
        assess(work.plan, None, read.rows, read.pos).watermarks.marks if work.plan.kind.has_watermark else read.marks
    )
    return len(sequences) / max(1, len(cell_boundaries(work.plan, sequences, marks)))
