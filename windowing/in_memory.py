"""Windows over one table in memory, without Spark, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa

from .arguments import Calls, Clock, Names, Rows, Seconds, as_calls, as_names, as_options, as_table, clock_measure
from .clock.interval_grid import make_intervals
from .clock.watermark import explicit
from .columns.arrays import Ints, Mask, combined
from .errors import ConfigError, DataError
from .kinds.signals import Signals, watermark_signals, window_marks
from .language.options import AtEnd, Closed, Emit, Empty
from .language.parser import parse_window
from .language.spec import TimeInterval, WindowSpec
from .panes.rejects import ScanRejects
from .planning.plan import Plan, make_plan
from .planning.row_order import OrderBy
from .planning.validation import check_marks
from .projection.projection import ARRIVAL, project
from .scan.lag_rows import with_lag_columns
from .scan.lateness import assess, event_times, merged_watermarks
from .scan.row_validation import add_late, split_by_reason, validate_rows
from .scan.scan import RunExtent, empty_mark_rows, empty_tick_rows, latest, scan
from .sequences.marks import NO_FILE, Marks, in_order, no_marks, with_place
from .sequences.sequence import build, one_batch
from .support.suggest import did_you_mean


def aggregate(
    table: Rows,
    window: str | WindowSpec,
    *,
    key: Names = (),
    order_by: OrderBy = None,
    aggregates: Calls | None = None,
    at_end: AtEnd = "flush",
    empty: Empty = "skip",
    closed: Closed = "left",
    origin: Seconds | None = None,
    marks: str | Sequence[int] | None = None,
    clock: Clock | None = None,
    since: Clock | None = None,
    let: Calls = (),
    where: str | None = None,
    having: str | None = None,
    partial: bool = False,
    group_by: Names = (),
    emit: Emit = "aggregates",
    sort_by: Names = (),
    event_time: str | None = None,
    lag: Seconds = 0,
    min_gap: Seconds = 0,
    emit_evicted: bool = False,
    operator: str | None = None,
    plain: bool = False,
    watermarks: Sequence[tuple[int, Seconds]] | None = None,
    rejected: Literal["error", "drop"] = "error",
) -> pa.Table:
    """Apply a window to a table in arrival order; return one row per pane, by key and window, then mark-only rows.

    ``table``: of Arrow, or any object with ``__arrow_c_stream__`` (pandas, Polars, DuckDB). Names may be one text.
    ``aggregates``: texts, or a mapping of column names to texts; ``count()`` by default.
    ``marks``: for ``punct()``, a boolean column, with a mark after each true row, or numbers p: after the first p rows.
    ``clock``, ``since``: the time of the clock after the last row and before the first: seconds, or an instant.
    ``watermarks``: for event-time panes, pairs (p, w): w seconds after the first p rows; by default from the rows.
    ``plain``: leave out mark-only rows and stream columns.
    ``rejected``: what to do with rows with null or NaN where the window needs a value, or too late for any pane.

    Other options are as on the command line, ``origin``, ``lag`` and ``min_gap`` in seconds. Raises `SpecError`,
    `ConfigError`, and `DataError` for rejected rows and overflows.

    >>> log = pa.table({"a": [0, 1, 2, 3, -50, 5, 6]})
    >>> aggregate(log, "delta(a, 2)", aggregates=["a=collect(a)"])["a"].to_pylist()
    [[0, 1, 2], [3, -50, 5], [6]]
    """
    spec = parse_window(window) if isinstance(window, str) else window
    table = as_table(table)
    options = as_options(locals())
    calls = None if aggregates is None else as_calls(aggregates)
    order = None if order_by is None else "arrival" if order_by == "arrival" else as_names(order_by, "order_by")
    plan = make_plan(spec, table.schema, as_names(key, "key"), order, calls, options)
    table, picks = _projected(table, plan, marks if isinstance(marks, str) else None, rejected)
    rows, pos = one_batch(table.select(list(plan.columns))), np.arange(table.num_rows)
    marks_of_rows = _marks(table, rows, plan, marks)
    if picks is not None:
        rows, pos = rows.take(pa.array(picks)) if rows.num_columns else rows, picks
    signals, late = _signals(rows, pos, plan, marks_of_rows, watermarks)
    rows, pos = _valid_rows(plan, rows, pos, late, rejected)
    read = build(rows, pos, plan.key, plan.sort, plan.read_values)
    ordered = with_lag_columns(plan, read)
    sequences = ordered.sequences
    now, then = (clock_measure(plan, instant) for instant in (clock, since))
    bounds = RunExtent(latest(plan, read) if now is None and len(ordered.rejects) else now, then)
    scanned = scan(plan, sequences, signals, bounds)
    _check_rejects(ordered.rejects + scanned.rejects, rejected)
    tables = list(scanned.tables)
    scanned = scanned.settled()
    if plan.takes_marks and not plain:
        tables.append(empty_mark_rows(plan, signals.marks, scanned.by_mark))
    if plan.options.empty == "mark" and not plain:
        tables.append(empty_tick_rows(plan, sequences, bounds))
    return pa.concat_tables([plan.schema.empty_table(), *(part.cast(plan.schema) for part in tables)])


def _projected(table: pa.Table, plan: Plan, mark: str | None, rejected: str) -> tuple[pa.Table, Ints | None]:
    """Return all rows with the columns of the plan and of marks, and which rows there are, int64; None: all.

    Raises `DataError` where an expression fails for a row, unless such rows are dropped.
    """
    if plan.projection.is_trivial:
        return table, None
    check_marks(plan.projection, mark)
    extra = [mark] if mark is not None and mark in plan.projection.schema.names else []
    names = list(dict.fromkeys([*plan.columns, *extra]))
    if ARRIVAL in plan.projection.virtual:
        table = table.append_column(ARRIVAL, pa.array(np.arange(table.num_rows)))
    found = project(plan.projection, table.select(list(plan.projection.needs(names))), names)
    if found.failures is not None and rejected == "error":
        row, detail = found.failures.row[0], found.failures.detail[0].as_py()
        raise DataError(f"an expression fails for {len(found.failures.row)} rows: row {row}: {detail}", "mend them")
    return found.rows, None if found.kept is None else np.flatnonzero(found.kept)


def _signals(
    rows: pa.RecordBatch,
    pos: Ints,
    plan: Plan,
    marks: Marks,
    watermarks: Sequence[tuple[int, Seconds]] | None,
) -> tuple[Signals, Mask]:
    """Return the marks or watermarks of the rows, and which rows are late beyond repair, bool (n,)."""
    if not plan.kind.has_watermark:
        return window_marks(in_order(marks)), np.zeros(len(pos), np.bool_)
    if watermarks is None:
        assessed = assess(plan, None, rows, pos)
        return watermark_signals(merged_watermarks(plan, [assessed.watermarks])), assessed.late
    values, places = event_times(plan, rows)
    assert isinstance(plan.spec, TimeInterval)
    intervals = make_intervals(rows.schema.field(plan.clock).type, plan.spec)
    events = [(position, Fraction(seconds)) for position, seconds in watermarks]
    found, behind = explicit(events, intervals, plan.spec.discard_age, values, pos[places])
    late = np.zeros(len(pos), np.bool_)
    late[places] = behind
    return watermark_signals(found), late


def _valid_rows(plan: Plan, rows: pa.RecordBatch, pos: Ints, late: Mask, rejected: str) -> tuple[pa.RecordBatch, Ints]:
    reasons = add_late(validate_rows(plan, rows), late)
    if reasons is None:
        return rows, pos
    kept, bad = split_by_reason(reasons)
    if rejected == "error":
        what = f"{len(bad)} rows have no place in the window: row {pos[bad[0]]} is {reasons[bad[0]]}"
        raise DataError(what, "mend them")
    return rows.take(pa.array(kept)), pos[kept]


def _check_rejects(rejects: ScanRejects, rejected: str) -> None:
    if len(rejects) and rejected == "error":
        first = int(np.argmin(rejects.pos))
        detail = rejects.detail[first].as_py()
        what = f"row {rejects.pos[first]} is {rejects.reason[first]}" + (f": {detail}" if detail else "")
        raise DataError(f"{len(rejects)} rows have no place in the window: {what}", "mend them")


def _marks(table: pa.Table, rows: pa.RecordBatch, plan: Plan, marks: str | Sequence[int] | None) -> Marks:
    if marks is None or not plan.takes_marks:
        return no_marks(rows, plan.sort)
    after = _true_rows(table, marks) if isinstance(marks, str) else np.asarray(marks, np.int64) - 1
    if len(after) and not (after.min() >= -1 and after.max() < table.num_rows):
        raise ConfigError(f"marks must be from 0 to {table.num_rows}, the number of rows", "leave the others out")
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after, mask=after < 0)) if plan.sort else order
    return with_place(Marks(at, after, np.full(len(after), NO_FILE)), plan.order.columns)


def _true_rows(table: pa.Table, name: str) -> Ints:
    if name not in table.schema.names:
        raise ConfigError(f"marks: there is no column {name!r}", did_you_mean(name, table.schema.names))
    column = combined(table.column(name))
    if not pa.types.is_boolean(column.type):
        raise ConfigError(f"marks need a boolean column, and {name!r} is {column.type}", "use another column")
    return np.flatnonzero(column.fill_null(False).to_numpy(zero_copy_only=False))
