"""Conversion for operators: Arrow columns to Python values, and the rows that operators return to Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, combined, take_or_null
from ...errors import DataError
from ...operator import Given, Operator, PaneInfo, Row, output_fields, reason_of
from ...planning.plan import Plan
from ...planning.result_schema import FIXED, MARK, OUTPUTS, ROW, STEP
from ...sequences.marks import NO_FILE, Marks
from ...sequences.sequence import Sequences
from ..stream_columns import mark_columns
from .scenes import Described

MOST_ROWS = 100_000
_BLOCK = 4096  # rows that are converted to Python values at a time
_UNFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)


# --- Arrow to Python --------------------------------------------------------------------------------------------------


def key_of(sequences: Sequences, key: int) -> Row:
    """Return the values of the key columns; empty where there is no key."""
    if sequences.keys is None:
        return MappingProxyType({})
    one = sequences.keys.slice(key, 1)
    return MappingProxyType({name: python_values(name, one.column(name))[0] for name in one.column_names})


def python_rows(key: Row, rows: pa.RecordBatch, picks: Ints) -> Iterator[Row]:
    """Yield the rows at ``picks`` as read-only mappings of all their columns, including those of the key."""
    names = [*key, *(name for name in rows.schema.names if name not in key)]
    for first in range(0, len(picks), _BLOCK):
        block = pa.array(picks[first : first + _BLOCK])
        columns = {name: repeat(value, len(block)) for name, value in key.items()}
        columns |= {name: python_values(name, rows.column(name).take(block)) for name in rows.schema.names}
        for values in zip(*(columns[name] for name in names), strict=True):
            yield MappingProxyType(dict(zip(names, values, strict=True)))


def pane_infos(plan: Plan, pane_columns: pa.Table, picks: Ints) -> Iterator[PaneInfo]:
    """Yield `PaneInfo` for the panes at ``picks``; ``pane_columns``: the columns of all panes in the result."""
    names = _pane_columns(plan)
    for first in range(0, len(picks), _BLOCK):
        block = pane_columns.select(names).take(pa.array(picks[first : first + _BLOCK]))
        columns = [python_values(block.column_names[i], block.column(i)) for i in range(len(names))]
        yield from map(PaneInfo, *columns)


def python_values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; times in nanoseconds, which Python does not have, as integers.

    Raises `DataError` for times beyond Python's range.
    """
    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns":
        column = column.cast(pa.int64())
    try:
        return _times(combined(column)) or column.to_pylist()
    except (OverflowError, ValueError) as error:
        what = f"column {name!r} holds {column.type} beyond Python's, which an operator would get ({reason_of(error)})"
        raise DataError(what, "make it a number, or leave such rows out") from None


def _times(column: pa.Array) -> list[Any]:
    """Return timestamps without a zone as `to_pylist` does, in a twentieth of the time; nothing for other values."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return []
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()  # None for null; integers beyond Python's range
    times = sum(type(value) is datetime for value in values)
    return values if times + column.null_count == len(values) else []


def _pane_columns(plan: Plan) -> list[int]:
    """Return the indices of the columns that describe a pane: those between the key and the stream columns."""
    count = len(FIXED) + (len(OUTPUTS) if plan.options.event_time else 0)
    return list(range(len(plan.key), len(plan.key) + count))


def of_key(sequences: Sequences, key: int) -> str:
    """Return `` of key NAME=VALUE, ..``, for messages; empty where there is no key."""
    words = ", ".join(f"{name}={_text(value)}" for name, value in key_of(sequences, key).items())
    return f" of key {words}" if words else ""


# --- Python to Arrow --------------------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """When a call is made: at a pane, at a row, at an eviction, or, where all are -1, at the end of the data.

    ``pane``, ``row``, ``eviction``: its number; -1 for the others.
    """

    pane: int = -1
    row: int = -1
    eviction: int = -1


class _Line(NamedTuple):
    """A row to write.

    ``key``: its key, -1 for null.
    ``pane``: its pane, -1 for null.
    ``at``: what it takes its stream columns from.
    ``step``: its ``_step``.
    ``place``: its ``_row``, or None.
    ``mark``: its ``_mark``, or None.
    """

    key: int
    pane: int
    at: Moment
    step: int
    place: int | None
    mark: str | None


_END = Moment()


@dataclass(slots=True)
class OperatorRows:
    """The rows that operators have returned and that are not in a table yet.

    ``operator``: the class of the operators.
    ``scene``: what the panes, rows and evictions are numbered in.
    ``lines``: the rows to write, without the columns of the operator.
    ``cells``: the values of the operator's columns, by column, one for each of ``lines``.
    """

    operator: type[Operator]
    scene: Described
    lines: list[_Line] = field(init=False, default_factory=list)
    cells: dict[str, list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = {name: [] for name in self.operator.output}

    def __len__(self) -> int:
        return len(self.lines)

    def of_pane(self, key: int, pane: int, step: int, call: Callable[..., Given], *arguments: Any) -> None:
        """Write what ``trigger`` returns: the rows of the pane, with the mark at the last; the mark alone without rows.

        ``call``: the method, and then what it is called with.
        ``step``: the number among the steps of the key with the same stream columns; odd for panes.
        """
        at = Moment(pane=pane)
        rows = self._called("trigger", key, at, call, arguments)
        for place in range(len(rows)):
            mark = "window" if place == len(rows) - 1 else None
            self.lines.append(_Line(key, pane, at, step, place, mark))
        if not rows and not self.scene.plan.options.plain:
            self.lines.append(_Line(-1, -1, at, step, None, "only"))
            rows = [{}]
        self._write(rows)

    def of_step(
        self, method: str, key: int, at: Moment, step: int, place: int, call: Callable[..., Given], *arguments: Any
    ) -> int:
        """Write what another method returns.

        ``step``, ``call``: as for panes, but steps are even. Rows are numbered from ``place``. Returns the next number.
        """
        rows = self._called(method, key, at, call, arguments)
        if rows:
            self.lines += [_Line(key, -1, at, step, place + i, None) for i in range(len(rows))]
            self._write(rows)
        return place + len(rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows so far as tables and clear them."""
        if self.lines:
            table = self._table()
            for first in range(0, len(table), MOST_ROWS):
                yield table.slice(first, MOST_ROWS)
        self.lines.clear()
        for values in self.cells.values():
            values.clear()

    def where(self, key: int, at: Moment) -> str:
        """Return which pane, row or eviction of which key it is, for messages."""
        return f"{self._spot(at)}{of_key(self.scene.sequences, key)}"

    def _spot(self, at: Moment) -> str:
        if at.pane >= 0:
            return f"in window {self.scene.emitted.column(len(self.scene.plan.key))[at.pane]}"
        if at.row >= 0:
            return f"at row {self.scene.sequences.pos[at.row]}"
        return "at the end of the data" if at == _END else "at the eviction"

    def _called(
        self, method: str, key: int, at: Moment, call: Callable[..., Given], arguments: tuple[Any, ...]
    ) -> Sequence[Row]:
        """Return the rows that a method returns or yields."""
        try:
            given = call(*arguments)
            if given is None:
                return ()
            rows = list(given)
        except Exception as error:  # a user's class can raise anything
            what = f"{self.operator.__name__}.{method} failed {self.where(key, at)}: {reason_of(error)}"
            raise DataError(what) from error
        for one in rows:
            if not isinstance(one, Mapping):
                what = f"{self.operator.__name__}.{method} gave {one!r:.60} {self.where(key, at)}, which is no row"
                raise DataError(what, "yield dicts, or return a list of them")
            if not all(map(self.cells.__contains__, one)):
                raise self._of_strange_column(method, one, self.where(key, at))
        return rows

    def _of_strange_column(self, method: str, row: Row, where: str) -> DataError:
        name, strange = self.operator.__name__, next(column for column in row if column not in self.cells)
        what = f"{name}.{method} gave a column {strange!r} {where} that {name}.output does not name"
        return DataError(what, f"it names {', '.join(self.cells)}")

    def _write(self, rows: Sequence[Row]) -> None:
        for name, values in self.cells.items():
            values += [row.get(name) for row in rows]

    def _table(self) -> pa.Table:
        key, pane, at, step, place, mark = zip(*self.lines, strict=True)
        scene, columns = self.scene, dict[str, Any]()
        for name in scene.plan.key:
            assert scene.sequences.keys is not None
            columns[name] = take_or_null(scene.sequences.keys.column(name), np.array(key, np.int64))
        for i in _pane_columns(scene.plan):
            columns[scene.emitted.column_names[i]] = take_or_null(scene.emitted.column(i), np.array(pane, np.int64))
        at_end = pa.array([one == _END for one in at])
        columns["closed_by"] = pc.if_else(at_end, "end", columns["closed_by"].cast(pa.string()))
        if not scene.plan.options.plain:
            columns |= self._stamps(*(np.array(numbers) for numbers in zip(*at, strict=True)))
        for column in output_fields(self.operator):
            columns[column.name] = self._values(column)
        if not scene.plan.options.plain:
            columns |= {STEP: pa.array(step, pa.int64()), ROW: pa.array(place, pa.int64())}
            columns[MARK] = pa.array(mark, pa.string())
        return pa.table(columns)

    def _stamps(self, at_pane: Ints, at_row: Ints, at_eviction: Ints) -> dict[str, pa.Array]:
        """Return the stream columns. Those of a row are the same as those of a mark right after it."""
        of_row, scene = at_row >= 0, self.scene
        picks = at_row[of_row]
        rows = scene.sequences.rows.select(list(scene.plan.sort))
        rows = rows.take(pa.array(picks)) if rows.num_columns else rows
        behind = Marks(rows, scene.sequences.pos[picks], np.full(len(picks), NO_FILE))
        stamps = zip(scene.plan.stream_names, mark_columns(scene.plan, behind), scene.evicted_at, strict=True)
        own = np.where(of_row, np.cumsum(of_row) - 1, -1)
        out = {}
        for name, column, evicted_at in stamps:
            by_pane = take_or_null(scene.emitted.column(name), at_pane)
            by_row = take_or_null(column.cast(by_pane.type, safe=False), own)
            by_eviction = take_or_null(evicted_at.cast(by_pane.type, safe=False), at_eviction)
            out[name] = pc.if_else(
                pa.array(of_row), by_row, pc.if_else(pa.array(at_eviction >= 0), by_eviction, by_pane)
            )
        return out

    def _values(self, column: pa.Field) -> pa.Array:
        values = self.cells[column.name]
        try:
            return _converted(values, column.type)
        except _UNFIT:
            bad = next((i for i, value in enumerate(values) if not _fits(value, column.type)), None)
        if bad is None:
            return pa.array(values, column.type)
        line = self.lines[bad]
        where = self.where(line.key, line.at)
        raise DataError(f"{self.operator.__name__} gave {column.name}={values[bad]!r:.60} {where}, not {column.type}")


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


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str | bytes) else str(value)
