"""How a window is looked at while its operator is called: views of scenes, held rows, and lines over several scenes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...operator import Operator, Row
from .scenes import Described, Scene
from .values import MOST_ROWS, OperatorRows

Events = tuple[Literal["row", "pane", "eviction"], list[int]]
_AT_ONCE = 4096  # rows


class Lines:
    """The rows that operators have returned, over several scenes."""

    def __init__(self, operator: type[Operator], scene: Described) -> None:
        self.operator = operator
        self.now = OperatorRows(operator, scene)
        self.before: list[pa.Table] = []
        self.count = 0

    def turn_to(self, scene: Described) -> None:
        """Number panes, rows and evictions as in another scene from here on."""
        if scene is not self.now.scene:
            self.before += self.now.tables()
            self.count = sum(map(len, self.before))
            self.now = OperatorRows(self.operator, scene)

    @property
    def is_full(self) -> bool:
        """Whether the rows are many enough for a table."""
        return self.count + len(self.now.lines) >= MOST_ROWS

    def full_tables(self) -> Iterator[pa.Table]:
        """Yield all rows where they are many."""
        if self.is_full:
            yield from self.tables()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows so far."""
        parts, self.before, self.count = [*self.before, *self.now.tables()], [], 0
        if parts:
            table = pa.concat_tables(parts).combine_chunks()
            for first in range(0, len(table), MOST_ROWS):
                yield table.slice(first, MOST_ROWS)


@dataclass(frozen=True, slots=True)
class View:
    """The part of a scene that is one key, from the row on where its steps begin.

    ``scene``: the scene.
    ``key``: the key in the scene.
    ``offset``: the row of the whole sequences that is row 0 of the scene.
    ``panes``: int64 (2,), the bounds of the key's panes among those of the scene, by key and number.
    ``since``: the place up to which steps were made before.
    ``stop``: the place from which on the scene does not tell what happens; None: it tells all.
    """

    scene: Scene
    key: int
    offset: int
    panes: Ints
    since: int
    stop: int | None

    @property
    def order(self) -> Ints:
        """The panes that are to come, by number."""
        order = self.scene.lifetimes.order[slice(*self.panes)]
        place = self.scene.lifetimes.place[order]
        low = place >= self.since if self.since else np.ones(len(order), np.bool_)
        return order[low if self.stop is None else low & (place < self.stop)]

    @property
    def stepping(self) -> Ints:
        """The rows that are to come, ascending."""
        begin, end = self.scene.sequences.bounds[self.key : self.key + 2]
        begin = max(int(begin), self.since)
        return np.flatnonzero(self.scene.lifetimes.stepping[begin:end]) + begin

    def events(self) -> Iterator[Events]:
        """Yield runs of panes, of rows and of evictions: each row after the panes and evictions that come before it."""
        order = self.order
        place, stepping = self.scene.lifetimes.place[order], self.stepping
        panes, ahead, rows = order.tolist(), 0, list[int]()
        behind_rows = np.searchsorted(place, stepping, side="right").tolist()
        cuts = list(self.scene.evictions.get(self.key, ()))
        for row, behind in zip([*stepping.tolist(), None], [*behind_rows, len(panes)], strict=True):
            if rows and (row is None or behind > ahead or (cuts and cuts[0][0] <= row) or len(rows) == _AT_ONCE):
                yield "row", rows
                rows = []
            while cuts and (row is None or cuts[0][0] <= row):
                cut, eviction = cuts.pop(0)
                before = max(ahead, int(np.searchsorted(place, cut, side="right")))
                yield "pane", panes[ahead:before]
                ahead = before
                yield "eviction", [eviction]
            if behind > ahead:
                yield "pane", panes[ahead:behind]
                ahead = behind
            if row is not None:
                rows.append(row)


@dataclass(slots=True)
class Held:
    """The rows in the window of a key, by their number in the whole sequences, and the runs of panes that show them."""

    rows: dict[int, Row] = field(default_factory=dict)
    runs: dict[int, list[Any]] = field(default_factory=dict)

    def put(self, row: int, value: Row, view: View) -> None:
        """Add a row."""
        self.rows[row] = value
        self.runs[row] = view.scene.lifetimes.shown.at(row - view.offset)

    def put_all(self, rows: list[int], values: Iterable[Row], view: View) -> None:
        """Add rows of the view, by their numbers there."""
        numbers = [row + view.offset for row in rows]
        self.rows.update(zip(numbers, values, strict=True))
        self.runs.update(zip(numbers, map(view.scene.lifetimes.shown.at, rows), strict=True))

    def turn_to(self, view: View) -> None:
        """Ask another view for the panes that show the rows."""
        self.runs = {row: view.scene.lifetimes.shown.at(row - view.offset) for row in self.rows}

    def shown(self, pane: int) -> list[int]:
        """Return the rows that a pane of the view shows, ascending."""
        runs = self.runs
        return [row for row in sorted(runs) for enter, leave in runs[row] if enter <= pane < leave]

    def unseen(self, pane: int) -> list[int]:
        """Return the rows that a pane of the view does not show, ascending."""
        return sorted(self.runs.keys() - self.shown(pane))

    def take(self, rows: list[int]) -> tuple[Row, ...]:
        """Remove rows, and return them."""
        for row in rows:
            del self.runs[row]
        return tuple(map(self.rows.pop, rows))
