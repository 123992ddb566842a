"""The reduce side: merge the blobs of a slice into sequences, scan them, write a part file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from windowing.columns import Ints
from windowing.engine.blobs import Blob, decode
from windowing.engine.exchange import Read, read_chunk
from windowing.engine.ports import Account, Counts, Part
from windowing.engine.shared import Held
from windowing.engine.slices import Chunk
from windowing.engine.verdict import decided, here
from windowing.engine.work import Work
from windowing.judgement import watermarks_of
from windowing.marks import Marks, all_in_order
from windowing.scan import Bounds, Scanned, empty_mark_rows, empty_tick_rows, scan
from windowing.sequence import Sequences, merge
from windowing.signals import Signals, advances, window_marks
from windowing.spec import TimeInterval
from windowing.watermark import Watermarks


@dataclass(frozen=True, slots=True)
class Report:
    """What a scan task tells the driver: bounded, whatever the rows were, except for its view of the marks.

    ``part``: the file written, or None where nothing came out; ``rejects``: files of rejects of its chunks.
    ``occupied``: which marks brought a pane out, packed to bits, and ``marks`` (of one slice only): for
    `empty_marks_of`, where several slices share the marks.
    """

    part: Part | None
    counts: Counts
    rejects: tuple[Part, ...]
    windows: int
    falls: int
    occupied: bytes = b""
    marks: Marks | None = None


def scan_slice(work: Work, index: int, alone: bool, blobs: Iterable[bytes]) -> Report:
    """Scan slice ``index`` from its blobs, which come in any order. ``alone``: it is the only slice."""
    parts = sorted((decode(data) for data in blobs), key=lambda blob: blob.chunk)
    if not parts:
        return Report(None, Counts(), (), 0, 0)
    account = sum((blob.account for blob in parts if blob.account), Account())
    clocks = [blob.clock for blob in parts if blob.clock is not None]
    signals = _signals(work, parts)
    sequences = merge([blob.sequences for blob in parts])
    return _finish(work, index, alone, sequences, signals, max(clocks, default=None), account)


def scan_directly(work: Work, chunks: Sequence[Chunk]) -> Report:
    """The short way of a small input: read, merge and scan in one task."""
    if isinstance(work.plan.spec, TimeInterval):
        work, chunks = decided(work, chunks, here, Held)
    reads = [read_chunk(work, chunk) for chunk in chunks]
    clocks = [read.clock for read in reads if read.clock is not None]
    signals = _signals(work, reads)
    account = sum((read.account for read in reads), Account())
    sequences = merge([read.sequences for read in reads])
    return _finish(work, 0, True, sequences, signals, max(clocks, default=None), account)


def empty_marks_of(work: Work, reports: Sequence[Report]) -> pa.Table:
    """Mark-only rows for the marks that found rows in no slice."""
    marks = next(report.marks for report in reports if report.marks is not None)
    bits = [np.frombuffer(report.occupied, np.uint8) for report in reports if report.occupied]
    by_mark = np.flatnonzero(np.unpackbits(np.bitwise_or.reduce(bits))) if bits else np.empty(0, np.int64)
    return empty_mark_rows(work.plan, marks, by_mark)


def _finish(
    work: Work,
    index: int,
    alone: bool,
    sequences: Sequences,
    signals: Signals,
    clock: int | float | None,
    account: Account,
) -> Report:
    marks = signals.marks
    scanned = scan(work.plan, sequences, signals, Bounds(clock))
    tables = chain(scanned.tables, _mark_rows(work, scanned, sequences, marks, clock) if alone else ())
    part = _written(work, index, tables)
    counts = account.counts + Counts(0, scanned.windowed, scanned.filtered, scanned.dropped)
    shared = work.plan.takes_marks and not alone
    occupied = _bits(scanned.by_mark, len(marks)) if shared else b""
    told = marks if shared and index == 0 else None
    return Report(part, counts, account.rejects, scanned.windows, scanned.falls, occupied, told)


def _written(work: Work, index: int, tables: Iterable[pa.Table]) -> Part | None:
    """Write a part as its tables come, or none where no row comes."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    return None if first is None else work.sink.write_part(index, chain([first], filled))


def _mark_rows(
    work: Work, scanned: Scanned, sequences: Sequences, marks: Marks, clock: int | float | None
) -> Iterator[pa.Table]:
    """Yield the mark-only rows that a single slice can tell by itself."""
    if work.plan.options.plain:
        return
    if work.plan.takes_marks:
        yield empty_mark_rows(work.plan, marks, scanned.by_mark)
    elif work.plan.options.empty == "mark":
        yield empty_tick_rows(work.plan, sequences, Bounds(clock))


def _signals(work: Work, parts: Sequence[Blob] | Sequence[Read]) -> Signals:
    """What all chunks, or the ordered pass before, tell every slice."""
    if isinstance(work.plan.spec, TimeInterval):
        if work.verdict is not None:
            return advances(work.verdict.value.watermarks)
        return advances(watermarks_of(work.plan, [Watermarks(part.marks, part.level) for part in parts]))
    evictions = None if work.verdict is None else work.verdict.value.evictions
    return window_marks(all_in_order([part.marks for part in parts]), evictions)


def _bits(by_mark: Ints, marks: int) -> bytes:
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
