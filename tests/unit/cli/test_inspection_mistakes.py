"""A mistake of who looks at results, plans or starts jobs, or watches runs is one error, and nothing is written."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from support.in_process import done, wincli_here
from support.places import mistakes
from support.processes import write

LOG = "ts,user,amount\n2026-11-01T10:00:00,ann,5\n2026-11-01T10:00:30,bob,7\n,ann,9\n2026-11-01T10:20:00,ann,4\n"
JOB = ("run", "-w", "gap(ts, 5m)", "-k", "user", "-a", "count()", "-a", "sum(amount)", "log.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results ``out`` and ``other``, a state ``st``, and places where no file can be written."""
    path = tmp_path_factory.mktemp("mistakes")
    write(path, log__csv=LOG, empty__csv="", head__csv="ts,x\n")
    for more in (["out"], ["other", "--where", "amount > 4"], ["held", "--state", "st"]):
        done(path, *JOB, *more)
    (path / "locked").mkdir()
    os.mkfifo(path / "pipe")
    return path


@pytest.mark.parametrize(
    "mistake", [each for lot in mistakes("inspection").values() for each in lot], ids=lambda m: m[1]
)
def test_a_mistake_is_one_error_and_nothing_is_written(
    mistake: tuple[int, str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, *_, **__: not str(path).endswith("locked"))
    code, command, says = mistake
    words = shlex.split(command.replace("LONG", "n" * 300))
    before = sorted(folder.rglob("*"))
    ran = wincli_here(*words, cwd=folder)
    assert (ran.code, ran.out == "" or words[0] == "plan") == (code, True), ran
    assert says in ran.err
    assert ran.err.count("wincli: ") == 1
    assert "hidden" not in ran.err
    assert sorted(folder.rglob("*")) == before
