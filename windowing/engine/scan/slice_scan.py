"""The reduce side: merge the blocks of a slice into sequences, scan them, write a part of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from ...clock.watermark import NO_LEVEL, Watermarks
from ...columns.arrays import ClockValue, Ints, latest_clock
from ...kinds.signals import Signals, watermark_signals, window_marks
from ...local_executor import LocalExecutor
from ...ports import ChunkAccount, Counts, Executor, Part
from ...scan.lag_rows import keep_lookback, with_lag_columns
from ...scan.lateness import last_closed, merged_watermarks, no_watermarks
from ...scan.restore import finish_operators, restore_rows
from ...scan.scan import RunExtent, empty_mark_rows, falls_of, latest, mark_only_rows, scan
from ...sequences.marks import Marks, all_in_order, no_marks
from ...sequences.merge import merge
from ...sequences.sequence import Sequences
from ...state.window_state import WindowState
from ..exchange.blocks import ShuffleBlock, part_of, read
from ..exchange.global_pass import run_global_pass
from ..exchange.map_side import MappedChunk, read_chunk
from ..exchange.range_cuts import SliceBounds
from ..exchange.read_chunk import no_rows, no_sequences
from ..exchange.state_blocks import decode_state, is_state, load_window_state, snapshot_slice
from ..tasks.row_checks import CheckedTables
from ..tasks.sizing import Chunk
from ..tasks.snapshot import EMPTY_SNAPSHOT, TaskSnapshot
from ..tasks.task import TaskContext
from .segment_plan import FIRST, LAST, WHOLE, SummarisedSegment, part_number, whole_key_rows
from .segment_store import write_segment, write_signals
from .stored_rejects import StoredRejects, store_rejects, write_stored_rejects


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a scan task reports to the driver; its size does not grow with the rows, only with the marks.

    ``parts``: the files written; none where nothing came out.
    ``counts``: row accounting of what it scanned and of the chunks that it accounts for.
    ``rejects``: files of rejected rows of these chunks.
    ``windows``: number of panes that came out.
    ``falls``: how often the watched attribute is smaller than in the row before of its key.
    ``occupied``: one bit for each mark, set where a pane came out at it; for `empty_marks_of`.
    ``marks``: the marks themselves, from slice 0 only, where several slices share them.
    ``snapshot``: the window state written for the next run.
    ``watermark``: the watermark after all rows, as a reading, where the task itself computed it.
    ``segments``: segments of keys that are cut, stored and yet to be scanned.
    ``clock``: the largest clock value of the chunks it saw, or None.
    ``span``: the smallest and the largest order value of these chunks, where the run asks for them.
    ``stored_rejects``: rows that the scan has rejected, counted and yet to be written.
    """

    parts: tuple[Part, ...]
    counts: Counts
    rejects: tuple[Part, ...]
    windows: int
    falls: int
    occupied: bytes = b""
    marks: Marks | None = None
    snapshot: TaskSnapshot = EMPTY_SNAPSHOT
    watermark: ClockValue | None = None
    segments: tuple[SummarisedSegment, ...] = ()
    clock: ClockValue | None = None
    span: tuple[float, float] | None = None
    stored_rejects: StoredRejects | None = None


def scan_slice(work: TaskContext, index: int, cuts: SliceBounds | None, blocks: Sequence[pa.Buffer]) -> TaskReport:
    """Scan the whole keys of slice ``index``, and store its segments of keys that are cut.

    ``blocks``: all blocks for the slice, in any order.
    """
    state = decode_state(work, [data for data in blocks if is_state(data)])
    row_blocks = sorted((read(data) for data in blocks if not is_state(data)), key=lambda block: block.chunk)
    if not row_blocks and state is None:
        return TaskReport((), Counts(), (), 0, 0)
    account = sum((block.account for block in row_blocks if block.account), ChunkAccount())
    clocks = [block.clock for block in row_blocks if block.clock is not None]
    sequences = merge([block.sequences for block in row_blocks]) if row_blocks else no_sequences(work)
    signals = signals_of(work, row_blocks)
    low, high = whole_key_rows(sequences, cuts, index)
    sides = {FIRST: part_of(sequences, 0, low), LAST: part_of(sequences, high, len(sequences))}
    segments = [write_segment(work, index, side, segment, signals) for side, segment in sides.items() if len(segment)]
    if segments:
        sequences = part_of(sequences, low, high)
        if work.plan.takes_marks or signals.watermarks is not None:
            write_signals(work, signals)
    number = part_number(cuts, index, WHOLE)
    report = _finish(work, index, number, cuts is None, _ScanInput(sequences, signals, clocks, account, state))
    return replace(report, segments=tuple(segments), clock=max(clocks, default=None))


def scan_directly(work: TaskContext, chunks: Sequence[Chunk]) -> TaskReport:
    """Read, merge and scan a small input in one task."""
    state = load_window_state(work)
    if work.plan.kind.has_watermark:
        work, chunks = run_global_pass(work, chunks, LocalExecutor())
    reads = [read_chunk(work, chunk) for chunk in chunks]
    clocks = [read.clock for read in reads if read.clock is not None]
    account = sum((read.account for read in reads), ChunkAccount())
    sequences = merge([read.sequences for read in reads]) if reads else no_sequences(work)
    report = _finish(work, 0, 0, True, _ScanInput(sequences, signals_of(work, reads), clocks, account, state))
    return with_rejects(work, chunks, [report], LocalExecutor())[0]


def with_rejects(
    work: TaskContext, chunks: Sequence[Chunk], reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Return the reports of all scan tasks once the rows that they have rejected are written, too."""
    stored = [report.stored_rejects for report in reports if report.stored_rejects is not None]
    if not stored:
        return [*reports]
    first, *others = (replace(report, stored_rejects=None) for report in reports)
    parts = write_stored_rejects(work, chunks, stored, executor)
    work.sink.drop_scratch()
    return [replace(first, rejects=(*first.rejects, *parts)), *others]


def empty_marks_of(work: TaskContext, reports: Sequence[TaskReport]) -> pa.Table:
    """Return mark-only rows for the marks at which no slice had a pane."""
    marks = next(report.marks for report in reports if report.marks is not None)
    occupied = np.zeros(-(-len(marks) // 8), np.uint8)
    for report in reports:
        bits = np.frombuffer(report.occupied, np.uint8)  # a segment sees only the marks before the next segment
        occupied[: len(bits)] |= bits
    return empty_mark_rows(work.plan, marks, np.flatnonzero(np.unpackbits(occupied)))


@dataclass(frozen=True, slots=True)
class _ScanInput:
    """The input of one scan.

    ``sequences``: new rows.
    ``signals``: marks or watermark advances, and evictions.
    ``clocks``: the largest clock value of each chunk that has one.
    ``account``: row accounting of the chunks.
    ``state``: the restored window state, or None.
    """

    sequences: Sequences
    signals: Signals
    clocks: list[ClockValue]
    account: ChunkAccount
    state: WindowState | None


def _finish(work: TaskContext, index: int, number: int, is_only_slice: bool, scan_input: _ScanInput) -> TaskReport:
    restore_point, signals, plan = work.restore_point, scan_input.signals, work.plan
    marks = signals.marks
    since = restore_point.clock if restore_point is not None else None
    earlier_advances = None if restore_point is None else restore_point.advances
    ordered = with_lag_columns(plan, scan_input.sequences, scan_input.state)
    sequences, restored, idle = restore_rows(
        plan, scan_input.state, ordered.sequences, signals, earlier_advances, since
    )
    clock = latest_clock([*scan_input.clocks, since])
    if is_only_slice and not plan.key and len(ordered.rejects):  # or the cell of a rejected row would seem to have rows
        clock = latest_clock([latest(plan, ordered.sequences.rows), since])
    is_continued = work.state_files is not None
    closed = last_closed(plan, sequences, signals, work.watermark) if is_continued else NO_LEVEL
    extent = RunExtent(clock, since, closed, is_continued)
    scanned = scan(plan, sequences, signals, extent, restored)
    finishing, idle = finish_operators(plan, idle, scanned.hidden)
    mark_rows = mark_only_rows(plan, scanned, sequences, marks, extent) if is_only_slice else ()
    parts = write_parts(work, number, chain(scanned.tables, finishing, mark_rows))
    scanned, idle = keep_lookback(plan, scanned.settled(), idle, ordered.lookback)
    rejects = ordered.rejects + scanned.rejects
    seen = [sequences, scan_input.sequences] if len(rejects) else [sequences]
    snapshot = snapshot_slice(work, index, seen, scanned, idle, signals, extent)
    carried = (
        0 if restored is None else int((restored.restored_rows.sum()) - np.count_nonzero(restored.row_state.shown))
    )
    scan_counts = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held, carried=carried)
    scan_counts = replace(scan_counts, panes_hidden=scanned.hidden.count)
    shared = plan.takes_marks and not is_only_slice
    occupied = mark_bits(scanned.by_mark, len(marks)) if shared else b""
    reported_marks = marks if shared and index == 0 else None
    scan_counts = replace(scan_counts, rejected=rejects.by_reason)
    counts, written = scan_input.account.counts + scan_counts, scan_input.account.rejects
    return TaskReport(
        parts,
        counts,
        written,
        scanned.windows,
        falls_of(plan, sequences),
        occupied,
        reported_marks,
        snapshot,
        work.watermark,
        span=scan_input.account.span,
        stored_rejects=store_rejects(work, number, rejects),
    )


def write_parts(work: TaskContext, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
    """Write a part from its tables as they come; write no file where there is no row."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    if first is None:
        return ()
    if not work.conditions:
        return work.sink.write_parts(index, chain([first], filled))
    checked = CheckedTables(work.plan, work.conditions, chain([first], filled))
    return checked.on(work.sink.write_parts(index, checked))


def signals_of(work: TaskContext, chunks: Sequence[ShuffleBlock] | Sequence[MappedChunk]) -> Signals:
    """Return the signals of all chunks, or those that the global pass decided; every slice has the same."""
    plan = work.plan
    if plan.kind.has_watermark:
        earlier_advances = (
            [work.restore_point.advances]
            if work.restore_point is not None and work.restore_point.advances is not None
            else []
        )
        if work.decisions is not None:
            return watermark_signals(merged_watermarks(plan, [*earlier_advances, work.decisions.value.watermarks]))
        advances = [*earlier_advances, *(Watermarks(part.marks, part.level) for part in chunks)]
        return watermark_signals(
            merged_watermarks(plan, advances) if advances else no_watermarks(no_rows(work), plan.sort)
        )
    evictions = None if work.decisions is None else work.decisions.value.evictions
    marks = all_in_order([part.marks for part in chunks]) if chunks else no_marks(no_rows(work), plan.sort)
    return window_marks(marks, evictions)


def mark_bits(by_mark: Ints, marks: int) -> bytes:
    """Pack into bits at which of ``marks`` marks a pane came out."""
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
