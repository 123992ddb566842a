"""Random expressions have the values, the types and the failures that DuckDB has (section 11)."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.duckdb_oracle import compare
from support.expression_cases import Writer, random_table
from support.strategies import examples
from wincli.windowing.expressions.syntax import parse_expression


@examples(300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), depth=st.integers(1, 3))
def test_random_expression_equals_duckdb(seed: int, depth: int) -> None:
    random = Random(seed)
    rows = random_table(random)
    text = Writer(random).any(depth)
    assert compare(text, rows).startswith(("same", "both refuse")), text


@examples(150, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), depth=st.integers(1, 4))
def test_canonical_text_of_a_random_expression_is_the_same_expression(seed: int, depth: int) -> None:
    random = Random(seed)
    rows = random_table(random, 3)
    expression = parse_expression(Writer(random).any(depth))
    assert parse_expression(str(expression)) == expression
    assert parse_expression(str(expression)).root == expression.root
    assert compare(str(expression), rows).startswith(("same", "both refuse")), str(expression)
