"""Snapshot and restore of what concerns all keys: the clock, the watermark, the last position in the order.

The driver handles only these few values. Tasks read and write the rows and keys of the window state, so a run starts
from millions of open windows at the same cost for the driver as from none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..clock.watermark import Belief, advance_table, advances_of
from ..columns.arrays import ClockValue, latest_clock
from ..columns.sort_keys import last_in_order
from ..enrichment.window_table import WindowTable, known_windows
from ..planning.plan import Plan
from ..ports import Part, StateFiles
from ..scan.row_validation import clock_column, retyped_belief, retyped_watermark
from ..state.carry import Registers
from ..state.state_types import StateTypes

_ADVANCES, _POSITION, _WINDOWS = "advances", "position", "windows"


@dataclass(frozen=True, slots=True)
class StatePart:
    """The window state that one scan task of the run before wrote.

    ``index``: place among the parts, ascending by key.
    ``rows``: the file with the rows; None where the keys hold no rows.
    """

    index: int
    keys: Part
    rows: Part | None


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """The state that a stage restores.

    ``files``: the files that hold the ``parts``.
    ``parts``: the window state, one for each task that wrote some, ascending by key.
    ``registers``: what concerns all keys, at the end of the run before.
    ``types``: the types that rows and keys get when they are read; None: those that they have.
    """

    files: StateFiles
    parts: tuple[StatePart, ...]
    registers: Registers
    types: StateTypes | None = None

    @property
    def nbytes(self) -> int:
        return sum(4 * (part.keys.nbytes + (part.rows.nbytes if part.rows else 0)) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The window state that a scan task wrote for the next run, or that all tasks of a run wrote.

    ``keys``: number of keys that hold rows.
    ``windows``: number of open windows.
    ``oldest``: the smallest value of the first order column among the rows.
    ``registers``: clock and position of the rows of a task, and the advances, which only the task of slice 0 reports;
        of a run, clock and watermark: files have the others.
    """

    keys: int = 0
    windows: int = 0
    oldest: Any = None
    registers: Registers = Registers()  # noqa: RUF009 - frozen
    parts: tuple[Part, ...] = ()


def restore(
    files: StateFiles, registers: Mapping[str, Any], plan: Plan | None = None, types: StateTypes | None = None
) -> RestorePoint:
    """Return the state that `write_snapshot` has written, for a ``plan`` in whose ``types``; None: in its own.

    Raises `ConfigError` where these types do not hold a value of what concerns all keys.
    """
    rows = {part.name.removeprefix("rows-"): part for part in files.parts("rows")}
    keys = files.parts("keys")
    parts = tuple(StatePart(i, part, rows.get(part.name.removeprefix("keys-"))) for i, part in enumerate(keys))
    advances, position = files.read_table(_ADVANCES), files.read_table(_POSITION)
    clock, watermark = registers["clock"], registers["watermark"]
    belief = Belief(**registers["belief"]) if "belief" in registers else None
    if plan is not None and types is not None:
        clock, watermark = types.measure(clock_column(plan), clock), retyped_watermark(plan, types, watermark)
        belief = retyped_belief(plan, types, belief)
        position = None if position is None else types.retyped(position)
        advances = None if advances is None else types.retyped(advances)
    found, windows = None if advances is None else advances_of(advances), files.read_table(_WINDOWS)
    return RestorePoint(files, parts, Registers(0, clock, watermark, position, found, windows, belief), types)


def write_snapshot(
    files: StateFiles,
    restore_point: RestorePoint | None,
    snapshots: Sequence[Snapshot],
    watermark: ClockValue | None,
    belief: Belief | None = None,
    windows: WindowTable | None = None,
) -> Snapshot:
    """Write what concerns all keys, given the report of each task, and sum up all reports.

    ``windows``: those of a table that were in force; None where windows are of no table.
    """
    found = [task.registers for task in snapshots]
    found += [] if restore_point is None else [restore_point.registers]
    parts = [part for task in snapshots for part in task.parts]
    position = last_in_order(*(each.position for each in found))
    if position is not None:
        parts.append(files.write_table(_POSITION, position))
    advances = next((task.registers.advances for task in snapshots if task.registers.advances is not None), None)
    if advances is not None:
        parts.append(files.write_table(_ADVANCES, advance_table(advances)))
    clock = latest_clock(each.clock for each in found)
    if windows is not None:
        parts.append(files.write_table(_WINDOWS, known_windows(windows, clock)))
    return Snapshot(
        sum(task.keys for task in snapshots),
        sum(task.windows for task in snapshots),
        min((task.oldest for task in snapshots if task.oldest is not None), default=None),
        Registers(clock=clock, watermark=watermark, belief=belief),
        tuple(parts),
    )
