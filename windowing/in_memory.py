"""Windows over one table in memory, without Spark, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import pyarrow as pa

from .arguments import (
    Rows,
    Seconds,
    WindowArguments,
    as_levels,
    as_marks,
    as_table,
    clock_measure,
    merged,
    plan_of_call,
    refuse_others,
    takes,
)
from .errors import ConfigError
from .language.spec import WindowSpec
from .planning.row_order import OrderBy
from .planning.validation import check_marks
from .streaming.batch_rows import GivenSignals
from .streaming.batch_scan import BatchScan
from .streaming.kept_state import PriorState, form_of, kept_before, with_known_columns
from .streaming.row_rejects import Rejected


@takes(WindowArguments)
def aggregate(
    table: Rows,
    window: str | WindowSpec,
    *,
    order_by: OrderBy = None,
    marks: str | Sequence[int] | None = None,
    watermarks: Sequence[tuple[int, Seconds]] | None = None,
    rejected: Rejected = "error",
    state: PriorState | None = None,
    **options: Unpack[WindowArguments],
) -> Any:
    """Apply a window to a table in arrival order; return one row per pane, by key and window, then mark-only rows.

    ``table``: of Arrow, or any object with ``__arrow_c_stream__`` (pandas, Polars, DuckDB). Names may be one text. A
    result is read as a stream, with its marks (semantics section 10).
    ``join``: a table to join, by the text of --join without a path: ``{"NAME on KEY left": table}``; or a text alone,
        for the rows themselves.
    ``marks``: for ``punct()``, a boolean column, with a mark after each true row, or numbers p: after the first p rows.
    ``watermarks``: for event-time panes, pairs (p, w): w seconds after the first p rows; by default from the rows.
    ``rejected``: what to do with rows with null or NaN where the window needs a value, or too late for any pane: an
        error, ``"drop"``, or ``"column"``: they are rows of the result, with ``_rejected`` alone: a struct of reason,
        detail, and the row.
    ``state``: go on from the state of the call before, ``"new"`` for the first, and return ``(result, state)``; N calls
        give the panes of one over all rows (docs/python.md#state). A table, one row a key and part (docs/state.md).

    Raises `SpecError`, `ConfigError`, also for the state of another job, and `DataError` for rejected rows and
    overflows.

    >>> log = pa.table({"a": [0, 1, 2, 3, -50, 5, 6]})
    >>> aggregate(log, "delta(a, 2)", aggregates=["a=collect(a)"])["a"].to_pylist()
    [[0, 1, 2], [3, -50, 5], [6]]
    """
    refuse_others(aggregate, options)
    both, given = merged(as_table(table), {**options, "window": window, "order_by": order_by, "state": state})
    table = as_table(with_known_columns(both, state))
    plan = plan_of_call(table.schema, given, table)
    clock, since = options.get("clock"), options.get("since")
    before = kept_before(plan, state, clock, since, watermarks)
    marks = as_marks(marks)
    if isinstance(marks, str):
        check_marks(plan.projection, marks)
    elif marks is not None:
        earlier = before.registers.rows
        if any(not 0 <= place <= table.num_rows for place in marks):
            raise ConfigError(f"marks must be from 0 to {table.num_rows}, the number of rows", "leave the others out")
        if earlier and 0 in marks:
            what = "mark 0 comes before the rows, and windows go on from a state"
            raise ConfigError(what, "give it after a row before")
        marks = [place + earlier for place in marks]  # as counted from the first row of all
    now = clock_measure(plan, clock)
    signals, goes_on = GivenSignals(marks, as_levels(watermarks)), state is not None
    windows = BatchScan(table.schema, plan, signals, rejected, now, before, is_continued=goes_on)
    parts = [part.cast(windows.result) for part in windows.end(table)]
    result = pa.concat_tables([windows.result.empty_table(), *parts])
    return result if state is None else (result, form_of(plan).table(windows.carry))
