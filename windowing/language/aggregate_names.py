"""The names of the built-in aggregates, where nothing heavy may be loaded for them, and what others call them."""

from __future__ import annotations

from typing import Final

AGGREGATES: Final = (
    "count", "count_distinct", "sum", "mean", "min", "max", "first", "last", "nth", "var", "stddev", "var_pop",
    "stddev_pop", "median", "quantile", "mode", "arg_min", "arg_max", "collect", "collect_distinct", "wavg", "product",
    "bool_and", "bool_or", "string_join", "range", "min_count", "max_count",
)  # fmt: skip

ALIASES: Final = {"avg": "mean", "average": "mean", "variance": "var", "stdev": "stddev"}
"""Names of other tools that are taken as well; the right ones are those that a result's columns are named by."""
