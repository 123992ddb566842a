"""How the work is cut: chunks of the input for the map side, slices of the total order for the scan.

A *chunk* is a run of neighbouring splits that one task reads and sorts together. A *slice* is a contiguous range of
the total order (key, order, arrival) of bounded size. Neither changes any result: they are only how much a task
holds at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...columns.arrays import ClockValue
from ...planning.plan import Plan
from ...ports import Split

_CELL = 8  # bytes of a value of a line
_LEAST_TEXT = 16  # offsets and a short text


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bounds on what a task holds, in bytes of the columns it needs.

    ``small``: up to this all work is done by one task, without sample and exchange. ``chunk`` and ``slice``: what a
    map task and a scan task take on at a time; a task needs about four times as much memory.
    """

    small: int = 16 << 20
    chunk: int = 96 << 20
    slice: int = 192 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring splits. ``index``: place in arrival order; ``base``: arrival position of the first row.

    ``announced``: where event-time panes are computed, where the watermark stands before it, as a
    reading of `windowing.clock.watermark.Lateness`.
    """

    index: int
    base: int
    splits: tuple[Split, ...]
    announced: ClockValue | None = None

    @property
    def rows(self) -> int:
        """Rows of all its splits."""
        return sum(split.rows for split in self.splits)


def row_width(schema: pa.Schema, splits: Sequence[Split], columns: Sequence[str]) -> int:
    """Bytes that a row of these columns takes in memory, arrival position included.

    What the columns of fixed width leave of the input's bytes is shared out evenly among all others.
    """
    widths = {field.name: _width(field.type) for field in schema}
    open_ended = sum(width is None for width in widths.values())
    fixed = sum(width or 0 for width in widths.values())
    whole = sum(split.nbytes for split in splits) // max(1, sum(split.rows for split in splits))
    text = max(_LEAST_TEXT, (whole - fixed) // max(1, open_ended))
    return 8 + sum(text if (width := widths[name]) is None else width for name in columns)


def lines_size(plan: Plan, rows: int) -> int:
    """Bytes that the lines of so many rows add to what a scan task holds, where these may be more than its rows.

    A task needs four times the memory of its rows, but lines stand in it about once.
    """
    return int(plan.rows_out_per_row * rows) * _CELL * len(plan.schema) // 4


def pack(splits: Sequence[Split], width: int, chunk_bytes: int) -> list[Chunk]:
    """Put neighbouring splits together into chunks of at most ``chunk_bytes``, or of one split.

    Splits whose positions do not follow each other are of different units, and no neighbours.
    """
    chunks: list[list[Split]] = []
    room = after = 0
    for split in splits:
        size = split.rows * width
        if not chunks or size > room or split.base != after:
            chunks.append([])
            room = chunk_bytes
        chunks[-1].append(split)
        room -= size
        after = split.base + split.rows
    return [Chunk(i, group[0].base, tuple(group)) for i, group in enumerate(chunks)]


def slice_count(total_bytes: int, slice_bytes: int, tasks: int) -> int:
    """How many slices to cut keyed work into: small enough each, and whole turns of all tasks, two at least."""
    turns = -(-total_bytes // (slice_bytes * tasks))
    return tasks * max(2, turns)


def _width(dtype: pa.DataType) -> int | None:
    """Bytes of a value of fixed width, else None."""
    try:
        return int(max(1, dtype.bit_width // 8))
    except ValueError:
        return None
