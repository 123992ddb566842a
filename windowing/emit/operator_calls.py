"""The calls of user operators, in the exact order of the events of their windows (``--operator``).

No window is computed again: the panes imply when rows enter and leave (`timetable`). For each key:

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import ConfigError, DataError
from ..operator import Given, Operator, Row, load, made, reason_of
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.panes import Panes, ScanRejects
from ..rows.sequence import Sequences
from ..state.window_state import WindowState
from ..support.plain_values import PLAIN, NotPlainError, from_text, to_text
from .operator_blocks import Block, Blocks, key_of, of_key
from .operator_results import By, Lines, OperatorRows
from .operator_scenes import (
    FILL,
    INSERT,
    NEVER,
    NO_HEAD,
    PARTITION,
    PHASES,
    ROW,
    TRIGGER,
    Head,
    OperatorRun,
    make_scene,
    no_events,
    rows_of,
    scene_anew,
)

# The life of one operator: it is made, or restored, before its first call, and saved at the end of the run.


_AGAIN = "mend the operator, or begin again with a new state"


@dataclass(slots=True)
class OperatorLife:
    """The operator of one key, from the first call to the end of the run or the eviction of the key.

    ``words``: `` of key NAME=VALUE``, for messages.
    ``saved``: what it saved in the run before, as text; None where nothing was saved.
    ``full``: whether its window has been full, once it is made.
    """

    kind: type[Operator]
    key: Row
    words: str
    saved: str | None = None
    full: bool = False
    _operator: Operator | None = None

    @property
    def exists(self) -> bool:
        """Whether the key has an operator: it has been called, in this run or before."""
        return self._operator is not None or self.saved is not None

    @property
    def operator(self) -> Operator:
        """The operator, made or restored where it has not been yet.

        Raises `ConfigError` where it cannot be made, or has another version than what was saved and no `restore`;
        `DataError` where it cannot be restored.
        """
        if self._operator is None:
            operator = made(self.kind)
            operator.key = self.key
            if self.saved is not None:
                self._restore(operator, self.saved)
            self._operator = operator
        return self._operator

    @property
    def text(self) -> str | None:
        """What the run leaves of the operator: what it saved before, where it was not called since.

        Raises `DataError` where it cannot be saved.
        """
        if self._operator is None:
            return self.saved
        try:
            state = self._operator.checkpoint()
        except Exception as error:  # a user's class can raise anything
            raise self._failed("checkpoint", reason_of(error)) from error
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise self._failed("checkpoint", f"it gave {state!r:.60}, which is no dict with texts as keys")
        try:
            return to_text({"version": self.kind.version, "full": self.full, "state": state})
        except NotPlainError as error:
            place = error.place.removeprefix("['state']")
            what = f"{self.kind.__name__}.checkpoint gave a {error.kind} at {place} for the operator{self.words}"
            raise DataError(what, f"a state holds {PLAIN}") from None

    def _restore(self, operator: Operator, saved: str) -> None:
        version, self.full, state = self._read(saved)
        if version != self.kind.version and self.kind.restore is Operator.restore:
            name = self.kind.__name__
            what = f"version {version} of operator {name} saved the state{self.words}, and it is version "
            do = f"migrate it in {name}.restore, which finds {version} in self.saved_version, or begin with a new state"
            raise ConfigError(f"{what}{self.kind.version} now, without a restore", do)
        operator.saved_version = version
        try:
            operator.restore(state)
        except Exception as error:  # a user's class can raise anything
            raise self._failed("restore", reason_of(error)) from error

    def _read(self, saved: str) -> tuple[int, bool, dict[str, Any]]:
        try:
            value = from_text(saved)
            version, full, state = (value[name] for name in ("version", "full", "state"))
            if not (type(version) is int and type(full) is bool and type(state) is dict):
                raise ValueError("it is no saved operator")
        except (ValueError, KeyError, TypeError) as error:
            what = f"what operator {self.kind.__name__} saved{self.words} cannot be read: {reason_of(error)}"
            raise DataError(
                what, "the state is damaged: run the unit before again, or begin with a new state"
            ) from error
        return version, full, state

    def _failed(self, method: str, why: str) -> DataError:
        return DataError(f"{self.kind.__name__}.{method} failed for the operator{self.words}: {why}", _AGAIN)


_AT_FIRST = 256  # rows that are looked at after an eviction that an operator asked for; doubled while it asks no more
_INHERITED = (Operator.insert, Operator.evict)


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
    blocks = Blocks(scene)
    for key in range(len(sequences.bounds) - 1):
        lines.turn_to(scene)
        for _ in _Window(key, blocks, operator, run, lines).steps():
            yield from lines.full_tables()
    yield from lines.tables()


def finishing_batches(plan: Plan, state: WindowState) -> Iterator[pa.Table]:
    """Call ``finish`` of the operators of keys without rows, and yield tables as `operator_batches` does.

    ``state``: of these keys, from the run before.
    """
    assert plan.options.operator is not None
    operator, sequences = load(plan.options.operator), state.sequences
    lines = Lines(operator, no_events(plan, sequences))
    for key, saved in enumerate(state.key_state.operator.to_pylist()):
        if saved is not None:
            life = OperatorLife(operator, key_of(sequences, key), of_key(sequences, key), saved)
            _finish(life.operator, lines.now, -1, key, 0)
            yield from lines.full_tables()
    yield from lines.tables()


class _Window:
    """The window of one key and its operator, call by call.

    A window is looked at in a view: the calls of one key in a scene. Row 0 of the scene is row ``offset`` of the whole
    sequences, and ``begin`` the one with which the view begins.
    """

    def __init__(self, key: int, blocks: Blocks, kind: type[Operator], run: OperatorRun, lines: Lines) -> None:
        self.key, self.run, self.lines = key, run, lines
        self.sequences, self.outcome = blocks.scene.sequences, run.outcome
        restored = run.context.restored
        saved = None if restored is None else restored.key_state.operator[key].as_py()
        self.life = OperatorLife(kind, key_of(self.sequences, key), of_key(self.sequences, key), saved)
        self.begin, self.end = (int(bound) for bound in self.sequences.bounds[key : key + 2])
        self.number = 0 if restored is None else int(restored.key_state.windows[key])
        self.first_number, self.newest = self.number, self.begin  # behind the newest row that has entered
        self.group, self.place = (-1, 0), 0  # run and step of the last rows between panes, and how many they are
        self._view(blocks, key, 0, *blocks.scene.timetable.bounds[key : key + 2])

    def steps(self) -> Iterator[None]:
        """Make the calls step by step, in view after view where the operator asks for evictions."""
        first, size, since, place, head = self.begin, self.end - self.begin, 0, self.end, NO_HEAD
        while True:
            event = yield from self._through()
            if event is not None:
                first, head = self._asked(event)
                size, since = _AT_FIRST, 0
                if first == self.end:
                    break
            elif place == self.end:
                break
            else:
                since, size = place - first, 2 * size
            place = self._look(first, since, size, head)
            yield
        # Finish where windows are flushed; else leave what the next run needs. ``first``: of the last window.
        context, outcome, table = self.run.context, self.run.outcome, self.scene.timetable
        outcome.first[self.key] = first
        if context.at_end == "flush" and self.life.exists:
            _finish(self.life.operator, self.lines.now, self.stop - 1, self.own, table.last_step(self.own))
        elif context.hold:
            if first < self.end:
                begin, end = self.scene.sequences.bounds[self.own : self.own + 2]
                outcome.held[table.held(begin, end, NEVER) + self.offset] = True
            if self.run.saves:
                outcome.saved[self.key] = self.life.text

    def _view(self, blocks: Blocks, key: int, offset: int, first: int, stop: int) -> None:
        self.blocks, self.scene, self.own, self.offset = blocks, blocks.scene, key, offset
        self.first, self.stop = int(first), int(stop)
        self.lines.turn_to(self.scene)

    # --- calls

    def _through(self) -> Generator[None, None, int | None]:
        """Make the calls of a view; return the event at which the operator asks for the eviction of its key."""
        first, stop, asked, table = self.first, self.stop, None, self.scene.timetable
        while first < stop:
            is_gone = not self.life.exists and table.method[first] == PARTITION
            operator = None if is_gone else self.life.operator
            is_silent = _is_silent(operator)
            block = self.blocks.at(first, is_silent)
            made, first = first, min(stop, block.stop)
            for call, rows in self._calls(operator, is_silent, block, made, first):
                self._write(call, rows)
                if table.method[call] == PARTITION:
                    self.life = replace(self.life, saved=None, full=False, _operator=None)
                elif operator is not None and operator._asks_eviction:
                    asked = int(table.time[call]) // PHASES
                    stop = min(stop, table.behind(asked))
                elif is_silent == _is_silent(operator):
                    if self.lines.is_full:
                        self._account(block, made, call + 1)
                        made = call + 1
                        yield
                    continue
                first = call + 1
                break
            self._account(block, made, first)
            if self.lines.is_full:
                yield
        return asked

    def _calls(
        self, operator: Operator | None, is_silent: bool, block: Block, first: int, stop: int
    ) -> Iterator[tuple[int, list[Row]]]:
        """Make calls of a block; yield those after which there is something to do, and the rows that they return."""
        low, high = block.place(first), block.place(stop)
        insert, evict = (None, None) if operator is None else (operator.insert, operator.evict)
        given: Given
        columns = (values[low:high] for values in (block.calls, block.methods, block.groups, block.infos))
        for call, method, rows, info in zip(*columns, strict=True):
            try:
                if operator is None:
                    given = ()
                elif method == TRIGGER:
                    given = operator.trigger(rows, info)
                elif method < FILL:
                    if is_silent:
                        continue
                    given = operator.insert(rows[0]) if method == INSERT else operator.evict(rows)
                elif method == PARTITION:
                    given = operator.partition_evicted(rows)
                elif self.life.full:  # as a restored operator knows
                    continue
                else:
                    self.life.full = True
                    given = operator.initial_full()
                if given is not None:
                    given = list(given)
            except Exception as error:  # a user's class can raise anything
                raise self.lines.now.failure(call, self.own, error) from error
            if given is not None:
                yield call, given
            elif (
                operator is None
                or method == PARTITION
                or operator._asks_eviction
                or (is_silent and (operator.insert != insert or operator.evict != evict))
            ):
                yield call, []

    def _write(self, call: int, rows: list[Row]) -> None:
        table = self.scene.timetable
        if table.method[call] == TRIGGER:
            self.lines.now.add(call, self.own, rows)
        else:
            event, step = table.step(call)
            self._number(int(table.events.run[event]), step)
            self.lines.now.add(call, self.own, rows, self.place)
            self.place += len(rows)

    def _number(self, run: int, step: int) -> None:
        if self.group != (run, step):
            self.group, self.place = (run, step), 0

    def _account(self, block: Block, first: int, stop: int) -> None:
        low, high = np.searchsorted(block.triggers, [first, stop])
        if low == high:
            return
        scene, outcome = self.scene, self.outcome
        outcome.shown[block.shown[block.bounds[low] : block.bounds[high]] + self.offset] = True
        outcome.panes[self.key] += high - low
        calls = block.triggers[low:high]
        panes = scene.timetable.item[calls]
        self.number = int(scene.panes.number[panes[-1]]) + 1
        if len(self.run.signals):
            signals = scene.panes.cause[panes] - len(scene.sequences)
            outcome.signals.update(signals[(signals >= 0) & (signals < len(self.run.signals))].tolist())
        self.lines.now.mark(calls)

    # --- from view to view

    def _look(self, first: int, since: int, size: int, head: Head) -> int:
        """Turn to the view of a window that begins with row ``first``; return the row behind those that it tells of.

        ``since``: how many rows were looked at before. ``size``: how many to look at, where they come one by one.
        """
        stop = min(self.end, first + size) if self.scene.timetable.has_steps else self.end
        self.first_number = self.first_number if since else self.number
        part, run = rows_of(self.sequences, self.key, first, stop), self.run
        scene = scene_anew(self.scene.plan, part, run.signals, run.context, self.first_number, run.columns, head)
        self._reject(first, scene.panes.rejects)
        table, known = scene.timetable, self.blocks.known if since else None
        until = len(table.time) if stop == self.end else table.before(stop - first)
        self._view(Blocks(scene, known), 0, first, table.before(since) if since else 0, until)
        if not since:
            goes_on = bool((table.events.stamp[:1] == head.stamp).any())
            self.group = (0, head.step) if goes_on else (-1, 0)
        return stop

    def _reject(self, first: int, found: ScanRejects | None) -> None:
        """Take what the windows from row ``first`` on reject, in place of what was found for these rows before.

        Keys come one after the other, and windows of a key too: only the last that was found reaches behind ``first``.
        """
        outcome = self.outcome
        outcome.anew[self.key] = min(outcome.anew[self.key], first)
        if outcome.rejected:
            before = outcome.rejected[-1]
            outcome.rejected[-1] = before.take(np.flatnonzero(before.row < first))
        if found is not None:
            outcome.rejected.append(replace(found, row=found.row + first))

    def _asked(self, event: int) -> tuple[int, Head]:
        """Evict the key because its operator asked for it; return the first row of the next window, and its head."""
        scene, name = self.scene, f"{self.life.kind.__name__}.evict_partition failed for the operator{self.life.words}"
        if (spec := scene.plan.kind.needs.eviction) is not None:
            raise DataError(f"{name}: {spec} decides for all keys together", "leave one of them out")
        if scene.panes.marks_only is not None and scene.plan.kind.needs.causes != "rows":
            raise DataError(
                f"{name}: --partial tells each tick at which the window is empty", "say --key, or leave it out"
            )
        table, events, own = self.scene.timetable, self.scene.timetable.events, self.own
        time, (begin, end) = PHASES * (event + 1) - 1, self.scene.sequences.bounds[own : own + 2]
        held = tuple(self.blocks.rows(table.held(begin, end, time), time))
        what, call = int(events.what[event]), table.behind(event) - 1
        step = int(events.step[event]) + (0 if what == ROW else 2)
        self._number(int(events.run[event]), step)
        rows = _given(self.life.operator.partition_evicted, self.lines.now, call, own, By.OPERATOR, held)
        self.lines.now.add(call, own, rows, self.place, step, By.OPERATOR)
        self.place += len(rows)
        self.life = replace(self.life, saved=None, full=False, _operator=None)
        self.outcome.asked[self.key] = True
        entered = np.flatnonzero(table.enter[begin:end] < time)
        if table.has_steps:
            self.newest = self.offset + int(events.number[event] + 1 if what == ROW else events.place[event])
        elif len(entered):
            self.newest = max(self.newest, int(begin + entered[-1]) + 1 + self.offset)
        return self.newest, Head(int(events.stamp[event]), step)


def _finish(operator: Operator, lines: OperatorRows, call: int, key: int, step: int) -> None:
    lines.add(call, key, _given(operator.finish, lines, call, key, By.END), step=step, by=By.END)


def _given(
    method: Callable[..., Given], lines: OperatorRows, call: int, key: int, by: By, *arguments: Any
) -> list[Row]:
    try:
        given = method(*arguments)
        return [] if given is None else list(given)
    except Exception as error:  # a user's class can raise anything
        raise lines.failure(call, key, error, by) from error


def _is_silent(operator: Operator | None) -> bool:
    """Return whether an operator inherits what is called for rows: it returns nothing, and need not be called."""
    return operator is not None and all(
        getattr(method, "__func__", None) in _INHERITED for method in (operator.insert, operator.evict)
    )
