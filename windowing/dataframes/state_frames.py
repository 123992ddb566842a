"""DataFrames of states: a prior state beside new rows, and the state that windows leave, by the public API alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, StructType

from ..arguments import Clock
from ..columns.arrays import ClockValue
from ..errors import ConfigError
from ..planning.identity import have_common_type
from ..planning.plan import Plan
from ..state.one_table import NO_KEY, PART, REGISTERS, ROWS, STATE
from ..state.read_table import check_columns
from ..streaming.kept_state import StateForm, check_arguments, form_of
from ..streaming.restoring_scan import PART_OF, STATE_OF
from ..support.column_types import common_type
from .partition_scan import task_function
from .partitions import keeps_sorts
from .places import column
from .schemas import arrow_schema, spark_schema
from .state_scan import BEFORE, FOUND, IN_STRUCT, PART_IN, STATE_IN, FirstRegisters

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
    """Yield the paths and types of the columns within a struct, through lists of structs."""
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
