"""ORC parts: what readers see, whatever form the columns came in, and the same bytes each time."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from wincli.windowing.errors import ConfigError, DataError
from wincli.writers.formats.orc import ENCODER
from wincli.writers.output.sink import check_types


def encoded(*tables: pa.Table, schema: pa.Schema | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    ENCODER.encode(tables, schema or tables[0].schema, sink)
    return bytes(sink.getvalue().to_pybytes())


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


FLOATS = st.floats(width=64)
TEXTS = st.text(max_size=5)
SECONDS = st.integers(-9_223_372_036, 9_223_372_035)
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), FLOATS),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    (pa.decimal128(38, 10), st.decimals(-(10**20), 10**20, places=10)),
    (pa.timestamp("s"), SECONDS),
    (pa.timestamp("ms", "Europe/Paris"), st.integers(0, 9_223_372_036_000)),
    (pa.timestamp("us"), st.integers(0, 9_223_372_036_000_000) | SECONDS.map(lambda second: second * 10**6)),
    (pa.timestamp("ns", "UTC"), st.integers(0, 2**63 - 1)),
    (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-5, 5), max_size=3)),
    (pa.list_(pa.list_(pa.string())), st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=2), max_size=2)),
    (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
        st.fixed_dictionaries(
            {"a": st.none() | st.integers(-5, 5), "b": st.none() | st.lists(TEXTS, max_size=2)},
        ),
    ),
    (pa.map_(pa.string(), pa.float64()), st.lists(st.tuples(TEXTS, st.floats(allow_nan=False)), max_size=2)),
]


def as_written(kind: pa.DataType, value: Any) -> Any:
    """A value in a form that compares by its bits; a time as its nanoseconds."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return value * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    if pa.types.is_floating(kind):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return value


def as_read(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return [as_written(column.type, value) for value in column.to_pylist()]


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[list[Any]]]:
    kind, values = draw(st.sampled_from(VALUES))
    return kind, draw(st.lists(st.lists(st.none() | values, max_size=6), min_size=1, max_size=3))


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


@given(columns())
def test_every_value_comes_back_as_it_was(case: tuple[pa.DataType, list[list[Any]]]) -> None:
    kind, chunks = case
    tables = [
        pa.table({"x": column_of(chunk, kind), "a.b": pa.array([1] * len(chunk), pa.int64())}) for chunk in chunks
    ]
    data = encoded(*tables)
    assert as_read(read(data)["x"]) == [as_written(kind, value) for chunk in chunks for value in chunk]
    assert encoded(*tables) == data, "there is nothing of the moment in a file"


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("us", "Europe/Paris"), pa.timestamp("ns", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.decimal128(38, 3), pa.decimal128(38, 3)),
    ],
)
def test_types_as_readers_see_them(kind: pa.DataType, stored: pa.DataType) -> None:
    schema = pa.schema([("x", kind)])
    assert read(encoded(schema=schema)).schema == pa.schema([("x", stored)])


def test_a_part_without_tables_has_its_columns() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    back = read(encoded(schema=schema))
    assert (back.schema, back.num_rows) == (schema, 0)


def test_parts_are_compressed() -> None:
    table = pa.table({"x": ["the same word"] * 10_000})
    data = encoded(table)
    assert orc.ORCFile(pa.BufferReader(data)).compression == "ZSTD"
    assert len(data) < 1000


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.uint8(), pa.uint64(), pa.null(), pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2), pa.float16()),
        *(pa.list_(pa.uint8()), pa.struct([("t", pa.time32("s"))]), pa.month_day_nano_interval()),
    ],
    ids=str,
)
def test_types_that_orc_lacks_are_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(ConfigError, match=r"orc cannot hold column 'odd' of type .*choose another --output-format"):
        check_types("orc", pa.schema([("a", pa.int64()), ("odd", kind)]))


STAMP = dt.datetime(9999, 12, 31)
OLD = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([STAMP], pa.timestamp("us"), r"column 't' holds a timestamp outside 1677-09-21 to 2262-04-11"),
        ([None, STAMP], pa.timestamp("s", "UTC"), r"column 't' holds a timestamp outside"),
        ([dt.datetime(1, 1, 1)], pa.timestamp("ms"), r"column 't' holds a timestamp outside"),
        ([[None], [STAMP]], pa.list_(pa.timestamp("us")), r"column 't' holds a timestamp outside"),
        ([{"a": STAMP}], pa.struct([("a", pa.timestamp("us"))]), r"column 't' holds a timestamp outside"),
        ([[("k", STAMP)]], pa.map_(pa.string(), pa.timestamp("us")), r"column 't' holds a timestamp outside"),
        ([OLD], pa.timestamp("us"), "column 't' holds a timestamp before 1970 with a fraction of a second"),
        ([-1], pa.timestamp("ns"), "column 't' holds a timestamp before 1970 with a fraction of a second"),
        ([-(2**63)], pa.timestamp("ns"), "column 't' holds a timestamp outside"),
    ],
)
def test_times_that_are_not_read_back_as_they_were_are_refused(
    values: list[Any], kind: pa.DataType, message: str
) -> None:
    with pytest.raises(DataError, match=f"{message}.*write Parquet with --output-format parquet"):
        encoded(pa.table({"t": pa.array(values, kind)}))


def test_a_far_time_of_a_null_struct_does_not_count() -> None:
    kind = pa.struct([("a", pa.timestamp("us"))])
    times = pa.array([STAMP, dt.datetime(2020, 1, 1)], pa.timestamp("us"))
    array = pa.StructArray.from_arrays([times], fields=list(kind), mask=pa.array([True, False]))
    assert [value and value["a"].year for value in read(encoded(pa.table({"t": array})))["t"].to_pylist()] == [
        None,
        2020,
    ]


@given(st.lists(st.lists(st.integers(-3, 3), max_size=4), min_size=1, max_size=4))
def test_parts_join_to_one_file(tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]]) -> None:
    folder = tmp_path_factory.mktemp("parts")
    schema = pa.schema([("n", pa.int64()), ("d", pa.decimal128(9, 2)), ("t", pa.timestamp("us", "UTC"))])
    paths: list[Path] = []
    for number, values in enumerate(parts):
        table = pa.table([pa.array(map(kind, values), f.type) for kind, f in zip(KINDS, schema, strict=True)], schema)
        paths.append(folder / f"part-{number:05d}.orc")
        paths[-1].write_bytes(encoded(table))
    whole = io.BytesIO()
    ENCODER.join(paths, whole)
    assert read(whole.getvalue())["n"].to_pylist() == [n for values in parts for n in values]


KINDS = (int, decimal.Decimal, lambda n: dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n))
