"""Tumbling windows read from text, with their policies and evictions, and what is no window at all."""

import pytest

from support.spec_errors import message, mistakes
from support.spec_texts import TUMBLING
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Count, Tumbling, WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
expected a window, found '5'; known: tumbling, sliding, timeInterval, within, retain, partition by, count, delta, time, punct, gap, calendar
  5
  ^

expected a window, found '('; known: tumbling, sliding, timeInterval, within, retain, partition by, count, delta, time, punct, gap, calendar
  (
  ^

unknown window 'dleta'; did you mean 'delta'?
  dleta(ts,60)
  ^^^^^

unknown window 'tumbing'; did you mean 'tumbling'?
  tumbing, count(3)
  ^^^^^^^

expected ',', found the end; write for example tumbling, count(100)
  tumbling
          ^

expected ',', found 'count'; write for example tumbling, count(100)
  tumbling count(5)
           ^^^^^

expected a policy, found the end; known: count, delta, time, punct, gap, calendar
  tumbling,
           ^

unknown policy 'cuont'; did you mean 'count'?
  tumbling, cuont(3)
            ^^^^^

expected '(', found the end; write it as delta(attribute, amount)
  delta
       ^

delta takes 2 arguments, found 1; write it as delta(attribute, amount)
  delta(ts)
  ^^^^^^^^^

delta takes 2 arguments, found 3; write it as delta(attribute, amount)
  delta(ts, 60, 3)
  ^^^^^^^^^^^^^^^^

expected a column, found '60'; write it as delta(attribute, amount)
  delta(60, ts)
        ^^

expected a number, found 'x'; write it as delta(attribute, amount)
  delta(ts, x)
            ^

expected a column, found "'ts'"; a column name with other characters goes in double quotes: "my column"
  delta('ts', 6)
        ^^^^

expected an amount of 0 or more, found '-5'; write it as delta(attribute, amount)
  delta(ts, -5)
            ^^

unknown unit 'sek' in '60sek'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  delta(ts, 60sek)
            ^^^^^

unknown unit 'u' in '5u'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  time(5u)
       ^^

expected a duration greater than 0, found '0'; write it as time(duration)
  time(0)
       ^

expected a duration greater than 0, found '-1'; write it as time(duration)
  time(-1)
       ^^

expected a whole number, 1 or more, found '0'; write it as count(n)
  count(0)
        ^

expected a whole number, 1 or more, found '2.5'; write it as count(n)
  count(2.5)
        ^^^

unknown unit 'm' in '5m'; write it as count(n)
  count(5m)
        ^^

expected a number, found 'x'; write it as count(n)
  count(x)
        ^

there is no argument called 'n'; write it as count(n)
  count(n=5)
        ^

count takes 1 argument, found 0; write it as count(n)
  count()
  ^^^^^^^

expected a whole number, 1 or more, found '99999999999999999999'; write it as count(n)
  count(99999999999999999999)
        ^^^^^^^^^^^^^^^^^^^^

a number has more than 400 digits on one side of its point
  delta(ts, 1e99999)
            ^^^^^^^

this parenthesis is never closed; write it as delta(attribute, amount)
  delta(ts, 60
       ^

this parenthesis is never closed; write it as delta(attribute, amount)
  delta(
       ^

this parenthesis is never closed; write it as delta(attribute, amount)
  delta(ts,
       ^

expected an argument, found ')'; write it as delta(attribute, amount)
  delta(ts,)
           ^

expected ',' or ')', found '60'; write it as delta(attribute, amount)
  delta(ts 60)
           ^^

expected ',' or ')', found '-'; write it as delta(attribute, amount), and put a name with other characters in double quotes
  delta(user-id, 6)
            ^

expected a column, found '2nd'; a column name with other characters goes in double quotes: "my column"
  delta(2nd, 6)
        ^^^

expected a column, found 'a@b'; a column name with other characters goes in double quotes: "my column"
  delta(a@b, 6)
        ^^^

this quote is never closed; a quote inside quotes is written twice
  delta("ts, 6)
        ^

a column name is empty
  delta("", 6)
        ^^

expected ',' or the end, found 'foo'
  count(5) foo
           ^^^

unknown option 'foo'; known: partitioned, partitionAge, partitionCount, tupleCount, count, delta, time, punct, gap, calendar
  count(5), foo
            ^^^

expected an option, found the end; known: partitioned, partitionAge, partitionCount, tupleCount, count, delta, time, punct, gap, calendar
  count(5),
           ^

a tumbling window takes one policy, 'count' is one too many; leave this one out
  count(5), count(2)
            ^^^^^

'partitioned' is given twice; leave this one out
  count(5), partitioned, partitioned
                         ^^^^^^^^^^^

a window takes one partition eviction; leave this one out
  count(5), partitioned, tupleCount(2), partitionAge(3)
                                        ^^^^^^^^^^^^

expected a whole number, 1 or more, found '0'; write it as tupleCount(n)
  count(5), partitioned, tupleCount(0)
                                    ^

unknown option 'partitionedd'; did you mean 'partitioned'?
  count(5), partitionedd
            ^^^^^^^^^^^^

group by is no part of a window; use the option --group-by x
  count(3) group by x
           ^^^^^^^^^^

group by is no part of a window; use the option --group-by COLUMN
  count(3) group by
           ^^^^^^^^

punct takes at most 1 argument, found 2; write it as punct() or punct(column)
  punct(a, b)
  ^^^^^^^^^^^

expected ',' or ')', found '+'; write it as punct() or punct(column), and put a name with other characters in double quotes
  punct(a+b)
         ^

expected ',' or the end, found ')'
  delta(ts, 60))
               ^

gap takes 2 arguments, found 1; write it as gap(attribute, amount)
  gap(ts)
  ^^^^^^^

expected '(', found '['; write it as count(n)
  count[5]
       ^

unknown policy 'partitioned'; known: count, delta, time, punct, gap, calendar
  tumbling, partitioned
            ^^^^^^^^^^^

unknown unit '.3' in '2.5.3'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  delta(ts, 2.5.3)
            ^^^^^

this quote is never closed; a quote inside quotes is written twice
  count(5) -- 'x
              ^

unknown window 'größe'; known: tumbling, sliding, timeInterval, within, retain, partition by, count, delta, time, punct, gap, calendar
  größe(5)
  ^^^^^

unknown unit 'µs' in '1µs'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  time(1µs)
       ^^^
"""  # noqa: E501


@pytest.mark.parametrize(("text", "spec"), TUMBLING, ids=[text for text, _ in TUMBLING])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed


def test_a_count_has_64_bits() -> None:
    assert parse_window(f"count({2**63 - 1})") == Tumbling(Count(2**63 - 1))
    assert message(parse_window, f"count({2**63})").startswith("expected a whole number, 1 or more, found")
