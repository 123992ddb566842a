"""Units as cells of a calendar: done, run again, without input, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ....conf.ranges.units import Kind, unit_at, unit_of
from ..results.folder_status import Status, UnitStatus
from .report import Calendar, Cell, CellKind

_COARSER: dict[str, Kind] = {"hour": "day", "day": "week"}
_MOST = 1000
LATE = "late"


@dataclass(frozen=True, slots=True)
class UnitTimes:
    """When units were written.

    ``finished``: label to the time at which the unit was last written, ISO 8601 in UTC.
    ``replaced``: labels of units that are known to have been run again.
    """

    finished: Mapping[str, str]
    replaced: frozenset[str] = frozenset()


def calendar_of(status: Status, kind: Kind | None, times: UnitTimes) -> Calendar:
    """Return the calendar of the units of a state or of a range; ``kind``: None for plain runs and other names."""
    words = ("windows out", "run again") if status.what == "state" else ("rows out", "written after a later one")
    redone = _redone(status.units, times)
    if kind is None:
        cells = [_cell(unit, at, unit.label in redone) for at, unit in enumerate(status.units)]
        return _calendar("run", "run", cells, *words)
    found = [
        _cell(unit, dated.ordinal, unit.label in redone)
        for unit in status.units
        if (dated := unit_of(unit.label, kind)) is not None
    ]
    gaps = [Cell(gap.label, gap.ordinal, gaps=1) for gap in status.gaps]
    cells = sorted([*found, *gaps], key=lambda cell: cell.ordinal)
    cell_kind = kind
    while len(cells) > _MOST and cell_kind in _COARSER:
        cells, cell_kind = _coarser(cells, cell_kind, _COARSER[cell_kind]), _COARSER[cell_kind]
    return _calendar(cell_kind, kind, cells, *words)


def _calendar(kind: CellKind, unit: CellKind, cells: Sequence[Cell], out: str, again: str) -> Calendar:
    return Calendar(kind, unit, tuple(cells[-_MOST:]), max(0, len(cells) - _MOST), out, again)


def _redone(units: Sequence[UnitStatus], times: UnitTimes) -> set[str]:
    """Return the units that were written after a later unit was: corrections, and input that came afterwards."""
    found = set(times.replaced)
    earliest = ""
    for unit in reversed(units):
        finished = times.finished.get(unit.label, "")
        if earliest and finished > earliest:
            found.add(unit.label)
        if finished and (not earliest or finished < earliest):
            earliest = finished
    return found


def _cell(unit: UnitStatus, ordinal: int, is_redone: bool) -> Cell:
    rejected = unit.rejected
    late = rejected.get(LATE, 0)
    return Cell(
        unit.label,
        ordinal,
        done=int(not is_redone),
        redone=int(is_redone),
        rows_in=unit.rows_in,
        out=unit.out,
        late=late,
        rejected=sum(rejected.values()) - late,
        held=unit.held,
    )


def _coarser(cells: Sequence[Cell], kind: Kind, coarse: Kind) -> list[Cell]:
    """Return cells of a coarser kind, each with what the units in it have together."""
    with_units = [(_coarse_ordinal(cell, kind, coarse), cell) for cell in cells]
    return [_sum(ordinal, coarse, [cell for _, cell in lot]) for ordinal, lot in groupby(with_units, lambda at: at[0])]


def _coarse_ordinal(cell: Cell, kind: Kind, coarse: Kind) -> int:
    start = unit_at(cell.ordinal, kind).start
    zero = unit_at(0, coarse).start
    step = unit_at(0, coarse).end
    assert start is not None
    assert zero is not None
    assert step is not None
    return (start - zero) // (step - zero)


def _sum(ordinal: int, kind: Kind, cells: Sequence[Cell]) -> Cell:
    names = ("done", "redone", "gaps", "rows_in", "out", "late", "rejected")
    sums = {name: sum(getattr(cell, name) for cell in cells) for name in names}
    held = next((cell.held for cell in reversed(cells) if cell.done + cell.redone), 0)
    return replace(Cell(unit_at(ordinal, kind).label, ordinal, held=held), **sums)
