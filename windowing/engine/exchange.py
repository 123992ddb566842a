"""The map side: read a chunk, set aside what has no place, sort, cut, and send one blob to each slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowing.columns import Ints, combined, words
from windowing.engine.blobs import Blob, encode, part_of
from windowing.engine.ports import REJECT_FIELDS, Account, Batch, Counts, Sink, Source, Split
from windowing.engine.slices import Chunk, slice_bounds
from windowing.marks import NO_FILE, Marks, no_marks, placed
from windowing.plan import MARK, Plan
from windowing.screen import kept_and_rejected, screen
from windowing.sequence import Sequences, build, group_codes, one_batch
from windowing.spec import needs_clock
from windowing.tumbling import clock_values

FILES = "files"
NONE = "none"
STREAM = "stream"
"""Where marks come from, if not from a boolean column: ends of files, nowhere, the stage before."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every task is told: the plan, where rows come from and go to, and ``marks``: `FILES`, `NONE`, `STREAM`, or
    ``column:NAME`` of a boolean column."""

    plan: Plan
    source: Source
    sink: Sink
    marks: str

    @property
    def mark_column(self) -> str | None:
        """The column that says after which rows a mark stands."""
        if self.marks == STREAM:
            return MARK
        return self.marks.removeprefix("column:") if self.marks.startswith("column:") else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tasks read, each once."""
        extra = [self.mark_column] if self.mark_column and self.plan.takes_marks else []
        stream = [MARK] if self.source.stream else []
        return tuple(dict.fromkeys([*self.plan.columns, *stream, *extra]))

    @property
    def encoded(self) -> list[str]:
        """The text columns that are keys and nothing else: read as dictionaries, no text is looked at twice."""
        keys = [name for name in self.plan.key if name not in self.plan.values]
        return [name for name in keys if pa.types.is_string(self.source.schema.field(name).type)]


@dataclass(frozen=True, slots=True)
class Read:
    """One chunk, read, screened and sorted."""

    sequences: Sequences
    marks: Marks
    clock: int | float | None
    account: Account


def blobs_of(work: Work, cuts: pa.Table | None, slices: int, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """Yield (slice, blob) for each slice that the chunk has anything to tell."""
    read = read_chunk(work, chunk)
    bounds = slice_bounds(read.sequences.keys, cuts)
    home = chunk.index % slices
    for i in range(slices):
        part = part_of(read.sequences, int(bounds[i]), int(bounds[i + 1]))
        account = read.account if i == home else None
        if len(part) or len(read.marks) or read.clock is not None or account:
            yield i, encode(Blob(chunk.index, part, read.marks, read.clock, account), chunk.base)


def read_chunk(work: Work, chunk: Chunk) -> Read:
    """Read all splits of a chunk, write its rejects, and sort the rest into sequences."""
    batches = [work.source.read(split, work.columns, work.encoded) for split in chunk.splits]
    table = pa.concat_tables([batch.rows for batch in batches])
    rows, pos = one_batch(table), np.concatenate([batch.pos for batch in batches])
    marks = _marks(work, chunk, batches, rows, pos)
    rows, pos, only = _without_mark_rows(work, rows, pos)
    reasons = screen(work.plan, rows)
    account = _reject(work, chunk, batches, pos, reasons) + Account(Counts(rows_in=chunk.rows - only))
    if reasons is not None:
        kept, _ = kept_and_rejected(reasons)
        rows, pos = rows.take(pa.array(kept)), pos[kept]
    sequences = build(rows, pos, work.plan.key, work.plan.sort, work.plan.values)
    return Read(sequences, marks, _clock(work.plan, sequences), account)


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


def _clock(plan: Plan, sequences: Sequences) -> int | float | None:
    """Where the chunk has brought the clock, for windows that look at it."""
    if not needs_clock(plan.spec) or not len(sequences):
        return None
    column = combined(sequences.rows.column(plan.sort[0]))
    return clock_values(column, plan.sort[0]).max().item()


def _without_mark_rows(work: Work, rows: pa.RecordBatch, pos: Ints) -> tuple[pa.RecordBatch, Ints, int]:
    """Leave out what is no row of a stream, only a mark; also return how many."""
    if work.source.stream is None:
        return rows, pos, 0
    only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
    if not only.any():
        return rows, pos, 0
    kept = np.flatnonzero(~only)
    return rows.take(pa.array(kept)), pos[kept], int(only.sum())


def _marks(work: Work, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch, pos: Ints) -> Marks:
    plan = work.plan
    if not plan.takes_marks or work.marks == NONE:
        return no_marks(rows, plan.sort)
    if work.marks == FILES:
        return _file_ends(plan, chunk, batches, rows)
    column = rows.column(work.mark_column)
    flags = column.is_valid() if work.marks == STREAM else column.fill_null(False)
    after = np.flatnonzero(flags.to_numpy(zero_copy_only=False))
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after)) if plan.sort else order
    return placed(Marks(at, pos[after], np.full(len(after), NO_FILE)), plan.order.columns)


def _file_ends(plan: Plan, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch) -> Marks:
    """For each split the last of its rows in the total order; the last of all splits of a file is the file's mark.

    In arrival order that is the split's last position, row or reject, and a file without rows has a mark too. Where
    columns order the rows, a file without a row in that order has no place and so no mark.
    """
    file = np.array([split.file for split in chunk.splits], np.int64)
    if not plan.sort:
        last = np.array([split.base + split.rows - 1 for split in chunk.splits], np.int64)
        return Marks(no_marks(rows, ()).rows, last, file)
    starts = np.cumsum([0, *(len(batch.pos) for batch in batches)])
    ordered = rows.select(list(plan.sort))
    found = [_last_row(plan, ordered.slice(low, high - low)) for low, high in pairwise(starts)]
    kept = np.array([i for i, row in enumerate(found) if row is not None], np.int64)
    picks = np.array([starts[i] + found[i] for i in kept], np.int64)
    pos = np.concatenate([batch.pos for batch in batches])
    return Marks(ordered.take(pa.array(picks)), pos[picks], file[kept])


def _last_row(plan: Plan, rows: pa.RecordBatch) -> int | None:
    """Place of the row that is last in the total order among those that have an order value."""
    present = np.ones(rows.num_rows, np.bool_)
    for name in plan.order.columns:
        present &= ~rows.column(name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    picks = np.flatnonzero(present)
    if not len(picks):
        return None
    kept = rows.take(pa.array(picks))
    sort_words = [words(kept.column(name)) for name in plan.sort]
    return int(picks[np.lexsort(sort_words[::-1])[-1]])


def _reject(
    work: Work, chunk: Chunk, batches: Sequence[Batch], pos: Ints, reasons: npt.NDArray[np.object_] | None
) -> Account:
    """Write the rows that the readers or the screen turned away, whole; account for them by reason."""
    tables = [_unread(work, batch.rejects) for batch in batches if batch.rejects is not None]
    if reasons is not None:
        _, bad = kept_and_rejected(reasons)
        tables += _turned_away(work, chunk, pos[bad], reasons[bad])
    if not tables:
        return Account()
    rejects = pa.concat_tables(tables)
    part = work.sink.write_rejects(chunk.index, rejects)
    by_reason = {entry["values"]: entry["counts"] for entry in rejects.column("_reason").value_counts().to_pylist()}
    return Account(Counts(rejected=by_reason), (part,))


def reject_schema(schema: pa.Schema) -> pa.Schema:
    """Schema of the rejects: the input's columns, then `REJECT_FIELDS`, in place of columns of their names."""
    return pa.schema([*(schema.field(name) for name in _whole(schema)), *REJECT_FIELDS])


def _whole(schema: pa.Schema) -> list[str]:
    """The columns that a rejected row is written with."""
    taken = {field.name for field in REJECT_FIELDS}
    return [name for name in schema.names if name not in taken]


def _unread(work: Work, rejects: pa.Table) -> pa.Table:
    """Rows that could not be read: their text, and nulls for the columns."""
    schema = work.source.schema
    nulls = [pa.nulls(rejects.num_rows, schema.field(name).type) for name in _whole(schema)]
    return pa.Table.from_arrays([*nulls, *rejects.columns], schema=reject_schema(work.source.schema))


def _turned_away(work: Work, chunk: Chunk, pos: Ints, reasons: npt.NDArray[np.object_]) -> Iterator[pa.Table]:
    """Read the rows at ``pos`` again, with all their columns, split by split."""
    for split in chunk.splits:
        mine = (pos >= split.base) & (pos < split.base + split.rows)
        if mine.any():
            batch = work.source.read(split, _whole(work.source.schema))
            whole = batch.rows.take(pa.array(np.searchsorted(batch.pos, pos[mine])))
            yield _with_reasons(work, split, whole, pos[mine], reasons[mine])


def _with_reasons(work: Work, split: Split, whole: pa.Table, pos: Ints, reasons: npt.NDArray[np.object_]) -> pa.Table:
    size = len(pos)
    lines = pa.array(work.source.line_numbers(split, pos))
    files = pa.array([work.source.files[split.file].path] * size)
    nulls = pa.nulls(size, pa.string())
    extra: list[Any] = [pa.array(list(reasons), pa.string()), files, lines, nulls, nulls]
    return pa.Table.from_arrays([*whole.columns, *extra], schema=reject_schema(work.source.schema))
