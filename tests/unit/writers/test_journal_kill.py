"""SIGKILL all through a commit of two results and a state: afterwards all is old or all new, never a mix.

A warm process, which runs this file as a script, forks one run after the other. The first gets through, and tells after
which lines of ``writers`` the files were others than before: a kill at any other line leaves what the one before it
leaves. The next ones kill themselves at these lines, one each. The next opener of the state, who may be killed the same
way, has to set things right. Of results alone, `test_commits` interrupts each line.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support import numbered_units
from support.lines import WRITERS, at_each_line
from support.numbered_units import ME, outs, put, settled
from support.places import ROOT, TESTS
from support.processes import environment
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import Output
from wincli.writers.places import atomic_files
from wincli.writers.state import journal
from wincli.writers.state.state import open_state


def in_fork(work: Callable[[], object]) -> int:
    """The exit code of a fork: 0, 1 with a traceback on stderr, or what the signal was, less than 0."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_here(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def put_unit(folder: Path, value: int) -> None:
    put(folder / "state", value, outs(folder), keep=1)


def files_of(folder: str) -> list[tuple[Any, ...]]:
    """What tells one state of all files below a folder from another."""
    seen: list[tuple[Any, ...]] = []
    for entry in os.scandir(folder):
        told = entry.stat(follow_symlinks=False)
        seen.append((entry.path, told.st_ino, told.st_size, told.st_mtime_ns))
        if entry.is_dir(follow_symlinks=False):
            seen += files_of(entry.path)
    return sorted(seen)


def disturbed(folder: Path, since: str, at_line: Callable[[int], None]) -> None:
    """What is killed somewhere: a commit, or the opening that completes one."""
    commit = numbered_units.commit_together
    with ExitStack() as stack:

        def traced(*given: Any) -> Any:
            stack.enter_context(at_each_line(at_line, *WRITERS))
            return commit(*given)

        if since == "commit":
            numbered_units.commit_together = traced
            put_unit(folder, 2)
        else:
            stack.enter_context(at_each_line(at_line, *WRITERS))
            with open_state(str(folder / "state"), ME):
                pass


def interrupted_at_journal(folder: Path) -> None:
    journal._publish = kill_here  # type: ignore[assignment]
    put_unit(folder, 2)


def interrupted_between_outputs(folder: Path) -> None:
    publish = Output.publish
    Output.publish = lambda self: (publish(self), kill_here())  # type: ignore[assignment, method-assign]
    put_unit(folder, 2)


FIRSTS = {"opening at journal": interrupted_at_journal, "opening between outputs": interrupted_between_outputs}


def changes(folder: Path, since: str) -> list[int]:
    """The lines of a run that gets through which come first after a change of files."""
    found: list[int] = []
    last: list[Any] = []

    def look(line: int) -> None:
        if (seen := files_of(str(folder))) != last:
            last[:] = seen
            found.append(line)

    disturbed(folder, since, look)
    assert settled(folder) == 2
    return found


def after(folder: Path, then_again: bool) -> int | None:
    """What stands after a kill and the next opening."""
    seen = settled(folder)
    if then_again:
        put_unit(folder, 3)
        assert settled(folder) == 3
    return seen


def case(base: Path, before: str, how: str, since: str, step: int) -> None:
    """Write what stood after each kill."""
    if how == "two steps":
        atomic_files.exchange = lambda *_: False
    run, template, found = base / "run", base / "template", base / "found"

    def told(work: Callable[[], object]) -> Any:
        """What work in a fork gives."""
        assert in_fork(lambda: found.write_text(json.dumps(work()))) == 0
        return json.loads(found.read_text())

    run.mkdir()
    with open_state(str(run / "state"), ME):
        pass
    if before == "old":
        told(lambda: put_unit(run, 1))
    if since in FIRSTS:
        assert in_fork(lambda: FIRSTS[since](run)) == -signal.SIGKILL
    run.rename(template)
    shutil.copytree(template, run)
    moments = told(lambda: changes(run, since))[::step]
    results = []
    for number, moment in enumerate(moments):
        shutil.rmtree(run)
        shutil.copytree(template, run)
        code = in_fork(lambda at=moment: disturbed(run, since, lambda line: kill_here() if line == at else None))
        assert code == -signal.SIGKILL, code
        results.append(told(lambda n=number: after(run, n % 4 == 0)))
    found.write_text(json.dumps(results))


def serve() -> None:
    os.fsync = lambda fd: None  # slow, and a kill loses nothing that the kernel has
    with tempfile.TemporaryDirectory() as folder:
        put_unit(Path(folder), 1)  # what is loaded here, such as kernels, is not loaded in each fork
        settled(Path(folder))
    gc.freeze()  # or each fork would copy what it never changes
    for line in sys.stdin:
        base, *asked = json.loads(line)
        code = in_fork(lambda base=base, asked=asked: case(Path(base), *asked))
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


Kills = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def child() -> Iterator[subprocess.Popen[str]]:
    env = environment({"PYTHONPATH": str(TESTS)})
    with subprocess.Popen([sys.executable, __file__], cwd=ROOT, env=env, text=True, stdin=-1, stdout=-1) as process:
        yield process


@pytest.fixture
def kills(child: subprocess.Popen[str], tmp_path: Path) -> Kills:
    """What stood after each kill and the next opening, the old unit (1, or None for none) or the new one (2)."""

    def call(before: str, how: str, since: str, step: int = 1) -> list[Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        print(json.dumps([str(tmp_path), before, how, since, step]), file=child.stdin, flush=True)
        assert child.stdout.readline() == "0\n"  # it says on stderr what went wrong
        return list(json.loads((tmp_path / "found").read_text()))

    return call


@pytest.mark.parametrize(
    ("before", "how", "step"), [("none", "exchange", 2), ("old", "exchange", 1), ("old", "two steps", 2)]
)
def test_killed_anywhere_in_a_commit(kills: Kills, before: str, how: str, step: int) -> None:
    """``step``: of so many moments one; what differs are the outputs, of which each moment is tried below."""
    seen = Counter(kills(before, how, "commit", step))
    former = 1 if before == "old" else None
    assert set(seen) == {former, 2}
    assert seen[former] > 8 // step
    assert seen[2] > (20 if before == "old" else 6) // step


@pytest.mark.parametrize(
    ("since", "how"), [("opening at journal", "two steps"), ("opening between outputs", "exchange")]
)
def test_killed_again_while_a_commit_is_completed(kills: Kills, since: str, how: str) -> None:
    seen = kills("old", how, since, 2)
    assert set(seen) == {2}
    assert len(seen) > 15


@pytest.mark.parametrize("is_complete", [True, False])
def test_swap_killed_between_its_two_renames_is_completed_or_undone(tmp_path: Path, is_complete: bool) -> None:
    table = table_of(str(tmp_path / "out"))
    old, new = (Path(table.place.beside(role, "0" * 12)) for role in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
        (folder / folder.name).write_text("")
    if is_complete:
        (new / "_SUCCESS").write_text("")
    table.remove_leftovers()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / (new if is_complete else old).name).exists()


if __name__ == "__main__":
    serve()
