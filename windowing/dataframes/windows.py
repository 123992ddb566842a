"""Windows over a DataFrame, lazily, by the public DataFrame API alone: any Spark, Spark Connect, and what speaks it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ..arguments import Calls, Clock, Names, Seconds, as_names, clock_measure, plan_of_call
from ..errors import ConfigError, PartitionWarning, install_extra
from ..language.options import AtEnd, Closed, Emit, Empty
from ..language.spec import WindowSpec
from ..planning.plan import Plan
from ..planning.result_stream import stream_of_columns
from ..planning.row_order import OrderBy
from ..planning.validation import check_marks
from ..streaming.row_rejects import Rejected, check_rejected, with_rejected
from ..support.suggest import did_you_mean
from .layout import Layout, layout_of
from .partition_scan import ScanPartition, task_function
from .partitions import partition
from .places import columns_of
from .preparation import prepare, with_clock
from .schemas import arrow_schema, as_spark_has, spark_schema
from .state_frames import StateFrame, form_of_call, in_known_types, taken_apart, union_schema, with_state
from .state_scan import with_form


def windows(
    df: DataFrame,
    window: str | WindowSpec,
    *,
    key: Names = (),
    order_by: Names = (),
    arrival: str | None = None,
    aggregates: Calls | None = None,
    at_end: AtEnd | None = None,
    empty: Empty = "skip",
    closed: Closed = "left",
    origin: Seconds | None = None,
    marks: str | None = None,
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
    rejected: Rejected = "error",
    state: StateFrame | None = None,
    plan: bool = False,
) -> Any:
    """Apply a window to the rows of a DataFrame; return a DataFrame with one row per pane.

    A DataFrame has no order of arrival. Its rows are in the order of the columns ``order_by``, then of the column
    ``arrival``, if it is given; rows that tie in these are put in order by the values of all columns that the window
    looks at. So equal rows give equal bits, in whatever partitions they were.

    A result of `windows` is a stream again (semantics section 10): its rows are in the order in which they came out,
    ``order_by`` is optional, and ``punct()`` sees its marks.

    ``arrival``: an integer column, written as ``_pos``; without it ``_pos`` counts the rows of a key.
    ``marks``: for ``punct()``, a boolean column, with a mark after each true row.
    ``state``: go on from the state of the call before, ``"new"`` for the first, and return `WindowsAndState`, which is
        ``(result, state)``; a DataFrame, one row a key and part (docs/dataframes.md#state).
    ``plan``: return what would happen, a value that prints, instead of a DataFrame.

    Nothing runs before the result is used. Keys are apart, and partitions run side by side, where the window lets them;
    where it does not, a `PartitionWarning` says so. Other options and errors are those of `wincli.aggregate`; errors of
    rows end the Spark job, and `wincli.unwrap_errors` and `wincli.find_error` find them in what Spark raises.
    """
    df = in_known_types(df, state)
    schema = arrow_schema(df.schema)
    check_rejected(rejected)
    _check_arrival(schema, arrival)
    bound = plan_of_call(schema, locals() | {"order_by": _order(schema, as_names(order_by, "order_by"), arrival)})
    _check_plan(bound, marks)
    form = None if state is None else form_of_call(bound, state, clock, since)
    layout = layout_of(bound, arrival, marks)
    result = with_rejected(bound.schema, schema) if rejected == "column" else bound.schema
    if plan:
        return layout
    _check_pandas()
    _warn_of_one_partition(bound, layout)
    now, then = (clock_measure(bound, instant) for instant in (clock, since))
    new, moved, bound = prepare(df, schema, bound, layout, rejected)
    rows, registers = (new, None) if form is None else with_state(new, moved, state, bound, form, layout.by_key, then)
    columns = columns_of(moved.names)
    if layout.clock:
        rows, moved = with_clock(rows, new, bound, moved)
    shown = schema if rejected == "column" else None
    task = ScanPartition(bound, moved, as_spark_has(result), rejected, layout, arrival, marks, now, then, shown)
    has_state = form is not None and not (layout.by_key and isinstance(state, str))
    rows = partition(rows, columns, layout, moved, has_state)
    if form is None:
        return rows.mapInArrow(task_function(task), spark_schema(result))
    both = union_schema(result, form)
    rows = rows.mapInArrow(task_function(with_form(task, form, as_spark_has(both))), spark_schema(both))
    return taken_apart(rows, result, bound.key, registers if layout.by_key else None)


def windowed(window: str | WindowSpec, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """Return `windows` with its options, for ``df.transform(windowed("delta(ts, 60)", key="user"))``."""
    return functools.partial(windows, window=window, **options)


def _check_pandas() -> None:
    """Raise `ConfigError` where there is no pandas, which PySpark asks for before it takes a function over batches."""
    try:
        import_module("pandas")
    except ModuleNotFoundError as error:
        raise ConfigError("wincli.windows needs pandas, which is not installed", install_extra("dataframes")) from error


def _check_arrival(schema: pa.Schema, arrival: str | None) -> None:
    if arrival is None:
        return
    if arrival not in schema.names:
        raise ConfigError(f"arrival: there is no column {arrival!r}", did_you_mean(arrival, schema.names))
    if not pa.types.is_integer(schema.field(arrival).type):
        raise ConfigError(f"arrival: column {arrival!r} is {schema.field(arrival).type}", "give an integer column")


def _check_plan(plan: Plan, marks: str | None) -> None:
    check_marks(plan.projection, marks)
    for name in plan.projection.virtual:
        raise ConfigError(f"a DataFrame has no {name}", "make such a column before, as with input_file_name()")


def _warn_of_one_partition(plan: Plan, layout: Layout) -> None:
    if plan.key and not layout.by_key:
        what = f"all rows go through one partition, since {layout.why}; wincli run scans such a window on all cores"
        warnings.warn(what, PartitionWarning, stacklevel=3)


def _order(schema: pa.Schema, names: tuple[str, ...], arrival: str | None) -> OrderBy:
    """Return the order as the library takes it. A result has an order of its own, and names of it are optional."""
    if stream_of_columns(schema) is None:
        return names or "arrival"
    if arrival is not None:
        raise ConfigError("arrival: the rows of a result are in the order in which they came out", "leave it out")
    return "arrival" if names == ("arrival",) and "arrival" not in schema.names else names or None
