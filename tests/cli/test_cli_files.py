"""Folders as they are found: links in circles, what is no file, files that change meanwhile, names in other bytes."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.processes import MASTER, Ran, manifest, rejected, rows, wincli, write
from support.systems import without_privilege

Run = Callable[..., Ran]
Fails = Callable[..., None]
COUNT = ("-w", "count(2)", "-a", "ts=collect(ts)")
LATIN = os.fsdecode(b"caf\xe9")


def write_log(folder: Path, form: str) -> None:
    """Three rows in a file of a format."""
    folder.mkdir()
    path = folder / f"a.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"ts": [1, 2, 3]}), path)
        return
    text = "ts\n1\n2\n3\n" if "csv" in form else '{"ts":1}\n{"ts":2}\n{"ts":3}\n'
    path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())


def test_what_is_no_file_fails_the_run_or_is_counted(fails: Fails, run: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "log", "csv")
    (tmp_path / "log" / "b.csv").symlink_to("gone")
    os.mkfifo(tmp_path / "log" / "c.csv")
    told = "log/b.csv (a link that leads nowhere), log/c.csv (a FIFO)"
    do = "remove such things, or skip them with --skip-unreadable"
    fails(3, f"{told} cannot be read; {do}", *COUNT, "log", "out")
    ran = run("--skip-unreadable", *COUNT, "log", "out")
    assert (ran.code, ran.summary) == (0, "3 rows in, 2 windows out, 0 rejected")
    assert f"passed over: {told}" in ran.notes
    assert manifest(tmp_path / "out")["inputs_skipped"] == 2
    write(tmp_path, job__yaml="window: count(2)\ninput: log\noutput: out2\nskip_unreadable: true\n")
    assert run("job.yaml").code == 0


def test_a_range_meets_what_is_no_file_as_a_run_does(fails: Fails, run: Run, tmp_path: Path) -> None:
    for day in (1, 2):
        write(tmp_path / "log" / f"dt=2026-11-0{day}", a__csv="ts\n1\n")
    (tmp_path / "log" / "dt=2026-11-02" / "b.csv").symlink_to("gone")
    (tmp_path / "log" / "dt=2026-11-03").symlink_to("gone")
    days = ("-w", "count(1)", "--start", "2026-11-01", "--end", "2026-11-04", "log", "out")
    do = "(a link that leads nowhere) cannot be read; remove such things, or skip them with --skip-unreadable"
    fails(3, f"log/dt=2026-11-03 {do}", *days)
    (tmp_path / "log" / "dt=2026-11-03").unlink()
    ran = run("-q", *days)
    assert (ran.code, ran.err) == (3, f"wincli: error: 2026-11-02: log/dt=2026-11-02/b.csv {do}\n")
    assert run("-q", "--skip-unreadable", *days).code == 0
    assert manifest(tmp_path / "out" / "dt=2026-11-02")["inputs_skipped"] == 1


def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    write_log(tmp_path / "log", "csv")
    write_log(tmp_path / "log" / "shut", "csv")
    (tmp_path / "log" / "shut").chmod(0)
    (tmp_path / "log" / "b.csv").write_text("ts\n9\n")
    (tmp_path / "log" / "b.csv").chmod(0)
    before = without_privilege()
    run = ("run", "-q", *COUNT)
    ran = wincli(*run, "log", "out", cwd=tmp_path, before=before)
    text = "log/shut (permission denied) cannot be read; remove such things, or skip them with --skip-unreadable"
    assert (ran.code, ran.err) == (3, f"wincli: error: {text}\n")
    ran = wincli(*run, "--skip-unreadable", "log", "out", cwd=tmp_path, before=before)
    assert (ran.code, ran.err) == (0, "")
    assert manifest(tmp_path / "out")["inputs_skipped"] == 2
    (tmp_path / "log" / "shut").chmod(0o755)


def grow(path: Path) -> None:
    with path.open("a") as file:
        file.write("200,a\n")


def replace(path: Path) -> None:
    path.with_name("new").write_text(path.read_text())
    path.with_name("new").rename(path)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "grows": (grow, "log/a.csv has changed since the run began; run it again when nothing writes to it"),
    "is replaced": (replace, "log/a.csv has changed since the run began; run it again when nothing writes to it"),
    "vanishes": (Path.unlink, "log/a.csv is not there any more; run it again when nothing changes the input"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_file_that_changes_behind_its_reader_undoes_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """It has been read when it changes: the driver looks once more before anything is put in place."""
    change, text = CHANGES[case]
    write_log(tmp_path / "log", "csv")
    function = SimpleNamespace(change=lambda ts: change(tmp_path / "log" / "a.csv") or 1.0)
    monkeypatch.setitem(sys.modules, "meanwhile", cast(ModuleType, function))
    state = ("--state", "st") if case == "grows" else ()
    ran = run("-q", "-w", "count(3)", "-a", "meanwhile:change(ts)", *state, "log", "out")
    assert (ran.code, ran.err) == (3, f"wincli: error: {text}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet"])
def test_files_in_a_folder_may_have_names_of_any_bytes(run: Run, tmp_path: Path, form: str) -> None:
    write_log(tmp_path / "log", form)
    (tmp_path / "log" / f"k={LATIN}").mkdir()
    (tmp_path / "log" / f"a.{form}").rename(tmp_path / "log" / f"k={LATIN}" / f"{LATIN}.{form}")
    ran = run("-k", "k", *COUNT, "--state", "st", "log", "out")
    assert (ran.code, ran.summary) == (0, "3 rows in, 1 window out, 0 rejected, 1 held")
    assert rows(tmp_path / "out", "k") == ["caf\\xe9"]
    assert [file["path"] for file in manifest(tmp_path / "out")["inputs"]] == [rf"log/k=caf\xe9/caf\xe9.{form}"]
    assert "nothing to do" in run("-k", "k", *COUNT, "--state", "st", "log", "out").err


def test_a_reject_names_a_file_of_other_bytes(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log", **{f"{LATIN}__csv": "ts,a\n1\n2,2\n"})
    assert run(*COUNT, "log", "out").code == 0
    assert rejected(tmp_path / "out", "_file", "_row") == [(r"log/caf\xe9.csv", 2)]
    (tmp_path / "log" / "b.csv").symlink_to(LATIN)
    text = "log/b.csv (a link that leads nowhere) cannot be read"
    assert text in run(*COUNT, "log", "out2").err


REFUSED = {
    "IN": ((f"{LATIN}.csv", "out"), r"--input caf\xe9.csv is no UTF-8; rename it, or name the folder that it is in"),
    "a folder": ((LATIN, "out"), r"--input caf\xe9 is no UTF-8; rename it, or name the folder that it is in"),
    "OUT": (("log", LATIN), r"--output caf\xe9 is no UTF-8; write it in UTF-8"),
    "a state": (("--state", LATIN, "log", "out"), r"--state caf\xe9 is no UTF-8; write it in UTF-8"),
    "a key": (("-k", LATIN, "log", "out"), r"--key caf\xe9 is no UTF-8; write it in UTF-8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_given_in_other_bytes_is_refused_in_one_line(fails: Fails, tmp_path: Path, case: str) -> None:
    args, text = REFUSED[case]
    write_log(tmp_path / "log", "csv")
    write_log(tmp_path / LATIN, "csv")
    write(tmp_path, **{f"{LATIN}__csv": "ts\n1\n"})
    fails(2, text, *COUNT, *args)


@pytest.mark.parametrize("master", [(), pytest.param(("--master", MASTER), marks=pytest.mark.nightly)])
def test_in_a_folder_of_other_bytes_a_job_reads_and_refuses_to_write(tmp_path: Path, master: tuple[str, ...]) -> None:
    here = tmp_path / LATIN
    write_log(here, "csv")
    run = ("run", "-q", *COUNT)
    assert wincli(*run, *master, "a.csv", str(tmp_path / "out"), cwd=here).code == 0
    ran = wincli_here(*run, "a.csv", "out", cwd=here)
    text = rf"output out is in a folder whose name is no UTF-8: {tmp_path}/caf\xe9/out; rename that folder, or name "
    assert (ran.code, ran.err) == (2, f"wincli: error: {text}another output\n")
    ran = wincli_here(*run, "--state", "st", "a.csv", str(tmp_path / "out2"), cwd=here)
    text = rf"the state st is in a folder whose name is no UTF-8: {tmp_path}/caf\xe9/st; rename that folder, or name "
    assert (ran.code, ran.err) == (2, f"wincli: error: {text}another one for the state\n")
    assert [path.name for path in here.iterdir()] == ["a.csv"]
