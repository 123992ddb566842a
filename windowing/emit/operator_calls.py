"""The replay: what a window does, told to operators call by call in its exact order (``--operator``).

Nothing is computed anew: when rows come and go follows from the panes (`windowing.emit.row_lifetimes`). Of each key,

    at a row     the panes that come out before it; then evict the rows that it drives out, insert it
    at a pane    evict the rows that are gone by then, insert those that come with it (section 6), trigger,
                 evict the rows that no other pane is going to show (sections 2 and 5)

A window ends with the rows that it holds at the end: a pane that only the end brings out lets none go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..errors import ConfigError
from ..operator import Given, Operator, Row, load, reason_of
from ..panes.panes import BY_TICK, Panes
from ..planning.plan import Plan
from ..sequences.marks import Marks
from ..sequences.sequence import Sequences
from .operator_values import MOST_ROWS, OperatorRows, key_of, pane_infos, python_rows
from .row_lifetimes import RowLifetimes, row_lifetimes


def operator_batches(
    plan: Plan, sequences: Sequences, marks: Marks, panes: Panes, told: pa.Table
) -> Iterator[pa.Table]:
    """Let one operator a key see what its window does, key after key, and yield what it gives in bounded tables.

    ``marks``: what causes of panes from n on count. ``told``: of each pane the columns of key, pane and stamps, as the
    result has them. The tables have these columns, those of `Operator.output` and, unless ``plain``, ``_row`` and
    ``_mark``. What `Operator.trigger` gives is of the pane; where that is nothing, the pane's mark alone comes out.
    What other methods give has null for what is of a pane, and the stamps of the row or the pane at whose step it came.
    Of what a key gives with the same stamps, ``_step`` is odd for panes and even for what came before, between and
    behind them; ``_row`` counts the rows of a step.

    Raises `ConfigError` where the operator cannot be had, `DataError` where it fails
    or gives what its ``output`` does not say.
    """
    assert plan.options.operator is not None
    operator = load(plan.options.operator)
    scene = _Scene(sequences, marks, panes, row_lifetimes(plan, sequences, marks, panes))
    lines = OperatorRows(plan, operator, sequences, told)
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    for key in range(len(sequences.bounds) - 1):
        for _ in _Window(key, first[key : key + 2], operator, scene, lines).steps():
            if len(lines) >= MOST_ROWS:
                yield from lines.tables()
    yield from lines.tables()


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the windows of all keys have in common."""

    sequences: Sequences
    marks: Marks
    panes: Panes
    lifetimes: RowLifetimes

    def stamp(self, cause: int, pane: int) -> int | str | None:
        """What tells stamps apart within a key: the position of a row, or of that before a mark; the pane of a tick."""
        rows = len(self.sequences)
        if cause >= rows:
            return int(self.marks.pos[cause - rows])
        return int(self.sequences.pos[cause]) if cause >= 0 else f"tick {pane}" if cause == BY_TICK else None


@dataclass(frozen=True, slots=True)
class _WindowRow:
    """A row in the window, and the runs of panes ``[enter, leave)`` that show it."""

    row: Row
    runs: list[tuple[int, int]]

    def is_in(self, pane: int) -> bool:
        return any(enter <= pane < leave for enter, leave in self.runs)


class _Window:
    """The window of one key and its operator. ``panes``: the bounds of the key's panes."""

    def __init__(self, key: int, panes: Ints, kind: type[Operator], scene: _Scene, lines: OperatorRows) -> None:
        course, sequences, named = scene.lifetimes, scene.sequences, key_of(scene.sequences, key)
        begin, end = sequences.bounds[key : key + 2]
        self.key, self.scene, self.lines = key, scene, lines
        self.order = course.order[slice(*panes)]
        self.stepping = np.flatnonzero(course.stepping[begin:end]) + begin
        entering = course.entering.items[slice(*course.entering.first[panes])]
        self.coming = python_rows(named, sequences.rows, np.concatenate([self.stepping, entering]))
        self.infos = pane_infos(lines.plan, lines.emitted, self.order)
        self.operator = _made(kind, named)
        self.held: dict[int, _WindowRow] = {}
        self.stamp: int | str | None = None
        self.step = 0
        self.place = 0

    def steps(self) -> Iterator[None]:
        """Do one step after the other: each row after the panes that come out before it."""
        place, ahead = self.scene.lifetimes.place[self.order], 0
        for row in self.stepping.tolist():
            behind = int(np.searchsorted(place, row, side="right"))
            for pane in self.order[ahead:behind].tolist():
                self._at_pane(pane)
                yield
            self._at_row(row)
            yield
            ahead = behind
        for pane in self.order[ahead:].tolist():
            self._at_pane(pane)
            yield

    def _at_row(self, row: int) -> None:
        self._place_of(row, -1)
        self._evict([gone for gone in self.scene.lifetimes.driven.at(row) if gone in self.held], -1, row)
        self._insert(row, -1, row)

    def _at_pane(self, pane: int) -> None:
        course = self.scene.lifetimes
        self._place_of(int(self.scene.panes.cause[pane]), pane)
        if course.drops_unseen:
            self._evict([row for row in sorted(self.held) if not self.held[row].is_in(pane)], pane, -1)
        for row in course.entering.at(pane):
            self._insert(row, pane, -1)
        shown = tuple(self.held[row].row for row in sorted(self.held) if self.held[row].is_in(pane))
        info = next(self.infos)
        self.lines.of_pane(self.key, pane, self.step + 1, lambda: self.operator.trigger(shown, info))
        self.step, self.place = self.step + 2, 0
        self._evict(course.leaving.at(pane), pane, -1)

    def _place_of(self, cause: int, pane: int) -> None:
        stamp = self.scene.stamp(cause, pane)
        if stamp != self.stamp:
            self.stamp, self.step, self.place = stamp, 0, 0

    def _insert(self, row: int, at_pane: int, at_row: int) -> None:
        course, mine = self.scene.lifetimes, next(self.coming)
        runs = [(int(course.memberships.enter[i]), int(course.memberships.leave[i])) for i in course.entries.at(row)]
        self.held[row] = _WindowRow(mine, runs)
        self._write("insert", at_pane, at_row, lambda: self.operator.insert(mine))

    def _evict(self, rows: list[int], at_pane: int, at_row: int) -> None:
        if rows:
            gone = tuple(self.held.pop(row).row for row in rows)
            self._write("evict", at_pane, at_row, lambda: self.operator.evict(gone))

    def _write(self, method: str, at_pane: int, at_row: int, call: Callable[[], Given]) -> None:
        self.place = self.lines.of_step(method, self.key, at_pane, at_row, self.step, self.place, call)


def _made(kind: type[Operator], key: Row) -> Operator:
    try:
        operator = kind()
    except Exception as error:  # a user's class can raise anything
        raise ConfigError(
            f"{kind.__name__}() failed: {reason_of(error)}", "an operator is made without arguments"
        ) from error
    operator.key = key
    return operator
