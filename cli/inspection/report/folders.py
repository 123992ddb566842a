"""What stands behind a report: the results to read, the job, and what runs have recorded of themselves."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ....conf.ranges import Kind, kind_of, unit_at, unit_of
from ....readers.files.listing import list_files
from ....readers.files.walk import MANIFEST
from ....windowing.errors import InputError, WincliError
from ....windowing.support.redaction import MASK
from ....writers.state.layout import is_state
from ....writers.state.state import read_state
from ..results.result import ResultFolder, open_result_folder
from ..results.status import Status, UnitStatus, read_status
from .report import Calendar, Cell, CellKind

# Units as cells of a calendar: done, run again, without input, and what they hold.


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


@dataclass(frozen=True, slots=True)
class Folder:
    """A state, a folder of results, or a result.

    ``status``: its units and their counts.
    ``results``: the results in it, or that its units wrote, in the order of the units; those that can be opened.
    ``job``: the job, as it was recorded last.
    ``kind``: the kind of the units; None for plain runs, and for one result.
    ``times``: when units were written.
    ``seconds``: what each unit recorded of its phases.
    ``versions``: package to version, of the last run.
    ``inputs``: (size in bytes) of every input file.
    ``notes``: sentences on results that cannot be opened.
    """

    status: Status
    results: tuple[ResultFolder, ...]
    job: Mapping[str, Any]
    kind: Kind | None
    times: UnitTimes
    seconds: tuple[Mapping[str, float], ...]
    versions: Mapping[str, str | None]
    inputs: tuple[int, ...]
    notes: tuple[str, ...]


def read_folder(path: str) -> Folder:
    """Read what ``path`` holds. Raises as `read_status` does."""
    status = read_status(path, socket.gethostname())
    return _of_state(path, status) if is_state(path) else _of_results(path, status)


def _of_state(path: str, status: Status) -> Folder:
    records = read_state(path).records
    if not records:
        raise InputError(f"the state {path} has no finished unit yet", "run the job first")
    places = [(record.label, record.outputs[-1].path) for record in records if record.outputs]
    opened = [*_opened(places)]
    results = tuple(each for each in opened if isinstance(each, ResultFolder))
    last = records[-1]
    times = UnitTimes(
        {record.label: record.finished for record in records},
        frozenset(record.label for record in records if record.reruns),
    )
    told = tuple(result.manifest["seconds"] for result in results) or tuple(record.seconds for record in records)
    return Folder(
        status,
        results,
        last.job,
        kind_of(last.label, last.ordinal),
        times,
        told,
        last.versions,
        tuple(file.size for record in records for file in record.inputs),
        tuple(each for each in opened if isinstance(each, str)),
    )


def _of_results(path: str, status: Status) -> Folder:
    listed = list_files([path], skip_unreadable=True).manifests
    places = [
        (unit.label, (file.place.shown.removesuffix(MANIFEST).rstrip("/") or "."))
        for unit, file in zip(status.units, listed, strict=True)
    ]
    opened = [*_opened(places)]
    results = tuple(each for each in opened if isinstance(each, ResultFolder))
    if not results:
        raise InputError(str(opened[0]), "write the result again")
    last = results[-1].manifest
    kind: Kind | None = last["job"].get("unit", "day") if status.what == "range" else None
    if kind and not any(unit_of(unit.label, kind) for unit in status.units):
        kind = None
    written = {unit.label: file.mtime or "" for unit, file in zip(status.units, listed, strict=True)}
    return Folder(
        status,
        results,
        last["job"],
        kind,
        UnitTimes(written),
        tuple(result.manifest["seconds"] for result in results),
        last["versions"],
        tuple(file["size"] for result in results for file in result.manifest["inputs"]),
        tuple(each for each in opened if isinstance(each, str)),
    )


def _opened(places: Sequence[tuple[str, str]]) -> Iterator[ResultFolder | str]:
    for label, path in places:
        if MASK in path:
            yield f"the windows of {label} are left out: the path of its result had secrets, which no record holds"
            continue
        try:
            yield open_result_folder(path)
        except WincliError as error:
            yield f"the windows of {label} are left out: {error.what}"
