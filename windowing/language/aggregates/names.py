"""The names of the built-in aggregates, and their names in other tools, in a module that imports nothing heavy."""

from __future__ import annotations

from typing import Final

AGGREGATES: Final = (
    "count", "count_distinct", "sum", "mean", "min", "max", "first", "last", "nth", "var", "stddev", "var_pop",
    "stddev_pop", "median", "quantile", "mode", "arg_min", "arg_max", "collect", "collect_distinct", "wavg", "product",
    "bool_and", "bool_or", "string_join", "range", "min_count", "max_count", "approx_count_distinct",
    "approx_quantile", "hll_sketch", "kll_sketch",
)  # fmt: skip

ALIASES: Final = {"avg": "mean", "average": "mean", "variance": "var", "stdev": "stddev"}
"""Names of other tools that the language accepts, with the built-in names, which name the columns of a result."""
