"""A folder that wincli wrote becomes the value of its report."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....conf.job import read_job, with_later_keys
from ....conf.options import JOB_OPTIONS, STAGE_OPTIONS
from ....conf.ranges import Kind, as_glob, kind_of, unit_at, unit_of
from ....readers.files.listing import list_files
from ....windowing.errors import InputError, WincliError, few
from ....windowing.language.sentences import sentences_of
from ....windowing.support.amounts import count_of, size
from ....windowing.support.option import Option
from ....windowing.support.redaction import MASK, redacted, redacted_path
from ....writers.state.layout import is_state
from ....writers.state.state import read_state
from ....writers.state.unit_record import UnitRecord
from ...console.messages import Messages
from ...console.side_file import SideFile, check_side_files, write_side_file
from ..results.open_windows import open_windows
from ..results.result import ResultFolder, folder_of, open_result_folder, rejects_of
from ..results.status import Status, expectations_of, read_status
from .measured import LATE as LATE_WINDOWS
from .measured import LATE_ROWS, REJECTS, ROWS, WINDOWS, Measured, lanes_of, measure
from .page import MARK, page_of
from .panes import axis_values
from .report import Axis, Calendar, Cell, OverTime, Report, Series

# Units as cells of a calendar: done, run again, without input, and what they hold.


_COARSER: dict[str, Kind] = {"hour": "day", "day": "week"}
_MOST = 1000
LATE = "late"


def calendar_of(
    status: Status, kind: Kind | None, finished: Mapping[str, str], replaced: Set[str] = frozenset()
) -> Calendar:
    """Return the calendar of the units of a state or of a range; ``kind``: None for plain runs and other names.

    ``finished``: label to the time at which the unit was last written, ISO 8601 in UTC. ``replaced``: labels of units
    that are known to have been run again.
    """
    words = ("windows out", "run again") if status.what == "state" else ("rows out", "written after a later one")
    redone, earliest = set(replaced), ""  # written after a later unit was: corrections, and input that came afterwards
    for unit in reversed(status.units):
        at = finished.get(unit.label, "")
        if earliest and at > earliest:
            redone.add(unit.label)
        if at and (not earliest or at < earliest):
            earliest = at

    def cell_of(unit: UnitRecord, ordinal: int) -> Cell:
        rejected, is_redone = unit.rejected, unit.label in redone
        late = rejected.get(LATE, 0)
        others = sum(rejected.values()) - late
        return Cell(
            unit.label, ordinal, int(not is_redone), int(is_redone), 0, unit.rows_in, unit.out, late, others, unit.held
        )

    if kind is None:
        runs = [cell_of(unit, at) for at, unit in enumerate(status.units)]
        return Calendar("run", "run", tuple(runs[-_MOST:]), max(0, len(runs) - _MOST), *words)
    dated = ((unit, unit_of(unit.label, kind)) for unit in status.units)
    cells = [cell_of(unit, at.ordinal) for unit, at in dated if at is not None]
    cells += [Cell(gap.label, gap.ordinal, gaps=1) for gap in status.gaps]
    cells.sort(key=lambda cell: cell.ordinal)
    cell_kind: Kind = kind
    while len(cells) > _MOST and cell_kind in _COARSER:
        cells, cell_kind = _coarser(cells, cell_kind, _COARSER[cell_kind]), _COARSER[cell_kind]
    return Calendar(cell_kind, kind, tuple(cells[-_MOST:]), max(0, len(cells) - _MOST), *words)


def _coarser(cells: Sequence[Cell], kind: Kind, coarse: Kind) -> list[Cell]:
    zero, step = unit_at(0, coarse).start, unit_at(0, coarse).end
    assert zero is not None
    assert step is not None

    def coarse_ordinal(cell: Cell) -> int:
        start = unit_at(cell.ordinal, kind).start
        assert start is not None
        return (start - zero) // (step - zero)

    found, names = [], ("done", "redone", "gaps", "rows_in", "out", "late", "rejected")
    for ordinal, group in groupby(cells, coarse_ordinal):
        lot = list(group)
        sums = {name: sum(getattr(cell, name) for cell in lot) for name in names}
        held = next((cell.held for cell in reversed(lot) if cell.is_done), 0)
        found.append(Cell(unit_at(ordinal, coarse).label, ordinal, held=held, **sums))
    return found


@dataclass(frozen=True, slots=True)
class Folder:
    """A state, a folder of results, or a result.

    ``status``: its units and their counts.
    ``results``: the results in it, or that its units wrote, in the order of the units; those that can be opened.
    ``job``: the job, as it was recorded last.
    ``kind``: the kind of the units; None for plain runs, and for one result.
    ``finished``, ``replaced``: when units were written, as `calendar_of` takes them.
    ``seconds``: what each unit recorded of its phases.
    ``versions``: package to version, of the last run.
    ``inputs``: (size in bytes) of every input file.
    ``notes``: sentences on results that cannot be opened.
    """

    status: Status
    results: tuple[ResultFolder, ...]
    job: Mapping[str, Any]
    kind: Kind | None
    finished: Mapping[str, str]
    replaced: frozenset[str]
    seconds: tuple[Mapping[str, float], ...]
    versions: Mapping[str, str | None]
    inputs: tuple[int, ...]
    notes: tuple[str, ...]


def read_folder(path: str) -> Folder:
    """Read what ``path`` holds. Raises as `read_status` does."""
    status = read_status(path, socket.gethostname())
    if not is_state(path):
        return _of_results(path, status)
    records = read_state(path).records
    if not records:
        raise InputError(f"the state {path} has no finished unit yet", "run the job first")
    results, notes = _opened([(record.label, record.outputs[-1].path) for record in records if record.outputs])
    last = records[-1]
    return Folder(
        status,
        results,
        last.job,
        kind_of(last.label, last.ordinal),
        {record.label: record.finished for record in records},
        frozenset(record.label for record in records if record.reruns),
        tuple(result.manifest["seconds"] for result in results) or tuple(record.seconds for record in records),
        last.versions,
        tuple(file.size for record in records for file in record.inputs),
        notes,
    )


def _of_results(path: str, status: Status) -> Folder:
    listed = list_files([path], skip_unreadable=True).manifests
    results, notes = _opened([(unit.label, folder_of(file)) for unit, file in zip(status.units, listed, strict=True)])
    if not results:
        raise InputError(notes[0], "write the result again")
    last = results[-1].manifest
    kind: Kind | None = last["job"].get("unit", "day") if status.what == "range" else None
    if kind and not any(unit_of(unit.label, kind) for unit in status.units):
        kind = None
    return Folder(
        status,
        results,
        last["job"],
        kind,
        {unit.label: file.mtime or "" for unit, file in zip(status.units, listed, strict=True)},
        frozenset(),
        tuple(result.manifest["seconds"] for result in results),
        last["versions"],
        tuple(file["size"] for result in results for file in result.manifest["inputs"]),
        notes,
    )


def _opened(places: Sequence[tuple[str, str]]) -> tuple[tuple[ResultFolder, ...], tuple[str, ...]]:
    """Open the results of units; return those that can be opened, and a note on each of the others."""
    results, notes = [], []
    for label, path in places:
        if MASK in path:
            why = "the path of its result had secrets, which no record holds"
            notes.append(f"the windows of {label} are left out: {why}")
            continue
        try:
            results.append(open_result_folder(path))
        except WincliError as error:
            notes.append(f"the windows of {label} are left out: {error.what}")
    return tuple(results), tuple(notes)


# A recorded job in words: the windows of its stages clause by clause, and the options that differ from defaults.


_SAID = frozenset(
    {"window", "key", "agg", "let", "where", "having", "group_by", "emit", "sort_by", "operator"}
    | {"at_end", "closed", "empty", "output", "input", "stages", "name"}
)
_HOW = frozenset({"log_format", "progress", "split_size", "slice_size", "max_open_files"})
"""Options of how a run went, not of what it made."""


def clauses_of(job: Mapping[str, Any], times: Set[str]) -> tuple[tuple[str, str], ...]:
    """Return sentences on the windows of a recorded job, as (stage, text); ``times``: the columns that are times.

    A job of another version, which this one cannot parse, is told by the texts of its windows.
    """
    try:
        stages = read_job(with_later_keys(job)).stages
    except (WincliError, ValueError):
        return tuple((stage["name"], redacted(str(stage["window"]))) for stage in job["stages"])
    return tuple(
        (each.name, redacted(text))
        for each in stages
        for text in sentences_of(each.spec, each.key, each.calls, each.options, times)
    )


def settings_of(job: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the options that differ from their defaults and that no clause says, as (name, value)."""
    stages = job["stages"]
    found = []
    for stage in stages:
        name = f"{stage['name']}: " if len(stages) > 1 else ""
        found += [(f"{name}{option.name}", text) for option in STAGE_OPTIONS if (text := _differs(option, stage))]
    found += [(option.name, text) for option in JOB_OPTIONS if (text := _differs(option, job))]
    return tuple(found)


def _differs(option: Option, values: Mapping[str, Any]) -> str:
    """Return the value of an option that is not its default, as text; else an empty text."""
    value = values.get(option.attribute, values.get(option.name))
    if option.attribute in _SAID | _HOW or value in (None, [], {}, False) or str(value) == str(option.default):
        return ""
    if isinstance(value, dict):
        return redacted(", ".join(f"{name}={each}" for name, each in value.items()))
    return redacted(", ".join(map(str, value)) if isinstance(value, list) else str(value))


# Rejected rows over time: late rows and others, as far as they have an order value.


_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?$"
_INSTANT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)$"


def add_rejects(results: Sequence[ResultFolder], measured: Measured) -> int:
    """Count the rejected rows of results in the steps of ``measured``; return how many have no place there."""
    if measured.axis.scale == "window":
        return 0
    apart = 0
    for result in results:
        rows = rejects_of(result)
        if rows is None or not {"reason", "row"} <= set(rows.schema.names):
            continue
        for table in rows.tables(["reason", "row"]):
            values, has_place = _places_of(table["row"], measured.axis)
            is_late = pc.equal(table["reason"], LATE).fill_null(False).to_numpy()[has_place].astype(np.int64)
            measured.steps.add(values[has_place], **{LATE_ROWS: is_late, REJECTS: 1 - is_late})
            apart += int(np.count_nonzero(~has_place))
    return apart


def _places_of(rows: pa.ChunkedArray, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Return the order values of rejected rows, as `axis_values` does, and which of them have one."""
    nothing = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    if not pa.types.is_struct(rows.type) or rows.type.get_field_index(axis.name) < 0:
        return nothing
    column = pc.struct_field(rows, axis.name)
    try:
        if axis.scale == "time" and pa.types.is_string(column.type):  # null for texts that are no times
            good = pc.match_substring_regex(column, _INSTANT if axis.is_utc else _TIME).fill_null(False)
            column = pc.cast(pc.if_else(good, column, None), pa.timestamp("us", "UTC" if axis.is_utc else None))
        values = axis_values(column, axis.scale)
    except (pa.ArrowException, AttributeError):  # such as the 31st of February
        return nothing
    has_place = pc.is_valid(column).to_numpy()
    return values, has_place & np.isfinite(values) if values.dtype.kind == "f" else has_place


def report_of(path: str, folder: Folder, only: Sequence[str] = ()) -> Report:
    """Return the report on what was read of ``path``, a result, a folder of results, or a state.

    ``only``: texts ``COLUMN=VALUE`` that choose keys, besides the busiest. Raises `ConfigError` for a choice that does
    not fit, and as `measure` does.
    """
    status, notes = folder.status, list(folder.notes)
    notes += [*status.damage, *(f"{label}: {what}" for label, what in status.lost)]
    if status.at_work:
        notes.append(f"a run is at work on the state since {status.at_work.started}")
    if status.killed:
        notes.append(f"{status.killed} was begun and not finished; run it again")
    if error := status.last_error:
        notes.append(f"the last error: {error['unit']} at {error['when']}: {error['message']}")
    measured, lanes = measure(folder.results, only, notes.append), None
    if measured is not None:
        notes += _notes(measured)
        held = None
        with suppress(WincliError):  # damage, which the notes tell
            if status.what == "state" and measured.windows:
                held = open_windows(path, None, status.last_stages[-1].name)
        lanes = lanes_of(folder.results, measured, held) if measured.windows else None
    calendar = None
    if status.what != "result":
        calendar = calendar_of(status, folder.kind, folder.finished, folder.replaced)
    window = folder.results[-1].manifest["spec"] if folder.results else folder.job["stages"][-1]["window"]
    expectations = []
    for text, found in expectations_of(status).items():
        broken = [label for label, holds in found if not holds]
        word = "does not hold" if broken else "holds"
        where = few(broken) if broken else count_of(len(found), "unit")
        expectations.append((redacted(text), f"{word} in {where}" if len(found) > 1 else word))
    names = dict.fromkeys(name for seconds in folder.seconds for name in seconds)
    phases = {name: sum(seconds.get(name, 0.0) for seconds in folder.seconds) for name in names}
    if "total" in phases:  # the whole comes last
        phases["total"] = phases.pop("total")
    is_time = measured is not None and measured.axis.scale == "time"
    orders = [result.manifest["order"] for result in folder.results]
    earlier = [stage["order"] for result in folder.results for stage in result.manifest.get("stages", ())]
    orders += [order for order in earlier if "time" in order["why"]]  # those that were chosen as times
    times = frozenset(name for order in orders for name in order["columns"]) if is_time else frozenset()
    return Report(
        redacted_path(path),
        status.what,
        str(window),
        clauses_of(folder.job, times),
        settings_of(folder.job),
        _totals(folder, measured),
        status.accounts,
        lanes,
        _over_units(calendar) if calendar and len(calendar.cells) > 1 else _over_time(folder, measured),
        None if measured is None else measured.lengths.distribution("duration" if is_time else "number"),
        None if measured is None else measured.sizes.distribution("rows"),
        () if measured is None else tuple(measured.reasons.most_common()),
        calendar,
        tuple(phases.items()),
        tuple(expectations),
        tuple(map(redacted, notes)),
        tuple((name, str(version)) for name, version in folder.versions.items()),
    )


def _notes(measured: Measured) -> list[str]:
    notes, choice = [], measured.choice
    if choice and not measured.chosen.heaviest(1):
        wanted = " and ".join(f"{name} {' or '.join(str(v.as_py()) for v in vs)}" for name, vs in choice.items())
        notes.append(f"no window has the chosen key, {wanted}")
    if measured.placeless:
        notes.append(f"{measured.placeless:,} windows have no start or no end, and stand on no time line")
    if not measured.columns.has_rows:
        notes.append("the result does not say how many rows its windows have; an aggregate count() would")
    return notes


def _totals(folder: Folder, measured: Measured | None) -> tuple[tuple[str, int], ...]:
    status = folder.status
    last = [*status.accounts.values()]
    found = [("rows in", sum(unit.rows_in for unit in status.units))]
    if measured is not None:
        found.append(("windows", measured.windows))
        if measured.columns.keys and measured.busy.count is not None:
            found.append(("keys", measured.busy.count))
    found.append(("rejected", sum(sum(account.rejected.values()) for account in last)))
    opened = [stage.open for stage in status.last_stages if stage.open]
    found += [("open windows", sum(each.windows for each in opened))] if opened else []
    found += [("units", len(status.units)), ("gaps", len(status.gaps))] if status.what != "result" else []
    return (*found, ("input files", len(folder.inputs)), ("input bytes", sum(folder.inputs)))


def _over_units(calendar: Calendar) -> OverTime:
    first = calendar.cells[0].ordinal
    size = calendar.cells[-1].ordinal - first + 1
    labels = [""] * size
    names = ("rows_in", "out", "late", "rejected", "held")
    values = np.zeros((len(names), size), np.int64)
    for cell in calendar.cells:
        labels[cell.ordinal - first] = cell.label
        values[:, cell.ordinal - first] = [getattr(cell, name) for name in names]
    words = ("rows in", calendar.out, "late rows", "other rejects", "rows held")
    series = tuple(
        Series(name, tuple(map(int, row)), name in ("late rows", "other rejects"))
        for name, row in zip(words, values, strict=True)
    )
    return OverTime(calendar.kind, None, (labels[0], labels[-1]), tuple(labels), series)


def _over_time(folder: Folder, measured: Measured | None) -> OverTime | None:
    if measured is None or measured.axis.scale == "window":
        return None
    apart = add_rejects(folder.results, measured)
    if not measured.steps.counts.shape[1]:
        return None
    steps = measured.steps
    names = [("windows begun", WINDOWS, False)]
    names += [("rows in windows", ROWS, False)] if measured.columns.has_rows else []
    names += [("windows with late rows", LATE_WINDOWS, True)] if steps.sums(LATE_WINDOWS).any() else []
    names += [("late rows", LATE_ROWS, True), ("other rejects", REJECTS, True)]
    series = tuple(Series(name, tuple(map(int, steps.sums(channel))), is_bad) for name, channel, is_bad in names)
    bounds = (steps.begin, steps.begin + steps.width * steps.counts.shape[1])
    words = f"{count_of(apart, 'rejected row')} {'has' if apart == 1 else 'have'} no place in time." if apart else ""
    return OverTime(steps.words, measured.axis, bounds, (), series, words)


# ``wincli report``: the page of a report is written to a file, whole or not at all, or to stdout.


_MOST_NOTES = 10


def write_report(path: str, output: str, only: Sequence[str], messages: Messages) -> None:
    """Write the report on ``path`` to the file ``output``, or to stdout where that is ``-``.

    ``only``: texts ``COLUMN=VALUE`` that choose keys. Raises as `read_folder` and `report_of` do, `ConfigError` where
    the file exists and is no report or is in the folder that is reported on, `OutputError` where it cannot be written.
    """
    file = SideFile("-o", output, "a report", "report.html", lambda line: line.startswith(MARK.encode()))
    if output != "-":
        check_side_files([file], [("the result", path)])
    folder = read_folder(path)
    if output != "-":  # a relative input counts from here: the record has it as it was written
        check_side_files([file], [("an input of the result", as_glob(each)) for each in folder.job["input"]])
    report = report_of(path, folder, only)
    for note in report.notes[:_MOST_NOTES]:
        messages.note(note)
    if len(report.notes) > _MOST_NOTES:
        messages.note(f"there are {count_of(len(report.notes) - _MOST_NOTES, 'more note')} of this kind")
    page = page_of(report)
    if output == "-":
        sys.stdout.buffer.write(page.encode())
        return
    write_side_file(file, page)
    messages.summary(f"{output}: {size(len(page.encode()))}, open it in a browser", bytes=len(page.encode()))
