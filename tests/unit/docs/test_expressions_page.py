"""Every example of the page of expressions and of the cases, computed; every function and word stands there."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from support.docs_pages import DOCS, ROOT, fences, text_of
from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.binder import FUNCTIONS
from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.expressions.tokens import KEYWORDS, MOST_LEVELS, MOST_TOKENS
from wincli.windowing.rows.projection import RowExpressions, make_projection

ROW = pa.table(
    {
        "price": pa.array([Decimal("12.50")], pa.decimal128(10, 2)),
        "items": [3], "temp": [20.5], "state": ["error"], "line": ["GET /index.html 404"], "code": ["n/a"],
        "ok": [True],
        "ts": [datetime(2026, 3, 5, 14, 30, 15, 250000)], "day": [date(2026, 3, 5)],
        "missing": pa.array([None], pa.int64()),
        "ctx": [{"pid": 7, "host": "web1"}], "tags": [["a", "b", "c"]], "odd name": [5],
    }
)  # fmt: skip
CASES = ROOT / "tests" / "cases" / "expression_examples.txt"
LINE = re.compile(r"^\| `(.+?)` \| (`.+?`|fails) \|", re.MULTILINE)


def examples_of(head: str) -> list[tuple[str, str]]:
    """The examples of the tables with this head: the expression, and what it gives."""
    text = text_of("expressions") + CASES.read_text(encoding="utf-8")
    tables = re.findall(rf"^\| {head} \|.*\n(?:\|.*\n)+", text, re.MULTILINE)
    found = (line for table in tables for line in LINE.findall(table))
    return [(expression.replace("\\|", "|"), gives.strip("`")) for expression, gives in found]


EXAMPLES = examples_of("expression")
OWN = examples_of("function")


def shown(value: object) -> str:
    """A value as the page writes it."""
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    return str(value)


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    connection.register("row_in", ROW)
    return connection


@pytest.mark.parametrize(("expression", "gives"), [*EXAMPLES, *OWN], ids=[example for example, _ in [*EXAMPLES, *OWN]])
def test_example_gives_what_the_page_says_and_the_same_in_duckdb(
    expression: str, gives: str, database: duckdb.DuckDBPyConnection
) -> None:
    parsed = parse_expression(expression)
    found = bind(parsed, ROW.schema).evaluate(ROW)
    assert ("fails" if found.failures is not None else shown(found.values[0].as_py())) == gives
    if (expression, gives) in EXAMPLES:
        try:
            other = shown(database.execute(f"SELECT {parsed} FROM row_in").fetchall()[0][0])
        except duckdb.Error:
            other = "fails"
        assert other == gives


def test_examples_are_many_and_functions_words_and_limits_stand_on_the_page() -> None:
    assert (len(EXAMPLES) > 90, len(OWN) > 3) == (True, True)
    text = text_of("expressions")
    assert [name for name in (*FUNCTIONS, "lag") if f"{name}(" not in text.lower()] == []
    words = re.search(r"words of the language: `([^`]*)`", text)
    assert words is not None
    assert set(words[1].split()) == KEYWORDS
    assert f"{MOST_TOKENS:,} names" in text
    assert f"{MOST_LEVELS} levels" in text


@pytest.mark.parametrize("lines", [lines for _, lines in fences(DOCS["expressions"], "text")])
def test_mistake_is_shown_as_on_the_page(lines: list[str]) -> None:
    where = parse_expression(lines[1].strip())
    with pytest.raises(SpecError) as caught:
        make_projection(ROW.schema, RowExpressions(where=where))
    assert str(caught.value).splitlines() == lines
