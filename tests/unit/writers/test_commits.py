"""The contract of a commit over all that is committed: results and units of a state, in folders and in stores.

However a run is interrupted, a reader sees the result before or the result after. A run is interrupted at each line of
``writers`` before which something has changed; at any other, it leaves what the one before it leaves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import fs

from support.lines import WRITERS, at_each_line
from support.numbered_units import ME, OTHER, SCHEMA, ended_at, names, put, record_of, state_value, stop
from support.quick_store import URI, QuickStore, expire, use
from support.strategies import examples
from wincli.windowing.errors import OutputError
from wincli.writers.commit.contract import Progress, Table, TableCommit
from wincli.writers.commit.result_files import files_of
from wincli.writers.commit.tables import FolderTable, StoreTable, table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.sink import FileSink
from wincli.writers.places import atomic_files
from wincli.writers.places.lock import Owner
from wincli.writers.places.place import new_token
from wincli.writers.state import journal
from wincli.writers.state.journal import StateStaging
from wincli.writers.state.state import open_state
from wincli.writers.state.storage import StateStorage
from wincli.writers.state.store_storage import storage_of

SUCCESS = "_SUCCESS"
NEVER = sys.maxsize
"""The line at which a run that is not interrupted is interrupted."""


@dataclass(frozen=True)
class Result:
    """A result of numbers at a path. Each look is that of another process.

    ``has_gap``: whether a reader may see no complete result while a publication is under way.
    """

    path: str
    has_gap: bool = False

    def hold(self) -> AbstractContextManager[Any]:
        return table_of(self.path).hold(ME)

    def commit(self, token: str) -> TableCommit[Any]:
        return table_of(self.path).commit(token)

    def write(self, value: int, token: str) -> tuple[TableCommit[Any], Mapping[str, Any]]:
        table = table_of(self.path)
        commit = table.commit(token)
        commit.open()
        return commit, write_files(table, commit, value, token)

    def settle(self, token: str) -> None:
        table_of(self.path).remove_leftovers()

    def seen(self) -> int | None:
        """The number of a complete result, None where there is none; a mix fails.

        It follows the manifest; where a folder is exchanged as a whole, it wants the marker, and nothing else there.
        """
        table = table_of(self.path)
        place, manifest = table.place, table.manifest()
        if manifest is None:
            return None
        if isinstance(table, FolderTable):
            if place.fs.get_file_info(f"{place.path}/{SUCCESS}").type != fs.FileType.File:
                return None
            below = fs.FileSelector(place.path, recursive=True)
            there = {file.path for file in place.fs.get_file_info(below) if file.type == fs.FileType.File}
            own = {SUCCESS, "_wincli/manifest.json", *(part["name"] for part in manifest["parts"])}
            assert there == {f"{place.path}/{name}" for name in own}
        for part in manifest["parts"]:
            with place.fs.open_input_stream(f"{place.path}/{part['name']}") as file:
                assert file.read() == b'"n"\n%d\n' % manifest["value"]
        assert table.missing(manifest) is None
        value: int = manifest["value"]
        return value

    def start_anew(self) -> None:
        table = table_of(self.path)
        system = table.place.fs
        for info in system.get_file_info(fs.FileSelector(table.place.parent, allow_not_found=True)):
            if "out" in info.base_name:
                (system.delete_dir if info.type == fs.FileType.Directory else system.delete_file)(info.path)

    def snapshot(self) -> object:
        """What tells one state of a table and all that is beside it from another."""
        table = table_of(self.path)
        below = fs.FileSelector(table.place.parent, recursive=True, allow_not_found=True)
        files = [(info.path, info.size, info.mtime_ns) for info in table.place.fs.get_file_info(below)]
        return sorted(files, key=str)


def write_files(table: Table, commit: TableCommit[Any], value: int, run: str) -> dict[str, Any]:
    """Write the parts of a result, and return its manifest. Each number has its own number of parts."""
    sink = FileSink(table.place.fs, commit.staging, table.place.shown, "csv", SCHEMA, SCHEMA)
    sink = replace(sink, data=commit.data, suffix=commit.suffix)
    parts = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(1 + value % 3)]
    told = [{"name": part.name, "bytes": part.nbytes} for part in parts]
    return {"parts": told, "rejects": [], "value": value, "run": run}


@dataclass
class Unit:
    """A unit that holds a number, in a state at a path."""

    path: str
    storage: StateStorage

    def hold(self) -> AbstractContextManager[Any]:
        return self.storage.hold(ME)

    def commit(self, token: str) -> TableCommit[Any]:
        return self.storage.commit("u0", token)

    def write(self, value: int, token: str) -> tuple[TableCommit[Any], Any]:
        commit = self.storage.commit("u0", token)
        commit.open()
        record = record_of(StateStaging(self.storage, "u0", 0, token, (), {}), value)
        return commit, replace(record, run=token)

    def settle(self, token: str) -> None:
        self.storage.commit("u0", token).settle()

    def seen(self) -> int | None:
        record = storage_of(self.path).records().get("u0")
        if record is None:
            return None
        assert self.storage.has_data(record)
        files = storage_of(self.path).files(record, "s")
        (value,) = (n for part in files.parts("rows") for n in files.read_part(part)["n"].to_pylist())
        assert record.stages[0].registers == {"value": value}
        return int(value)


RESULTS = ["result", "result in two steps", "result in a store"]
UNITS = ["unit", "unit in two steps", "unit in a store"]
OLD = pytest.mark.parametrize("old", [None, 1])


@pytest.fixture(params=RESULTS)
def result(request: pytest.FixtureRequest, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    in_two_steps = "two steps" in request.param
    if in_two_steps:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    return Result("s://store/out" if "store" in request.param else str(tmp_path / "out"), in_two_steps)


@pytest.fixture(params=[*RESULTS, *UNITS])
def kind(
    request: pytest.FixtureRequest, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Result | Unit]:
    if "two steps" in request.param:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    is_in_store = "store" in request.param
    one: Result | Unit
    if request.param in RESULTS:
        one = Result("s://store/out" if is_in_store else str(tmp_path / "out"))
    else:
        if is_in_store:
            use(QuickStore(tmp_path / "units"), monkeypatch)
        path = URI if is_in_store else str(tmp_path / "state")
        one = Unit(path, storage_of(path))
    with one.hold():
        yield one


def publish(kind: Result | Unit, value: int) -> str:
    token = new_token()
    commit, description = kind.write(value, token)
    commit.prepare(description)
    commit.publish()
    kind.settle(token)
    return token


@OLD
@pytest.mark.parametrize("by_another_process", [False, True])
def test_readers_see_a_result_from_its_publication_on(
    kind: Result | Unit, old: int | None, by_another_process: bool
) -> None:
    before = None if old is None else publish(kind, old)
    token = new_token()

    def now() -> tuple[Progress, int | None]:
        return kind.commit(token).progress(token), kind.seen()

    assert now() == (Progress.GONE, old)
    commit, description = kind.write(2, token)
    kind.commit(token).recover(token)
    assert now() == (Progress.GONE, old), "it is not prepared"
    commit.prepare(description)
    kind.commit(token).recover(new_token())
    assert kind.commit(token).progress(new_token()) is Progress.GONE
    assert now() == (Progress.READY, old), "it is of another run"
    if not by_another_process:
        commit.publish()
        assert now() == (Progress.PUBLISHED, 2)
    for _ in range(2):
        kind.commit(token).recover(token)
        assert now() == (Progress.PUBLISHED, 2)
    assert before is None or kind.commit(before).progress(before) is not Progress.PUBLISHED
    kind.settle(token)
    publish(kind, 3)
    kind.commit(token).recover(token)
    assert kind.seen() == 3, "another has replaced it"


@pytest.mark.parametrize("kind", ["result in two steps", "unit in two steps"], indirect=True)
def test_a_publication_that_ends_between_two_renames_goes_on(kind: Result | Unit) -> None:
    publish(kind, 1)
    token = new_token()
    commit, description = kind.write(2, token)
    commit.prepare(description)
    ended_at(Path, "rename", commit.publish, after=1)
    assert kind.seen() is None
    assert kind.commit(token).progress(token) is (Progress.PARTIAL if isinstance(kind, Unit) else Progress.READY)
    kind.commit(token).recover(token)
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.PUBLISHED, 2)


def test_token_of_a_run_is_found_from_its_id_until_it_is_published(result: Result) -> None:
    table, token = table_of(result.path), new_token()
    with result.hold():
        publish(result, 1)
        assert table.token_of(token) == ""
        commit, manifest = result.write(2, token)
        assert table.token_of(token) == ""
        commit.prepare(manifest)
        assert table.token_of(token) == token
        assert table.token_of(new_token()) == ""
        commit.publish()
        assert table.token_of(token) == ""


def test_table_is_found_again_by_its_address(result: Result) -> None:
    with result.hold():
        publish(result, 1)
    table = table_of(result.path)
    again = table_of(table.address, "OUT")
    assert type(again) is type(table)
    assert (again.place.path, again.place.shown) == (table.place.path, "OUT")
    assert again.address in {table.address, "OUT"}
    assert Result(table.address).seen() == 1


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_kind_of_a_table_is_that_of_its_file_system(tmp_path: Path, scheme: str) -> None:
    table = table_of(f"{scheme}{tmp_path}/out")
    assert isinstance(table, FolderTable)
    assert isinstance(table.place.fs, fs.LocalFileSystem)
    assert table.address == f"{tmp_path}/out"


# Interrupted anywhere


class InterruptError(BaseException):
    """Stands for the end of a run: what the run holds is let go, and nothing is cleaned up."""


@contextmanager
def interrupted_at(line: int) -> Iterator[None]:
    def stop(passed: int) -> None:
        if passed == line:
            raise InterruptError

    with at_each_line(stop, *WRITERS):
        yield


@contextmanager
def watched(result: Result, moments: list[int]) -> Iterator[None]:
    """Note the lines of the body before which something has changed since the line before, and last NEVER."""
    seen: list[object] = [None]

    def look(passed: int) -> None:
        if (now := result.snapshot()) != seen[0]:
            seen[0] = now
            moments.append(passed)

    with at_each_line(look, *WRITERS):
        yield
    moments.append(NEVER)


def begin(result: Result, old: int | None, since: str, disturbed: AbstractContextManager[None]) -> tuple[str, bool]:
    """Write 2 where there is ``old``; return the id of the run, and whether it got through.

    ``disturbed``: what disturbs it from the opening, or from the publication on.
    """
    result.start_anew()
    token = new_token()
    with result.hold(), ExitStack() as stack:
        if old is not None:
            publish(result, old)
        try:
            if since == "open":
                stack.enter_context(disturbed)
            commit, manifest = result.write(2, token)
            commit.prepare(manifest)
            if since == "publish":
                stack.enter_context(disturbed)
            commit.publish()
        except InterruptError:
            return token, False
    return token, True


def moments_of(result: Result, old: int | None, since: str) -> list[int]:
    """The lines at which an interrupt of a run leaves something else than at the line before, and last NEVER."""
    moments: list[int] = []
    assert begin(result, old, since, watched(result, moments))[1]
    return moments


def recover(result: Result, token: str, disturbed: AbstractContextManager[None] | None = None) -> bool:
    """Do what the recovery of a journal does; return whether it got through."""
    with result.hold():
        try:
            with disturbed or nullcontext():
                result.commit(token).recover(token)
        except InterruptError:
            return False
    return True


def settled(result: Result) -> int | None:
    """Do what the next run does first, and return what a reader sees then; nothing else may be left."""
    table = table_of(result.path)
    with table.hold(ME):
        table.remove_leftovers()
    seen = result.seen()
    if isinstance(table, StoreTable):
        kept = {"_wincli/manifest.json"} | ({SUCCESS, *files_of(table.manifest() or {})} if seen else set())
        assert set(table.objects.files()) <= kept
    beside = table.place.fs.get_file_info(fs.FileSelector(table.place.parent, allow_not_found=True))
    assert not [info for info in beside if table.place.role_of(info.base_name)]
    return seen


@OLD
@pytest.mark.parametrize("with_journal", [True, False])
def test_reader_of_an_interrupted_run_sees_the_old_or_the_new_result(
    result: Result, old: int | None, with_journal: bool
) -> None:
    reached = set()
    for line in moments_of(result, old, "open"):
        token, _ = begin(result, old, "open", interrupted_at(line))
        progress, seen = result.commit(token).progress(token), result.seen()
        assert seen in {old, 2} | ({None} if result.has_gap else set())
        assert (seen == 2) == (progress is Progress.PUBLISHED)
        if with_journal and progress is not Progress.GONE:
            assert recover(result, token)
            assert result.seen() == settled(result) == 2
        else:
            expected = {old, seen} - ({None} if old else set()) | ({2} if progress is Progress.READY else set())
            assert settled(result) in expected
        reached.add(progress)
    assert reached >= {Progress.GONE, Progress.READY, Progress.PUBLISHED}
    with result.hold():
        publish(result, 4)
    assert settled(result) == 4


@OLD
def test_recovery_that_is_interrupted_anywhere_is_completed_by_the_next(result: Result, old: int | None) -> None:
    for line in moments_of(result, old, "publish"):
        again: list[int] = []
        token, _ = begin(result, old, "publish", interrupted_at(line))
        assert recover(result, token, watched(result, again))
        for other in again:
            token, _ = begin(result, old, "publish", interrupted_at(line))
            assert result.commit(token).progress(token) is not Progress.GONE
            assert recover(result, token, interrupted_at(other)) == (other == NEVER)
            assert result.seen() in {old, 2} | ({None} if result.has_gap else set())
            assert result.commit(token).progress(token) is not Progress.GONE
            assert recover(result, token)
            assert result.seen() == settled(result) == 2


# Several writers


class Writer:
    """A run that writes to a table step by step, and is told where it has lost it.

    ``seen``: how many results there had been as it began; None while it has not begun.
    """

    def __init__(self, path: str, value: int) -> None:
        self.path, self.value = path, value
        self.stack = ExitStack()
        self.output: Output | None = None
        self.is_prepared = False
        self.seen: int | None = None

    def begin(self) -> bool:
        owner = Owner(os.getpid(), "here", f"2026-11-08T02:00:{self.value:02}+00:00")
        try:
            self.output = self.stack.enter_context(open_output(self.path, "overwrite", [], owner))
        except OutputError as error:
            return _is_lost(error)
        return True

    def prepare(self) -> bool:
        assert self.output is not None
        try:
            self.output.prepare(write_files(self.output.table, self.output.table_commit, self.value, "run"))
        except OutputError:  # who took the table over has removed the staging of this run
            return False
        self.is_prepared = True
        return True

    def publish(self) -> bool:
        assert self.output is not None
        try:
            self.output.publish()
        except OutputError as error:
            return _is_lost(error)
        return True

    def end(self) -> None:
        self.stack.close()
        self.__init__(self.path, self.value + 3)  # type: ignore[misc]


def _is_lost(error: OutputError) -> bool:
    """False, for a run that was told that another has the table; any other error is one of the test."""
    if "another" not in error.what:
        raise error
    return False


STEPS = st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(["step", "end", "expire"])), max_size=24)


@pytest.mark.parametrize("path", ["out", "s://store/out"])
@given(steps=STEPS, is_tidy=st.booleans())
@examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writer_that_has_lost_the_table_does_not_publish(
    tmp_path: Path, store: Path, path: str, steps: list[tuple[int, str]], is_tidy: bool
) -> None:
    """Writers take steps in any order; the reader sees the last that was told it has published, and no two overlap.

    ``is_tidy``: whether who takes over a lease removes the files of the run that has lost it at once.
    """
    result = Result(path if "://" in path else str(tmp_path / path))
    result.start_anew()
    writers = [Writer(result.path, value) for value in (1, 2, 3)]
    published: list[int] = []
    with nullcontext() if is_tidy else mock.patch.object(StoreTable, "remove_leftovers"):
        for which, action in steps:
            writer = writers[which]
            if action == "expire":
                expire(store / ".out.wincli-lock")
            elif action == "end":
                writer.end()
            elif writer.seen is None:
                writer.seen = len(published) if writer.begin() else None
            elif not writer.is_prepared:
                if not writer.prepare():
                    writer.end()
            else:
                if writer.publish():
                    assert writer.seen == len(published)
                    published.append(writer.value)
                writer.end()
            assert result.seen() == (published[-1] if published else None)
    for writer in writers:
        writer.end()
    assert settled(result) == (published[-1] if published else None)


# The journal goes over tables of any kind


@pytest.fixture
def outs(tmp_path: Path, store: Path) -> list[str]:
    return [str(tmp_path / "a"), "s://store/b"]


@OLD
@pytest.mark.parametrize("after", range(2))
@pytest.mark.parametrize("is_damaged", [False, True])
def test_unit_with_an_output_of_each_kind_is_completed(
    tmp_path: Path, outs: list[str], old: int | None, after: int, is_damaged: bool
) -> None:
    root = tmp_path / "state"
    if old is not None:
        put(root, old, outs)
    stop(root, outs, after)
    assert [Result(out).seen() for out in outs] == [2] * after + [old] * (2 - after)
    if is_damaged:
        (root / ".journal.json").write_text("{")
    with open_state(str(root), ME) as state:
        said = f"unit u0 was complete when its run was killed in {root}, and has been put in place"
        assert state.notes[-1] == said
        assert state_value(state) == 2
    assert [Result(out).seen() for out in outs] == [settled(Result(out)) for out in outs] == [2, 2]
    assert names(root) == [".wincli-state", "u0"]


def test_unit_whose_first_output_is_lost_at_the_last_moment_changes_nothing(
    tmp_path: Path, outs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outs = tmp_path / "state", outs[::-1]
    put(root, 1, outs)
    publish = journal._publish

    def late(*args: Any) -> None:
        expire(tmp_path / "store" / ".b.wincli-lock")
        table = table_of(outs[0])
        with table.hold(OTHER):  # which fences the table
            table.remove_leftovers()
        publish(*args)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_publish", late)
        with pytest.raises(OutputError, match=r"another run has written to s://store/b since .*; nothing was wri"):
            put(root, 2, outs)
    with open_state(str(root), ME) as state:
        assert state_value(state) == 1
    assert [settled(Result(out)) for out in outs] == [1, 1]
