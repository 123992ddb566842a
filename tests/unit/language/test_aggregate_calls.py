"""Aggregates read from text."""

import pytest

from support.spec_errors import message, mistakes
from support.spec_texts import AGGREGATES
from wincli.windowing.language.parser import parse_aggregate
from wincli.windowing.language.spec import AggregateCall

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
expected '(', found the end; write it as [NAME=]FUNCTION(COLUMN, ..)
  count
       ^

this parenthesis is never closed; write it as [NAME=]FUNCTION(COLUMN, ..)
  sum(amount
     ^

expected '(', found 'amount'; write it as [NAME=]FUNCTION(COLUMN, ..)
  sum amount
      ^^^^^^

expected the end, found 'b'; a name stands before: write b=sum(a)
  sum(a) b
         ^

expected a function, found the end; write it as [NAME=]FUNCTION(COLUMN, ..)
  x=
    ^

expected a column, found '1x'; a column name with other characters goes in double quotes: "my column"
  1x=sum(a)
  ^^

a column name is empty
  "" = sum(a)
  ^^

expected a function of 'mod', found '('; write it as module:name
  mod:(x)
      ^

expected a function of 'mod', found '5'; write it as module:name
  mod:5(x)
      ^

'*' is no column; write count() to count rows
  count(*)
        ^

there is no argument called 'q'; write it as [NAME=]FUNCTION(COLUMN, ..)
  quantile(x, q=0.5)
              ^

unknown unit 'm' in '5m'; write a plain number
  nth(x, 5m)
         ^^

expected a column, found '12:30'; write it as [NAME=]FUNCTION(COLUMN, ..)
  f(12:30)
    ^^^^^

expected a column, found 'a@b'; a column name with other characters goes in double quotes: "my column"
  f(a@b)
    ^^^

expected a function, found '5'; write it as [NAME=]FUNCTION(COLUMN, ..)
  5(x)
  ^

this quote is never closed; a quote inside quotes is written twice
  string_join(x, ',)
                 ^

a column name is empty
  f("")
    ^^

expected an argument, found ')'; write it as [NAME=]FUNCTION(COLUMN, ..)
  f(x,)
      ^

this parenthesis is never closed; write it as [NAME=]FUNCTION(COLUMN, ..)
  f(
   ^

expected '(', found '-'; write it as [NAME=]FUNCTION(COLUMN, ..)
  user-id=sum(a)
      ^

expected '(', found ':'; write it as [NAME=]FUNCTION(COLUMN, ..)
  a:b:c(x)
     ^

expected ',' or ')', found ';'; write it as [NAME=]FUNCTION(COLUMN, ..), and put a name with other characters in double quotes
  sum(x;y)
       ^
"""  # noqa: E501


@pytest.mark.parametrize(("text", "call"), AGGREGATES, ids=[text for text, _ in AGGREGATES])
def test_aggregate_text_reads_as_its_call_and_back(text: str, call: AggregateCall) -> None:
    assert parse_aggregate(text) == call
    assert parse_aggregate(str(call)) == call


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_aggregate_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_aggregate, text) == printed
