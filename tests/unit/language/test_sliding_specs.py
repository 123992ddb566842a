"""Sliding windows read from text: an eviction and a trigger."""

import pytest

from support.spec_errors import message, mistakes
from support.spec_texts import SLIDING
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
expected ',', found the end; write for example sliding, count(100), count(10)
  sliding
         ^

a sliding window cannot use 'punct'; use one of count, delta, time, or a tumbling window
  sliding, punct()
           ^^^^^

a sliding window cannot use 'gap'; use one of count, delta, time, or a tumbling window
  sliding, count(3), gap(a, 2)
                     ^^^

a sliding window takes an eviction and a trigger, 'time' is one too many; leave this one out
  sliding, count(3), count(1), time(3)
                               ^^^^

expected a whole number, 1 or more, found '0'; write it as count(n)
  sliding, count(3), count(0)
                           ^

unknown option 'dleta'; did you mean 'delta'?
  sliding, count(3), dleta(a,2)
                     ^^^^^

expected a policy, found '5'; known: count, delta, time
  sliding, 5
           ^

unknown option 'dleta'; did you mean 'delta'?
  sliding, count(10), count(5), dleta(a, 2)
                                ^^^^^

a sliding window takes an eviction and a trigger, 'count' is one too many; leave this one out
  sliding, count(2), partitioned, count(1)
                                  ^^^^^

expected a duration greater than 0, found '0'; write it as time(duration)
  sliding, time(0), count(1)
                ^

expected a whole number, 0 or more, found '-1'; write it as count(n)
  sliding, count(-1)
                 ^^
"""


@pytest.mark.parametrize(("text", "spec"), SLIDING, ids=[text for text, _ in SLIDING])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed
