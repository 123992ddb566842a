"""Where a run ends and the next begins: the clock, the watermark, the last place in the order, and what tasks left.

All of it is small but the parts of rows and keys, which tasks read and write; so a run starts as cheaply from millions
of open windows as from none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.watermark import Watermarks
from ...columns.arrays import ClockValue, Ints, combined
from ...columns.sort_keys import last_in_order
from ...ports import Part, StateFiles
from ...sequences.marks import NO_FILE, Marks
from ...sequences.sequence import one_batch

_POS, _LEVEL = "__pos", "__level"
_ADVANCES, _POSITION = "advances", "position"


@dataclass(frozen=True, slots=True)
class StatePart:
    """The keys and rows that one task left; ``rows``: None where its keys have none. ``index``: its place by key."""

    index: int
    keys: Part
    rows: Part | None


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """What a stage goes on from.

    ``files``: where the ``parts`` are. ``clock``: where the one clock stood, in measures of the clock column;
    ``stands``: where the watermark stood, a reading; None: nowhere yet. ``position``: one row, the largest order values
    so far; None where there was no row, or no column orders. ``advances``: those of the watermark that still matter.
    """

    files: StateFiles
    parts: tuple[StatePart, ...]
    clock: ClockValue | None
    watermark: ClockValue | None
    position: pa.Table | None
    advances: Watermarks | None

    @property
    def nbytes(self) -> int:
        """About how many bytes the carried rows and keys take."""
        return sum(4 * (part.keys.nbytes + (part.rows.nbytes if part.rows else 0)) for part in self.parts)


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """What a scan task left for the next run: rows of ``keys`` keys, in ``windows`` open windows.

    ``oldest``: the smallest first order value among the rows, as text. ``position``: one row, the largest order values
    of its rows. ``clock``, ``advances``: as in `Start`; the latter from one task. ``parts``: the files written.
    """

    keys: int = 0
    windows: int = 0
    oldest: Any = None
    position: pa.Table | None = None
    clock: ClockValue | None = None
    advances: Watermarks | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What a run of a stage has left: ``registers`` for the record, plain JSON; ``parts``: all files.

    ``keys``, ``windows``: how many hold rows, are open; ``oldest``: the smallest order value held, as text.
    """

    registers: Mapping[str, Any]
    parts: tuple[Part, ...]
    keys: int
    windows: int
    oldest: str | None


def restore(files: StateFiles, registers: Mapping[str, Any]) -> RestorePoint:
    """Return what a stage goes on from, as `leave` has left it."""
    rows = {part.name.removeprefix("rows-"): part for part in files.parts("rows")}
    keys = files.parts("keys")
    parts = tuple(StatePart(i, part, rows.get(part.name.removeprefix("keys-"))) for i, part in enumerate(keys))
    advances = files.read_table(_ADVANCES)
    return RestorePoint(
        files,
        parts,
        registers["clock"],
        registers["watermark"],
        files.read_table(_POSITION),
        None if advances is None else _watermarks(advances),
    )


def write_snapshot(
    files: StateFiles, start: RestorePoint | None, left: Sequence[TaskSnapshot], stands: ClockValue | None
) -> RunSnapshot:
    """Write what concerns all keys, given what each task left."""
    clocks = [one.clock for one in left if one.clock is not None]
    clocks += [] if start is None or start.clock is None else [start.clock]
    tables = [one.position for one in left if one.position is not None]
    tables += [] if start is None or start.position is None else [start.position]
    parts = [part for one in left for part in one.parts]
    position = last_in_order(pa.concat_tables(tables)) if tables else None
    if position is not None:
        parts.append(files.write_table(_POSITION, position))
    advances = next((one.advances for one in left if one.advances is not None), None)
    if advances is not None:
        table = pa.Table.from_arrays(
            [*advances.marks.rows.columns, pa.array(advances.marks.pos), pa.array(advances.level)],
            names=[*advances.marks.rows.schema.names, _POS, _LEVEL],
        )
        parts.append(files.write_table(_ADVANCES, table))
    oldest = [one.oldest for one in left if one.oldest is not None]
    return RunSnapshot(
        {"clock": max(clocks, default=None), "watermark": stands},
        tuple(parts),
        sum(one.keys for one in left),
        sum(one.windows for one in left),
        str(min(oldest)) if oldest else None,
    )


def relevant_advances(watermarks: Watermarks, dead: int) -> Watermarks:
    """Return the advances that decide anything of panes behind ``dead``, and the one before them."""
    first = max(0, int(np.searchsorted(watermarks.level, dead, side="right")) - 1)
    picks: Ints = np.arange(first, len(watermarks))
    return Watermarks(watermarks.marks.take(picks), watermarks.level[picks])


def _watermarks(table: pa.Table) -> Watermarks:
    pos, level = (combined(table.column(name)).to_numpy() for name in (_POS, _LEVEL))
    rows = one_batch(table.drop_columns([_POS, _LEVEL]))
    return Watermarks(Marks(rows, pos, np.full(len(pos), NO_FILE)), level)


EMPTY_SNAPSHOT = TaskSnapshot()
