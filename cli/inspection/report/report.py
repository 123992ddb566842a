"""The report on a result or a state as plain values: nothing of how a page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ....windowing.ports import Counts

Measure = Literal["duration", "number", "rows"]
"""What the values of a distribution are: microseconds, numbers along the axis, or rows."""
CellKind = Literal["hour", "day", "week", "run"]
"""What a cell of a calendar is."""

Scale = Literal["time", "number", "window"]
"""What windows lie along: times in microseconds since 1970 in UTC, numbers, or the numbers of the windows."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What windows lie along.

    ``scale``: the kind of its values.
    ``name``: the order column that it shows; of the scale ``window`` the word for it.
    ``is_utc``: whether the times are instants, shown in UTC; else they are local times of the data.
    """

    scale: Scale
    name: str
    is_utc: bool = False


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The rows of a key that a state holds for the next unit, as those of a window that is open.

    ``start``, ``end``: the least and the largest order value, both inclusive.
    """

    start: float
    end: float
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The windows of one key, at most as many bars as a page can hold.

    ``key``: the values of the key as text; empty where the windows have no key.
    ``is_chosen``: whether the user named it; else it is one of the busiest.
    ``rows``: the rows in its windows; None where the result does not say.
    ``starts``, ``ends``: from where to where each bar reaches, int64 or float64, shape (bars,); ``ends`` is inclusive.
    ``sizes``: the rows in each bar, int64; None where the result does not say.
    ``counts``: the windows in each bar, int64: 1, or more where successive windows share a bar.
    ``held``: the rows that a state holds of the key; None where it holds none, or where there is no state.
    """

    key: str
    is_chosen: bool
    windows: int
    rows: int | None
    starts: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray | None
    counts: np.ndarray
    held: HeldRows | None = None

    def halved(self) -> Lane:
        """Return the lane with half as many bars: neighbours share one."""
        begins = np.arange(0, len(self.starts), 2)
        return replace(
            self,
            starts=np.minimum.reduceat(self.starts, begins),
            ends=np.maximum.reduceat(self.ends, begins),
            sizes=None if self.sizes is None else np.add.reduceat(self.sizes, begins),
            counts=np.add.reduceat(self.counts, begins),
        )


@dataclass(frozen=True, slots=True)
class Lanes:
    """The windows of the busiest and of the chosen keys.

    ``axis``: what they lie along.
    ``lanes``: the keys, chosen ones first, then the busiest first.
    ``keys``: the number of keys in the result; None where it is too large to count.
    ``missed``: a key that is not among the busiest has at most this many rows or windows more than it seems; 0: exact.
    ``is_by_rows``: whether the busiest have most rows; else most windows.
    """

    axis: Axis
    lanes: tuple[Lane, ...]
    keys: int | None
    missed: int
    is_by_rows: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a distribution: ``count`` values in ``[low, high)``."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """How values are distributed.

    ``unit``: what they are.
    ``bars``: the bars of values above 0, in order; their bounds grow by a constant factor.
    ``zeros``: the number of values that are 0.
    ``quantiles``: (percent, value) pairs; a value is at most 1.6 % too small.
    """

    unit: Measure
    bars: tuple[Bar, ...]
    zeros: int
    count: int
    least: float
    most: float
    total: float
    quantiles: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Counts over time.

    ``values``: the count of each step.
    ``is_trouble``: whether it counts rows that did not come as they should.
    """

    name: str
    values: tuple[int, ...]
    is_trouble: bool = False


@dataclass(frozen=True, slots=True)
class OverTime:
    """Counts over the same steps of time: units, or equal steps along the axis.

    ``step``: what one step is, in words.
    ``axis``: what the steps lie along; None where they are units.
    ``bounds``: (first, after the last) along the axis; labels of the first and of the last unit.
    ``labels``: the name of each step.
    ``apart``: what is known of rows that have no place in time; empty for nothing.
    """

    step: str
    axis: Axis | None
    bounds: tuple[float, float] | tuple[str, str]
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One unit, or several that share a cell of the calendar.

    ``label``: the label of the unit, or of the day or week that holds the units.
    ``ordinal``: its place among cells of its kind.
    ``done``, ``redone``, ``gaps``: the number of units that were run once, run again, and that have no input.
    ``rows_in``, ``out``, ``late``, ``rejected``, ``held``: rows and windows of its units; ``rejected`` without the late
        ones, ``held`` after the last of its units.
    """

    label: str
    ordinal: int
    done: int = 0
    redone: int = 0
    gaps: int = 0
    rows_in: int = 0
    out: int = 0
    late: int = 0
    rejected: int = 0
    held: int = 0

    @property
    def is_done(self) -> bool:
        return self.done + self.redone > 0


@dataclass(frozen=True, slots=True)
class Calendar:
    """The units of a range or a state.

    ``kind``: what a cell is.
    ``unit``: what a unit is: a cell holds several where the calendar would be too large.
    ``cells``: in order.
    ``hidden``: the number of earlier cells that are left out.
    ``out``: the word for what comes out: windows of a state, rows of a result.
    ``again``: the words for units that are not as their first run left them: a state knows which were run again, of
        results there is only the time at which they were written.
    """

    kind: CellKind
    unit: CellKind
    cells: tuple[Cell, ...]
    hidden: int
    out: str
    again: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows. Texts have no secrets; they are not escaped.

    ``path``: the folder as the user wrote it.
    ``window``: the canonical text of the window of the last stage.
    ``clauses``: sentences on the windows, as (stage, text), stage by stage.
    ``settings``: further options of the job that differ from their defaults, as (name, value).
    ``totals``: counts for the top of the page, as (what, count).
    ``accounts``: stage name to the row account of all units together.
    ``lanes``: None where the result has no windows or is gone.
    ``over_time``: None where nothing has a time.
    ``lengths``, ``sizes``: the distributions of window length and of rows per window; None where they are unknown.
    ``reasons``: why windows ended, as (``closed_by``, windows), most first.
    ``calendar``: None for one result.
    ``phases``: (phase, seconds), in their order; of several units their sums.
    ``expectations``: (expectation, what became of it).
    ``notes``: sentences on what the report cannot show, and on damage.
    ``made_with``: package to version.
    """

    path: str
    what: Literal["state", "range", "result"]
    window: str
    clauses: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    totals: tuple[tuple[str, int], ...]
    accounts: Mapping[str, Counts]
    lanes: Lanes | None
    over_time: OverTime | None
    lengths: Distribution | None
    sizes: Distribution | None
    reasons: Sequence[tuple[str, int]]
    calendar: Calendar | None
    phases: tuple[tuple[str, float], ...]
    expectations: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    made_with: tuple[tuple[str, str], ...]
