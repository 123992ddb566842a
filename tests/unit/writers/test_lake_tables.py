"""Delta and Iceberg tables as outputs: one transaction publishes, and a run that ends before it leaves nothing."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.lake_tables import (
    DAY,
    NEXT,
    REJECTS,
    SCHEMA,
    TOKEN,
    Delta,
    Iceberg,
    Place,
    begun,
    in_store,
    is_whole,
    on_disk,
    prepared,
    put,
    rows,
    write,
)
from support.lines import at_each_line
from support.numbered_units import ME, OTHER
from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import ConfigError, DataError, OutputError
from wincli.writers.commit import version_table
from wincli.writers.commit.contract import Progress
from wincli.writers.commit.delta import DeltaResult
from wincli.writers.commit.tables import table_of
from wincli.writers.output.manifest import _part
from wincli.writers.output.output import Output, open_output


@pytest.fixture(params=["delta", "iceberg"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return on_disk(request.param, tmp_path, monkeypatch)


@pytest.fixture(params=["delta", "iceberg"])
def stored(request: pytest.FixtureRequest, s3: S3Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return in_store(request.param, s3, tmp_path, monkeypatch)


@pytest.fixture(params=["delta", "iceberg", "delta in a store", "iceberg in a store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    kind, _, where = request.param.partition(" in ")
    if where:
        return in_store(kind, request.getfixturevalue("s3"), tmp_path, monkeypatch)
    return on_disk(kind, tmp_path, monkeypatch)


# Replaced in one transaction


def test_unit_replaces_its_partition_in_one_version(place: Place) -> None:
    put(place, DAY, rows(1, 2), rows(3))
    put(place, NEXT, rows(4))
    put(place, DAY, rows(5))
    assert place.numbers() == [4, 5]
    assert place.versions() == 3
    manifest = table_of(place.address(DAY)).manifest()
    assert manifest is not None
    assert manifest["rows_out"] == 1
    assert is_whole(place)
    assert "statistics" not in manifest["parts"][0]
    assert place.numbers(version=1) == [1, 2, 3, 4]


def test_result_without_rows_replaces_rows(disk: Place) -> None:
    put(disk, DAY, rows(1))
    put(disk, DAY, rows())
    put(disk, NEXT, rows())
    assert disk.numbers() == []
    put(disk, DAY, rows(2))
    assert disk.numbers() == [2]


@pytest.mark.parametrize("below", ["", DAY])
def test_result_that_is_there_is_replaced_as_the_mode_says(disk: Place, below: str) -> None:
    """Where the address names no partition, that is the whole table."""
    put(disk, below, rows(1))
    with pytest.raises(ConfigError, match="already holds a result"):
        put(disk, below, rows(2), mode="error")
    put(disk, below, rows(2, 3))
    if below:
        put(disk, NEXT, rows(4), mode="error")
    assert disk.numbers() == ([2, 3, 4] if below else [2, 3])


def test_recovery_publishes_once_however_often_it_is_tried(disk: Place) -> None:
    put(disk, DAY, rows(5))
    output = prepared(disk, rows(1), run="run-7")
    table = table_of(disk.address(DAY))
    assert table.token_of("run-7") == TOKEN
    again = table_of(table.address).commit(TOKEN)
    assert again.progress("run-7") is Progress.READY
    assert again.progress("another") is Progress.GONE
    for _ in range(3):
        again.recover("run-7")
        output.table_commit.publish()
    assert again.progress("run-7") is Progress.PUBLISHED
    assert disk.numbers() == [1]
    assert disk.versions() == 2


# Other programs


def test_rows_of_another_program_are_never_replaced(disk: Place) -> None:
    put(disk, DAY, rows(1))
    put(disk, NEXT, rows(2))
    disk.append(9)
    assert table_of(disk.address(DAY)).manifest() is None
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(2))
    put(disk, NEXT, rows(3))
    assert disk.numbers() == [1, 3, 9]


def test_result_that_another_program_has_compacted_is_still_the_result(disk: Place) -> None:
    put(disk, DAY, rows(1), rows(2))
    disk.compact()
    assert is_whole(disk)
    put(disk, DAY, rows(3))
    assert disk.numbers() == [3]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_as_many_rows_that_another_program_has_written_are_not_replaced(disk: Place, is_compacted: bool) -> None:
    put(disk, DAY, rows(1), rows(2))
    put(disk, NEXT, rows(3))
    disk.change(2, 8)
    if is_compacted:
        disk.compact()
    assert table_of(disk.address(DAY)).manifest() is None
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(4))
    put(disk, NEXT, rows(5))
    assert disk.numbers() == [1, 5, 8]


def test_commit_to_another_partition_in_between_is_no_conflict(disk: Place) -> None:
    put(disk, DAY, rows(1))
    output = prepared(disk, rows(2))
    disk.append(9, day=NEXT)
    output.publish()
    assert disk.numbers() == [2, 9]


def test_commit_to_the_same_partition_in_between_is_an_error(disk: Place) -> None:
    put(disk, DAY, rows(1))
    before = disk.files()
    with open_output(disk.address(DAY), "overwrite", [], ME) as output:
        output.prepare(write(output, rows(2)))
        disk.append(9)
        with pytest.raises(OutputError, match=r"another program has written to .*day=2026-11-02 since this run began"):
            output.publish()
    assert disk.numbers() == [1, 9]
    assert before <= disk.files()
    assert disk.leftovers() == []


@pytest.mark.parametrize("is_same", [False, True])
def test_two_runs_that_make_the_table_both_publish_but_to_one_partition(disk: Place, is_same: bool) -> None:
    one, other = prepared(disk, rows(1)), prepared(disk, rows(2), below=DAY if is_same else NEXT, token="abcdef012345")
    other.publish()
    if is_same:
        assert one.table_commit.progress(TOKEN) is Progress.GONE
        with pytest.raises(OutputError, match="another program has written to"):
            one.publish()
    else:
        one.publish()
    assert disk.numbers() == ([2] if is_same else [1, 2])


@pytest.mark.parametrize("days", [1, pytest.param(16, marks=pytest.mark.nightly)])
def test_of_runs_that_commit_at_one_moment_one_wins_in_each_partition(disk: Place, days: int) -> None:
    """All have begun at the same version, as runs do that a paused lease or another machine's clock lets in."""
    put(disk, DAY, rows(0))
    runs = 16 if isinstance(disk, Delta) else 6
    commits = [
        prepared(disk, rows(n + 1), below=f"day=2026-11-{3 + n % days:02}", token=f"{n:012x}").table_commit
        for n in range(runs)
    ]
    with ThreadPoolExecutor(runs) as pool:
        errors = [each.exception() for each in [pool.submit(commit.publish) for commit in commits]]
    won = [number for number, error in enumerate(errors) if error is None]
    assert len(won) == min(days, runs)
    assert {str(error).partition(" has written")[0] for error in errors if error} <= {"another program"}
    assert disk.numbers() == [0, *(number + 1 for number in won)]


# Runs that end


def interrupted(place: Place) -> None:
    with open_output(place.address(DAY), "overwrite", [], ME) as output:
        output.prepare(write(output, rows(1)))
        raise KeyboardInterrupt


def test_run_that_ends_before_its_transaction_leaves_nothing(place: Place) -> None:
    put(place, DAY, rows(5))
    before = place.files()
    with pytest.raises(KeyboardInterrupt):
        interrupted(place)
    assert place.files() == before
    prepared(place, rows(1))
    assert place.files() > before
    put(place, NEXT, rows(6))  # another partition: it leaves alone what may be another run's
    assert place.leftovers() != []
    put(place, DAY, rows(7))
    assert place.leftovers() == []
    assert place.numbers() == [6, 7]


def test_first_run_that_ends_before_its_transaction_makes_no_table(place: Place) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(place)
    assert not place.is_there()
    assert place.files() == set()


def test_result_of_a_run_that_was_killed_behind_its_transaction_stays(disk: Place) -> None:
    put(disk, NEXT, rows(5))
    prepared(disk, rows(1, 2)).table_commit.publish()
    table = table_of(disk.address(DAY))
    with table.hold(ME):
        table.remove_leftovers()
    assert disk.numbers() == [1, 2, 5]
    assert is_whole(disk)
    disk.delete_day()
    put(disk, DAY, rows(3))
    assert disk.numbers() == [3, 5]
    assert disk.numbers(version=1) == [1, 2, 5]
    assert not [name for name in disk.files() if ".wincli-" in name]


PAUSES = {"delta": ["written True", "checked True", "checked False", "read True", "read False"]}
PAUSES["iceberg"] = ["begun True", "written True", "checked False", "prepared True", "prepared False"]
"""Behind what a run is paused, and whether the table is there."""


@pytest.mark.parametrize(("kind", "pause"), [(kind, pause) for kind, some in PAUSES.items() for pause in some])
def test_paused_run_that_was_cleaned_up_after_cannot_publish(
    s3: S3Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, pause: str
) -> None:
    stored = in_store(kind, s3, tmp_path, monkeypatch)
    stage, is_there = pause.partition(" ")[0], pause.endswith("True")
    if is_there:
        put(stored, NEXT, rows(5))
    paused = begun(stored)

    def clean_up() -> None:
        other = table_of(stored.address(DAY))
        with other.hold(OTHER):
            other.remove_leftovers()

    def clean_up_after(owner: Any, name: str) -> None:
        """Clean up while the run is paused behind a step."""
        step = getattr(owner, name)

        def then_pause(*args: Any) -> Any:
            done = step(*args)
            monkeypatch.setattr(owner, name, step)
            clean_up()
            return done

        monkeypatch.setattr(owner, name, then_pause)

    def go_on() -> None:
        if stage == "begun":
            clean_up()
        manifest = write(paused, rows(1))
        if stage == "written":
            clean_up()
        if stage == "checked":  # between the check of the files and the description of the transaction
            clean_up_after(version_table, "check_run_files")
        paused.prepare(manifest)
        if stage == "prepared":
            clean_up()
        if stage == "read":  # all that the run has written down is read again
            clean_up_after(DeltaResult, "_log")
        paused.publish()

    with pytest.raises(OutputError):
        go_on()
    if is_there:
        assert stored.numbers() == [5]
    elif stored.is_there():  # a table without rows is what keeps the run from making it
        assert stored.numbers() == []
    put(stored, DAY, rows(2))
    assert stored.numbers() == ([2, 5] if is_there else [2])
    assert stored.leftovers() == [] or stage == "begun"  # it has written them since


class Killed(BaseException):
    """Ends a run as a kill does: nothing of wincli looks at it."""


def killed_at(place: Place, token: str, line: int) -> int:
    """Run a unit to a line of the code of tables and end it there; return how many lines it has come to."""
    seen = 0

    def end_there(passed: int) -> None:
        nonlocal seen
        seen = passed
        if passed == line:
            raise Killed

    table = table_of(place.address(DAY))
    output = Output(table, table.commit(token), "overwrite")
    with suppress(Killed), at_each_line(end_there, "/windowing/tables/", "/writers/commit/"):
        output.table_commit.open()
        output.commit({**write(output, rows(7), rows(8)), "value": 15})
    return seen


@pytest.mark.parametrize("places", [3, pytest.param(100, marks=pytest.mark.nightly)])
def test_run_that_is_killed_anywhere_leaves_the_former_result_or_its_own(disk: Place, places: int) -> None:
    put(disk, NEXT, rows(4))
    put(disk, DAY, rows(1))
    lines = killed_at(disk, TOKEN, sys.maxsize)
    assert disk.numbers() == [4, 7, 8]
    for line in range(lines // (2 * places), lines + 1, lines // places):
        put(disk, DAY, rows(1))
        token = f"{line:012x}"
        killed_at(disk, token, line)
        found = disk.numbers()
        assert found in ([1, 4], [4, 7, 8])
        is_own = found == [4, 7, 8]
        manifest = table_of(disk.address(DAY)).manifest()
        assert manifest is not None
        assert manifest.get("value") == (15 if is_own else None)
        assert is_whole(disk)
        put(disk, DAY, rows(2))
        assert disk.numbers() == [2, 4]
        assert is_own or not [name for name in disk.files() if token in name]


def test_part_on_a_store_is_one_request(stored: Place, s3_server: S3Server) -> None:
    if isinstance(stored, Iceberg):
        put(stored, "day=2026-11-01", rows(0))
    constants = []
    for parts, day in ((2, DAY), (12, NEXT)):
        with open_output(stored.address(day), "error", [], ME) as output:
            s3_server.requests.clear()
            sink = output.result_sink("parquet", SCHEMA, REJECTS)
            found = [part for at in range(parts) for part in sink.write_parts(at, [rows(at)])]
            output.commit({"spec": "x", "rows_out": parts, "parts": [_part(part) for part in found], "rejects": []})
        puts = [path for method, path in s3_server.requests if method == "PUT" and "/part-" in path]
        assert len(puts) == len(set(puts)) == parts
        constants.append(len(s3_server.requests) - parts)
    # of Delta, the table is there: it is read, and not made; of Iceberg, the manifest of the snapshot before
    assert constants[1] <= constants[0] + (10 if isinstance(stored, Delta) else 2)


# Columns


def test_other_columns_are_refused_with_the_difference(disk: Place) -> None:
    put(disk, DAY, rows(1))
    says: dict[str, str] = (
        {"more": "'m' is new; say --evolve-schema", "less": "'user' is missing", "other": "'n' is int64 there and str"}
        if isinstance(disk, Delta)
        else {"more": r"the table lacks m \(double\)", "less": "user", "other": "n is string here and long there"}
    )
    more, table = pa.schema([*SCHEMA, ("m", pa.float64())]), rows(2).append_column("m", pa.array([1.5]))
    with pytest.raises(ConfigError, match=says["more"]):
        put(disk, DAY, table, schema=more)
    less = pa.schema([field for field in SCHEMA if field.name != "user"])
    with pytest.raises(ConfigError, match=says["less"]):
        put(disk, DAY, rows(2).drop("user"), schema=less)
    text = SCHEMA.set(1, pa.field("n", pa.string()))
    with pytest.raises(ConfigError, match=says["other"]):
        put(disk, DAY, rows(2).cast(text), schema=text, evolve=True)
    put(disk, NEXT, table, schema=more, evolve=True)
    put(disk, "day=2026-11-04", rows(3), evolve=True)
    found = sorted(disk.rows().to_pylist(), key=lambda row: row["n"])
    assert [(row["n"], row["m"]) for row in found] == [(1, None), (2, 1.5), (3, None)]


def test_column_without_type_takes_that_of_the_table(disk: Place) -> None:
    quiet = SCHEMA.set(0, pa.field("user", pa.null()))
    table = rows(2).set_column(0, "user", pa.nulls(1))
    with pytest.raises(ConfigError, match="cannot hold column 'user' of type null; no row has a value there"):
        put(disk, DAY, table, schema=quiet)
    put(disk, DAY, rows(1))
    put(disk, NEXT, table, schema=quiet)
    assert {row["n"]: row["user"] for row in disk.rows().to_pylist()} == {1: "u1", 2: None}


def test_times_in_nanoseconds_are_stored_if_they_are_whole_microseconds(disk: Place) -> None:
    schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("ns", "Europe/Berlin")), ("big", pa.uint64())])

    def at(nanoseconds: int) -> pa.Table:
        return pa.table([[1], [nanoseconds], [2**64 - 1]], schema=schema)

    put(disk, DAY, at(5_000), schema=schema)
    (row,) = disk.rows().to_pylist()
    assert (row["at"].microsecond, int(row["big"])) == (5, 2**64 - 1)
    with pytest.raises(DataError, match="'at'"):
        put(disk, DAY, at(5_001), schema=schema)
    assert disk.numbers() == [1]
