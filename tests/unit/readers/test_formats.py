"""What all formats have in common: files that differ, columns that are asked for, values that do not fit."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.readers import column, put, read_all, source
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.errors import InputError

FORMS = pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "orc"])


@FORMS
def test_files_are_unified_and_what_one_lacks_is_null(tmp_path: Path, form: str) -> None:
    put(tmp_path / f"1.{form}", {"a": pa.array([1], pa.int32())})
    put(tmp_path / f"2.{form}", {"b": ["x"], "a": pa.array([2.5], pa.float32())})
    put(tmp_path / f"3.{form}", {"a": pa.array([], pa.int32())})
    opened = source(tmp_path)
    assert opened.schema == pa.schema([("a", pa.float64()), ("b", pa.string())])
    assert read_all(opened).rows == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]
    assert [(s.file, s.rows, s.ends_file) for s in opened.splits] == [(0, 1, True), (1, 1, True), (2, 0, True)]


@FORMS
def test_a_clash_names_both_files_the_column_the_types_and_the_entry_that_settles_it(tmp_path: Path, form: str) -> None:
    if form != "orc":  # which has no column without a type
        put(tmp_path / f"0.{form}", {"n": pa.nulls(1)})
    one, two = put(tmp_path / f"1.{form}", {"n": [1]}), put(tmp_path / f"2.{form}", {"n": ["x"]})
    with pytest.raises(InputError) as caught:
        source(tmp_path)
    assert str(caught.value) == (
        f"column 'n' is int64 in {one} and string in {two}; "
        "read it as one type with --schema 'n:string', or cast it in one of them"
    )
    assert column(source(tmp_path, schema="n:string"), "n")[-2:] == ["1", "x"]


@FORMS
def test_only_requested_columns_are_read_in_their_order_and_texts_as_dictionaries_on_request(
    tmp_path: Path, form: str
) -> None:
    opened = source(put(tmp_path / f"x.{form}", {"a": ["x", "y", "x"], "b": [1, 2, 3], "c": [4, 5, 6]}))
    (split,) = opened.splits
    assert opened.read(split, ["c", "a"]).rows.to_pydict() == {"c": [4, 5, 6], "a": ["x", "y", "x"]}
    rows = opened.read(split, ["b", "a"], dictionary=["a", "b"]).rows
    assert rows.schema.types == [pa.int64(), pa.dictionary(pa.int32(), pa.string())]
    assert rows["a"].to_pylist() == ["x", "y", "x"]
    batch = opened.read(split, [])
    assert (batch.pos.tolist(), batch.rows.num_columns) == ([0, 1, 2], 0)


@FORMS
def test_a_value_that_cannot_be_cast_rejects_its_row(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"x.{form}", {"t": ["03/06/05", "x", None], "n": [1, 2, 3]})
    every = read_all(source(path, schema="t:timestamp(%d/%m/%y)"))
    assert every.rows == [{"t": dt.datetime(2005, 6, 3), "n": 1}, {"t": None, "n": 3}]
    assert every.pos == [0, 2]
    (reject,) = every.rejects
    assert reject.pop("_text") == {"csv": "x,2", "jsonl": '{"t": "x", "n": 2}'}.get(form)
    row = 3 if form == "csv" else 2
    told = {"_reason": "unparsable", "_file": str(path), "_row": row, "_detail": "column t: 'x' is not a timestamp"}
    assert reject == told


@FORMS
def test_a_file_without_rows_is_one_split(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"x.{form}", {"a": pa.array([], pa.string())})
    opened = source(path, schema="a:string")
    assert [(s.rows, s.ends_file) for s in opened.splits] == [(0, True)]
    assert read_all(opened).rows == []
    assert opened.read(opened.splits[0], ["a"], dictionary=["a"]).rows.num_rows == 0
    assert [(part.rows, part.ends_file) for part in opened.parts_of(opened.splits[0])] == [(0, True)]


@FORMS
def test_footers_and_small_texts_are_read_without_tasks(tmp_path: Path, form: str) -> None:
    executor: Any = None  # fails where it is used
    path = put(tmp_path / f"x.{form}", {"a": [1]})
    assert open_source([str(path)], ReadOptions(), executor).schema.names == ["a"]


@pytest.mark.parametrize("form", ["csv.gz", "jsonl.gz", "parquet", "orc"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"ORC and then nothing PAR1", None])
def test_what_is_of_another_format_or_truncated_is_named(tmp_path: Path, form: str, content: bytes | None) -> None:
    path = put(tmp_path / f"x.{form}", {"a": range(5000)})
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    with pytest.raises(InputError, match=rf"x\.{form} cannot be read"):
        read_all(source(path))
