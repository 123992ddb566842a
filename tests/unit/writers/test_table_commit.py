"""The law of each kind of table: however a run is interrupted, a reader sees the result before or the result after.

It is run over the kinds that there are, and over a third that stands in for a store with a conditional write. A run is
interrupted at each line of ``writers`` before which something has changed; at any other, it leaves what the one before
it leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import fs

from support import manifest_store
from support.folder_contents import names
from support.manifest_store import ManifestTable, Store
from support.numbered_units import ME, SCHEMA, put, result, state_value
from support.strategies import examples
from wincli.windowing.errors import OutputError
from wincli.writers.commit import tables
from wincli.writers.commit.contract import Progress, Table, TableCommit
from wincli.writers.commit.store_objects import files_of
from wincli.writers.commit.tables import FolderTable, StoreTable, table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.sink import FileSink
from wincli.writers.places import atomic_files
from wincli.writers.places.place import new_token
from wincli.writers.state import journal
from wincli.writers.state.state import open_state

SUCCESS = "_SUCCESS"
NEVER = sys.maxsize
"""The line at which a run that is not interrupted is interrupted."""


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    ``path``: where the table is; a path begins in the folder of the test.
    ``has_gap``: whether a reader may see no complete result while a publication is under way.
    """

    path: str
    has_gap: bool = False


KINDS = {
    "folder swap": Kind("out"),
    "folder swap in two steps": Kind("out", has_gap=True),
    "object store": Kind("s://store/out"),
    "conditional put": Kind("mem://bucket/out"),
}


@pytest.fixture(autouse=True)
def _third_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it takes to have another kind of table: its module, and this line."""
    monkeypatch.setattr(tables, "TABLES", (ManifestTable, *tables.TABLES))
    monkeypatch.setattr(tables, "refuse_others", lambda path: None)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    if request.param == "folder swap in two steps":
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    one = KINDS[request.param]
    return one if "://" in one.path else Kind(str(tmp_path / one.path), one.has_gap)


def start_anew(kind: Kind) -> None:
    """Remove the table and all that belongs to it."""
    manifest_store.STORE = Store()
    table = table_of(kind.path)
    with table.hold(ME):
        table.remove_leftovers()
    if table.place.fs.get_file_info(table.place.path).type == fs.FileType.Directory:
        table.place.fs.delete_dir(table.place.path)


def read(path: str) -> int | None:
    """What a reader of a table sees: the number of a complete result, None where there is none; a mix fails.

    It follows the manifest; where a folder is exchanged as a whole, it wants the marker, and nothing else there.
    """
    table = table_of(path)
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
    assert table.missing(manifest) is None or "bytes" not in manifest["parts"][0]
    value: int = manifest["value"]
    return value


def write_files(table: Table, commit: TableCommit[Any], value: int) -> dict[str, Any]:
    """Write the parts of a result, and return its manifest. Each number has its own number of parts."""
    sink = FileSink(table.place.fs, commit.staging, table.place.shown, "csv", SCHEMA, SCHEMA)
    sink = replace(sink, data=commit.data, suffix=commit.suffix)
    parts = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(1 + value % 3)]
    told = [{"name": part.name, "bytes": part.nbytes} for part in parts]
    return {"parts": told, "rejects": [], "value": value, "run": f"run {value}"}


def write(path: str, value: int) -> None:
    with open_output(path, "overwrite", [], ME) as output:
        output.commit(write_files(output.table, output.table_commit, value))


class InterruptError(BaseException):
    """Stands for the end of a run: what the run holds is let go, and nothing is cleaned up."""


@contextmanager
def at_each_line(call: Callable[[int], None]) -> Iterator[None]:
    """Call a function at each line that the body comes to, with the number of lines so far."""
    passed = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal passed
        name = frame.f_code.co_filename
        if name == __file__ or ("/writers/" not in name and not name.endswith(("manifest_store.py", "shutil.py"))):
            return None
        if event == "line":
            passed += 1
            call(passed)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def interrupted_at(line: int) -> Iterator[None]:
    def stop(passed: int) -> None:
        if passed == line:
            raise InterruptError

    with at_each_line(stop):
        yield


@contextmanager
def watched(path: str, moments: list[int]) -> Iterator[None]:
    """Note the lines of the body before which something has changed since the line before, and last NEVER."""
    seen: list[object] = [None]

    def look(passed: int) -> None:
        if (now := snapshot(path)) != seen[0]:
            seen[0] = now
            moments.append(passed)

    with at_each_line(look):
        yield
    moments.append(NEVER)


def snapshot(path: str) -> object:
    """What tells one state of a table and all that is beside it from another."""
    table = table_of(path)
    below = fs.FileSelector(table.place.parent, recursive=True, allow_not_found=True)
    files = [(info.path, info.size, info.mtime_ns) for info in table.place.fs.get_file_info(below)]
    return sorted(files, key=str), manifest_store.STORE.get("bucket/out")


@dataclass
class Run:
    """A run that writes a number into a table, and may end anywhere. A run after it goes by the id of its staging."""

    path: str
    value: int
    token: str

    def prepare(self) -> TableCommit[Any]:
        table = table_of(self.path)
        commit = table.commit(self.token)
        commit.open()
        commit.prepare(write_files(table, commit, self.value))
        return commit

    def progress(self) -> Progress:
        return table_of(self.path).commit(self.token).progress(f"run {self.value}")

    def recover(self, disturbed: AbstractContextManager[None] | None = None) -> bool:
        """Do what the recovery of a journal does; return whether it got through."""
        table = later(self.path)
        with table.hold(ME):
            try:
                with disturbed or nullcontext():
                    table.commit(self.token).recover(f"run {self.value}")
            except InterruptError:
                return False
        return True


def begin(kind: Kind, old: int | None, since: str, disturbed: AbstractContextManager[None]) -> tuple[Run, bool]:
    """Write 2 into a table that holds ``old``; return the run, and whether it got through.

    ``disturbed``: what disturbs it from the opening, or from the publication on.
    """
    start_anew(kind)
    if old is not None:
        write(kind.path, old)
    run, table = Run(kind.path, 2, new_token()), table_of(kind.path)
    with table.hold(ME), ExitStack() as stack:
        commit = table.commit(run.token)
        try:
            if since == "open":
                stack.enter_context(disturbed)
            commit.open()
            commit.prepare(write_files(table, commit, run.value))
            if since == "publish":
                stack.enter_context(disturbed)
            commit.publish()
        except InterruptError:
            return run, False
    return run, True


def moments_of(kind: Kind, old: int | None, since: str) -> list[int]:
    """The lines at which an interrupt of a run leaves something else than at the line before, and last NEVER."""
    moments: list[int] = []
    assert begin(kind, old, since, watched(kind.path, moments))[1]
    return moments


def later(path: str) -> Table:
    """Return a table after the leases of runs that have ended are over."""
    manifest_store.STORE.expire("bucket/out")
    return table_of(path)


def settle(path: str) -> int | None:
    """Do what the next run does first, and return what a reader sees then; nothing else may be left."""
    table = later(path)
    with table.hold(ME):
        table.remove_leftovers()
    seen = read(path)
    place = table.place
    if isinstance(table, StoreTable):
        kept = {"_wincli/manifest.json", *(("_SUCCESS", *files_of(table.manifest() or {})) if seen is not None else ())}
        assert set(table.objects.files()) <= kept
    assert not [info for info in beside(table) if place.role_of(info.base_name)]
    if isinstance(table, ManifestTable):
        inside = place.fs.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
        assert [info.base_name for info in inside] == ([table.pointer().token] if seen is not None else [])
    return seen


def beside(table: Table) -> list[fs.FileInfo]:
    found: list[fs.FileInfo] = table.place.fs.get_file_info(fs.FileSelector(table.place.parent, allow_not_found=True))
    return found


OLD = pytest.mark.parametrize("old", [None, 1])


@OLD
@pytest.mark.parametrize("with_journal", [True, False])
def test_reader_of_an_interrupted_run_sees_the_old_or_the_new_result(
    kind: Kind, old: int | None, with_journal: bool
) -> None:
    reached = set()
    for line in moments_of(kind, old, "open"):
        run, _ = begin(kind, old, "open", interrupted_at(line))
        progress, seen = run.progress(), read(kind.path)
        assert seen in {old, 2} | ({None} if kind.has_gap else set())
        assert (seen == 2) == (progress is Progress.PUBLISHED)
        if with_journal and progress is not Progress.GONE:
            assert run.recover()
            assert read(kind.path) == settle(kind.path) == 2
        else:
            assert settle(kind.path) in {old, seen} - ({None} if old else set()) | (
                {2} if progress is Progress.READY else set()
            )
        reached.add(progress)
    assert reached >= {Progress.GONE, Progress.READY, Progress.PUBLISHED}
    write(kind.path, 4)
    assert settle(kind.path) == 4


@OLD
def test_recovery_that_is_interrupted_anywhere_is_completed_by_the_next(kind: Kind, old: int | None) -> None:
    for line in moments_of(kind, old, "publish"):
        again: list[int] = []
        run, _ = begin(kind, old, "publish", interrupted_at(line))
        assert run.recover(watched(kind.path, again))
        for other in again:
            run, _ = begin(kind, old, "publish", interrupted_at(line))
            assert run.progress() is not Progress.GONE
            assert run.recover(interrupted_at(other)) == (other == NEVER)
            assert read(kind.path) in {old, 2} | ({None} if kind.has_gap else set())
            assert run.progress() is not Progress.GONE
            assert run.recover()
            assert read(kind.path) == settle(kind.path) == 2


def test_result_that_was_never_prepared_is_never_published(kind: Kind) -> None:
    write(kind.path, 1)
    run = Run(kind.path, 2, new_token())
    table = table_of(kind.path)
    with table.hold(ME):
        commit = table.commit(run.token)
        commit.open()
        write_files(table, commit, run.value)
    assert run.progress() is Progress.GONE
    assert run.recover()
    assert read(kind.path) == settle(kind.path) == 1


def test_token_of_a_run_is_found_from_its_id_until_it_is_published(kind: Kind) -> None:
    write(kind.path, 1)
    run = Run(kind.path, 2, new_token())
    table = table_of(kind.path)
    with table.hold(ME):
        commit = table.commit(run.token)
        assert table.token_of("run 2") == ""
        commit.open()
        assert table.token_of("run 2") == ""
        commit.prepare(write_files(table, commit, 2))
        assert table.token_of("run 2") == run.token
        assert table.token_of("run 1") == table.token_of("run 3") == ""
        commit.publish()
        assert table.token_of("run 2") == ""


def test_table_is_found_again_by_its_address(kind: Kind) -> None:
    write(kind.path, 1)
    table = table_of(kind.path)
    again = table_of(table.address, "OUT")
    assert type(again) is type(table)
    assert (again.place.path, again.place.shown) == (table.place.path, "OUT")
    assert again.address in {table.address, "OUT"}
    assert read(table.address) == 1


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_kind_of_a_table_is_that_of_its_file_system(tmp_path: Path, scheme: str) -> None:
    table = table_of(f"{scheme}{tmp_path}/out")
    assert isinstance(table, FolderTable)
    assert isinstance(table.place.fs, fs.LocalFileSystem)
    assert table.address == f"{tmp_path}/out"


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
        try:
            self.output = self.stack.enter_context(open_output(self.path, "overwrite", [], ME))
        except OutputError as error:
            return _is_lost(error)
        return True

    def prepare(self) -> bool:
        assert self.output is not None
        try:
            self.output.prepare(write_files(self.output.table, self.output.table_commit, self.value))
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
        self.__init__(self.path, self.value + 10)  # type: ignore[misc]


def _is_lost(error: OutputError) -> bool:
    """False, for a run that was told that another has the table; any other error is one of the test."""
    if "another run" not in error.what:
        raise error
    return False


STEPS = st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(["step", "end", "expire"])), max_size=24)


@pytest.mark.parametrize("name", [name for name in KINDS if "two steps" not in name])
@given(steps=STEPS, is_tidy=st.booleans())
@examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writer_that_has_lost_the_table_does_not_publish(
    tmp_path: Path, store: Path, name: str, steps: list[tuple[int, str]], is_tidy: bool
) -> None:
    """Writers take steps in any order; the reader sees the last that was told it has published, and no two overlap.

    ``is_tidy``: whether who takes over a lease removes the files of the run that has lost it at once.
    """
    path = KINDS[name].path
    kind = Kind(path if "://" in path else str(tmp_path / path))
    start_anew(kind)
    manifest_store.STORE.is_tidy = is_tidy
    writers = [Writer(kind.path, value) for value in (1, 2, 3)]
    published: list[int] = []
    for which, action in steps:
        writer = writers[which]
        if action == "expire":
            manifest_store.STORE.expire("bucket/out")
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
        assert read(kind.path) == (published[-1] if published else None)
    manifest_store.STORE.is_tidy = True
    for writer in writers:
        writer.end()
    assert settle(kind.path) == (published[-1] if published else None)


def test_run_whose_lease_has_passed_to_another_does_not_publish() -> None:
    path = "mem://bucket/out"
    start_anew(Kind(path))
    write(path, 1)
    first, second = Writer(path, 2), Writer(path, 3)
    assert first.begin()
    assert first.prepare()
    assert not second.begin()
    manifest_store.STORE.expire("bucket/out")
    assert second.begin()
    assert second.prepare()
    assert read(path) == 1
    assert not first.publish()
    first.end()
    assert second.publish()
    second.end()
    assert read(path) == settle(path) == 3


# The journal goes over any kind


def stopped_run(root: Path, outs: list[str], after: int) -> None:
    """Run the unit with the number 2, and stop after so many outputs were published, as a kill would."""
    publish = Output.publish
    done: list[Output] = []

    def counted(self: Output) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(self)
        publish(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "publish", counted)
        with pytest.raises(KeyboardInterrupt):
            put(root, 2, outs)  # type: ignore[arg-type]


@pytest.fixture
def outs(tmp_path: Path, store: Path) -> list[str]:
    start_anew(Kind("mem://bucket/out"))
    return ["mem://bucket/out", str(tmp_path / "a"), "s://store/b"]


@OLD
@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("is_damaged", [False, True])
def test_unit_with_an_output_of_each_kind_is_completed(
    tmp_path: Path, outs: list[str], old: int | None, after: int, is_damaged: bool
) -> None:
    root = tmp_path / "state"
    if old is not None:
        put(root, old, outs)  # type: ignore[arg-type]
    stopped_run(root, outs, after)
    assert [read(out) for out in outs] == [2] * after + [old] * (3 - after)
    if is_damaged:
        (root / ".journal.json").write_text("{")
    with open_state(str(root), ME) as state:
        assert "has been put in place" in state.notes[-1]
        assert state_value(state) == 2
    assert [read(out) for out in outs] == [settle(out) for out in outs] == [2, 2, 2]
    assert names(root) == [".wincli-state", "u0"]


def test_unit_is_given_up_where_another_run_has_published_since(tmp_path: Path, outs: list[str]) -> None:
    root = tmp_path / "state"
    put(root, 1, outs)  # type: ignore[arg-type]
    stopped_run(root, outs, 0)
    write("mem://bucket/out", 5)
    with open_state(str(root), ME) as state:
        assert "its part of mem://bucket/out is gone: it counts as not done" in state.notes[0]
        assert state_value(state) == 1
    assert [settle(out) for out in outs] == [5, 1, 1]


def test_unit_whose_first_output_is_lost_at_the_last_moment_changes_nothing(
    tmp_path: Path, outs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "state"
    put(root, 1, outs)  # type: ignore[arg-type]
    publish = journal._publish

    def late(*args: Any) -> None:
        version, pointer = manifest_store.STORE.get("bucket/out")
        manifest_store.STORE.put_if("bucket/out", version, pointer)  # another run has taken the lease
        publish(*args)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_publish", late)
        with pytest.raises(OutputError, match=r"another run has written to mem://bucket/out since .*; nothing was wri"):
            put(root, 2, outs)  # type: ignore[arg-type]
    later("mem://bucket/out")
    with open_state(str(root), ME) as state:
        assert state_value(state) == 1
    assert [settle(out) for out in outs] == [1, 1, 1]


def test_result_of_numbered_units_is_read(outs: list[str]) -> None:
    """The reader of this module reads what the tests of the journal write."""
    with open_output(outs[0], "error", [], ME) as output:
        written, manifest = result(output, 7)
        written.commit(manifest)
    assert read(outs[0]) == 7
