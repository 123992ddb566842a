"""An Iceberg table as an output: one snapshot publishes, and a run that ends before it leaves nothing."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import fs
from pyiceberg.table.snapshots import Operation, update_snapshot_summaries

from support.iceberg_catalog import Lake
from support.numbered_units import ME
from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import ConfigError, DataError, OutputError
from wincli.windowing.support.file_systems import file_system_of
from wincli.writers.commit import version_table
from wincli.writers.commit.contract import Progress
from wincli.writers.commit.tables import table_of
from wincli.writers.output.manifest import _part
from wincli.writers.output.output import Output, open_output

SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])
REJECTS = pa.schema([("n", pa.int64())])
DATE = dt.date(2026, 11, 2)
DAY, NEXT = "clicks/day=2026-11-02", "clicks/day=2026-11-03"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return made(Lake(tmp_path / "lake"), monkeypatch)


@pytest.fixture(params=["disk", "store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A catalog whose tables are on disk or in a store."""
    if request.param == "disk":
        return made(Lake(tmp_path / "lake"), monkeypatch)
    bucket: S3Bucket = request.getfixturevalue("s3")
    return made(Lake(tmp_path / "lake", f"{bucket.uri}/tables"), monkeypatch)


def made(lake: Lake, monkeypatch: pytest.MonkeyPatch, is_new: bool = True) -> Lake:
    lake.set_environment(monkeypatch)
    if is_new:
        lake.make()
    return lake


def rows(*numbers: int) -> pa.Table:
    return pa.table([[f"u{n}" for n in numbers], list(numbers), [["a"]] * len(numbers)], schema=SCHEMA)


def write(output: Output, *tables: pa.Table, schema: pa.Schema = SCHEMA) -> dict[str, Any]:
    """Write a part for each table and some rejects, and return the manifest."""
    sink = output.result_sink("parquet", schema, REJECTS)
    parts = [part for at, table in enumerate(tables) for part in sink.write_parts(at, [table])]
    rejects = sink.write_rejects(0, pa.table({"n": [7]}))
    value = sum(sum(table["n"].to_pylist()) for table in tables)
    return {
        "value": value,
        "rows_out": sum(table.num_rows for table in tables),
        "parts": [_part(part) for part in parts],
        "rejects": [_part(rejects)],
    }


def put(lake: Lake, name: str, *tables: pa.Table, evolve: bool = False, schema: pa.Schema = SCHEMA) -> None:
    with open_output(lake.address(name), "overwrite", [], ME, evolve=evolve) as output:
        output.commit(write(output, *tables, schema=schema))


def interrupt(output: Output) -> None:
    output.prepare(write(output, rows(1)))
    raise KeyboardInterrupt


def numbers(lake: Lake) -> list[int]:
    return sorted(lake.rows("clicks")["n"].to_pylist())


def files(lake: Lake) -> set[str]:
    """All files of the tables but those of Iceberg itself; folders without a file, too."""
    system, path = file_system_of(lake.warehouse)
    found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    names = {info.path.removeprefix(f"{path}/") for info in found}
    return {name for name in names if "/metadata" not in name and name.count("/") > 1}


def test_result_is_published_in_one_snapshot(lake: Lake) -> None:
    put(lake, DAY, rows(1, 2), rows(3))
    put(lake, NEXT, rows(4))
    put(lake, DAY, rows(5))
    assert numbers(lake) == [4, 5]
    assert len(lake.table("clicks").snapshots()) == 3
    manifest = table_of(lake.address(DAY)).manifest()
    assert manifest is not None
    assert manifest["value"] == 5
    assert table_of(lake.address(DAY)).missing(manifest) is None
    assert "statistics" not in manifest["parts"][0]


def test_files_have_field_ids_and_partition_column(disk: Lake) -> None:
    from pyarrow import parquet

    put(disk, DAY, rows(1))
    (file,) = disk.table("clicks").scan().plan_files()
    schema = parquet.read_schema(file.file.file_path.removeprefix("file://"))
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}
    assert ids == {"user": 1, "n": 2, "tags": 3, "day": 4}
    assert schema.field("tags").type.value_field.metadata[b"PARQUET:field_id"] == b"5"
    assert file.file.lower_bounds[2] == (1).to_bytes(8, "little")


def test_result_without_rows_replaces_rows(lake: Lake) -> None:
    put(lake, DAY, rows(1))
    put(lake, DAY, rows())
    put(lake, NEXT, rows())
    assert numbers(lake) == []
    put(lake, DAY, rows(2))
    assert numbers(lake) == [2]
    assert len(list(lake.table("clicks").inspect.files().to_pylist())) == 2


def test_mode_error_refuses_result_that_is_there(disk: Lake) -> None:
    put(disk, DAY, rows(1))
    with (
        pytest.raises(ConfigError, match="already holds a result"),
        open_output(disk.address(DAY), "error", [], ME),
    ):
        pass
    with open_output(disk.address(NEXT), "error", [], ME) as output:
        output.commit(write(output, rows(2)))
    assert numbers(disk) == [1, 2]


def test_rows_of_others_are_not_replaced(disk: Lake) -> None:
    put(disk, "seen", rows(1))
    made = disk.catalog.create_table("logs.clicks", disk.table("seen").schema())
    made.append(rows(9).cast(made.schema().as_arrow()))
    with (
        pytest.raises(ConfigError, match="was not written by wincli"),
        open_output(disk.address("clicks"), "overwrite", [], ME),
    ):
        pass
    assert numbers(disk) == [9]


@pytest.mark.parametrize("is_new", [True, False])
def test_run_that_ends_before_its_snapshot_leaves_nothing(lake: Lake, is_new: bool) -> None:
    if not is_new:
        put(lake, NEXT, rows(4))
    before = files(lake)
    with pytest.raises(KeyboardInterrupt), open_output(lake.address(DAY), "error", [], ME) as output:
        interrupt(output)
    assert files(lake) - {"logs/clicks/data"} == before - {"logs/clicks/data"}
    assert lake.catalog.table_exists("logs.clicks") is not is_new


def test_next_run_removes_what_a_killed_one_left(lake: Lake) -> None:
    put(lake, DAY, rows(1))
    table = table_of(lake.address(DAY))
    killed = Output(table, table.commit("0123456789ab"), "overwrite")
    killed.table_commit.open()
    killed.prepare(write(killed, rows(7), rows(8)))
    assert any("0123456789ab" in name for name in files(lake))
    put(lake, DAY, rows(2))
    assert not [name for name in files(lake) if "0123456789ab" in name]
    assert numbers(lake) == [2]


def test_leftovers_of_published_run_keep_its_files(disk: Lake) -> None:
    table = table_of(disk.address(DAY))
    killed = Output(table, table.commit("0123456789ab"), "overwrite")
    table.make_parents()
    killed.table_commit.open()
    killed.commit(write(killed, rows(7)))
    with table.hold(ME):
        table.remove_leftovers()
    assert numbers(disk) == [7]
    assert [name for name in files(disk) if ".wincli-new" in name] == []
    manifest = table.manifest()
    assert manifest is not None
    assert table.missing(manifest) is None


def test_prepared_result_is_published_by_any_process(lake: Lake) -> None:
    table = table_of(lake.address(DAY))
    table.make_parents()
    killed = Output(table, table.commit("0123456789ab"), "overwrite")
    killed.table_commit.open()
    killed.prepare({**write(killed, rows(7)), "run": "run-of-state"})
    other = table_of(lake.address(DAY))
    assert other.token_of("run-of-state") == "0123456789ab"
    commit = other.commit("0123456789ab")
    assert commit.progress("run-of-state") is Progress.READY
    assert commit.progress("another") is Progress.GONE
    commit.recover("run-of-state")
    commit.recover("run-of-state")
    assert commit.progress("run-of-state") is Progress.PUBLISHED
    assert numbers(lake) == [7]
    assert len(lake.table("clicks").snapshots()) == 1


def test_run_that_lost_its_table_does_not_publish(lake: Lake) -> None:
    put(lake, DAY, rows(1))
    table = table_of(lake.address(DAY))
    paused = Output(table, table.commit("0123456789ab"), "overwrite")
    paused.table_commit.open()
    paused.prepare(write(paused, rows(7)))
    winner = Output(table, table.commit("abcdef012345"), "overwrite")
    winner.table_commit.open()
    winner.commit(write(winner, rows(8)))
    assert paused.table_commit.progress("0123456789ab") is Progress.GONE
    with pytest.raises(OutputError, match="another program has written to"):
        paused.publish()
    assert numbers(lake) == [8]


@pytest.mark.parametrize(
    ("stage", "is_there"),
    [("open", True), ("written", True), ("prepared", True), ("prepared", False), ("checked", False)],
)
def test_paused_run_that_was_cleaned_up_after_cannot_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Bucket, stage: str, is_there: bool
) -> None:
    lake = made(Lake(tmp_path / "lake", f"{s3.uri}/tables"), monkeypatch)
    if is_there:
        put(lake, NEXT, rows(1))
    table = table_of(lake.address(DAY))
    paused = Output(table, table.commit("0123456789ab"), "overwrite")

    def clean_up() -> None:
        other = table_of(lake.address(DAY))
        with other.hold(ME):
            other.remove_leftovers()

    paused.table_commit.open()
    if stage == "open":
        clean_up()
    manifest = write(paused, rows(7))
    if stage == "written":
        clean_up()
    if stage == "checked":  # between the check of the files and the description of the snapshot
        check = version_table.check_run_files
        monkeypatch.setattr(version_table, "check_run_files", lambda *args: (check(*args), clean_up()))

    def go_on() -> None:
        paused.prepare(manifest)
        if stage == "prepared":
            clean_up()
        paused.publish()

    with pytest.raises(OutputError):
        go_on()
    monkeypatch.undo()
    made(lake, monkeypatch, is_new=False)
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    if lake.catalog.table_exists("logs.clicks"):
        assert numbers(lake) == ([1] if is_there else [])
    put(lake, DAY, rows(2))
    assert numbers(lake) == ([1, 2] if is_there else [2])


def test_result_is_known_after_its_snapshot_has_expired(disk: Lake) -> None:
    put(disk, DAY, rows(1))
    put(disk, NEXT, rows())
    table = disk.table("clicks")
    table.append(rows(9).append_column("day", pa.array([None], pa.date32())).cast(table.schema().as_arrow()))
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:-1]]).commit()
    assert [table_of(disk.address(name)).manifest()["value"] for name in (DAY, NEXT)] == [1, 0]


def test_part_that_others_deleted_is_missing(disk: Lake) -> None:
    put(disk, DAY, rows(1))
    manifest = table_of(disk.address(DAY)).manifest()
    disk.table("clicks").delete("day = '2026-11-02'")
    assert manifest is not None
    assert "lacks part-00000-" in str(table_of(disk.address(DAY)).missing(manifest))


def test_new_column_is_added_with_evolve(disk: Lake) -> None:
    wide = pa.schema([*SCHEMA, ("place", pa.string())])
    put(disk, DAY, rows(1))
    more = rows(2).append_column("place", pa.array(["x"]))
    with pytest.raises(ConfigError, match="the table lacks place"):
        put(disk, NEXT, more, schema=wide)
    put(disk, NEXT, more, schema=wide, evolve=True)
    assert {row["n"]: row["place"] for row in disk.rows("clicks").to_pylist()} == {1: None, 2: "x"}


def test_column_without_type_takes_that_of_the_table(disk: Lake) -> None:
    quiet = SCHEMA.set(0, pa.field("user", pa.null()))
    table = rows(2).set_column(0, "user", pa.nulls(1))
    with pytest.raises(ConfigError, match="cannot hold column 'user' of type null; no row has a value there"):
        put(disk, DAY, table, schema=quiet)
    put(disk, DAY, rows(1))
    put(disk, NEXT, table, schema=quiet)
    assert {row["n"]: row["user"] for row in disk.rows("clicks").to_pylist()} == {1: "u1", 2: None}


@pytest.mark.parametrize(
    ("partition", "says"),
    [
        ("clicks", "holds other results in its folders, such as day=2026-11-"),
        ("clicks/place=x", "no column 'place'"),
        ("clicks/day=x", "is no date32"),
    ],
)
def test_other_partitioning_is_refused(disk: Lake, partition: str, says: str) -> None:
    put(disk, DAY, rows(1))
    with pytest.raises(ConfigError, match=says):
        put(disk, partition, rows(2))
    assert numbers(disk) == [1]


def test_sort_order_is_refused(disk: Lake) -> None:
    put(disk, "clicks", rows(1))
    from pyiceberg.transforms import IdentityTransform

    with disk.table("clicks").update_sort_order() as update:
        update.asc("n", IdentityTransform())
    with pytest.raises(ConfigError, match="has a sort order"):
        put(disk, "clicks", rows(2))


def test_null_in_required_column_is_refused(disk: Lake) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import ListType, LongType, NestedField, StringType

    tags = ListType(4, StringType(), element_required=False)
    fields = [
        NestedField(1, "user", StringType(), required=True),
        NestedField(2, "n", LongType()),
        NestedField(3, "tags", tags),
    ]
    disk.catalog.create_table("logs.clicks", Schema(*fields))
    put(disk, "clicks", rows(1))
    table = rows(2, 3).set_column(0, SCHEMA.field(0), pa.array(["x", None]))
    with pytest.raises(DataError, match="has nulls"):
        put(disk, "clicks", table)
    assert numbers(disk) == [1]


def test_missing_namespace_and_catalog_are_said(disk: Lake) -> None:
    with pytest.raises(
        ConfigError, match=r"no namespace other; make it: pyiceberg --catalog lake create namespace other"
    ):
        table_of("iceberg://lake/other.clicks")
    with pytest.raises(ConfigError, match="has no catalog 'lak'; did you mean 'lake'"):
        table_of("iceberg://lak/logs.clicks")
    with pytest.raises(ConfigError, match="is no address"):
        table_of("iceberg://lake/clicks")


def compact(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the rows of a day into one file, as Spark's ``rewrite_data_files`` does; pyiceberg has no such call."""

    def replacing(**told: Any) -> Any:
        return update_snapshot_summaries(**told).model_copy(update={"operation": Operation.REPLACE})

    with monkeypatch.context() as patched:
        patched.setattr("pyiceberg.table.update.snapshot.update_snapshot_summaries", replacing)
        lake.table("clicks").overwrite(lake.rows("clicks").filter(pc.field("day") == DATE), "day = '2026-11-02'")


def test_result_that_another_program_has_compacted_is_still_the_result(
    disk: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(disk, DAY, rows(1), rows(2))
    compact(disk, monkeypatch)
    manifest = table_of(disk.address(DAY)).manifest()
    assert manifest is not None
    assert table_of(disk.address(DAY)).missing(manifest) is None
    put(disk, DAY, rows(3))
    assert numbers(disk) == [3]


def test_rows_that_another_program_has_added_are_not_replaced(disk: Lake) -> None:
    put(disk, DAY, rows(1))
    put(disk, NEXT, rows(2))
    table = disk.table("clicks")
    table.append(disk.rows("clicks").filter(pc.field("n") == 1))
    assert table_of(disk.address(DAY)).manifest() is None
    assert table_of(disk.address(NEXT)).manifest() is not None
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(3))
    put(disk, NEXT, rows(4))
    assert numbers(disk) == [1, 1, 4]


def test_as_many_rows_that_another_program_has_written_are_not_replaced(
    disk: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(disk, DAY, rows(1), rows(2))
    put(disk, NEXT, rows(3))
    others = disk.rows("clicks").filter(pc.field("n") == 1)
    disk.table("clicks").overwrite(others, "day = '2026-11-02' and n = 2")
    compact(disk, monkeypatch)
    assert table_of(disk.address(DAY)).manifest() is None
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(4))
    put(disk, NEXT, rows(5))
    assert numbers(disk) == [1, 1, 5]


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # of Polars, which asks for another package
def test_other_libraries_read_the_result(disk: Lake) -> None:
    import polars

    put(disk, DAY, rows(1, 2))
    put(disk, NEXT, rows(3))
    found = polars.scan_iceberg(disk.table("clicks")).filter(polars.col("n") > 1).collect()
    assert sorted(found["n"].to_list()) == [2, 3]
    assert disk.table("clicks").scan("day = '2026-11-03'").to_arrow()["n"].to_pylist() == [3]
    paths = [task.file.file_path.removeprefix("file://") for task in disk.table("clicks").scan().plan_files()]
    assert duckdb.sql(f"SELECT sum(n) FROM read_parquet({paths})").fetchall() == [(6,)]


class Killed(BaseException):
    """Ends a run as a kill does: nothing of wincli looks at it."""


def killed_at(lake: Lake, token: str, line: int) -> int:
    """Run a unit to a line of wincli and end it there; return how many lines it has come to."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if "/iceberg" not in frame.f_code.co_filename or "/tests/" in frame.f_code.co_filename:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise Killed
        return trace

    table = table_of(lake.address(DAY))
    output = Output(table, table.commit(token), "overwrite")
    sys.settrace(trace)
    try:
        output.table_commit.open()
        output.commit(write(output, rows(7), rows(8)))
    except Killed:
        pass
    finally:
        sys.settrace(None)
    return seen


@pytest.mark.parametrize("places", [3, pytest.param(100, marks=pytest.mark.nightly)])
def test_run_that_is_killed_anywhere_leaves_the_former_result_or_its_own(disk: Lake, places: int) -> None:
    put(disk, NEXT, rows(4))
    put(disk, DAY, rows(1))
    lines = killed_at(disk, "0123456789ab", sys.maxsize)
    assert numbers(disk) == [4, 7, 8]
    for line in range(lines // (2 * places), lines + 1, lines // places):
        put(disk, DAY, rows(1))
        token = f"{line:012x}"
        killed_at(disk, token, line)
        found = numbers(disk)
        assert found in ([1, 4], [4, 7, 8])
        is_own = found == [4, 7, 8]
        manifest = table_of(disk.address(DAY)).manifest()
        assert manifest is not None
        assert manifest["value"] == (15 if is_own else 1)
        assert table_of(disk.address(DAY)).missing(manifest) is None
        put(disk, DAY, rows(2))
        assert numbers(disk) == [2, 4]
        assert is_own or not [name for name in files(disk) if token in name]


def test_times_in_nanoseconds_are_stored_if_they_are_whole_microseconds(disk: Lake) -> None:
    schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("ns", "Europe/Berlin")), ("big", pa.uint64())])

    def at(nanoseconds: int) -> pa.Table:
        return pa.table([[1], [nanoseconds], [1 << 63]], schema=schema)

    put(disk, DAY, at(5_000), schema=schema)
    (row,) = disk.rows("clicks").to_pylist()
    assert (row["at"].microsecond, int(row["big"])) == (5, 1 << 63)
    with pytest.raises(DataError, match="'at'"):
        put(disk, DAY, at(5_001), schema=schema)
    assert numbers(disk) == [1]


def test_missing_library_is_said_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.utils.config", None)
    with pytest.raises(ConfigError, match=r"pip install '.\[iceberg\]'"):
        table_of("iceberg://lake/logs.clicks")


def test_part_on_a_store_is_one_request(
    s3: S3Bucket, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = made(Lake(tmp_path / "lake", f"{s3.uri}/tables"), monkeypatch)
    put(lake, "clicks/day=2026-11-01", rows(0))
    constants = []
    for parts, name in ((4, DAY), (20, NEXT)):
        with open_output(lake.address(name), "overwrite", [], ME) as output:
            s3_server.requests.clear()
            output.commit(write(output, *(rows(n) for n in range(parts))))
        puts = [path for method, path in s3_server.requests if method == "PUT" and "/part-" in path]
        assert len(puts) == len(set(puts)) == parts
        constants.append(len(s3_server.requests) - parts)
    assert constants[1] <= constants[0] + 2  # the manifest of the snapshot before
