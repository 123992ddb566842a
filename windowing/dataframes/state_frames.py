"""DataFrames of states: a prior state beside new rows, and the state that windows leave, by the public API alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window, functions
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from ..aggregates.inputs import plain_type
from ..arguments import Clock
from ..columns.arrays import ClockValue
from ..errors import ConfigError
from ..planning.identity import have_common_type
from ..planning.plan import Plan
from ..state.one_table import NO_KEY, PART, REGISTERS, ROWS, STATE, check_columns
from ..streaming.kept_state import StateForm, check_arguments, form_of
from ..streaming.keyed_scan import PART_OF, STATE_OF
from ..support.column_types import common_type
from .layout import Layout, bucket_of, column, first_code, sort_code, sort_keys
from .partition_scan import BEFORE, FOUND, IN_STRUCT, PART_IN, STATE_IN, FirstRegisters, task_function

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
    if not keeps_sorts(rows):
        return _numbered(rows, bucket_of(code) if layout.by_key else functions.lit(1), by)
    moved = rows.repartition(*key) if layout.by_key else rows.repartition(1)
    return moved.sortWithinPartitions(*by)


def keeps_sorts(rows: DataFrame) -> bool:
    """Whether partitions that are sorted reach ``mapInArrow`` as they are: Spark does so, and has a master.

    Sail leaves out a sort that no other operator asks for. It has no master, and neither has what hides its settings.
    """
    return rows.sparkSession.conf.get("spark.master", None) is not None


def _numbered(rows: DataFrame, partition: Column, by: list[Column]) -> DataFrame:
    """Move and sort rows by numbering them in each partition: whoever numbers them must sort them."""
    frame = Window.partitionBy(partition).orderBy(*by).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    number = functions.row_number().over(frame)
    return rows.withColumn("number", number)


StateFrame: TypeAlias = DataFrame | Literal["new"]
"""A state that windows go on from: the DataFrame that the call before returned, or ``"new"`` for the first."""
_IN_BEFORE = ("rows", "clock", "position")


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
    known = {field.name: field.type for field in (*of_state, *(held if pa.types.is_struct(held) else ()))}
    wide = {name: common_type(known[name], own.field(name).type) for name in own.names if name in known}
    if clash := next((name for name, kind in wide.items() if kind is None), None):
        what = f"column {clash!r} is {known[clash]} in the state and {own.field(clash).type} in the rows"
        raise ConfigError(what, "cast it before, so that both are of one type")
    changed = [pa.field(name, kind) for name, kind in wide.items() if kind != own.field(name).type]
    types = {field.name: field.dataType for field in spark_schema(pa.schema(changed))}
    if not types:
        return rows
    return rows.select(
        *(column(name).cast(types[name]).alias(name) if name in types else column(name) for name in own.names)
    )


def all_registers(state: DataFrame) -> DataFrame:
    """Return one row with all registers of a state, in a list."""
    return state.where(column(PART) == NO_KEY).agg(functions.collect_list(column(REGISTERS)).alias(FOUND))


def before_rows(registers: DataFrame) -> DataFrame:
    """Return what tasks need of registers, as one column of one row."""
    fields = registers.schema[REGISTERS].dataType
    assert isinstance(fields, StructType)
    told = [column(REGISTERS).getField(name).alias(name) for name in _IN_BEFORE if name in fields.names]
    return registers.select(functions.struct(*told).alias(BEFORE))


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


def form_of_call(plan: Plan, state: StateFrame, clock: Clock | None, since: Clock | None) -> StateForm:
    """Return the form of the states of a window. Raises `ConfigError` where the prior state is of another one."""
    check_arguments(plan, state, clock, since)
    form = form_of(plan)
    if isinstance(state, DataFrame):
        check_state(state, form)
    return form


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
    begun = rows.sparkSession.range(1) if isinstance(state, str) else all_registers(state)
    spark = spark_schema(form.schema)
    registers = begun.mapInArrow(task_function(FirstRegisters(form, arrow_schema(spark), since)), spark)
    if isinstance(state, str):
        return (rows if by_key else beside(rows, schema.names, registers, plan.key)), registers
    if not keeps_sorts(rows):  # nor does Sail keep the columns of a union in a union, unless there is a move between
        state = state.repartition(*map(column, plan.key)) if plan.key else state.repartition(1)
    if not by_key:
        return beside(rows, schema.names, state, plan.key), registers
    held = beside(rows, schema.names, state.where(column(PART) != NO_KEY), plan.key)
    return held.crossJoin(functions.broadcast(before_rows(registers))), registers


def _null(dtype: DataType) -> Column:
    return functions.lit(None).cast(dtype)
