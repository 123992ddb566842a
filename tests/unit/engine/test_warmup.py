"""Warming runs a plan on rows of its input's types, whatever the result computes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wincli.windowing.engine.warmup import warm
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan

SCHEMA = pa.schema([("x", pa.int64()), ("s", pa.string())])


@pytest.mark.parametrize("aggregate", ["sum(x)", "rise=last(x) - first(x)", "share=(count() where x > 1) / count()"])
def test_it_warms_arithmetic_over_aggregates_as_it_warms_aggregates(aggregate: str) -> None:
    plan = make_plan(parse_window("count(2)"), SCHEMA, calls=[parse_aggregate(aggregate)])
    warm(plan, plan.projection.schema)
