"""The text of an enrichment: what it means, its canonical form, and where its mistakes are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.errors import SpecError
from wincli.windowing.language.enrichment import AsOf, Enrichment, Pair, Taken, parse_enrichment, with_path

NAMES = st.sampled_from(["a", "ts", "on", "take", "asof", "odd name", 'with "quotes"', "ünï", "x.y", "1st", "within"])
PATHS = st.sampled_from(["p.csv", "in/day={date}/*.parquet", "s3://b/c d", "a on b", "it's", '"x"', "'", "x=y", "on"])
PAIRS = st.builds(Pair, NAMES, NAMES)
ASOF = st.builds(AsOf, PAIRS, st.none() | st.sampled_from([Fraction(0), Fraction(3, 2), Fraction(300)]), st.booleans())


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
    ("text", "at", "says"),
    [
        ("", 0, "expected a name"),
        ("=x on a", 0, "expected a name"),
        ("1p=x on a", 0, "expected a name"),
        ("price", 5, "expected '='"),
        ("price on a", 5, "expected '='"),
        ("price=", 6, "expected a path"),
        ("p=x", 3, "expected 'on' and keys behind the path"),
        ("p=x on", 6, "expected a column, found the end"),
        ("p=x on 5", 7, "expected a column, found '5'"),
        ("p=x on a asof", 13, "expected a column, found the end"),
        ("p=x on a asof t within -3", 23, "expected a duration of 0 or more, found '-3'"),
        ("p=x on a asof t within 3parsecs", 23, "unknown unit 'parsecs'"),
        ("p=x on a within 3", 9, "expected the end, found 'within'"),
        ("p=x on a take b, b", 17, "column 'b' is taken twice"),
        ("p=x on a take b as a, a", 22, "column 'a' is taken twice"),
        ("p=x on a=k, b=k", 14, "column 'k' is key twice"),
        ('p=x on "a', 7, "this quote is never closed"),
    ],
)
def test_a_mistake_is_marked_in_the_text(text: str, at: int, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_enrichment(text)
    assert says in caught.value.what
    assert caught.value.span.start == at, str(caught.value)
    assert str(caught.value).count("\n") == 2
