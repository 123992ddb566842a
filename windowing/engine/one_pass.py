"""Chunks that stand in order, read once: each is scanned on from the one before.

Tasks read and summarise chunks side by side, and hand on where the window stands at the end of each; that takes no
time, so none waits long (a single-pass scan with look-back). It takes one machine, where tasks can wait for each other.
Whether all rows stand in order is known only in the end; where they do not, nothing of it counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from windowing.engine import cutting, relay
from windowing.engine.blobs import part_of
from windowing.engine.cutting import FIRST, Piece
from windowing.engine.exchange import read_chunk
from windowing.engine.keeping import keep_rows, kept_rows
from windowing.engine.reading import no_rows
from windowing.engine.relay import next_turn
from windowing.engine.resuming import Each, scan_rows
from windowing.engine.scanning import Report
from windowing.engine.slices import Chunk
from windowing.engine.standing import behind
from windowing.engine.work import Work
from windowing.errors import DataError
from windowing.marks import no_marks
from windowing.piece_scan import begun_before, chain_through, summarise
from windowing.pieces import Summary
from windowing.sequence import Sequences
from windowing.signals import window_marks
from windowing.tumbling_pieces import Stand, entered, passed


@dataclass(frozen=True, slots=True)
class _Baton:
    """Where the window stands behind a chunk. ``last``: what orders the last row, None before the first. ``kept``:
    chunks that have kept rows of the window that is open there, for those that follow."""

    stand: Stand
    last: pa.Table | None = None
    kept: tuple[int, ...] = ()


def scan_in_one_pass(work: Work, chunks: Sequence[Chunk], each: Each, folder: str) -> list[Report] | None:
    """Scan chunks one by one, each on from the one before; None where their rows do not stand in order.

    ``folder``: an empty one that all tasks see and can lock files in.
    """
    found = each("scan", partial(_scan_next, work, tuple(chunks), folder), range(len(chunks)))
    work.sink.forget()
    reports = [report for report in found if report is not None]
    if len(reports) == len(chunks):
        return reports
    for report in reports:
        if report.part is not None:
            work.sink.discard(report.part)
    return None


def _scan_next(work: Work, chunks: Sequence[Chunk], folder: str, _: int) -> Report | None:
    """Scan the chunk whose turn it is. None where one does not stand in order, or fails for its data: these might be
    no rows of one window at all, so who sorts them first shall say."""
    try:
        with next_turn(folder) as turn:
            return None if turn is None else _scanned(work, chunks, turn)
    except DataError:
        return None


def _scanned(work: Work, chunks: Sequence[Chunk], turn: relay.Turn) -> Report | None:
    read = read_chunk(work, chunks[turn.index])
    rows, is_last = read.sequences, turn.index == len(chunks) - 1
    if not (rows.pos[1:] > rows.pos[:-1]).all():
        return None
    signals = window_marks(no_marks(no_rows(work), work.plan.sort))
    summary = summarise(work.plan, rows, signals)[0] if len(rows) else Summary(0, None)
    received = turn.received()
    if received is None:
        return None
    before: _Baton = pickle.loads(received) if received else _Baton(Stand())
    if before.last is not None and behind(rows.rows.slice(0, 1), before.last).any():
        return None
    after = _behind(work, turn.index, before, rows, summary)
    turn.hand_on(pickle.dumps(after))
    entry = entered(before.stand, turn.index, summary, after.stand, is_last)
    begun = [kept_rows(work, _name(index)) for index in before.kept] if entry.tells else []
    piece = Piece(turn.index, FIRST, _name(turn.index), None)
    item = cutting.Turn(turn.index, piece, entry, (), (), None, None, is_last, None)
    scanned = scan_rows(work, item, begun_before(begun, rows), rows, signals)
    return replace(scanned, counts=scanned.counts + read.account.counts, rejects=read.account.rejects)


def _behind(work: Work, index: int, before: _Baton, rows: Sequences, summary: Summary) -> _Baton:
    """Go on to the end of a chunk, and keep its rows of the window that is open there."""
    if not len(rows):
        return before
    stand = passed(work.plan, before.stand, index, summary, lambda _, value: chain_through(work.plan, rows, value))
    last = pa.Table.from_batches([rows.rows.select(list(work.plan.sort)).take(pa.array([len(rows) - 1]))])
    if stand.closed:
        return _Baton(stand, last)
    assert stand.begun is not None
    begins_here = stand.begun[0] == index
    keep_rows(work, _name(index), part_of(rows, stand.begun[1] if begins_here else 0, len(rows)))
    return _Baton(stand, last, (index,) if begins_here else (*before.kept, index))


def _name(index: int) -> str:
    return f"open-{index:05d}"
