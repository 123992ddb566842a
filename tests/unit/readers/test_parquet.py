from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.readers import column, read_all, source
from wincli.readers.formats.split_rows import ReadRequest
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.readers.values.types import ColumnType
from wincli.windowing.errors import InputError


@pytest.fixture
def parquet(tmp_path: Path) -> Any:
    def write(table: pa.Table | dict[str, Any], name: str = "x.parquet", **options: Any) -> Path:
        path = tmp_path / name
        pq.write_table(pa.table(table), path, **options)
        return path

    return write


def test_row_groups_next_to_each_other_go_together_up_to_the_split_size(parquet: Any) -> None:
    path = parquet({"a": range(10)}, row_group_size=2)
    opened = source(path)
    assert [(s.base, s.rows, s.place, s.ends_file) for s in opened.splits] == [(0, 10, (0, 0, 1, 2, 3, 4), True)]
    size = opened.splits[0].nbytes // 5
    opened = source(path, split_bytes=2 * size)
    assert [(s.base, s.rows, s.place) for s in opened.splits] == [(0, 4, (0, 0, 1)), (4, 4, (4, 2, 3)), (8, 2, (8, 4))]
    assert [s.ends_file for s in opened.splits] == [False, False, True]
    every = read_all(opened)
    assert every.rows == [{"a": i} for i in range(10)]
    assert every.pos == list(range(10))
    assert every.lines == list(range(1, 11))


def test_footers_and_small_texts_are_read_without_tasks(tmp_path: Path, parquet: Any) -> None:
    executor: Any = None  # fails where it is used

    assert open_source([str(parquet({"a": [1]}))], ReadOptions(), executor).schema.names == ["a"]
    (tmp_path / "y.csv").write_text("b\n1\n")
    assert open_source([str(tmp_path / "y.csv")], ReadOptions(), executor).schema.names == ["b"]


def test_files_are_unified_and_what_one_lacks_is_null(tmp_path: Path, parquet: Any) -> None:
    parquet({"a": pa.array([1], pa.int32()), "t": pa.array([1], pa.timestamp("ms"))}, "1.parquet")
    parquet({"b": ["x"], "a": pa.array([2.5], pa.float32())}, "2.parquet")
    parquet({"t": pa.array([2], pa.timestamp("us"))}, "3.parquet")
    opened = source(tmp_path)
    assert opened.schema == pa.schema([("a", pa.float64()), ("t", pa.timestamp("us")), ("b", pa.string())])
    assert [tuple(row.values()) for row in read_all(opened).rows] == [
        (1.0, dt.datetime(1970, 1, 1, 0, 0, 0, 1000), None),
        (2.5, None, "x"),
        (None, dt.datetime(1970, 1, 1, 0, 0, 0, 2), None),
    ]


def test_files_that_clash_are_both_named(tmp_path: Path, parquet: Any) -> None:
    parquet({"a": [1]}, "1.parquet")
    parquet({"a": ["x"]}, "2.parquet")
    with pytest.raises(InputError, match=r"column 'a' is int64 in .*1\.parquet and string in .*2\.parquet"):
        source(tmp_path)
    assert column(source(tmp_path, schema="a:string"), "a") == ["1", "x"]


def test_a_value_that_cannot_be_cast_rejects_its_row(parquet: Any) -> None:
    path = parquet({"t": ["03/06/05", "x", None], "n": [1, 2, 3]})
    every = read_all(source(path, schema="t:timestamp(%d/%m/%y)"))
    assert every.rows == [{"t": dt.datetime(2005, 6, 3), "n": 1}, {"t": None, "n": 3}]
    assert every.pos == [0, 2]
    assert every.rejects == [
        {
            **{"_reason": "unparsable", "_file": str(path), "_row": 2},
            **{"_detail": "column t: 'x' is not a timestamp", "_text": None},
        }
    ]


def test_types_come_plain(parquet: Any) -> None:
    texts = pa.array(["x", "y", "x"])
    table = {
        "d": texts.dictionary_encode(),
        "l": texts.cast(pa.large_string()),
        "v": texts.cast(pa.string_view()),
        "p": pa.array([1, None, 2], pa.int64()),
    }
    opened = source(parquet(table))
    assert opened.schema.types == [pa.string()] * 3 + [pa.int64()]
    assert [row["d"] + row["l"] + row["v"] for row in read_all(opened).rows] == ["xxx", "yyy", "xxx"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.binary()])
def test_columns_are_dictionary_encoded_on_request(parquet: Any, kind: pa.DataType) -> None:
    values = pa.array(["x", None, "y", "x"]).cast(kind)
    opened = source(parquet({"a": values, "n": [1, 2, 3, 4]}, row_group_size=2))
    rows = opened.read(opened.splits[0], ["n", "a"], dictionary=["a", "n"]).rows
    plain = pa.binary() if kind == pa.binary() else pa.string()
    assert rows.schema.types == [pa.int64(), pa.dictionary(pa.int32(), plain)]
    assert rows["a"].cast(plain).to_pylist() == values.cast(plain).to_pylist()
    assert len({str(chunk.dictionary) for chunk in rows["a"].chunks}) == 1


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_statistics": False}])
def test_texts_that_are_stored_plain_need_not_be_encoded(parquet: Any, options: dict[str, Any]) -> None:
    rows = 50_000
    texts = {"each its own": [f"key-{n:09}" for n in range(rows)], "few": [f"key-{n % 9:09}" for n in range(rows)]}
    opened = source(parquet(texts | {"number": range(rows)}, **options))
    request = ReadRequest(tuple(texts), {name: ColumnType(pa.string()) for name in texts}, tuple(texts))
    read = opened.kinds[0].reader.read(opened.places[0], opened.splits[0], request).table
    assert read.cast(pa.schema([(name, pa.string()) for name in texts])).to_pydict() == texts
    encoded = [pa.types.is_dictionary(kind) for kind in read.schema.types]
    assert encoded == ([True, True] if options == {"write_statistics": False} else [False, not options])


def test_only_requested_columns_are_read(parquet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = source(parquet({"a": [1], "a.b": [2], "c": [3]}))
    asked: list[Any] = []
    read = pq.ParquetFile.read_row_groups

    def spy(self: Any, *args: Any, **kwargs: Any) -> pa.Table:
        asked.append(kwargs)
        return read(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    assert opened.read(opened.splits[0], ["c", "a"]).rows.to_pydict() == {"c": [3], "a": [1]}
    assert asked == [{"columns": ["c", "a"], "use_threads": False}]
    assert opened.read(opened.splits[0], []).pos.tolist() == [0]
    assert len(asked) == 1


def test_a_file_without_rows_is_one_split(parquet: Any) -> None:
    opened = source(parquet(pa.table({"a": pa.array([], pa.string())})))
    assert [(s.rows, s.ends_file) for s in opened.splits] == [(0, True)]
    assert read_all(opened).rows == []
    assert opened.read(opened.splits[0], ["a"], dictionary=["a"]).rows.num_rows == 0
    assert opened.explain_type("a") is None


def test_old_timestamps_of_96_bits(parquet: Any) -> None:
    moments = [dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1, 0, 0, 0, 5)]
    path = parquet({"t": pa.array(moments, pa.timestamp("us"))}, use_deprecated_int96_timestamps=True)
    assert column(source(path), "t") == moments


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PAR1 and then nothing PAR1"])
def test_what_is_no_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.parquet cannot be read as Parquet: "):
        source(tmp_path)


def test_a_truncated_file_and_one_that_breaks_later_are_named(tmp_path: Path, parquet: Any) -> None:
    path = parquet({"a": range(10_000)}, compression="zstd", write_page_checksum=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    with pytest.raises(InputError, match=r"x\.parquet cannot be read as Parquet: "):
        source(path)
    path.write_bytes(whole[:100] + bytes(2000) + whole[2100:])
    opened = source(path)
    with pytest.raises(InputError, match=r"x\.parquet cannot be read as Parquet: "):
        read_all(opened)
