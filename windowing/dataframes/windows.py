"""Windows over a DataFrame, lazily, by the public DataFrame API alone: any Spark, Spark Connect, and what speaks it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from ..arguments import Calls, Clock, Names, Seconds, as_names, clock_measure, plan_of_call
from ..columns.arrays import measure_type
from ..errors import ConfigError, PartitionWarning, did_you_mean, install_extra
from ..expressions.syntax import parse_expression
from ..language.options import AtEnd, Closed, Emit, Empty
from ..language.spec import WindowSpec
from ..planning.plan import Plan
from ..planning.result_schema import MARK, stream_of_columns
from ..planning.row_order import OrderBy
from ..planning.validation import check_marks
from ..rows.projection import Projection, RowExpressions, make_projection
from ..streaming.row_rejects import FAILED_BEFORE, Rejected, check_rejected, with_rejected
from .layout import Layout, by_place, columns_of, layout_of, place_names, select
from .partition_scan import CLOCK, SEEN, FindClock, Prepare, ScanPartition, task_function, with_form
from .state_frames import (
    StateFrame,
    arrow_schema,
    as_spark_has,
    form_of_call,
    in_known_types,
    partition,
    spark_schema,
    taken_apart,
    union_schema,
    with_state,
)

# What is computed of rows before they are moved: the columns that partitions or their order need, and the clock.


def prepare(
    df: DataFrame, schema: pa.Schema, plan: Plan, layout: Layout, rejected: Rejected
) -> tuple[DataFrame, pa.Schema, Plan]:
    """Return the rows that are moved, called by their places; their columns; and the plan of what is left to do."""
    names = tuple(dict.fromkeys([*layout.columns, *(schema.names if rejected == "column" else ())]))
    rows, columns = by_place(df, schema)
    if plan.reads_result and not plan.takes_marks:
        rows = rows.filter(functions.coalesce(columns[MARK], functions.lit("")) != "only")
    if layout.prepare:
        rows, plan = _computed(rows, columns, plan, schema, names, rejected)
        return rows, plan.projection.schema, plan
    return select(rows, columns, names), pa.schema([schema.field(name) for name in names]), plan


def with_clock(rows: DataFrame, new: DataFrame, plan: Plan, schema: pa.Schema) -> tuple[DataFrame, pa.Schema]:
    """Give each row the clock after the last of the new ones: a small aggregate that is read first."""
    kind = measure_type(plan.projection.schema.field(plan.clock).type)
    found = pa.schema([pa.field("clock", kind)])
    task = FindClock(plan, schema, found, "drop")
    clocks = new.mapInArrow(task_function(task), spark_schema(found))
    clock = clocks.agg(functions.max("clock").alias("clock"))
    return rows.crossJoin(functions.broadcast(clock)), schema.append(pa.field(CLOCK, kind))


def _computed(
    rows: DataFrame,
    columns: Mapping[str, Column],
    plan: Plan,
    schema: pa.Schema,
    names: tuple[str, ...],
    rejected: Rejected,
) -> tuple[DataFrame, Plan]:
    """Compute columns and leave out rows before these are moved; return the plan of what is left to do."""
    read = plan.projection.needs(names)
    raw = pa.schema([schema.field(name) for name in read])
    ready = pa.schema([plan.projection.schema.field(name) for name in names])
    if rejected == "column":
        ready = ready.append(pa.field(FAILED_BEFORE, pa.string()))
    left = Projection(ready, lags=plan.projection.lags)
    if plan.takes_marks:  # a row that is left out may have a mark
        condition = RowExpressions(where=parse_expression(f'"{SEEN}"'))
        seen = make_projection(left.schema.append(pa.field(SEEN, pa.bool_())), condition)
        left = replace(left, schema=seen.schema, where=seen.where)
    task = Prepare(plan, raw, as_spark_has(left.schema), rejected)
    places = zip(left.schema, place_names(len(left.schema)), strict=True)
    result = pa.schema([field.with_name(place) for field, place in places])
    rows = select(rows, columns, read).mapInArrow(task_function(task), spark_schema(result))
    return rows, replace(plan, projection=left)


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
    if stream_of_columns(schema) is None:
        return names or "arrival"
    if arrival is not None:
        raise ConfigError("arrival: the rows of a result are in the order in which they came out", "leave it out")
    return "arrival" if names == ("arrival",) and "arrival" not in schema.names else names or None
