"""One snapshot replaces the files of a partition or of the whole table, once, and only what was there before."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest

from support.iceberg_catalog import Lake, replacement
from wincli.windowing.errors import ConfigError, OutputError
from wincli.windowing.tables.iceberg_schema import new_schema
from wincli.windowing.tables.table_log import publish

ROWS = pa.table({"user": ["a", "b", None], "amount": [1.5, float("nan"), None], "n": pa.array([1, 2, 3], pa.int32())})
DAY, NEXT = "clicks/day=2026-11-02", "clicks/day=2026-11-03"


def put(lake: Lake, name: str, token: str, *tables: pa.Table, evolve: bool = False) -> Any:
    made = replacement(lake, lake.address(name), token, list(tables or (ROWS,)), evolve)
    publish(made)
    return made


def numbers(lake: Lake, name: str = "clicks") -> list[int]:
    return sorted(lake.rows(name)["n"].to_pylist())


def rows(*numbers: int) -> pa.Table:
    return pa.table({"user": pa.array([f"u{n}" for n in numbers], pa.string()), "n": pa.array(numbers, pa.int64())})


def test_first_commit_makes_table(lake: Lake) -> None:
    put(lake, "clicks", "t1")
    table = lake.table("clicks")
    assert lake.rows("clicks")["user"].to_pylist() == ["a", "b", None]
    assert [str(field.field_type) for field in table.schema().fields] == ["string", "double", "int"]
    assert len(table.snapshots()) == 1
    assert table.current_snapshot().summary["wincli.token"] == "t1"


def test_table_of_unit_is_partitioned_by_its_address(lake: Lake) -> None:
    put(lake, DAY, "t1")
    (field,) = lake.table("clicks").spec().fields
    assert (field.name, str(field.transform)) == ("day", "identity")
    assert set(lake.rows("clicks")["day"].to_pylist()) == {dt.date(2026, 11, 2)}


def test_unit_replaces_its_partition_alone(lake: Lake) -> None:
    put(lake, DAY, "t1", rows(1, 2))
    put(lake, NEXT, "t2", rows(3))
    put(lake, DAY, "t3", rows(4), rows(5))
    assert numbers(lake) == [3, 4, 5]
    assert len(lake.table("clicks").snapshots()) == 3


def test_result_without_rows_empties_partition(lake: Lake) -> None:
    put(lake, DAY, "t1", rows(1, 2))
    put(lake, NEXT, "t2", rows(3))
    made = replace(replacement(lake, lake.address(DAY), "t3", [rows()]), files=())
    publish(made)
    assert numbers(lake) == [3]


def test_publishing_twice_is_publishing_once(lake: Lake) -> None:
    made = put(lake, DAY, "t1", rows(1))
    publish(made)
    put(lake, NEXT, "t2", rows(2))
    publish(made)
    assert numbers(lake) == [1, 2]
    assert len(lake.table("clicks").snapshots()) == 2


def test_entries_survive_json(lake: Lake) -> None:
    made = replacement(lake, lake.address(DAY), "t1", [ROWS])
    through = json.loads(json.dumps(made.files, sort_keys=True))
    assert through == made.files
    publish(replace(made, files=through))
    (task,) = lake.table("clicks").scan("n = 2").plan_files()
    assert task.file.null_value_counts == {1: 1, 2: 1, 3: 0, 4: 0}
    assert list(lake.table("clicks").scan("n > 3").plan_files()) == []
    assert list(lake.table("clicks").scan("user > 'c'").plan_files()) == []


def test_bounds_hold_for_each_type(lake: Lake) -> None:
    table = pa.table(
        {
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
    put(lake, "clicks", "t1", table)
    scan = lake.table("clicks").scan
    for found in ("text = '" + "y" * 40 + "'", "price = 1.50", "at < '1970-01-02T00:00:00+00:00'", "flag = true"):
        assert len(list(scan(found).plan_files())) == 1
    for none in ("text > 'z'", "price > 2", "at > '2030-01-02T00:00:00+00:00'"):
        assert list(scan(none).plan_files()) == []
    assert lake.rows("clicks")["items"].to_pylist() == table["items"].to_pylist()


def test_commit_to_other_partition_in_between_is_no_conflict(lake: Lake) -> None:
    put(lake, DAY, "t1", rows(1))
    made = replacement(lake, lake.address(DAY), "t2", [rows(2)])
    put(lake, NEXT, "t3", rows(3))
    publish(made)
    assert numbers(lake) == [2, 3]


def test_units_that_make_the_table_at_the_same_time_all_land(lake: Lake) -> None:
    made = [
        replacement(lake, lake.address(name), token, [rows(n)])
        for n, (name, token) in enumerate(((DAY, "t1"), (NEXT, "t2")))
    ]
    for one in made:
        publish(one)
    assert numbers(lake) == [0, 1]


def test_table_that_another_makes_with_other_partitions_is_refused(lake: Lake) -> None:
    made = replacement(lake, lake.address(DAY), "t1", [rows(1)])
    whole = rows(2).append_column("day", pa.array([dt.date(2026, 11, 2)]))
    put(lake, "clicks", "t2", whole)
    with pytest.raises(OutputError, match="another program has written to"):
        publish(made)
    assert numbers(lake) == [2]
    lake.catalog.drop_table("logs.clicks")
    lake.catalog.create_table("logs.clicks", new_schema(made.columns))
    with pytest.raises(ConfigError, match="is not partitioned"):
        publish(made)


@pytest.mark.parametrize("first", [True, False])
def test_commit_to_same_partition_in_between_is_error(lake: Lake, first: bool) -> None:
    if not first:
        put(lake, DAY, "t1", rows(1))
    made = replacement(lake, lake.address(DAY), "t2", [rows(2)])
    put(lake, DAY, "t3", rows(3))
    with pytest.raises(OutputError, match="another program has written to"):
        publish(made)
    assert numbers(lake) == [3]


def test_rows_that_others_append_in_between_are_error(lake: Lake) -> None:
    put(lake, "clicks", "t1", rows(1))
    made = replacement(lake, lake.address("clicks"), "t2", [rows(2)])
    lake.table("clicks").append(rows(9).cast(lake.table("clicks").schema().as_arrow()))
    with pytest.raises(OutputError, match="another program has written to"):
        publish(made)
    assert numbers(lake) == [1, 9]


def test_racing_units_all_land(lake: Lake) -> None:
    put(lake, "clicks/day=2026-11-01", "t0", rows(0))
    made = [replacement(lake, lake.address(f"clicks/day=2026-11-{n:02d}"), f"t{n}", [rows(n)]) for n in range(2, 8)]
    start, failed = Barrier(len(made)), []

    def race(one: Any) -> None:
        start.wait()
        try:
            publish(one)
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=race, args=(one,)) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert numbers(lake) == [0, 2, 3, 4, 5, 6, 7]


def test_other_columns_are_refused_with_difference(lake: Lake) -> None:
    put(lake, "clicks", "t1", rows(1))
    other = pa.table({"user": [1], "m": ["x"]})
    with pytest.raises(
        ConfigError, match=r"user is long here and string there, the table lacks m \(string\), the result"
    ):
        replacement(lake, lake.address("clicks"), "t2", [other])


def test_narrow_integers_are_widened(lake: Lake) -> None:
    put(lake, "clicks", "t1", rows(1))
    put(lake, "clicks", "t2", pa.table({"user": ["x"], "n": pa.array([7], pa.int16())}))
    assert numbers(lake) == [7]


def test_new_columns_are_added_if_asked_for(lake: Lake) -> None:
    put(lake, DAY, "t1", rows(1))
    wide = rows(2).append_column("place", pa.array(["x"])).append_column("tags", pa.array([["a", "b"]]))
    with pytest.raises(ConfigError, match="the table lacks place"):
        replacement(lake, lake.address(NEXT), "t2", [wide])
    put(lake, NEXT, "t2", wide, evolve=True)
    put(lake, "clicks/day=2026-11-04", "t3", rows(4), evolve=True)
    found = {row["n"]: (row["place"], row["tags"]) for row in lake.rows("clicks").to_pylist()}
    assert found == {1: (None, None), 2: ("x", ["a", "b"]), 4: (None, None)}


def test_column_that_others_add_in_between_does_not_get_our_values(lake: Lake) -> None:
    put(lake, DAY, "t1", rows(1))
    made = replacement(lake, lake.address(NEXT), "t2", [rows(2).append_column("place", pa.array(["x"]))], evolve=True)
    with lake.table("clicks").update_schema() as update:
        from pyiceberg.types import StringType

        update.add_column("other", StringType())
    with pytest.raises(OutputError, match="the columns of iceberg"):
        publish(made)
    assert numbers(lake) == [1]
