"""Nights whose columns get wider types, under many windows: a state gets these, and N nights are one run to the bit."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from support.day_results import put_day, span
from support.in_process import done

DAY = dt.timedelta(1)
FIRST = dt.date(2026, 11, 1)
SUMS = ("-a", "n=count()", "-a", "s=sum(x)", "-a", "l=collect(x)")
SHOWN = ("n", "s", "l")

WINDOWS: Mapping[str, Sequence[str]] = {
    "gap": ("-w", "gap(ts, 3h)", "--order-by", "ts", *SUMS),
    "time": ("-w", "time(5h)", "--order-by", "ts", *SUMS),
    "delta": ("-w", "delta(x, 3)", "--order-by", "ts", *SUMS),
    "count": ("-w", "count(4)", "--order-by", "ts", *SUMS),
    "sliding": ("-w", "sliding, delta(x, 5), delta(x, 2)", "--order-by", "ts", *SUMS),
    "sliding time": ("-w", "sliding, time(7h), time(2h)", "--order-by", "ts", *SUMS),
    "event time": (
        *("-w", "timeInterval, intervalDuration(6h), creationPeriod(3h), discardAge(4h)", "--event-time", "ts"),
        *("--lag", "2h", *SUMS),
    ),
    "ordered event time": ("-w", "timeInterval, intervalDuration(6h)", "--event-time", "ts", "--order-by", "ts", *SUMS),
    "arrival": ("-w", "count(5)", "--order-by", "arrival", *SUMS),
    "lag": ("-w", "gap(ts, 3h)", *SUMS, "-a", "d=sum(x - lag(x))", "--let", "y=x*2", "-a", "t=sum(y)"),
    "rows": ("-w", "gap(ts, 3h)", "--emit", "rows"),
    "eviction": ("-w", "count(3), partitionAge(9h)", "--order-by", "ts", *SUMS),
    "filter": ("-w", "gap(ts, 3h)", "--where", "x > 1", *SUMS),
}

KEY = ("-k", "user")
US, NS, MS = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms")
Types = tuple[pa.DataType, pa.DataType, pa.DataType]
"""Of ``ts``, of ``x`` and of the key."""
DRIFTS: Mapping[str, Sequence[Types]] = {
    "ms, us, ns": [(MS, pa.int64(), pa.int64()), (US, pa.int64(), pa.int64()), (NS, pa.int64(), pa.int64())],
    "ns, ms, us": [(NS, pa.int8(), pa.int8()), (MS, pa.int16(), pa.int32()), (US, pa.int64(), pa.int64())],
    "ints to floats": [(US, pa.int32(), pa.int32()), (US, pa.float64(), pa.float64()), (US, pa.int8(), pa.int64())],
    "decimals": [
        (US, pa.int32(), pa.string()),
        (US, pa.decimal128(12, 2), pa.dictionary(pa.int32(), pa.string())),
        (US, pa.decimal128(18, 4), pa.large_string()),
    ],
    "zones": [
        (pa.timestamp("us", "Europe/Paris"), pa.float32(), pa.dictionary(pa.int8(), pa.string())),
        (pa.timestamp("ms", "UTC"), pa.float64(), pa.string()),
        (pa.timestamp("ns", "America/New_York"), pa.float32(), pa.string()),
    ],
    "whole numbers as a clock": [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int64(), pa.int64()),
        (pa.float64(), pa.float64(), pa.int64()),
    ],
}
CHOSEN = [
    *((window, KEY, drift) for at, window in enumerate(WINDOWS) for drift in list(DRIFTS)[at % 2 :: 2]),
    *((window, (), drift) for at, window in enumerate(WINDOWS) for drift in list(DRIFTS)[at % 3 :: 3]),
]
"""Each window with half of the drifts, and without a key with a third."""
CASES = [
    pytest.param(*each, marks=() if at % 2 == 0 else pytest.mark.nightly)
    for at, each in enumerate(each for each in CHOSEN if each[:2] != ("eviction", ()))  # an eviction needs a key
]


def night(number: int, types: Types) -> pa.Table:
    """Return the rows of a night, every 50 minutes, with keys that go on from night to night."""
    begin = dt.datetime.combine(FIRST + number * DAY, dt.time())
    count = 26
    at = pa.array([begin + index * dt.timedelta(minutes=50) for index in range(count)], pa.timestamp("s"))
    ts, x, key = types
    clock = at.cast(pa.int64()) if not pa.types.is_timestamp(ts) else at.cast(pa.timestamp(ts.unit))
    if pa.types.is_timestamp(ts) and ts.tz:
        clock = clock.cast(pa.timestamp(ts.unit, "UTC"))
    values = pa.array([(7 * index + number) % 11 for index in range(count)])
    if pa.types.is_floating(x):
        values = pa.compute.add(values.cast(pa.float64()), 0.25)
    keys = pa.array([1 + index % 3 for index in range(count)])
    texts = keys.cast(pa.string())
    if pa.types.is_decimal(x):
        values = values.cast(pa.decimal128(38, x.scale))
    own = keys.cast(key) if pa.types.is_integer(key) or pa.types.is_floating(key) else texts.cast(key)
    if pa.types.is_dictionary(key):
        own = texts.dictionary_encode().cast(key)
    return pa.table({"ts": clock.cast(ts), "x": values.cast(x), "user": own})


def flat(value: Any) -> Any:
    """Return a value in a form that is the same in every unit, zone and width of a type."""
    if isinstance(value, list):
        return [flat(each) for each in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat() if value.tzinfo else value.isoformat()
    return float(value) if isinstance(value, int) or hasattr(value, "as_tuple") else value


def result(out: Path) -> list[str]:
    rows: list[dict[str, Any]] = []
    for part in sorted(out.rglob("part-*.parquet")):
        rows += parquet.read_table(part, partitioning=None).to_pylist()
    left_out = ("_pos", "_mark", "_row", "_step", "dt")
    return sorted(repr({name: flat(value) for name, value in row.items() if name not in left_out}) for row in rows)


@pytest.mark.parametrize(("window", "key", "drift"), CASES)
def test_nights_of_wider_types_are_one_run(tmp_path: Path, drift: str, window: str, key: Sequence[str]) -> None:
    job = [*WINDOWS[window], *key]
    if drift == "whole numbers as a clock":
        job = [re.sub(r"\b(\d+)h\b", lambda hours: str(3600 * int(hours[1])), word) for word in job]
    for number, types in enumerate(DRIFTS[drift]):
        parquet.write_table(night(number, types), tmp_path / f"{number}.parquet")
    for number in range(len(DRIFTS[drift])):
        end = ("--at-end", "flush") if number == len(DRIFTS[drift]) - 1 else ()
        out = f"out/{number}"
        done(tmp_path, "run", *job, *end, "--state", "st", f"{number}.parquet", out)
    done(tmp_path, "run", *job, "*.parquet", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one") != []


def run_range(folder: Path, first: int, count: int, *more: str) -> None:
    days = span(1 + first, first + count)
    done(folder, "run", *WINDOWS["gap"], "-k", "user", *days, "--state", "st", *more, "log", "out")


@pytest.mark.parametrize("drift", [name for name in DRIFTS if name != "whole numbers as a clock"])
def test_late_rows_and_corrections_of_wider_types_begin_from_the_types_of_the_unit_before(
    tmp_path: Path, drift: str
) -> None:
    nights = [night(number, types) for number, types in enumerate(DRIFTS[drift])]
    late, unit = nights[2].slice(5, 4), nights[2]["ts"].type.unit
    ticks = late["ts"].cast(pa.int64()).to_numpy() - 2 * 86400 * 10 ** {"ms": 3, "us": 6, "ns": 9}[unit]
    late = late.set_column(0, "ts", pa.array(ticks).cast(late["ts"].type))
    for number, table in enumerate([*nights[:2], pa.concat_tables([nights[2], late])]):
        put_day(tmp_path, 1 + number, table)
        run_range(tmp_path, number, 1, "--late", "redo", *(("--at-end", "flush") if number == 2 else ()))
    done(tmp_path, "run", *WINDOWS["gap"], "-k", "user", "log", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one") != []
    put_day(tmp_path, 1, nights[0].slice(0, 20))
    run_range(tmp_path, 0, 3, "--late", "redo")
    run_range(tmp_path, 1, 1, "--redo")
    run_range(tmp_path, 2, 1, "--late", "redo", "--redo", "--at-end", "flush")
    done(tmp_path, "run", *WINDOWS["gap"], "-k", "user", "--mode", "overwrite", "log", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one") != []


@pytest.mark.parametrize("key", [(), ("-k", "k")], ids=["without a key", "with a key"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nights_without_values_go_on_with_the_rows_before(tmp_path: Path, depth: int, key: Sequence[str]) -> None:
    """The rows before are structs in lists, of a column that has no type yet."""
    job = ("-w", "gap(ts, 3)", *key, "--order-by", "ts", "-a", f"d=sum(x - lag(x, {depth}))", "-a", "l=collect(lag(x))")
    for number, values in enumerate([pa.nulls(5), pa.nulls(5), pa.array([1, 2, 3, 4, 5]), pa.nulls(5)]):
        rows = pa.table({"ts": [number * 10 + at for at in range(5)], "k": list("ababa"), "x": values})
        parquet.write_table(rows, tmp_path / f"{number}.parquet")
        out = f"out/{number}"
        done(tmp_path, "run", *job, "--state", "st", f"{number}.parquet", out)
    done(tmp_path, "run", *job, "--at-end", "hold", "--state", "st-one", "*.parquet", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one") != []


def test_nights_in_order_of_a_duration_go_on(tmp_path: Path) -> None:
    job = ("-w", "count(2)", "--order-by", "v", "-a", "l=collect(z)")
    for number, unit in enumerate(["ms", "us"]):
        spans = pa.array([number * 10 + at for at in range(3)], pa.duration("s")).cast(pa.duration(unit))
        parquet.write_table(pa.table({"v": spans, "z": [1, 2, 3]}), tmp_path / f"{number}.parquet")
        done(tmp_path, "run", *job, "--state", "st", f"{number}.parquet", f"out/{number}")
    done(tmp_path, "run", *job, "*.parquet", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one") != []


def test_a_computed_value_that_the_wider_type_does_not_hold_is_to_be_cast(tmp_path: Path) -> None:
    job = ("-w", "count(5)", "--let", "z=v", "-a", "l=collect(z)", "--state", "st")
    parquet.write_table(pa.table({"v": [2**53 + 1, 1]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"v": [0.5]}), tmp_path / "1.parquet")
    done(tmp_path, "run", *job, "0.parquet", "out/0")
    ran = done(tmp_path, "run", *job, "1.parquet", "out/1", code=2)
    what = "column 'z' holds 9007199254740993 in the state st at run-000001, as int64, and double does not hold that"
    assert f"{what} exactly; cast it, so that it stays int64\n" in ran.err
