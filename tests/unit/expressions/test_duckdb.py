"""Random expressions have the values, the types and the failures that DuckDB has (section 11)."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.duckdb_oracle import compare
from support.expression_cases import Writer, random_table


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), depth=st.integers(1, 3))
def test_random_expression_equals_duckdb(seed: int, depth: int) -> None:
    random = Random(seed)
    rows = random_table(random)
    text = Writer(random).any(depth)
    assert compare(text, rows).startswith(("same", "both refuse")), text
