"""Expectations as texts: what they are about, whether they only warn, and where they are wrong."""

from __future__ import annotations

import pytest

from wincli.conf.option_values import parse_expectation
from wincli.windowing.errors import ConfigError, SpecError


@pytest.mark.parametrize(
    ("text", "scope", "canonical", "on_fail"),
    [
        ("rows_in > 3", "numbers", "rows_in > 3", "fail"),
        (" warn: late_share<0.1 ", "numbers", "late_share < 0.1", "warn"),
        ("all(top < 30)", "all", "all(top < 30)", "fail"),
        ("warn:ANY( user = 'all(x)' )", "any", "any(user = 'all(x)')", "warn"),
        ("all(name = 'a)' or \"odd )\" > 1)", "all", "all(name = 'a)' OR \"odd )\" > 1)", "fail"),
        ("all((a) > 1)", "all", "all(a > 1)", "fail"),
    ],
)
def test_what_a_text_says(text: str, scope: str, canonical: str, on_fail: str) -> None:
    found = parse_expectation(text)
    assert (found.scope, str(found), found.on_fail) == (scope, canonical, on_fail)
    assert parse_expectation(str(found)).expression == found.expression


@pytest.mark.parametrize("text", ["", "  ", "warn:", "warn:  ", "all()", "any( )"])
def test_nothing_is_demanded(text: str) -> None:
    with pytest.raises(ConfigError, match="has no expression"):
        parse_expectation(text)


@pytest.mark.parametrize(("text", "at"), [("warn: a >", 9), ("all(a b)", 6), ("rows_in > (1", 10)])
def test_the_place_of_a_mistake_is_one_in_the_whole_text(text: str, at: int) -> None:
    with pytest.raises(SpecError) as caught:
        parse_expectation(text)
    assert caught.value.source == text
    assert abs(caught.value.span.start - at) <= 2
