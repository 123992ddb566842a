"""The reduce side: merge the blobs of a slice into sequences, scan them, write a part file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowing.columns import Ints
from windowing.engine.blobs import decode
from windowing.engine.exchange import Read, Work, read_chunk
from windowing.engine.ports import Account, Counts, Part
from windowing.engine.slices import Chunk
from windowing.marks import Marks, in_order
from windowing.scan import Scanned, empty_mark_rows, empty_tick_rows, scan
from windowing.sequence import Sequences, merge, one_batch


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
    marks = _all_marks([blob.marks for blob in parts])
    sequences = merge([blob.sequences for blob in parts])
    return _finish(work, index, alone, sequences, marks, max(clocks, default=None), account)


def scan_directly(work: Work, chunks: Sequence[Chunk]) -> Report:
    """The short way of a small input: read, merge and scan in one task."""
    reads: list[Read] = [read_chunk(work, chunk) for chunk in chunks]
    clocks = [read.clock for read in reads if read.clock is not None]
    marks = _all_marks([read.marks for read in reads])
    account = sum((read.account for read in reads), Account())
    sequences = merge([read.sequences for read in reads])
    return _finish(work, 0, True, sequences, marks, max(clocks, default=None), account)


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
    marks: Marks,
    clock: int | float | None,
    account: Account,
) -> Report:
    scanned = scan(work.plan, sequences, marks, clock)
    table = scanned.table
    if alone and not work.plan.plain:
        table = _with_mark_rows(work, scanned, sequences, marks, clock)
    part = work.sink.write_part(index, table) if table.num_rows else None
    counts = account.counts + Counts(windowed=scanned.windowed, dropped_at_end=scanned.dropped)
    shared = work.plan.takes_marks and not alone
    occupied = _bits(scanned.by_mark, len(marks)) if shared else b""
    told = marks if shared and index == 0 else None
    return Report(part, counts, account.rejects, scanned.windows, scanned.falls, occupied, told)


def _with_mark_rows(
    work: Work, scanned: Scanned, sequences: Sequences, marks: Marks, clock: int | float | None
) -> pa.Table:
    """The scan's table, and after it the mark-only rows, which a single slice can tell by itself."""
    if work.plan.takes_marks:
        more = empty_mark_rows(work.plan, marks, scanned.by_mark)
    elif work.plan.empty == "mark":
        more = empty_tick_rows(work.plan, sequences, clock)
    else:
        return scanned.table
    return pa.concat_tables([scanned.table.cast(work.plan.schema), more.cast(work.plan.schema)])


def _all_marks(marks: Sequence[Marks]) -> Marks:
    rows = one_batch(pa.Table.from_batches([m.rows for m in marks]))
    pos, file = (np.concatenate([getattr(m, name) for m in marks]) for name in ("pos", "file"))
    return in_order(Marks(rows, pos, file))


def _bits(by_mark: Ints, marks: int) -> bytes:
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
