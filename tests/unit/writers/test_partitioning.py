"""A partitioned result: which columns may divide it, and what other programs and a commit find in its folders."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from support.quick_store import use_for_outputs
from wincli.windowing.columns.row_hashes import RowDigest, RowHasher
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.errors import ConfigError, DataError, OutputError
from wincli.windowing.ports import Part, ResultPart
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.partitioning import bind_partitions
from wincli.writers.output.sink import FileSink
from wincli.writers.places.lock import Owner

OWNER = Owner(os.getpid(), "here", "2026-11-01T00:00:00Z")
SCHEMA = pa.schema([("user", pa.string()), ("day", pa.date32()), ("n", pa.int64()), ("_at", pa.int64())])
REJECTS = reject_schema(pa.schema([("user", pa.string())]))
NULL = "__HIVE_DEFAULT_PARTITION__"
USERS = ["ann", "b/c", "..", "x y", "007", "é", "c:d=%20", "line\nend", None]
ROWS = pa.table(
    {
        "user": [user for user in USERS for _ in range(3)],
        "day": pa.array([20_000 + n % 2 for n in range(27)], pa.int32()).cast(pa.date32()),
        "n": range(27),
        "_at": range(27),
    },
    schema=SCHEMA,
)


def sink_of(output: Output, *by: str, format: Any = "parquet", most_open: int = 4) -> FileSink:
    sink = output.sink(format, SCHEMA, REJECTS, bind_partitions([(name, None) for name in by], SCHEMA, most_open))
    return pickle.loads(pickle.dumps(sink))


def put(out: str, *by: str, format: Any = "parquet", mode: Any = "error", rows: pa.Table = ROWS) -> tuple[Part, ...]:
    with open_output(out, mode, [], OWNER) as output:
        parts = sink_of(output, *by, format=format).write_parts(7, [rows.slice(0, 10), rows.slice(10)])
        output.commit({"parts": [{"name": part.name} for part in parts], "rejects": []})
    return parts


def files(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["usr"], "names 'usr', which the result does not have; did you mean 'user'"),
        (["user", "user"], "names 'user' twice"),
        (["_at"], "readers pass over folders whose name begins with _"),
        (["tags"], "values of type list<item: string> cannot name a folder"),
        (["x" * 200], "is too long for a folder"),
        (["user", "tags", "n"], "cannot name a folder"),
    ],
)
def test_a_column_that_cannot_divide_a_result_is_an_error(names: list[str], message: str) -> None:
    schema = pa.schema([*SCHEMA, ("tags", pa.list_(pa.string())), ("x" * 200, pa.int64())])
    with pytest.raises(ConfigError) as error:
        bind_partitions([(name, None) for name in names], schema, 1)
    assert message in str(error.value).replace("\n", "; ").replace("wincli: ", "")


def test_a_column_is_left_for_the_files() -> None:
    with pytest.raises(ConfigError, match="leaves no column in the files"):
        bind_partitions([("user", None)], pa.schema([("user", pa.string())]), 1)
    assert bind_partitions([], SCHEMA, 1) is None


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl", "orc"])
def test_a_folder_for_each_value_holds_its_rows_without_the_column(tmp_path: Path, format: str) -> None:
    parts = put(str(tmp_path / "out"), "user", format=format)
    names = ["ann", "b%2Fc", "..", "x y", "007", "é", "c%3Ad%3D%2520", "line%0Aend", NULL]
    expected = sorted(f"user={name}/part-00007.{format}" for name in names)
    assert [part.name for part in parts] == expected
    assert files(tmp_path / "out") == sorted([*expected, "_SUCCESS", "_wincli/manifest.json"])
    assert all(part.rows == 3 and part.nbytes == (tmp_path / "out" / part.name).stat().st_size for part in parts)
    if format == "csv":
        text = (tmp_path / "out" / "user=ann" / "part-00007.csv").read_text()
        assert text == '"day","n","_at"\n2024-10-04,0,0\n2024-10-05,1,1\n2024-10-04,2,2\n'


def test_pyarrow_duckdb_and_polars_read_the_values_back(tmp_path: Path) -> None:
    put(str(tmp_path / "out"), "day", "user")
    expected = sorted(
        zip(*(ROWS[name].cast(pa.string()).to_pylist() for name in ("user", "day", "n")), strict=True), key=str
    )
    glob = str(tmp_path / "out" / "**" / "*.parquet")
    read = {
        "pyarrow": ds.dataset(tmp_path / "out", partitioning="hive").to_table(),
        "duckdb": duckdb.sql(f"select * from read_parquet('{glob}', hive_partitioning = true)").to_arrow_table(),
        "polars": pl.read_parquet(glob, hive_partitioning=True).to_arrow(),
    }
    for reader, table in read.items():
        texts = [table[name].cast(pa.string()).to_pylist() for name in ("user", "day", "n")]
        assert sorted(zip(*texts, strict=True), key=str) == expected, reader
    kinds = {reader: str(table.schema.field("day").type) for reader, table in read.items()}
    assert kinds == {"pyarrow": "string", "duckdb": "date32[day]", "polars": "date32[day]"}


def test_a_result_without_rows_has_a_file_that_gives_its_columns(tmp_path: Path) -> None:
    (part,) = put(str(tmp_path / "out"), "day", "user", rows=ROWS.slice(0, 0))
    assert part.name == f"day={NULL}/user={NULL}/part-00007.parquet"
    assert part.rows == 0
    glob = str(tmp_path / "out" / "**" / "*.parquet")
    found = duckdb.sql(f"select * from read_parquet('{glob}', hive_partitioning = true)").to_arrow_table()
    assert (found.num_rows, found.column_names) == (0, ["n", "_at", "day", "user"])
    assert pl.read_parquet(glob, hive_partitioning=True).columns == ["n", "_at", "day", "user"]


def test_more_values_than_files_may_be_open_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = put(str(tmp_path / "few"), "user", "n")
    monkeypatch.setattr("wincli.writers.output.partitioning.write_folders.__defaults__", (1,))
    assert [(part.name, part.rows) for part in put(str(tmp_path / "many"), "user", "n")] == [
        (part.name, part.rows) for part in few
    ]


def test_a_retried_task_replaces_its_files_and_a_discarded_result_leaves_no_folder(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink = sink_of(output, "user")
        sink.write_rejects(0, pa.table({"user": ["x"]}))
        first = sink.write_parts(1, [ROWS])
        assert sink.write_parts(1, [ROWS]) == first
        Path(output.staging, first[0].name).with_name(".part-00001.parquet.0123456789ab").write_text("half")
        sink.discard()
        assert sorted(path.name for path in Path(output.staging).iterdir()) == ["_rejected"]


def test_a_value_that_no_folder_can_be_named_by_leaves_the_old_result(tmp_path: Path) -> None:
    put(str(tmp_path / "out"), "user")
    before = files(tmp_path / "out")
    with pytest.raises(DataError, match="would name a folder with 305 bytes"):
        put(str(tmp_path / "out"), "user", mode="overwrite", rows=ROWS.set_column(0, "user", [["a" * 300] * 27]))
    assert files(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_lost_file_of_a_folder_is_seen_at_the_commit(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        parts = sink_of(output, "user").write_parts(0, [ROWS])
        Path(output.staging, parts[3].name).unlink()
        with pytest.raises(OutputError, match="was written by a task but is not here"):
            output.commit({"parts": [{"name": part.name} for part in parts], "rejects": []})


def test_folders_go_to_a_store_and_are_replaced_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_for_outputs(tmp_path, "store://", monkeypatch)
    (tmp_path / "bucket").mkdir()
    put("store://bucket/out", "user")
    parts = put("store://bucket/out", "day", mode="overwrite")
    expected = [*(part.name for part in parts), "_SUCCESS", "_wincli/manifest.json"]
    assert files(tmp_path / "bucket" / "out") == sorted(expected)


@pytest.mark.parametrize("by", [(), ("user",), ("day", "user"), ("n",)])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_digests_of_parts_add_up_to_that_of_all_rows_however_they_are_divided(
    tmp_path: Path, by: tuple[str, ...], format: str
) -> None:
    parts = put(str(tmp_path / "out"), *by, format=format)
    digests = [RowDigest.parse(part.digest) for part in parts if isinstance(part, ResultPart)]
    assert sum(filter(None, digests), RowDigest()) == RowHasher(SCHEMA).digest(ROWS)


def test_an_empty_text_of_a_partition_column_counts_as_null(tmp_path: Path) -> None:
    rows, null = ROWS.slice(0, 1), pa.array([None], pa.string())
    (part,) = put(str(tmp_path / "out"), "user", rows=rows.set_column(0, "user", pa.array([""])))
    assert isinstance(part, ResultPart)
    assert part.digest == str(RowHasher(SCHEMA).digest(rows.set_column(0, "user", null)))
