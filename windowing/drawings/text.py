"""A picture as text: the time lines of the docs, at most 100 characters wide unless more or fewer are asked for.

A letter is a row. A pane stands between ``[`` and ``]``, with a letter for each row that it shows and a dot for a row
of its key that it passes over. Of matches whose symbols are all single letters that letter is the symbol. ``>`` in
place of ``]`` says that the end of the data emitted it, ``…`` in place of either that it shows more rows on that side.
Rows that do not fit one line go on below.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from string import ascii_letters

from ..support.amounts import count_of
from .picture import Axis, Lane, Measure, Pane, Picture, cut

# Where rows and bounds stand: to scale as far as neighbouring rows stay apart.


@dataclass(frozen=True, slots=True)
class Scale:
    """The way from places and values of an axis to a distance from its left end.

    ``at``: the distance of each place, ascending.
    ``measures``: the value of each place; None: there are none.
    ``apart``: the least distance of two places.
    ``is_true``: whether distances are proportional to values.
    """

    at: tuple[float, ...]
    measures: tuple[Measure, ...] | None
    apart: float
    is_true: bool

    def of(self, value: Measure) -> float | None:
        """Return where a value stands: a bound of the first row that is not before it; None without values."""
        if self.measures is None or not self.at:
            return None
        i = bisect_left(self.measures, value)
        if i == 0 or i == len(self.at):
            # Where a value outside of all rows stands: as far as it would be to scale, but at least half a row.
            end = 0 if i == 0 else -1
            assert self.measures is not None
            first, last = self.measures[0], self.measures[-1]
            if first == last:
                return self.at[end] + (self.apart if value > self.measures[end] else -self.apart / 2)
            step = float(Fraction(self.at[-1] - self.at[0]) / Fraction(last - first))
            far = float(Fraction(value - self.measures[end])) * step
            return self.at[end] + (max(far, self.apart / 2) if end else min(far, -self.apart / 2))
        left, right = self.measures[i - 1], self.measures[i]
        if value == right:
            return max(self.at[i] - self.apart / 2, (self.at[i - 1] + self.at[i]) / 2)
        return self.at[i - 1] + float(Fraction(value - left) / Fraction(right - left)) * (self.at[i] - self.at[i - 1])


def scale(axis: Axis, first: int, stop: int, apart: float, room: float, widest: float = 0) -> Scale:
    """Return the scale of the places from ``first`` to before ``stop``: at least ``apart`` from each other.

    ``room``: from the first to the last, if that is enough. Distances are a mixture of those to scale and equal ones,
    with no more of the latter than keeps rows apart. Without values they are equal, and at most ``widest``.
    """
    places = stop - first
    step = max(apart, min(widest, room / max(places - 1, 1)))
    side_by_side = tuple(i * step for i in range(places))
    measures = None if axis.measures is None else axis.measures[first:stop]
    if measures is None or places < 2 or measures[-1] == measures[0]:
        return Scale(side_by_side, measures, apart, False)
    whole = Fraction(measures[-1]) - Fraction(measures[0])
    room = max(room, (places - 1) * apart)
    true = [float((Fraction(value) - Fraction(measures[0])) / whole) * room for value in measures]
    even = room / (places - 1)
    least = min(right - left for left, right in pairwise(true))
    share = 0.0
    if least < apart:
        share = min(1.0, (apart - least) / (even - least)) if even > least else 1.0
    at = tuple((1 - share) * x + share * i * room / (places - 1) for i, x in enumerate(true))
    return Scale(at, measures, apart, share == 0)


WIDTH = 100
_APART = 3
_LONGEST_KEY = 16
_LEAST_ROOM = 36
"""Characters that rows get, whatever is told of the panes."""


def picture_text(picture: Picture, width: int = WIDTH) -> str:
    """Return the lines of a picture, each of at most ``width`` characters."""
    panes = [pane for lane in picture.lanes for pane in lane.panes]
    closed = max((len(pane.closed_by) for pane in panes), default=0)
    counts = max((len(count_of(pane.count, "row")) for pane in panes), default=0)
    heads = [f"{pane.closed_by.ljust(closed)}  {count_of(pane.count, 'row').ljust(counts)}" for pane in panes]
    told = dict[int, str]()
    for pane, head in zip(panes, heads, strict=True):
        about = pane.told if picture.has_letters else (*pane.way, *pane.told)
        told[id(pane)] = "  ".join([head, *(f"{name}={text}" if name else text for name, text in about)]).rstrip()
    labels = [_pane_label(pane) for lane in picture.lanes for pane in lane.panes]
    left = max(map(len, [*labels, *map(_lane_label, picture.lanes), _axis_label(picture), "window: "]))
    right = max(map(len, told.values()), default=0) + 2
    room = max(width - left - right - 5, _LEAST_ROOM)
    symbols = "; letters in panes are symbols" if picture.has_letters else ""
    lines = [f"{'window: '.ljust(left)}{picture.window}", f"{' ' * left}{picture.about}{symbols}"]
    places, most = len(picture.axis.texts), room // _APART + 1
    for first in range(0, max(places, 1), most):  # rows that do not fit one line go on below
        stop = min(first + most, places)
        along = scale(picture.axis, first, stop, _APART, room if places <= most else 0)
        block = list(_Block(picture, told, left, first, stop, along, width).lines())
        lines += ["", *block] if block else []
    lines += [f"... {note}" for note in [*lane_notes(picture), *picture.notes]]
    return "\n".join(cut(line.rstrip(), width) for line in lines)


def lane_notes(picture: Picture) -> Iterator[str]:
    """Yield for each key that is not drawn in full how much of it is left out."""
    for lane in picture.lanes:
        counts = [(lane.more_rows, "row"), (lane.more_panes, "pane")]
        left = [count_of(count, f"more {noun}") for count, noun in counts if count]
        if left:
            yield " and ".join(left) + (f" of {lane.label}" if lane.label else "")


def _axis_label(picture: Picture) -> str:
    return f"{cut(picture.axis.name, _LONGEST_KEY + 6)}: "


def _lane_label(lane: Lane, side: str = "right") -> str:
    name = "rows" if lane.right is None else side
    return f"{name} {cut(lane.label, _LONGEST_KEY)}: " if lane.label else f"{name}: "


def _pane_label(pane: Pane) -> str:
    return f"pane {pane.number}: "


@dataclass(slots=True)
class _Block:
    """Lines of the places from ``first`` to before ``stop``.

    ``left``: the width of labels.
    ``width``: the width of a line.
    """

    picture: Picture
    told: Mapping[int, str]
    left: int
    first: int
    stop: int
    along: Scale
    width: int

    @property
    def at(self) -> dict[int, int]:
        return {self.first + i: self.left + 1 + round(x) for i, x in enumerate(self.along.at)}

    @property
    def end(self) -> int:
        return max(self.at.values(), default=self.left) + 4

    def lines(self) -> Iterator[str]:
        """Yield the values of rows, marks, and the rows and panes of each key that has some here."""
        if self.stop:
            line = _axis_label(self.picture).ljust(self.left)
            for place, at in self.at.items():
                text = self.picture.axis.texts[place]
                if len(line) <= max(at - 1, self.left) and at + len(text) <= self.width:
                    line = line.ljust(at) + text
            yield line
        if any(self.first - 1 <= mark < self.stop for mark in self.picture.axis.marks):
            # A mark stands after its row; before the first row of all, or of these lines.
            marks = {mark: self.at.get(mark, -1) + 1 for mark in self.picture.axis.marks}
            if self.first - 1 in marks:
                marks[self.first - 1] = self.at.get(self.first, 0) - 1
            yield "marks:".ljust(self.left) + self._drawn(dict.fromkeys(marks.values(), "|"))
        for lane in self.picture.lanes:
            yield from self._lane(lane)

    def _lane(self, lane: Lane) -> Iterator[str]:
        at = self.at
        rows = {place: at[place] for place in lane.rows if place in at}
        if not rows and self.first:
            return
        right = lane.right or frozenset()
        yield self._rows(lane, "left", {place: x for place, x in rows.items() if place not in right})
        for pane in lane.panes:
            places = pane.places
            if not places:  # an empty pane stands before the place of its start, or else before the first
                measures, start = self.picture.axis.measures, pane.start
                places = (0,)
                if measures and start is not None:
                    places = (min(sum(value < start for value in measures), len(measures) - 1),)
            if any(self.first <= place < max(self.stop, 1) for place in places):
                line = _pane_label(pane).rjust(self.left) + self._drawn(self._pane(pane, rows))
                yield line.ljust(self.end) + self.told[id(pane)]
        if lane.right is not None:
            yield self._rows(lane, "right", {place: x for place, x in rows.items() if place in right})

    def _rows(self, lane: Lane, side: str, rows: Mapping[int, int]) -> str:
        cells = {x: _letter(place) for place, x in rows.items()}
        return _lane_label(lane, side).ljust(self.left) + self._drawn(cells)

    def _pane(self, pane: Pane, rows: Mapping[int, int]) -> dict[int, str]:
        seen = [place for place in pane.places if self.first <= place < self.stop]
        if not seen:
            start = None if pane.start is None else self.along.of(pane.start)
            at = self.left if start is None else self.left + min(max(round(start), 0), self.end - self.left - 3)
            return {at: "[", at + 2: "]"}
        cells = {x: "." for place, x in rows.items() if seen[0] <= place <= seen[-1]}
        symbols = dict(zip(pane.places, pane.taken, strict=True)) if self.picture.has_letters else {}
        cells |= {self.at[place]: symbols.get(place, _letter(place)) for place in seen}
        cells[self.at[seen[0]] - 1] = "[" if seen[0] == pane.places[0] else "…"
        goes_on = seen[-1] != pane.places[-1] or pane.more > 0
        cells[self.at[seen[-1]] + 1] = "…" if goes_on else ">" if pane.is_open else "]"
        return cells

    def _drawn(self, cells: Mapping[int, str]) -> str:
        return "".join(cells.get(i, " ") for i in range(self.left, self.end))


def _letter(place: int) -> str:
    return ascii_letters[place % len(ascii_letters)]
