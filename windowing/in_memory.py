"""Windows over one table in memory, without Spark, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

from .arguments import Calls, Clock, Names, Rows, Seconds, as_table, clock_measure, plan_of_call
from .errors import ConfigError
from .language.options import AtEnd, Closed, Emit, Empty
from .language.spec import WindowSpec
from .planning.row_order import OrderBy
from .planning.validation import check_marks
from .streaming.batch_rows import Progress
from .streaming.batch_scan import BatchScan
from .streaming.batch_signals import GivenSignals
from .streaming.row_rejects import Rejected


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
    rejected: Rejected = "error",
) -> pa.Table:
    """Apply a window to a table in arrival order; return one row per pane, by key and window, then mark-only rows.

    ``table``: of Arrow, or any object with ``__arrow_c_stream__`` (pandas, Polars, DuckDB). Names may be one text. A
    result is read as a stream, with its marks (semantics section 10).
    ``aggregates``: texts, or a mapping of column names to texts; ``count()`` by default.
    ``marks``: for ``punct()``, a boolean column, with a mark after each true row, or numbers p: after the first p rows.
    ``clock``, ``since``: the time of the clock after the last row and before the first: seconds, or an instant.
    ``watermarks``: for event-time panes, pairs (p, w): w seconds after the first p rows; by default from the rows.
    ``plain``: leave out mark-only rows and stream columns.
    ``rejected``: what to do with rows with null or NaN where the window needs a value, or too late for any pane: an
        error, ``"drop"``, or ``"column"``: they are rows of the result, with ``_rejected`` alone: a struct of reason,
        detail, and the row.

    Other options are as on the command line, ``origin``, ``lag`` and ``min_gap`` in seconds. Raises `SpecError`,
    `ConfigError`, and `DataError` for rejected rows and overflows.

    >>> log = pa.table({"a": [0, 1, 2, 3, -50, 5, 6]})
    >>> aggregate(log, "delta(a, 2)", aggregates=["a=collect(a)"])["a"].to_pylist()
    [[0, 1, 2], [3, -50, 5], [6]]
    """
    table = as_table(table)
    plan = plan_of_call(table.schema, locals())
    if isinstance(marks, str):
        check_marks(plan.projection, marks)
    elif marks is not None:
        _check_numbers(marks, table.num_rows)
    levels = None if watermarks is None else [(rows, Fraction(seconds)) for rows, seconds in watermarks]
    now, then = (clock_measure(plan, instant) for instant in (clock, since))
    windows = BatchScan(table.schema, plan, GivenSignals(marks, levels), rejected, now, Progress(clock=then))
    parts = [part.cast(windows.result) for part in windows.end(table)]
    return pa.concat_tables([windows.result.empty_table(), *parts])


def _check_numbers(marks: Sequence[int], rows: int) -> None:
    if any(not 0 <= place <= rows for place in marks):
        raise ConfigError(f"marks must be from 0 to {rows}, the number of rows", "leave the others out")
