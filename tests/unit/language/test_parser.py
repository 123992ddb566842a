"""The window language: texts read as their values, any value reads back from its text, and mistakes are shown whole."""

import datetime as dt
import json
import re
import subprocess
import sys
import zoneinfo
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.places import CASES
from support.spec_errors import blocks, message
from support.spec_texts import WINDOWS
from wincli.windowing.errors import ConfigError, SpecError
from wincli.windowing.language.clock_policies import Cron
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.enrichment import parse_enrichment
from wincli.windowing.language.joins import parse_join
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_let, parse_window
from wincli.windowing.language.row_policies import Change
from wincli.windowing.language.spec import (
    AggregateCall,
    AggregateExpression,
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
from wincli.windowing.language.tokens import column_text, decimal_text

# Mistakes: each is what a user sees, whole: the message, then the text as typed, then the caret.

READERS: dict[str, Callable[[str], object]] = {
    "aggregates": parse_aggregate,
    "distinct": parse_distinct,
    "durations": parse_duration,
    "enrichments": parse_enrichment,
    "joins": parse_join,
    "lets": parse_let,
}
"""What reads the texts of a file; those of others are windows."""


def mistakes() -> list[Any]:
    found = []
    for path in sorted((CASES / "language_mistakes").glob("*.txt")):
        read = READERS.get(path.stem, parse_window)
        found += [
            pytest.param(read, text, shown, id=f"{path.stem}: {text}")
            for text, shown in blocks(f"language_mistakes/{path.stem}")
        ]
    return found


@pytest.mark.parametrize(("read", "text", "printed"), mistakes())
def test_a_mistake_is_shown_with_a_caret_and_a_remedy(read: Callable[[str], object], text: str, printed: str) -> None:
    assert message(read, text) == printed


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text(text: str) -> None:
    shown = "  " + text.replace("\n", " ")
    assert message(parse_window, text) == f"the window spec is empty; write for example delta(ts, 60)\n{shown}\n  ^"
    assert message(parse_aggregate, text) == f"the aggregate is empty; write for example sum(amount)\n{shown}\n  ^"
    assert message(parse_duration, text).startswith("expected a number, found the end; write it like 60, 1.5s, ")
    assert message(parse_enrichment, text).startswith(
        "an enrichment begins with NAME=PATH; expected a name; write it as"
    )
    assert message(parse_let, text).startswith("a new column needs a name; write it as NAME=EXPRESSION")


def test_a_spec_over_several_lines_is_shown_on_one_so_that_the_caret_is_right() -> None:
    assert message(parse_window, "sliding,\n\tcount(x)") == (
        "expected a number, found 'x'; write it as count(n)\n  sliding,  count(x)\n                  ^"
    )


@pytest.mark.parametrize("number", ["1e401", "1e-401", "9" * 500, "1e99999999999", "9" * 5000, "1e-400ns"])
def test_a_number_that_would_not_fit_is_refused_at_once(number: str) -> None:
    texts = [f"delta(a, {number})", *(f"{before}{number}" for before in ("within ", "retain ") if number[0] == "9")]
    for text in texts:
        assert message(parse_window, text).startswith("a number has more than 400 digits on one side")


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("session(ts, 30m)", "gap(ts, 30m)"),
        ("hop(1h, 5m)", "timeInterval, intervalDuration(1h), creationPeriod(5m)"),
        ("TUMBLE(ts, 5m)", "time(5m)"),
    ],
)
def test_windows_of_sql_are_answered_with_one_of_the_window_language(text: str, here: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_window(text)
    assert caught.value.do == f"here it is written {here}"
    parse_window(here)


# Windows


@pytest.mark.parametrize(("text", "spec"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


CANONICAL = {
    "count(5)": "tumbling, count(5)",
    'delta("my ts", .5)': 'tumbling, delta("my ts", 0.5)',
    "time(1ns)": "tumbling, time(0.000000001)",
    "punct(last)": "tumbling, punct(last)",
    "GAP(ts, 2s), Partitioned": "tumbling, gap(ts, 2), partitioned",
    'CHANGE("a","b c")': 'tumbling, change(a, "b c")',
    "calendar(week)": "tumbling, calendar(week@mon)",
    'calendar(week@sun, "Europe/Paris", 07:00)': 'tumbling, calendar(week@sun, tz="Europe/Paris", at=07:00)',
    "calendar(year, at=23:59:30)": "tumbling, calendar(year, at=23:59:30)",
    "cron('0  12 * * mon', UTC)": 'tumbling, cron("0 12 * * mon")',
    "sliding, count(0)": "sliding, count(0), count(1)",
    "timeInterval, intervalDuration(3)": (
        "timeInterval, intervalDuration(3), creationPeriod(3), discardAge(0), intervalOffset(0)"
    ),
    'partition by "a", "b c" within 2s': 'partition by a, "b c" within 2',
    "within 1.5 every 500ms retain 2": "within 1.5 every 0.5 retain 2",
}


def windows_of_cases() -> list[str]:
    texts = [(CASES / f"{name}_windows.json").read_text() for name in ("spl", "batched")]
    return sorted({case["window"] for text in texts for case in json.loads(text) if "window" in case})


REFUSED = {
    "partition by symbol, floor(volume)/100 retain 1": "partition by takes columns, not expressions",
    "partition by x retain 2 group by x": "group by is no part of a window; use the option --group-by x",
    "retain 3 group by x": "group by is no part of a window; use the option --group-by x",
    "within 10.0 every 10.0 group by x": "group by is no part of a window; use the option --group-by x",
}


@pytest.mark.parametrize("text", [*CANONICAL, *windows_of_cases()])
def test_a_window_has_one_text(text: str) -> None:
    """Those of other tools' cases have no other form here, or their error."""
    if text in REFUSED:
        assert message(parse_window, text).startswith(REFUSED[text])
    else:
        canonical = CANONICAL.get(text, re.sub(r"\.0\b", "", text).replace("2u", "2"))
        assert str(parse_window(text)) == canonical
        assert parse_window(canonical) == parse_window(text)


def test_a_count_has_64_bits() -> None:
    assert parse_window(f"count({2**63 - 1})") == Tumbling(Count(2**63 - 1))
    assert message(parse_window, f"count({2**63})").startswith("expected a whole number, 1 or more, found")


def test_every_is_seconds_next_to_within_and_rows_next_to_retain() -> None:
    found = [parse_window(f"{clause} 5 every 2") for clause in ("within", "retain")]
    assert [type(each.every) for each in found if isinstance(each, Batched)] == [Fraction, int]


def test_a_third_has_no_decimal_text() -> None:
    with pytest.raises(ConfigError, match="the amount 1/3 of a window has no exact decimal text"):
        str(Tumbling(Time(Fraction(1, 3))))


DURATIONS = {
    "60": 60, "0": 0, " 1.5s ": Fraction(3, 2), "250ms": Fraction(1, 4), "100us": Fraction(1, 10_000),
    "5ns": Fraction(5, 10**9), "5m": 300, "2h": 7200, "1d": 86_400, "1w": 604_800, "1e3": 1000,
    "1.5e-3s": Fraction(3, 2000), ".1": Fraction(1, 10), "5min": 300, "5 minutes": 300, "1.5 hours": 5400,
    "2 d": 172_800, "1 second": 1, "250 milliseconds": Fraction(1, 4), "3us": Fraction(3, 10**6),
}  # fmt: skip


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_exact_seconds_also_in_windows(text: str) -> None:
    seconds = parse_duration(text)
    assert seconds == DURATIONS[text]
    if seconds:
        assert parse_window(f"time({text})") == Tumbling(Time(seconds))
        assert parse_window(f"within {text} every {text} retain 3") == Batched(seconds, seconds, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, name) for name in ("amount", "a.b_2", "größe", "時刻", "_x", "count")),
        *((name, f'"{name}"') for name in ("", "2nd", ".a", "user-id", "a b", "a\n", "'x'")),
        ('a"b', '"a""b"'),
    ],
)
def test_a_column_is_quoted_only_where_it_must_be(name: str, text: str) -> None:
    assert column_text(name) == text


@given(st.decimals(allow_nan=False, allow_infinity=False))
@example("0")
@example("-2.5")
@example("-0.05")
@example("0.000000000001")
@example("12500000000000000000.125")
def test_decimal_text_is_exact_and_has_no_digit_too_many(number: object) -> None:
    text = decimal_text(Fraction(str(number)))
    assert Fraction(text) == Fraction(str(number))
    assert re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", text)


# Aggregates and new columns

AGGREGATES = {
    "count()": "count=count()",
    "SUM(amount)": "sum_amount=sum(amount)",
    "spent = sum(amount)": "spent=sum(amount)",
    '"my name"=sum("Total, €")': '"my name"=sum("Total, €")',
    "arg_max(y, x)": "arg_max_y_x=arg_max(y, x)",
    "quantile(latency,0.95)": "quantile_latency_0.95=quantile(latency, 0.95)",
    "nth(x, -1)": '"nth_x_-1"=nth(x, -1)',
    "j=string_join(x, ', it''s ')": "j=string_join(x, ', it''s ')",
    "string_join(x, '')": "string_join_x_=string_join(x, '')",
    "string_join(x, ';')": "\"string_join_x_;\"=string_join(x, ';')",
    "stats.mine:Trimmed(x)": "Trimmed_x=stats.mine:Trimmed(x)",
    'a.b:f("my x")': '"f_my x"=a.b:f("my x")',
    "sum=sum(sum)": "sum=sum(sum)",
    # with expressions and filters
    "sum(price*items)": "sum_price_items=sum(price * items)",
    "spent = sum(price * items)": "spent=sum(price * items)",
    "count() where latency>500": "count=count() where latency > 500",
    "slow=count() where latency > 500 and not ok": "slow=count() where latency > 500 AND NOT ok",
    "max(x) WHERE state = 'where'": "max_x=max(x) where state = 'where'",
    "sum(x) filter (where x > 3)": "sum_x=sum(x) where x > 3",
    "slow=count() FILTER(WHERE (a) > 500 and f(a, b))": "slow=count() where a > 500 AND f(a, b)",
    "integral(s = 'up')": "integral_s_up=integral(s = 'up')",
    'last("my b".x)': 'last_my_b_x=last("my b".x)',
    'v=last(a."odd x")': 'v=last(a."odd x")',
    "locf(last(x) where ok)": "locf_last_x=locf(last(x) where ok)",
    "m=locf(a.b:f(x))": "m=locf(a.b:f(x))",
    "quantile(abs(x), 0.95)": "quantile_abs_x_0.95=quantile(abs(x), 0.95)",
    "mine:f(a, 2, 'b') where a > 1": "f_a_2_b=mine:f(a, 2, 'b') where a > 1",
    "mine:f(a + 1, 2) where a > 1": "f_a_1_2=mine:f(a + 1, 2) where a > 1",
    '"odd name"=max("a b" + 1)': '"odd name"=max("a b" + 1)',
    "first(case when x > 0 then x end)": "first_CASE_WHEN_x_0_THEN_x_END=first(CASE WHEN x > 0 THEN x END)",
    "sum(-x)": "sum_x=sum(-x)",
    "string_join(a || b, ', ')": "\"string_join_a_b_, \"=string_join(a || b, ', ')",
    # names of other tools
    "avg(x)": "mean_x=mean(x)",
    "AVG(x + 1)": "mean_x_1=mean(x + 1)",
    "average(x)": "mean_x=mean(x)",
    "variance(x)": "var_x=var(x)",
    "stdev(x)": "stddev_x=stddev(x)",
    "mine:avg(x)": "avg_x=mine:avg(x)",
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_an_aggregate_has_one_text_and_a_name_and_reads_back(text: str) -> None:
    call = parse_aggregate(text)
    assert isinstance(call, AggregateCall)
    assert str(call) == AGGREGATES[text]
    assert parse_aggregate(str(call)) == call


def test_arithmetic_has_each_call_once_under_a_name_of_its_own() -> None:
    item = parse_aggregate("share=100 * sum(x) / (sum(x) + count())")
    assert isinstance(item, AggregateExpression)
    assert [(each.name, each.function, each.arguments) for each in item.calls] == [
        ("=sum(x)", "sum", (Column("x"),)),
        ("=count()", "count", ()),
    ]
    assert str(item.expression) == '100 * "=sum(x)" / ("=sum(x)" + "=count()")'


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("share=(count() where ok and (x > 1)) / count()", ["count() where ok AND x > 1", "count()"]),
        (
            "share=count() filter (where ok and (x > 1)) / count() filter (where y)",
            ["count() where ok AND x > 1", "count() where y"],
        ),
    ],
)
def test_a_filter_ends_at_its_own_parenthesis_or_at_that_of_its_call(text: str, calls: list[str]) -> None:
    assert [each.text for each in parse_aggregate(text).calls] == calls


def test_a_new_column_has_a_name_and_an_expression() -> None:
    name, expression = parse_let(' "my column" = a+ b')
    assert (name, str(expression)) == ("my column", "a + b")


# Laws

KEYWORDS = ["tumbling", "within", "retain", "by", "with", "all", "Count", "partitioned", "ts", "größe", "a.b", "at"]
columns = st.sampled_from(KEYWORDS) | st.text(min_size=1, max_size=6)
decimals = st.builds(lambda n, places: Fraction(n, 10**places), st.integers(0, 10**12), st.integers(0, 12))
positive = decimals.filter(lambda amount: amount > 0)
counts = st.integers(1, 2**63 - 1)
deltas = st.builds(Delta, columns, decimals)
times = st.builds(Time, positive)
zones = st.sampled_from(sorted(zoneinfo.available_timezones()))
clocks = st.builds(dt.time, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
days = st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
calendars = st.builds(Calendar, st.sampled_from(["day", "month", "quarter", "year"]), zones, clocks) | st.builds(
    Calendar, st.just("week"), zones, clocks, days
)
evictions = (
    st.none()
    | st.builds(PartitionEviction, st.just("partitionAge"), positive)
    | st.builds(PartitionEviction, st.sampled_from(["partitionCount", "tupleCount"]), st.builds(Fraction, counts))
)
crons = st.builds(Cron, st.sampled_from(["59 23 * * 1-5", "*/5 0,12 1 jan *", "0 0 * * MON#1"]), zones)
changes = st.builds(Change, st.lists(columns, min_size=1, max_size=3, unique=True).map(tuple))
triggers = st.builds(Count, counts) | deltas | times
policies = (
    triggers | st.builds(Punct, st.none() | columns) | st.builds(Gap, columns, decimals) | calendars | crons | changes
)
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
    *re.findall(r"[a-zA-Z]+\(?", ",".join([*(text for text, _ in WINDOWS), *AGGREGATES])),
    *("week@mon", "UTC", "07:00", "25:00", "0", "1", "2.5", "-1", "1e3", "1e9999", "5m", "2u", "5x", ".5", "mod:f"),
    *('"Europe/Paris"', '"Europe"', '"a b"', '"a\nb"', "'text'", '"', "'"),
    *"()(),,,=:@*/-€²٣{}|?+.",
    *("->", "a = x", "last(a.x) > 1", "within 5", "match(a", "funnel(a = x"),
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


def test_parsing_needs_nothing_but_the_standard_library_and_cronsim_for_cron_alone() -> None:
    code = "import sys; before = {*sys.modules}\nimport wincli.windowing.language.parser as p\n"
    for window in ("count(3)", 'cron("0 0 * * *")'):
        code += f"p.parse_window({window!r}); print(*{{*sys.modules}} - before)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line, packages in zip(done.stdout.splitlines(), ({"wincli"}, {"wincli", "cronsim"}), strict=True):
        found = {name.partition(".")[0] for name in line.split() if not name.startswith("_")}
        assert found - sys.stdlib_module_names == packages
