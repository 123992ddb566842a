"""Chunks that stand in order, on one machine: read once, each scanned on from the one before.

Tasks read chunks side by side, and hand on where the window stands at the end of each; that takes little time, so none
waits long (a single-pass scan with look-back). It takes one machine, where tasks can wait for each other.
Whether all rows stand in order is known only in the end; where they do not, nothing of it counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...errors import DataError
from ...language.spec import Tumbling
from ...ports import RunTasks
from ...segments.segment_scan import chain_through
from ...segments.summary import Summary
from ...segments.tumbling import Stand, entered, passed, tumbling_outline
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.map_side import read_chunk
from ..exchange.read_chunk import no_signals
from ..scan.segment_plan import FIRST, Piece, Turn
from ..scan.segment_store import keep_rows, kept_rows
from ..scan.slice_scan import Report
from ..tasks.sizing import Chunk
from ..tasks.task import Work
from .sorted_input import ends_of, follows, scan_chunk
from .task_relay import Leg, next_leg, shares


@dataclass(frozen=True, slots=True)
class _Baton:
    """Where the window stands behind a chunk. ``ends``: as `windowing.engine.presorted.sorted_input.ends_of`, of the
    last chunk that has rows; None where none has.
    """

    stand: Stand
    ends: pa.Table | None = None


def scan_in_one_pass(
    work: Work, chunks: Sequence[Chunk], each: RunTasks, folder: str, cores: int
) -> list[Report] | None:
    """Scan chunks one by one, each on from the one before; None where their rows do not stand in order.

    ``folder``: an empty one that all tasks see and can lock files in. ``cores``: how many tasks run at a time.
    """
    found = each("scan", partial(_scan_some, work, tuple(chunks), folder), shares(len(chunks), cores))
    work.sink.forget()
    reports = [report for some in found for report in some]
    if len(reports) == len(chunks):
        return reports
    work.sink.discard()
    return None


def _scan_some(work: Work, chunks: Sequence[Chunk], folder: str, count: int) -> list[Report]:
    """Scan so many chunks, one at a time, until one is given up."""
    reports: list[Report] = []
    while len(reports) < count and (report := _scan_next(work, chunks, folder)) is not None:
        reports.append(report)
    return reports


def _scan_next(work: Work, chunks: Sequence[Chunk], folder: str) -> Report | None:
    """Scan the chunk whose turn it is. None where one does not stand in order, or fails for its data: these might be
    no rows of one window at all, so who sorts them first shall say."""
    try:
        with next_leg(folder) as leg:
            if leg is None or leg.index >= len(chunks):  # a task tried again: the chunk of its first try is lost
                return None
            return _scanned(work, chunks[leg.index], leg, leg.index == len(chunks) - 1)
    except DataError:
        return None


def _scanned(work: Work, chunk: Chunk, leg: Leg, is_last: bool) -> Report | None:
    read = read_chunk(work, chunk)
    rows = read.sequences
    if not rows.arrived_in_order:
        return None
    summary = _outline(work, rows)
    received = leg.received()
    if received is None:
        return None
    before: _Baton = pickle.loads(received) if received else _Baton(Stand())
    after = _behind(work, leg.index, before, rows, summary)
    if after is None:
        return None
    leg.hand_on(pickle.dumps(after))
    entry = entered(before.stand, leg.index, summary, after.stand, is_last)
    begun = [kept_rows(work, _name(index)) for index, _ in entry.before]
    piece = Piece(leg.index, FIRST, _name(leg.index), None)
    return scan_chunk(work, Turn(leg.index, piece, entry, is_last), begun, read)


def _outline(work: Work, rows: Sequences) -> Summary:
    assert isinstance(work.plan.spec, Tumbling)
    return tumbling_outline(work.plan, work.plan.spec, rows, no_signals(work).marks) if len(rows) else Summary(0, None)


def _behind(work: Work, index: int, before: _Baton, rows: Sequences, summary: Summary) -> _Baton | None:
    """Go on to the end of a chunk, and keep its rows of the window that is open there; None where it does not stand
    behind what came before."""
    after = before
    if len(rows):
        ends = ends_of(work, rows)
        if before.ends is not None and not follows(ends, before.ends):
            return None
        stand = passed(work.plan, before.stand, index, summary, lambda _, value: chain_through(work.plan, rows, value))
        after = _Baton(stand, ends)
    if after.stand.begun is not None and not after.stand.closed:
        piece, first = after.stand.begun
        keep_rows(work, _name(index), part_of(rows, first if piece == index else 0, len(rows)))
    return after


def _name(index: int) -> str:
    return f"open-{index:05d}"
