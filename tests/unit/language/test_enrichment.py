"""The text of an enrichment: what it means, its canonical form, and where its mistakes are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.language.enrichment import DIRECTIONS, AsOf, Enrichment, Pair, Taken, parse_enrichment, with_path

NAMES = st.sampled_from(
    ["a", "ts", "on", "take", "asof", "odd name", 'with "quotes"', "ünï", "x.y", "1st", "within", "forward", "Take"]
)
PATHS = st.sampled_from(["p.csv", "in/day={date}/*.parquet", "s3://b/c d", "a on b", "it's", '"x"', "'", "x=y", "on"])
PAIRS = st.builds(Pair, NAMES, NAMES)
WITHIN = st.none() | st.sampled_from([Fraction(0), Fraction(3, 2), Fraction(300)])
ASOF = st.builds(AsOf, PAIRS, WITHIN, st.booleans(), st.sampled_from(DIRECTIONS))


@given(
    st.builds(
        Enrichment,
        st.sampled_from(["price", "on", "n1", "_x"]),
        PATHS,
        st.lists(PAIRS, min_size=1, max_size=3, unique_by=lambda pair: pair.right).map(tuple),
        st.none() | ASOF,
        st.none()
        | st.lists(st.builds(Taken, NAMES), min_size=1, max_size=3, unique_by=lambda each: each.column).map(tuple),
    )
)
def test_canonical_text_reads_back_as_the_same_enrichment(enrichment: Enrichment) -> None:
    assert parse_enrichment(str(enrichment)) == enrichment


def test_all_parts_are_read() -> None:
    text = "price = prices/{date}/ ON symbol=sym, venue ASOF ts=time WITHIN 5m STRICT TAKE bid, ask AS a"
    found = parse_enrichment(text)
    assert found == Enrichment(
        "price",
        "prices/{date}/",
        (Pair("symbol", "sym"), Pair("venue", "venue")),
        AsOf(Pair("ts", "time"), Fraction(300), True),
        (Taken("bid"), Taken("ask", "a")),
    )
    assert (
        str(with_path(found, "x y"))
        == "price=x y on symbol=sym, venue asof ts=time within 300 strict take bid, ask as a"
    )


@pytest.mark.parametrize(
    ("text", "order", "direction"),
    [
        ("asof forward ts", Pair("ts", "ts"), "forward"),
        ("ASOF Nearest ts=time within 5", Pair("ts", "time"), "nearest"),
        ("asof backward ts", Pair("ts", "ts"), "backward"),
        ("asof forward", Pair("forward", "forward"), "backward"),
        ("asof forward=ts", Pair("forward", "ts"), "backward"),
        ("asof nearest within 5", Pair("nearest", "nearest"), "backward"),
        ("asof forward strict take v", Pair("forward", "forward"), "backward"),
        ("asof forward forward", Pair("forward", "forward"), "forward"),
        ('asof forward "strict" strict', Pair("strict", "strict"), "forward"),
    ],
)
def test_a_direction_is_one_with_a_column_behind_it(text: str, order: Pair, direction: str) -> None:
    """So columns that are called like one stay columns."""
    asof = parse_enrichment(f"p=x on k {text}").asof
    assert asof is not None
    assert (asof.order, asof.direction) == (order, direction)
