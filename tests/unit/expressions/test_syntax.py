"""The form of expressions: canonical texts and limits (section 11). Mistakes are in `test_binding`."""

from __future__ import annotations

import pickle

import pytest

from support.places import CASES
from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.syntax import Expression, parse_expression

LINES = (CASES / "expression_texts.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("text", "written"), list(zip(LINES[::2], LINES[1::2], strict=True)))
def test_canonical_text_parses_to_an_equal_value(text: str, written: str) -> None:
    expression = parse_expression(text)
    assert str(expression) == written.strip()
    assert parse_expression(str(expression)) == expression
    assert pickle.loads(pickle.dumps(expression)) == expression


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "a" + ")" * 10_000, "not " * 10_000 + "a", "- " * 10_000 + "a", "a" + ".b" * 10_000,
        "a" + "[1]" * 10_000, "a" + " is null" * 10_000, " = ".join(["a"] * 10_000), "case when a then " * 10_000,
        "f(" * 10_000 + "a" + ")" * 10_000, " + ".join(["a"] * 30_000),
    ],
)  # fmt: skip
def test_too_deep_or_too_long_is_one_clear_line(text: str) -> None:
    with pytest.raises(
        SpecError, match=r"is nested more than 100 levels|has 59,999 names|a second comparison"
    ) as caught:
        parse_expression(text)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text", [" + ".join(["a"] * 10_000), " or ".join(["a"] * 10_000), "(" * 95 + "a + 1" + ")" * 95]
)
def test_ten_thousand_terms_are_one_level(text: str) -> None:
    expression = parse_expression(text)
    assert isinstance(pickle.loads(pickle.dumps(expression)), Expression)


def test_columns_are_named_once_and_of_nested_ones_the_outermost() -> None:
    expression = parse_expression("ctx.pid + ctx.b + tags[i] + lag(a)")
    assert expression.columns == ("ctx", "tags", "i", "a")
    assert (expression.uses_lag, expression.name, parse_expression("a").name) == (True, None, "a")
