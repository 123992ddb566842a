"""SIGKILL all through a commit of a result, or of two and a state: afterwards all is old or all new, never a mix.

A warm process forks one run after the other. The first gets through, and tells after which lines of ``writers`` the
files were others than before: a kill at any other line leaves what the one before it leaves. The next ones kill
themselves at these lines, one each. The next opener of the output or the state, who may be killed the same way, has to
set things right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.places import ROOT, TESTS
from support.processes import environment
from wincli.writers.commit.tables import table_of

CHILD = '''
import gc, glob, json, os, pathlib, shutil, signal, sys, tempfile, traceback
from contextlib import ExitStack
import pyarrow as pa
from wincli.windowing.ports import Part
from wincli.writers.places import atomic_files as swap
from wincli.writers.output import output
from wincli.writers.state import journal
from wincli.writers.places.lock import Owner
from wincli.writers.output.output import open_output
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord
from wincli.writers.state.state import open_state

schema = pa.schema([("n", pa.int64())])
os.fsync = lambda fd: None  # slow, and a kill loses nothing that the kernel has

def in_fork(work):
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

def owner():
    return Owner(os.getpid(), "here", "now")

def put_result(folder, value, start=lambda: None):
    """Commit an output without a state."""
    with open_output(folder + "/a", "overwrite", [], owner()) as output:
        part = output.sink("csv", schema, schema).write_part(0, [pa.table({"n": [value]})])
        start()
        output.commit({"parts": [{"name": part.name}], "rejects": [], "value": value})

def put(folder, value, start=lambda: None):
    """Commit a unit whose outputs and state say ``value``; ``start`` is called as the commit begins."""
    with open_state(folder + "/state", owner()) as state, ExitStack() as stack:
        outs = [folder + "/a", folder + "/b"]
        staging = stack.enter_context(state.begin("u", 0, outs))
        outputs = []
        for path in outs:
            output = stack.enter_context(open_output(path, "overwrite", [], owner()))
            part = output.sink("csv", schema, schema).write_part(0, [pa.table({"n": [value]})])
            outputs.append((output, {"parts": [{"name": part.name}], "rejects": [], "value": value}))
        part = staging.stage("s").write_rows(0, pa.table({"n": [value]}))
        stage = StageRecord("s", {}, {"value": value}, {}, 1, (part,), OpenWindows(0, 0, None))
        record = UnitRecord("u", 0, None, None, None, (), staging.outputs, (stage,), *[""] * 3, {}, {}, "", None, {})
        start()
        journal.commit_together(staging, record, outputs, 1)

def files_of(folder):
    """What tells one state of all files below a folder from another."""
    seen = []
    for entry in os.scandir(folder):
        told = entry.stat(follow_symlinks=False)
        seen.append((entry.path, told.st_ino, told.st_size, told.st_mtime_ns))
        if entry.is_dir(follow_symlinks=False):
            seen += files_of(entry.path)
    return sorted(seen)

def trace_lines(at_line):
    """From now on call ``at_line`` with the number of each line that is come to, from 1."""
    passed = 0
    files = ("shutil.py", *glob.glob("writers/**/*.py", recursive=True))
    def trace(frame, event, arg):
        nonlocal passed
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            passed += 1
            at_line(passed)
        return trace
    sys.settrace(trace)

def watcher(folder, changes):
    """Note the lines that come first after a change of files."""
    last = None
    def look_at_files(line):
        nonlocal last
        seen = files_of(folder)
        if seen != last:
            last = seen
            changes.append(line)
    trace_lines(look_at_files)

def killer(kill_at):
    trace_lines(lambda line: os.kill(os.getpid(), signal.SIGKILL) if line == kill_at else None)

def interrupted_at_journal(folder):
    journal._publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    put(folder, 2)

def interrupted_between_outputs(folder):
    later = output.Output.publish
    def swap_once(self):
        later(self)
        os.kill(os.getpid(), signal.SIGKILL)
    output.Output.publish = swap_once
    put(folder, 2)

def disturbed(folder, since, disturb):
    """What is killed somewhere: a commit, or the opening that completes one."""
    if since == "result":
        put_result(folder, 2, disturb)
    elif since == "commit":
        put(folder, 2, disturb)
    else:
        disturb()
        with open_state(folder + "/state", owner()):
            pass
    sys.settrace(None)

def watched(folder, since, found):
    changes = []
    disturbed(folder, since, lambda: watcher(folder, changes))
    assert (look_at_result if since == "result" else look)(folder) == 2
    pathlib.Path(found).write_text(json.dumps(changes))

def value_of(folder):
    """The value of a whole result, None where there is none; anything else is a mix."""
    if not os.path.exists(folder):
        return None
    told = json.loads((pathlib.Path(folder) / "_wincli/manifest.json").read_text())
    files = {str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()}
    assert files == {"part-00000.csv", "_SUCCESS", "_wincli/manifest.json"}, files
    assert pathlib.Path(folder, "part-00000.csv").read_text() == '"n"\\n%d\\n' % told["value"]
    return told["value"]

def held(state):
    """The value of the unit in the state, None where there is none."""
    record = state.record("u")
    if record is None:
        assert state.records == () and not state.has_data("u")
        return None
    assert state.has_data("u")
    files = state.stage("u", "s")
    values = [n for part in files.parts("rows") for n in files.read_part(part)["n"].to_pylist()]
    assert values == [record.stages[0].registers["value"]]
    return values[0]

def look(folder):
    found = set()
    with open_state(folder + "/state", owner()) as state:
        found.add(held(state))
        found |= {value_of(folder + "/a"), value_of(folder + "/b")}
        runs = {json.loads(pathlib.Path(folder, name, "_wincli/manifest.json").read_text())["run"]
                for name in "ab" if os.path.exists(folder + "/" + name)}
        assert runs == {record.run for record in state.records}
    assert len(found) == 1, found
    there = {"state"} | ({"a", "b"} if found != {None} else set())
    assert set(os.listdir(folder)) == there, os.listdir(folder)
    unit = {"u"} if found != {None} else set()
    assert set(os.listdir(folder + "/state")) == {".wincli-state"} | unit, os.listdir(folder + "/state")
    return found.pop()

def look_at_result(folder):
    try:
        with open_output(folder + "/a", "error", [], owner()):
            pass
    except Exception as refused:
        assert "already holds a result" in str(refused), refused
    found = value_of(folder + "/a")
    assert found is not None or os.listdir(folder) == [], os.listdir(folder)
    return found

def after(folder, since, found, then_again):
    if since == "result":
        first = value_of(folder + "/a")
        seen = [first, look_at_result(folder)]
    else:
        seen = look(folder)
    if then_again:
        (put_result if since == "result" else put)(folder, 3)
        assert (look_at_result if since == "result" else look)(folder) == 3
        assert since != "result" or os.listdir(folder) == ["a"], os.listdir(folder)
    pathlib.Path(found).write_text(json.dumps(seen))

def case(base, before, how, since, step):
    """Write what stood after each kill."""
    if how == "two steps":
        swap.exchange = lambda *_: False
    run, template, found = base + "/run", base + "/template", base + "/found"
    os.mkdir(run)
    if since != "result":
        with open_state(run + "/state", owner()):
            pass
    if before == "old":
        assert in_fork(lambda: (put_result if since == "result" else put)(run, 1)) == 0
    firsts = {"opening at journal": interrupted_at_journal, "opening between outputs": interrupted_between_outputs}
    first = firsts.get(since)
    if first:
        assert in_fork(lambda: first(run)) == -signal.SIGKILL
    os.rename(run, template)
    shutil.copytree(template, run)
    assert in_fork(lambda: watched(run, since, found)) == 0
    shutil.rmtree(run)
    results = []
    for number, kill_at in enumerate(json.loads(pathlib.Path(found).read_text())[::step]):
        shutil.copytree(template, run)
        code = in_fork(lambda: disturbed(run, since, lambda: killer(kill_at)))
        assert code == -signal.SIGKILL, code
        assert in_fork(lambda: after(run, since, found, number % 4 == 0)) == 0, kill_at
        results.append(json.loads(pathlib.Path(found).read_text()))
        shutil.rmtree(run)
    pathlib.Path(found).write_text(json.dumps(results))

with tempfile.TemporaryDirectory() as folder:
    put(folder, 1)  # what is loaded here, such as kernels, is not loaded in each fork
gc.freeze()  # or each fork would copy what it never changes
for line in sys.stdin:
    asked = json.loads(line)
    print(in_fork(lambda: case(*asked)), flush=True)
'''


Kills = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def child() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CHILD]
    env = environment({"PYTHONPATH": str(TESTS)})
    with subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdin=-1, stdout=-1) as process:
        yield process


@pytest.fixture
def kills(child: subprocess.Popen[str], tmp_path: Path) -> Kills:
    """What stood after each kill and the next opening, the old unit (1, or None for none) or the new one (2).

    Of a result also what stood after the kill.
    """

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


@pytest.mark.parametrize(
    ("before", "how", "expected"),
    [
        ("none", "exchange", {(None, None), (2, 2)}),
        ("old", "exchange", {(1, 1), (2, 2)}),
        ("old", "two steps", {(1, 1), (None, 2), (2, 2)}),  # between two renames there is nothing for an instant
    ],
)
def test_killed_anywhere_in_the_commit_of_a_result(
    kills: Kills, before: str, how: str, expected: set[tuple[int | None, int | None]]
) -> None:
    seen = Counter(map(tuple, kills(before, how, "result")))
    assert set(seen) == expected
    assert sum(seen.values()) > 5


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
