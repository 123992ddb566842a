"""Expectations as texts: what they are about, whether they only warn, and where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from wincli.conf.job_builder import make_job
from wincli.conf.job_file import read_job_file
from wincli.conf.option_values import expectation_text, parse_expectation
from wincli.windowing.errors import ConfigError, SpecError, WincliError


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


def test_only_two_words_say_what_to_do() -> None:
    assert expectation_text("a > 1", "warn") == "warn: a > 1"
    assert expectation_text("a > 1", "fail") == "a > 1"
    with pytest.raises(ConfigError, match="on_fail cannot be 'stop'; say fail or warn"):
        expectation_text("a > 1", "stop")


def job_of(folder: Path, expect: str) -> tuple[str, ...]:
    (folder / "job.yaml").write_text(f"window: count(1)\ninput: a\noutput: b\n{expect}\n")
    return make_job({}, read_job_file(str(folder / "job.yaml")), lambda _: None).expect


def test_forms_of_a_job_file(tmp_path: Path) -> None:
    assert job_of(tmp_path, "expect: windows > 1") == ("windows > 1",)
    both = "expect:\n  - windows > 1\n  - {expr: all(a < 3), on_fail: warn}\n  - expr: held = 0"
    assert job_of(tmp_path, both) == ("windows > 1", "warn: all(a < 3)", "held = 0")
    assert job_of(tmp_path, "") == ()


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ("expect:\n  - {expr: a > 1, on_fail: stop}", "on_fail cannot be 'stop'"),
        ("expect:\n  - {expr: a > 1, on: warn}", "unknown key 'on'"),
        ("expect:\n  - windows >", "expect"),
        ("expect: {expr: a > 1}", "must be text or a list of texts"),
    ],
)
def test_mistakes_in_a_job_file(tmp_path: Path, expect: str, words: str) -> None:
    with pytest.raises(WincliError) as caught:
        job_of(tmp_path, expect)
    assert words in str(caught.value)
