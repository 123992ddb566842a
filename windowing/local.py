"""The scan without Spark: windows over one Arrow table, for notebooks and tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa

from windowing.columns import Ints, combined, scale_of
from windowing.errors import ConfigError, DataError
from windowing.marks import NO_FILE, Marks, in_order, no_marks, placed
from windowing.names import did_you_mean
from windowing.order import OrderBy
from windowing.parse import parse_aggregate, parse_window
from windowing.plan import AtEnd, Empty, Plan, make_plan
from windowing.scan import empty_mark_rows, empty_tick_rows, scan
from windowing.screen import kept_and_rejected, screen
from windowing.sequence import build, one_batch
from windowing.spec import WindowSpec

Clock = int | float | Fraction | dt.datetime


def aggregate(
    table: pa.Table,
    window: str | WindowSpec,
    *,
    key: Sequence[str] = (),
    order_by: OrderBy = None,
    aggregates: Sequence[str] = ("count()",),
    at_end: AtEnd = "flush",
    empty: Empty = "skip",
    origin: Fraction | str | int | None = None,
    marks: str | Sequence[int] | None = None,
    clock: Clock | None = None,
    rejected: Literal["error", "drop"] = "error",
) -> pa.Table:
    """Apply a window to a table whose rows stand in arrival order; return one row per pane, by key and window.

    ``window``, ``key``, ``order_by``, ``aggregates``, ``at_end``, ``empty`` and ``origin`` (seconds) are as on the
    command line. ``marks`` (only ``punct()`` looks at them): a boolean column, a mark following every true row, or
    positions p, a mark standing after the first p rows. ``clock``: where the clock stands, if it went on after the
    last row: seconds, or an instant. Mark-only rows come last. ``rejected``: what to do with rows that hold null or
    NaN where the window needs a value.

    Raises `SpecError`, `ConfigError`, and `DataError` for rejected rows and overflows.

    >>> log = pa.table({"a": [0, 1, 2, 3, -50, 5, 6]})
    >>> aggregate(log, "delta(a, 2)", aggregates=["a=collect(a)"])["a"].to_pylist()
    [[0, 1, 2], [3, -50, 5], [6]]
    """
    spec = parse_window(window) if isinstance(window, str) else window
    table = _decoded(table)
    calls = [parse_aggregate(text) for text in aggregates]
    plan = make_plan(spec, table.schema, key, order_by, calls, at_end, empty, Fraction(origin or 0))
    rows = one_batch(table.select(list(plan.columns)))
    stood = in_order(_marks(table, rows, plan, marks))
    rows, pos = _kept(plan, rows, np.arange(table.num_rows), rejected)
    sequences = build(rows, pos, plan.key, plan.sort, plan.values)
    now = _clock_measure(clock, table.schema.field(plan.sort[0]).type) if clock is not None and plan.sort else None
    scanned = scan(plan, sequences, stood, now)
    tables = [scanned.table]
    if plan.takes_marks:
        tables.append(empty_mark_rows(plan, stood, scanned.by_mark))
    if plan.empty == "mark":
        tables.append(empty_tick_rows(plan, sequences, now))
    return pa.concat_tables([part.cast(plan.schema) for part in tables])


def _decoded(table: pa.Table) -> pa.Table:
    """Replace dictionary columns by plain ones."""
    plain = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(plain))


def _kept(plan: Plan, rows: pa.RecordBatch, pos: Ints, rejected: str) -> tuple[pa.RecordBatch, Ints]:
    reasons = screen(plan, rows)
    if reasons is None:
        return rows, pos
    kept, bad = kept_and_rejected(reasons)
    if rejected == "error":
        raise DataError(f"{len(bad)} rows have no place in the window: row {bad[0]} is {reasons[bad[0]]}", "mend them")
    return rows.take(pa.array(kept)), kept


def _marks(table: pa.Table, rows: pa.RecordBatch, plan: Plan, marks: str | Sequence[int] | None) -> Marks:
    if marks is None or not plan.takes_marks:
        return no_marks(rows, plan.sort)
    after = _true_rows(table, marks) if isinstance(marks, str) else np.asarray(marks, np.int64) - 1
    if len(after) and not (after.min() >= -1 and after.max() < table.num_rows):
        raise ConfigError(f"marks must be from 0 to {table.num_rows}, the number of rows", "leave the others out")
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after, mask=after < 0)) if plan.sort else order
    return placed(Marks(at, after, np.full(len(after), NO_FILE)), plan.order.columns)


def _true_rows(table: pa.Table, name: str) -> Ints:
    if name not in table.schema.names:
        raise ConfigError(f"marks: there is no column {name!r}", did_you_mean(name, table.schema.names))
    column = combined(table.column(name))
    if not pa.types.is_boolean(column.type):
        raise ConfigError(f"marks need a boolean column, and {name!r} is {column.type}", "use another column")
    return np.flatnonzero(column.fill_null(False).to_numpy(zero_copy_only=False))


def _clock_measure(clock: Clock, dtype: pa.DataType) -> int | float:
    if isinstance(clock, dt.datetime):
        since = clock.replace(tzinfo=clock.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        clock = Fraction(since // dt.timedelta(microseconds=1), 10**6)
    scale = scale_of(dtype)
    return float(clock) if scale.per_second is None else scale.floor(Fraction(clock))
