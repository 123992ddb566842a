"""Durations read from text, as exact seconds."""

from fractions import Fraction

import pytest

from support.spec_errors import message, mistakes
from wincli.windowing.language.parser import parse_duration

DURATIONS = [
    ("60", Fraction(60)),
    ("0", Fraction(0)),
    (" 1.5s ", Fraction(3, 2)),
    ("250ms", Fraction(1, 4)),
    ("100us", Fraction(1, 10_000)),
    ("5ns", Fraction(5, 10**9)),
    ("5m", Fraction(300)),
    ("2h", Fraction(7200)),
    ("1d", Fraction(86400)),
    ("1e3", Fraction(1000)),
    ("1.5e-3s", Fraction(3, 2000)),
    (".1", Fraction(1, 10)),
]

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
unknown unit 'x' in '5x'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  5x
  ^^

expected a duration of 0 or more, found '-5'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  -5
  ^^

expected the end, found 'x'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  1 x
    ^

unknown unit 'u' in '5u'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  5u
  ^^

expected a number, found 'abc'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  abc
  ^^^

a number has more than 400 digits on one side of its point
  1e999
  ^^^^^

expected a number, found '"5"'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  "5"
  ^^^
"""


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_a_duration_is_exact_seconds(text: str, seconds: Fraction) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_duration_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_duration, text) == printed
