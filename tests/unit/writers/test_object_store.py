"""Stores that cannot rename a folder: a local folder stands in for the bucket."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from wincli.windowing.errors import ConfigError, OutputError
from wincli.writers.commit import object_store
from wincli.writers.folders import place as places
from wincli.writers.folders.lock import Owner
from wincli.writers.folders.place import locate
from wincli.writers.output.output import open_output

OWNER = Owner(os.getpid(), "here", "now")
SCHEMA = pa.schema([("window", pa.int64())])


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bucket").mkdir()
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(places, "resolve", lambda path: (store, path.removeprefix("store://").rstrip("/")))
    return tmp_path / "bucket"


def put(*windows: int, mode: Any = "error") -> None:
    with open_output("store://bucket/out", mode, [], OWNER) as output:
        sink = pickle.loads(pickle.dumps(output.sink("jsonl", SCHEMA, SCHEMA)))
        parts = [sink.write_part(i, [pa.table({"window": [w]})]) for i, w in enumerate(windows)]
        rejects = [sink.write_rejects(0, pa.table({"window": [0]}))]
        told = {"parts": [{"name": p.name} for p in parts], "rejects": [{"name": p.name} for p in rejects]}
        output.commit({**told, "windows": windows})


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


ALL = ["out/_SUCCESS", "out/_rejected/rejects-00000.ndjson", "out/_wincli/manifest.json"]


def test_a_result_comes_whole_and_is_replaced_whole(bucket: Path) -> None:
    put(1, 2)
    assert tree(bucket) == [*ALL, "out/part-00000.jsonl", "out/part-00001.jsonl"]
    put(3, mode="overwrite")
    assert tree(bucket) == [*ALL, "out/part-00000.jsonl"]
    assert (bucket / "out/part-00000.jsonl").read_text() == '{"window":3}\n'
    assert json.loads((bucket / "out/_wincli/manifest.json").read_text())["windows"] == [3]
    with pytest.raises(ConfigError, match="already holds a result"):
        put(4)


def test_success_marker_is_deleted_first_and_written_last(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(1, 2)
    moves: list[list[str]] = []
    move = object_store._move

    def spy(store: fs.FileSystem, source: str, target: str, names: Any) -> None:
        moves.append(tree(bucket / "out"))
        move(store, source, target, names)

    monkeypatch.setattr(object_store, "_move", spy)
    put(3, mode="overwrite")
    assert moves[0] == ["_wincli/manifest.json"]
    assert "_SUCCESS" not in moves[-1]
    assert "part-00000.jsonl" in moves[-1]


@pytest.mark.parametrize("stop_at", range(3))
def test_a_run_stopped_on_the_way_can_be_repeated(bucket: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(1, 2)
    calls = iter(range(9))
    move = object_store._move

    def stop(*args: Any) -> None:
        if next(calls) == stop_at:
            raise KeyboardInterrupt
        move(*args)

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "_move", stop)
        with pytest.raises(KeyboardInterrupt):
            put(3, mode="overwrite")
    assert "out/_SUCCESS" not in tree(bucket)
    put(4, mode="overwrite")
    assert tree(bucket) == [*ALL, "out/part-00000.jsonl"]


def test_leftovers_and_locks_of_a_dead_run_go(bucket: Path) -> None:
    (bucket / ".out.wincli-new-0123456789ab").mkdir()
    (bucket / ".out.wincli-new-0123456789ab/part-00000.jsonl").write_text("")
    (bucket / ".out.wincli-lock").write_bytes(Owner(2**22 + 1, "here", "long ago").to_json())
    put(1)
    assert [path.name for path in bucket.iterdir()] == ["out"]


def test_a_live_run_is_respected(bucket: Path) -> None:
    with (
        open_output("store://bucket/out", "error", [], OWNER),
        pytest.raises(OutputError, match="another run is writing to store://bucket/out"),
    ):
        put(1)


def test_leaving_without_a_commit_leaves_nothing(bucket: Path) -> None:
    with open_output("store://bucket/out", "error", [], OWNER) as output:
        output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"window": [1]})])
    assert list(bucket.iterdir()) == []


def test_a_whole_bucket_is_not_an_output() -> None:
    with pytest.raises(ConfigError, match="is the root of a store; name a folder inside it"):
        locate("s3://bucket?region=eu-west-1")
