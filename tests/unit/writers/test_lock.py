"""One run at a time for one output, and a killed run holds nobody up."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest

from support.numbered_units import DEAD, ME, names, put
from support.places import ROOT
from wincli.windowing.errors import OutputError
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import open_output
from wincli.writers.places import lock, place
from wincli.writers.places.lock import Lock, Owner, hold_lock, read_owner
from wincli.writers.state.state import open_state

OWNER = Owner(4242, "box7", "2026-11-01T02:00:00Z")
CHILD = """
import sys
from wincli.writers.places.lock import Owner
from wincli.writers.output.output import open_output
with open_output(sys.argv[1], "error", [], Owner(4242, "box7", "2026-11-01T02:00:00Z")):
    print("in", flush=True)
    sys.stdin.read()
"""


def other_run(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(out)]
    run = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "in\n"
    return run


def test_another_output_beside_is_free(tmp_path: Path) -> None:
    with (
        open_output(str(tmp_path / "out"), "error", [], OWNER) as one,
        open_output(str(tmp_path / "out2"), "error", [], OWNER) as other,
        open_output(str(tmp_path / "out.wincli-new-0123456789ab"), "error", [], OWNER),
    ):
        assert Path(one.staging).is_dir()
        assert Path(other.staging).is_dir()


def test_a_second_run_is_refused_until_the_first_is_killed_and_its_leftovers_go(tmp_path: Path) -> None:
    out, second = str(tmp_path / "out"), Owner(1, "here", "now")
    with other_run(tmp_path / "out") as first:
        before = names(tmp_path)
        who = r"process 4242 on box7, started 2026-11-01T02:00:00Z"
        refused = rf"another run is writing to .*/out \({who}\); nothing was written; wait"
        with pytest.raises(OutputError, match=refused), open_output(out, "overwrite", [], second):
            pass
        assert names(tmp_path) == before
        first.send_signal(signal.SIGKILL)
    assert {name.split("-")[1] for name in names(tmp_path)} == {"lock", "new"}
    with open_output(out, "error", [], second) as output:
        assert set(names(tmp_path)) == {".out.wincli-lock", Path(output.staging).name}
        assert json.loads((tmp_path / ".out.wincli-lock").read_text()) == {"pid": 1, "host": "here", "started": "now"}
    assert names(tmp_path) == []


def test_a_lock_file_unlinked_by_its_owner_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our open and our flock the first run ends: we must not lock the file that it unlinked."""
    table = table_of(str(tmp_path / "out"))
    first = table.hold(OWNER)
    first.__enter__()
    flock = fcntl.flock
    calls = []

    def late(fd: int, operation: int) -> None:
        if not calls:
            first.__exit__(None, None, None)
        calls.append(os.fstat(fd).st_ino)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with table.hold(Owner(1, "here", "now")):
        assert len(calls) == 2
        assert json.loads(Path(table.place.lock).read_text())["pid"] == 1
        with pytest.raises(OutputError, match="another run"):
            table.hold(OWNER)
    assert names(tmp_path) == []


def test_only_one_of_many_gets_in_at_a_time(tmp_path: Path) -> None:
    table = table_of(str(tmp_path / "out"))
    inside, most, got = [0], [0], [0]
    guard = threading.Lock()

    def run() -> None:
        for _ in range(60):
            try:
                with table.hold(OWNER):
                    with guard:
                        inside[0] += 1
                        got[0] += 1
                        most[0] = max(most[0], inside[0])
                    with guard:
                        inside[0] -= 1
            except OutputError:
                continue

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert got[0] >= 1
    assert names(tmp_path) == []


def test_a_lock_that_somebody_deleted_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    table = table_of(str(tmp_path / "out"))
    with table.hold(OWNER):
        Path(table.place.lock).unlink()
        with table.hold(Owner(2, "here", "later")):
            pass
    assert names(tmp_path) == []


class TestWithoutFlock:
    """Object stores, and file systems that cannot lock: a mark that is checked and then written."""

    @pytest.fixture(autouse=True)
    def _no_flock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def flock(fd: int, operation: int) -> None:
            raise OSError(errno.ENOSYS, "not here")

        monkeypatch.setattr(fcntl, "flock", flock)

    def test_the_second_run_refuses_while_the_first_lives(self, tmp_path: Path) -> None:
        table = table_of(str(tmp_path / "out"))
        with (
            table.hold(Owner(os.getpid(), "here", "now")),
            pytest.raises(
                OutputError, match=r"process \d+ on here, started now.*; delete .*\.out\.wincli-lock if that"
            ),
            table.hold(Owner(os.getpid(), "here", "later")),
        ):
            pass
        assert names(tmp_path) == []

    def test_a_dead_process_of_this_machine_is_taken_over(self, tmp_path: Path) -> None:
        table = table_of(str(tmp_path / "out"))
        Path(table.place.lock).write_bytes(DEAD.to_json())
        with table.hold(Owner(1, "here", "now")):
            assert json.loads(Path(table.place.lock).read_text())["started"] == "now"
        assert names(tmp_path) == []

    def test_a_process_of_another_machine_is_believed_alive(self, tmp_path: Path) -> None:
        table = table_of(str(tmp_path / "out"))
        Path(table.place.lock).write_bytes(OWNER.to_json())
        with pytest.raises(OutputError, match="4242 on box7"), table.hold(Owner(1, "here", "now")):
            pass
        assert Path(table.place.lock).exists()

    def test_who_loses_the_race_gives_way(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = table_of(str(tmp_path / "out"))
        other = Owner(9, "x", "y")
        answers = iter([None, other, other])
        monkeypatch.setattr(lock, "_read_marker", lambda place: next(answers))
        with pytest.raises(OutputError, match="process 9 on x"), table.hold(OWNER):
            pass


@pytest.mark.parametrize("make", ["link", "dead link", "hard link", "fifo", "folder"])
@pytest.mark.parametrize("has_flock", [True, False])
def test_what_only_has_the_name_of_a_lock_is_not_written(
    make: str, has_flock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, theirs = table_of(str(tmp_path / "out")), tmp_path / "theirs"
    name = Path(table.place.lock)
    if make != "dead link":
        theirs.write_text("mine")
    if make == "fifo":
        os.mkfifo(name)
    elif make == "folder":
        name.mkdir()
    elif make == "hard link":
        name.hardlink_to(theirs)
    else:
        name.symlink_to(theirs)
    before = sorted(tmp_path.iterdir())
    if not has_flock:
        monkeypatch.setattr(fcntl, "flock", mock.Mock(side_effect=OSError(errno.ENOSYS, "not here")))
    with pytest.raises(
        OutputError, match=r"\.out\.wincli-lock has the name of the lock of .*; move it away, or choose"
    ):
        table.hold(OWNER)
    assert sorted(tmp_path.iterdir()) == before
    assert make == "dead link" or theirs.read_text() == "mine"


GARBAGE = [b"x", b"[]", b"{}", b"[" * 100_000, b'{"pid": 1e999, "host": "here", "started": "now"}', b"\xff"]
GARBAGE += [f'{{"pid": {pid}, "host": "here", "started": "now"}}'.encode() for pid in (0, -1, 10**30, '"7x"')]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_lock_file_of_a_dead_run_may_hold_anything(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "state", 1)
    (tmp_path / "state/.wincli-lock").write_bytes(content)
    assert read_owner(str(tmp_path / "state/.wincli-lock")) is None
    with open_state(str(tmp_path / "state"), ME) as state:
        assert state.notes == ()
    assert names(tmp_path / "state") == [".wincli-state", "u0"]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_mark_that_does_not_read_is_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """Where there is no flock the mark is all that tells of another run."""
    monkeypatch.setattr("wincli.writers.places.lock._acquire", lambda _: -1)
    out = place.locate(str(tmp_path / "out"))
    Path(out.lock).write_bytes(content)
    said = (
        f"the lock {out.lock} does not say which run holds it; nothing was written; delete it if no run is writing to"
    )
    with pytest.raises(OutputError, match=f"^{re.escape(said)}"), hold_lock(Lock(out.fs, out.lock, "out", "wait"), ME):
        pass
    assert Path(out.lock).read_bytes() == content
