"""States of the library whose columns get other types from call to call: N calls are one over all rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from wincli import aggregate, aggregate_stream
from wincli.windowing.errors import ConfigError
from wincli.windowing.state.one_table import job_of

MS, US, NS = (pa.timestamp(unit) for unit in ("ms", "us", "ns"))
DRIFTS: Mapping[str, Sequence[Mapping[str, pa.DataType]]] = {
    "units": [{"t": MS, "x": pa.int8()}, {"t": US, "x": pa.int64()}, {"t": NS, "x": pa.int32()}],
    "finer first": [{"t": NS, "x": pa.float64()}, {"t": MS, "x": pa.int64()}, {"t": US, "x": pa.float32()}],
    "whole numbers to floats": [{"t": pa.int32()}, {"t": pa.float64(), "x": pa.float64()}, {"t": pa.int64()}],
    "zones": [{"t": pa.timestamp("us", "Europe/Paris")}, {"t": pa.timestamp("ms", "UTC")}, {"t": US, "zone": "UTC"}],
    "texts": [
        {"k": pa.string(), "x": pa.decimal128(9, 2)},
        {"k": pa.dictionary(pa.int8(), pa.large_string()), "x": pa.int16()},
        {"k": pa.large_string(), "x": pa.decimal128(12, 4)},
    ],
    "no value": [{"x": pa.null()}, {"x": pa.int64()}, {"x": pa.null()}],
}
WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "gap": {"window": "gap(t, 600)", "order_by": "t"},
    "sliding": {"window": "sliding, delta(x, 5), delta(x, 2)", "order_by": "t"},
    "time": {"window": "time(900)", "order_by": "t"},
    "event time": {
        "window": "timeInterval, intervalDuration(1200), discardAge(600)",
        "event_time": "t",
        "lag": 300,
    },
}


def rows(number: int, types: Mapping[str, Any]) -> pa.Table:
    seconds = [3600 * number + 390 * index for index in range(9)]
    at = pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(seconds=each) for each in seconds], pa.timestamp("s"))
    t, k, x = (
        types.get(name, kind) for name, kind in (("t", pa.timestamp("us")), ("k", pa.string()), ("x", pa.int64()))
    )
    clock = at.cast(pa.timestamp(t.unit)) if pa.types.is_timestamp(t) else pa.array(seconds)
    if pa.types.is_timestamp(t) and (t.tz or types.get("zone")):
        t = pa.timestamp(t.unit, t.tz or types["zone"])
        clock = clock.cast(pa.timestamp(t.unit, "UTC"))
    values = pa.array([(5 * index + number) % 7 for index in range(9)])
    if pa.types.is_decimal(x):
        values = values.cast(pa.decimal128(38, x.scale))
    keys = pa.array(["ab"[index % 2] for index in range(9)])
    keys = keys.dictionary_encode() if pa.types.is_dictionary(k) else keys
    x_values = pa.nulls(9) if pa.types.is_null(x) else values.cast(x)
    return pa.table({"t": clock.cast(t), "k": keys.cast(k), "x": x_values})


def flat(value: Any) -> Any:
    if isinstance(value, list):
        return [flat(each) for each in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat() if value.tzinfo else value.isoformat()
    return float(value) if isinstance(value, int) or hasattr(value, "as_tuple") else value


def shown(tables: Sequence[pa.Table]) -> list[str]:
    found = [row for table in tables for row in table.to_pylist()]
    return sorted(repr({name: flat(value) for name, value in row.items() if name != "_mark"}) for row in found)


@pytest.mark.parametrize("streamed", [False, True], ids=["table", "stream"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("drift", DRIFTS)
def test_calls_with_other_types_are_one_call(drift: str, window: str, streamed: bool) -> None:
    options = {**WINDOWS[window], "key": "k", "aggregates": ["n=count()", "m=max(x)", "l=collect(x)"]}
    tables = [rows(number, types) for number, types in enumerate(DRIFTS[drift])]
    if drift == "no value" and window == "sliding":
        options["window"] = "sliding, time(900), time(300)"
    state: Any = "new"
    found = []
    for at, table in enumerate(tables):
        at_end = "flush" if at == len(tables) - 1 else "hold"
        if streamed:
            result, state = aggregate_stream(table.to_reader(4), **options, at_end=at_end, state=state)
            found.append(result.read_all())
            state = state.read_all()
        else:
            result, state = aggregate(table, **options, at_end=at_end, state=state)
            found.append(result)
    plain = [table.set_column(1, "k", pc.cast(table["k"], pa.string())) for table in tables]
    if drift == "zones":
        plain = [table.set_column(0, "t", pc.cast(table["t"], pa.timestamp("us", "UTC"))) for table in plain]
    one = aggregate(pa.concat_tables(plain, promote_options="permissive"), **options)
    assert shown(found) == shown([one]) != []


GAP: Mapping[str, Any] = {"window": "gap(t, 5)", "key": "k", "order_by": "t", "aggregates": "s=sum(x)"}


def begun(**columns: pa.Array) -> Any:
    return aggregate(pa.table(columns), **GAP, state="new")[1]


def test_a_column_that_the_rows_lack_is_null() -> None:
    state = begun(t=pa.array([1]), k=pa.array(["a"]), x=pa.array([1.5]))
    result, _ = aggregate(pa.table({"t": [2, 9], "k": ["a", "a"]}), **GAP, state=state)
    assert result["s"].to_pylist() == [1.5]


@pytest.mark.parametrize(
    ("held", "given", "what"),
    [
        (
            1,
            {"k": ["a"], "x": [True]},
            "column 'x' is int64 in the state and bool in the rows; cast it before, so that both",
        ),
        (1, {"k": [1], "x": [1]}, "column 'k' is string in the state and int64 in the rows"),
        (
            2**53 + 1,
            {"k": ["a"], "x": [0.5]},
            f"column 'x' holds {2**53 + 1} in the state, as int64, and double does not",
        ),
    ],
)
def test_types_that_do_not_hold_the_values_of_both_name_the_column(held: int, given: dict[str, Any], what: str) -> None:
    state = begun(t=pa.array([1]), k=pa.array(["a"]), x=pa.array([held]))
    with pytest.raises(ConfigError, match=what):
        aggregate(pa.table({"t": [2], **given}), **GAP, state=state)


def test_a_state_says_the_types_of_the_rows_that_it_comes_from() -> None:
    state = begun(t=pa.array([1]), k=pa.array(["a"]), x=pa.array([1], pa.int8()))
    assert json.loads(job_of(state) or "")["input"] == {"t": "int64", "k": "string", "x": "int8"}
