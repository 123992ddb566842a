"""A column without any value has no type yet: every aggregate takes it, as it takes a column of nulls with a type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wincli
from support.columns_without_type import WITHOUT_TYPE, nulls
from wincli.windowing.aggregates.table import TABLE

LITERALS = {"i": "0", "q": "0.5", "sep": "','", "method": "'lower'", "ties": "'min'"}
TYPED = {"bool_and": pa.bool_(), "bool_or": pa.bool_(), "string_join": pa.string()}
"""The types that these aggregates take; the others take floats."""
OWN = {"min", "max", "first", "last", "nth", "mode", "arg_min", "arg_max"}
"""What gives a value of its column: as long as this has no type, there is none for the result."""
LISTS = {"collect", "collect_distinct"}
WINDOWS = ["count(2)", "sliding, count(3), count(1)", "retain 2", "time(2)", "timeInterval, intervalDuration(2)"]


def calls(window: str) -> list[tuple[str, str]]:
    """Return each aggregate with calls of it: over ``x``, and where it takes two columns with each of them ``x``."""
    found = []
    goes_on = window.startswith(("count", "time("))
    for name, aggregate in TABLE.items():
        if (aggregate.holds_on and not goes_on) or name == "locf" or aggregate.reads:
            continue
        columns = [name for name, kind in aggregate.parameters.items() if not kind.literal]
        rest = [LITERALS[name] for name, kind in aggregate.parameters.items() if kind.literal]
        for places in (["x"],) if len(columns) == 1 else (["x", "x"], ["x", "v"], ["v", "x"]):
            found.append((name, f"{name}({', '.join([*places, *rest])})"))
    return found


def log(rows: int, kind: pa.DataType) -> pa.Table:
    return pa.table({"t": range(rows), "v": [float(i) for i in range(rows)], "x": nulls(rows, kind)},
                    schema=pa.schema([("t", pa.int64()), ("v", pa.float64()), ("x", kind)]))  # fmt: skip


def aggregated(rows: int, kind: pa.DataType, window: str, calls: dict[str, str]) -> pa.Table:
    by = {"event_time": "t"} if window.startswith("timeInterval") else {"order_by": "t"}
    options: dict[str, Any] = {"key": (), "aggregates": calls, **by}
    table: pa.Table = wincli.aggregate(log(rows, kind), window, **options)
    return table


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rows", [5, 0])
def test_every_aggregate_gives_what_a_column_of_nulls_gives(rows: int, window: str, kind: pa.DataType) -> None:
    """One column has the type that each aggregate takes."""
    every = {f"r{at}": (name, call) for at, (name, call) in enumerate(calls(window))}
    found = aggregated(rows, kind, window, {result: call for result, (_, call) in every.items()})
    for dtype in {pa.float64(), *TYPED.values()}:
        own = {at: call for at, (name, call) in every.items() if TYPED.get(name, pa.float64()) == dtype}
        typed = aggregated(rows, dtype, window, own)
        for result, call in own.items():
            name, field = every[result][0], found.schema.field(result)
            assert found[result].to_pylist() == typed[result].to_pylist(), call
            if name in OWN and "(x" in call:
                assert pa.types.is_null(field.type), call
            elif name in LISTS:
                assert field.type == pa.list_(pa.null()), call
            else:
                assert field.type == typed.schema.field(result).type, call


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        ("sum(x * v)", pa.float64()),
        ("sum(x * 2)", pa.float64()),
        ("sum(x) + 1", pa.float64()),
        ("max(x) - min(x)", pa.null()),
        ("sum(v) where x", pa.float64()),
        ("count() where x > 1", pa.int64()),
        ("sum(x - lag(x))", pa.float64()),
    ],
)
def test_result_has_the_widest_type_that_the_function_takes(call: str, dtype: pa.DataType) -> None:
    found = aggregated(4, pa.null(), "count(2)", {"r": call})
    assert found.schema.field("r").type == dtype
    assert found["r"].drop_null().to_pylist() in ([], [0, 0])


def test_a_state_goes_on_over_columns_without_type() -> None:
    calls = {"n": "count()", "s": "sum(x)", "r": "range(x)", "j": "median(x)"}
    options: dict[str, Any] = {"order_by": "t", "aggregates": calls}
    rows = log(5, pa.null())
    first, state = wincli.aggregate(rows.slice(0, 3), "count(2)", state="new", **options)
    second, _ = wincli.aggregate(rows.slice(3), "count(2)", state=state, **options)
    whole = wincli.aggregate(rows, "count(2)", at_end="hold", **options)
    assert pa.concat_tables([first, second]).to_pylist() == whole.to_pylist()
    assert whole["s"].to_pylist() == [None, None]


def test_batches_without_values_are_a_table_without_values() -> None:
    rows = log(7, pa.null())
    batches = rows.to_reader(max_chunksize=2)
    options: dict[str, Any] = {"order_by": "t", "aggregates": ["s=sum(x)", "m=mean(x)", "w=wavg(x, v)"]}
    streamed = pa.Table.from_batches(list(wincli.aggregate_stream(batches, "count(3)", **options)))
    assert streamed.to_pylist() == wincli.aggregate(rows, "count(3)", **options).to_pylist()
