"""Outputs in a store, over a local folder that stands in for the bucket; ."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.quick_store import QuickStore, use_for_outputs
from wincli.windowing.errors import ConfigError, OutputError
from wincli.writers.commit.contract import Content
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import open_output
from wincli.writers.places import conditional
from wincli.writers.places.conditional import Holder
from wincli.writers.places.lock import Owner
from wincli.writers.places.place import locate

OUT = "store://bucket/out"
OWNER = Owner(os.getpid(), "here", "now")
SCHEMA = pa.schema([("window", pa.int64())])


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bucket").mkdir()
    use_for_outputs(tmp_path, "store://", monkeypatch)
    return tmp_path / "bucket"


def put(*windows: int, mode: Any = "error") -> None:
    with open_output(OUT, mode, [], OWNER) as output:
        output.begin()
        sink = pickle.loads(pickle.dumps(output.sink("jsonl", SCHEMA, SCHEMA)))
        parts = [sink.write_part(i, [pa.table({"window": [w]})]) for i, w in enumerate(windows)]
        rejects = [sink.write_rejects(0, pa.table({"window": [0]}))]
        told = {"parts": [{"name": p.name} for p in parts], "rejects": [{"name": p.name} for p in rejects]}
        output.commit({**told, "windows": windows})


def tree(folder: Path) -> list[str]:
    """The files below a folder, the ids of runs left out."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(re.sub("-[0-9a-f]{12}", "-ID", name) for name in names)


ALL = ["out/_SUCCESS", "out/_rejected/rejects-00000-ID-ID.ndjson", "out/_wincli/manifest.json"]
RESULT = [*ALL, "out/part-00000-ID-ID.jsonl"]


def test_result_comes_whole_and_is_replaced_whole(bucket: Path) -> None:
    put(1, 2)
    assert tree(bucket) == [*RESULT, "out/part-00001-ID-ID.jsonl"]
    put(3, mode="overwrite")
    assert tree(bucket) == RESULT
    assert next((bucket / "out").glob("part-*")).read_text() == '{"window":3}\n'
    manifest = json.loads((bucket / "out/_wincli/manifest.json").read_text())
    assert manifest["windows"] == [3]
    assert (bucket / "out" / manifest["parts"][0]["name"]).exists()
    with pytest.raises(ConfigError, match="already holds a result"):
        put(4)


def test_former_result_goes_after_the_manifest_of_the_new_one_is_put(
    bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(1, 2)
    seen: list[tuple[int, int]] = []
    put_if = QuickStore.put_if

    def spy(self: QuickStore, name: str, content: bytes, version: Any) -> Any:
        if version is not None:
            seen.append((len(list((bucket / "out").glob("part-*"))), content.count(b"part-")))
        return put_if(self, name, content, version)

    monkeypatch.setattr(QuickStore, "put_if", spy)
    put(3, mode="overwrite")
    assert seen == [(3, 1)]
    assert len(list((bucket / "out").glob("part-*"))) == 1


def test_leftovers_and_lease_of_a_dead_run_go(bucket: Path) -> None:
    dead = Holder(Owner(2**22 + 1, "here", "long ago"), "0123456789ab", 1e12)
    (bucket / ".out.wincli-lock").write_bytes(dead.to_json())
    for name in (".out.wincli-new-0123456789ab", "out/day=1", "out/_rejected"):
        (bucket / name).mkdir(parents=True)
        (bucket / name / "part-00000-0123456789ab.jsonl").write_text("")
    put(1)
    assert tree(bucket) == RESULT
    assert sorted(path.name for path in bucket.iterdir()) == ["out"]


def test_file_that_no_run_writes_stays(bucket: Path) -> None:
    put(1)
    (bucket / "out/notes.txt").write_text("mine")
    put(2, mode="overwrite")
    assert tree(bucket) == [*ALL, "out/notes.txt", "out/part-00000-ID-ID.jsonl"]


def test_result_of_an_older_wincli_is_replaced(bucket: Path) -> None:
    (bucket / "out/_wincli").mkdir(parents=True)
    (bucket / "out/part-00000.jsonl").write_text("")
    told = {"parts": [{"name": "part-00000.jsonl"}], "rejects": []}
    (bucket / "out/_wincli/manifest.json").write_text(json.dumps(told))
    put(1, mode="overwrite")
    assert tree(bucket) == RESULT


def test_live_run_is_respected(bucket: Path) -> None:
    with (
        open_output(OUT, "error", [], OWNER),
        pytest.raises(OutputError, match="another run is writing to store://bucket/out"),
    ):
        put(1)


def test_run_that_fails_before_it_begins_leaves_nothing(bucket: Path) -> None:
    with open_output(OUT, "error", [], OWNER) as output:
        output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"window": [1]})])
    assert list(bucket.iterdir()) == []


def test_first_run_that_fails_leaves_a_manifest_that_says_so(bucket: Path) -> None:
    with open_output(OUT, "error", [], OWNER) as output:
        output.begin()
        output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"window": [1]})])
    assert tree(bucket) == ["out/_wincli/manifest.json"]
    table = table_of(OUT)
    assert table.content() is Content.VACANT
    assert table.manifest() is None
    put(1)
    assert tree(bucket) == RESULT


def test_part_of_another_size_than_its_task_has_written_is_refused(bucket: Path) -> None:
    with open_output(OUT, "error", [], OWNER) as output:
        part = output.sink("jsonl", SCHEMA, SCHEMA).write_part(0, [pa.table({"window": [1]})])
        told = {"parts": [{"name": part.name, "bytes": part.nbytes + 1}], "rejects": []}
        with pytest.raises(OutputError, match=rf"{part.name} was written by a task and has 13 bytes, not 14"):
            output.commit(told)


def test_store_without_conditions_is_refused(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuickStore, "put_if", lambda store, name, content, _: store.put(name, content))
    monkeypatch.setattr(conditional, "_PROBED", {})
    refused = pytest.raises(ConfigError, match="store://bucket/out is in a store that does not compare versions")
    with refused, open_output(OUT, "error", [], OWNER):
        pass
    assert list(bucket.iterdir()) == []


def test_whole_bucket_is_not_an_output() -> None:
    with pytest.raises(ConfigError, match="is the root of a store; name a folder inside it"):
        locate("s3://bucket?region=eu-west-1&endpoint_override=127.0.0.1:1")
