"""The calls of user operators, in the exact order of the events of their windows (``--operator``).

No window is computed again: the panes imply when rows enter and leave (`windowing.emit.row_lifetimes`). For each key:

    at a row     first the panes that are emitted before it; then evict the rows that it evicts, insert it
    at a pane    evict the rows that have left by then, insert the rows that enter with it (section 6), trigger,
                 evict the rows that no later pane shows (sections 2 and 5)

A window keeps the rows that it holds at the end: a pane that only the end of the data triggers evicts none.
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
    plan: Plan, sequences: Sequences, marks: Marks, panes: Panes, pane_columns: pa.Table
) -> Iterator[pa.Table]:
    """Call one operator a key, key after key, and yield the rows that it returns in tables of bounded size.

    ``marks``: the marks that causes of panes from n on refer to. ``pane_columns``: the columns of key, pane and stream
    of each pane, as the result has them. The tables have these columns, those of `Operator.output` and, unless
    ``plain``, ``_row`` and ``_mark``. Rows of `Operator.trigger` have the columns of the pane; where it returns none,
    the mark of the pane is written alone. Rows of other methods have null in the columns of a pane, and the stream
    columns of the row or the pane at whose step they were returned. Among the rows of a key with the same stream
    columns, ``_step`` is odd for panes and even before, between and after them; ``_row`` numbers the rows of a step.

    Raises `ConfigError` where the operator cannot be loaded, `DataError` where it fails or returns values that do not
    fit its ``output``.
    """
    assert plan.options.operator is not None
    operator = load(plan.options.operator)
    scene = _Scene(sequences, marks, panes, row_lifetimes(plan, sequences, marks, panes))
    lines = OperatorRows(plan, operator, sequences, pane_columns)
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    for key in range(len(sequences.bounds) - 1):
        for _ in _Window(key, first[key : key + 2], operator, scene, lines).steps():
            if len(lines) >= MOST_ROWS:
                yield from lines.tables()
    yield from lines.tables()


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the windows of all keys share.

    ``sequences``: the rows of all keys.
    ``marks``: the marks that causes of panes refer to.
    ``panes``: the panes of all keys.
    ``lifetimes``: when rows enter and leave.
    """

    sequences: Sequences
    marks: Marks
    panes: Panes
    lifetimes: RowLifetimes

    def stamp(self, cause: int, pane: int) -> int | str | None:
        """Return what identifies stream columns within a key: the position of a row or mark, or the pane of a tick."""
        rows = len(self.sequences)
        if cause >= rows:
            return int(self.marks.pos[cause - rows])
        return int(self.sequences.pos[cause]) if cause >= 0 else f"tick {pane}" if cause == BY_TICK else None


@dataclass(frozen=True, slots=True)
class _WindowRow:
    """A row in the window.

    ``row``: its values.
    ``runs``: the runs of panes ``[enter, leave)`` that show it.
    """

    row: Row
    runs: list[tuple[int, int]]

    def is_in(self, pane: int) -> bool:
        return any(enter <= pane < leave for enter, leave in self.runs)


class _Window:
    """The window of one key and its operator; the constructor takes the bounds of the key's panes as ``panes``."""

    def __init__(self, key: int, panes: Ints, kind: type[Operator], scene: _Scene, lines: OperatorRows) -> None:
        lifetimes, sequences, named = scene.lifetimes, scene.sequences, key_of(scene.sequences, key)
        begin, end = sequences.bounds[key : key + 2]
        self.key, self.scene, self.lines = key, scene, lines
        self.order = lifetimes.order[slice(*panes)]
        self.stepping = np.flatnonzero(lifetimes.stepping[begin:end]) + begin
        entering = lifetimes.entering.items[slice(*lifetimes.entering.first[panes])]
        self.coming = python_rows(named, sequences.rows, np.concatenate([self.stepping, entering]))
        self.infos = pane_infos(lines.plan, lines.emitted, self.order)
        self.operator = _made(kind, named)
        self.held: dict[int, _WindowRow] = {}
        self.stamp: int | str | None = None
        self.step = 0
        self.place = 0

    def steps(self) -> Iterator[None]:
        """Make the calls step by step: each row after the panes that are emitted before it."""
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
        lifetimes = self.scene.lifetimes
        self._place_of(int(self.scene.panes.cause[pane]), pane)
        if lifetimes.drops_unseen:
            self._evict([row for row in sorted(self.held) if not self.held[row].is_in(pane)], pane, -1)
        for row in lifetimes.entering.at(pane):
            self._insert(row, pane, -1)
        shown = tuple(self.held[row].row for row in sorted(self.held) if self.held[row].is_in(pane))
        info = next(self.infos)
        self.lines.of_pane(self.key, pane, self.step + 1, lambda: self.operator.trigger(shown, info))
        self.step, self.place = self.step + 2, 0
        self._evict(lifetimes.leaving.at(pane), pane, -1)

    def _place_of(self, cause: int, pane: int) -> None:
        stamp = self.scene.stamp(cause, pane)
        if stamp != self.stamp:
            self.stamp, self.step, self.place = stamp, 0, 0

    def _insert(self, row: int, at_pane: int, at_row: int) -> None:
        lifetimes, mine = self.scene.lifetimes, next(self.coming)
        runs = [
            (int(lifetimes.memberships.enter[i]), int(lifetimes.memberships.leave[i]))
            for i in lifetimes.entries.at(row)
        ]
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
