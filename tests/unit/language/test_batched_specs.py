"""Batched windows read from text: within, retain, every, unique, partition by."""

from fractions import Fraction

import pytest

from support.spec_errors import message, mistakes
from support.spec_texts import BATCHED
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched, WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
expected a number, found the end; write within 5m
  within
        ^

expected a duration greater than 0, found '0'; write within 5m
  within 0
         ^

expected the end, found 'evry'; did you mean 'every'?
  within 5 evry 1
           ^^^^

expected a duration greater than 0, found '0'; next to within, every is a duration
  within 5 every 0
                 ^

expected the end, found 'every'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  within 5 retain 2 every 3
                    ^^^^^

retain all stands alone; leave out either it or within
  within 5 retain all
                  ^^^

expected a number, found the end; write retain n or retain all
  retain
        ^

expected a whole number, 1 or more, found '0'; write retain n or retain all
  retain 0
         ^

retain all takes no 'every'; it stands alone
  retain all every 5
             ^^^^^

retain all takes no 'with'; it stands alone
  retain all with unique k
             ^^^^

retain all takes no 'partition by'; leave it out, or use the option --key
  partition by k retain all
                        ^^^

expected 'by' after 'partition', found 'k'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  partition k retain 2
            ^

expected a clause, found '2'; known: within, retain
  partition by retain 2
                      ^

unknown clause 'retian'; did you mean 'retain'?
  partition by k retian 2
                 ^^^^^^

partition by takes columns, not expressions; compute it as a column first, or put a name with other characters in double quotes
  partition by k, floor(v)/100 retain 2
                  ^^^^^^

expected the end, found 'within'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  retain 2 within 5
           ^^^^^^

expected a whole number, 1 or more, found '1.5'; next to a lone retain, every is a number of rows
  retain 2 every 1.5
                 ^^^

unknown unit 's' in '5s'; next to a lone retain, every is a number of rows
  retain 2 every 5s
                 ^^

expected 'unique' after 'with', found 'uniq'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  retain 5 with uniq k
                ^^^^

expected a column, found the end; write with unique COLUMN
  retain 5 with unique
                      ^

expected a column, found "'k'"; a column name with other characters goes in double quotes: "my column"
  retain 5 with unique 'k'
                       ^^^

expected the end, found ','; the order is [partition by K] within D [every P] [retain N] [with unique K]
  retain 3, partitioned
          ^

group by is no part of a window; use the option --group-by a
  within 5 group by a
           ^^^^^^^^^^

expected 'unique' after 'with', found 'uniqe'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  within 5 with uniqe k
                ^^^^^

expected the end, found ';'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  within 5; retain 2
          ^

unknown window 'Partion'; did you mean 'partition by'?
  Partion by k retain 2
  ^^^^^^^

expected a column, found the end; write partition by COLUMN, ..
  partition by
              ^

expected a clause, found the end; known: within, retain
  partition by k
                ^

unknown clause 'b'; known: within, retain
  partition by a b retain 2
                 ^

expected a clause, found ';'; known: within, retain
  partition by k;
                ^

expected a whole number, 1 or more, found '0'; next to a lone retain, every is a number of rows
  retain 2 every 0
                 ^
"""  # noqa: E501


@pytest.mark.parametrize(("text", "spec"), BATCHED, ids=[text for text, _ in BATCHED])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed


def test_every_is_seconds_next_to_within_and_rows_next_to_retain() -> None:
    within, retain = parse_window("within 5 every 2"), parse_window("retain 5 every 2")
    assert isinstance(within, Batched)
    assert isinstance(retain, Batched)
    assert (type(within.every), type(retain.every)) == (Fraction, int)
