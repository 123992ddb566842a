"""Columns by their place: what they are called while Spark moves rows, so that users may call them what they like.

PySpark passes no column to tasks whose name has a dot or a backtick, and names of users may be those of the columns
that are added. Tasks get the columns in their order, and know the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions


def by_place(df: DataFrame, schema: pa.Schema) -> tuple[DataFrame, dict[str, Column]]:
    """Return a DataFrame with its columns called by their places, and the columns by their names in ``schema``."""
    return df.toDF(*place_names(len(schema))), columns_of(schema.names)


def columns_of(names: Sequence[str]) -> dict[str, Column]:
    """Return the columns of a DataFrame that is called by places, by their names."""
    return {name: functions.col(place) for name, place in zip(names, place_names(len(names)), strict=True)}


def select(rows: DataFrame, columns: Mapping[str, Column], names: Sequence[str]) -> DataFrame:
    """Return some columns, called by the places that they then have."""
    return rows.select(
        *(columns[name].alias(place) for name, place in zip(names, place_names(len(names)), strict=True))
    )


def place_names(count: int) -> list[str]:
    """Return what columns are called."""
    return [f"c{place}" for place in range(count)]


def column(name: str) -> Column:
    """Return a column by its whole name, with dots and spaces as they are."""
    return functions.col(f"`{name.replace('`', '``')}`")
