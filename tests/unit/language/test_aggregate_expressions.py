"""Aggregates with expressions: how they are read, what they are called, and where a mistake is (section 11)."""

from __future__ import annotations

import pytest

from wincli.windowing.errors import SpecError
from wincli.windowing.language.parser import parse_aggregate, parse_let
from wincli.windowing.language.spec import AggregateCall, AggregateExpression, Column


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sum(price*items)", "sum_price_items=sum(price * items)"),
        ("spent = sum(price * items)", "spent=sum(price * items)"),
        ("count() where latency>500", "count=count() where latency > 500"),
        ("slow=count() where latency > 500 and not ok", "slow=count() where latency > 500 AND NOT ok"),
        ("max(x) WHERE state = 'where'", "max_x=max(x) where state = 'where'"),
        ("sum(x) filter (where x > 3)", "sum_x=sum(x) where x > 3"),
        ("slow=count() FILTER(WHERE (latency) > 500 and f(a, b))", "slow=count() where latency > 500 AND f(a, b)"),
        ("quantile(abs(x), 0.95)", "quantile_abs_x_0.95=quantile(abs(x), 0.95)"),
        ("mine:f(a, 2, 'b') where a > 1", "f_a_2_b=mine:f(a, 2, 'b') where a > 1"),
        ("avg(x + 1)", "mean_x_1=mean(x + 1)"),
        ("first(case when x > 0 then x end)", "first_CASE_WHEN_x_0_THEN_x_END=first(CASE WHEN x > 0 THEN x END)"),
        ("sum(-x)", "sum_x=sum(-x)"),
        ("string_join(a || b, ', ')", "string_join_a_b_, =string_join(a || b, ', ')"),
    ],
)
def test_a_call_may_have_expressions_and_a_filter(text: str, wanted: str) -> None:
    call = parse_aggregate(text)
    assert isinstance(call, AggregateCall)
    assert f"{call.name}={call.text}" == wanted


@pytest.mark.parametrize(
    "text",
    ["sum(price * items)", "n=count() where ok", "mine:f(a + 1, 2) where a > 1", '"odd name"=max("a b" + 1)'],
)
def test_the_text_of_a_call_reads_back_as_an_equal_value(text: str) -> None:
    call = parse_aggregate(text)
    assert parse_aggregate(str(call)) == call


def test_arithmetic_has_each_call_once_under_a_name_of_its_own() -> None:
    item = parse_aggregate("share=100 * sum(x) / (sum(x) + count())")
    assert isinstance(item, AggregateExpression)
    assert [(each.name, each.function, each.arguments) for each in item.calls] == [
        ("=sum(x)", "sum", (Column("x"),)),
        ("=count()", "count", ()),
    ]
    assert str(item.expression) == '100 * "=sum(x)" / ("=sum(x)" + "=count()")'


def test_a_filter_ends_at_the_parenthesis_that_its_call_stands_in() -> None:
    item = parse_aggregate("share=(count() where ok and (x > 1)) / count()")
    assert [each.text for each in item.calls] == ["count() where ok AND x > 1", "count()"]


def test_a_filter_of_sql_ends_at_its_own_parenthesis() -> None:
    item = parse_aggregate("share=count() filter (where ok and (x > 1)) / count() filter (where y)")
    assert [each.text for each in item.calls] == ["count() where ok AND x > 1", "count() where y"]
    one, other = (parse_aggregate(text) for text in ("sum(x) filter (where ok)", "sum(x) where ok"))
    assert one == other


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("sum(x) / count()", "sum(x) / count()", "arithmetic over aggregates needs a name"),
        ("a=sum(x) where ok / count()", "count", "an aggregate is no part of this expression"),
        ("a=sum(max(x))", "max", "an aggregate is no part of the argument of another"),
        ("a=sum(x) / max(1 + Count())", "Count", "an aggregate is no part of the argument of another"),
        ("a=sum(x) where max(y) > 1", "max", "an aggregate is no part of this expression"),
        ("a=sum(x) + ", None, None),
        ("a=sum(x +) + 1", None, None),
        ("a=sum(x + 1", "(", "this parenthesis is never closed"),
        ("sum(x) filter (x > 3)", "filter", "filter is followed by (where CONDITION)"),
        ("sum(x) filter where x > 3", "filter", "filter is followed by (where CONDITION)"),
        ("sum(x) filter (where x > 3", "(", "this parenthesis is never closed"),
        ("sum(x) filter (where )", ")", "expected an expression"),
        ("sum(x) filter (where x) where y", "where", "a second filter follows a first one"),
        ("a=sum(x) where", "", "expected an expression, found the end"),
        ("a=sum(x,,y+1)", ",", "expected an expression, found ','"),
        ('a=sum("") + 1', '""', "a column name is empty"),
    ],
)
def test_a_mistake_is_marked_where_it_is(text: str, at: str | None, words: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        parse_aggregate(text)
    error = caught.value
    assert error.source == text
    assert 0 <= error.span.start <= error.span.stop <= len(text) + 1
    if at is not None:
        assert text[error.span.start : error.span.stop] == at
    if words is not None:
        assert words in error.what


def test_an_aggregate_of_aggregates_is_said_to_take_two_stages() -> None:
    with pytest.raises(SpecError) as caught:
        parse_aggregate("sum(max(x))")
    assert caught.value.do == "take two stages: NAME=max(..) in the first, sum(NAME) in the second"


def test_a_new_column_has_a_name_and_an_expression() -> None:
    name, expression = parse_let(' "my column" = a+ b')
    assert (name, str(expression)) == ("my column", "a + b")


@pytest.mark.parametrize("text", ["a + b", "=a", "a==b", "", "a b=c"])
def test_a_new_column_needs_a_name(text: str) -> None:
    with pytest.raises(SpecError, match="a new column needs a name"):
        parse_let(text)


def test_a_mistake_in_a_new_column_is_marked_in_the_whole_text() -> None:
    with pytest.raises(SpecError) as caught:
        parse_let("total = price * ")
    assert caught.value.source == "total = price * "
    assert caught.value.span.start >= 8
