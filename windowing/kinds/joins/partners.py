"""Why a row of a join has these partners, or none, in words: what windows over both sides have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...columns.arrays import Ints, combined, spread
from ...language.joins import LEFT, RIGHT, SIDE
from ...language.sentences import UNMATCHED
from ...rows.panes import AT_END
from ...support.amounts import count_of
from ..facts import Fact, KeyPane, KeyPanes
from .matching import meets
from .moments import Side, Timeline

_TOLD = 5
"""Of so many rows of a window it is told which partners they have."""


def side_name(is_left: bool) -> str:
    """Return what a side is called."""
    return "left" if is_left else "right"


def how_fact(how: str) -> Fact:
    """Return which rows come out at all."""
    text = UNMATCHED[how] or "Only pairs come out."
    return Fact("other", f"with {how}, {text[0].lower()}{text[1:-1]}")


def matches(panes: KeyPanes, row: int, is_left: bool, others: Ints) -> Ints:
    """Return which rows of the other side match a row, int64."""
    condition = panes.context.match
    if condition is None or not len(others):
        return others
    pair = (np.full(len(others), row), others)
    return others[condition.holds(panes.sequences.rows, *(pair if is_left else pair[::-1]))]


def partners(panes: KeyPanes, row: int, is_left: bool, others: Ints, where: str) -> Fact:
    """Return how many partners a row has: of ``others``, rows of the other side that are there with it, ``where``."""
    text = f"{panes.name(row)} of the {side_name(is_left)} has "
    if not meets(panes.sequences)[0]:
        others, met, text = others[:0], 0, f"{text}no partner: its key is null or NaN, and equals nothing"
    else:
        met = len(matches(panes, row, is_left, others))
        text += f"{count_of(met, 'partner')} among {count_of(len(others), f'{side_name(not is_left)} row')} {where}"
        if without := len(others) - met:
            text += f"; {without:,} {'does' if without == 1 else 'do'} not match"
    return Fact("other", text, panes.pos(row), None, {"partners": str(met), "rows": str(len(others))})


# One window over both sides.


def partners_of_pane(pane: KeyPane, rows: Ints) -> Iterator[Fact]:
    """Yield how many partners rows have in a window, those without any first. ``rows``: int64, those of the window."""
    pairs = pane.panes.pairs
    assert pairs is not None
    own = pairs.chosen(slice(pane.at, pane.at + 1))
    met = own.left >= 0
    told = np.concatenate([own.left[own.lo < own.hi], own.right[spread(own.lo[met], (own.hi - own.lo)[met])]])
    yield from partners_in(pane, rows, np.concatenate([np.setdiff1d(rows, told), np.intersect1d(rows, told)])[:_TOLD])
    if len(rows) > _TOLD:
        yield Fact("other", f"{count_of(len(rows) - _TOLD, 'more row')}: --at says which partners each has")


def partners_in(panes: KeyPanes, rows: Ints, told: Ints) -> Iterator[Fact]:
    """Yield how many partners rows have in a window, and where it has none of the other side, which comes next to it.

    ``rows``: int64, those of the window. ``told``: int64, those of which it is told.
    """
    side = combined(panes.sequences.rows.column(SIDE)).to_numpy()
    for row in told.tolist():
        for is_left, own, other in ((True, LEFT, RIGHT), (False, RIGHT, LEFT)):
            if side[row] & own:
                others = rows[side[rows] & other > 0]
                yield partners(panes, row, is_left, others, "in the window")
                if not len(others):
                    every = np.flatnonzero(side & other)
                    yield from _near(panes, not is_left, every[every < rows.min()][-1:], "comes before the window")
                    yield from _near(panes, not is_left, every[every > rows.max()][:1], "comes after it")


def _near(panes: KeyPanes, is_left: bool, rows: Ints, what: str) -> Iterator[Fact]:
    for row in rows.tolist():
        yield Fact("near", f"{panes.name(row)} of the {side_name(is_left)} {what}", panes.pos(row))


# A window on each side.


@dataclass(frozen=True, slots=True)
class SidesOfKey:
    """The rows of a key in the windows of both sides. ``is_brief``: whether a side holds nothing, ``count(0)``."""

    panes: KeyPanes
    line: Timeline
    is_brief: tuple[bool, bool]

    def at(self, moment: int, shown: Ints) -> Iterator[Fact]:
        """Yield which partners rows have that come or go at a moment. ``shown``: int64, rows that its pane shows."""
        emit = self.panes.context.emit
        for is_left, own, _ in self._both:
            comes = (own.enter == moment) & own.meets & ((own.leave > moment) | self.is_brief[not is_left])
            goes = (own.leave == moment) & ~comes
            if emit != "left":
                for i in np.flatnonzero(comes)[:_TOLD].tolist():
                    yield from self._partners(is_left, i, moment + 1, "there when it came")
            for i in np.flatnonzero(goes & np.isin(own.row, shown))[:_TOLD].tolist():
                yield from self.life(is_left, i)

    def of_rows(self, rows: Ints) -> Iterator[Fact]:
        """Yield which partners rows have, from when they come until they go."""
        for row in rows.tolist():
            places = [(is_left, i) for is_left, own, _ in self._both for i in np.flatnonzero(own.row == row).tolist()]
            for place in places:
                yield from self.life(*place)
            if not places:
                text = f"{self.panes.name(row)} is on no side: a column that its window names is null or NaN"
                yield Fact("other", text, self.panes.pos(row))

    def life(self, is_left: bool, i: int) -> Iterator[Fact]:
        """Yield which partners row ``i`` of a side has in all."""
        own = self.line.left if is_left else self.line.right
        enter, leave = int(own.enter[i]), int(own.leave[i])
        if self.is_brief[not is_left] or not own.meets[i]:
            yield from self._partners(is_left, i, leave, "there when it came")
            return
        found, *near = self._partners(is_left, i, leave, "there with it")
        until = self._until(is_left, leave) if enter < leave else "was never there: another took its place"
        yield from (replace(found, text=f"{found.text}; it {until}"), *near)

    @property
    def _both(self) -> tuple[tuple[bool, Side, Side], ...]:
        return (True, self.line.left, self.line.right), (False, self.line.right, self.line.left)

    def _partners(self, is_left: bool, i: int, until: int, where: str) -> Iterator[Fact]:
        _, own, other = self._both[not is_left]
        # a row of a side that holds nothing meets what is there before anything moves
        (low, high), (enter, leave) = (int(own.enter[i]), until), (other.enter, other.leave)
        if self.is_brief[not is_left]:
            low, high = low - 1, low
        if self.is_brief[is_left]:
            enter, leave = enter - 1, np.where(other.meets, enter, enter - 1)
        there = (enter < high) & (leave > low) & (enter < leave)
        found = partners(self.panes, int(own.row[i]), is_left, other.row[there], where)
        yield found
        if found.numbers["partners"] == "0" and own.meets[i]:
            gone, to_come = np.flatnonzero((leave <= low) & (enter < leave))[-1:], np.flatnonzero(enter >= high)[:1]
            for at in gone.tolist():
                yield from _near(self.panes, not is_left, other.row[[at]], self._until(not is_left, int(leave[at])))
            yield from _near(self.panes, not is_left, other.row[to_come], "came later")

    def _until(self, is_left: bool, moment: int) -> str:
        row, event = int(self.line.what[moment]), self.line.event[[moment]]
        if row >= 0:
            return f"was there until {self.panes.name(row)} of the {side_name(is_left)} came"
        if row == AT_END or self.line.grid is None:
            return "was there to the end"
        return f"was there until {self.panes.texts(self.line.grid.to_arrow(self.line.instants[event]))[0]}"
