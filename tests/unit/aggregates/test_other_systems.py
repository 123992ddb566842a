"""Skewness, kurtosis, deviations, ranks and quantiles as DuckDB, pandas and Polars have them.

``tests/cases/statistics.json`` holds what they publish, or gave when run: the values, the rows of a window (null: one
over all values), and the answers of full windows. DuckDB and Polars are asked as well.
"""

from __future__ import annotations

import json
import math
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import CASES
from support.strategies import examples
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.language.parser import parse_aggregate
from wincli.windowing.rows.membership import Ranges

ALL = json.loads((CASES / "statistics.json").read_text(encoding="utf-8"))
VALUES = st.lists(st.none() | st.integers(-50, 50).map(lambda n: n / 4), min_size=1, max_size=25)


def answers(call: str, values: list[Any], window: int | None) -> list[Any]:
    """The aggregate of each full window of so many rows; of all rows for None."""
    rows = pa.RecordBatch.from_pydict({"x": pa.array(values, pa.float64())})
    hi = np.arange(window or len(values), len(values) + 1)
    panes = Ranges(hi - (window or len(values)), hi, np.zeros(len(hi), np.int64), False)
    return list(compute(bind(parse_aggregate(call), rows.schema), rows, panes).to_pylist())


def alike(found: Any, wanted: Any, tolerance: float) -> bool:
    """Equal within a tolerance; NaN and infinities of others, where all values are equal, are null here."""
    if wanted is None or not math.isfinite(wanted):
        return found is None
    return found is not None and math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case["id"])
def test_what_others_publish(case: dict[str, Any]) -> None:
    found = answers(case["call"], case["values"], case["window"])
    assert len(found) == len(case["expect"])
    assert all(alike(*pair, case["how"]) for pair in zip(found, case["expect"], strict=True)), found


@pytest.mark.parametrize(
    ("call", "sql"),
    [
        ("skewness(x)", "skewness(x)"),
        ("kurtosis(x)", "kurtosis(x)"),
        ("kurtosis_pop(x)", "kurtosis_pop(x)"),
        ("mad(x)", "mad(x)"),
        ("quantile(x, 0.3)", "quantile_cont(x, 0.3)"),
    ],
)
@examples(30, deadline=None)
@given(values=VALUES)
def test_duckdb(call: str, sql: str, values: list[float | None]) -> None:
    log = pa.table({"x": pa.array(values, pa.float64())})
    with duckdb.connect() as base:
        base.register("log", log)
        row = base.execute(f"select {sql} from log").fetchone()
    assert row is not None
    assert alike(answers(call, values, None)[0], row[0], 1e-6)


@pytest.mark.parametrize(
    ("call", "ask"),
    [
        ("skew_pop(x)", lambda log: log.rolling_skew(5)),
        ("skew(x)", lambda log: log.rolling_skew(5, bias=False)),
        ("kurtosis_pop(x)", lambda log: log.rolling_kurtosis(5)),
        ("kurtosis(x)", lambda log: log.rolling_kurtosis(5, bias=False)),
        *(
            (f"quantile(x, 0.3, '{method}')", lambda log, method=method: log.rolling_quantile(0.3, method, 5))
            for method in ("linear", "lower", "higher", "midpoint")
        ),
        *(
            (f"rank(x, '{ties}')", lambda log, ties=ties: log.rolling_rank(5, ties))
            for ties in ("average", "min", "max")
        ),
    ],
)
@examples(30, deadline=None)
@given(values=st.lists(st.integers(-50, 50).map(lambda n: n / 4), min_size=5, max_size=25))
def test_polars(call: str, ask: Any, values: list[float]) -> None:
    wanted = ask(pl.Series(values, dtype=pl.Float64)).to_list()[4:]
    found = answers(call, values, 5)
    assert len(found) == len(wanted)
    assert all(alike(*pair, 1e-6) for pair in zip(found, wanted, strict=True)), (found, wanted)
