"""Pieces of keys that are cut, scanned one by one: each goes on from those before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from windowing.chains import End
from windowing.engine.cuts import Cuts
from windowing.engine.cutting import Piece, Turn, chains_of, turns_of
from windowing.engine.keeping import kept_marks, kept_piece
from windowing.engine.ports import Counts
from windowing.engine.reading import no_rows
from windowing.engine.scanning import Report, bits_of, written
from windowing.engine.work import Work
from windowing.marks import Marks, no_marks
from windowing.pieces import chain_through, scan_piece
from windowing.scan import Bounds
from windowing.sequence import Sequences
from windowing.signals import window_marks

Each: TypeAlias = Callable[[str, Callable[[Any], Any], Sequence[Any]], list[Any]]


def scan_pieces(work: Work, cuts: Cuts, reports: Sequence[Report], each: Each) -> list[Report]:
    """Scan what the slices have kept. ``each`` runs a function over items, in tasks or here."""
    pieces = [piece for report in reports for piece in report.pieces]
    clock = max((report.clock for report in reports if report.clock is not None), default=None)

    def follow(piece: Piece, value: Any) -> End:
        (end,) = each("follow", partial(followed, work, value), [piece])
        return end

    turns = [turn for chain in chains_of(cuts, pieces) for turn in turns_of(work.plan, cuts, chain, follow, clock)]
    return each("scan", partial(scan_turn, work), turns)


def followed(work: Work, value: Any, piece: Piece) -> End:
    """Follow the chain of a start value through a piece, row by row."""
    return chain_through(work.plan, kept_piece(work, piece.name, piece.key), value)


def scan_turn(work: Work, turn: Turn) -> Report:
    """Scan one piece and write its part of the result."""
    piece = kept_piece(work, turn.piece.name, turn.piece.key)
    before = [kept_piece(work, name, turn.piece.key, first) for name, first in turn.before]
    return scan_rows(work, turn, before, piece, _marks(work, turn))


def scan_rows(work: Work, turn: Turn, before: Sequence[Sequences], piece: Sequences, marks: Marks) -> Report:
    """Scan the rows of a piece behind those of the window that is open where it begins."""
    scanned = scan_piece(work.plan, turn.entry, before, piece, window_marks(marks), Bounds(turn.clock), turn.is_last)
    part = written(work, turn.part, scanned.tables)
    counts = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held)
    occupied = bits_of(scanned.by_mark, len(marks)) if work.plan.takes_marks else b""
    return Report(part, counts, (), scanned.windows, scanned.falls, occupied)


def _marks(work: Work, turn: Turn) -> Marks:
    """All marks that stand before the next piece."""
    if not work.plan.takes_marks:
        return no_marks(no_rows(work), work.plan.sort)
    marks = kept_marks(work)
    return marks if turn.marks is None else marks.take(np.arange(turn.marks))
