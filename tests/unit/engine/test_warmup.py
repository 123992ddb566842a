"""Warming runs a plan on rows of its input's types, whatever the result computes of them."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest

from wincli.windowing.engine.warmup import warm
from wincli.windowing.language.options import Empty, Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.scan.segment_scan import sends_partials

SCHEMA = pa.schema([("x", pa.int64()), ("s", pa.string())])


@pytest.mark.parametrize(
    "aggregate", ["sum(x)", "rise=last(x) - first(x)", "share=(count() where x > 1) / count()", "a=locf(max(x)) + 1"]
)
def test_it_warms_arithmetic_over_aggregates_as_it_warms_aggregates(aggregate: str) -> None:
    plan = make_plan(parse_window("count(2)"), SCHEMA, calls=[parse_aggregate(aggregate)])
    warm(plan, plan.projection.schema)


@pytest.mark.parametrize("window", ["time(5m)", "calendar(day)"])
@pytest.mark.parametrize("empty", ["row", "mark"])
def test_it_warms_windows_that_are_closed_at_the_right_with_their_empty_ones(window: str, empty: Empty) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])
    options = Options(closed="right", empty=empty)
    warm(make_plan(parse_window(window), schema, [], ["ts"], [parse_aggregate("count()")], options), schema)


@pytest.mark.parametrize("window", ["time(5)", "gap(ts, 5)", "delta(ts, 5)"])
def test_a_column_without_values_has_no_type_and_no_order_to_warm(window: str) -> None:
    schema = pa.schema([("ts", pa.null()), ("v", pa.null())])
    aggregates = [parse_aggregate("count()"), parse_aggregate("max(v)")]
    warm(make_plan(parse_window(window), schema, [], ["ts"], aggregates), schema)


@pytest.mark.parametrize("call", ["integral(v)", "share=100 * twa(v > 1)", "slope(v)", "locf(last(v))"])
def test_it_warms_aggregates_over_time(call: str) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])
    plan = make_plan(parse_window("time(5)"), schema, [], ["ts"], [parse_aggregate(call)])
    warm(plan, plan.projection.schema)


def test_it_calls_no_user_function_that_merges() -> None:
    """The rows that warm have no values for a user's function; the aggregates beside it are warmed."""
    functions = ["words(s)", "way(x)", "largest(x, 3)"]
    calls = [parse_aggregate(f"support.merging_functions:{function}") for function in functions]
    plan = make_plan(parse_window("count(2)"), SCHEMA, calls=[*calls, parse_aggregate("rise=last(x) - first(x)")])
    assert sends_partials(plan, plan.projection.schema)
    called = AssertionError("a user function is called")
    with mock.patch("wincli.windowing.aggregates.user._called", side_effect=called):
        warm(plan, plan.projection.schema)
