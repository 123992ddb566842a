"""The window language over random specs and texts: what is printed reads back, and any text reads or is an error."""

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.spec_texts import AGGREGATES, WINDOWS
from wincli.windowing.errors import SpecError
from wincli.windowing.language.clock_policies import Cron
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window
from wincli.windowing.language.row_policies import Change
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
    *re.findall(r"[a-zA-Z]+\(?", ",".join(text for text, _ in (*WINDOWS, *AGGREGATES))),
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
