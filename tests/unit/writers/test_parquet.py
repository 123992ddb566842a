"""Parquet parts: what readers see, whatever form the columns came in."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from wincli.writers.formats import parquet
from wincli.writers.formats.encoder import plain


def written(path: Path, table: pa.Table, schema: pa.Schema | None = None) -> pa.Table:
    with pa.OSFile(str(path / "x.parquet"), "wb") as file:
        parquet.ENCODER.encode([table], schema or table.schema, file)
    return pq.read_table(path / "x.parquet", partitioning=None)


def test_dictionary_columns_read_back_as_plain_strings(tmp_path: Path) -> None:
    key = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2], pa.int8()), ["a", "unused", "ü"])
    back = written(tmp_path, pa.table({"key": key}))
    assert back.schema == pa.schema([("key", pa.string())])
    assert back["key"].to_pylist() == ["ü", "a", None, "ü"]


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


def test_dictionaries_that_change_from_chunk_to_chunk(tmp_path: Path) -> None:
    first = pa.array(["a", "b", "a"]).dictionary_encode()
    second = pa.array(["c", None, "a"]).dictionary_encode()
    back = written(tmp_path, pa.table({"key": pa.chunked_array([first, second])}))
    assert back["key"].to_pylist() == ["a", "b", "a", "c", None, "a"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        pytest.param(pa.array([3, 4, 3]).dictionary_encode(), pa.int64(), id="numbers"),
        pytest.param(
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None])), pa.string(), id="null inside"
        ),
        pytest.param(
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "a", "b"])), pa.string(), id="twice"
        ),
        pytest.param(pa.array(["a", "b"], pa.string_view()), pa.string(), id="view"),
        pytest.param(
            pa.array([["a"], None, ["b", "a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
            pa.list_(pa.string()),
            id="in lists",
        ),
    ],
)
def test_unusual_columns_come_out_plain(tmp_path: Path, values: pa.Array, kind: pa.DataType) -> None:
    back = written(tmp_path, pa.table({"x": values}))
    assert back.schema.field("x").type == kind
    assert back["x"].to_pylist() == values.to_pylist()


TYPES: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), [-(2**63), 2**63 - 1, None, 0]),
    (pa.uint64(), [0, 2**64 - 1]),
    (pa.int8(), [-128, None, 127]),
    (pa.float64(), [0.1, float("inf"), -0.0, None, 5e-324]),
    (pa.bool_(), [True, None, False]),
    (pa.decimal128(38, 9), [decimal.Decimal("1234567890.000000001"), None]),
    (pa.timestamp("ms"), [dt.datetime(2026, 11, 1, 1, 2, 3, 4000), None]),
    (pa.timestamp("us", "Europe/Paris"), [dt.datetime(2026, 11, 1, tzinfo=dt.UTC)]),
    (pa.timestamp("ns"), [1, None]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (pa.time64("us"), [dt.time(1, 2, 3)]),
    (pa.duration("us"), [dt.timedelta(seconds=1.5)]),
    (pa.large_string(), ["x", "", None]),
    (pa.binary(), [b"\x00\xff", None]),
    (pa.list_(pa.float64()), [[1.5, None], [], None]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}, None]),
]


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda x: str(x) if isinstance(x, pa.DataType) else "")
def test_every_type_comes_back_as_it_was(tmp_path: Path, kind: pa.DataType, values: list[object]) -> None:
    table = pa.table({"a.b": pa.array(values, kind)})
    assert written(tmp_path, table).equals(table)
    assert written(tmp_path, table.slice(0, 0)).schema == table.schema


def test_seconds_become_milliseconds_and_keep_their_zone(tmp_path: Path) -> None:
    back = written(tmp_path, pa.table({"t": pa.array([7], pa.timestamp("s", "Asia/Tokyo"))}))
    assert back.schema.field("t").type == pa.timestamp("ms", "Asia/Tokyo")
    assert back["t"].cast(pa.int64()).to_pylist() == [7000]


def test_metadata_of_the_input_does_not_travel(tmp_path: Path) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"pandas": "{}"})
    assert written(tmp_path, table).schema.metadata is None


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
    encoded = [pa.array(chunk, pa.string()).dictionary_encode() for chunk in chunks]
    kind = pa.dictionary(pa.int32(), pa.string())
    table = pa.table({"key": pa.chunked_array(encoded, kind)})
    sink = pa.BufferOutputStream()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", group)
        parquet.ENCODER.encode([table], table.schema, sink)
    back = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert back.schema == plain(table.schema)
    assert back["key"].to_pylist() == [value for chunk in chunks for value in chunk]


def _encodings(path: Path) -> set[str]:
    return set(pq.read_metadata(path / "x.parquet").row_group(0).column(0).encodings)


def test_floats_that_repeat_are_written_by_a_dictionary(tmp_path: Path) -> None:
    prices = pa.table({"x": pa.array(np.arange(20_000) % 5000 / 100)})
    assert written(tmp_path, prices).equals(prices)
    assert "RLE_DICTIONARY" in _encodings(tmp_path)


def test_floats_of_which_none_repeats_are_written_plain(tmp_path: Path) -> None:
    others = pa.table({"x": pa.array(np.sqrt(np.arange(20_000)))})
    assert written(tmp_path, others).equals(others)
    assert "RLE_DICTIONARY" not in _encodings(tmp_path)


def test_floats_that_stand_in_neighbouring_rows_are_written_plain(tmp_path: Path) -> None:
    runs = pa.table({"x": pa.array(np.repeat(np.arange(4000) % 500 / 100, 5))})
    assert written(tmp_path, runs).equals(runs)
    assert "RLE_DICTIONARY" not in _encodings(tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_all_bits_of_floats_are_kept_by_a_dictionary(tmp_path: Path, kind: type) -> None:
    odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324], kind)
    column = pa.array(np.tile(odd, 100))
    back = written(tmp_path, pa.table({"x": column}))["x"].combine_chunks()
    assert "RLE_DICTIONARY" in _encodings(tmp_path)
    assert back.buffers()[1].to_pybytes()[: 700 * odd.itemsize] == np.tile(odd, 100).tobytes()


def test_parts_between_stages_are_never_written_by_a_dictionary_of_floats(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(np.zeros(5000))})
    with pa.OSFile(str(tmp_path / "x.parquet"), "wb") as file:
        parquet.encode_intermediate([table], table.schema, file)
    assert "RLE_DICTIONARY" not in _encodings(tmp_path)
