"""Delta and Iceberg tables as inputs: versions, partitions, columns that files lack, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import fs, parquet
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

from support.iceberg_catalog import Lake
from support.readers import read_all, source
from wincli.readers.files.file import Located
from wincli.readers.files.listing import NoFilesError, list_files, list_folders
from wincli.readers.files.walk import spot_at, walk
from wincli.windowing.errors import ConfigError, InputError

DAYS = (dt.date(2026, 11, 1), dt.date(2026, 11, 2))


def rows_of(*paths: str, **options: Any) -> list[dict[str, Any]]:
    return read_all(source(*paths, **options)).rows


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
def delta(tmp_path: Path) -> str:
    """A table in two versions, by another writer, partitioned by day and text."""
    path = str(tmp_path / "in")
    write_deltalake(path, rows(1), partition_by=["day", "k"])
    write_deltalake(path, rows(11, n=[1.5, 2.5, 3.5]), mode="append", schema_mode="merge")
    return path


@pytest.fixture
def iceberg(lake: Lake) -> str:
    table = lake.catalog.create_table("logs.events", rows(1).schema)
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
        update.add_field("k", IdentityTransform(), "k")
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.union_by_name(pa.schema([("n", pa.float64())]))
    table.append(rows(11, n=[1.5, 2.5, 3.5]))
    return lake.address("events")


@pytest.fixture(params=["delta", "iceberg"])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def numbers(*paths: str, **options: Any) -> list[int]:
    """The values of column ``a``, sorted: files have names by chance."""
    return sorted(row["a"] for row in rows_of(*paths, **options))


def test_newest_version_has_all_rows_and_columns_by_path_of_file(path: str) -> None:
    found = sorted(rows_of(path), key=lambda row: row["a"])
    assert [row["a"] for row in found] == [1, 2, 3, 11, 12, 13]
    assert found[1] == {"a": 2, "n": None, "day": DAYS[0], "k": "y z/%"}
    assert found[5] == {"a": 13, "n": 3.5, "day": DAYS[1], "k": None}
    files = list_files([path]).files
    assert [file.place.path for file in files] == sorted(file.place.path for file in files)
    assert [split.base for split in source(path).splits] == list(range(6))


def test_partition_is_read_as_a_folder_is(path: str) -> None:
    found = rows_of(f"{path}/day=2026-11-01")
    assert sorted(row["a"] for row in found) == [1, 2, 11, 12]
    assert "day" not in found[0]
    assert rows_of(f"{path}/day=2026-11-01", bases=(path,))[0]["day"] == DAYS[0]
    assert set(list_folders(path)) == {
        *("day=2026-11-01", "day=2026-11-02", "k=x", "k=y z%2F%25", "k=__HIVE_DEFAULT_PARTITION__")
    }
    assert numbers(f"{path}/day=2026-11-02/k=__HIVE_DEFAULT_PARTITION__") == [3, 13]
    with pytest.raises(NoFilesError, match="no rows"):
        rows_of(f"{path}/day=1999-01-01")
    with pytest.raises(InputError, match=r"partitioned by (day and k, and not by 'a'|a, beside others)"):
        rows_of(f"{path}/a=1")


# Delta


def change_log(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the lines of the first version of a log."""
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        change(line)
    log.write_text("\n".join(map(json.dumps, lines)))


def test_former_version_is_named_by_number_or_time(delta: str) -> None:
    for version, day in enumerate((1, 5)):
        at = dt.datetime(2026, 1, day, tzinfo=dt.UTC).timestamp()
        os.utime(Path(delta) / "_delta_log" / f"{version:020}.json", (at, at))
    for version in ("0", "2026-01-01", "2026-01-05T01:59:59+02:00"):
        assert numbers(delta, version=version) == [1, 2, 3]
    assert numbers(delta, version="0", format="delta") == [1, 2, 3]
    assert "n" not in rows_of(delta, version="0")[0]
    assert len(rows_of(delta, version="2026-01-05")) == 6
    for named, error, text in (
        ("2025-12-31", InputError, r"no version at 2025-12-31; its first is of 2026-01-01T00:00:00\+00:00"),
        ("7", InputError, "has no version 7; its newest is 1"),
        ("soon", ConfigError, "'soon' names no version of .*in"),
    ):
        with pytest.raises(error, match=text):
            rows_of(delta, version=named)


def test_files_of_a_table_that_are_named_one_by_one_have_its_partitions(tmp_path: Path) -> None:
    """Other programs put files of partitions anywhere: only the log knows their values."""
    path = tmp_path / "in"
    write_deltalake(str(path), rows(1), partition_by=["day"])

    def move_to_the_top(line: dict[str, Any]) -> None:
        if "add" in line:
            old = path / line["add"]["path"]
            line["add"]["path"] = f"{old.parent.name[-1]}-{old.name}"
            old.rename(path / line["add"]["path"])

    change_log(path, move_to_the_top)
    named = [file.place.path for file in list_files([str(path)]).files]
    assert all("day=" not in each.removeprefix(str(path)) for each in named)
    found = rows_of(*named, bases=(str(path),))
    assert sorted((row["a"], row["day"]) for row in found) == [(1, DAYS[0]), (2, DAYS[0]), (3, DAYS[1])]


def test_files_that_are_no_table(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n1\n")
    with pytest.raises(InputError, match="is no Delta table"):
        rows_of(str(file), format="delta")
    with pytest.raises(ConfigError, match="files have no versions"):
        rows_of(str(file), version="1")
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(InputError, match="no Delta table"):
        rows_of(str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("feature", "configuration", "text"),
    [
        ("columnMapping", {"delta.columnMapping.mode": "name"}, "column mapping by name"),
        ("typeWidening", {"delta.enableTypeWidening": "true"}, "feature typeWidening"),
        ("deletionVectors", {}, "deletion vectors"),
    ],
)
def test_tables_whose_files_do_not_hold_their_rows_are_refused(
    tmp_path: Path, feature: str, configuration: dict[str, str], text: str
) -> None:
    """No library here writes such tables, so a log is changed by hand; six rows of its file are deleted."""
    write_deltalake(str(tmp_path / "in"), pa.table({"a": range(40)}))

    def change(line: dict[str, Any]) -> None:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7}
            line["protocol"] |= {"readerFeatures": [feature], "writerFeatures": [feature]}
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            for at, field in enumerate(schema["fields"], 1):
                field["metadata"] = {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": f"col-{at}"}
            line["metaData"] |= {"configuration": configuration, "schemaString": json.dumps(schema)}
        if "add" in line and feature == "deletionVectors":
            inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # the example of the protocol
            line["add"]["deletionVector"] = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 44}
            line["add"]["deletionVector"]["cardinality"] = 6

    change_log(tmp_path / "in", change)
    with pytest.raises(InputError, match=text):
        rows_of(str(tmp_path / "in"))


@pytest.mark.parametrize("path", ["lake", "lak*", "lake/*"])
def test_table_below_a_folder_is_not_read_file_by_file(delta: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    Path(delta).rename(tmp_path / "lake" / "in")
    with pytest.raises(InputError, match=r"lake/in \(a Delta table, to be read by its own path\) cannot be read"):
        list_files([str(tmp_path / path)])
    with pytest.raises(NoFilesError, match=r"holds no files that can be read: .*lake/in|nothing matches"):
        list_files([str(tmp_path / path)], skip_unreadable=True)
    (tmp_path / "lake" / "x.csv").write_text("a\n1\n")
    if path != "lak*":
        found = list_files([str(tmp_path / path)], skip_unreadable=True)
        assert [file.place.path for file in found.files] == [str(tmp_path / "lake" / "x.csv")]
    spot = spot_at(Located(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "lake", "lake"))
    assert spot is not None
    assert sorted((each.below, each.entry.kind) for each in walk(spot)) == [
        ("in", "a Delta table, to be read by its own path"),
        ("x.csv", "a file"),
    ], "also in a store"


def test_tables_with_a_column_of_two_types_have_it_in_the_wider_one(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("wide", "narrow")]
    for path, kind, number in zip(paths, (pa.int64(), pa.int32()), (1 << 40, 1), strict=True):
        write_deltalake(path, pa.table({"a": pa.array([number], kind)}))
    assert numbers(*paths) == [1, 1 << 40]


# Iceberg


def test_former_snapshot_by_number_time_branch_and_tag(lake: Lake, iceberg: str) -> None:
    table = lake.table("events")
    first = table.history()[0]
    table.manage_snapshots().create_tag(first.snapshot_id, "first").commit()
    time = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    for version in (str(first.snapshot_id), time.isoformat(), time.replace(tzinfo=None).isoformat(), "first"):
        assert numbers(iceberg, version=version) == [1, 2, 3]
        assert "n" not in rows_of(iceberg, version=version)[0]
    assert len(rows_of(iceberg, version="main")) == 6
    for version, error, says in (
        ("12345", InputError, "has no snapshot 12345; it has"),
        ("2001-01-01T00:00", InputError, "has no snapshot 2001-01-01"),
        ("tomorrow", ConfigError, r"'tomorrow' names no snapshot .* branch or tag \(first, main\)"),
    ):
        with pytest.raises(error, match=says):
            rows_of(iceberg, version=version)


def test_columns_are_known_by_their_ids(lake: Lake, iceberg: str) -> None:
    table = lake.table("events")
    first = str(table.history()[0].snapshot_id)
    with table.update_schema() as update:
        update.rename_column("a", "b").rename_column("n", "a").rename_column("day", "date")
    table.append(pa.table({"b": [21], "date": [DAYS[0]], "k": ["x"], "a": [9.5]}))
    found = sorted(rows_of(iceberg), key=lambda row: row["b"])
    numbered = [(1, None), (2, None), (3, None), (11, 1.5), (12, 2.5), (13, 3.5), (21, 9.5)]
    assert [(row["b"], row["a"]) for row in found] == numbered
    assert {row["date"] for row in found} == set(DAYS)
    former = sorted(rows_of(iceberg, version=first), key=lambda row: row["a"])
    assert [row["day"] for row in former] == [DAYS[0], DAYS[0], DAYS[1]]
    with table.update_schema() as update:
        update.delete_column("a")
    assert "a" not in rows_of(iceberg)[0]
    with table.update_schema() as update:
        update.add_column("a", StringType())
    assert {row["a"] for row in rows_of(iceberg)} == {None}, "a column that is made anew is another"


def test_column_of_a_wider_type_is_read_in_it(lake: Lake) -> None:
    table = lake.catalog.create_table("logs.events", pa.schema([("a", pa.int32())]))
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    with table.update_schema() as update:
        update.update_column("a", LongType())
    table.append(pa.table({"a": pa.array([1 << 40], pa.int64())}))
    assert numbers(lake.address("events")) == [1, 1 << 40]


def test_files_that_others_wrote_without_ids_are_read_by_the_names_of_the_table(lake: Lake, tmp_path: Path) -> None:
    table = lake.catalog.create_table("logs.events", pa.schema([("a", pa.int64()), ("s", pa.string())]))
    parquet.write_table(pa.table({"s": ["x"], "a": [1]}), tmp_path / "x.parquet")
    table.add_files([f"file://{tmp_path}/x.parquet"])
    with table.update_schema() as update:
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


def test_delete_files_are_refused(lake: Lake, iceberg: str) -> None:
    table = lake.table("events")
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
        rows_of(iceberg)
    assert rows_of(f"{iceberg}/day=2026-11-02")


def test_tables_that_are_missing_empty_or_of_another_kind_are_said(lake: Lake) -> None:
    path = lake.address("events")
    with pytest.raises(InputError, match="has no table logs"):
        rows_of(path)
    table = lake.catalog.create_table("logs.events", rows(1).schema)
    with pytest.raises(NoFilesError, match="has no rows"):
        rows_of(path)
    table.append(rows(1))
    with pytest.raises(InputError, match="not partitioned by day"):
        rows_of(f"{path}/day=2026-11-01")
    with pytest.raises(InputError, match="events is no Delta table"):
        rows_of(path, format="delta")
