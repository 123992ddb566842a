"""A folder that wincli wrote becomes the value of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....windowing.errors import WincliError
from ....windowing.support.addresses.redaction import redacted, redacted_path
from ....windowing.support.suggest import few
from ...console.amounts import count_of
from ..results.open_windows import OpenWindowRows, open_windows
from .calendar import calendar_of
from .folders import Folder, read_folder
from .measures.measured import LATE, LATE_ROWS, REJECTS, ROWS, WINDOWS, Measured, lanes_of, measure
from .measures.rejects import add_rejects
from .report import Axis, Calendar, Measure, OverTime, Report, Series
from .words import clauses_of, settings_of


def gather_report(path: str, only: Sequence[str] = ()) -> Report:
    """Return the report on a result, a folder of results, or a state.

    ``only``: texts ``COLUMN=VALUE`` that choose keys, besides the busiest. Raises `InputError` where the path is none
    of these, or is damaged, `ConfigError` for a choice that does not fit.
    """
    return report_of(path, read_folder(path), only)


def report_of(path: str, folder: Folder, only: Sequence[str]) -> Report:
    """Return the report on what was read of a path. Raises as `gather_report` does."""
    notes = [*folder.notes, *folder.status.damage, *(f"{label}: {what}" for label, what in folder.status.lost)]
    notes += _events(folder)
    measured = measure(folder.results, only, notes.append)
    notes += [] if measured is None else _notes(measured)
    calendar = calendar_of(folder.status, folder.kind, folder.times) if folder.status.what != "result" else None
    return Report(
        redacted_path(path),
        folder.status.what,
        str(_window(folder)),
        clauses_of(folder.job, _times(folder, measured)),
        settings_of(folder.job),
        _totals(folder, measured),
        folder.status.accounts,
        None if measured is None or not measured.windows else lanes_of(folder.results, measured, _held(path, folder)),
        _over_units(calendar) if calendar and len(calendar.cells) > 1 else _over_time(folder, measured),
        None if measured is None else measured.lengths.distribution(_unit(measured.axis)),
        None if measured is None else measured.sizes.distribution("rows"),
        () if measured is None else tuple(measured.reasons.most_common()),
        calendar,
        _phases(folder.seconds),
        _expectations(folder),
        tuple(map(redacted, notes)),
        tuple((name, str(version)) for name, version in folder.versions.items()),
    )


def _held(path: str, folder: Folder) -> OpenWindowRows | None:
    """Return the rows that a state holds of the stage that wrote the results."""
    if folder.status.what != "state":
        return None
    try:
        return open_windows(path, None, folder.status.last_stages[-1].name)
    except WincliError:  # damage, which the notes tell
        return None


def _window(folder: Folder) -> str:
    return folder.results[-1].manifest["spec"] if folder.results else folder.job["stages"][-1]["window"]


def _times(folder: Folder, measured: Measured | None) -> frozenset[str]:
    """Return the order columns, where windows lie along times; of earlier stages those that were chosen as times."""
    if measured is None or measured.axis.scale != "time":
        return frozenset()
    orders = [result.manifest["order"] for result in folder.results]
    stages = [stage["order"] for result in folder.results for stage in result.manifest.get("stages", ())]
    orders += [order for order in stages if "time" in order["why"]]
    return frozenset(name for order in orders for name in order["columns"])


def _unit(axis: Axis) -> Measure:
    return "duration" if axis.scale == "time" else "number"


def _events(folder: Folder) -> list[str]:
    """Return what a state says of runs that are under way, were killed, or failed."""
    status, notes = folder.status, []
    if status.at_work:
        notes.append(f"a run is at work on the state since {status.at_work.started}")
    if status.killed:
        notes.append(f"{status.killed} was begun and not finished; run it again")
    if error := status.last_error:
        notes.append(f"the last error: {error['unit']} at {error['when']}: {error['message']}")
    return notes


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
    """Return counts by unit, or by the cell that several units share."""
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
    """Return counts over equal steps of the time, or of another order column."""
    if measured is None or measured.axis.scale == "window":
        return None
    apart = add_rejects(folder.results, measured)
    if not measured.steps.counts.shape[1]:
        return None
    steps = measured.steps
    names = [("windows begun", WINDOWS, False)]
    names += [("rows in windows", ROWS, False)] if measured.columns.has_rows else []
    names += [("windows with late rows", LATE, True)] if steps.sums(LATE).any() else []
    names += [("late rows", LATE_ROWS, True), ("other rejects", REJECTS, True)]
    series = tuple(Series(name, tuple(map(int, steps.sums(channel))), is_bad) for name, channel, is_bad in names)
    bounds = (steps.begin, steps.begin + steps.width * steps.counts.shape[1])
    words = f"{count_of(apart, 'rejected row')} {'has' if apart == 1 else 'have'} no place in time." if apart else ""
    return OverTime(steps.words, measured.axis, bounds, (), series, words)


def _phases(told: Sequence[Mapping[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the seconds of each phase, of all units together; the whole comes last."""
    names = list(dict.fromkeys(name for seconds in told for name in seconds))
    sums = {name: sum(seconds.get(name, 0.0) for seconds in told) for name in names}
    total = sums.pop("total", None)
    return (*sums.items(), *([] if total is None else [("total", total)]))


def _expectations(folder: Folder) -> tuple[tuple[str, str], ...]:
    told: dict[str, list[tuple[str, bool]]] = {}
    for unit in folder.status.units:
        for each in unit.expectations:
            told.setdefault(str(each["expect"]), []).append((unit.label, bool(each["holds"])))
    return tuple((redacted(text), _kept(found)) for text, found in told.items())


def _kept(found: Sequence[tuple[str, bool]]) -> str:
    broken = [label for label, holds in found if not holds]
    if broken:
        return f"does not hold in {few(broken)}" if len(found) > 1 else "does not hold"
    return f"holds in {count_of(len(found), 'unit')}" if len(found) > 1 else "holds"
