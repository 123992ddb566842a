"""Texts of the window language, and what each reads as."""

import datetime as dt
from fractions import Fraction

from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.patterns import Concatenation, Repetition, Symbol
from wincli.windowing.language.spec import (
    AnyOf,
    Batched,
    Calendar,
    Changing,
    Count,
    Delta,
    From,
    Gap,
    Growing,
    PartitionEviction,
    Punct,
    Reaches,
    RowPattern,
    Sliding,
    Split,
    Time,
    TimeInterval,
    Tumbling,
    When,
    While,
)

TWO = Fraction(2)

WINDOWS = [
    (
        "MATCH(a+ b, a = x > 1, b = ok) within 5m, OVERLAPPING",
        RowPattern(
            Concatenation((Repetition(Symbol("a"), 1, None), Symbol("b"))),
            (("a", parse_expression("x > 1")), ("b", parse_expression("ok"))),
            Fraction(300),
            True,
        ),
    ),
    (
        "funnel(a = x > 1) within 0.5, partitioned",
        RowPattern(Symbol("a"), (("a", parse_expression("x > 1")),), Fraction(1, 2), False, True, True),
    ),
    ("count(4)", Tumbling(Count(4))),
    ("count(x)", Tumbling(Changing("count", None, "x"))),
    ("delta(ts, x)", Tumbling(Changing("delta", "ts", "x"))),
    ("GAP(ts, limit * 2)", Tumbling(Changing("gap", "ts", parse_expression("limit * 2")))),
    ("when(a)", Tumbling(When("a"))),
    ("while(latency > 500)", Tumbling(While(parse_expression("latency > 500")))),
    ("from(a = ',)', until=b)", Tumbling(From(parse_expression("a = ',)'"), "b"))),
    ("from(a) or SPLIT(b)", Tumbling(AnyOf((From("a"), Split("b"))))),
    ("split(abs(x - first(x)) > 2)", Tumbling(Split(parse_expression("abs(x - first(x)) > 2")))),
    ("from(a, until=sum(x) > 3)", Tumbling(From("a", parse_expression("sum(x) > 3")))),
    (
        "punct(abs(sum(x)) >= 2 * previous(abs(sum(x)), 100, .1))",
        Tumbling(Punct(parse_expression("abs(sum(x)) >= 2 * previous(abs(sum(x)), 100, .1)"))),
    ),
    ("reaches(sum(x), 1e3), partitioned", Tumbling(Reaches("sum", "x", Fraction(1000)), True)),
    ("gap(ts, 5m) OR count(3)", Tumbling(AnyOf((Gap("ts", Fraction(300)), Count(3))))),
    ("sliding, count(3), when(a)", Sliding(Count(3), When("a"))),
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
    (
        "count(3), tuplecount(4), partitioned",
        Tumbling(Count(3), True, PartitionEviction("tupleCount", Fraction(4))),
    ),
    ("count(3), partitionAge(1m)", Tumbling(Count(3), False, PartitionEviction("partitionAge", Fraction(60)))),
    ("calendar(day)", Tumbling(Calendar("day", "UTC", dt.time(0)))),
    ('calendar(day, "Europe/Paris")', Tumbling(Calendar("day", "Europe/Paris"))),
    ('calendar(Month, "Europe/Paris", 23:59)', Tumbling(Calendar("month", "Europe/Paris", dt.time(23, 59)))),
    ("calendar(year, at=23:59:30, tz='Asia/Tokyo')", Tumbling(Calendar("year", "Asia/Tokyo", dt.time(23, 59, 30)))),
    ('calendar(week@SUN, tz="Europe/Paris", at=07:00)', Tumbling(Calendar("week", "Europe/Paris", dt.time(7), "sun"))),
    ("calendar(week, UTC)", Tumbling(Calendar("week"))),
    ("time(10m) EVERY 120", Tumbling(Growing(Time(Fraction(600)), Fraction(120)))),
    ("tumbling, calendar(day) every 1.5h, partitioned", Tumbling(Growing(Calendar("day"), Fraction(5400)), True)),
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
