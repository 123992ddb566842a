"""The output is written whole or not at all, and never over anything but a result."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, rows, tree, wincli, write
from support.systems import files_up_to

Run = Callable[..., Ran]
Fails = Callable[..., None]
COUNT = ("-w", "count(2)", "-a", "ids=collect(id)")


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="id\n1\n2\n3\n")


def test_an_output_that_is_there_is_not_touched(run: Run, fails: Fails, tmp_path: Path) -> None:
    assert run(*COUNT, "log", "out").code == 0
    text = (
        "output out already holds a result; nothing was touched; "
        "choose another output, or replace it with --mode overwrite"
    )
    for mode in ((), ("--mode", "error")):
        fails(2, text, "-w", "count(3)", *mode, "log", "out")
    write(tmp_path / "notes", a__txt="mine")
    text = "output notes is not empty and was not written by wincli; nothing was touched; choose another output, or "
    for mode in ("error", "overwrite"):
        fails(2, text + "empty that folder yourself", *COUNT, "--mode", mode, "log", "notes")
    fails(2, "output notes/a.txt is not a folder; name a folder", *COUNT, "log", "notes/a.txt")


def test_a_disk_that_takes_no_more(run: Run, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the same call fails, with another number."""
    noise = [os.urandom(500).hex() for _ in range(4000)]
    pq.write_table(pa.table({"id": range(4000), "text": noise}), tmp_path / "log.parquet")
    args = ["run", "-q", "-w", "count(2)", "-a", "x=collect(text)", "--mode", "overwrite"]
    assert run(*COUNT, "log", "out").code == 0
    before = tree(tmp_path)
    ran = wincli(*args, "log.parquet", "out", cwd=tmp_path, before=files_up_to(1024))
    text = (
        "cannot write out/part-00000.parquet: the file is too large for this system; nothing was written; "
        "raise the limit on file sizes (ulimit -f), or write to another disk"
    )
    assert (ran.code, ran.out, ran.err) == (3, "", f"wincli: error: {text}\n")
    assert tree(tmp_path) == before


def test_the_second_of_two_runs_into_one_output_refuses(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of the first run starts the second."""
    seen = []

    def look(ids: object) -> float:
        before = tree(tmp_path)
        seen.append(wincli("run", "-q", *COUNT, "log", "out", cwd=tmp_path))
        assert tree(tmp_path) == before
        return 1.0

    monkeypatch.setitem(sys.modules, "meanwhile", cast(ModuleType, SimpleNamespace(look=look)))
    assert run("-q", "-w", "count(9)", "-a", "x=meanwhile:look(id)", "log", "out") == Ran(0, "", "")
    assert rows(tmp_path / "out", "x") == [1.0]
    (second,) = seen
    found = re.fullmatch(
        r"wincli: error: another run is writing to out \(process (\d+) on \S+, started "
        r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00)\); nothing was written; wait for it to end, or choose another "
        r"output\n",
        second.err,
    )
    assert found, second.err
    assert (second.code, second.out, int(found[1])) == (3, "", os.getpid())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
