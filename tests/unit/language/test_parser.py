"""The window language read from text: what reads, what it reads as, and each mistake's whole message."""

import datetime as dt
import json
import re
import subprocess
import sys
import zoneinfo
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.places import CASES
from wincli.windowing.errors import SpecError
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window
from wincli.windowing.language.spec import (
    AggregateCall,
    Batched,
    Calendar,
    Column,
    Count,
    Delta,
    Gap,
    PartitionEviction,
    Punct,
    Sliding,
    Time,
    TimeInterval,
    Tumbling,
    WindowSpec,
    default_name,
)

TWO = Fraction(2)

READS = [
    ("count(4)", Tumbling(Count(4))),
    ("tumbling,count(1e3)", Tumbling(Count(1000))),
    ("  TUMBLING ,\n Delta ( ts , 60 )  ", Tumbling(Delta("ts", Fraction(60)))),
    ("delta(ts, 1.5m)", Tumbling(Delta("ts", Fraction(90)))),
    ("delta(u, 2u)", Tumbling(Delta("u", TWO))),
    ("delta(a, 0)", Tumbling(Delta("a", Fraction(0)))),
    ('delta("my ""ts""", .5)', Tumbling(Delta('my "ts"', Fraction(1, 2)))),
    ("delta(größe.x_1, 1)", Tumbling(Delta("größe.x_1", Fraction(1)))),
    ("delta(delta, 1)", Tumbling(Delta("delta", Fraction(1)))),
    ("punct(partitioned)", Tumbling(Punct("partitioned"))),
    ('punct("don\'t")', Tumbling(Punct("don't"))),
    ("gap(ts, 250ms)", Tumbling(Gap("ts", Fraction(1, 4)))),
    ("time(5ns), PARTITIONED", Tumbling(Time(Fraction(5, 10**9)), True)),
    ("punct()", Tumbling(Punct())),
    ("calendar(day)", Tumbling(Calendar("day", "UTC", dt.time(0)))),
    ('calendar(day, "Europe/Paris")', Tumbling(Calendar("day", "Europe/Paris"))),
    ('calendar(Month, "Europe/Paris", 23:59)', Tumbling(Calendar("month", "Europe/Paris", dt.time(23, 59)))),
    ("calendar(year, at=23:59:30, tz='Asia/Tokyo')", Tumbling(Calendar("year", "Asia/Tokyo", dt.time(23, 59, 30)))),
    ('calendar(week@SUN, tz="Europe/Paris", at=07:00)', Tumbling(Calendar("week", "Europe/Paris", dt.time(7), "sun"))),
    ("calendar(week, UTC)", Tumbling(Calendar("week"))),
    (
        "count(3), tuplecount(4), partitioned",
        Tumbling(Count(3), True, PartitionEviction("tupleCount", Fraction(4))),
    ),
    ("count(3), partitionAge(1m)", Tumbling(Count(3), False, PartitionEviction("partitionAge", Fraction(60)))),
    ("sliding, count(10)", Sliding(Count(10), Count(1))),
    ("sliding, count(0), count(1)", Sliding(Count(0), Count(1))),
    ("sliding, delta(a, 2), partitioned", Sliding(Delta("a", TWO), Count(1), True)),
    (
        "sliding, time(2s), delta(a, 1), partitioned, partitionCount(1)",
        Sliding(Time(TWO), Delta("a", Fraction(1)), True, PartitionEviction("partitionCount", Fraction(1))),
    ),
    ("timeInterval, intervalDuration(1h)", TimeInterval(Fraction(3600), Fraction(3600))),
    (
        "timeinterval, partitioned, discardAge(5), creationPeriod(1.1), intervalDuration(3), intervalOffset(0.2)",
        TimeInterval(Fraction(3), Fraction("1.1"), Fraction(5), Fraction("0.2"), True),
    ),
    ("within 1.5 every 500ms", Batched(within=Fraction("1.5"), every=Fraction(1, 2))),
    ("within 1d retain 3 with unique k", Batched(within=Fraction(86400), retain=3, unique="k")),
    ("WITHIN 5 Every 2 Retain 3", Batched(within=Fraction(5), every=TWO, retain=3)),
    ("retain 2 every 3 with unique unique", Batched(retain=2, every=3, unique="unique")),
    ('partition by by, "a b" , within within 5', Batched(within=Fraction(5), partition_by=("by", "a b", "within"))),
    ("retain all", Batched(retain_all=True)),
]

AGGREGATES = [
    ("count()", AggregateCall("count", "count", ())),
    ("SUM(amount)", AggregateCall("sum_amount", "sum", (Column("amount"),))),
    ("spent = sum(amount)", AggregateCall("spent", "sum", (Column("amount"),))),
    ('"my name"=sum("Total, €")', AggregateCall("my name", "sum", (Column("Total, €"),))),
    (
        "quantile(latency,0.95)",
        AggregateCall("quantile_latency_0.95", "quantile", (Column("latency"), Fraction("0.95"))),
    ),
    ("nth(x, -1)", AggregateCall("nth_x_-1", "nth", (Column("x"), Fraction(-1)))),
    ("j=string_join(x, ', it''s ')", AggregateCall("j", "string_join", (Column("x"), ", it's "))),
    ("string_join(x, '')", AggregateCall("string_join_x_", "string_join", (Column("x"), ""))),
    ("stats.mine:Trimmed(x)", AggregateCall("Trimmed_x", "stats.mine:Trimmed", (Column("x"),))),
    ("sum=sum(sum)", AggregateCall("sum", "sum", (Column("sum"),))),
]

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
WINDOW_MISTAKES = """\
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

unknown window 'timeIntervl'; did you mean 'timeInterval'?
  timeIntervl, intervalDuration(3)
  ^^^^^^^^^^^

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

punct takes at most 1 argument, found 2; write it as punct() or punct(column)
  punct(a, b)
  ^^^^^^^^^^^

expected ',' or ')', found '+'; write it as punct() or punct(column), and put a name with other characters in double quotes
  punct(a+b)
         ^

calendar takes 1 to 3 arguments, found 0; write it as calendar(day, "Europe/Paris", 23:59)
  calendar()
  ^^^^^^^^^^

unknown calendar unit 'dya'; did you mean 'day'?
  calendar(dya)
           ^^^

unknown time zone 'Europe/Pari'; did you mean 'Europe/Paris'?
  calendar(day, "Europe/Pari")
                ^^^^^^^^^^^^^

expected ',' or ')', found '/'; write it as calendar(day, "Europe/Paris", 23:59), and put a name with other characters in double quotes
  calendar(day, Europe/Paris)
                      ^

expected a time of day, found '25:00'; write it like 07:00 or 23:59:30
  calendar(day, "Europe/Paris", 25:00)
                                ^^^^^

expected a time of day, found '7:00'; write it like 07:00 or 23:59:30
  calendar(day, at=7:00)
                   ^^^^

a day does not begin on a weekday; write day
  calendar(day@mon)
           ^^^^^^^

unknown weekday in 'week@monday'; did you mean 'mon'?
  calendar(week@monday)
           ^^^^^^^^^^^

there is no argument called 'zone'; known: unit, tz, at
  calendar(day, zone="UTC")
                ^^^^

calendar needs a unit; write it as calendar(day, "Europe/Paris", 23:59)
  calendar(tz="UTC")
              ^^^^^

the argument 'tz' is given twice; write it as calendar(day, "Europe/Paris", 23:59)
  calendar(day, "UTC", tz="UTC")
                       ^^

unknown time zone 'Europe'; did you mean 'Europe/Rome'?
  calendar(day,"Europe")
               ^^^^^^^^

expected ',', found the end; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval
              ^

expected a duration greater than 0, found '0'; write it as intervalDuration(duration)
  timeInterval, intervalDuration(0)
                                 ^

'intervalDuration' is given twice; leave this one out
  timeInterval, intervalDuration(3), intervalDuration(3)
                                     ^^^^^^^^^^^^^^^^

unknown setting 'intervalDuraton'; did you mean 'intervalDuration'?
  timeInterval, intervalDuraton(3)
                ^^^^^^^^^^^^^^^

timeInterval needs an intervalDuration; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval, creationPeriod(3)
  ^^^^^^^^^^^^

unknown setting 'tupleCount'; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3), tupleCount(3)
                                     ^^^^^^^^^^

expected ',', found 'intervalDuration'; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval intervalDuration(3)
               ^^^^^^^^^^^^^^^^

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

unknown option 'dleta'; did you mean 'delta'?
  sliding, count(10), count(5), dleta(a, 2)
                                ^^^^^

unknown time zone ''; write it like "Europe/Paris"
  calendar(day, "")
                ^^

expected a time zone, found '7'; write it like "Europe/Paris"
  calendar(day, 7)
                ^

unknown calendar unit 'hour'; known: day, week, month, year
  calendar(hour)
           ^^^^

unknown calendar unit '"day"'; did you mean 'day'?
  calendar("day")
           ^^^^^

expected 'unique' after 'with', found 'uniqe'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  within 5 with uniqe k
                ^^^^^

expected the end, found ';'; the order is [partition by K] within D [every P] [retain N] [with unique K]
  within 5; retain 2
          ^

unknown window 'Partion'; did you mean 'partition by'?
  Partion by k retain 2
  ^^^^^^^

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

a sliding window takes an eviction and a trigger, 'count' is one too many; leave this one out
  sliding, count(2), partitioned, count(1)
                                  ^^^^^

expected a duration greater than 0, found '0'; write it as time(duration)
  sliding, time(0), count(1)
                ^

expected a whole number, 0 or more, found '-1'; write it as count(n)
  sliding, count(-1)
                 ^^

expected a duration of 0 or more, found '-1'; write it as discardAge(duration)
  timeInterval, intervalDuration(3), discardAge(-1)
                                                ^^

expected a setting, found '5'; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3), 5
                                     ^

expected a setting, found the end; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3),
                                    ^

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

AGGREGATE_MISTAKES = """\
expected '(', found the end; write it as [NAME=]FUNCTION(COLUMN, ..)
  count
       ^

this parenthesis is never closed; write it as [NAME=]FUNCTION(COLUMN, ..)
  sum(amount
     ^

expected '(', found 'amount'; write it as [NAME=]FUNCTION(COLUMN, ..)
  sum amount
      ^^^^^^

expected the end, found 'b'; give one aggregate at a time
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

expected ',' or ')', found '*'; write it as [NAME=]FUNCTION(COLUMN, ..), and put a name with other characters in double quotes
  sum(a*b)
       ^

expected ',' or ')', found '('; write it as [NAME=]FUNCTION(COLUMN, ..), and put a name with other characters in double quotes
  sum(abs(x))
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

expected '(', found '='; write it as [NAME=]FUNCTION(COLUMN, ..)
  x=y=sum(a)
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

expected ',' or ')', found '-'; write it as [NAME=]FUNCTION(COLUMN, ..), and put a name with other characters in double quotes
  sum(user-id)
          ^

expected '(', found ':'; write it as [NAME=]FUNCTION(COLUMN, ..)
  a:b:c(x)
     ^

expected ',' or ')', found ';'; write it as [NAME=]FUNCTION(COLUMN, ..), and put a name with other characters in double quotes
  sum(x;y)
       ^
"""  # noqa: E501

DURATION_MISTAKES = """\
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


def mistakes(table: str) -> list[object]:
    blocks = table.strip("\n").split("\n\n")
    return [pytest.param(block.split("\n")[1][2:], block, id=block.split("\n")[1].strip()) for block in blocks]


def message(parse: Callable[[str], object], text: str) -> str:
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)


@pytest.mark.parametrize(("text", "spec"), READS, ids=[text for text, _ in READS])
def test_a_window_reads_as(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "call"), AGGREGATES, ids=[text for text, _ in AGGREGATES])
def test_an_aggregate_reads_as(text: str, call: AggregateCall) -> None:
    assert parse_aggregate(text) == call
    assert parse_aggregate(str(call)) == call


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_a_duration_is_exact_seconds(text: str, seconds: Fraction) -> None:
    assert parse_duration(text) == seconds


def test_every_is_seconds_next_to_within_and_rows_next_to_retain() -> None:
    within, retain = parse_window("within 5 every 2"), parse_window("retain 5 every 2")
    assert isinstance(within, Batched)
    assert isinstance(retain, Batched)
    assert (type(within.every), type(retain.every)) == (Fraction, int)


@pytest.mark.parametrize(("text", "printed"), mistakes(WINDOW_MISTAKES))
def test_the_message_of_a_mistaken_window(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed


@pytest.mark.parametrize(("text", "printed"), mistakes(AGGREGATE_MISTAKES))
def test_the_message_of_a_mistaken_aggregate(text: str, printed: str) -> None:
    assert message(parse_aggregate, text) == printed


@pytest.mark.parametrize(("text", "printed"), mistakes(DURATION_MISTAKES))
def test_the_message_of_a_mistaken_duration(text: str, printed: str) -> None:
    assert message(parse_duration, text) == printed


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text(text: str) -> None:
    shown = "  " + text.replace("\n", " ")
    assert message(parse_window, text) == f"the window spec is empty; write for example delta(ts, 60)\n{shown}\n  ^"
    assert message(parse_aggregate, text) == f"the aggregate is empty; write for example sum(amount)\n{shown}\n  ^"
    assert message(parse_duration, text).startswith("expected a number, found the end; write it like 60, 1.5s, ")


def test_a_spec_over_several_lines_is_shown_on_one_so_that_the_caret_is_right() -> None:
    assert message(parse_window, "sliding,\n\tcount(x)") == (
        "expected a number, found 'x'; write it as count(n)\n  sliding,  count(x)\n                  ^"
    )


@pytest.mark.parametrize("number", ["1e401", "1e-401", "9" * 500, "1e99999999999", "9" * 5000, "1e-400ns"])
def test_a_number_that_would_not_fit_is_refused_at_once(number: str) -> None:
    assert message(parse_window, f"delta(a, {number})").startswith("a number has more than 400 digits on one side")


def test_a_count_has_64_bits() -> None:
    assert parse_window(f"count({2**63 - 1})") == Tumbling(Count(2**63 - 1))
    assert message(parse_window, f"count({2**63})").startswith("expected a whole number, 1 or more, found")


def windows_of(path: Path) -> list[str]:
    return [case["window"] for case in json.loads(path.read_text()) if "window" in case]


REFUSED = {
    "partition by symbol, floor(volume)/100 retain 1": "partition by takes columns, not expressions",
    "partition by x retain 2 group by x": "group by is no part of a window; use the option --group-by x",
    "retain 3 group by x": "group by is no part of a window; use the option --group-by x",
    "within 10.0 every 10.0 group by x": "group by is no part of a window; use the option --group-by x",
}


@pytest.mark.parametrize("text", sorted({*windows_of(CASES / "spl_windows.json")}))
def test_every_window_of_the_spl_cases_reads(text: str) -> None:
    spec = parse_window(text)
    assert parse_window(str(spec)) == spec
    assert str(spec) == text.replace(".0)", ")").replace("2u", "2")


@pytest.mark.parametrize("text", sorted({*windows_of(CASES / "batched_windows.json")}))
def test_every_window_of_the_batched_cases_reads_or_says_why(text: str) -> None:
    if text in REFUSED:
        assert message(parse_window, text).startswith(REFUSED[text])
    else:
        assert str(parse_window(text)) == text.replace(".0", "")


def test_parsing_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = {*sys.modules}; import wincli.windowing.language.parser; print(*{*sys.modules} - before)"
    )
    root = CASES.parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    packages = {name.partition(".")[0] for name in done.stdout.split() if not name.startswith("_")}
    assert packages - sys.stdlib_module_names == {"wincli"}


# Laws

KEYWORDS = ["tumbling", "within", "retain", "by", "with", "all", "Count", "partitioned", "ts", "größe", "a.b", "at"]
columns = st.sampled_from(KEYWORDS) | st.text(min_size=1, max_size=6)
decimals = st.builds(lambda n, places: Fraction(n, 10**places), st.integers(0, 10**12), st.integers(0, 12))
positive = decimals.filter(lambda amount: amount > 0)
counts = st.integers(1, 2**63 - 1)
deltas = st.builds(Delta, columns, decimals)
times = st.builds(Time, positive)
zones = st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Etc/GMT+5", "Asia/Kathmandu"])
clocks = st.builds(dt.time, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
days = st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
calendars = st.builds(Calendar, st.sampled_from(["day", "month", "year"]), zones, clocks) | st.builds(
    Calendar, st.just("week"), zones, clocks, days
)
evictions = (
    st.none()
    | st.builds(PartitionEviction, st.just("partitionAge"), positive)
    | st.builds(PartitionEviction, st.sampled_from(["partitionCount", "tupleCount"]), st.builds(Fraction, counts))
)
triggers = st.builds(Count, counts) | deltas | times
policies = triggers | st.builds(Punct, st.none() | columns) | st.builds(Gap, columns, decimals) | calendars
keys = st.lists(columns, max_size=3).map(tuple)
batched = (
    st.builds(Batched, positive, st.none() | positive, st.none() | counts, st.just(False), st.none() | columns, keys)
    | st.builds(Batched, st.none(), st.none() | counts, counts, st.just(False), st.none() | columns, keys)
    | st.just(Batched(retain_all=True))
)
specs = (
    st.builds(Tumbling, policies, st.booleans(), evictions)
    | st.builds(Sliding, triggers | st.just(Count(0)), triggers, st.booleans(), evictions)
    | st.builds(TimeInterval, positive, positive, decimals, decimals, st.booleans())
    | batched
)
arguments = columns.map(Column) | st.builds(lambda a, sign: a * sign, decimals, st.sampled_from([1, -1])) | st.text()
functions = st.sampled_from(["count", "sum", "string_join", "stats.mine:Trimmed", "a:b"])
calls = st.builds(AggregateCall, columns, functions, st.lists(arguments, max_size=3).map(tuple))

PIECES = [
    *KEYWORDS,
    *re.findall(r"[a-zA-Z]+\(?", ",".join([*(text for text, _ in READS), *(text for text, _ in AGGREGATES)])),
    *("week@mon", "UTC", "07:00", "25:00", "0", "1", "2.5", "-1", "1e3", "1e9999", "5m", "2u", "5x", ".5", "mod:f"),
    *('"Europe/Paris"', '"Europe"', '"a b"', '"a\nb"', "'text'", '"', "'"),
    *"()(),,,=:@*/-€²٣",
]
texts = st.text() | st.lists(st.sampled_from([*PIECES, " ", "\n"]), max_size=14).map(" ".join)


@given(specs)
def test_a_window_reads_back_from_its_canonical_text(spec: WindowSpec) -> None:
    assert parse_window(str(spec)) == spec


@given(calls)
def test_an_aggregate_reads_back_from_its_text(call: AggregateCall) -> None:
    assert parse_aggregate(str(call)) == call
    unnamed = str(call).partition("=")[2] if call.name in KEYWORDS else None
    if unnamed is not None:
        assert parse_aggregate(unnamed).name == default_name(call.function, call.arguments)


@pytest.mark.parametrize("parse", [parse_window, parse_aggregate, parse_duration])
@given(text=texts)
@example(text="calendar(day, '\0')")
@example(text='calendar(day, "../UTC")')
@example(text='calendar(day, "tzdata.zi")')
@example(text="count('")
@example(text="\ud800(1)")
def test_any_text_reads_or_is_a_spec_error_inside_it(parse: Callable[[str], object], text: str) -> None:
    try:
        read = parse(text)
    except SpecError as caught:
        error = caught
    else:
        assert parse(text) == read
        return
    assert 0 <= error.span.start <= error.span.stop <= len(text) == len(error.source)
    assert len(str(error).splitlines()) == 3
    assert error.what.isprintable()
    assert error.do is None or error.do.isprintable()


@given(zone=st.sampled_from(sorted(zoneinfo.available_timezones())))
def test_every_zone_reads(zone: str) -> None:
    assert parse_window(f'calendar(day, "{zone}")') == Tumbling(Calendar("day", zone))
