"""Chunks into rows: read, marks told apart, screened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowing.columns import Ints, Mask, combined
from windowing.engine.incoming import incoming_marks
from windowing.engine.ports import Batch, Split
from windowing.engine.slices import Chunk
from windowing.engine.standing import behind
from windowing.engine.work import Work
from windowing.marks import Marks
from windowing.result_schema import MARK
from windowing.screen import Reasons, kept_and_rejected, screen
from windowing.sequence import Sequences, build, group_codes, one_batch


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a chunk, in arrival order, those that are mere marks left out.

    ``pos``: their arrival positions. ``reasons``: why rows are rejected, None where none is. ``marks``: window marks
    that come with them. ``batches``: as the splits were read.
    """

    rows: pa.RecordBatch
    pos: Ints
    reasons: Reasons | None
    marks: Marks
    batches: Sequence[Batch]


def read_rows(work: Work, chunk: Chunk) -> Rows:
    """Read all splits of a chunk, the columns that the plan needs, and screen them."""
    batches = [work.source.read(split, work.columns, work.encoded) for split in chunk.splits]
    table = pa.concat_tables([batch.rows for batch in batches])
    rows, pos = one_batch(table), np.concatenate([batch.pos for batch in batches])
    marks = incoming_marks(work, chunk, batches, rows, pos)
    if work.start is not None and work.start.position is not None:  # the mark of a late row is late itself
        marks = marks.take(np.flatnonzero(~behind_start(work, marks.rows)))
    rows, pos = _without_mark_rows(work, rows, pos)
    return Rows(rows, pos, screen(work.plan, rows), marks, batches)


def sequences_of(work: Work, rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None) -> Sequences:
    """Sort the rows that are not rejected into sequences."""
    if reasons is not None:
        kept, _ = kept_and_rejected(reasons)
        rows, pos = rows.take(pa.array(kept)), pos[kept]
    return build(rows, pos, work.plan.key, work.plan.sort, work.plan.values)


def behind_start(work: Work, rows: pa.RecordBatch) -> Mask:
    """Return which rows belong before those of the runs before, (n,): all keys together, by the order columns."""
    if work.start is None or work.start.position is None:
        return np.zeros(rows.num_rows, np.bool_)
    return behind(rows, work.start.position)


def no_rows(work: Work) -> pa.RecordBatch:
    """The columns that sort rows, without a row."""
    return one_batch(pa.schema([work.source.schema.field(name) for name in work.plan.sort]).empty_table())


def nothing(work: Work) -> Sequences:
    """Sequences without a row."""
    schema = pa.schema([work.source.schema.field(name) for name in work.plan.columns])
    return sequences_of(work, one_batch(schema.empty_table()), np.empty(0, np.int64), None)


def read_columns(work: Work, chunk: Chunk, columns: Sequence[str]) -> tuple[pa.RecordBatch, Ints]:
    """Read only some columns of a chunk, rows that are mere marks left out; also return arrival positions."""
    stream = [MARK] if work.source.stream else []
    wanted = list(dict.fromkeys([*columns, *stream]))
    batches = [work.source.read(split, wanted) for split in chunk.splits]
    rows = one_batch(pa.concat_tables([batch.rows for batch in batches]))
    return _without_mark_rows(work, rows, np.concatenate([batch.pos for batch in batches]))


def sample_keys(work: Work, most: int, split: Split) -> tuple[pa.Table, Ints]:
    """Distinct keys of at most ``most`` evenly spaced rows of a split, and how many of those rows hold each."""
    key = list(work.plan.key)
    rows = work.source.read(split, key, work.encoded).rows
    step = max(1, rows.num_rows // most)
    picked = rows.take(pa.array(np.arange(0, rows.num_rows, step))).combine_chunks()
    for name in key:
        picked = picked.filter(picked.column(name).is_valid())
    codes, keys = group_codes([combined(column) for column in picked.columns])
    return keys.rename_columns(key), np.bincount(codes, minlength=keys.num_rows)


def _without_mark_rows(work: Work, rows: pa.RecordBatch, pos: Ints) -> tuple[pa.RecordBatch, Ints]:
    """Leave out what is no row of a stream, only a mark."""
    if work.source.stream is None:
        return rows, pos
    only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
    kept = np.flatnonzero(~only)
    return (rows, pos) if len(kept) == len(pos) else (rows.take(pa.array(kept)), pos[kept])
