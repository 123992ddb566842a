"""Rows in their partitions and in the order in which tasks read them: by buckets of keys, or all in one partition."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, functions

from .layout import Layout
from .sort_code import bucket_of, first_code, sort_code, sort_keys
from .state_scan import PART_IN


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
