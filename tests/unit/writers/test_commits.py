"""The contract of a commit over all that is committed: results and units of a state, in folders and in stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.numbered_units import ME, SCHEMA, record_of
from support.quick_store import URI, QuickStore, use
from wincli.writers.commit.contract import Progress, TableCommit
from wincli.writers.commit.tables import table_of
from wincli.writers.output.sink import FileSink
from wincli.writers.places import atomic_files
from wincli.writers.places.place import new_token
from wincli.writers.state.journal import StateStaging
from wincli.writers.state.storage import StateStorage
from wincli.writers.state.store_storage import storage_of


@dataclass(frozen=True)
class Result:
    """A result of numbers at a path. Each look is that of another process."""

    path: str

    def hold(self) -> AbstractContextManager[Any]:
        return table_of(self.path).hold(ME)

    def commit(self, token: str) -> TableCommit[Any]:
        return table_of(self.path).commit(token)

    def write(self, value: int, token: str) -> tuple[TableCommit[Any], Mapping[str, Any]]:
        table = table_of(self.path)
        commit = table.commit(token)
        commit.open()
        sink = FileSink(table.place.fs, commit.staging, table.place.shown, "csv", SCHEMA, SCHEMA)
        part = replace(sink, data=commit.data, suffix=commit.suffix).write_part(0, [pa.table({"n": [value]})])
        told = {"parts": [{"name": part.name, "bytes": part.nbytes}], "rejects": [], "value": value}
        return commit, {**told, "run": token}

    def settle(self, token: str) -> None:
        table_of(self.path).remove_leftovers()

    def seen(self) -> int | None:
        table = table_of(self.path)
        manifest = table.manifest()
        if manifest is None:
            return None
        (part,) = manifest["parts"]
        with table.place.fs.open_input_stream(f"{table.place.path}/{part['name']}") as file:
            assert file.read() == b'"n"\n%d\n' % manifest["value"]
        value: int = manifest["value"]
        return value


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


KINDS = ["result", "result in two steps", "result in a store", "unit", "unit in two steps", "unit in a store"]


@pytest.fixture(params=KINDS)
def kind(
    request: pytest.FixtureRequest, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Result | Unit]:
    if "two steps" in request.param:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    if request.param == "unit in a store":
        use(QuickStore(tmp_path / "units"), monkeypatch)
    is_in_store = "store" in request.param
    one: Result | Unit
    if request.param.startswith("result"):
        one = Result("s://store/out" if is_in_store else str(tmp_path / "out"))
    else:
        path = URI if is_in_store else str(tmp_path / "state")
        one = Unit(path, storage_of(path))
    with one.hold():
        yield one


def put(kind: Result | Unit, value: int) -> str:
    token = new_token()
    commit, description = kind.write(value, token)
    commit.prepare(description)
    commit.publish()
    kind.settle(token)
    return token


OLD = pytest.mark.parametrize("old", [None, 1])


@OLD
def test_readers_see_a_result_from_its_publication_on(kind: Result | Unit, old: int | None) -> None:
    before = None if old is None else put(kind, old)
    token = new_token()
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.GONE, old)
    commit, description = kind.write(2, token)
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.GONE, old)
    commit.prepare(description)
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.READY, old)
    assert kind.commit(token).progress(new_token()) is Progress.GONE
    commit.publish()
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.PUBLISHED, 2)
    assert before is None or kind.commit(before).progress(before) is not Progress.PUBLISHED


@OLD
def test_another_process_publishes_what_is_prepared_once(kind: Result | Unit, old: int | None) -> None:
    if old is not None:
        put(kind, old)
    token = new_token()
    commit, description = kind.write(2, token)
    kind.commit(token).recover(token)
    assert kind.seen() == old, "it is not prepared"
    commit.prepare(description)
    kind.commit(token).recover(new_token())
    assert kind.seen() == old, "it is of another run"
    for _ in range(2):
        kind.commit(token).recover(token)
        assert (kind.commit(token).progress(token), kind.seen()) == (Progress.PUBLISHED, 2)
    kind.settle(token)
    put(kind, 3)
    kind.commit(token).recover(token)
    assert kind.seen() == 3, "another has replaced it"


@pytest.mark.parametrize("kind", ["result in two steps", "unit in two steps"], indirect=True)
def test_a_publication_that_ends_between_two_renames_goes_on(
    kind: Result | Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(kind, 1)
    token = new_token()
    commit, description = kind.write(2, token)
    commit.prepare(description)
    rename, done = Path.rename, list[Path]()

    def killed(path: Path, target: Path) -> Path:
        if done:
            raise KeyboardInterrupt
        done.append(path)
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            commit.publish()
    assert kind.seen() is None
    assert kind.commit(token).progress(token) is (Progress.PARTIAL if isinstance(kind, Unit) else Progress.READY)
    kind.commit(token).recover(token)
    assert (kind.commit(token).progress(token), kind.seen()) == (Progress.PUBLISHED, 2)
