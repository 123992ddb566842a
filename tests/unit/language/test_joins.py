"""The text of a join: what it means, its canonical form, and what the windows of its two sides compare."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.enrichment import Pair, Taken
from wincli.windowing.language.joins import HOWS, Join, parse_join
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Joined

NAMES = st.sampled_from(
    ["a", "ts", "on", "take", "left", "by", "odd name", 'with "quotes"', "ünï", "x.y", "1st", "Union"]
)
PATHS = st.sampled_from(
    ["p.csv", "in/day={date}/*.parquet", "s3://b/c d", "a on b", "left", "x strict", "it's", '"x"', "'", "x=y", " a "]
)
PAIRS = st.lists(
    st.builds(Pair, NAMES, NAMES), max_size=3, unique_by=(lambda pair: pair.left, lambda pair: pair.right)
).map(tuple)
WHERE = st.sampled_from(["x > 1", "ok", "kind = ')'", "f(a, b) in (1, 2)", '"odd name" IS NULL'])
TAKE = st.lists(st.builds(Taken, NAMES), min_size=1, max_size=3, unique_by=lambda each: each.column).map(tuple)


@given(
    st.builds(
        Join,
        st.sampled_from(["q", "on", "left", "_x"]),
        st.none() | PATHS,
        PAIRS,
        PAIRS,
        st.sampled_from(HOWS),
        st.booleans(),
        st.none() | WHERE.map(parse_expression),
        st.none() | TAKE,
    )
)
def test_canonical_text_reads_back_as_the_same_join(join: Join) -> None:
    assert parse_join(str(join)) == join


@pytest.mark.parametrize("path", ["right.csv", "inner/x.parquet", "on-call.csv", "by", "where.csv", "unions/"])
def test_a_path_may_begin_with_a_word_of_the_clauses(path: str) -> None:
    text = f"'{path}'" if path == "by" else path
    join = parse_join(f"q={text} on k left")
    assert (join.path, join.how) == (path, "left")
    assert parse_join(str(join)) == join


def test_all_parts_are_read_in_any_order_but_take() -> None:
    wanted = Join(
        "q",
        "quotes/{date}/",
        (Pair("symbol", "sym"), Pair("venue", "venue")),
        (Pair("ts", "time"),),
        "full",
        True,
        parse_expression("bid < ask"),
        (Taken("bid"), Taken("ask", "a")),
    )
    for text in (
        "q = quotes/{date}/ ON symbol=sym, venue BY ts=time FULL STRICT WHERE (bid<ask) TAKE bid, ask AS a",
        "q='quotes/{date}/' strict where (bid < ask) full by ts=time on symbol=sym, venue take bid, ask as a",
    ):
        assert parse_join(text) == wanted
    assert parse_join("pay on order where (kind = 'pay')").path is None


@pytest.mark.parametrize(
    ("text", "columns", "stored"),
    [
        ("q=Q on k=key", {"q_bid": "bid", "q_ts": "ts"}, ("q_bid", "k", "q_ts")),
        ("q=Q on k=key take bid, bid as b, key", {"q_bid": "bid", "b": "bid", "q_key": "key"}, ("q_bid", "k", "q_ts")),
        ("q on k=key", {"q_bid": "bid", "q_ts": "ts"}, ("bid", "key", "ts")),
    ],
)
def test_names_of_right_columns(text: str, columns: dict[str, str], stored: tuple[str, ...]) -> None:
    join = parse_join(text)
    assert join.columns(["bid", "key", "ts"]) == columns
    assert tuple(map(join.stored, ("bid", "key", "ts"))) == stored


def test_windows_of_the_right_side_compare_its_own_columns() -> None:
    window = parse_window("sliding, delta(a, 5) join delta(a, 7)")
    found = [(each.column, each.amount) for each in Joined(window, parse_join("q=Q")).distances]
    assert found == [("a", Fraction(5)), ("q_a", Fraction(7))]
    around = Joined(parse_window("around(5, -2)"), parse_join("q=Q"))
    assert [(each.column, each.amount) for each in around.distances] == [(None, Fraction(5)), (None, Fraction(-2))]
    assert str(around) == "around(5, -2)"


def test_a_state_knows_no_path() -> None:
    assert str(parse_join("q='a on b' on k left").without_place) == "q=* on k left"
    assert str(parse_join("q on k left").without_place) == "q on k left"
