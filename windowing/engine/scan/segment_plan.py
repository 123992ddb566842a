"""Keys that are cut: who holds which piece of them, and what each piece goes on from.

The task that merges a slice keeps its pieces where any task can read them, and tells a summary of each. The driver
composes the summaries, chain after chain; then each piece is scanned by a task of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...columns.arrays import ClockValue
from ...planning.plan import Plan
from ...segments.delta_chains import Exit
from ...segments.segment_scan import entry_states
from ...segments.summary import EntryState, SegmentSummary
from ...sequences.sequence import Sequences
from ..exchange.range_cuts import SliceBounds, same_key

FIRST, WHOLE, LAST = range(3)
"""Where in its slice a piece is, or what is between the two."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Where a piece is. ``index``: of its slice; ``side``: where in that; ``name``: under which its rows are kept;
    ``key``: one row, None where there is no key."""

    index: int
    side: int
    name: str
    key: pa.Table | None


SummarisedSegment: TypeAlias = tuple[Segment, SegmentSummary]
"""A piece as its task tells it. Tasks after that are not told the summary, which may be much larger than all else."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A piece and all that it is scanned with. ``part``: the number of its part of the result. ``is_last``: no piece is
    behind it. ``before``: pieces that it shows rows of, as `windowing.segments.summary.Entry.before`, and how many rows
    its key has before each; ``since_then``: all pieces from the first of these on; ``baseline``: a piece and a row.
    ``marks``: how many signals stand before the piece behind it, None: all that there are. ``clock``: as in
    `windowing.scan.scan.RunExtent`.
    """

    part: int
    segment: Segment
    entry: EntryState
    is_last: bool
    before: tuple[tuple[Segment, int, int], ...] = ()
    since_then: tuple[Segment, ...] = ()
    baseline: tuple[Segment, int] | None = None
    marks: int | None = None
    clock: ClockValue | None = None


Follow: TypeAlias = Callable[[Segment, Any], Exit]
"""Follows the chain of a start value through a piece, where its summary does not tell."""


def part_number(cuts: SliceBounds | None, index: int, side: int) -> int:
    """Return the number of a part of the result: they stand in the order of keys and rows."""
    return index if cuts is None or not cuts.inside.any() else 3 * index + side


def whole_key_rows(sequences: Sequences, cuts: SliceBounds | None, index: int) -> tuple[int, int]:
    """Return the rows ``[low, high)`` of the keys of a slice that are whole; the others are of pieces.

    Where one key fills the slice and is cut at both ends, it is one piece, and ``low`` and ``high`` its end.
    """
    rows, bounds, keys = len(sequences), sequences.bounds, sequences.keys
    if cuts is None or not rows:
        return 0, rows
    begins = index > 0 and bool(cuts.inside[index - 1]) and same_key(keys, 0, cuts, index - 1)
    last = len(bounds) - 2
    ends = index < len(cuts) and bool(cuts.inside[index]) and same_key(keys, last, cuts, index)
    low = int(bounds[1]) if begins else 0
    return low, max(low, int(bounds[last])) if ends else rows


def segments_by_key(cuts: SliceBounds, pieces: Sequence[SummarisedSegment]) -> list[list[SummarisedSegment]]:
    """Return the pieces of each key that is cut, in order."""
    by_place = {(piece.index, piece.side): (piece, summary) for piece, summary in pieces}
    chains: list[list[SummarisedSegment]] = []
    for cut in range(len(cuts)):
        if not cuts.inside[cut]:
            continue
        goes_on = cut > 0 and bool(cuts.inside[cut - 1]) and same_key(cuts.keys, cut - 1, cuts, cut)
        if not goes_on:
            chains.append([])
            chains[-1] += [by_place[cut, LAST]] if (cut, LAST) in by_place else []
        chains[-1] += [by_place[cut + 1, FIRST]] if (cut + 1, FIRST) in by_place else []
    return [chain for chain in chains if chain]


def plan_segments(
    plan: Plan, cuts: SliceBounds | None, told: Sequence[SummarisedSegment], follow: Follow, clock: ClockValue | None
) -> list[SegmentTask]:
    """Return what is to be scanned of one key, piece after piece. ``clock``: where the one clock stands at the end."""
    chain, summaries = [piece for piece, _ in told], [summary for _, summary in told]
    found = entry_states(plan, summaries, lambda index, value: follow(chain[index], value))
    turns = []
    for i, (piece, entry) in enumerate(zip(chain, found, strict=True)):
        is_last = i == len(chain) - 1
        turns.append(
            SegmentTask(
                part_number(cuts, piece.index, piece.side),
                piece,
                entry,
                is_last,
                tuple((chain[j], first, found[j].rows) for j, first in entry.before),
                tuple(chain[entry.before[0][0] : i]) if entry.before else (),
                None if entry.baseline is None else (chain[entry.baseline[0]], entry.baseline[1]),
                None if is_last else summaries[i + 1].epochs[0],
                clock if is_last else None,
            )
        )
    return turns


def with_window_numbers(turns: Sequence[SegmentTask], windows: Sequence[int]) -> list[SegmentTask]:
    """Return the turns of one key, of which so many windows come out in each."""
    before = np.cumsum([0, *windows])
    return [replace(t, entry=replace(t.entry, windows=int(w))) for t, w in zip(turns, before, strict=False)]
