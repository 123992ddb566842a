"""Inputs whose rows stand in order already: their chunks are the slices, and no row is moved.

One pass over the few columns that the window itself looks at tells whether it is so, and summarises each chunk. Then
each chunk is read where it is and scanned on from the one before; the rows of a window that is open at its beginning
are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from windowing.chains import End
from windowing.columns import combined
from windowing.engine.blobs import part_of
from windowing.engine.cuts import PLACE, Samples
from windowing.engine.cutting import FIRST, Piece, Turn, turns_of
from windowing.engine.exchange import read_chunk
from windowing.engine.reading import no_rows, read_rows, sequences_of
from windowing.engine.resuming import Each, scan_rows
from windowing.engine.scanning import Report
from windowing.engine.slices import Chunk
from windowing.engine.standing import behind
from windowing.engine.work import Work
from windowing.errors import InputError
from windowing.marks import no_marks
from windowing.piece_scan import begun_before, chain_through, joined, summarise
from windowing.pieces import Summary, looks_into_pieces_before
from windowing.plan import panes_only
from windowing.sequence import Sequences, one_batch, order_of
from windowing.signals import window_marks


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first pass tells of a chunk. ``in_order``: whether its rows stand in their total order.

    ``edges``: the order values of its first and last row, and ``summary``; None where it has no row that is kept.
    """

    in_order: bool
    edges: pa.Table | None = None
    summary: Summary | None = None


def may_be_in_order(work: Work, samples: Samples) -> bool:
    """Whether it is worth a look: no key, a format that gives single columns, and some rows that stand in order."""
    plan, rows = work.plan, samples.rows
    if plan.key or plan.takes_marks or looks_into_pieces_before(plan) or not work.source.columnar or not rows.num_rows:
        return False
    ascending = order_of([combined(rows.column(name)) for name in (*plan.sort, PLACE)])
    return bool((ascending[1:] > ascending[:-1]).all())


def scan_in_order(work: Work, chunks: Sequence[Chunk], each: Each) -> list[Report] | None:
    """Scan chunks one by one, each on from the one before; None where their rows do not stand in order."""
    surveys: list[Survey] = each("look ahead", partial(survey, work), chunks)
    if not _is_in_order(surveys):
        return None
    told = {
        str(i): (Piece(chunk.index, FIRST, str(i), None), found.summary)
        for i, (chunk, found) in enumerate(zip(chunks, surveys, strict=True))
        if found.summary is not None
    }

    def follow(piece: Piece, value: Any) -> End:
        (end,) = each("follow", partial(_followed, work, value), [chunks[int(piece.name)]])
        return end

    turns = {turn.piece.name: turn for turn in turns_of(work.plan, None, list(told.values()), follow, None)}
    items = []
    for i, chunk in enumerate(chunks):
        turn = turns.get(str(i))
        before = () if turn is None else turn.before
        spans = tuple((chunks[int(piece.name)], told[piece.name][1].rows - first) for piece, first, _ in before)
        items.append(_Item(chunk, turn, spans))
    return each("scan", partial(_scan, work), items)


def survey(work: Work, chunk: Chunk) -> Survey:
    """Look at the columns of a chunk that the window looks at."""
    work = replace(work, plan=panes_only(work.plan))
    sequences = _sequences(work, chunk)
    if not len(sequences):
        return Survey(True)
    in_order = bool((sequences.pos[1:] > sequences.pos[:-1]).all())
    edges = sequences.rows.select(list(work.plan.sort)).take(pa.array([0, len(sequences) - 1]))
    summary, _ = summarise(work.plan, sequences, window_marks(no_marks(sequences.rows, work.plan.sort)))
    return Survey(in_order, pa.Table.from_batches([edges]), summary)


@dataclass(frozen=True, slots=True)
class _Item:
    """A chunk, what is to be scanned of it, and the chunks before of which so many rows at their ends belong to it."""

    chunk: Chunk
    turn: Turn | None
    before: tuple[tuple[Chunk, int], ...]


def _is_in_order(surveys: Sequence[Survey]) -> bool:
    edges = [survey.edges for survey in surveys if survey.edges is not None]
    firsts_and_lasts = [(after.slice(0, 1), before.slice(1, 1)) for before, after in pairwise(edges)]
    falls = any(behind(one_batch(first), last).any() for first, last in firsts_and_lasts)
    return not falls and all(survey.in_order for survey in surveys)


def _scan(work: Work, item: _Item) -> Report:
    read = read_chunk(work, item.chunk)
    account = read.account
    report = Report(None, account.counts, account.rejects, 0, 0)
    if item.turn is None:
        return report
    rows = read.sequences
    before = begun_before([_last_rows(work, *told) for told in item.before if item.turn.entry.tells], rows)
    scanned = scan_rows(work, item.turn, before, rows, window_marks(no_marks(no_rows(work), work.plan.sort)))
    return replace(scanned, counts=scanned.counts + account.counts, rejects=account.rejects)


def _last_rows(work: Work, chunk: Chunk, rows: int) -> Sequences:
    """Read the last rows of a chunk that are kept, and no more that can be left out."""
    found: list[Sequences] = []
    for split in reversed(chunk.splits):
        for part in reversed(work.source.parts_of(split)):
            found.insert(0, _sequences(work, replace(chunk, splits=(part,))))
            rows -= len(found[0])
            if rows <= 0:
                return joined([part_of(found[0], -rows, len(found[0])), *found[1:]])
    raise InputError("the input has fewer rows than when the run began", "run it again when nothing writes to it")


def _followed(work: Work, value: Any, chunk: Chunk) -> End:
    work = replace(work, plan=panes_only(work.plan))
    return chain_through(work.plan, _sequences(work, chunk), value)


def _sequences(work: Work, chunk: Chunk) -> Sequences:
    read = read_rows(work, chunk)
    return sequences_of(work, read.rows, read.pos, read.reasons)
