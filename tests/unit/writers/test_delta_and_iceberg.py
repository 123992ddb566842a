"""What Delta tables and Iceberg tables each ask of an output by themselves."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, LongType, NestedField, StringType

from support.iceberg_catalog import Lake
from support.lake_tables import (
    DATE,
    DAY,
    NEXT,
    SCHEMA,
    Delta,
    Iceberg,
    is_whole,
    prepared,
    put,
    rows,
    write,
)
from support.numbered_units import ME, ended_at, record_of
from support.s3_server import S3Bucket
from wincli.windowing.errors import ConfigError, DataError, InputError, OutputError
from wincli.windowing.tables import delta_transaction
from wincli.writers.commit.delta import DeltaResult
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.places.objects import Objects
from wincli.writers.state.journal import commit_together
from wincli.writers.state.state import open_state


@pytest.fixture
def delta(tmp_path: Path) -> Delta:
    return Delta(str(tmp_path / "out"))


@pytest.fixture
def iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iceberg:
    return Iceberg(Lake(tmp_path / "lake"), monkeypatch)


# Delta alone


def test_log_has_types_counts_and_bounds_for_other_readers(delta: Delta) -> None:
    schema = SCHEMA.set(2, pa.field("at", pa.timestamp("ns")))
    put(delta, DAY, pa.table([["u1", "u3"], [1, 3], [1000, 3000]], schema=schema), schema=schema)
    (file,) = pa.table(delta.table().get_add_actions(flatten=True)).to_pylist()
    assert (file["num_records"], file["min.n"], file["max.n"], file["null_count.user"]) == (2, 1, 3, 0)
    assert file["max.at"] == dt.datetime(1970, 1, 1, 0, 0, 0, 3)
    assert file["partition.day"] == DATE
    assert pa.schema(delta.table().schema().to_arrow()).field("at").type == pa.timestamp("us")
    assert delta.table().metadata().partition_columns == ["day"]
    log = (Path(delta.root) / "_delta_log" / f"{0:020}.json").read_text()
    assert '"wincli.run"' in log
    assert '"appId":"wincli:day=2026-11-02"' in log


def test_types_that_delta_lacks(delta: Delta) -> None:
    for kind in (pa.duration("s"), pa.time64("us"), pa.decimal256(60)):
        schema = pa.schema([("x", kind)])
        with pytest.raises(ConfigError, match="cannot hold column 'x'"):
            put(delta, DAY, schema.empty_table(), schema=schema)
    wide = pa.schema([("b", pa.uint8()), ("c", pa.dictionary(pa.int32(), pa.string()))])
    put(delta, DAY, pa.table([[255], pa.array(["x"]).dictionary_encode()], schema=wide), schema=wide)
    (row,) = delta.rows().to_pylist()
    assert (row["b"], row["c"]) == (255, "x")


def test_folder_of_something_else_is_refused(delta: Delta, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("x")
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(delta, "", rows(1))
    with pytest.raises(InputError, match=r"a\.txt is a file, and a Delta table is a folder"):
        put(Delta(f"{delta.root}/a.txt"), DAY, rows(1))


def test_table_with_other_rules_is_refused(delta: Delta) -> None:
    put(delta, DAY, rows(1))
    with (
        pytest.raises(ConfigError, match="is a Delta table; say --output-format delta"),
        open_output(f"{delta.root}/{NEXT}", "error", [], ME) as output,
    ):
        write(output, rows(2))
    delta.table().alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(OutputError, match="has constraints, which wincli does not check"):
        put(delta, NEXT, rows(1))
    whole = Delta(f"{delta.root}-whole")
    put(whole, "", rows(1))
    with pytest.raises(ConfigError, match="is partitioned by nothing, and this result by day"):
        put(whole, DAY, rows(1))


def test_values_of_partitions_are_of_the_type_that_the_table_has(delta: Delta) -> None:
    schema = pa.schema([*SCHEMA, ("month", pa.int32())])
    write_deltalake(delta.root, pa.table({**rows(1).to_pydict(), "month": [1]}, schema), partition_by=["month"])
    put(delta, "month=05", rows(2))
    assert delta.numbers() == [1, 2]
    put(delta, "month=5", rows(3))
    assert delta.numbers() == [1, 3]
    with pytest.raises(Exception, match="month=may is no partition"):
        put(delta, "month=may", rows(3))
    with pytest.raises(InputError, match="is partitioned by month, and not by 'n'"):
        table_of(delta.address("n=1")).manifest()


def test_partition_of_null_is_replaced_by_its_next_result(delta: Delta) -> None:
    null = "day=__HIVE_DEFAULT_PARTITION__"
    put(delta, null, rows(1))
    put(delta, "day=other", rows(2))
    put(delta, null, rows(3))
    assert delta.numbers() == [2, 3]
    assert is_whole(delta, null)
    output = prepared(delta, rows(4), below=null)
    other = pa.table({"n": [9], "day": pa.array([None], pa.string())})
    write_deltalake(delta.table(), other, mode="append", schema_mode="merge")
    with pytest.raises(OutputError, match="another program has written"):
        output.publish()


def test_transaction_whose_answer_was_lost_counts(delta: Delta, monkeypatch: pytest.MonkeyPatch) -> None:
    put(delta, NEXT, rows(5))
    commit = delta_transaction.DeltaLog.replace

    def lose(*args: Any) -> bool:
        commit(*args)
        raise OutputError("the store does not answer")

    monkeypatch.setattr(delta_transaction.DeltaLog, "replace", lose)
    put(delta, DAY, rows(1))
    assert delta.numbers() == [1, 5]


def test_commit_that_a_store_refuses_is_one_line(delta: Delta, monkeypatch: pytest.MonkeyPatch) -> None:
    put(delta, DAY, rows(1))

    def refuse(*given: Any, **named: Any) -> None:
        raise OSError("Generic S3 error: Connection refused\nand more")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)
    with pytest.raises(OutputError, match=r"cannot write .*day=2026-11-02: the store does not answer"):
        put(delta, DAY, rows(2))
    assert delta.numbers() == [1]


def test_store_that_ignores_conditions_is_refused(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Objects, "put_if", lambda store, name, content, _: store.put(name, content))
    refused = pytest.raises(ConfigError, match=r"in a store that does not compare versions.* write to another store")
    with refused, open_output(f"delta+{s3.uri}/lake/out", "error", [], ME):
        pass
    assert s3.names() == []


def run_unit(root: str, path: str) -> None:
    with (
        open_state(root, ME) as state,
        state.begin("u0", 0, [path]) as staging,
        open_output(path, "overwrite", [], ME) as output,
    ):
        commit_together(staging, record_of(staging, 1), [(output, write(output, rows(1)))], 1)


def test_unit_whose_partition_another_program_has_changed_since_is_given_up(delta: Delta, tmp_path: Path) -> None:
    """Its transaction would be refused for ever, and with it each run on the state."""
    put(delta, NEXT, rows(5))
    ended_at(Output, "publish", lambda: run_unit(str(tmp_path / "state"), delta.address(DAY)))
    delta.append(9)
    with open_state(str(tmp_path / "state"), ME) as state:
        assert "counts as not done" in state.notes[-1]
        assert state.records == ()
    assert delta.numbers() == [5, 9]
    assert delta.leftovers() == []


def test_unit_that_its_first_output_refuses_is_not_left_to_the_next_run(
    delta: Delta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may have changed the columns of the table meanwhile."""
    put(delta, NEXT, rows(5))

    def refuse(*args: Any) -> None:
        raise ConfigError("the table has other columns than this result")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaResult, "_log", refuse)
        with pytest.raises(ConfigError, match="has other columns"):
            run_unit(str(tmp_path / "state"), delta.address(DAY))
    with open_state(str(tmp_path / "state"), ME) as state:
        assert state.notes == ()
    assert delta.numbers() == [5]


# Iceberg alone


def test_files_have_field_ids_bounds_and_partition_column(iceberg: Iceberg) -> None:
    put(iceberg, DAY, rows(1))
    (file,) = iceberg.table().scan().plan_files()
    schema = parquet.read_schema(file.file.file_path.removeprefix("file://"))
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}
    assert ids == {"user": 1, "n": 2, "tags": 3, "day": 4}
    assert schema.field("tags").type.value_field.metadata[b"PARQUET:field_id"] == b"5"
    assert file.file.lower_bounds[2] == (1).to_bytes(8, "little")
    (field,) = iceberg.table().spec().fields
    assert (field.name, str(field.transform)) == ("day", "identity")
    assert iceberg.rows()["day"].to_pylist() == [DATE]


def test_bounds_hold_for_each_type(iceberg: Iceberg) -> None:
    table = pa.table(
        {
            "n": pa.array([1, 2], pa.int16()),
            "amount": [1.5, float("nan")],
            "none": pa.array([None, "a"]),
            "text": ["x" * 40, "y" * 40],
            "bytes": [b"\xff" * 40, b"a"],
            "price": pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(10, 2)),
            "at": pa.array([0, 1_700_000_000_000_000], pa.timestamp("us", "UTC")),
            "local": pa.array([0, 5], pa.timestamp("us")),
            "time": pa.array([0, 5], pa.time64("us")),
            "flag": [True, False],
            "items": [[{"a": 1}], [{"a": None}, {"a": 7}]],
        }
    )
    put(iceberg, "", table, schema=table.schema)
    scan = iceberg.table().scan
    (task,) = scan("n = 2").plan_files()
    assert [task.file.null_value_counts[number] for number in (1, 2, 3)] == [0, 0, 1]
    for found in ("text = '" + "y" * 40 + "'", "price = 1.50", "at < '1970-01-02T00:00:00+00:00'", "flag = true"):
        assert len(list(scan(found).plan_files())) == 1
    for none in ("n > 3", "none > 'c'", "text > 'z'", "price > 2", "at > '2030-01-02T00:00:00+00:00'"):
        assert list(scan(none).plan_files()) == []
    assert iceberg.rows()["items"].to_pylist() == table["items"].to_pylist()


def test_narrow_integers_are_widened(iceberg: Iceberg) -> None:
    put(iceberg, "", rows(1))
    narrow = SCHEMA.set(1, pa.field("n", pa.int16()))
    put(iceberg, "", rows(7).cast(narrow), schema=narrow)
    assert iceberg.numbers() == [7]


@pytest.mark.parametrize(
    ("partition", "says"),
    [
        ("", "holds other results in its folders, such as day=2026-11-"),
        ("place=x", "no column 'place'"),
        ("day=x", "is no date32"),
    ],
)
def test_other_partitioning_is_refused(iceberg: Iceberg, partition: str, says: str) -> None:
    put(iceberg, DAY, rows(1))
    with pytest.raises(ConfigError, match=says):
        put(iceberg, partition, rows(2))
    assert iceberg.numbers() == [1]


def test_table_that_another_makes_meanwhile_with_other_partitions_is_refused(iceberg: Iceberg) -> None:
    output = prepared(iceberg, rows(1))
    schema = pa.schema([*SCHEMA, ("day", pa.date32())])
    put(iceberg, "", rows(2).append_column("day", pa.array([DATE])), schema=schema)
    with pytest.raises(OutputError, match="another program has written to"):
        output.publish()
    assert iceberg.numbers() == [2]
    made = iceberg.table().schema()
    iceberg.lake.catalog.drop_table("logs.clicks")
    iceberg.lake.catalog.create_table("logs.clicks", made)
    with pytest.raises(ConfigError, match="is not partitioned"):
        output.publish()


def test_column_that_others_add_in_between_does_not_get_our_values(iceberg: Iceberg) -> None:
    put(iceberg, DAY, rows(1))
    schema = pa.schema([*SCHEMA, ("place", pa.string())])
    with open_output(iceberg.address(NEXT), "overwrite", [], ME, evolve=True) as output:
        output.prepare(write(output, rows(2).append_column("place", pa.array(["x"])), schema=schema))
        with iceberg.table().update_schema() as update:
            update.add_column("other", StringType())
        with pytest.raises(OutputError, match="the columns of iceberg"):
            output.publish()
    assert iceberg.numbers() == [1]


def test_table_that_others_have_made_is_refused_or_its_rules_kept(iceberg: Iceberg) -> None:
    fields = [
        NestedField(1, "user", StringType(), required=True),
        NestedField(2, "n", LongType()),
        NestedField(3, "tags", ListType(4, StringType(), element_required=False)),
    ]
    table = iceberg.lake.catalog.create_table("logs.clicks", Schema(*fields))
    put(iceberg, "", rows(1))
    with pytest.raises(DataError, match="has nulls"):
        put(iceberg, "", rows(2, 3).set_column(0, SCHEMA.field(0), pa.array(["x", None])))
    assert iceberg.numbers() == [1]
    with iceberg.table().update_sort_order() as update:
        update.asc("n", IdentityTransform())
    with pytest.raises(ConfigError, match="has a sort order"):
        put(iceberg, "", rows(2))
    other = iceberg.lake.catalog.create_table("logs.others", table.schema())
    other.append(rows(9).cast(other.schema().as_arrow()))
    with (
        pytest.raises(ConfigError, match="was not written by wincli"),
        open_output(iceberg.lake.address("others"), "overwrite", [], ME),
    ):
        pass


def test_result_is_known_after_its_snapshot_has_expired(iceberg: Iceberg) -> None:
    put(iceberg, DAY, rows(1))
    put(iceberg, NEXT, rows())
    iceberg.append(9, day="day=2026-11-04")
    table = iceberg.table()
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:-1]]).commit()
    assert [table_of(iceberg.address(name)).manifest()["rows_out"] for name in (DAY, NEXT)] == [1, 0]


def test_part_that_others_deleted_is_missing(iceberg: Iceberg) -> None:
    put(iceberg, DAY, rows(1))
    manifest = table_of(iceberg.address(DAY)).manifest()
    iceberg.delete_day()
    assert manifest is not None
    assert "lacks part-00000-" in str(table_of(iceberg.address(DAY)).missing(manifest))


def test_missing_namespace_catalog_and_library_are_said(iceberg: Iceberg, monkeypatch: pytest.MonkeyPatch) -> None:
    for address, says in (
        ("lake/other.clicks", r"no namespace other; make it: pyiceberg --catalog lake create namespace other"),
        ("lak/logs.clicks", "has no catalog 'lak'; did you mean 'lake'"),
        ("lake/clicks", "is no address"),
    ):
        with pytest.raises(ConfigError, match=says):
            table_of(f"iceberg://{address}")
    monkeypatch.setitem(sys.modules, "pyiceberg.utils.config", None)
    with pytest.raises(ConfigError, match=r"pip install '.\[iceberg\]'"):
        table_of("iceberg://lake/logs.clicks")


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # of Polars, which asks for another package
def test_other_libraries_read_the_result(iceberg: Iceberg) -> None:
    import polars

    put(iceberg, DAY, rows(1, 2))
    put(iceberg, NEXT, rows(3))
    found = polars.scan_iceberg(iceberg.table()).filter(polars.col("n") > 1).collect()
    assert sorted(found["n"].to_list()) == [2, 3]
    assert iceberg.table().scan("day = '2026-11-03'").to_arrow()["n"].to_pylist() == [3]
    paths = [task.file.file_path.removeprefix("file://") for task in iceberg.table().scan().plan_files()]
    assert duckdb.sql(f"SELECT sum(n) FROM read_parquet({paths})").fetchall() == [(6,)]
