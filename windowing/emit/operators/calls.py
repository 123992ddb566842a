"""The calls of user operators, in the exact order of the events of their windows (``--operator``).

No window is computed again: the panes imply when rows enter and leave (`row_lifetimes`). For each key:

    at a row         first the panes that are emitted before it; then evict the rows that it evicts, insert it
    at a pane        evict the rows that have left by then, insert the rows that enter with it (section 6), trigger,
                     evict the rows that no later pane shows (sections 2 and 5)
    at an eviction   partition_evicted, with the rows that the window holds; then the operator goes (section 4)
    at the end       finish, where windows are flushed (section 7)

``initial_full`` comes once for each operator, at the step of a row at which its sliding window is full (section 3). A
window keeps the rows that it holds at the end: a pane that only the end of the data triggers evicts none. Where an
operator asks for the eviction of its key, the rest of the key's rows is computed as that of a new key.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import DataError
from ...kinds.contract import Step, WindowKind
from ...operator import Given, Operator, Row, load
from ...panes.panes import Panes, reason
from ...planning.plan import Plan
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences
from ...state.window_state import WindowState
from .lives import OperatorLife
from .outcome import OperatorRun
from .scenes import make_scene, no_events, rows_of, scene_anew
from .values import MOST_ROWS, Moment, OperatorRows, key_of, of_key, pane_infos, python_rows
from .views import Held, Lines, View

_AT_FIRST = 256  # rows that are looked at after an eviction that an operator asked for; doubled while it asks no more
_EVICTED = reason("evicted")
_INHERITED = {Operator.insert, Operator.evict, Operator.initial_full, Operator.partition_evicted, Operator.finish}


def operator_batches(
    plan: Plan, sequences: Sequences, marks: Marks, panes: Panes, pane_columns: pa.Table, run: OperatorRun
) -> Iterator[pa.Table]:
    """Call one operator a key, key after key, and yield the rows that it returns in tables of bounded size.

    ``marks``: the marks that causes of panes from n on refer to. ``pane_columns``: the columns of key, pane and stream
    of each pane, as the result has them. The tables have these columns, those of `Operator.output` and, unless
    ``plain``, ``_row`` and ``_mark``. Rows of `Operator.trigger` have the columns of the pane; where it returns none,
    the mark of the pane is written alone. Rows of other methods have null in the columns of a pane, and the stream
    columns of the row, the pane or the eviction at whose step they were returned; those of `Operator.finish` have
    ``end`` as close reason and null in the stream columns. Among the rows of a key with the same stream columns,
    ``_step`` is odd for panes and even before, between and after them; ``_row`` numbers the rows of a step.

    Raises `ConfigError` where the operator cannot be loaded, made or restored, `DataError` where it fails or returns
    values that do not fit its ``output``.
    """
    assert plan.options.operator is not None
    operator = load(plan.options.operator)
    scene = make_scene(plan, sequences, marks, panes, pane_columns, run.signals, run.context)
    lines = Lines(operator, scene)
    first = np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    for key in range(len(sequences.bounds) - 1):
        view = View(scene, key, 0, first[key : key + 2], 0, None)
        lines.turn_to(scene)
        for _ in _Window(key, view, operator, run, lines).steps():
            yield from lines.full_tables()
    yield from lines.tables()


def finishing_batches(plan: Plan, state: WindowState) -> Iterator[pa.Table]:
    """Call ``finish`` of the operators of keys without rows, and yield tables as `operator_batches` does.

    ``state``: of these keys, from the run before.
    """
    assert plan.options.operator is not None
    operator, sequences = load(plan.options.operator), state.sequences
    lines = OperatorRows(operator, no_events(plan, sequences))
    for key, saved in enumerate(state.key_state.operator.to_pylist()):
        if saved is not None:
            life = OperatorLife(operator, key_of(sequences, key), of_key(sequences, key), saved).operator
            lines.of_step("finish", key, Moment(), 0, 0, life.finish)
            if len(lines) >= MOST_ROWS:
                yield from lines.tables()
    yield from lines.tables()


class _Window:
    """The window of one key and its operator, step by step."""

    def __init__(self, key: int, view: View, kind: type[Operator], run: OperatorRun, lines: Lines) -> None:
        self.key, self.view, self.run, self.lines = key, view, run, lines
        self.sequences, self.outcome = view.scene.sequences, run.outcome
        named, restored = key_of(self.sequences, key), run.context.restored
        self.named, self.kind = named, kind
        self.begin, self.end = (int(bound) for bound in self.sequences.bounds[key : key + 2])
        saved = None if restored is None else restored.key_state.operator[key].as_py()
        self.life = OperatorLife(kind, named, of_key(self.sequences, key), saved)
        self.can_fill = type(view.scene.plan.kind).fills is not WindowKind.fills
        self.held = Held()
        self.newest = self.begin  # behind the newest row that has entered
        self.number = 0 if restored is None else int(restored.key_state.windows[key])
        self.first_number = self.number
        self.stamp: int | str | None = None
        self.step = self.place = 0
        self.shows_evicted = False
        self._hold_restored()

    def steps(self) -> Iterator[None]:
        """Make the calls step by step, in view after view where the operator asks for evictions."""
        first, size = self.begin, _AT_FIRST
        while True:
            cut = yield from self._through()
            if cut is not None:
                first, size = cut, _AT_FIRST
                if cut == self.end:
                    break
            elif self.view.stop is None:
                break
            else:
                size *= 2
            self._look(first, size, None if cut is not None else self.view)
            yield
        self._end(first)

    def _through(self) -> Generator[None, None, int | None]:
        """Make the calls of a view; return the row with which the next window begins, where the operator evicts."""
        view = self.view
        self._prepare()
        for what, numbers in view.events():
            if what == "row" and self._is_quiet():
                self._at_quiet_rows(numbers)
                continue
            step = self._at_row if what == "row" else self._at_pane if what == "pane" else self._at_eviction
            for number in numbers:
                step(number)
                if self.lines.is_full:
                    yield
                if self.life.asks_eviction:
                    return self._asked(what, number)
        return None

    # --- from view to view

    def _prepare(self) -> None:
        view, lives = self.view, self.view.scene.lifetimes
        self.lines.turn_to(view.scene)
        order = view.order
        has_entering = len(lives.entering.items) > 0
        lists = [lives.entering.at(pane) for pane in order.tolist()] if has_entering else []
        entering = np.array([row for rows in lists for row in rows], np.int64)
        self.coming = python_rows(self.named, view.scene.sequences.rows, np.concatenate([view.stepping, entering]))
        self.infos = pane_infos(view.scene.plan, view.scene.emitted, order)

    def _look(self, first: int, size: int, before: View | None) -> None:
        """Turn to the view of a window that begins with row ``first``; ``before``: the view of its first steps."""
        plan, chunked = self.view.scene.plan, bool(self.view.scene.lifetimes.stepping.any())
        stop = min(self.end, first + size) if chunked else self.end
        part = rows_of(self.sequences, self.key, first, stop)
        number = self.number if before is None else self.first_number
        self.first_number = number
        scene = scene_anew(plan, part, self.run.signals, self.run.context, number, self.run.columns)
        since = 0 if before is None or before.stop is None else before.stop
        panes = np.array([0, len(scene.panes)])
        self.view = View(scene, 0, first, panes, since, None if stop == self.end else stop - first)
        self.held.turn_to(self.view)

    def _asked(self, what: str, number: int) -> int:
        """Evict the key because its operator asked for it; return the first row of the next window."""
        self._check_may_ask()
        self._partition_evicted(Moment(pane=number) if what == "pane" else Moment(row=number))
        self.outcome.asked[self.key] = True
        lives, offset = self.view.scene.lifetimes, self.view.offset
        if lives.stepping.any():
            self.newest = offset + (number + 1 if what == "row" else int(lives.place[number]))
        return self.newest

    def _check_may_ask(self) -> None:
        scene, name = self.view.scene, f"{self.kind.__name__}.evict_partition failed for the operator{self.life.words}"
        if (spec := scene.plan.kind.eviction) is not None:
            raise DataError(f"{name}: {spec} decides for all keys together", "leave one of them out")
        if scene.panes.marks_only is not None and scene.plan.kind.causes != "rows":
            raise DataError(
                f"{name}: --partial tells each tick at which the window is empty", "say --key, or leave it out"
            )

    def _hold_restored(self) -> None:
        restored = self.run.context.restored
        if restored is None:
            return
        held = np.flatnonzero(restored.row_state.last[self.begin : self.end]) + self.begin
        for row, value in zip(held.tolist(), python_rows(self.named, self.sequences.rows, held), strict=True):
            self.held.put(row, value, self.view)
            self.newest = row + 1

    def _end(self, first: int) -> None:
        """Finish where windows are flushed; else leave what the next run needs."""
        context, outcome = self.run.context, self.run.outcome
        outcome.first[self.key] = first
        if not context.hold and not context.drop and self.life.exists:
            self._place_of(None)
            self._write("finish", Moment(), self.life.operator.finish)
        elif context.hold:
            outcome.held[list(self.held.rows)] = True
            if self.run.saves:
                outcome.saved[self.key] = self.life.text

    # --- steps

    def _is_quiet(self) -> bool:
        """Return whether nothing is called at the steps of rows."""
        has_steps = self.can_fill or len(self.view.scene.lifetimes.driven.items)
        return not has_steps and _is_inherited(self.life.operator.insert)

    def _at_quiet_rows(self, rows: list[int]) -> None:
        self._place_of(int(self.view.scene.sequences.pos[rows[-1]]))
        self.held.put_all(rows, islice(self.coming, len(rows)), self.view)
        self.newest = max(self.newest, rows[-1] + self.view.offset + 1)

    def _at_row(self, row: int) -> None:
        at, lives, offset = Moment(row=row), self.view.scene.lifetimes, self.view.offset
        self._place_of(int(self.view.scene.sequences.pos[row]))
        gone = [old + offset for old in lives.driven.at(row) if old + offset in self.held.rows]
        if gone:
            self._evict(gone, at)
            self._fill("evicts", at)
        self._fill("comes in", at)
        self._insert(row, at)
        self._fill("is in", at)

    def _at_pane(self, pane: int) -> None:
        scene, held, offset, at = self.view.scene, self.held, self.view.offset, Moment(pane=pane)
        lives = scene.lifetimes
        self._place_of(scene.stamp(int(scene.panes.cause[pane]), pane))
        gone = held.unseen(pane) if lives.drops_unseen else []
        self._evict(gone or self._of_held(lives.outdated.at(pane)), at)
        for row in lives.entering.at(pane):
            self._insert(row, at)
        shown = held.shown(pane)
        self._trigger(pane, tuple(map(held.rows.__getitem__, shown)))
        if shown:  # neighbours are the usual case, and a slice takes a tenth of the time
            has_gaps = shown[-1] - shown[0] >= len(shown)
            self.outcome.shown[shown if has_gaps else slice(shown[0], shown[-1] + 1)] = True
        self.shows_evicted = bool(scene.panes.closed_by[pane] == _EVICTED)
        if not self.shows_evicted:
            self._evict([row + offset for row in lives.leaving.at(pane)], at)

    def _at_eviction(self, eviction: int) -> None:
        stamp = self.view.scene.evicted_by[eviction]
        if stamp is not None or not self.shows_evicted:  # else the pane before is that of the same tick
            self._place_of(f"eviction {eviction}" if stamp is None else stamp)
        self._partition_evicted(Moment(eviction=eviction))

    def _partition_evicted(self, at: Moment) -> None:
        rows = self.held.take(sorted(self.held.rows))
        if self.life.exists:
            self._write("partition_evicted", at, self.life.operator.partition_evicted, rows)
        self.life, self.shows_evicted = OperatorLife(self.kind, self.named, self.life.words), False

    def _trigger(self, pane: int, rows: tuple[Row, ...]) -> None:
        scene, info, outcome = self.view.scene, next(self.infos), self.outcome
        self.lines.now.of_pane(self.view.key, pane, self.step + 1, self.life.operator.trigger, rows, info)
        self.step, self.place, self.number = self.step + 2, 0, info.window + 1
        outcome.panes[self.key] += 1
        if 0 <= (signal := int(scene.panes.cause[pane]) - len(scene.sequences)) < len(self.run.signals):
            outcome.signals.add(signal)

    # --- calls

    def _of_held(self, rows: list[int]) -> list[int]:
        return [row + self.view.offset for row in rows if row + self.view.offset in self.held.rows]

    def _place_of(self, stamp: int | str | None) -> None:
        if stamp != self.stamp:
            self.stamp, self.step, self.place = stamp, 0, 0

    def _fill(self, step: Step, at: Moment) -> None:
        if self.can_fill and not self.life.full and self.view.scene.plan.kind.fills(step, len(self.held.rows)):
            operator = self.life.operator  # a restored one knows whether its window has been full
            if not self.life.full:
                self.life.full = True
                self._write("initial_full", at, operator.initial_full)

    def _insert(self, row: int, at: Moment) -> None:
        mine, operator, number = next(self.coming), self.life.operator, row + self.view.offset
        self.held.put(number, mine, self.view)
        self.newest = max(self.newest, number + 1)
        self._write("insert", at, operator.insert, mine)

    def _evict(self, rows: list[int], at: Moment) -> None:
        if rows:
            gone, operator = self.held.take(rows), self.life.operator
            self._write("evict", at, operator.evict, gone)

    def _write(self, method: str, at: Moment, call: Callable[..., Given], *arguments: Any) -> None:
        if not _is_inherited(call):
            self.place = self.lines.now.of_step(method, self.view.key, at, self.step, self.place, call, *arguments)


def _is_inherited(call: Callable[..., Given]) -> bool:
    """Return whether a method is that of `Operator`: it returns nothing, and need not be called."""
    return getattr(call, "__func__", None) in _INHERITED
