"""Windows over a DataFrame, lazily, by the public DataFrame API alone: any Spark, Spark Connect, and what speaks it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, functions

from ..arguments import Calls, Clock, Names, Seconds, as_names, clock_measure, plan_of_call
from ..columns.arrays import ClockValue
from ..columns.numeric import scale_of
from ..errors import ConfigError, PartitionWarning
from ..expressions.syntax import parse_expression
from ..language.options import AtEnd, Closed, Emit, Empty
from ..language.spec import WindowSpec
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..planning.result_stream import stream_of_columns
from ..planning.row_order import OrderBy
from ..planning.validation import check_marks
from ..projection.projection import Projection, RowExpressions, make_projection
from ..spark.task_errors import guarded
from ..state.one_table import NO_KEY, PART
from ..streaming.kept_state import StateForm, check_arguments, form_of
from ..streaming.row_rejects import FAILED_BEFORE, Rejected, check_rejected, with_rejected
from ..support.suggest import did_you_mean
from .columns import column as _column
from .layout import Layout, layout_of
from .partition_scan import CLOCK, SEEN, FindClock, Prepare, ScanPartition
from .places import by_place, columns_of, place_names, select
from .schemas import arrow_schema, spark_schema
from .sort_code import bucket_of, first_code, sort_code, sort_keys
from .state_frames import StateFrame, all_registers, before_rows, beside, check_state, taken_apart, union_schema
from .state_scan import PART_IN, FirstRegisters, with_form


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
    schema = arrow_schema(df.schema)
    check_rejected(rejected)
    _check_arrival(schema, arrival)
    bound = plan_of_call(schema, locals() | {"order_by": _order(schema, as_names(order_by, "order_by"), arrival)})
    check_marks(bound.projection, marks)
    for name in bound.projection.virtual:
        raise ConfigError(f"a DataFrame has no {name}", "make such a column before, as with input_file_name()")
    form = None if state is None else _form(bound, state, clock, since)
    layout = layout_of(bound, arrival, marks)
    result = with_rejected(bound.schema, schema) if rejected == "column" else bound.schema
    if plan:
        return layout
    if bound.key and not layout.by_key:
        what = f"all rows go through one partition, since {layout.why}; wincli run scans such a window on all cores"
        warnings.warn(what, PartitionWarning, stacklevel=2)
    now, then = (clock_measure(bound, instant) for instant in (clock, since))
    shown = schema if rejected == "column" else None
    moved = tuple(dict.fromkeys([*layout.columns, *(schema.names if shown else ())]))
    rows, columns = by_place(df, schema)
    if bound.reads_result and not bound.takes_marks:
        rows = rows.filter(functions.coalesce(columns[MARK], functions.lit("")) != "only")
    if layout.prepare:
        rows, bound = _prepared(rows, columns, bound, schema, moved, rejected)
        schema = bound.projection.schema
    else:
        rows, schema = select(rows, columns, moved), pa.schema([schema.field(name) for name in moved])
    columns = columns_of(schema.names)
    new = rows
    if state is not None and form is not None:
        rows, registers = _with_state(rows, schema, state, bound, form, layout.by_key, then)
    if layout.clock:
        rows, schema = _with_clock(rows, new, bound, schema)
    task = ScanPartition(bound, schema, _as_spark_has(result), rejected, layout, arrival, marks, now, then, shown)
    has_state = form is not None and not (layout.by_key and isinstance(state, str))
    laid_out = _laid_out(rows, columns, layout, schema, has_state)
    if form is None:
        return laid_out.mapInArrow(_function(task), spark_schema(result))
    schema = union_schema(result, form)
    both = laid_out.mapInArrow(_function(with_form(task, form, _as_spark_has(schema))), spark_schema(schema))
    return taken_apart(both, result, bound.key, registers if layout.by_key else None)


def windowed(window: str | WindowSpec, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """Return `windows` with its options, for ``df.transform(windowed("delta(ts, 60)", key="user"))``."""
    return functools.partial(windows, window=window, **options)


def _check_arrival(schema: pa.Schema, arrival: str | None) -> None:
    if arrival is None:
        return
    if arrival not in schema.names:
        raise ConfigError(f"arrival: there is no column {arrival!r}", did_you_mean(arrival, schema.names))
    if not pa.types.is_integer(schema.field(arrival).type):
        raise ConfigError(f"arrival: column {arrival!r} is {schema.field(arrival).type}", "give an integer column")


def _order(schema: pa.Schema, names: tuple[str, ...], arrival: str | None) -> OrderBy:
    """Return the order as the library takes it. A result has an order of its own, and names of it are optional."""
    if stream_of_columns(schema) is None:
        return names or "arrival"
    if arrival is not None:
        raise ConfigError("arrival: the rows of a result are in the order in which they came out", "leave it out")
    return "arrival" if names == ("arrival",) and "arrival" not in schema.names else names or None


def _prepared(
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
        left = _seen_rows(left)
    task = Prepare(plan, raw, _as_spark_has(left.schema), rejected)
    places = zip(left.schema, place_names(len(left.schema)), strict=True)
    result = pa.schema([field.with_name(place) for field, place in places])
    rows = select(rows, columns, read).mapInArrow(_function(task), spark_schema(result))
    return rows, replace(plan, projection=left)


def _seen_rows(projection: Projection) -> Projection:
    """Return a projection with a column `SEEN`, of the rows where it is true."""
    condition = RowExpressions(where=parse_expression(f'"{SEEN}"'))
    seen = make_projection(projection.schema.append(pa.field(SEEN, pa.bool_())), condition)
    return replace(projection, schema=seen.schema, where=seen.where)


def _with_clock(rows: DataFrame, new: DataFrame, plan: Plan, schema: pa.Schema) -> tuple[DataFrame, pa.Schema]:
    """Give each row the clock after the last of the new ones: a small aggregate that is read first."""
    is_float = scale_of(plan.projection.schema.field(plan.clock).type).per_second is None
    kind = pa.float64() if is_float else pa.int64()
    found = pa.schema([pa.field("clock", kind)])
    task = FindClock(plan, schema, found, "drop")
    clocks = new.mapInArrow(_function(task), spark_schema(found))
    clock = clocks.agg(functions.max("clock").alias("clock"))
    return rows.crossJoin(functions.broadcast(clock)), schema.append(pa.field(CLOCK, kind))


def _form(plan: Plan, state: StateFrame, clock: Clock | None, since: Clock | None) -> StateForm:
    """Return the form of the states of a window. Raises `ConfigError` where the prior state is of another one."""
    check_arguments(plan, state, clock, since)
    form = form_of(plan)
    if isinstance(state, DataFrame):
        check_state(state, form)
    return form


def _with_state(
    rows: DataFrame,
    schema: pa.Schema,
    state: StateFrame,
    plan: Plan,
    form: StateForm,
    by_key: bool,
    since: ClockValue | None,
) -> tuple[DataFrame, DataFrame]:
    """Put the rows of a state beside new ones; also return the registers that windows begin from, one row."""
    begun = rows.sparkSession.range(1) if isinstance(state, str) else all_registers(state)
    spark = spark_schema(form.schema)
    registers = begun.mapInArrow(_function(FirstRegisters(form, arrow_schema(spark), since)), spark)
    if isinstance(state, str):
        return (rows if by_key else beside(rows, schema.names, registers, plan.key)), registers
    if not _keeps_sorts(rows):  # nor does Sail keep the columns of a union in a union, unless there is a move between
        state = state.repartition(*map(_column, plan.key)) if plan.key else state.repartition(1)
    if not by_key:
        return beside(rows, schema.names, state, plan.key), registers
    held = beside(rows, schema.names, state.where(_column(PART) != NO_KEY), plan.key)
    return held.crossJoin(functions.broadcast(before_rows(registers))), registers


def _laid_out(
    rows: DataFrame, columns: Mapping[str, Column], layout: Layout, schema: pa.Schema, has_state: bool
) -> DataFrame:
    """Move rows to their partitions, and sort these, rows of a state first; with their codes, if keys are apart."""
    by = [each for name in layout.order for each in sort_keys(columns[name], schema.field(name).type)[:1]]
    by += [each for name in layout.ties for each in sort_keys(columns[name], schema.field(name).type)]
    key = [columns[name] for name in layout.key]
    code = functions.col("code")
    if layout.by_key:
        order = layout.order[0]
        number = sort_code(key, columns[order], schema.field(order).type)
        if has_state:
            number = functions.when(functions.col(PART_IN).isNull(), number).otherwise(first_code(key))
        rows = rows.withColumn("code", number)
        by = [code] if layout.coarse else [code, *by]
    elif has_state:
        by = [functions.col(PART_IN).asc_nulls_last(), *by]
    if not _keeps_sorts(rows):
        return _numbered(rows, bucket_of(code) if layout.by_key else functions.lit(1), by)
    moved = rows.repartition(*key) if layout.by_key else rows.repartition(1)
    return moved.sortWithinPartitions(*by)


def _keeps_sorts(rows: DataFrame) -> bool:
    """Whether partitions that are sorted reach ``mapInArrow`` as they are: Spark does so, and has a master.

    Sail leaves out a sort that no other operator asks for. It has no master, and neither has what hides its settings.
    """
    return rows.sparkSession.conf.get("spark.master", None) is not None


def _numbered(rows: DataFrame, partition: Column, by: list[Column]) -> DataFrame:
    """Move and sort rows by numbering them in each partition: whoever numbers them must sort them."""
    frame = Window.partitionBy(partition).orderBy(*by).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    number = functions.row_number().over(frame)
    return rows.withColumn("number", number)


def _function(task: Callable[..., Any]) -> Any:
    """Return a task as the function that ``mapInArrow`` asks for: it looks at its signature."""
    sending_errors = guarded(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sending_errors(batches)

    return run


def _as_spark_has(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Spark reads it back from tasks: its own types, in Arrow."""
    return arrow_schema(spark_schema(schema))
