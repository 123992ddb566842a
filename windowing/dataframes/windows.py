"""Windows over a DataFrame, lazily, by the public DataFrame API alone: any Spark, Spark Connect, and what speaks it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import Any, Literal, TypeAlias, Unpack

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window, functions
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from ..aggregates.inputs import plain_type
from ..arguments import Names, WindowArguments, as_names, clock_measure, joined_rows, plan_of_call, refuse_others, takes
from ..columns.arrays import ClockValue, measure_type
from ..errors import ConfigError, PartitionWarning, did_you_mean, install_extra
from ..expressions.syntax import parse_expression
from ..language.spec import WindowSpec
from ..planning.identity import have_common_type
from ..planning.plan import Plan
from ..planning.result_schema import MARK, stream_of_columns
from ..planning.row_order import OrderBy
from ..planning.sides import with_side_names
from ..planning.validation import check_marks
from ..rows.projection import Projection, RowExpressions, make_projection
from ..state.one_table import NO_KEY, PART, REGISTERS, ROWS, STATE, check_columns
from ..streaming.kept_state import StateForm, check_arguments, form_of, joined
from ..streaming.keyed_scan import PART_OF, STATE_OF
from ..streaming.row_rejects import FAILED_BEFORE, Rejected, check_rejected, with_rejected
from .layout import (
    Layout,
    bucket_of,
    by_place,
    column,
    columns_of,
    first_code,
    layout_of,
    place_names,
    select,
    sort_code,
    sort_keys,
)
from .partition_scan import (
    BEFORE,
    CLOCK,
    FOUND,
    IN_STRUCT,
    PART_IN,
    SEEN,
    STATE_IN,
    FindClock,
    FirstRegisters,
    Prepare,
    ScanPartition,
    task_function,
)
from .sides import merged_frames

# Types of Spark and of Arrow, each as the other: what a DataFrame holds, and what tasks see of it.


_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""What makes instants have UTC: PySpark 4.0 gives it to all."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the plain Arrow types of the columns of a DataFrame; instants are in UTC.

    Raises `ConfigError` for types that Arrow does not have, and where two columns have one name.
    """
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the DataFrame has two columns {name!r}", "rename one of them, as with toDF")
    return pa.schema([pa.field(field.name, _arrow_type(field)) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark types of a result. Raises `ConfigError` for a type that Spark does not have."""
    return StructType([StructField(field.name, _spark_type(field)) for field in schema])


def as_spark_has(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Spark reads it back from tasks: its own types, in Arrow."""
    return arrow_schema(spark_schema(schema))


def _arrow_type(field: StructField) -> pa.DataType:
    try:
        if _has_variant(field.dataType):
            raise TypeError(field.dataType)
        return plain_type(to_arrow_type(field.dataType, **_UTC))
    except (PySparkException, TypeError):
        text = f"column {field.name!r} is {field.dataType.simpleString()}, which Arrow does not have"
        raise ConfigError(text, "drop or cast it before") from None


def _has_variant(dtype: DataType) -> bool:
    match dtype:
        case VariantType():
            return True
        case ArrayType():
            return _has_variant(dtype.elementType)
        case MapType():
            return _has_variant(dtype.keyType) or _has_variant(dtype.valueType)
        case StructType():
            return any(_has_variant(field.dataType) for field in dtype)
    return False


def _spark_type(field: pa.Field) -> DataType:
    try:
        return from_arrow_type(field.type, prefer_timestamp_ntz=True)
    except (PySparkException, TypeError):
        text = f"column {field.name!r} of the result is {field.type}, which Spark does not have"
        raise ConfigError(text, "cast its argument with an expression") from None


# Rows in their partitions and in the order in which tasks read them: by buckets of keys, or all in one partition.


def partition(
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
    if not keeps_sorts(rows):  # whoever numbers the rows of each partition must sort them
        bucket = bucket_of(code) if layout.by_key else functions.lit(1)
        frame = Window.partitionBy(bucket).orderBy(*by).rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return rows.withColumn("number", functions.row_number().over(frame))
    moved = rows.repartition(*key) if layout.by_key else rows.repartition(1)
    return moved.sortWithinPartitions(*by)


def keeps_sorts(rows: DataFrame) -> bool:
    """Whether partitions that are sorted reach ``mapInArrow`` as they are: Spark does so, and has a master.

    Sail leaves out a sort that no other operator asks for. It has no master, and neither has what hides its settings.
    """
    return rows.sparkSession.conf.get("spark.master", None) is not None


# DataFrames of states: a prior state beside new rows, and the state that windows leave, by the public API alone.


StateFrame: TypeAlias = DataFrame | Literal["new"]
"""A state that windows go on from: the DataFrame that the call before returned, or ``"new"`` for the first."""
_IN_BEFORE = ("rows", "clock", "position")
"""What tasks need of registers."""


@dataclass(frozen=True, slots=True)
class WindowsAndState:
    """The windows of a DataFrame, and the state that they leave: ``result, state = windows(.., state=prior)``.

    ``result``: one row per pane.
    ``state``: one row a key and part (docs/state.md#as-one-table).
    ``both``: the rows of both. ``result`` and ``state`` are taken from it, and scan apart unless it is persisted.
    """

    result: DataFrame
    state: DataFrame
    both: DataFrame

    def __iter__(self) -> Iterator[DataFrame]:
        yield from (self.result, self.state)


def check_state(state: DataFrame, form: StateForm) -> None:
    """Raise `ConfigError` where the columns of a DataFrame are not those of the states of a window."""
    schema = arrow_schema(state.schema)
    check_columns(schema.names)
    found = dict(_leaves(pa.struct(list(schema)), ""))
    for path, dtype in _leaves(pa.struct(list(form.schema)), ""):
        of_job = path.split(".")[0] not in (STATE, REGISTERS)
        if path not in found and of_job:
            raise ConfigError(f"the state is of another job: it does not hold {path}", _BEGIN)
        if path in found and not have_common_type(str(found[path]), str(dtype)):
            name = path.rpartition(".")[2]
            raise ConfigError(f"column {name!r} is {found[path]} in the state and {dtype} in the rows", "cast it there")


_BEGIN = 'give the job that made it, or begin with state="new"'


def _leaves(dtype: pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_list(dtype) and pa.types.is_struct(dtype.value_type):
        dtype = dtype.value_type
    if not pa.types.is_struct(dtype):
        yield path, dtype
        return
    for field in dtype:
        yield from _leaves(field.type, f"{path}.{field.name}" if path else field.name)


def in_known_types(rows: DataFrame, state: StateFrame | None) -> DataFrame:
    """Return rows whose columns have the types that they have in common with those that a state holds.

    Raises `ConfigError` where there is no such type.
    """
    if not isinstance(state, DataFrame):
        return rows
    own, of_state = arrow_schema(rows.schema), arrow_schema(state.schema)
    check_columns(of_state.names)
    held = of_state.field(ROWS).type.value_type
    known = {field.name: field for field in (*of_state, *(held if pa.types.is_struct(held) else ()))}
    wide = joined(own, pa.schema([field for name, field in known.items() if name in own.names]))
    changed = [field for field in wide if field.type != own.field(field.name).type]
    types = {field.name: field.dataType for field in spark_schema(pa.schema(changed))}
    if not types:
        return rows
    return rows.select(
        *(column(name).cast(types[name]).alias(name) if name in types else column(name) for name in own.names)
    )


def beside(rows: DataFrame, names: Sequence[str], state: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return new rows and those of a state, which have `PART_IN`, `STATE_IN` and the columns of the key.

    ``names``: of the columns of ``rows``, which are called by their places.
    """
    held = functions.struct(*(column(name) for name in IN_STRUCT))
    own = {field.name: column(name) for field, name in zip(rows.schema, names, strict=True) if name in key}
    told = state.select(
        *(own.get(field.name, _null(field.dataType)).alias(field.name) for field in rows.schema),
        column(PART).alias(PART_IN),
        held.alias(STATE_IN),
    )
    empty = [_null(told.schema[name].dataType).alias(name) for name in (PART_IN, STATE_IN)]
    return rows.select("*", *empty).unionAll(told)


def union_schema(result: pa.Schema, form: StateForm) -> pa.Schema:
    """Return the columns of result rows and of rows of the state together."""
    held = pa.struct([form.schema.field(name) for name in IN_STRUCT])
    fields = [field.with_nullable(True) for field in result]
    return pa.schema([*fields, pa.field(PART_OF, pa.int64()), pa.field(STATE_OF, held)])


def taken_apart(both: DataFrame, result: pa.Schema, key: tuple[str, ...], first: DataFrame | None) -> WindowsAndState:
    """Return the windows and the state in rows of `union_schema`. ``first``: registers that the state has besides."""
    is_result = column(PART_OF).isNull()
    windows = both.where(is_result).select(*(column(name) for name in result.names))
    fields = [column(STATE_OF).getField(name).alias(name) for name in IN_STRUCT]
    state = both.where(~is_result).select(*(column(name) for name in key), column(PART_OF).alias(PART), *fields)
    return WindowsAndState(windows, state if first is None else state.unionAll(first), both)


def with_state(
    rows: DataFrame,
    schema: pa.Schema,
    state: StateFrame,
    plan: Plan,
    form: StateForm,
    by_key: bool,
    since: ClockValue | None,
) -> tuple[DataFrame, DataFrame]:
    """Put the rows of a state beside new ones; also return the registers that windows begin from, one row."""
    if isinstance(state, str):
        begun = rows.sparkSession.range(1)
    else:  # one row with all registers of the state, in a list
        begun = state.where(column(PART) == NO_KEY).agg(functions.collect_list(column(REGISTERS)).alias(FOUND))
    spark = spark_schema(form.schema)
    registers = begun.mapInArrow(task_function(FirstRegisters(form, arrow_schema(spark), since)), spark)
    if isinstance(state, str):
        return (rows if by_key else beside(rows, schema.names, registers, plan.key)), registers
    if not keeps_sorts(rows):  # nor does Sail keep the columns of a union in a union, unless there is a move between
        state = state.repartition(*map(column, plan.key)) if plan.key else state.repartition(1)
    if not by_key:
        return beside(rows, schema.names, state, plan.key), registers
    held = beside(rows, schema.names, state.where(column(PART) != NO_KEY), plan.key)
    fields = registers.schema[REGISTERS].dataType
    assert isinstance(fields, StructType)
    told = [column(REGISTERS).getField(name).alias(name) for name in _IN_BEFORE if name in fields.names]
    before = registers.select(functions.struct(*told).alias(BEFORE))
    return held.crossJoin(functions.broadcast(before)), registers


def _null(dtype: DataType) -> Column:
    return functions.lit(None).cast(dtype)


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


@takes(WindowArguments)
def windows(
    df: DataFrame,
    window: str | WindowSpec,
    *,
    order_by: Names = (),
    arrival: str | None = None,
    marks: str | None = None,
    rejected: Rejected = "error",
    state: StateFrame | None = None,
    plan: bool = False,
    **options: Unpack[WindowArguments],
) -> Any:
    """Apply a window to the rows of a DataFrame; return a DataFrame with one row per pane.

    A DataFrame has no order of arrival. Its rows are in the order of the columns ``order_by``, then of the column
    ``arrival``, if it is given; rows that tie in these are put in order by the values of all columns that the window
    looks at. So equal rows give equal bits, in whatever partitions they were.

    A result of `windows` is a stream again (semantics section 10): its rows are in the order in which they came out,
    ``order_by`` is optional, and ``punct()`` sees its marks.

    ``arrival``: an integer column, written as ``_pos``; without it ``_pos`` counts the rows of a key.
    ``join``: a DataFrame to join, by the text of --join without a path: ``{"NAME on KEY left": df}``; or a text alone,
        for the rows themselves. Rows that tie are in the order of their sides, then of their values.
    ``marks``: for ``punct()``, a boolean column, with a mark after each true row.
    ``state``: go on from the state of the call before, ``"new"`` for the first, and return `WindowsAndState`, which is
        ``(result, state)``; a DataFrame, one row a key and part (docs/python.md#state-of-dataframes).
    ``plan``: return what would happen, a value that prints, instead of a DataFrame.

    Nothing runs before the result is used. Keys are apart, and partitions run side by side, where the window lets them;
    where it does not, a `PartitionWarning` says so. Errors are those of `wincli.aggregate`; errors of
    rows end the Spark job, and `wincli.unwrap_errors` and `wincli.find_error` find them in what Spark raises.
    """
    refuse_others(windows, options)
    given: dict[str, Any] = {**options, "window": window, "state": state}
    if isinstance(options.get("join"), Mapping):
        if arrival is not None or state is not None:
            what = f"join: {'arrival' if arrival is not None else 'state'} does not go with a DataFrame of the right"
            raise ConfigError(what, "leave one of both out; wincli run goes on from a state with joins, too")
        schemas = arrow_schema(df.schema), arrow_schema(joined_rows(given)[1].schema)
        given["order_by"] = as_names(order_by, "order_by") or None
        df, decided = merged_frames(df, schemas, spark_schema, given)
        given, order_by = {**given, **decided}, decided["order_by"]
    df = in_known_types(df, state)
    schema = arrow_schema(df.schema)
    check_rejected(rejected)
    order = _order(schema, as_names(order_by, "order_by"), arrival)
    bound = plan_of_call(schema, {**given, "order_by": order})
    check_marks(bound.projection, marks)
    for name in bound.projection.virtual:
        raise ConfigError(f"a DataFrame has no {name}", "make such a column before, as with input_file_name()")
    clock, since = options.get("clock"), options.get("since")
    form = None
    if state is not None:
        check_arguments(bound, state, clock, since)
        form = form_of(bound)
        if isinstance(state, DataFrame):
            check_state(state, form)
    layout = layout_of(bound, arrival, marks, state is not None)
    result = with_rejected(bound, schema) if rejected == "column" else bound.schema
    if plan:
        return layout
    try:
        import_module("pandas")
    except ModuleNotFoundError as error:
        raise ConfigError("wincli.windows needs pandas, which is not installed", install_extra("dataframes")) from error
    if bound.key and not layout.by_key:
        what = f"all rows go through one partition, since {layout.why}; wincli run scans such a window on all cores"
        warnings.warn(what, PartitionWarning, stacklevel=2)
    now, then = (clock_measure(bound, instant) for instant in (clock, since))
    shown = with_side_names(schema, bound.options.join) if rejected == "column" else None
    new, moved, bound = prepare(df, schema, bound, layout, rejected)
    rows, registers = (new, None) if form is None else with_state(new, moved, state, bound, form, layout.by_key, then)
    columns = columns_of(moved.names)
    if layout.clock:
        rows, moved = with_clock(rows, new, bound, moved)
    task = ScanPartition(bound, moved, as_spark_has(result), rejected, layout, arrival, marks, now, then, shown)
    has_state = form is not None and not (layout.by_key and isinstance(state, str))
    rows = partition(rows, columns, layout, moved, has_state)
    if form is None:
        return rows.mapInArrow(task_function(task), spark_schema(result))
    both = union_schema(result, form)
    rows = rows.mapInArrow(task_function(replace(task, form=form, result=as_spark_has(both))), spark_schema(both))
    return taken_apart(rows, result, bound.key, registers if layout.by_key else None)


def windowed(window: str | WindowSpec, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """Return `windows` with its options, for ``df.transform(windowed("delta(ts, 60)", key="user"))``."""
    return functools.partial(windows, window=window, **options)


def _order(schema: pa.Schema, names: tuple[str, ...], arrival: str | None) -> OrderBy:
    if arrival is not None and arrival not in schema.names:
        raise ConfigError(f"arrival: there is no column {arrival!r}", did_you_mean(arrival, schema.names))
    if arrival is not None and not pa.types.is_integer(schema.field(arrival).type):
        raise ConfigError(f"arrival: column {arrival!r} is {schema.field(arrival).type}", "give an integer column")
    if stream_of_columns(schema) is None:
        return names or "arrival"
    if arrival is not None:
        raise ConfigError("arrival: the rows of a result are in the order in which they came out", "leave it out")
    return "arrival" if names == ("arrival",) and "arrival" not in schema.names else names or None
