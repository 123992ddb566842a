"""The map side: read chunks, reject rows that no window can place, sort, cut, and write a block for each slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.watermark import Belief, highest
from ..columns.arrays import ClockValue, Ints, Mask, Measures, is_true, latest_clock
from ..columns.sort_keys import sort_keys
from ..kinds.context import Signals, window_marks
from ..language.joins import RIGHT, SIDE
from ..planning.plan import panes_only
from ..planning.result_schema import MARK
from ..planning.sides import SIDES
from ..ports import Batch, ChunkAccount, Counts, Split
from ..rows.marks import NO_FILE, Marks, all_marks, no_marks, with_place
from ..rows.merge import merge
from ..rows.sequence import Sequences, build, concatenate, one_batch
from ..scan.row_validation import (
    LatenessResult,
    Reasons,
    RowSelection,
    assess,
    event_times,
    judge_rows,
    lateness_of,
    latest_valid,
    marks_behind,
    no_watermarks,
    rows_ahead,
    select_rows,
    split_by_reason,
    validated_columns,
)
from ..scan.rows_ahead import LatestRows, RowsAhead, is_ahead, latest_rows
from ..scan.scan import cell_boundaries, latest, preaggregate
from .blocks import Fill, ShuffleBlock, part_of, write
from .range_cuts import PLACE, SliceBounds, slice_offsets, slices_of
from .rejects import reject, span_of
from .task import FILES, NONE, STREAM, Chunk, TaskContext

# Window marks of the input: ends of files, a boolean column, or the marks of the stage before.


def input_marks(work: TaskContext, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch, pos: Ints) -> Marks:
    """Return the marks of a chunk.

    ``batches``: its splits as they were read; ``rows``: their rows, at arrival positions ``pos``, int64 (n,).
    """
    plan = work.plan
    if not plan.takes_marks or work.marks == NONE:
        return no_marks(rows, plan.sort)
    if work.marks == FILES:
        return _file_ends(work, chunk, batches, rows)
    column = rows.column(work.mark_column)
    after = np.flatnonzero(is_true(column.is_valid() if work.marks == STREAM else column))
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after)) if plan.sort else order
    return with_place(Marks(at, pos[after], np.full(len(after), NO_FILE)), plan.order.columns)


def _file_ends(work: TaskContext, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch) -> Marks:
    """Return for each split a mark at its last row in the total order; the last of these in a file is the file's mark.

    In arrival order that is the last position of the split, row or reject, and a file without rows has a mark, too.
    With order columns a file without an ordered row has no place in the order, and so no mark; rows ahead of their time
    have none either.
    """
    plan = work.plan
    file = np.array([split.file for split in chunk.splits], np.int64)
    if not plan.sort:
        last = np.array([split.base + split.rows - 1 for split in chunk.splits], np.int64)
        return Marks(no_marks(rows, ()).rows, last, file)
    starts = np.cumsum([0, *(len(batch.pos) for batch in batches)])
    ordered = rows.select(list(plan.sort))
    is_left = _is_left(work, rows)
    last_rows = [_last_row(work, ordered.slice(low, high - low), is_left[low:high]) for low, high in pairwise(starts)]
    kept = np.array([i for i, row in enumerate(last_rows) if row is not None], np.int64)
    picks = np.array([starts[i] + last_rows[i] for i in kept], np.int64)
    pos = np.concatenate([batch.pos for batch in batches])
    return Marks(ordered.take(pa.array(picks)), pos[picks], file[kept])


def _is_left(work: TaskContext, rows: pa.RecordBatch) -> Mask:
    """Return which rows are no rows of another log, bool (n,): its files end nothing."""
    join = work.plan.options.join
    if join is None or join.path is None:
        return np.ones(rows.num_rows, np.bool_)
    side = rows.column(SIDE)
    return is_true(pc.not_equal(side, SIDES[RIGHT] if pa.types.is_string(side.type) else RIGHT))


def _last_row(work: TaskContext, rows: pa.RecordBatch, is_left: Mask) -> int | None:
    plan = work.plan
    present = is_left & ~is_ahead(plan, rows, work.reached.cut)
    for name in plan.order.columns:
        present &= ~rows.column(name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    picks = np.flatnonzero(present)
    if not len(picks):
        return None
    kept = rows.take(pa.array(picks))
    sort_words = [sort_keys(kept.column(name)) for name in plan.sort]
    return int(picks[np.lexsort(sort_words[::-1])[-1]])


# Read a chunk: rows, their marks, and the reject reasons of row validation.


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of a chunk in arrival order, without mark-only rows and those that the condition of the run leaves out.

    ``rows``: the columns that the plan needs.
    ``pos``: int64 (n,), arrival positions.
    ``reasons``: reject reasons (n,); None where no row is rejected.
    ``marks``: window marks of the chunk, or the advances of the watermark.
    ``level``: int64 (marks,), as in `ShuffleBlock`.
    ``batches``: the splits as they were read.
    ``selection``: which of their rows these are.
    """

    rows: pa.RecordBatch
    pos: Ints
    reasons: Reasons | None
    marks: Marks
    level: Ints
    batches: Sequence[Batch]
    selection: RowSelection


def read_rows(work: TaskContext, chunk: Chunk, in_codes: Sequence[str] = ()) -> ChunkRows:
    """Read all splits of a chunk with the columns that the plan needs, and find the rows that are rejected.

    ``in_codes``: text columns that may stay dictionaries, as keys may.
    """
    batches = [work.source.read(split, work.columns, [*work.encoded, *in_codes]) for split in chunk.splits]
    rows = concatenate([batch.rows for batch in batches])
    pos = batches[0].pos if len(batches) == 1 else np.concatenate([batch.pos for batch in batches])
    cut = work.reached.cut
    marks = marks_behind(work.plan, input_marks(work, chunk, batches, rows, pos), work.before.position, cut)
    selection = select_rows(batches, rows, work.source.stream is not None)
    rows, pos = selection.take(rows, pos)

    def find_late(rows: pa.RecordBatch, pos: Ints) -> LatenessResult:
        if work.decisions is None:
            return assess(work.plan, chunk.announced, rows, pos, chunk.belief)
        late: Ints = work.decisions.value.late
        return LatenessResult(np.isin(pos, late, assume_unique=True), no_watermarks(rows, work.plan.sort))

    late = find_late if work.plan.kind.needs.watermark else None
    reasons, lateness = judge_rows(work.plan, rows, pos, selection.failed, work.before.position, late, cut)
    check_lengths(work, chunk, rows, pos, reasons)
    level = np.zeros(len(marks), np.int64)
    if lateness is not None:
        marks, level = lateness.watermarks.marks, lateness.watermarks.level
    return ChunkRows(rows, pos, reasons, marks, level, batches, selection)


def check_lengths(work: TaskContext, chunk: Chunk, rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None) -> None:
    """Raise `DataError` for a row that lasts over too many windows, with its file and line."""
    kind = work.plan.kind
    if kind.needs.ends is None:
        return

    def name(row: int) -> str:
        split = next(each for each in chunk.splits if each.base <= pos[row] < each.base + each.rows)
        line = int(work.source.line_numbers(split, pos[row : row + 1])[0])
        return f"{work.source.files[split.file].path}, line {line}"

    kind.check_lengths(rows, work.plan.sort[0], None if reasons is None else split_by_reason(reasons)[0], name)


def sequences_of(work: TaskContext, rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None) -> Sequences:
    """Sort the rows that are not rejected into sequences."""
    if reasons is not None:
        kept, _ = split_by_reason(reasons)
        rows, pos = rows.take(pa.array(kept)), pos[kept]
    return build(rows, pos, work.plan.key, work.plan.sort, work.plan.read_values)


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
    selection = select_rows(batches, rows, work.source.stream is not None).without_failures()
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
    return len(sequences) / max(1, len(cell_boundaries(work.plan, sequences, read.marks)))


def blocks_of(work: TaskContext, cuts: SliceBounds | None, chunks: Sequence[Chunk]) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, function that writes its block) for each slice that needs anything of neighbouring chunks."""
    reads = []
    for chunk in chunks:
        read = read_chunk(work, chunk)
        if work.scan_plan is not None:
            read = replace(read, sequences=preaggregate(work.plan, work.scan_plan, read.sequences, read.marks))
        reads.append(read)
    merged, account = reads[0], sum((read.account for read in reads if read.account), ChunkAccount())
    if len(reads) > 1:
        merged = ShuffleBlock(
            merged.chunk,
            merge([read.sequences for read in reads]),
            all_marks([read.marks for read in reads]),
            np.concatenate([read.level for read in reads]),
            latest_clock([read.clock for read in reads]),
            None,
        )
    offsets, slices = slice_offsets(merged.sequences, cuts), slices_of(cuts)
    merged = replace(merged, sequences=_without_long_dictionaries(merged.sequences, slices))
    account_slice = merged.chunk % slices
    for i in range(slices):
        part = part_of(merged.sequences, int(offsets[i]), int(offsets[i + 1]))
        own = account if i == account_slice else None
        if len(part) or len(merged.marks) or merged.clock is not None or own:
            yield i, partial(write, replace(merged, sequences=part, account=own), chunks[0].base)


def _without_long_dictionaries(sequences: Sequences, slices: int) -> Sequences:
    """Decode the texts of dictionaries that are no shorter than the rows of a slice: each block has all of one."""
    rows = sequences.rows
    for at, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type) and len(column.dictionary) * slices >= max(1, len(sequences)):
            rows = rows.set_column(at, rows.schema.names[at], column.dictionary_decode())
    return replace(sequences, rows=rows)


def read_chunk(work: TaskContext, chunk: Chunk) -> ShuffleBlock:
    """Read all splits of a chunk, write its rejects, and sort the other rows into sequences."""
    read = read_rows(work, chunk, work.in_codes)
    rows_in = chunk.rows - read.selection.mark_only - sum(batch.elsewhere for batch in read.batches)
    counts = Counts(rows_in=rows_in, filtered=read.selection.filtered)
    sequences = sequences_of(work, read.rows, read.pos, read.reasons)
    span = span_of(work.plan, sequences.rows) if work.asks_span else None
    account = reject(work, chunk, read.batches, read.pos, read.reasons) + ChunkAccount(counts, span=span)
    return ShuffleBlock(chunk.index, sequences, read.marks, read.level, latest(work.plan, sequences.rows), account)


def chunk_latest(work: TaskContext, chunk: Chunk) -> LatestRows:
    """Return the latest rows of a chunk in the order of the window."""
    rows, pos = read_columns(work, chunk, validated_columns(work.plan))
    return latest_valid(work.plan, rows, pos, work.before.position)


def chunk_reading(work: TaskContext, chunk: Chunk) -> tuple[ClockValue | None, LatestRows]:
    """Return the largest event time of a chunk: all that a watermark without ``--min-gap`` needs of it.

    It is a reading. Also return the rows with the latest event times.
    """
    rows, values, pos = _event_times(work, chunk)
    return highest(lateness_of(work.plan, rows).readings(values)), latest_rows(values, pos)


@dataclass(frozen=True, slots=True)
class Course:
    """What event times of a chunk do to what is believed, where rows may be ahead of their time.

    ``rows``, ``first``, ``highest``: their number, the first, and the largest; 0 where there are none.
    ``is_plain``: whether no row is ahead of those before it, once the first is believed.
    ``told``: what is believed after the chunk, and its rows ahead, where it is known what was believed before it.
    """

    rows: int
    first: ClockValue = 0
    highest: ClockValue = 0
    is_plain: bool = True
    told: tuple[Belief, RowsAhead] | None = None

    def after(self, belief: Belief, farthest: ClockValue) -> Belief | None:
        """Return what is believed after the chunk; None where its rows must be looked at one by one."""
        if not self.rows:
            return belief
        if not self.is_plain or belief.latest is None or (farthest >= 0 and self.first > belief.latest + farthest):
            return None
        return belief.passed(self.highest, self.rows)


def chunk_course(work: TaskContext, before: Belief, chunk: Chunk) -> Course:
    """Return what the event times of a chunk do. ``before``: what is believed before the first chunk."""
    rows, values, pos = _event_times(work, chunk)
    if not len(values):
        return Course(0)
    lateness = lateness_of(work.plan, rows)
    start = before if chunk.index == 0 else Belief(values[0].item())
    _, _, belief, ahead = lateness.believe(values, start)
    told = (belief, rows_ahead(ahead, values, pos)) if chunk.index == 0 else None
    return Course(len(values), values[0].item(), values.max().item(), not ahead.any(), told)


def walk_chunks(work: TaskContext, before: tuple[Belief, Sequence[Chunk]]) -> list[tuple[Belief, RowsAhead]]:
    """Return what is believed after each of some chunks, and its rows ahead.

    ``before``: what is believed before them, and the chunks.
    """
    (belief, chunks), found = before, []
    for chunk in chunks:
        rows, values, pos = _event_times(work, chunk)
        _, _, belief, ahead = lateness_of(work.plan, rows).believe(values, belief)
        found.append((belief, rows_ahead(ahead, values, pos)))
    return found


def _event_times(work: TaskContext, chunk: Chunk) -> tuple[pa.RecordBatch, Measures, Ints]:
    rows, pos = read_columns(work, chunk, [str(work.plan.options.event_time)])
    values, places = event_times(work.plan, rows)
    return rows, values, pos[places]
