"""The whole command over a store that wants a password: nothing that it says or leaves holds one, and all goes on.

A folder stands in for the store. The password changes from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from pyarrow import fs

import wincli.writers.state.journal
from support.day_results import records
from support.in_process import done, wincli_here
from support.processes import Ran, rejected, write
from support.quick_store import QuickStore, bucket_files
from wincli.readers.files import listing
from wincli.readers.files.file import Located
from wincli.windowing.support.redaction import redacted_path
from wincli.windowing.tables import delta
from wincli.writers.commit import store_objects, tables
from wincli.writers.output import output as overlap
from wincli.writers.places import place

FIRST, SECOND = "hunter%2Ftwo", "swordfish"
PLAIN = ("hunter/two", FIRST, SECOND, "AKIA1234", "confsecret")
GAP = ("-w", "gap(ts, 5)", "-k", "user", "--order-by", "ts", "-a", "ids=collect(id)")


class KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


class Store:
    """The store, and the one password that it takes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.fs = bucket_files(folder)
        self.password = FIRST

    def open(self, uri: str) -> tuple[fs.FileSystem, str]:
        head = f"s3://AKIA1234:{self.password}@"
        if not uri.startswith(head):
            raise OSError(f"access denied to {uri}")
        return self.fs, uri.removeprefix(head).rstrip("/")

    def uri(self, path: str) -> str:
        return f"s3://AKIA1234:{self.password}@bucket/{path}"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store(tmp_path / "store")
    root: Callable[[str], Located] = listing._root
    resolve = place.resolve

    def opened(path: str) -> Located:
        return Located(*store.open(path), redacted_path(path)) if path.startswith("s3://") else root(path)

    def resolved(path: str) -> tuple[fs.FileSystem, str]:
        return store.open(path) if path.startswith("s3://") else resolve(path)

    monkeypatch.setattr(listing, "_root", opened)
    monkeypatch.setattr(listing, "table_version", lambda path, version: None)
    monkeypatch.setattr(delta, "has_log", lambda root: False)
    for module in (listing, tables):
        monkeypatch.setattr(module, "reach", lambda uri: None)
    monkeypatch.setattr(store_objects, "open_store", lambda uri: QuickStore(store.folder / store.open(uri)[1]))
    for module in (place, overlap):
        monkeypatch.setattr(module, "resolve", resolved)
    (store.folder / "bucket" / "out").mkdir(parents=True)  # a true store needs none
    write(
        store.folder / "bucket",
        a1__csv="ts,user,id\n1,a,1\n,b,2\n9,a,3\n10,b,4\n",
        a2__csv="ts,user,id\n8,a,5\n20,b,6\n20,a,7\n",
        a3__csv="ts,user,id\n22,a,8\n40,b,9\n",
    )
    return store


def run(store: Store, n: int, *more: str) -> Ran:
    conf = ("--spark-conf", "spark.hadoop.fs.s3a.secret.key=confsecret")
    paths = (store.uri(f"a{n}.csv"), store.uri(f"out/{n}"))
    return wincli_here("run", *GAP, *conf, *paths, "--state", "st", "--late", "redo", *more, cwd=store.folder.parent)


def left(folder: Path) -> bytes:
    """All that is below a folder, names and bytes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(str(path.relative_to(folder)).encode() + path.read_bytes() for path in files)


def test_no_secret_is_printed_or_stored_and_a_changed_secret_is_accepted_also_to_complete_a_killed_commit(
    store: Store,
) -> None:
    folder = store.folder.parent
    said = [run(store, 1)]
    assert said[0].summary == "4 rows in, 1 window out, 1 rejected (null_order 1), see _rejected, 2 held"
    store.password = SECOND
    said.append(run(store, 1))
    assert "nothing to do" in said[-1].err
    said.append(run(store, 2, "-v"))
    assert "run-000001 is run again: it takes 1 late row of run-000002" in said[-1].err
    assert said[-1].code == 0
    assert rejected(store.folder / "bucket/out/1", "_file") == [("s3://***@bucket/a1.csv",)]
    found = records(folder / "st")
    assert [output["shown"] for output in found["run-000001"]["outputs"]] == ["s3://***@bucket/out/1"]
    assert found["run-000001"]["inputs"][0]["path"] == "s3://***@bucket/a1.csv"
    assert found["run-000001"]["job"]["spark_conf"] == {"spark.hadoop.fs.s3a.secret.key": "***"}
    patch = mock.patch.object(wincli.writers.state.journal, "_publish", side_effect=KilledError)
    with patch, pytest.raises(KilledError):
        run(store, 3)
    assert json.loads((folder / "st/.journal.json").read_text())["outputs"][0]["path"] == "s3://***@bucket/out/3"
    killed = left(folder)
    store.password = FIRST
    said.append(wincli_here("status", "st", cwd=folder))
    write(folder, b__csv="ts,user,id\n1,a,1\n")
    said.append(wincli_here("run", *GAP, "b.csv", "out", "--state", "st", cwd=folder))
    text = "s3://***@bucket/out/3 is recorded without its secrets, and this run names no path of that place"
    assert (said[-1].code, text in said[-1].err, (folder / "st/.journal.json").exists()) == (2, True, True)
    said.append(run(store, 3))
    assert "unit run-000003 was complete when its run was killed" in said[-1].err
    assert "nothing to do" in said[-1].err
    said.append(run(store, 4, "-vv"))
    said.append(wincli_here("run", *GAP, f"s3://AKIA1234:{SECOND}@bucket/a1.csv", "x", "-vv", cwd=folder))
    said.append(run(store, 1, "--max-rejects", "0"))
    assert [ran.code for ran in said[-3:]] == [3, 3, 2]
    said.append(wincli_here("status", "st", "--json", cwd=folder))
    told = "".join(ran.out + ran.err for ran in said)
    assert "access denied to s3://***@bucket/a1.csv" in told
    for secret in PLAIN:
        assert secret not in told
        assert secret.encode() not in killed
        assert secret.encode() not in left(folder)


def test_status_escapes_names_and_masks_what_old_records_tell(tmp_path: Path) -> None:
    """The label of a unit is the name of a folder; why a run failed was once written down as it was told."""
    label = "2026\x1b[31m\nat work: nobody\u202e"
    write(tmp_path, a__csv="ts,user,id\n1,a,1\n")
    folder = f"out/dt={label.replace(chr(10), '%0A')}"
    done(tmp_path, "run", *GAP, "a.csv", folder)
    lines = wincli_here("status", "out", cwd=tmp_path).out.splitlines()
    shown = r"2026\x1b[31m\nat work: nobody\u202e"
    assert lines[0] == f"out: 1 unit, {shown}"
    assert lines[2].startswith(f"{shown}  ")
    assert lines[1].index("rows in") + len("rows in") == lines[2].index("  1  ") + 3
    assert json.loads(wincli_here("status", "out", "--json", cwd=tmp_path).out)["units"][0]["label"] == label
    done(tmp_path, "run", *GAP, "a.csv", "plain", "--state", "st")
    error = {"when": "2026-11-07", "unit": "run-000002", "message": "no s3://a:urlsecret@bucket\nforged"}
    (tmp_path / "st/.last-error.json").write_text(json.dumps(error))
    for more in ((), ("--json",)):
        text = wincli_here("status", "st", *more, cwd=tmp_path).out
        assert "urlsecret" not in text
        assert "\nforged" not in text
