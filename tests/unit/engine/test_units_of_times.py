"""Times with a unit over columns of numbers: an integer has no unit, and a look at values knows epochs."""

from __future__ import annotations

import copy
import pickle
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import wincli
from wincli.conf.job import plain_amounts
from wincli.windowing.enrichment.binding import bind_enrichment
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.enrichment import parse_enrichment
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_duration, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.planning.validation import Epoch

BEGIN = 1_700_000_000
SECONDS = [0, 30, 100, 5000, 5001]
SCHEMA = pa.schema([("ts", pa.int64()), ("f", pa.float64()), ("d", pa.duration("s")), ("at", pa.timestamp("ms"))])
ADVICE = (
    'read it as a time, as with --schema "ts:timestamp(unix_ms)" (or unix, unix_us, unix_ns); '
    "or say it without a unit: {}, with which a state of earlier runs goes on"
)
WRITTEN = {
    "gap(ts, 1m)": ("1m", 60),
    "delta(ts, 1.5s)": ("1.5s", "1.5"),
    "delta(ts, 5 minutes)": ("5 minutes", 300),
    "time(1h)": ("1h", 3600),
    "count(3) or gap(ts, 1m)": ("1m", 60),
    "count(3) or time(1m)": ("1m", 60),
    "reaches(range(ts), 1m)": ("1m", 60),
    "sliding, time(1m)": ("1m", 60),
    "sliding, delta(ts, 1m), count(2)": ("1m", 60),
    "sliding, count(3), time(1m)": ("1m", 60),
    "sliding, count(3), delta(ts, 1m)": ("1m", 60),
    "within 1m": ("1m", 60),
    "within 60 every 250ms": ("250ms", "0.25"),
    "timeInterval, intervalDuration(1m)": ("1m", 60),
    "timeInterval, intervalDuration(60), creationPeriod(1m)": ("1m", 60),
    "timeInterval, intervalDuration(60), discardAge(1h)": ("1h", 3600),
    "timeInterval, intervalDuration(60), intervalOffset(5s)": ("5s", 5),
    "count(3), partitioned, partitionAge(1h)": ("1h", 3600),
}
FINE = ["gap(ts, 60)", "time(60)", "gap(at, 1m)", "gap(f, 1m)", "gap(ts, 0s)", "count(3)", "gap(d, 1m)"]


def plan(window: str, **options: Any) -> Plan:
    spec = parse_window(window)
    by_time = window.startswith("timeInterval")
    order = None if by_time or "(at" in window or "(d" in window else ["ts"]
    given = {"event_time": "ts"} if by_time else {}
    key = ["at"] if "partitioned" in window else []
    return make_plan(spec, SCHEMA, key, order, options=Options(**given, **options))


def refusal(window: str, **options: Any) -> str:
    with pytest.raises(ConfigError) as failure:
        plan(window, **options)
    return str(failure.value)


@pytest.mark.parametrize("window", WRITTEN)
def test_a_time_with_a_unit_over_an_integer_is_refused(window: str) -> None:
    written, number = WRITTEN[window]
    what = f"{written} is a time, and column 'ts' is int64, numbers without a unit; "
    assert refusal(window) == what + ADVICE.format(number)


@pytest.mark.parametrize("window", FINE)
def test_a_number_is_a_distance_and_a_time_goes_with_times_and_floats(window: str) -> None:
    plan(window)


@pytest.mark.parametrize(
    ("window", "options", "beginning"),
    [
        ("gap(ts, d)", {}, "d"),
        ("gap(ts, 2 * 1m)", {}, ""),
        ("gap(ts, 2 * previous(range(f), 1m))", {}, ""),
        ("timeInterval, intervalDuration(60)", {"lag": "5m"}, "--lag 5m"),
        ("timeInterval, intervalDuration(60)", {"min_gap": "5s"}, "--min-gap 5s"),
        ("time(60)", {"origin": "6h"}, "--origin 6h"),
    ],
)
def test_amounts_and_options_that_are_times_are_refused_over_an_integer(
    window: str, options: dict[str, str], beginning: str
) -> None:
    found = refusal(window, **{name: parse_duration(text) for name, text in options.items()})
    assert found.startswith(beginning)
    assert " is a time, and column 'ts' is int64" in found
    plan(window.replace("(ts, ", "(f, "), **dict.fromkeys(options, parse_duration("300")))


def test_a_tolerance_with_a_unit_is_refused_over_integer_orders() -> None:
    table = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
    rows = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
    bind_enrichment(parse_enrichment("e=x on k asof ts within 60"), rows, table)
    with pytest.raises(ConfigError, match="--enrich e: 1m is a time, and column 'ts' is int64"):
        bind_enrichment(parse_enrichment("e=x on k asof ts within 1m"), rows, table)


def test_the_unit_is_no_part_of_a_spec_nor_of_a_job() -> None:
    written, plain = parse_window("gap(ts, 1m)"), parse_window("gap(ts, 60)")
    assert (written, hash(written), str(written)) == (plain, hash(plain), str(plain))
    for same in (pickle.loads(pickle.dumps(written)), copy.deepcopy(written), copy.copy(written)):
        assert same == written
        assert same.distances[0].amount.written == "1m"  # type: ignore[union-attr]

    assert plain_amounts("window", "gap(ts, 1m)") == plain_amounts("window", "gap(ts, 60)")
    assert plain_amounts("lag", "5m") == "300"
    assert plain_amounts("origin", "1970-01-02") == plain_amounts("origin", "1d") == "86400"
    assert plain_amounts("key", ["user"]) == ["user"]


def of_seconds(begin: int, ticks: int, kind: pa.DataType) -> pa.Table:
    number = Decimal if pa.types.is_decimal(kind) else float if pa.types.is_floating(kind) else int
    return pa.table({"ts": pa.array([number((begin + each) * ticks) for each in SECONDS], kind)})


@pytest.mark.parametrize(("unit", "ticks"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(20, 0)])
def test_values_that_are_epochs_say_their_unit(unit: str, ticks: int, kind: pa.DataType) -> None:
    table = of_seconds(BEGIN, ticks, kind)
    cast = f'cast it to pa.timestamp("{unit}"); or say it without a unit: {60 * ticks} for {unit}'
    for call in (wincli.aggregate, lambda rows, window: wincli.aggregate_stream(rows, window).read_all()):
        with pytest.raises(ConfigError) as failure:
            call(table, "gap(ts, 1m)")
        if call is wincli.aggregate or not pa.types.is_integer(kind):  # a stream of integers fails before its rows
            assert cast in str(failure.value)


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(20, 0)])
@pytest.mark.parametrize("begin", [0, BEGIN])
def test_floats_and_decimals_in_seconds_take_times(kind: pa.DataType, begin: int) -> None:
    table = of_seconds(begin, 1, kind)
    assert wincli.aggregate(table, "gap(ts, 1m)")["count"].to_pylist() == [2, 1, 2]
    assert wincli.aggregate_stream(table, "gap(ts, 1m)").read_all()["count"].to_pylist() == [2, 1, 2]


def test_a_look_is_taken_only_where_a_time_meets_numbers() -> None:
    def look(column: str) -> Epoch | None:
        raise AssertionError(column)

    for window in ("gap(ts, 60)", "gap(f, 60)", "gap(at, 1m)"):
        make_plan(parse_window(window), SCHEMA, look=look)
    with pytest.raises(AssertionError, match="f"):
        make_plan(parse_window("gap(f, 1m)"), SCHEMA, look=look)
    assert wincli.aggregate(pa.table({"ts": [datetime(2026, 1, 1)]}), "gap(ts, 1m)").num_rows == 1
