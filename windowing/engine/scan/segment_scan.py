"""Pieces of keys that are cut, scanned one by one: each goes on from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...columns.arrays import combined
from ...language.spec import Delta, Sliding, TimeInterval
from ...ports import Counts, RunTasks
from ...scan.scan import Bounds, falls_of
from ...scan.signals import Signals
from ...segments.delta_chains import End
from ...segments.segment_scan import Before, begun_before, chain_through, count_piece, held_before, scan_piece
from ...segments.summary import looks_into_pieces_before
from ...sequences.sequence import Sequences, taken
from ..exchange.blocks import part_of
from ..exchange.range_cuts import Cuts
from ..exchange.read_chunk import no_signals
from ..tasks.task import Work
from .segment_plan import Piece, Turn, chains_of, numbered, turns_of
from .segment_store import keep_numbers, kept_numbers, kept_piece, kept_signals
from .slice_scan import Report, bits_of, written


def scan_pieces(work: Work, cuts: Cuts, reports: Sequence[Report], each: RunTasks) -> list[Report]:
    """Scan what the slices have kept. ``each`` runs a function over items, in tasks or here."""
    pieces = [piece for report in reports for piece in report.pieces]
    clock = max((report.clock for report in reports if report.clock is not None), default=None)

    def follow(piece: Piece, value: Any) -> End:
        (end,) = each("follow", partial(_followed, work, value), [piece])
        return end

    chains = [turns_of(work.plan, cuts, chain, follow, clock) for chain in chains_of(cuts, pieces)]
    if looks_into_pieces_before(work.plan):
        counted = iter(each("count", partial(_count, work), [turn for turns in chains for turn in turns[:-1]]))
        chains = [numbered(turns, [next(counted) for _ in turns[:-1]]) for turns in chains]
    return each("scan", partial(_scan, work), [turn for turns in chains for turn in turns])


def scan_rows(work: Work, turn: Turn, before: Before, piece: Sequences, signals: Signals) -> Report:
    """Scan the rows of a piece behind those that it sees of pieces before it, and write its part of the result."""
    scanned = scan_piece(work.plan, turn.entry, before, piece, signals, Bounds(turn.clock), turn.is_last)
    part = written(work, turn.part, scanned.tables)
    counts = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held)
    occupied = bits_of(scanned.by_mark, len(signals)) if work.plan.takes_marks else b""
    falls = falls_of(work.plan, piece) + turn.entry.falls
    return Report(part, counts, (), scanned.windows, falls, occupied)


def _scan(work: Work, turn: Turn) -> Report:
    signals, piece = _signals(work, turn), kept_piece(work, turn.piece)
    before = _before(work, turn, signals, piece)
    if len(turn.since_then) and looks_into_pieces_before(work.plan):
        seen = [kept_numbers(work, f"{other.name}-shown") for other in turn.since_then]
        before = replace(before, shown=np.isin(before.rows.pos, np.concatenate(seen)))
    return scan_rows(work, turn, before, piece, signals)


def _count(work: Work, turn: Turn) -> int:
    """Count the windows that come out in a piece, and keep which rows they show that may be shown again."""
    signals, piece = _signals(work, turn), kept_piece(work, turn.piece)
    windows, seen = count_piece(work.plan, turn.entry, _before(work, turn, signals, piece), piece, signals)
    keep_numbers(work, f"{turn.piece.name}-shown", seen)
    return windows


def _followed(work: Work, value: Any, piece: Piece) -> End:
    return chain_through(work.plan, kept_piece(work, piece), value)


def _signals(work: Work, turn: Turn) -> Signals:
    """All that stand before the next piece."""
    plan = work.plan
    if plan.takes_marks or isinstance(plan.spec, TimeInterval):
        return kept_signals(work, not plan.takes_marks, turn.marks)
    return no_signals(work)


def _before(work: Work, turn: Turn, signals: Signals, piece: Sequences) -> Before:
    """The rows of pieces before that a piece sees."""
    if not looks_into_pieces_before(work.plan):
        begun = [(kept_piece(work, other), first) for other, first, _ in turn.before]
        return begun_before([part_of(rows, first, len(rows)) for rows, first in begun], piece)
    parts, ranks = [], [np.empty(0, np.int64)]
    for other, _, rows in turn.before:
        held = kept_numbers(work, f"{other.name}-held")
        parts.append(_rows_at(kept_piece(work, other), held))
        ranks.append(rows + held)
    before = held_before(work.plan, turn.entry, parts, np.concatenate(ranks), signals, piece)
    if turn.baseline is None:
        return before
    assert isinstance(work.plan.spec, Sliding)
    assert isinstance(work.plan.spec.trigger, Delta)
    other, row = turn.baseline
    column = combined(kept_piece(work, other).rows.column(work.plan.spec.trigger.attribute))
    return replace(before, baseline=column.slice(row, 1))


def _rows_at(piece: Sequences, picks: Any) -> Sequences:
    bounds = np.array([0, len(picks)])
    return replace(piece, bounds=bounds, rows=taken(piece.rows, picks), pos=piece.pos[picks])
