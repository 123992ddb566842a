"""What a drawing shows, as values: lanes of rows and panes on one axis. Text and SVG are two views of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from ..columns.arrays import plain_text, scale_of
from ..errors import shown

Measure = int | float | Fraction
"""A value of the axis as a number, in one unit for all of an axis."""


@dataclass(frozen=True, slots=True)
class Pane:
    """A pane that is drawn.

    ``places``: the places of the drawn rows that it shows, ascending.
    ``count``: how many rows it shows, drawn or not.
    ``start``, ``end``: its bounds on the axis, where the window has such bounds; else None.
    ``tick``: the instant of the clock that emitted it, on the axis; None: none did.
    ``taken``: as what a match takes each of ``places``; empty where the window is no match.
    ``told``: what else is told of it, pairs of a name, which may be empty, and a text.
    """

    number: int
    places: tuple[int, ...]
    count: int
    closed_by: str
    start: Measure | None
    end: Measure | None
    tick: Measure | None
    taken: tuple[str, ...]
    told: tuple[tuple[str, str], ...]

    @property
    def is_open(self) -> bool:
        return self.closed_by == "end"

    @property
    def more(self) -> int:
        return self.count - len(self.places)

    @property
    def way(self) -> tuple[tuple[str, str], ...]:
        """As what it takes its rows, in words, as ``told`` has others; empty where the window is no match."""
        text = " ".join([*self.taken, *(["…"] if self.more else [])])
        return (("as", cut(text, _WAY)),) if self.taken else ()


@dataclass(frozen=True, slots=True)
class Lane:
    """The rows and panes of a key.

    ``label``: the values of the key, as text; empty without a key.
    ``rows``: the arrival position of each row that is drawn, by its place among all drawn rows in their total order.
    ``panes``: the panes that are drawn, in the order in which they were emitted.
    ``more_rows``, ``more_panes``: how many the key has that are not drawn.
    ``right``: the places of ``rows`` that are of the right side of a join; None: there is one side.
    """

    label: str
    rows: Mapping[int, int]
    panes: tuple[Pane, ...]
    more_rows: int
    more_panes: int
    right: frozenset[int] | None = None


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
    ``lanes``: one for each key that is drawn; one without a key.
    ``notes``: what is left out and what has no place, in words.
    """

    window: str
    about: str
    axis: Axis
    lanes: tuple[Lane, ...]
    notes: tuple[str, ...]

    @property
    def has_letters(self) -> bool:
        """Whether windows are matches, and single letters all symbols as which they take rows."""
        shown = {symbol for lane in self.lanes for pane in lane.panes for symbol in pane.taken}
        return bool(shown) and all(len(symbol) == 1 and symbol.isascii() and symbol.isalpha() for symbol in shown)


# Values as short texts, and as numbers of an axis.


_LONGEST = 28
_WAY = 40
_DATE = len("2026-11-01")
_WHOLE_MINUTE = re.compile(r"\d\d:\d\d:00$")


def cut(text: str, most: int = _LONGEST) -> str:
    """Return a text of at most ``most`` characters, with an ellipsis where some are left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def texts_of(values: pa.Array) -> list[str]:
    """Return each value as a short text of one line; null is ``-``."""
    if not pa.types.is_temporal(values.type):
        return [_text(value) for value in values]
    try:
        found = values.cast(pa.string()).to_pylist()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # durations, and instants that have no calendar date
        found = [_text(value) if value.is_valid else None for value in values]
    known = [text.removesuffix("Z") for text in found if text is not None]
    while known and all("." in text and text.endswith("0") for text in known):  # zeros that say nothing
        known = [text[:-1] for text in known]
    known = [text.removesuffix(".") for text in known]
    if all(_WHOLE_MINUTE.search(text) for text in known):
        known = [text.removesuffix(":00") for text in known]
    in_turn = iter(known)
    return ["-" if text is None else next(in_turn) for text in found]


def without_date(name: str, texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of an axis and its texts; a date that all texts begin with is told once, with the name."""
    dates = {text[:_DATE] for text in texts}
    if len(dates) != 1 or any(len(text) < _DATE + 6 or text[_DATE] != " " for text in texts):
        return name, list(texts)
    return f"{name}, {dates.pop()}", [text[_DATE + 1 :] for text in texts]


def after(start: str, end: str) -> str:
    """Return the text of an end without the date that it shares with its start."""
    is_shared = len(end) > _DATE and start[: _DATE + 1] == end[: _DATE + 1] and end[_DATE] == " "
    return end[_DATE + 1 :] if is_shared else end


def measure_of(value: pa.Scalar) -> Measure | None:
    """Return a value as an exact number, times in nanoseconds; None where it has no place on an axis."""
    types, dtype = pa.types, value.type
    if not value.is_valid or types.is_interval(dtype):
        return None
    if types.is_temporal(dtype):
        per_second = scale_of(dtype).per_second
        assert per_second is not None, "times have ticks"
        return int(value.value * 10**9 / per_second)
    if types.is_integer(dtype):
        return int(value.as_py())
    if types.is_decimal(dtype):
        return Fraction(value.as_py())
    number = float(value.as_py()) if types.is_floating(dtype) else math.nan
    return number if math.isfinite(number) else None


def _text(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "-"
    if pa.types.is_floating(value.type):
        return f"{value.as_py():.6g}"
    return cut(shown(plain_text(value)))


# Bars on tracks: no two on one track touch.


Extent = tuple[float, float]
"""From where to where something reaches along the axis."""


def pack(extents: Iterable[Extent], apart: float, most: int | None = None) -> list[int | None]:
    """Return the track of each extent, from 0: the first on which it is ``apart`` from those before it.

    ``most``: how many tracks there are; an extent for which there is none is left out: None.
    """
    ends: list[float] = []
    tracks = list[int | None]()
    for left, right in extents:
        track = next((i for i, end in enumerate(ends) if left >= end + apart), len(ends))
        if track == most:
            tracks.append(None)
            continue
        ends[track:] = [right, *ends[track + 1 :]]
        tracks.append(track)
    return tracks
