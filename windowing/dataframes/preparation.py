"""What is computed of rows before they are moved: the columns that partitions or their order need, and the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from ..columns.numeric import measure_type
from ..expressions.syntax import parse_expression
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..projection.projection import Projection, RowExpressions, make_projection
from ..streaming.row_rejects import FAILED_BEFORE, Rejected
from .layout import Layout
from .partition_scan import CLOCK, SEEN, FindClock, Prepare, task_function
from .places import by_place, place_names, select
from .schemas import as_spark_has, spark_schema


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
        left = _seen_rows(left)
    task = Prepare(plan, raw, as_spark_has(left.schema), rejected)
    places = zip(left.schema, place_names(len(left.schema)), strict=True)
    result = pa.schema([field.with_name(place) for field, place in places])
    rows = select(rows, columns, read).mapInArrow(task_function(task), spark_schema(result))
    return rows, replace(plan, projection=left)


def _seen_rows(projection: Projection) -> Projection:
    """Return a projection with a column `SEEN`, of the rows where it is true."""
    condition = RowExpressions(where=parse_expression(f'"{SEEN}"'))
    seen = make_projection(projection.schema.append(pa.field(SEEN, pa.bool_())), condition)
    return replace(projection, schema=seen.schema, where=seen.where)
