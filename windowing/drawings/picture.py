"""What a drawing shows, as values: lanes of rows and panes on one axis. Text and SVG are two views of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Measure = int | float | Fraction
"""A value of the axis as a number, in one unit for all of an axis."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is drawn.

    ``place``: its place among all drawn rows in their total order, from 0.
    ``arrival``: its arrival position.
    """

    place: int
    arrival: int


@dataclass(frozen=True, slots=True)
class Pane:
    """A pane that is drawn.

    ``number``: its window number.
    ``places``: the places of the drawn rows that it shows, ascending.
    ``count``: how many rows it shows, drawn or not.
    ``closed_by``: why it was emitted.
    ``start``, ``end``: its bounds on the axis, where the window has such bounds; else None.
    ``tick``: the instant of the clock that emitted it, on the axis; None: none did.
    ``told``: what else is told of it, pairs of a name, which may be empty, and a text.
    """

    number: int
    places: tuple[int, ...]
    count: int
    closed_by: str
    start: Measure | None
    end: Measure | None
    tick: Measure | None
    told: tuple[tuple[str, str], ...]

    @property
    def is_open(self) -> bool:
        """Whether the pane was open at the end of the data."""
        return self.closed_by == "end"

    @property
    def more(self) -> int:
        """How many rows it shows that are not drawn."""
        return self.count - len(self.places)


@dataclass(frozen=True, slots=True)
class Lane:
    """The rows and panes of a key.

    ``label``: the values of the key, as text; empty without a key.
    ``rows``: the rows that are drawn.
    ``panes``: the panes that are drawn, in the order in which they were emitted.
    ``more_rows``, ``more_panes``: how many the key has that are not drawn.
    """

    label: str
    rows: tuple[Row, ...]
    panes: tuple[Pane, ...]
    more_rows: int
    more_panes: int


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of a drawing.

    ``name``: what it measures: the order column, the event time, or ``arrival``.
    ``texts``: the value of each place, as text.
    ``measures``: the value of each place as a number, never falling; None: places stand side by side.
    ``marks``: window marks, each by the place before it; -1 before all rows.
    ``ticks``: instants of the clock that begin, end or emit panes, ascending.
    """

    name: str
    texts: tuple[str, ...]
    measures: tuple[Measure, ...] | None
    marks: tuple[int, ...] = ()
    ticks: tuple[Measure, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a drawing shows.

    ``window``: the canonical text of the window.
    ``about``: key, order and counts, in words.
    ``axis``: the axis.
    ``lanes``: one for each key that is drawn; one without a key.
    ``notes``: what is left out and what has no place, in words.
    """

    window: str
    about: str
    axis: Axis
    lanes: tuple[Lane, ...]
    notes: tuple[str, ...]
