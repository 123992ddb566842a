"""A Delta table as an output: one transaction publishes, and a run that ends before it leaves nothing."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.numbered_units import ME, record_of
from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import ConfigError, DataError, InputError, OutputError
from wincli.windowing.tables import delta_transaction
from wincli.windowing.tables.delta_library import storage_options, uri_of
from wincli.windowing.tables.delta_transaction import find_table
from wincli.writers.commit import version_table
from wincli.writers.commit.contract import Progress
from wincli.writers.commit.delta import DeltaResult
from wincli.writers.commit.tables import table_of
from wincli.writers.output.manifest import _part
from wincli.writers.output.output import Output, open_output
from wincli.writers.places.atomic_files import list_files
from wincli.writers.places.objects import Objects
from wincli.writers.state.journal import commit_together
from wincli.writers.state.state import open_state

SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("ns"))])
REJECTS = pa.schema([("n", pa.int64())])
DAY, NEXT = "day=2026-11-02", "day=2026-11-03"


@dataclass
class Place:
    """A folder for a table, on disk or in a store."""

    root: str

    def address(self, below: str = "") -> str:
        return f"delta+{self.root}/{below}".rstrip("/")

    def table(self) -> DeltaTable:
        return DeltaTable(uri_of(self.root), storage_options=storage_options(self.root))

    def numbers(self) -> list[int]:
        return sorted(self.table().to_pyarrow_table()["n"].to_pylist())

    def append(self, *numbers: int, day: str = DAY) -> None:
        """Append rows as another program does."""
        date = dt.date.fromisoformat(day.partition("=")[2])
        table = pa.table({"user": ["x"] * len(numbers), "n": list(numbers), "day": [date] * len(numbers)})
        write_deltalake(self.table(), table, mode="append", schema_mode="merge")

    def files(self) -> set[str]:
        """All files of the table but those of its log."""
        place = table_of(self.address()).place
        found = {path.removeprefix(f"{place.path}/") for path in list_files(place.fs, place.path)}
        return {name for name in found if not name.startswith("_delta_log")}


@pytest.fixture(params=["disk", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "disk":
        yield Place(str(tmp_path / "out"))
        return
    bucket: S3Bucket = request.getfixturevalue("s3")
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    yield Place(f"{bucket.uri}/lake/out")


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "out"))


def rows(*numbers: int) -> pa.Table:
    return pa.table([[f"u{n}" for n in numbers], list(numbers), [n * 1000 for n in numbers]], schema=SCHEMA)


def write(output: Output, *tables: pa.Table, schema: pa.Schema = SCHEMA) -> dict[str, Any]:
    """Write a part for each table and some rejects, and return the manifest."""
    sink = output.result_sink("parquet", schema, REJECTS)
    parts = [part for at, table in enumerate(tables) for part in sink.write_parts(at, [table])]
    rejects = [_part(sink.write_rejects(0, pa.table({"n": [7]})))]
    rows_out = sum(table.num_rows for table in tables)
    return {"spec": "x", "rows_out": rows_out, "parts": [_part(part) for part in parts], "rejects": rejects}


def put(
    place: Place, below: str, *tables: pa.Table, mode: Any = "overwrite", evolve: bool = False, **options: Any
) -> None:
    with open_output(place.address(below), mode, [], ME, evolve=evolve) as output:
        output.commit(write(output, *tables, **options))


def interrupt(output: Output) -> None:
    output.prepare(write(output, rows(1)))
    raise KeyboardInterrupt


def test_unit_replaces_its_partition_in_one_version(place: Place) -> None:
    put(place, DAY, rows(1, 2), rows(3))
    put(place, NEXT, rows(4))
    put(place, DAY, rows(5))
    assert place.numbers() == [4, 5]
    assert place.table().version() == 2
    assert place.table().metadata().partition_columns == ["day"]
    manifest = table_of(place.address(DAY)).manifest()
    assert manifest is not None
    assert manifest["rows_out"] == 1
    assert table_of(place.address(DAY)).missing(manifest) is None
    assert "statistics" not in manifest["parts"][0]
    former = place.table()
    former.load_as_version(1)
    assert sorted(former.to_pyarrow_table()["n"].to_pylist()) == [1, 2, 3, 4]


def test_log_has_types_counts_and_bounds_for_other_readers(disk: Place) -> None:
    put(disk, DAY, rows(1, 3))
    (file,) = pa.table(disk.table().get_add_actions(flatten=True)).to_pylist()
    assert (file["num_records"], file["min.n"], file["max.n"], file["null_count.user"]) == (2, 1, 3, 0)
    assert file["max.at"] == dt.datetime(1970, 1, 1, 0, 0, 0, 3)
    assert file["partition.day"] == dt.date(2026, 11, 2)
    assert pa.schema(disk.table().schema().to_arrow()).field("at").type == pa.timestamp("us")
    log = (Path(disk.root) / "_delta_log" / f"{0:020}.json").read_text()
    assert '"wincli.run"' in log
    assert '"appId":"wincli:day=2026-11-02"' in log


def test_result_without_rows_replaces_rows(disk: Place) -> None:
    put(disk, DAY, rows(1))
    put(disk, DAY, rows())
    put(disk, NEXT, rows())
    assert disk.numbers() == []
    put(disk, DAY, rows(2))
    assert disk.numbers() == [2]


def test_whole_table_is_replaced_where_out_names_no_partition(disk: Place) -> None:
    put(disk, "", rows(1))
    with pytest.raises(ConfigError, match="already holds a result"):
        put(disk, "", rows(2), mode="error")
    put(disk, "", rows(2, 3))
    assert disk.numbers() == [2, 3]
    with pytest.raises(ConfigError, match="is partitioned by nothing, and this result by day"):
        put(disk, DAY, rows(1))


def test_rows_of_another_program_are_never_replaced(disk: Place) -> None:
    put(disk, DAY, rows(1))
    disk.append(9)
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(2))
    put(disk, NEXT, rows(3))
    assert disk.numbers() == [1, 3, 9]


def test_result_that_another_program_has_compacted_is_still_the_result(disk: Place) -> None:
    put(disk, DAY, rows(1), rows(2))
    disk.table().optimize.compact()
    manifest = table_of(disk.address(DAY)).manifest()
    assert manifest is not None
    assert table_of(disk.address(DAY)).missing(manifest) is None
    put(disk, DAY, rows(3))
    assert disk.numbers() == [3]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_as_many_rows_that_another_program_has_written_are_not_replaced(disk: Place, is_compacted: bool) -> None:
    put(disk, DAY, rows(1), rows(2))
    put(disk, NEXT, rows(3))
    disk.table().update(updates={"n": "n + 6"}, predicate="n = 2")
    if is_compacted:
        disk.table().optimize.compact()
    assert table_of(disk.address(DAY)).manifest() is None
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, DAY, rows(4))
    put(disk, NEXT, rows(5))
    assert disk.numbers() == [1, 5, 8]


def test_commit_to_another_partition_in_between_is_no_conflict(disk: Place) -> None:
    put(disk, DAY, rows(1))
    with open_output(disk.address(DAY), "overwrite", [], ME) as output:
        output.prepare(write(output, rows(2)))
        disk.append(9, day=NEXT)
        output.publish()
    assert disk.numbers() == [2, 9]


def test_commit_to_the_same_partition_in_between_is_an_error(place: Place) -> None:
    put(place, DAY, rows(1))
    before = place.files()
    with open_output(place.address(DAY), "overwrite", [], ME) as output:
        output.prepare(write(output, rows(2)))
        place.append(9)
        with pytest.raises(OutputError, match=r"another program has written to .*day=2026-11-02 since this run began"):
            output.publish()
    assert place.numbers() == [1, 9]
    assert before <= place.files()
    assert not [name for name in place.files() - before if "-c000" not in name]


def test_two_runs_that_make_the_table_both_publish(disk: Place) -> None:
    with (
        open_output(disk.address(DAY), "error", [], ME) as one,
        open_output(disk.address(NEXT), "error", [], ME) as other,
    ):
        one.prepare(write(one, rows(1)))
        other.prepare(write(other, rows(2)))
        one.publish()
        other.publish()
    assert disk.numbers() == [1, 2]


@pytest.mark.parametrize("is_there", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_run_that_ends_before_its_transaction_leaves_nothing(place: Place, is_there: bool) -> None:
    if is_there:
        put(place, DAY, rows(5))
    before = place.files()
    with pytest.raises(KeyboardInterrupt), open_output(place.address(DAY), "overwrite", [], ME) as output:
        interrupt(output)
    assert place.files() == before
    killed = table_of(place.address(DAY))
    commit = killed.commit("0123456789ab")
    killed.make_parents()
    commit.open()
    orphan = Output(killed, commit, "overwrite")
    orphan.prepare(write(orphan, rows(1)))
    assert place.files() > before
    put(place, NEXT, rows(6))  # another partition: it leaves alone what may be another run's
    assert any("0123456789ab" in name for name in place.files())
    put(place, DAY, rows(7))
    assert not any("0123456789ab" in name for name in place.files())
    assert place.numbers() == [6, 7]


@pytest.mark.parametrize(
    ("stage", "is_there"),
    [("open", True), ("checked", True), ("checked", False), ("read", True), ("read", False)],
)
def test_paused_run_that_was_cleaned_up_after_cannot_publish(
    monkeypatch: pytest.MonkeyPatch, s3: S3Bucket, stage: str, is_there: bool
) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    place = Place(f"{s3.uri}/lake/out")
    if is_there:
        put(place, NEXT, rows(5))
    table = table_of(place.address(DAY))
    paused = Output(table, table.commit("0123456789ab"), "overwrite")
    paused.table_commit.open()

    def clean_up() -> None:
        other = table_of(place.address(DAY))
        with other.hold(ME):
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

    manifest = write(paused, rows(1))
    if stage == "open":
        clean_up()
    if stage == "checked":  # between the check of the files and the description of the transaction
        clean_up_after(version_table, "check_run_files")

    def go_on() -> None:
        paused.prepare(manifest)
        if stage == "read":  # all that the run has written down is read again
            clean_up_after(DeltaResult, "_log")
        paused.publish()

    with pytest.raises(OutputError):
        go_on()
    if is_there or stage == "read":  # a table without rows is what keeps the run from making it
        assert place.numbers() == ([5] if is_there else [])
    put(place, DAY, rows(2))
    assert place.numbers() == ([2, 5] if is_there else [2])
    assert not [name for name in place.files() if "0123456789ab" in name]


def test_first_run_that_fails_by_itself_makes_no_table(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    place = Place(f"{s3.uri}/lake/out")
    with pytest.raises(KeyboardInterrupt), open_output(place.address(DAY), "overwrite", [], ME) as output:
        interrupt(output)
    assert find_table(place.root) is None
    assert place.files() == set()


@pytest.mark.parametrize("days", [1, pytest.param(16, marks=pytest.mark.nightly)])
def test_of_runs_that_commit_at_one_moment_one_wins_in_each_partition(place: Place, days: int) -> None:
    """All have begun at the same version, as runs do that a paused lease or another machine's clock lets in."""
    put(place, DAY, rows(0))
    commits = []
    for number in range(16):
        table = table_of(place.address(f"day=2026-11-{3 + number % days:02}"))
        commit = table.commit(f"{number:012x}")
        commit.open()
        output = Output(table, commit, "overwrite")
        output.prepare(write(output, rows(number + 1)))
        commits.append(commit)
    with ThreadPoolExecutor(16) as pool:
        errors = [each.exception() for each in [pool.submit(commit.publish) for commit in commits]]
    won = [number for number, error in enumerate(errors) if error is None]
    assert len(won) == days
    assert {str(error).partition(" has written")[0] for error in errors if error} <= {"another program"}
    assert place.numbers() == [0, *(number + 1 for number in won)]


def test_part_on_a_store_is_one_request(s3: S3Bucket, s3_server: S3Server) -> None:
    constants = []
    for parts in (2, 12):
        with open_output(f"delta+{s3.uri}/out/day=2026-11-{parts:02}", "error", [], ME) as output:
            sink = output.result_sink("parquet", SCHEMA, REJECTS)
            s3_server.requests.clear()
            found = [part for at in range(parts) for part in sink.write_parts(at, [rows(at)])]
            assert len(s3_server.requests) == parts
            output.commit({"spec": "x", "rows_out": parts, "parts": [_part(part) for part in found], "rejects": []})
        constants.append(len(s3_server.requests) - parts)
    assert constants[1] <= constants[0] + 10  # the table is there: it is read, and not made


def test_former_version_stays_readable_after_a_run_was_killed_behind_its_transaction(disk: Place) -> None:
    put(disk, NEXT, rows(5))
    table = table_of(disk.address(DAY))
    commit = table.commit("0123456789ab")
    commit.open()
    output = Output(table, commit, "overwrite")
    output.prepare(write(output, rows(1, 2)))
    commit.publish()
    disk.table().delete("day = '2026-11-02'")
    put(disk, DAY, rows(3))
    assert disk.numbers() == [3, 5]
    former = disk.table()
    former.load_as_version(1)
    assert sorted(former.to_pyarrow_table()["n"].to_pylist()) == [1, 2, 5]
    assert not [name for name in disk.files() if name.startswith(".")]


def test_recovery_publishes_once_however_often_it_is_tried(place: Place) -> None:
    put(place, DAY, rows(5))
    table = table_of(place.address(DAY))
    commit = table.commit("0123456789ab")
    commit.open()
    output = Output(table, commit, "overwrite")
    output.prepare({**write(output, rows(1)), "run": "run-7"})
    assert table.token_of("run-7") == "0123456789ab"
    again = table_of(table.address).commit("0123456789ab")
    assert again.progress("run-7") is Progress.READY
    for _ in range(3):
        again.recover("run-7")
        commit.publish()
    assert again.progress("run-7") is Progress.PUBLISHED
    assert place.numbers() == [1]
    assert place.table().version() == 1


def test_other_columns_are_refused_with_the_difference(disk: Place) -> None:
    put(disk, DAY, rows(1))
    more = pa.schema([*SCHEMA, ("m", pa.float64())])
    table = rows(2).append_column("m", pa.array([1.5]))
    with pytest.raises(ConfigError, match="'m' is new; say --evolve-schema"):
        put(disk, DAY, table, schema=more)
    less = pa.schema([field for field in SCHEMA if field.name != "user"])
    with pytest.raises(ConfigError, match="'user' is missing"):
        put(disk, DAY, rows(2).drop("user"), schema=less)
    text = SCHEMA.set(1, pa.field("n", pa.string()))
    with pytest.raises(ConfigError, match="'n' is int64 there and string here"):
        put(disk, DAY, rows(2).cast(text), schema=text, evolve=True)
    put(disk, NEXT, table, schema=more, evolve=True)
    found = sorted(disk.table().to_pyarrow_table().to_pylist(), key=lambda row: row["n"])
    assert [(row["n"], row["m"]) for row in found] == [(1, None), (2, 1.5)]


def test_column_without_type_takes_that_of_the_table(disk: Place) -> None:
    quiet = SCHEMA.set(1, pa.field("n", pa.null())).set(2, pa.field("at", pa.null()))
    with pytest.raises(ConfigError, match="cannot hold column 'n' of type null; no row has a value there"):
        put(disk, DAY, quiet.empty_table(), schema=quiet)
    put(disk, DAY, rows(1))
    put(disk, NEXT, rows(2).set_column(1, "n", pa.nulls(1)).set_column(2, "at", pa.nulls(1)), schema=quiet)
    assert disk.table().to_pyarrow_table().sort_by("n")["n"].to_pylist() == [1, None]
    assert pa.schema(disk.table().schema().to_arrow()).field("n").type == pa.int64()


def test_types_that_delta_lacks(disk: Place) -> None:
    for kind in (pa.duration("s"), pa.time64("us"), pa.decimal256(60)):
        schema = pa.schema([("x", kind)])
        with pytest.raises(ConfigError, match="cannot hold column 'x'"):
            put(disk, DAY, schema.empty_table(), schema=schema)
    wide = pa.schema([("a", pa.uint64()), ("b", pa.uint8()), ("c", pa.dictionary(pa.int32(), pa.string()))])
    table = pa.table([[2**64 - 1], [255], pa.array(["x"]).dictionary_encode()], schema=wide)
    put(disk, DAY, table, schema=wide)
    (row,) = disk.table().to_pyarrow_table().to_pylist()
    assert (int(row["a"]), row["b"], row["c"]) == (2**64 - 1, 255, "x")


def test_time_between_two_microseconds_is_an_error(disk: Place) -> None:
    odd = pa.table([["u"], [1], [1]], schema=SCHEMA)
    with pytest.raises(DataError, match="a value of 'at' is no timestamp"):
        put(disk, DAY, odd)


def test_folder_of_something_else_is_refused(disk: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("x")
    with pytest.raises(ConfigError, match="was not written by wincli"):
        put(disk, "", rows(1))
    with pytest.raises(InputError, match=r"a\.txt is a file, and a Delta table is a folder"):
        put(Place(f"{disk.root}/a.txt"), DAY, rows(1))


def test_table_whose_rules_writers_must_check_is_refused(disk: Place) -> None:
    put(disk, DAY, rows(1))
    disk.table().alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(OutputError, match="has constraints, which wincli does not check"):
        put(disk, NEXT, rows(1))


def test_path_of_a_table_is_no_folder_of_files(disk: Place) -> None:
    put(disk, DAY, rows(1))
    with (
        pytest.raises(ConfigError, match="is a Delta table; say --output-format delta"),
        open_output(f"{disk.root}/{NEXT}", "error", [], ME) as output,
    ):
        write(output, rows(2))


def test_values_of_partitions_are_of_the_type_that_the_table_has(disk: Place) -> None:
    write_deltalake(disk.root, pa.table({**rows(1).to_pydict(), "month": [1]}).cast(month()), partition_by=["month"])
    put(disk, "month=05", rows(2))
    assert sorted(json.loads(json.dumps(disk.table().partitions(), default=str)), key=str)
    assert disk.numbers() == [1, 2]
    put(disk, "month=5", rows(3))
    assert disk.numbers() == [1, 3]
    with pytest.raises(Exception, match="month=may is no partition"):
        put(disk, "month=may", rows(3))
    with pytest.raises(InputError, match="is partitioned by month, and not by 'n'"):
        table_of(disk.address("n=1")).manifest()


def month() -> pa.Schema:
    return pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us")), ("month", pa.int32())])


def test_transaction_whose_answer_was_lost_counts(disk: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put(disk, NEXT, rows(5))
    commit = delta_transaction.DeltaLog.replace

    def lose(*args: Any) -> bool:
        commit(*args)
        raise OutputError("the store does not answer")

    monkeypatch.setattr(delta_transaction.DeltaLog, "replace", lose)
    put(disk, DAY, rows(1))
    assert disk.numbers() == [1, 5]


def test_store_that_ignores_conditions_is_refused(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Objects, "put_if", lambda store, name, content, _: store.put(name, content))
    address = f"delta+{s3.uri}/lake/out"
    refused = pytest.raises(ConfigError, match=r"in a store that does not compare versions.* write to another store")
    with refused, open_output(address, "error", [], ME):
        pass
    assert s3.names() == []


def run_unit(root: str, path: str) -> None:
    with (
        open_state(root, ME) as state,
        state.begin("u0", 0, [path]) as staging,
        open_output(path, "overwrite", [], ME) as output,
    ):
        commit_together(staging, record_of(staging, 1), [(output, write(output, rows(1)))], 1)


def test_unit_whose_partition_another_program_has_changed_since_is_given_up(
    disk: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction would be refused for ever, and with it each run on the state."""
    root, path = str(tmp_path / "state"), disk.address(DAY)
    put(disk, NEXT, rows(5))

    def kill(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Output, "publish", kill)
    with pytest.raises(KeyboardInterrupt):
        run_unit(root, path)
    monkeypatch.undo()
    disk.append(9)
    with open_state(root, ME) as state:
        assert "counts as not done" in state.notes[-1]
        assert state.records == ()
    assert disk.numbers() == [5, 9]
    assert not [name for name in disk.files() if name.startswith(".")]


def test_unit_that_its_first_output_refuses_is_not_left_to_the_next_run(
    disk: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may have changed the columns of the table meanwhile."""
    root, path = str(tmp_path / "state"), disk.address(DAY)
    put(disk, NEXT, rows(5))

    def refuse(*args: Any) -> None:
        raise ConfigError("the table has other columns than this result")

    monkeypatch.setattr(DeltaResult, "_log", refuse)
    with pytest.raises(ConfigError, match="has other columns"):
        run_unit(root, path)
    monkeypatch.undo()
    with open_state(root, ME) as state:
        assert state.notes == ()
    assert disk.numbers() == [5]


def test_partition_of_null_is_replaced_by_its_next_result(disk: Place) -> None:
    null = "day=__HIVE_DEFAULT_PARTITION__"
    put(disk, null, rows(1))
    put(disk, DAY.replace("2026-11-02", "other"), rows(2))
    put(disk, null, rows(3))
    assert disk.numbers() == [2, 3]
    table = table_of(disk.address(null))
    manifest = table.manifest()
    assert manifest is not None
    assert table.missing(manifest) is None
    with open_output(disk.address(null), "overwrite", [], ME) as output:
        output.prepare(write(output, rows(4)))
        other = pa.table({"n": [9], "day": pa.array([None], pa.string())})
        write_deltalake(disk.table(), other, mode="append", schema_mode="merge")
        with pytest.raises(OutputError, match="another program has written"):
            output.publish()


def test_commit_that_a_store_refuses_is_one_line(disk: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put(disk, DAY, rows(1))

    def refuse(*given: Any, **named: Any) -> None:
        raise OSError("Generic S3 error: Connection refused\nand more")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)
    with pytest.raises(OutputError, match=r"cannot write .*day=2026-11-02: the store does not answer"):
        put(disk, DAY, rows(2))
    assert disk.numbers() == [1]
