"""What a report measures on panes, in two passes over results: counts and busy keys, then the windows of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...results.open_windows import OpenWindowRows
from ...results.result import ResultFolder
from ..chosen import Choice, is_chosen, parse_choice
from ..report import Axis, Lanes
from .busiest import BusyKeys
from .distribution import Spread
from .lanes import LaneBars, add_held, add_panes
from .panes import PaneColumns, Panes, pane_columns, panes_of
from .steps import Steps

BUSIEST, MOST_CHOSEN, BARS = 8, 16, 1200
WINDOWS, ROWS, LATE, LATE_ROWS, REJECTS = "windows", "rows", "late", "late_rows", "rejects"


@dataclass(slots=True)
class Measured:
    """What one pass over panes counts.

    ``columns``: where the first result says what; the others must say it in the same way.
    ``choice``: the keys that the user named.
    ``busy``, ``chosen``: the weights of all keys, and of those that the user named.
    ``lengths``, ``sizes``: how long the windows are, and how many rows they have.
    ``steps``: windows and rows over time, by the starts of the windows.
    ``reasons``: ``closed_by`` to windows.
    ``windows``: the number of panes; ``placeless``: those without a place in time.
    ``axis``: what the windows lie along.
    """

    columns: PaneColumns
    choice: Choice
    busy: BusyKeys
    chosen: BusyKeys
    steps: Steps
    lengths: Spread = field(default_factory=Spread)
    sizes: Spread = field(default_factory=Spread)
    reasons: Counter[str] = field(default_factory=Counter)
    windows: int = 0
    placeless: int = 0

    @property
    def axis(self) -> Axis:
        """What the windows lie along."""
        return self.columns.axis

    def add(self, panes: Panes) -> None:
        """Count panes."""
        self.windows += len(panes.numbers)
        self._add_keys(panes)
        self._add_reasons(panes)
        if panes.rows is not None:
            self.sizes.add(panes.rows)
        starts, ends = panes.starts[panes.has_place], panes.ends[panes.has_place]
        self.placeless += len(panes.starts) - len(starts)
        if self.axis.scale != "window":
            self.lengths.add(ends - starts)
        rows = 0 if panes.rows is None else panes.rows[panes.has_place]
        self.steps.add(starts, windows=1, rows=rows, late=panes.is_late[panes.has_place].astype(np.int64))

    def _add_keys(self, panes: Panes) -> None:
        if not self.columns.keys:
            return
        weights = np.ones(len(panes.numbers), np.int64) if panes.rows is None else panes.rows
        self.busy.add(panes.keys, weights)
        if self.choice:
            fits = is_chosen(panes.keys, self.choice)
            self.chosen.add(panes.keys.filter(pa.array(fits)), weights[fits])

    def _add_reasons(self, panes: Panes) -> None:
        if panes.reasons is not None:
            for each in pc.value_counts(panes.reasons):
                self.reasons[str(each["values"].as_py())] += each["counts"].as_py()


def measure(results: Sequence[ResultFolder], only: Sequence[str], note: Callable[[str], None]) -> Measured | None:
    """Count the panes of results; None where none of them numbers windows.

    ``only``: the keys that the user named, as `parse_choice` takes them. ``note``: is told of results that are left
    out. Raises as `panes_of` and `parse_choice` do.
    """
    found: Measured | None = None
    for result in results:
        columns = pane_columns(result)
        if columns is None:
            continue
        if found is None:
            choice = parse_choice(only, columns.keys, result.schema)
            found = _nothing_yet(columns, choice, len(results) == 1 and columns.is_sorted)
        if not _is_alike(columns, found.columns):
            note(f"{result.shown} has other columns than {results[0].shown}, and its windows are left out")
            continue
        for panes in panes_of(result, columns):
            found.add(panes)
    return found


def _nothing_yet(columns: PaneColumns, choice: Choice, is_sorted: bool) -> Measured:
    steps = Steps(columns.axis.scale, (WINDOWS, ROWS, LATE, LATE_ROWS, REJECTS))
    busy, chosen = (BusyKeys(columns.keys, is_sorted) for _ in range(2))
    return Measured(columns, choice, busy, chosen, steps)


def _is_alike(one: PaneColumns, other: PaneColumns) -> bool:
    mine, others = ((each.keys, each.types, each.axis.scale, each.has_rows) for each in (one, other))
    return mine == others


def lanes_of(results: Iterable[ResultFolder], measured: Measured, held: OpenWindowRows | None) -> Lanes:
    """Return the windows of the chosen and of the busiest keys; without a key one lane of all windows.

    ``held``: the rows that a state holds; None without one.
    """
    columns = measured.columns
    bars = _wanted(measured)
    for result in results:
        found = pane_columns(result)
        if found is None or not _is_alike(found, columns):
            continue
        for panes in panes_of(result, found):
            add_panes(bars, panes)
    if held is not None and {"first", "last"} <= set(held.schema.names) and measured.axis.scale != "window":
        for table in held.tables():
            add_held(bars, table, measured.axis.scale)
    lanes = tuple(each.lane() for each in bars)
    exact = measured.busy.missed
    return Lanes(measured.axis, lanes, measured.busy.count if columns.keys else 1, exact, columns.has_rows)


def _wanted(measured: Measured) -> list[LaneBars]:
    has_rows = measured.columns.has_rows
    if not measured.columns.keys:
        return [LaneBars({}, False, has_rows, 4 * BARS)]
    chosen = measured.chosen.heaviest(MOST_CHOSEN)
    named = [tuple(value.as_py() for value in key.values()) for key in chosen]
    busy = [
        key for key in measured.busy.heaviest(BUSIEST) if tuple(value.as_py() for value in key.values()) not in named
    ]
    return [LaneBars(key, at < len(chosen), has_rows, BARS) for at, key in enumerate([*chosen, *busy])]
