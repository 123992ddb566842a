"""The reduce side: merge the blobs of a slice into sequences, scan them, write a part file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from ...clock.watermark import NO_LEVEL, Watermarks
from ...columns.arrays import ClockValue, Ints
from ...language.spec import TimeInterval
from ...ports import ChunkAccount, Counts, LocalBroadcast, Part
from ...scan.lateness import is_ordered_by_time, lateness_of, merged_watermarks, no_watermarks
from ...scan.scan import RunExtent, ScanResult, empty_mark_rows, empty_tick_rows, falls_of, scan
from ...scan.signals import Signals, watermark_signals, window_marks
from ...sequences.marks import Marks, all_in_order, no_marks
from ...sequences.sequence import Sequences, merge
from ...state.window_state import WindowState
from ..exchange.blocks import ShuffleBlock, part_of, read
from ..exchange.global_pass import run_global_pass, run_locally
from ..exchange.map_side import MappedChunk, read_chunk
from ..exchange.range_cuts import SliceBounds
from ..exchange.read_chunk import no_rows, nothing
from ..exchange.state_blocks import decode_state, is_state, load_window_state, restore_rows, snapshot_slice
from ..tasks.sizing import Chunk
from ..tasks.snapshot import EMPTY_SNAPSHOT, TaskSnapshot
from ..tasks.task import TaskContext
from .segment_plan import FIRST, LAST, WHOLE, SummarisedSegment, part_number, whole_key_rows
from .segment_store import write_segment, write_signals


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a scan task tells the driver: bounded, whatever the rows were, except for its view of the marks.

    ``part``: the file written, or None where nothing came out; ``rejects``: files of rejects of its chunks.
    ``left``: what is there for the next run, and ``stands``: where it found the watermark, if nobody had told it.
    ``occupied``: which marks brought a pane out, packed to bits, and ``marks`` (of one slice only): for
    `empty_marks_of`, where several slices share the marks. ``pieces``: of keys that are cut, kept and yet to be
    scanned, and ``clock``: where the one clock stands at the end.
    """

    part: Part | None
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


def scan_slice(work: TaskContext, index: int, cuts: SliceBounds | None, blobs: Sequence[pa.Buffer]) -> TaskReport:
    """Scan the whole keys of slice ``index`` from its blobs, which come in any order, and keep its pieces of others."""
    carry = decode_state(work, [data for data in blobs if is_state(data)])
    parts = sorted((read(data) for data in blobs if not is_state(data)), key=lambda blob: blob.chunk)
    if not parts and carry is None:
        return TaskReport(None, Counts(), (), 0, 0)
    account = sum((blob.account for blob in parts if blob.account), ChunkAccount())
    clocks = [blob.clock for blob in parts if blob.clock is not None]
    sequences = merge([blob.sequences for blob in parts]) if parts else nothing(work)
    signals = _signals(work, parts)
    low, high = whole_key_rows(sequences, cuts, index)
    edges = {FIRST: part_of(sequences, 0, low), LAST: part_of(sequences, high, len(sequences))}
    pieces = [write_segment(work, index, side, piece, signals) for side, piece in edges.items() if len(piece)]
    if pieces:
        sequences = part_of(sequences, low, high)
        if work.plan.takes_marks or signals.watermarks is not None:
            write_signals(work, signals)
    number = part_number(cuts, index, WHOLE)
    report = _finish(work, index, number, cuts is None, _ScanInput(sequences, signals, clocks, account, carry))
    return replace(report, segments=tuple(pieces), clock=max(clocks, default=None))


def scan_directly(work: TaskContext, chunks: Sequence[Chunk]) -> TaskReport:
    """The short way of a small input: read, merge and scan in one task."""
    carry = load_window_state(work)
    if isinstance(work.plan.spec, TimeInterval):
        work, chunks = run_global_pass(work, chunks, run_locally, LocalBroadcast)
    reads = [read_chunk(work, chunk) for chunk in chunks]
    clocks = [read.clock for read in reads if read.clock is not None]
    account = sum((read.account for read in reads), ChunkAccount())
    sequences = merge([read.sequences for read in reads]) if reads else nothing(work)
    return _finish(work, 0, 0, True, _ScanInput(sequences, _signals(work, reads), clocks, account, carry))


def empty_marks_of(work: TaskContext, reports: Sequence[TaskReport]) -> pa.Table:
    """Mark-only rows for the marks that found rows in no slice."""
    marks = next(report.marks for report in reports if report.marks is not None)
    occupied = np.zeros(-(-len(marks) // 8), np.uint8)
    for report in reports:
        bits = np.frombuffer(report.occupied, np.uint8)  # pieces look at the first marks only
        occupied[: len(bits)] |= bits
    return empty_mark_rows(work.plan, marks, np.flatnonzero(np.unpackbits(occupied)))


@dataclass(frozen=True, slots=True)
class _ScanInput:
    """What there is to scan: new rows with their signals, clocks and account; and what was carried."""

    sequences: Sequences
    signals: Signals
    clocks: list[ClockValue]
    account: ChunkAccount
    state: WindowState | None


def _finish(work: TaskContext, index: int, number: int, alone: bool, found: _ScanInput) -> TaskReport:
    start, signals, plan = work.restore_point, found.signals, work.plan
    marks = signals.marks
    since = start.clock if start is not None else None
    clock = max([*found.clocks, *([] if since is None else [since])], default=None)
    before = None if start is None else start.advances
    sequences, past, idle = restore_rows(plan, found.state, found.sequences, signals, before, since)
    dead = _last_closed(work, sequences, signals)
    bounds = RunExtent(clock, since, dead, work.state_files is not None)
    scanned = scan(plan, sequences, signals, bounds, past)
    left = snapshot_slice(work, index, sequences, scanned, idle, signals, bounds)
    tables = chain(scanned.tables, _mark_rows(work, scanned, sequences, marks, bounds) if alone else ())
    part = write_part(work, number, tables)
    carried = 0 if past is None else int((past.restored_rows.sum()) - np.count_nonzero(past.row_state.shown))
    own = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held, carried=carried)
    shared = plan.takes_marks and not alone
    occupied = bits_of(scanned.by_mark, len(marks)) if shared else b""
    told = marks if shared and index == 0 else None
    counts, rejects = found.account.counts + own, found.account.rejects
    return TaskReport(
        part, counts, rejects, scanned.windows, falls_of(plan, sequences), occupied, told, left, work.watermark
    )


def _last_closed(work: TaskContext, sequences: Sequences, signals: Signals) -> int:
    """Of event-time panes the last that no row can get into any more, where the run ends."""
    if signals.watermarks is None or work.state_files is None:
        return NO_LEVEL
    if is_ordered_by_time(work.plan):
        return int(signals.watermarks.level[-1]) if len(signals) else NO_LEVEL
    return NO_LEVEL if work.watermark is None else lateness_of(work.plan, sequences.rows).last_closed(work.watermark)


def write_part(work: TaskContext, index: int, tables: Iterable[pa.Table]) -> Part | None:
    """Write a part as its tables come, or none where no row comes."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    return None if first is None else work.sink.write_part(index, chain([first], filled))


def _mark_rows(
    work: TaskContext, scanned: ScanResult, sequences: Sequences, marks: Marks, bounds: RunExtent
) -> Iterator[pa.Table]:
    """Yield the mark-only rows that a single slice can tell by itself."""
    if work.plan.options.plain:
        return
    if work.plan.takes_marks:
        yield empty_mark_rows(work.plan, marks, scanned.by_mark)
    elif work.plan.options.empty == "mark":
        yield empty_tick_rows(work.plan, sequences, bounds)


def _signals(work: TaskContext, parts: Sequence[ShuffleBlock] | Sequence[MappedChunk]) -> Signals:
    """What all chunks, or the ordered pass before, tell every slice."""
    plan = work.plan
    if isinstance(plan.spec, TimeInterval):
        before = (
            [work.restore_point.advances]
            if work.restore_point is not None and work.restore_point.advances is not None
            else []
        )
        if work.decisions is not None:
            return watermark_signals(merged_watermarks(plan, [*before, work.decisions.value.watermarks]))
        told = [*before, *(Watermarks(part.marks, part.level) for part in parts)]
        return watermark_signals(merged_watermarks(plan, told) if told else no_watermarks(no_rows(work), plan.sort))
    evictions = None if work.decisions is None else work.decisions.value.evictions
    marks = all_in_order([part.marks for part in parts]) if parts else no_marks(no_rows(work), plan.sort)
    return window_marks(marks, evictions)


def bits_of(by_mark: Ints, marks: int) -> bytes:
    """Pack which of so many marks brought a pane out: a bit each."""
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
