"""The names of the built-in aggregates, made by ``scripts/aggregate_names``: the table takes long to load."""

from typing import Final

AGGREGATES: Final = (
    "count", "count_distinct", "sum", "mean", "min", "max", "first", "last", "nth", "var", "stddev", "var_pop",
    "stddev_pop", "skew", "kurtosis", "skew_pop", "kurtosis_pop", "median", "quantile", "mad", "rank", "mode",
    "arg_min", "arg_max", "collect", "collect_distinct", "wavg", "product", "integral", "twa", "slope", "locf",
    "bool_and", "bool_or", "string_join", "range", "min_count", "max_count", "max_overlap", "approx_count_distinct",
    "approx_quantile", "hll_sketch", "kll_sketch",
)  # fmt: skip
