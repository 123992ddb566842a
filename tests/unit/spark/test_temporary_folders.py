"""Temporary folders: those of runs that are gone are swept, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.processes import write
from wincli.windowing.spark import temporary_folders
from wincli.windowing.spark.temporary_folders import (
    CHILDREN,
    OWNER,
    PREFIX,
    new_folder,
    remove_leftovers,
    share_lock,
)

HOLD = """
import os, sys
from wincli.windowing.spark.temporary_folders import new_folder
held = new_folder(sys.argv[1])
(held.path / "spark").mkdir()
(held.path / "spark" / "blob").write_bytes(b"x")
print(held.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a folder with something in it."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], text=True, stdin=-1, stdout=-1)
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def test_a_folder_stays_while_its_run_lives_and_is_swept_when_it_was_killed(
    tmp_path: Path, run: tuple[subprocess.Popen[str], Path]
) -> None:
    process, folder = run
    remove_leftovers([str(tmp_path)])
    assert (folder / "spark" / "blob").exists()
    process.kill()
    process.wait()
    remove_leftovers([str(tmp_path)])
    assert not folder.exists()


def test_a_folder_is_swept_by_a_run_that_needs_no_spark(
    tmp_path: Path, run: tuple[subprocess.Popen[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, folder = run
    process.kill()
    process.wait()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write(tmp_path, log__csv="ts,n\n1,2\n")
    command = ("run", "-w", "delta(ts, 60)", "-a", "n=sum(n)", "--order-by", "ts", "log.csv", "out")
    for _ in range(2):  # the second has nothing to do
        assert wincli_here(*command, cwd=tmp_path).code == 0
        assert not folder.exists()
        held = new_folder(str(tmp_path))
        folder = held.path
        held.release()


def test_a_folder_stays_until_java_and_workers_end_and_the_sweep_waits_for_them(
    tmp_path: Path, run: tuple[subprocess.Popen[str], Path]
) -> None:
    """Java of a killed driver writes its address file late: the folder must be whole then, and gone soon after."""
    process, folder = run
    lock = share_lock(folder / CHILDREN)
    java = subprocess.Popen(["sleep", "0.5"], pass_fds=(lock,))
    os.close(lock)
    process.kill()
    process.wait()
    remove_leftovers([str(tmp_path)])
    assert (folder / "spark" / "blob").exists()
    remove_leftovers([str(tmp_path)], patience=30)
    assert not folder.exists()
    assert java.wait() == 0


def test_a_sweep_does_not_wait_for_a_run_that_lives(
    tmp_path: Path, run: tuple[subprocess.Popen[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = run
    monkeypatch.setattr(temporary_folders.time, "sleep", lambda _seconds: pytest.fail("waits"))
    os.close(share_lock(folder / CHILDREN))
    held = share_lock(folder / CHILDREN)
    remove_leftovers([str(tmp_path)], patience=30)
    os.close(held)
    assert (folder / "spark" / "blob").exists()


def dead(parent: Path, **signed: str) -> Path:
    """A folder of a run that is gone; ``signed``: what differs in what it was signed with."""
    held = new_folder(str(parent))
    (held.path / OWNER).write_text(json.dumps({**temporary_folders._machine(), **signed}))
    (held.path / "file").touch()
    held.release()
    return held.path


def test_only_folders_of_runs_that_are_gone_are_swept(tmp_path: Path) -> None:
    """Of a machine that was started anew, and not of another one; never what is not signed, or not of a run."""
    dead(tmp_path, boot="another")
    dead(tmp_path, host="another")  # a container
    elsewhere = dead(tmp_path, boot="another", host="another")
    others = [tmp_path / name for name in ("wincli-data", f"{PREFIX}unsigned", f"{PREFIX}fifo", f"{PREFIX}deep")]
    for folder in others:
        folder.mkdir()
        (folder / "file").touch()
    os.mkfifo(others[2] / OWNER)
    (others[3] / OWNER).write_text("[" * 4000)  # deeper than a parser of JSON goes
    file, empty = tmp_path / f"{PREFIX}file", tmp_path / f"{PREFIX}empty"
    file.touch()
    empty.mkdir()
    remove_leftovers([str(tmp_path), str(tmp_path / "nowhere")])
    assert set(tmp_path.iterdir()) == {elsewhere, *others, file, empty}
    os.utime(empty, (0, 0))
    remove_leftovers([str(tmp_path)])
    assert set(tmp_path.iterdir()) == {elsewhere, *others, file}


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in the place of a folder, of its owner's file, and in a folder that is swept."""
    far, parent = tmp_path / "far", tmp_path / "tmp"
    parent.mkdir()
    target = dead(tmp_path)
    target.rename(far)
    (parent / f"{PREFIX}link").symlink_to(far)
    inner = parent / f"{PREFIX}inner"
    inner.mkdir()
    (inner / OWNER).symlink_to(far / OWNER)
    swept = dead(parent)
    (swept / "link").symlink_to(far)
    remove_leftovers([str(parent)])
    assert not swept.exists()
    assert inner.exists()
    assert (far / "file").exists()


def test_folders_of_other_users_are_never_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dead(tmp_path)
    user = os.geteuid()
    monkeypatch.setattr(temporary_folders.os, "geteuid", lambda: user + 1)
    remove_leftovers([str(tmp_path)])
    assert (folder / "file").exists()


def test_a_folder_that_is_swept_before_it_is_signed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, real = [], temporary_folders._is_taken

    def late(lock: int) -> bool:
        if not taken:
            taken.append(lock)
            remove_leftovers([str(tmp_path)])
        return real(lock)

    monkeypatch.setattr(temporary_folders, "_is_taken", late)
    held = new_folder(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [held.path.name]
    remove_leftovers([str(tmp_path)])
    assert held.path.exists()
    held.remove()
    held.release()
    assert not held.path.exists()
