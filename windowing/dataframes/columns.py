"""Columns of DataFrames by their names."""

from __future__ import annotations

from pyspark.sql import Column, functions


def column(name: str) -> Column:
    """Return a column by its whole name, with dots and spaces as they are."""
    return functions.col(f"`{name.replace('`', '``')}`")
