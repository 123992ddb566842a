"""The rows that operators return, as tables of the result.

A call that returned rows has an entry, in plain numbers. A pane of which nothing is returned has a line of its own, its
mark, for which nothing is done in Python: these lines are those of the calls of `Operator.trigger` without an entry.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, spread, take_or_null
from ..errors import DataError
from ..operator import Operator, Row, output_fields, reason_of
from ..planning.result_schema import MARK, ROW, STEP
from ..rows.marks import NO_FILE, Marks
from .operator_blocks import columns_of_pane, of_key
from .operator_scenes import EVICTION, PANE, PHASES, Scene
from .operator_scenes import ROW as AT_ROW
from .result_columns import mark_columns

MOST_ROWS = 100_000
_UNFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)
_METHODS = ("evict", "insert", "initial_full", "trigger", "partition_evicted")


class By(IntEnum):
    """What makes a call: the timetable, the operator that asked for an eviction, or the end of the data."""

    TIMETABLE = 0
    OPERATOR = 1
    END = 2


class _LineColumns(NamedTuple):
    """N lines of a result, int64 (N,) each.

    ``by``: what made the call (`By`). ``key``, ``step``, ``place``: of the key, ``_step``, ``_row``. ``cell``: the
    place of the values of the operator. Of a mark alone key and cell are -1, step and place of any value. ``at``: the
    numbers of the pane, the eviction or the row from which stream columns are taken, else -1.
    """

    by: Ints
    key: Ints
    step: Ints
    place: Ints
    cell: Ints
    at: Mapping[int, Ints]


@dataclass(slots=True)
class OperatorRows:
    """The rows that operators have returned and that are not in a table yet.

    ``operator``: the class of the operators.
    ``scene``: what the calls, panes, rows and evictions are numbered in.
    ``made``: the calls of `Operator.trigger` that were made, int64 arrays in order.
    ``panes``: how many these are.
    ``entries``: six numbers for each call that returned rows: the call of the timetable (of others the one before), by
        what it was made (`By`), the key, ``_step`` (-1: as the timetable says), the first ``_row``, the number of rows.
    ``cells``: the values of the operator's columns, by column, one for each row.
    """

    operator: type[Operator]
    scene: Scene
    made: list[Ints] = field(init=False, default_factory=list)
    panes: int = field(init=False, default=0)
    entries: array[int] = field(init=False, default_factory=lambda: array("q"))
    cells: dict[str, list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = {name: [] for name in self.operator.output}

    def __len__(self) -> int:
        return self.panes + len(next(iter(self.cells.values())))

    def mark(self, calls: Ints) -> None:
        """Write a line for each pane of which nothing was returned. ``calls``: of `Operator.trigger`, ascending."""
        self.made.append(calls)
        self.panes += len(calls)

    def add(self, call: int, key: int, rows: list[Row], place: int = 0, step: int = -1, by: By = By.TIMETABLE) -> None:
        """Write the rows that a call has returned. The numbers are those of ``entries``.

        Raises `DataError` where one of them is no row, or has a column that ``output`` does not name.
        """
        for one in rows:
            if not isinstance(one, Mapping):
                method, where = self._method(call, by), self.where(call, key, by)
                what = f"{self.operator.__name__}.{method} gave {one!r:.60} {where}, which is no row"
                raise DataError(what, "yield dicts, or return a list of them")
            if not all(map(self.cells.__contains__, one)):
                name, strange = self.operator.__name__, next(column for column in one if column not in self.cells)
                gave = f"{name}.{self._method(call, by)} gave a column {strange!r} {self.where(call, key, by)}"
                raise DataError(f"{gave} that {name}.output does not name", f"it names {', '.join(self.cells)}")
        if rows:
            self.entries.extend((call, by, key, step, place, len(rows)))
            for name, values in self.cells.items():
                values += [row.get(name) for row in rows]

    def failure(self, call: int, key: int, error: Exception, by: By = By.TIMETABLE) -> DataError:
        """Return what to raise where a method fails."""
        method, where = self._method(call, by), self.where(call, key, by)
        return DataError(f"{self.operator.__name__}.{method} failed {where}: {reason_of(error)}")

    def taken(self) -> list[pa.Table]:
        """Return the rows so far, and hold them no longer."""
        tables = [self._table()] if len(self) else []
        self.made, self.panes, self.entries = [], 0, array("q")
        for values in self.cells.values():
            values.clear()
        return tables

    def where(self, call: int, key: int, by: By) -> str:
        """Return which pane, row or eviction of which key it is, for messages."""
        scene, spot = self.scene, "at the end of the data"
        if by != By.END:
            events, event = scene.timetable.events, scene.timetable.time[call] // PHASES
            what, number = int(events.what[event]), int(events.number[event])
            if what == PANE:
                spot = f"in window {scene.emitted.column(len(scene.plan.key))[number]}"
            else:
                spot = f"at row {scene.sequences.pos[number]}" if what == AT_ROW else "at the eviction"
        return f"{spot}{of_key(scene.sequences, key)}"

    def _method(self, call: int, by: By) -> str:
        if by == By.TIMETABLE:
            return _METHODS[self.scene.timetable.method[call]]
        return "finish" if by == By.END else "partition_evicted"

    def _table(self) -> pa.Table:
        scene, columns = self.scene, dict[str, Any]()
        by, key, step, place, cell, at = self._lines()
        given = cell >= 0
        of_pane = np.where(given & (by == By.TIMETABLE) & (step % 2 == 1), at[PANE], -1)
        for name in scene.plan.key:
            assert scene.sequences.keys is not None
            columns[name] = take_or_null(scene.sequences.keys.column(name), key)
        for i in columns_of_pane(scene.plan):
            columns[scene.emitted.column_names[i]] = take_or_null(scene.emitted.column(i), of_pane)
        at_end = pa.array(by == By.END)
        columns["closed_by"] = pc.if_else(at_end, "end", columns["closed_by"].cast(pa.string()))
        if not scene.plan.options.plain:
            columns |= self._stamps(at)
        for column in output_fields(self.operator):
            columns[column.name] = take_or_null(self._values(column), cell)
        if not scene.plan.options.plain:
            columns |= {STEP: pa.array(step), ROW: pa.array(place, mask=~given)}
            is_last = (of_pane >= 0) & np.append(place[1:] <= 0, True)[: len(given)]
            columns[MARK] = pa.array(["window", "only"]).take(pa.array(~given * 1, mask=given & ~is_last))
        return pa.table(columns)

    def _lines(self) -> _LineColumns:
        """Return the lines in order: those of entries, and one for each pane without, the mark of a pane alone."""
        call, by, key, step, place, count = np.array(self.entries, np.int64).reshape(-1, 6).T
        marks, table, own = np.empty(0, np.int64), self.scene.timetable, np.flatnonzero(step < 0)
        step[own] = table.steps(call[own])
        if self.made and not self.scene.plan.options.plain:
            marks = np.setdiff1d(np.concatenate(self.made), call[by == By.TIMETABLE], assume_unique=True)
        cell = np.concatenate([np.cumsum(count) - count, np.full(len(marks), -1)])
        place, count = np.append(place, np.full(len(marks), -1)), np.append(count, np.ones(len(marks), np.int64))
        order = np.argsort(np.concatenate([len(By) * call + by, len(By) * marks]), kind="stable")
        count, nothing = count[order], np.full(len(marks), -1)
        call, by = np.append(call, marks)[order], np.append(by, 0 * marks)[order]
        step = np.append(step, table.steps(marks))[order]
        key = np.append(key, nothing)[order]
        return _LineColumns(
            np.repeat(by, count),
            np.repeat(key, count),
            np.repeat(step, count),
            spread(place[order], count),
            np.where(np.repeat(cell[order], count) < 0, -1, spread(cell[order], count)),
            {what: np.repeat(numbers, count) for what, numbers in self._at(call, by).items()},
        )

    def _at(self, call: Ints, by: Ints) -> dict[int, Ints]:
        """Return the panes, evictions and rows of calls; -1 where a call is made at something else."""
        out = {what: np.full(len(call), -1) for what in (PANE, EVICTION, AT_ROW)}
        events, own = self.scene.timetable.events, np.flatnonzero(by != By.END)
        event = self.scene.timetable.time[call[own]] // PHASES
        for what, numbers in out.items():
            numbers[own] = np.where(events.what[event] == what, events.number[event], -1)
        return out

    def _stamps(self, at: Mapping[int, Ints]) -> dict[str, pa.Array]:
        of_row, scene = at[AT_ROW] >= 0, self.scene
        picks = at[AT_ROW][of_row]
        rows = scene.sequences.rows.select(list(scene.plan.sort))
        rows = rows.take(pa.array(picks)) if rows.num_columns else rows
        behind = Marks(rows, scene.sequences.pos[picks], np.full(len(picks), NO_FILE))
        stamps = zip(scene.plan.stream_names, mark_columns(scene.plan, behind), scene.evicted_at, strict=True)
        own = np.where(of_row, np.cumsum(of_row) - 1, -1)
        out = {}
        for name, column, evicted_at in stamps:
            values = take_or_null(scene.emitted.column(name), at[PANE])
            for where, others in ((own, column), (at[EVICTION], evicted_at)):
                if (where >= 0).any():
                    theirs = take_or_null(others.cast(values.type, safe=False), where)
                    values = pc.if_else(pa.array(where >= 0), theirs, values)
            out[name] = values
        return out

    def _values(self, column: pa.Field) -> pa.Array:
        values = self.cells[column.name]
        try:
            return _converted(values, column.type)
        except _UNFIT:
            bad = next((i for i, value in enumerate(values) if not _fits(value, column.type)), None)
        if bad is None:
            return pa.array(values, column.type)
        call, by, key, _, _, count = np.array(self.entries, np.int64).reshape(-1, 6).T
        entry = int(np.searchsorted(np.cumsum(count), bad, side="right"))
        where = self.where(int(call[entry]), int(key[entry]), By(int(by[entry])))
        raise DataError(f"{self.operator.__name__} gave {column.name}={values[bad]!r:.60} {where}, not {column.type}")


class Lines:
    """The rows that operators have returned, over several scenes."""

    def __init__(self, operator: type[Operator], scene: Scene) -> None:
        self.operator = operator
        self.now = OperatorRows(operator, scene)
        self.before: list[pa.Table] = []
        self.count = 0

    def turn_to(self, scene: Scene) -> None:
        """Number calls, panes, rows and evictions as in another scene from here on."""
        if scene is not self.now.scene:
            self.before += self.now.taken()
            self.count = sum(map(len, self.before))
            self.now = OperatorRows(self.operator, scene)

    @property
    def is_full(self) -> bool:
        return self.count + len(self.now) >= MOST_ROWS

    def full_tables(self) -> Iterator[pa.Table]:
        """Yield all rows where they are many."""
        if self.is_full:
            yield from self.tables()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows so far."""
        parts, self.before, self.count = [*self.before, *self.now.taken()], [], 0
        if parts:
            table = pa.concat_tables(parts).combine_chunks()
            for first in range(0, len(table), MOST_ROWS):
                yield table.slice(first, MOST_ROWS)


def _converted(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Return values as an array. Raises for numbers and times that Arrow would truncate: a cast refuses them."""
    if pa.types.is_integer(dtype) or pa.types.is_temporal(dtype):
        pa.array([value for value in values if value is not None and not isinstance(value, int)]).cast(dtype)
    return pa.array(values, dtype)


def _fits(value: Any, dtype: pa.DataType) -> bool:
    try:
        _converted([value], dtype)
    except _UNFIT:
        return False
    return True
