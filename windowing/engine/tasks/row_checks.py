"""What expectations of a job ask of rows while tasks write and read them (semantics section 14).

Rows of the result are checked as they are written, so a run with expectations reads and writes nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import combined
from ...columns.numeric import scale_of
from ...expressions.binding import BoundExpression
from ...planning.plan import Plan
from ...planning.result_schema import FIXED, MARK
from ...ports import CheckedPart, Part, ResultPart, RowCheck

_MOST = 60


class CheckedTables:
    """Tables of the result that are checked as they pass.

    ``checks``: what each condition has come to so far.
    """

    def __init__(self, plan: Plan, conditions: Sequence[BoundExpression], tables: Iterable[pa.Table]) -> None:
        self._plan, self._conditions, self._tables = plan, conditions, tables
        self.checks = tuple(RowCheck() for _ in conditions)

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            rows = _without_marks(table)
            found = [_check(self._plan, condition, rows) for condition in self._conditions]
            self.checks = tuple(before + now for before, now in zip(self.checks, found, strict=True))
            yield table

    def on(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts that hold all of the tables; the first of them says what was found."""
        first, *others = parts
        result = (
            first if isinstance(first, ResultPart) else ResultPart(first.name, first.rows, first.nbytes, first.checksum)
        )
        known = (
            result.name,
            result.rows,
            result.nbytes,
            result.checksum,
            result.digest,
            result.statistics,
            result.tail,
        )
        return CheckedPart(*known, self.checks), *others


def span_of(plan: Plan, rows: pa.RecordBatch) -> tuple[float, float] | None:
    """Return the smallest and the largest order value of rows as numbers, times in ticks; None where it has none."""
    name = order_column(plan)
    if name is None or not rows.num_rows:
        return None
    column = combined(rows.column(name))
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return None if low is None else (low, high)


def epoch_seconds(number: float, dtype: pa.DataType) -> float:
    """Return an order value that `span_of` gives, of a column of type ``dtype``, in seconds since the epoch.

    A plain number counts seconds since the epoch.
    """
    per_second = scale_of(dtype).per_second if pa.types.is_temporal(dtype) else None
    return float(Fraction(number) / per_second) if per_second is not None else float(number)


def order_column(plan: Plan) -> str | None:
    """Return the first order column of the user, or the event time; None in arrival order."""
    return next(iter((*plan.order.columns, *([plan.options.event_time] if plan.options.event_time else ()))), None)


def _without_marks(table: pa.Table) -> pa.Table:
    if MARK not in table.column_names:
        return table
    only = pc.equal(combined(table[MARK]).cast(pa.string()), "only")
    return table.filter(pc.invert(only.fill_null(False)))


def _check(plan: Plan, condition: BoundExpression, rows: pa.Table) -> RowCheck:
    needed = pa.table({name: _plain(rows[name]) for name in condition.columns}) if condition.columns else rows
    found = condition.evaluate(needed)
    true = combined(found.values).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    failing = np.flatnonzero(~true)
    example = _shown(plan, condition, rows, int(failing[0])) if len(failing) else None
    return RowCheck(len(true), int(true.sum()), example)


def _shown(plan: Plan, condition: BoundExpression, rows: pa.Table, at: int) -> str:
    named = dict.fromkeys([*plan.key, *FIXED[:1], *condition.columns])
    cells = {name: _plain(rows[name].slice(at, 1)) for name in named if name in rows.column_names}
    return ", ".join(f"{name}={_text(column)}" for name, column in cells.items())


def _text(column: pa.ChunkedArray) -> str:
    value = str(column[0]) if pa.types.is_temporal(column.type) else repr(column[0].as_py())
    return value if len(value) <= _MOST else f"{value[:_MOST]}.."


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose texts are no dictionary arrays."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
