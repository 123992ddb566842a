"""Iceberg tables as inputs: snapshots, partitions, columns by field id, and what is refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.iceberg_catalog import Lake
from wincli.readers.files.listing import NoFilesError, list_files, list_folders
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.local_executor import LocalExecutor

DAYS = (dt.date(2026, 11, 1), dt.date(2026, 11, 2))


def rows_of(*paths: str, **options: Any) -> list[dict[str, Any]]:
    source = open_source(paths, ReadOptions(**options), LocalExecutor())
    found = [source.read(split, source.schema.names).rows for split in source.splits]
    return pa.concat_tables(found).to_pylist()


def rows(first: int, **more: Any) -> pa.Table:
    values = {"a": pa.array(range(first, first + 3), pa.int64()), "day": pa.array([DAYS[0], DAYS[0], DAYS[1]])}
    return pa.table({**values, "k": ["x", "y z/%", None], **more})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.set_environment(monkeypatch)
    lake.make()
    return lake


@pytest.fixture
def path(lake: Lake) -> str:
    """A table in two snapshots, by another writer, partitioned by day and text."""
    from pyiceberg.transforms import IdentityTransform

    table = lake.catalog.create_table("logs.events", rows(1).schema)
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
        update.add_field("k", IdentityTransform(), "k")
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.union_by_name(pa.schema([("n", pa.float64())]))
    table.append(rows(11, n=[1.5, 2.5, 3.5]))
    return lake.address("events")


def change(lake: Lake) -> Any:
    return lake.table("events")


def test_newest_snapshot_has_all_rows_and_columns(path: str) -> None:
    found = sorted(rows_of(path), key=lambda row: row["a"])
    assert [row["a"] for row in found] == [1, 2, 3, 11, 12, 13]
    assert found[1] == {"a": 2, "n": None, "day": DAYS[0], "k": "y z/%"}
    assert found[5] == {"a": 13, "n": 3.5, "day": DAYS[1], "k": None}


def test_former_snapshot_has_its_rows_and_columns(lake: Lake, path: str) -> None:
    first = change(lake).history()[0]
    time = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    for version in (str(first.snapshot_id), time.isoformat(), time.replace(tzinfo=None).isoformat()):
        found = rows_of(path, version=version)
        assert sorted(row["a"] for row in found) == [1, 2, 3]
        assert "n" not in found[0]


def test_snapshot_by_branch_or_tag(lake: Lake, path: str) -> None:
    table = change(lake)
    table.manage_snapshots().create_tag(table.history()[0].snapshot_id, "first").commit()
    assert len(rows_of(path, version="first")) == 3
    assert len(rows_of(path, version="main")) == 6


@pytest.mark.parametrize(
    ("version", "error", "says"),
    [
        ("12345", InputError, "has no snapshot 12345; it has"),
        ("2001-01-01T00:00", InputError, "has no snapshot 2001-01-01"),
        ("tomorrow", ConfigError, r"'tomorrow' names no snapshot .* branch or tag \(main\)"),
    ],
)
def test_other_snapshots_are_refused(path: str, version: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        rows_of(path, version=version)


def test_rows_arrive_by_path_of_file_and_then_by_row(path: str) -> None:
    files = list_files([path]).files
    assert [file.place.path for file in files] == sorted(file.place.path for file in files)
    source = open_source([path], ReadOptions(), LocalExecutor())
    assert [split.base for split in source.splits] == list(range(6))


def test_partition_is_read_as_a_folder_is(path: str) -> None:
    found = rows_of(f"{path}/day=2026-11-01")
    assert sorted(row["a"] for row in found) == [1, 2, 11, 12]
    assert "day" not in found[0]
    assert rows_of(f"{path}/day=2026-11-01", bases=(path,))[0]["day"] == DAYS[0]
    assert set(list_folders(path)) == {
        *("day=2026-11-01", "day=2026-11-02", "k=x", "k=y z%2F%25", "k=__HIVE_DEFAULT_PARTITION__")
    }
    assert sorted(row["a"] for row in rows_of(f"{path}/day=2026-11-02/k=__HIVE_DEFAULT_PARTITION__")) == [3, 13]
    with pytest.raises(NoFilesError, match="no rows"):
        rows_of(f"{path}/day=2026-11-03")


def test_column_with_a_new_name_is_read_by_its_id(lake: Lake, path: str) -> None:
    with change(lake).update_schema() as update:
        update.rename_column("a", "b").rename_column("n", "a")
    change(lake).append(pa.table({"b": [21], "day": [DAYS[0]], "k": ["x"], "a": [9.5]}))
    found = sorted(rows_of(path), key=lambda row: row["b"])
    assert [(row["b"], row["a"]) for row in found] == [
        *((1, None), (2, None), (3, None)),
        *((11, 1.5), (12, 2.5), (13, 3.5), (21, 9.5)),
    ]


def test_partition_column_that_was_renamed_since_has_its_values_in_a_former_snapshot(lake: Lake, path: str) -> None:
    first = str(change(lake).history()[0].snapshot_id)
    with change(lake).update_schema() as update:
        update.rename_column("day", "date")
    assert {row["date"] for row in rows_of(path)} == set(DAYS)
    found = sorted(rows_of(path, version=first), key=lambda row: row["a"])
    assert [row["day"] for row in found] == [DAYS[0], DAYS[0], DAYS[1]]


def test_column_that_was_deleted_and_made_anew_is_another(lake: Lake, path: str) -> None:
    from pyiceberg.types import StringType

    with change(lake).update_schema() as update:
        update.delete_column("n")
    assert "n" not in rows_of(path)[0]
    with change(lake).update_schema() as update:
        update.add_column("n", StringType())
    assert {row["n"] for row in rows_of(path)} == {None}


def test_column_of_a_wider_type_is_read_in_it(lake: Lake) -> None:
    from pyiceberg.types import LongType

    table = lake.catalog.create_table("logs.events", pa.schema([("a", pa.int32())]))
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    with table.update_schema() as update:
        update.update_column("a", LongType())
    table.append(pa.table({"a": pa.array([1 << 40], pa.int64())}))
    assert sorted(row["a"] for row in rows_of(lake.address("events"))) == [1, 1 << 40]


def test_files_that_others_wrote_without_ids_are_read_by_the_names_of_the_table(lake: Lake, tmp_path: Path) -> None:
    from pyarrow import parquet

    table = lake.catalog.create_table("logs.events", pa.schema([("a", pa.int64()), ("s", pa.string())]))
    parquet.write_table(pa.table({"s": ["x"], "a": [1]}), tmp_path / "x.parquet")
    table.add_files([f"file://{tmp_path}/x.parquet"])
    with change(lake).update_schema() as update:
        update.rename_column("s", "t")
    assert rows_of(lake.address("events")) == [{"a": 1, "t": "x"}]


def test_inner_field_with_a_new_name_is_refused(lake: Lake) -> None:
    kind = pa.struct([("x", pa.int64())])
    table = lake.catalog.create_table("logs.events", pa.schema([("a", kind)]))
    table.append(pa.table({"a": pa.array([{"x": 1}], kind)}))
    assert rows_of(lake.address("events")) == [{"a": {"x": 1}}]
    with table.update_schema() as update:
        update.rename_column("a.x", "y")
    with pytest.raises(InputError, match="has other inner fields"):
        rows_of(lake.address("events"))


def test_delete_files_are_refused(lake: Lake, path: str) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    table = change(lake)
    made = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{table.location()}/data/deletes.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(20758, "x"),
        record_count=1,
        file_size_in_bytes=1,
        spec_id=table.spec().spec_id,
    )
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(made)
    with pytest.raises(InputError, match="has delete files"):
        rows_of(path)
    assert rows_of(f"{path}/day=2026-11-02")


def test_partition_of_a_column_that_files_are_not_partitioned_by_is_refused(lake: Lake) -> None:
    table = lake.catalog.create_table("logs.events", rows(1).schema)
    table.append(rows(1))
    with pytest.raises(InputError, match="not partitioned by day"):
        rows_of(f"{lake.address('events')}/day=2026-11-01")


def test_missing_table_and_table_without_rows_are_said(lake: Lake) -> None:
    with pytest.raises(InputError, match="has no table logs"):
        rows_of(lake.address("events"))
    lake.catalog.create_table("logs.events", rows(1).schema)
    with pytest.raises(NoFilesError, match="has no rows"):
        rows_of(lake.address("events"))


def test_table_of_another_kind_than_the_format_says_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="events is no Delta table"):
        rows_of(path, format="delta")
