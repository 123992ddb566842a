"""Types that files of one run, and earlier runs, give a column: one rule joins them, in every format."""

from __future__ import annotations

import datetime as dt
import gzip
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from support.readers import put
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.readers.source import FileSource
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.local_executor import LocalExecutor

TEN = dt.datetime(2026, 11, 1, 10)
PARIS, UTC = pa.timestamp("us", "Europe/Paris"), pa.timestamp("us", "UTC")
EARLIER = "the state st at 2026-11-01"


def opened(*paths: Path, known: pa.Schema | None = None, schema: str = "", named: Sequence[str] = ()) -> FileSource:
    options = ReadOptions(schema=parse_schema(schema) if schema else ())
    earlier = [] if known is None else [(EARLIER, known)]
    return open_source([str(path) for path in paths], options, LocalExecutor(), earlier, named)


def read(source: FileSource) -> pa.Table:
    return pa.concat_tables([source.read(split, source.schema.names).rows for split in source.splits])


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_instants_of_several_zones_are_one_column_in_the_zone_of_the_first_file(tmp_path: Path) -> None:
    one = put(tmp_path / "1.parquet", {"t": pa.array([TEN], pa.timestamp("ms", "Europe/Paris"))})
    two = put(tmp_path / "2.parquet", {"t": pa.array([TEN], UTC)})
    source = opened(one, two)
    assert source.schema.field("t").type == PARIS
    assert read(source)["t"].cast(UTC) == pa.chunked_array([pa.array([TEN, TEN], UTC)])


def test_a_time_with_a_zone_and_one_without_name_the_entry_that_reads_both(tmp_path: Path) -> None:
    one = put(tmp_path / "1.parquet", {"t": pa.array([TEN], pa.timestamp("us"))})
    two = put(tmp_path / "2.parquet", {"t": pa.array([TEN], PARIS)})
    with pytest.raises(
        InputError, match=r"column 't' is timestamp\[us\] in .*1\.parquet and timestamp\[us, tz=E"
    ) as caught:
        opened(one, two)
    assert "--schema 't:timestamptz'" in caught.value.do
    assert read(opened(one, two, schema="t:timestamptz"))["t"] == pa.chunked_array([pa.array([TEN, TEN], UTC)])


def test_times_of_day_have_the_finest_unit(tmp_path: Path) -> None:
    clock = dt.time(10, 30)
    one = put(tmp_path / "1.parquet", {"t": pa.array([clock], pa.time32("s"))})
    two = put(tmp_path / "2.parquet", {"t": pa.array([clock], pa.time64("us"))})
    assert read(opened(one, two))["t"] == pa.chunked_array([pa.array([clock, clock], pa.time64("us"))])


KNOWN = pa.schema([("ts", pa.timestamp("us")), ("user", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", ""),
        ("a.csv", "\n\n"),
        ("a.csv", "ts,user,n,x\n"),
        ("a.csv", "n,ts\n"),
        ("a.jsonl", ""),
        ("a.jsonl.gz", None),
    ],
)
def test_an_empty_text_has_the_columns_that_are_known(tmp_path: Path, name: str, content: str | None) -> None:
    path = tmp_path / name
    if content is None:
        path.write_bytes(gzip.compress(b""))
    else:
        path.write_text(content)
    source = opened(path, known=KNOWN)
    assert {field.name: field.type for field in source.schema} == {field.name: field.type for field in KNOWN}
    assert read(source).num_rows == 0


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "orc"])
def test_columns_without_a_value_or_without_a_column_take_the_known_type(tmp_path: Path, form: str) -> None:
    nothing = {} if form == "orc" else {"n": pa.nulls(1)}  # ORC has no column without a type
    found = read(opened(put(tmp_path / f"a.{form}", {**nothing, "other": [1]}), known=KNOWN))
    assert found["n"] == pa.chunked_array([pa.nulls(1, pa.int64())])
    assert found["ts"] == pa.chunked_array([pa.nulls(1, pa.timestamp("us"))])
    assert found["other"].to_pylist() == [1]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "orc"])
def test_a_narrower_file_is_read_in_the_known_type_and_a_wider_one_in_its_own(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"a.{form}", {"n": pa.array([1.5], pa.float32()), "x": pa.array([7], pa.int8())})
    source = opened(path, known=KNOWN)
    assert read(source).select(["n", "x"]) == pa.table({"n": [1.5], "x": [7.0]})
    assert source.type_places["n"] == str(path)
    assert source.type_places["x"] == EARLIER


def test_values_of_folders_join_the_known_types(tmp_path: Path) -> None:
    folders = [tmp_path / "in" / "hour=05", tmp_path / "in" / "hour=__HIVE_DEFAULT_PARTITION__"]
    none = tmp_path / "none" / "hour=__HIVE_DEFAULT_PARTITION__"
    for folder in (*folders, none):
        folder.mkdir(parents=True)
        text(folder / "a.csv", "a\n1\n")
    known = pa.schema([("hour", pa.float64())])
    assert read(opened(tmp_path / "in", known=known))["hour"].to_pylist() == [5.0, None]
    assert read(opened(tmp_path / "none", known=known))["hour"] == pa.chunked_array([pa.nulls(1, pa.float64())])
    with pytest.raises(InputError, match="column 'hour' is bool in the state st at 2026-11-01 and int64"):
        opened(tmp_path / "in", known=pa.schema([("hour", pa.bool_())]))


def test_what_cannot_be_joined_with_what_is_known_names_the_entry_that_keeps_it(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "n\n-\n")
    with pytest.raises(InputError) as caught:
        opened(path, known=KNOWN)
    assert str(caught.value) == (
        f"column 'n' is int64 in {EARLIER} and string in {path}; read it as it was, with --schema 'n:int64'"
    )
    assert opened(path, known=KNOWN, schema="n:int64").schema.field("n").type == pa.int64()


def test_a_declared_column_that_the_job_names_is_null_where_no_file_has_it(tmp_path: Path) -> None:
    path = text(tmp_path / "a.jsonl", '{"a": 1}\n')
    found = read(opened(path, schema="b:float", named=["b"]))
    assert found["b"] == pa.chunked_array([pa.nulls(1, pa.float64())])


def test_a_declared_column_that_nothing_names_is_a_typing_error(tmp_path: Path) -> None:
    path = text(tmp_path / "a.jsonl", '{"amount": 1}\n')
    with pytest.raises(ConfigError, match=r"the schema names column 'amont', which no file has; did you mean 'amount'"):
        opened(path, schema="amont:float", named=["amount"])


def test_a_file_of_no_bytes_has_the_declared_columns(tmp_path: Path) -> None:
    source = opened(text(tmp_path / "a.csv", ""), schema="a:int,b:timestamp")
    assert source.schema == pa.schema([("a", pa.int64()), ("b", pa.timestamp("us"))])
    with pytest.raises(InputError, match=r"a\.csv has no column"):
        opened(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_columnar_file_of_no_bytes_is_damaged_whatever_is_known(tmp_path: Path, form: str) -> None:
    with pytest.raises(InputError, match=f"a.{form}"):
        opened(text(tmp_path / f"a.{form}", ""), known=KNOWN)
