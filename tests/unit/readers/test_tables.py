"""Delta tables as inputs: versions, partitions, columns that files lack, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import fs

from wincli.readers.files.file import Located
from wincli.readers.files.listing import NoFilesError, list_files, list_folders
from wincli.readers.files.walk import spot_at, walk
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.local_executor import LocalExecutor

DAYS = (dt.date(2026, 11, 1), dt.date(2026, 11, 2))


def rows_of(*paths: str, **options: Any) -> list[dict[str, Any]]:
    source = open_source(paths, ReadOptions(**options), LocalExecutor())
    found = [source.read(split, source.schema.names).rows for split in source.splits]
    return pa.concat_tables(found).to_pylist()


def rows(first: int, **more: list[Any]) -> pa.Table:
    values = {"a": range(first, first + 3), "day": [DAYS[0], DAYS[0], DAYS[1]], "k": ["x", "y z/%", None], **more}
    return pa.table({**values, "a": pa.array(values["a"], pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "in")
    write_deltalake(path, rows(1), partition_by=["day", "k"])
    write_deltalake(path, rows(11, n=[1.5, 2.5, 3.5]), mode="append", schema_mode="merge")
    return path


def test_newest_version_has_all_rows_and_columns(table: str) -> None:
    found = sorted(rows_of(table), key=lambda row: row["a"])
    assert [row["a"] for row in found] == [1, 2, 3, 11, 12, 13]
    assert found[1] == {"a": 2, "n": None, "day": DAYS[0], "k": "y z/%"}
    assert found[5] == {"a": 13, "n": 3.5, "day": DAYS[1], "k": None}


@pytest.mark.parametrize("options", [{"version": "0"}, {"version": "0", "format": "delta"}])
def test_former_version_has_its_rows_and_columns(table: str, options: dict[str, Any]) -> None:
    found = rows_of(table, **options)
    assert sorted(row["a"] for row in found) == [1, 2, 3]
    assert "n" not in found[0]


def test_version_by_time_is_the_newest_that_was_there_then(table: str) -> None:
    for version, day in enumerate((1, 5)):
        at = dt.datetime(2026, 1, day, tzinfo=dt.UTC).timestamp()
        os.utime(Path(table) / "_delta_log" / f"{version:020}.json", (at, at))
    assert len(rows_of(table, version="2026-01-01")) == 3
    assert len(rows_of(table, version="2026-01-05T01:59:59+02:00")) == 3
    assert len(rows_of(table, version="2026-01-05")) == 6
    with pytest.raises(InputError, match=r"has no version at 2025-12-31; its first is of 2026-01-01T00:00:00\+00:00"):
        rows_of(table, version="2025-12-31")


def test_rows_arrive_by_path_of_file_and_then_by_row(table: str) -> None:
    files = list_files([table]).files
    assert [file.place.path for file in files] == sorted(file.place.path for file in files)
    source = open_source([table], ReadOptions(), LocalExecutor())
    assert [split.base for split in source.splits] == list(range(6))


def test_partition_is_read_as_a_folder_is(table: str) -> None:
    found = rows_of(f"{table}/day=2026-11-01")
    assert sorted(row["a"] for row in found) == [1, 2, 11, 12]
    assert "day" not in found[0]
    assert rows_of(f"{table}/day=2026-11-01", bases=(table,))[0]["day"] == DAYS[0]
    assert set(list_folders(table)) == {
        *("day=2026-11-01", "day=2026-11-02", "k=x", "k=y z%2F%25", "k=__HIVE_DEFAULT_PARTITION__")
    }


def test_partition_without_rows_has_no_files(table: str) -> None:
    with pytest.raises(NoFilesError, match="has no rows in version 1 of the table"):
        rows_of(f"{table}/day=1999-01-01")


def test_files_of_a_table_that_are_named_one_by_one_have_its_partitions(tmp_path: Path) -> None:
    """Other programs put files of partitions anywhere: only the log knows their values."""
    path = tmp_path / "in"
    write_deltalake(str(path), rows(1), partition_by=["day"])
    move_files_to_the_top(path)
    named = [file.place.path for file in list_files([str(path)]).files]
    assert all("day=" not in each.removeprefix(str(path)) for each in named)
    found = rows_of(*named, bases=(str(path),))
    assert sorted((row["a"], row["day"]) for row in found) == [(1, DAYS[0]), (2, DAYS[0]), (3, DAYS[1])]


def move_files_to_the_top(path: Path) -> None:
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for at, line in enumerate(lines):
        if "add" in line:
            old = path / line["add"]["path"]
            line["add"]["path"] = f"f{at}-{old.name}"
            old.rename(path / line["add"]["path"])
    log.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"version": "7"}, InputError, "has no version 7; its newest is 1"),
        ({"version": "1970-01-02"}, InputError, "has no version at 1970-01-02; its first is of 20"),
        ({"version": "soon"}, ConfigError, "'soon' names no version of .*in"),
    ],
)
def test_version_that_is_not_there(table: str, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        rows_of(table, **options)


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
    ],
)
def test_tables_whose_files_do_not_hold_their_rows_are_refused(
    tmp_path: Path, feature: str, configuration: dict[str, str], text: str
) -> None:
    write_deltalake(str(tmp_path / "in"), rows(1))
    log = tmp_path / "in" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7}
            line["protocol"] |= {"readerFeatures": [feature], "writerFeatures": [feature]}
        if "metaData" in line:
            line["metaData"] |= {"configuration": configuration, "schemaString": mapped(line["metaData"])}
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=text):
        rows_of(str(tmp_path / "in"))


def mapped(metadata: dict[str, Any]) -> str:
    """Return the schema of a table with the other names that column mapping gives."""
    schema = json.loads(metadata["schemaString"])
    for at, field in enumerate(schema["fields"], 1):
        field["metadata"] = {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": f"col-{at}"}
    return json.dumps(schema)


def test_rows_that_deletion_vectors_delete_are_not_read(tmp_path: Path) -> None:
    """No library here writes deletion vectors, so a log gets one by hand: six rows of its file are deleted."""
    write_deltalake(str(tmp_path / "in"), pa.table({"a": range(40)}))
    log = tmp_path / "in" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7}
            line["protocol"] |= {key: ["deletionVectors"] for key in ("readerFeatures", "writerFeatures")}
        if "add" in line:
            inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # the example of the protocol
            line["add"]["deletionVector"] = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 44}
            line["add"]["deletionVector"]["cardinality"] = 6
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="deletion vectors"):
        rows_of(str(tmp_path / "in"))


def test_column_that_no_partition_is_of_is_refused_in_a_path(table: str) -> None:
    with pytest.raises(InputError, match="is partitioned by day and k, and not by 'a'"):
        rows_of(f"{table}/a=1")


@pytest.mark.parametrize("path", ["lake", "lak*", "lake/*"])
def test_table_below_a_folder_is_not_read_file_by_file(table: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    Path(table).rename(tmp_path / "lake" / "in")
    with pytest.raises(InputError, match=r"lake/in \(a Delta table, to be read by its own path\) cannot be read"):
        list_files([str(tmp_path / path)])
    with pytest.raises(NoFilesError, match=r"holds no files that can be read: .*lake/in|nothing matches"):
        list_files([str(tmp_path / path)], skip_unreadable=True)
    (tmp_path / "lake" / "x.csv").write_text("a\n1\n")
    if path != "lak*":
        found = list_files([str(tmp_path / path)], skip_unreadable=True)
        assert [file.place.path for file in found.files] == [str(tmp_path / "lake" / "x.csv")]


def test_table_below_a_folder_of_a_store_is_one_thing(table: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "x.csv").write_text("a\n1\n")
    Path(table).rename(tmp_path / "lake" / "in")
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    spot = spot_at(Located(store, "lake", "lake"))
    assert spot is not None
    assert sorted((each.below, each.entry.kind) for each in walk(spot)) == [
        ("in", "a Delta table, to be read by its own path"),
        ("x.csv", "a file"),
    ]


def test_tables_with_a_column_of_two_types_have_it_in_the_wider_one(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("wide", "narrow")]
    for path, kind, number in zip(paths, (pa.int64(), pa.int32()), (1 << 40, 1), strict=True):
        write_deltalake(path, pa.table({"a": pa.array([number], kind)}))
    assert sorted(row["a"] for row in rows_of(*paths)) == [1, 1 << 40]
