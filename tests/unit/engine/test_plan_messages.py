"""Mistakes in the expressions of a plan are shown in the words of the user, before anything is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from support.spec_errors import message
from wincli.windowing.errors import ConfigError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.planning.plan import make_plan

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("s", pa.string())])
AGGREGATES = {
    "a=sum(x)+y": """
'y' is in no aggregate, and here each column must be in one; write for example last(y)
  a=sum(x)+y
           ^
""",
    'a = (avg("x")where y>0) / 2 - "no such"': """
'no such' is in no aggregate, and here each column must be in one; write for example last("no such")
  a = (avg("x")where y>0) / 2 - "no such"
                                ^^^^^^^^^
""",
    "a=1 + (max(s)where y>0)+sum(x)": """
INTEGER and VARCHAR cannot be added; convert it with CAST
  a=1 + (max(s)where y>0)+sum(x)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
    "n=count() where yy > 1": """
the column 'yy' is not there; did you mean 'y'?
  n=count() where yy > 1
                  ^^
""",
    "n=sum(x * xx) where y > 1": """
the column 'xx' is not there; did you mean 'x'?
  n=sum(x * xx) where y > 1
            ^^
""",
    "n=sum(xx) where y > 1": """
the column 'xx' is not there; did you mean 'x'?
  n=sum(xx) where y > 1
  ^^^^^^^^^^^^^^^^^^^^^
""",
    'a=count() where s = "u"': """
the column 'u' is not there; a text stands in single quotes: 'u'
  a=count() where s = "u"
                      ^^^
""",
    "a=summ(x) + 1": """
there is no aggregate summ; did you mean 'sum'?
  a=summ(x) + 1
    ^^^^
""",
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_are_shown_as_they_were_written(text: str) -> None:
    assert message(lambda each: plan(aggregate=each), text) == AGGREGATES[text].strip("\n")


def test_a_call_in_arithmetic_is_named_without_the_name_that_it_has_inside() -> None:
    with pytest.raises(ConfigError, match=r"^there is no column 'xx' for sum\(xx\); did you mean 'x'\?$"):
        plan(aggregate="a=sum(xx) + 1")


MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"let": (parse_let("a=b + 1"), parse_let("b=a + 1"))},
        "--let a: the column 'b' is not there yet; a --let may use the columns of those before it\n  b + 1\n  ^",
    ),
    (
        {"having": parse_let("h=count() > 1")[1]},
        "--having: count() is an aggregate, and here is one row at a time; give it a name with --agg; "
        "the condition of a result, --having, may use the name\n  count() > 1\n  ^^^^^^^",
    ),
    ({"where": parse_expression("y > s")}, "--where: BIGINT and VARCHAR"),
    ({"let": (parse_let("a=x + 1"), parse_let("b=aa * 2"))}, "--let b: the column 'aa' is not there"),
    ({"let": (parse_let("d=x - lag(s)"),)}, "--let d: "),
    ({"having": parse_expression("nn > 1")}, "--having: the column 'nn' is not there"),
]


@pytest.mark.parametrize(("options", "wanted"), MISTAKES)
def test_the_mistake_of_an_expression_names_its_option(options: dict[str, Any], wanted: str) -> None:
    found = message(lambda _: plan(**options), "")
    assert found == wanted if "\n" in wanted else found.startswith(wanted)


@pytest.mark.parametrize(
    ("name", "what"), [("_file", "the file that a row came from"), ("_arrival", "the arrival position of a row")]
)
def test_a_let_cannot_have_the_name_of_a_column_that_every_input_has(name: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(let=(parse_let(f"{name}=x"),))
    assert str(caught.value) == f"--let {name}: the name is taken, for {what}; choose another name"


def test_of_a_long_text_the_place_is_shown() -> None:
    text = "a=sum(x) " + "+ 1 " * 200 + "+ yy" + " + 1" * 200
    _, source, caret = message(lambda each: plan(aggregate=each), text).split("\n")
    assert len(source) < 180
    assert source[caret.index("^") : caret.index("^") + 2] == "yy"
    long_one = "sum(" + "(" * 500 + "x" + ")" * 500 + ")"
    assert all(len(line) < 180 for line in message(parse_aggregate, long_one).split("\n"))


def plan(aggregate: str = "count()", **options: Any) -> None:
    given = Options(**options)
    make_plan(parse_window("count(2)"), SCHEMA, calls=[parse_aggregate(aggregate)], options=given)
