"""The form of expressions: canonical texts, places of errors, limits (section 11)."""

from __future__ import annotations

import pickle

import pytest

from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.syntax import Expression, parse_expression

TEXTS = {
    " a ": "a",
    '"odd name"': '"odd name"',
    "a+b*2>5m and not c in (1,2)": "a + b * 2 > INTERVAL '5' MINUTE AND c NOT IN (1, 2)",
    "ctx.pid = 3 OR tags[1] is not null": "ctx.pid = 3 OR tags[1] IS NOT NULL",
    "case when a>1 then 'x' else 'it''s' end": "CASE WHEN a > 1 THEN 'x' ELSE 'it''s' END",
    "case a when 1 then 2 end": "CASE a WHEN 1 THEN 2 END",
    "cast(a as decimal( 10,2))": "CAST(a AS DECIMAL( 10,2))",
    "try_cast(a as timestamp  with time zone)": "TRY_CAST(a AS TIMESTAMP WITH TIME ZONE)",
    "x::int * -a.b :: Decimal(10, 2)": "CAST(x AS INT) * -CAST(a.b AS DECIMAL(10, 2))",
    "x||y::text::date = z": "x || CAST(CAST(y AS TEXT) AS DATE) = z",
    "Extract(HOUR from ts)": "extract(hour FROM ts)",
    "interval 5 days + 90 seconds + interval '3 hours'": "INTERVAL '5' DAY + INTERVAL '90' SECOND + INTERVAL '3' HOUR",
    "5ns": "INTERVAL '5' NANOSECOND",
    "1 year": "INTERVAL '1' YEAR",
    "-a * - 5 - (-b) - (a - b)": "-a * -5 - -b - (a - b)",
    "not (a = b) or not a is null": "NOT a = b OR a IS NOT NULL",
    "lag(x, 2) is distinct from null": "lag(x, 2) IS DISTINCT FROM NULL",
    "(a = b) = c": "(a = b) = c",
    "x between 1 and 2 and y not like '%'": "x BETWEEN 1 AND 2 AND y NOT LIKE '%'",
    "ts > timestamp '2026-01-01' and d < DATE '2026-02-02'": "ts > TIMESTAMP '2026-01-01' AND d < DATE '2026-02-02'",
    "end": '"end"',
    "(a.b).c[1].d": "a.b.c[1].d",
    "t at time zone 'UTC' at time zone z.n::text": "timezone(CAST(z.n AS TEXT), timezone('UTC', t))",
    "-a * b at time zone 'UTC'": "-a * timezone('UTC', b)",
    "- a at time zone 'UTC'": "timezone('UTC', -a)",
    "not a = b + 1 and c || d || e": "NOT a = b + 1 AND c || d || e",
    "a = not b": "a = (NOT b)",
    "extract(day from a in (b))": "extract(day FROM a IN (b))",
    "at + time - zone": "at + time - zone",
    "x::int[]": "CAST(x AS INT[])",
    "a - (b - c) - d * (e / f)": "a - (b - c) - d * (e / f)",
    "+ -(-5)": "5",
    "f( ) + G(1, 'x')": "f() + g(1, 'x')",
}


@pytest.mark.parametrize("text", TEXTS)
def test_canonical_text_parses_to_an_equal_value(text: str) -> None:
    expression = parse_expression(text)
    assert str(expression) == TEXTS[text]
    assert parse_expression(str(expression)) == expression
    assert pickle.loads(pickle.dumps(expression)) == expression


MISTAKES = {
    "x +": ("an expression cannot end with '+' here", "+"),
    "(x": ("this bracket is never closed", "("),
    "x)": ("this bracket closes nothing", ")"),
    "x is 3": ("'3' cannot stand here", "3"),
    "x in (select 1)": ("'1' cannot stand here", "1"),
    "x:int": ("an expression has no ':'", ":"),
    "x::": ("an expression cannot end with '::' here", "::"),
    "::int": ("'::' cannot stand here", "::"),
    "'abc": ("this quote is never closed", "'"),
    "5q + 1": ("unknown unit 'q'", "5q"),
    "interval '5' foo": ("this interval cannot be read", "interval '5' foo"),
    "count(*)": ("'*' cannot stand here", "*"),
    "end + 1": ("'end' is a word of the language", "end"),
    "a = b = c": ("a second comparison follows a first one", "="),
    "a = b is null": ("a second comparison follows a first one", "is"),
    "a between 1 and 2 = c": ("a second comparison follows a first one", "="),
    "x, y": ("',' cannot stand here", ","),
    "a in (1) + 2": ("'+' cannot stand here", "+"),
    "x is null at time zone 'UTC'": ("'at' cannot stand here", "at"),
    "a not is null": ("'not' cannot stand here", "not"),
    "a between 1": ("an expression cannot end with '1' here", "1"),
    "in (1, )": ("'in' cannot stand here", "in"),
    "a in (1, )": ("')' cannot stand here", ")"),
    "a in ()": ("'(' cannot stand here", "("),
    "a + not b": ("NOT cannot stand here", "not"),
    "case when a then 1": ("an expression cannot end with '1' here", "1"),
    "case end": ("'end' is a word of the language", "end"),
    "(a]": ("this bracket closes nothing", "]"),
    "a::decimal(3,1": ("this bracket is never closed", "("),
    "(a + b).c": ("a dot stands between a column and the name of a field", "a + b"),
    "1(1)": ("'(' cannot stand here", "("),
    "cast(x, int)": ("',' cannot stand here", ","),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistake_is_shown_at_its_place(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_expression(text)
    what, part = MISTAKES[text]
    span = caught.value.span
    assert (caught.value.what, text[span.start : span.stop]) == (what, part)


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
