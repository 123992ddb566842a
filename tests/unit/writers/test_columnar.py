"""Parquet and ORC parts, and the Parquet of states: what readers see, whatever form the columns came in."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow import parquet as pq

from support.strategies import examples
from wincli.windowing.errors import ConfigError, DataError
from wincli.writers.formats import parquet
from wincli.writers.formats.encoder import plain
from wincli.writers.formats.orc import ENCODER
from wincli.writers.output.sink import check_types
from wincli.writers.state.stage_files import LocalStage, ParquetStateFiles


def encoded(*tables: pa.Table, schema: pa.Schema | None = None, encoder: Any = ENCODER) -> bytes:
    sink = pa.BufferOutputStream()
    encoder.encode(tables, schema or tables[0].schema, sink)
    return bytes(sink.getvalue().to_pybytes())


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


def written(path: Path, table: pa.Table) -> pa.Table:
    (path / "x.parquet").write_bytes(encoded(table, encoder=parquet.ENCODER))
    return pq.read_table(path / "x.parquet", partitioning=None)


# Every value comes back


FLOATS = st.floats(width=64)
TEXTS = st.text(max_size=5)
SECONDS = st.integers(-9_223_372_036, 9_223_372_035)
OF_ORC: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
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
OF_PARQUET: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *OF_ORC,
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))),
]
OF_STATES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *OF_PARQUET,
    (pa.null(), st.none()),
    (pa.float16(), st.floats(width=16)),
    (pa.decimal256(50, 3), st.decimals(-1000, 1000, places=3)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.time32("s"), st.times().map(lambda time: time.replace(microsecond=0))),
    (pa.duration("s"), st.integers(-99, 99).map(lambda n: dt.timedelta(seconds=n))),
    (pa.list_(pa.int8(), 2), st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(list)),
    (pa.struct([("a", pa.timestamp("s"))]), st.fixed_dictionaries({"a": st.just(dt.datetime(2026, 11, 1))})),
    (pa.dictionary(pa.int8(), pa.string()), TEXTS),
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
    values = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return [as_written(column.type, value) for value in values.to_pylist()]


def table_of(values: list[Any], kind: pa.DataType) -> pa.Table:
    array = pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
    return pa.table({"x": array, "a.b": pa.array([1] * len(values), pa.int64())})


@pytest.mark.parametrize("form", ["orc", "parquet", "state"])
@examples(200)
@given(st.data())
def test_every_value_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    kind, values = data.draw(st.sampled_from({"orc": OF_ORC, "parquet": OF_PARQUET, "state": OF_STATES}[form]))
    chunks = data.draw(st.lists(st.lists(st.none() | values, max_size=6), min_size=1, max_size=3))
    tables = [table_of(chunk, kind) for chunk in chunks]
    if form == "orc":
        content = encoded(*tables)
        found = read(content)
        assert encoded(*tables) == content, "there is nothing of the moment in a file"
    elif form == "parquet":
        found = pq.read_table(pa.BufferReader(encoded(*tables, encoder=parquet.ENCODER)))
        stored = pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "s" else kind
        assert found.schema.field("x").type == plain(pa.schema([("x", stored)])).field("x").type or kind == pa.date64()
    else:
        files = ParquetStateFiles(LocalStage(str(tmp_path_factory.mktemp("s"))), "state")
        found = files.read_part(files.write_rows(0, pa.concat_tables(tables)))
        assert found.schema == tables[0].schema
    assert as_read(found["x"]) == [as_written(kind, value) for chunk in chunks for value in chunk]


# Parquet


def test_row_groups_hold_only_the_dictionary_entries_they_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 4)
    words = [f"key-{i:04d}" * 10 for i in range(1000)]
    key = pa.DictionaryArray.from_arrays(pa.array(np.repeat([1, 2, 999], 4), pa.int32()), words)
    assert written(tmp_path, pa.table({"key": key}))["key"].to_pylist() == list(
        np.repeat(np.array(words)[[1, 2, 999]], 4)
    )
    meta = pq.read_metadata(tmp_path / "x.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [4, 4, 4]
    assert meta.serialized_size + sum(meta.row_group(i).total_byte_size for i in range(3)) < 4000
    assert meta.row_group(2).column(0).statistics.min == words[999]


def test_a_file_of_a_column_whose_dictionary_repeats_values_has_no_other_bytes(tmp_path: Path) -> None:
    """One column of a key of two: Arrow made room for each value, and what the memory held came into the file."""
    files = []
    for values, codes in ((["a", "b", "a", "b", "a"], [0, 1, 2, 3, 4]), (["a", "b"], [0, 1, 0, 1, 0])):
        written(tmp_path, pa.table({"k": pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)}))
        files.append((tmp_path / "x.parquet").read_bytes())
    assert files[0] == files[1]


def test_labels_have_no_statistics(tmp_path: Path) -> None:
    columns = {"key": ["a"], "window": [1], "closed_by": ["eof"], "sum": [0.5], "timing": ["late"], "_mark": ["window"]}
    written(tmp_path, pa.table(columns))
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    of = {group.column(at).path_in_schema: group.column(at).is_stats_set for at in range(group.num_columns)}
    assert {name for name, found in of.items() if found} == {"key", "window", "sum"}
    written(tmp_path, pa.table({**columns, "items": [[{"a": 1, "b": [2]}]]}))
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    assert all(group.column(at).is_stats_set for at in range(group.num_columns))


def codes(codes: list[int | None], values: list[str | None]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([3, 4, 3]).dictionary_encode(), pa.int64()),
        (codes([2, 0, None, 2], ["a", "unused", "ü"]), pa.string()),
        (codes([0, 1, 0], ["a", None]), pa.string()),
        (codes([0, 1, 2], ["a", "a", "b"]), pa.string()),
        (pa.array(["a", "b"], pa.string_view()), pa.string()),
        (pa.array([["a"], None, ["b", "a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))), pa.list_(pa.string())),
    ],
    ids=["numbers", "unused", "null inside", "twice", "view", "in lists"],
)
def test_unusual_columns_come_out_plain(tmp_path: Path, values: pa.Array, kind: pa.DataType) -> None:
    back = written(tmp_path, pa.table({"x": values}).replace_schema_metadata({"pandas": "{}"}))
    assert (back.schema.field("x").type, back.schema.metadata) == (kind, None)
    assert back["x"].to_pylist() == values.to_pylist()


def test_integers_are_stored_as_differences_and_text_as_a_dictionary(tmp_path: Path) -> None:
    written(tmp_path, pa.table({"window": [1, 2], "closed_by": ["end", "end"], "sum": [1.5, 2.5]}))
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    encodings = [set(group.column(i).encodings) - {"RLE"} for i in range(3)]
    assert encodings == [{"DELTA_BINARY_PACKED"}, {"PLAIN", "RLE_DICTIONARY"}, {"PLAIN"}]
    assert group.column(0).compression == "SNAPPY"


@given(
    st.lists(st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "cc", ""])), max_size=6), max_size=4),
    st.integers(1, 5),
)
def test_keys_survive_any_chunking(chunks: list[list[str | None]], group: int) -> None:
    pieces = [pa.array(chunk, pa.string()).dictionary_encode() for chunk in chunks]
    kind = pa.dictionary(pa.int32(), pa.string())
    table = pa.table({"key": pa.chunked_array(pieces, kind)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", group)
        content = encoded(table, encoder=parquet.ENCODER)
    back = pq.read_table(pa.BufferReader(content))
    assert back.schema == plain(table.schema)
    assert back["key"].to_pylist() == [value for chunk in chunks for value in chunk]


def _encodings(path: Path) -> set[str]:
    return set(pq.read_metadata(path / "x.parquet").row_group(0).column(0).encodings)


@pytest.mark.parametrize(
    ("values", "has_dictionary"),
    [
        (np.arange(20_000) % 5000 / 100, True),
        (np.sqrt(np.arange(20_000)), False),
        (np.repeat(np.arange(4000) % 500 / 100, 5), False),
    ],
    ids=["they repeat", "none repeats", "they stand in neighbouring rows"],
)
def test_floats_are_written_by_a_dictionary_where_they_repeat(
    tmp_path: Path, values: npt.NDArray[np.float64], has_dictionary: bool
) -> None:
    table = pa.table({"x": pa.array(values)})
    assert written(tmp_path, table).equals(table)
    assert ("RLE_DICTIONARY" in _encodings(tmp_path)) == has_dictionary


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_all_bits_of_floats_are_kept_by_a_dictionary(tmp_path: Path, kind: type) -> None:
    odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324], kind)
    column = pa.array(np.tile(odd, 100))
    back = written(tmp_path, pa.table({"x": column}))["x"].combine_chunks()
    assert "RLE_DICTIONARY" in _encodings(tmp_path)
    assert back.buffers()[1].to_pybytes()[: 700 * odd.itemsize] == np.tile(odd, 100).tobytes()


def test_parts_between_stages_are_never_written_by_a_dictionary_of_floats(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(np.zeros(5000))})
    with pa.OSFile(str(tmp_path / "x.parquet"), "wb") as file, parquet.begin_intermediate(table.schema, file) as write:
        write(table)
    assert "RLE_DICTIONARY" not in _encodings(tmp_path)


# ORC


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("us", "Europe/Paris"), pa.timestamp("ns", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.decimal128(38, 3), pa.decimal128(38, 3)),
        (pa.list_(pa.string()), pa.list_(pa.string())),
    ],
)
def test_types_as_readers_see_them(kind: pa.DataType, stored: pa.DataType) -> None:
    back = read(encoded(schema=pa.schema([("x", kind), ("n", pa.int64())])))
    assert (back.schema, back.num_rows) == (pa.schema([("x", stored), ("n", pa.int64())]), 0)


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
