"""A folder that wincli wrote becomes the value of its report."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....conf.job import read_job, with_later_keys
from ....conf.options import JOB_OPTIONS, STAGE_OPTIONS
from ....conf.ranges import Kind, as_glob, kind_of, unit_at, unit_of
from ....windowing.errors import InputError, WincliError, few
from ....windowing.language.sentences import sentences_of
from ....windowing.support.amounts import count_of, size
from ....windowing.support.option import Option
from ....windowing.support.redaction import MASK, redacted, redacted_path
from ....writers.state.unit_record import UnitRecord
from ...console.messages import Messages
from ...console.side_file import SideFile, check_side_files, write_side_file
from ..results.open_windows import open_windows
from ..results.result import ResultFolder, open_result_folder, rejects_of, results_at_path
from ..results.status import Status, expectations_of, read_status
from .measured import LATE as LATE_WINDOWS
from .measured import LATE_ROWS, REJECTS, ROWS, WINDOWS, Measured, lanes_of, measure
from .page import MARK, Report, page_of
from .panes import Axis, axis_values

# Units as cells of a calendar: done, run again, without input, and what they hold.


_COARSER: dict[str, Kind] = {"hour": "day", "day": "week"}
_MOST = 1000
LATE = "late"


def calendar_of(status: Status, kind: Kind | None) -> dict[str, Any]:
    """Return the calendar of the units of a state or of a range; ``kind``: None for plain runs and other names.

    Each cell has one unit, or several where there are too many for a page: how many of them were run once (``done``),
    run again (``redone``) and have no input (``gaps``); rows and windows of all, ``rejected`` without the late ones,
    ``held`` after the last. ``kind`` of the calendar is what a cell is, ``unit`` what a unit is, ``hidden`` how many
    earlier cells are left out.
    """
    words = ("windows out", "run again") if status.what == "state" else ("rows out", "written after a later one")
    redone, earliest = {unit.label for unit in status.units if unit.reruns}, ""
    for unit in reversed(status.units):  # written after a later unit was: corrections, and input that came afterwards
        at = unit.finished
        if earliest and at > earliest:
            redone.add(unit.label)
        if at and (not earliest or at < earliest):
            earliest = at

    def cell_of(unit: UnitRecord, ordinal: int) -> Cell:
        is_redone, late = unit.label in redone, unit.rejected.get(LATE, 0)
        others = sum(unit.rejected.values()) - late
        return _cell(
            unit.label, ordinal, done=int(not is_redone), redone=int(is_redone), rows_in=unit.rows_in, out=unit.out,
            late=late, rejected=others, held=unit.held,
        )  # fmt: skip

    unit_kind = kind or "run"
    if kind is None:
        cells = [cell_of(unit, at) for at, unit in enumerate(status.units)]
    else:
        dated = ((unit, unit_of(unit.label, kind)) for unit in status.units)
        cells = [cell_of(unit, at.ordinal) for unit, at in dated if at is not None]
        cells += [_cell(gap.label, gap.ordinal, gaps=1) for gap in status.gaps]
        cells.sort(key=lambda cell: cell["ordinal"])
        while len(cells) > _MOST and kind in _COARSER:
            cells, kind = _coarser(cells, kind, _COARSER[kind]), _COARSER[kind]
    shown, hidden = cells[-_MOST:], max(0, len(cells) - _MOST)
    told = {"kind": kind or "run", "unit": unit_kind, "cells": shown, "hidden": hidden}
    return {**told, "out": words[0], "again": words[1]}


Cell = dict[str, Any]
_SUMMED = ("done", "redone", "gaps", "rows_in", "out", "late", "rejected")


def _cell(label: str, ordinal: int, **counts: int) -> Cell:
    return {"label": label, "ordinal": ordinal, **dict.fromkeys((*_SUMMED, "held"), 0), **counts}


def _coarser(cells: Sequence[Cell], kind: Kind, coarse: Kind) -> list[Cell]:
    zero, step = unit_at(0, coarse).start, unit_at(0, coarse).end
    assert zero is not None
    assert step is not None

    def coarse_ordinal(cell: Cell) -> int:
        start = unit_at(cell["ordinal"], kind).start
        assert start is not None
        return (start - zero) // (step - zero)

    found = []
    for ordinal, group in groupby(cells, coarse_ordinal):
        lot = list(group)
        held = next((cell["held"] for cell in reversed(lot) if cell["done"] + cell["redone"]), 0)
        sums = {name: sum(cell[name] for cell in lot) for name in _SUMMED}
        found.append(_cell(unit_at(ordinal, coarse).label, ordinal, **sums, held=held))
    return found


class Folder(NamedTuple):
    """A state, a folder of results, or a result.

    ``status``: its units, of which those of results, too, have the times at which they were written, and their phases.
    ``results``: those in it, or that its units wrote, in the order of the units, those that can be opened.
    ``notes``: sentences on results that cannot be opened.
    """

    status: Status
    results: Sequence[ResultFolder]
    notes: Sequence[str]


def read_folder(path: str) -> Folder:
    """Read what ``path`` holds. Raises as `read_status` does."""
    status = read_status(path, socket.gethostname())
    if status.what == "state":
        if not status.units:
            raise InputError(f"the state {path} has no finished unit yet", "run the job first")
        return Folder(status, *_opened([(unit.label, unit.outputs[-1].path) for unit in status.units if unit.outputs]))
    found, units = results_at_path(path), []
    for unit, each in zip(status.units, found, strict=True):
        seconds, versions = each.manifest["seconds"], each.manifest["versions"]
        units.append(replace(unit, finished=each.file.mtime or "", seconds=seconds, versions=versions))
    results, notes = _opened([(each.label, each.folder) for each in found])
    if not results:
        raise InputError(notes[0], "write the result again")
    return Folder(replace(status, units=tuple(units)), results, notes)


def _opened(places: Sequence[tuple[str, str]]) -> tuple[list[ResultFolder], list[str]]:
    """Open the results of units; return those that can be opened, and a note on each of the others."""
    results, notes = list[ResultFolder](), list[str]()
    for label, path in places:
        if MASK in path:
            why = "the path of its result had secrets, which no record holds"
            notes.append(f"the windows of {label} are left out: {why}")
            continue
        try:
            results.append(open_result_folder(path))
        except WincliError as error:
            notes.append(f"the windows of {label} are left out: {error.what}")
    return results, notes


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
    status, results, unopened = folder
    notes, job = list(unopened), status.units[-1].job
    notes += [*status.damage, *(f"{label}: {what}" for label, what in status.lost)]
    if status.at_work:
        notes.append(f"a run is at work on the state since {status.at_work.started}")
    if status.killed:
        notes.append(f"{status.killed} was begun and not finished; run it again")
    if error := status.last_error:
        notes.append(f"the last error: {error['unit']} at {error['when']}: {error['message']}")
    measured, lanes = measure(results, only, notes.append), None
    if measured is not None:
        notes += _notes(measured)
        held = None
        with suppress(WincliError):  # damage, which the notes tell
            if status.what == "state" and measured.windows:
                held = open_windows(path, None, status.last_stages[-1].name)
        lanes = lanes_of(measured, held) if measured.windows else None
    calendar = None if status.what == "result" else calendar_of(status, _kind_of(status))
    are_many = calendar is not None and len(calendar["cells"]) > 1
    expectations = []
    for text, found in expectations_of(status).items():
        broken = [label for label, holds in found if not holds]
        word = "does not hold" if broken else "holds"
        where = few(broken) if broken else count_of(len(found), "unit")
        expectations.append((redacted(text), f"{word} in {where}" if len(found) > 1 else word))
    told = [result.manifest["seconds"] for result in results] or [unit.seconds for unit in status.units]
    phases = {name: sum(each.get(name, 0.0) for each in told) for name in dict.fromkeys(chain(*told))}
    if "total" in phases:  # the whole comes last
        phases["total"] = phases.pop("total")
    is_time = measured is not None and measured.axis.scale == "time"
    orders = [result.manifest["order"] for result in results]
    earlier = [stage["order"] for result in results for stage in result.manifest.get("stages", ())]
    orders += [order for order in earlier if "time" in order["why"]]  # those that were chosen as times
    times = frozenset(name for order in orders for name in order["columns"]) if is_time else frozenset()
    return {
        "path": redacted_path(path),
        "what": status.what,
        "window": str(results[-1].manifest["spec"] if results else job["stages"][-1]["window"]),
        "clauses": clauses_of(job, times),
        "settings": settings_of(job),
        "totals": _totals(status, measured),
        "accounts": status.accounts,
        "lanes": lanes,
        "over_time": _over_units(calendar) if calendar and are_many else _over_time(results, measured),
        "lengths": None if measured is None else measured.lengths.distribution("duration" if is_time else "number"),
        "sizes": None if measured is None else measured.sizes.distribution("rows"),
        "reasons": () if measured is None else measured.reasons.most_common(),
        "calendar": calendar,
        "phases": tuple(phases.items()),
        "expectations": expectations,
        "notes": [*map(redacted, notes)],
        "made_with": [(name, str(version)) for name, version in status.units[-1].versions.items()],
    }


def _kind_of(status: Status) -> Kind | None:
    """Return the kind of the units; None for plain runs, and where labels are no dates."""
    first, kind = status.units[0], status.units[-1].job.get("unit", "day")
    if status.what == "state":
        return kind_of(first.label, first.ordinal)
    return kind if any(unit_of(unit.label, kind) for unit in status.units) else None


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


def _totals(status: Status, measured: Measured | None) -> dict[str, int]:
    found = {"rows in": sum(unit.rows_in for unit in status.units)}
    if measured is not None:
        found["windows"] = measured.windows
        if measured.columns.keys and measured.busy.count is not None:
            found["keys"] = measured.busy.count
    found["rejected"] = sum(sum(account.rejected.values()) for account in status.accounts.values())
    if opened := [stage.open for stage in status.last_stages if stage.open]:
        found["open windows"] = sum(each.windows for each in opened)
    if status.what != "result":
        found |= {"units": len(status.units), "gaps": len(status.gaps)}
    sizes = [file.size for unit in status.units for file in unit.inputs]
    return found | {"input files": len(sizes), "input bytes": sum(sizes)}


# Counts over the same steps of time, for a chart: units, or equal steps along an axis. ``step`` is what one step is, in
# words, ``axis`` what the steps lie along, None for units; ``bounds`` the first and after the last along it, or the
# labels of the first and the last unit; ``labels`` those of all steps; ``apart`` what is known of rows without a place.


def _over_units(calendar: Mapping[str, Any]) -> dict[str, Any]:
    cells = calendar["cells"]
    first, size = cells[0]["ordinal"], cells[-1]["ordinal"] - cells[0]["ordinal"] + 1
    labels, lines = [""] * size, []
    for cell in cells:
        labels[cell["ordinal"] - first] = cell["label"]
    names = {"rows_in": "rows in", "out": calendar["out"], "late": "late rows", "rejected": "other rejects"}
    for name, words in {**names, "held": "rows held"}.items():
        values = [0] * size
        for cell in cells:
            values[cell["ordinal"] - first] = cell[name]
        lines.append(_series(words, values, name in ("late", "rejected")))
    bounds = (labels[0], labels[-1])
    return {"step": calendar["kind"], "axis": None, "bounds": bounds, "labels": labels, "series": lines, "apart": ""}


def _over_time(results: Sequence[ResultFolder], measured: Measured | None) -> dict[str, Any] | None:
    if measured is None or measured.axis.scale == "window":
        return None
    apart = add_rejects(results, measured)
    if not measured.steps.counts.shape[1]:
        return None
    steps = measured.steps
    names = [("windows begun", WINDOWS, False)]
    names += [("rows in windows", ROWS, False)] if measured.columns.has_rows else []
    names += [("windows with late rows", LATE_WINDOWS, True)] if steps.sums(LATE_WINDOWS).any() else []
    names += [("late rows", LATE_ROWS, True), ("other rejects", REJECTS, True)]
    lines = [_series(words, steps.sums(channel).tolist(), is_bad) for words, channel, is_bad in names]
    return {
        "step": steps.words,
        "axis": asdict(measured.axis),
        "bounds": (steps.begin, steps.begin + steps.width * steps.counts.shape[1]),
        "labels": (),
        "series": lines,
        "apart": f"{count_of(apart, 'rejected row')} {'has' if apart == 1 else 'have'} no place in time."
        if apart
        else "",
    }


def _series(name: str, values: Sequence[int], is_trouble: bool) -> dict[str, Any]:
    return {"name": name, "values": values, "is_trouble": is_trouble}


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
        check_side_files(
            [file], [("an input of the result", as_glob(each)) for each in folder.status.units[-1].job["input"]]
        )
    report = report_of(path, folder, only)
    for note in report["notes"][:_MOST_NOTES]:
        messages.note(note)
    if (more := len(report["notes"]) - _MOST_NOTES) > 0:
        messages.note(f"there are {count_of(more, 'more note')} of this kind")
    page = page_of(report)
    if output == "-":
        sys.stdout.buffer.write(page.encode())
        return
    write_side_file(file, page)
    messages.summary(f"{output}: {size(len(page.encode()))}, open it in a browser", bytes=len(page.encode()))
