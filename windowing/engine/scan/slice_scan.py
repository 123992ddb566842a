"""The reduce side: merge the blobs of a slice into sequences, scan them, write a part file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from ...clock.watermark import NO_LEVEL, Watermarks
from ...columns.arrays import Clock, Ints
from ...language.spec import TimeInterval
from ...ports import Account, Counts, Held, Part
from ...scan.lateness import is_ordered_by_time, lateness_of, no_watermarks, watermarks_of
from ...scan.scan import Bounds, Scanned, empty_mark_rows, empty_tick_rows, falls_of, scan
from ...scan.signals import Signals, advances, window_marks
from ...sequences.marks import Marks, all_in_order, no_marks
from ...sequences.sequence import Sequences, merge
from ...state.window_state import Carry
from ..exchange.blocks import Blob, part_of, read
from ..exchange.global_pass import decided, here
from ..exchange.map_side import Read, read_chunk
from ..exchange.range_cuts import Cuts
from ..exchange.read_chunk import no_rows, nothing
from ..exchange.state_blocks import carried, decoded, is_carry, left_behind, with_carry
from ..tasks.sizing import Chunk
from ..tasks.snapshot import NOTHING_LEFT, Left
from ..tasks.task import Work
from .segment_plan import FIRST, LAST, WHOLE, Told, part_number, sides
from .segment_store import keep_piece, keep_signals


@dataclass(frozen=True, slots=True)
class Report:
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
    left: Left = NOTHING_LEFT
    stands: Clock | None = None
    pieces: tuple[Told, ...] = ()
    clock: Clock | None = None


def scan_slice(work: Work, index: int, cuts: Cuts | None, blobs: Sequence[pa.Buffer]) -> Report:
    """Scan the whole keys of slice ``index`` from its blobs, which come in any order, and keep its pieces of others."""
    carry = decoded(work, [data for data in blobs if is_carry(data)])
    parts = sorted((read(data) for data in blobs if not is_carry(data)), key=lambda blob: blob.chunk)
    if not parts and carry is None:
        return Report(None, Counts(), (), 0, 0)
    account = sum((blob.account for blob in parts if blob.account), Account())
    clocks = [blob.clock for blob in parts if blob.clock is not None]
    sequences = merge([blob.sequences for blob in parts]) if parts else nothing(work)
    signals = _signals(work, parts)
    low, high = sides(sequences, cuts, index)
    edges = {FIRST: part_of(sequences, 0, low), LAST: part_of(sequences, high, len(sequences))}
    pieces = [keep_piece(work, index, side, piece, signals) for side, piece in edges.items() if len(piece)]
    if pieces:
        sequences = part_of(sequences, low, high)
        if work.plan.takes_marks or signals.watermarks is not None:
            keep_signals(work, signals)
    number = part_number(cuts, index, WHOLE)
    report = _finish(work, index, number, cuts is None, _Found(sequences, signals, clocks, account, carry))
    return replace(report, pieces=tuple(pieces), clock=max(clocks, default=None))


def scan_directly(work: Work, chunks: Sequence[Chunk]) -> Report:
    """The short way of a small input: read, merge and scan in one task."""
    carry = carried(work)
    if isinstance(work.plan.spec, TimeInterval):
        work, chunks = decided(work, chunks, here, Held)
    reads = [read_chunk(work, chunk) for chunk in chunks]
    clocks = [read.clock for read in reads if read.clock is not None]
    account = sum((read.account for read in reads), Account())
    sequences = merge([read.sequences for read in reads]) if reads else nothing(work)
    return _finish(work, 0, 0, True, _Found(sequences, _signals(work, reads), clocks, account, carry))


def empty_marks_of(work: Work, reports: Sequence[Report]) -> pa.Table:
    """Mark-only rows for the marks that found rows in no slice."""
    marks = next(report.marks for report in reports if report.marks is not None)
    occupied = np.zeros(-(-len(marks) // 8), np.uint8)
    for report in reports:
        bits = np.frombuffer(report.occupied, np.uint8)  # pieces look at the first marks only
        occupied[: len(bits)] |= bits
    return empty_mark_rows(work.plan, marks, np.flatnonzero(np.unpackbits(occupied)))


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to scan: new rows with their signals, clocks and account; and what was carried."""

    sequences: Sequences
    signals: Signals
    clocks: list[Clock]
    account: Account
    carry: Carry | None


def _finish(work: Work, index: int, number: int, alone: bool, found: _Found) -> Report:
    start, signals, plan = work.start, found.signals, work.plan
    marks = signals.marks
    since = start.clock if start is not None else None
    clock = max([*found.clocks, *([] if since is None else [since])], default=None)
    before = None if start is None else start.advances
    sequences, past, idle = with_carry(plan, found.carry, found.sequences, signals, before, since)
    dead = _dead(work, sequences, signals)
    bounds = Bounds(clock, since, dead, work.carry is not None)
    scanned = scan(plan, sequences, signals, bounds, past)
    left = left_behind(work, index, sequences, scanned, idle, signals, bounds)
    tables = chain(scanned.tables, _mark_rows(work, scanned, sequences, marks, bounds) if alone else ())
    part = written(work, number, tables)
    carried = 0 if past is None else int((past.held.sum()) - np.count_nonzero(past.flags.shown))
    own = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held, carried=carried)
    shared = plan.takes_marks and not alone
    occupied = bits_of(scanned.by_mark, len(marks)) if shared else b""
    told = marks if shared and index == 0 else None
    counts, rejects = found.account.counts + own, found.account.rejects
    return Report(part, counts, rejects, scanned.windows, falls_of(plan, sequences), occupied, told, left, work.stands)


def _dead(work: Work, sequences: Sequences, signals: Signals) -> int:
    """Of event-time panes the last that no row can get into any more, where the run ends."""
    if signals.watermarks is None or work.carry is None:
        return NO_LEVEL
    if is_ordered_by_time(work.plan):
        return int(signals.watermarks.level[-1]) if len(signals) else NO_LEVEL
    return NO_LEVEL if work.stands is None else lateness_of(work.plan, sequences.rows).dead(work.stands)


def written(work: Work, index: int, tables: Iterable[pa.Table]) -> Part | None:
    """Write a part as its tables come, or none where no row comes."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    return None if first is None else work.sink.write_part(index, chain([first], filled))


def _mark_rows(work: Work, scanned: Scanned, sequences: Sequences, marks: Marks, bounds: Bounds) -> Iterator[pa.Table]:
    """Yield the mark-only rows that a single slice can tell by itself."""
    if work.plan.options.plain:
        return
    if work.plan.takes_marks:
        yield empty_mark_rows(work.plan, marks, scanned.by_mark)
    elif work.plan.options.empty == "mark":
        yield empty_tick_rows(work.plan, sequences, bounds)


def _signals(work: Work, parts: Sequence[Blob] | Sequence[Read]) -> Signals:
    """What all chunks, or the ordered pass before, tell every slice."""
    plan = work.plan
    if isinstance(plan.spec, TimeInterval):
        before = [work.start.advances] if work.start is not None and work.start.advances is not None else []
        if work.verdict is not None:
            return advances(watermarks_of(plan, [*before, work.verdict.value.watermarks]))
        told = [*before, *(Watermarks(part.marks, part.level) for part in parts)]
        return advances(watermarks_of(plan, told) if told else no_watermarks(no_rows(work), plan.sort))
    evictions = None if work.verdict is None else work.verdict.value.evictions
    marks = all_in_order([part.marks for part in parts]) if parts else no_marks(no_rows(work), plan.sort)
    return window_marks(marks, evictions)


def bits_of(by_mark: Ints, marks: int) -> bytes:
    """Pack which of so many marks brought a pane out: a bit each."""
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
