"""SIGKILL at every line of a commit of two outputs and a state: afterwards they are all old or all new, never a mix.

A child process forks one run after the other. A run counts the lines it passes through in modules
of ``writers`` from a given moment on, each line up to ``visits`` times, and kills itself at the n-th: n = 1, 2, 3, ...
until one gets through. The next opener of the state, who may be killed the same way, has to set things right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHILD = '''
import glob, json, os, pathlib, shutil, signal, sys
from contextlib import ExitStack
import pyarrow as pa
from windowing.engine.ports import Part
from writers import journal, output, swap
from writers.lock import Owner
from writers.output import open_output
from writers.record import OpenWindows, StageRecord, UnitRecord
from writers.sink import check_types
from writers.state import open_state

base, old, can_exchange, since, visits = sys.argv[1], sys.argv[2] == "old", sys.argv[3] == "exchange", *sys.argv[4:]
schema = pa.schema([("n", pa.int64())])
os.fsync = lambda fd: None  # slow, and a kill loses nothing that the kernel has
if not can_exchange:
    swap.exchange = lambda *_: False

def owner():
    return Owner(os.getpid(), "here", "now")

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

def killer(kill_at):
    passed, seen = 0, {}
    later = ("journal.py", "swap.py", "state_folder.py", "state_recovery.py", "state_staging.py", "output.py")
    files = ("shutil.py", *glob.glob("writers/*.py")) if since == "commit" else later
    def trace(frame, event, arg):
        nonlocal passed
        name = frame.f_code.co_filename
        if not name.endswith(files):
            return None
        at = (name, frame.f_lineno)
        if event == "line" and seen.get(at, 0) < int(visits):
            seen[at] = seen.get(at, 0) + 1
            passed += 1
            if passed == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)

def interrupted_at_journal(folder):
    journal._swap = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    put(folder, 2)

def interrupted_between_outputs(folder):
    later = output.Output.swap
    def swap_once(self):
        later(self)
        os.kill(os.getpid(), signal.SIGKILL)
    output.Output.swap = swap_once
    put(folder, 2)

def killed(folder, kill_at):
    """What is killed at the n-th line: a commit, its second half, or the opening that completes one."""
    if since == "commit":
        put(folder, 2, lambda: killer(kill_at))
    elif since == "journal":
        later = journal._swap
        journal._swap = lambda *a: (killer(kill_at), later(*a))
        put(folder, 2)
    else:
        killer(kill_at)
        with open_state(folder + "/state", owner()):
            pass

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

def in_fork(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def after(folder, found):
    seen = look(folder)
    if since == "commit":
        put(folder, 3)
        assert look(folder) == 3
    pathlib.Path(found).write_text(json.dumps(seen))

check_types("csv", schema)  # what is loaded here is not loaded in each fork
run, template, found = base + "/run", base + "/template", base + "/found"
os.mkdir(run)
with open_state(run + "/state", owner()):
    pass
if old:
    assert in_fork(lambda: put(run, 1)) == 0
firsts = {"opening at journal": interrupted_at_journal, "opening between outputs": interrupted_between_outputs}
first = firsts.get(since)
if first:
    assert in_fork(lambda: first(run)) == -signal.SIGKILL
os.rename(run, template)
results, kill_at = [], 0
while True:
    kill_at += 1
    shutil.copytree(template, run)
    code = in_fork(lambda: killed(run, kill_at))
    if code == 0:
        assert look(run) == 2
        break
    assert code == -signal.SIGKILL, code
    assert in_fork(lambda: after(run, found)) == 0, kill_at
    results.append(json.loads(pathlib.Path(found).read_text()))
    shutil.rmtree(run)
print(json.dumps(results))
'''


def kills(tmp_path: Path, before: str, how: str, since: str, visits: int) -> Counter[int | None]:
    """How often the old unit (1, or None for none) or the new one (2) stood after a kill and the next opening."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), before, how, since, str(visits)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stdout))


@pytest.mark.parametrize("before", ["none", "old"])
def test_killed_anywhere_in_a_commit(tmp_path: Path, before: str) -> None:
    seen = kills(tmp_path, before, "exchange", "commit", 1)
    former = 1 if before == "old" else None
    assert set(seen) == {former, 2}
    assert seen[former] > 50
    assert seen[2] > 30


@pytest.mark.parametrize(("before", "how"), [("none", "exchange"), ("old", "exchange"), ("old", "two steps")])
def test_killed_at_the_swap_of_any_part(tmp_path: Path, before: str, how: str) -> None:
    seen = kills(tmp_path, before, how, "journal", 3)
    assert set(seen) == {2}
    assert seen[2] > 50


@pytest.mark.parametrize(
    ("since", "how"), [("opening at journal", "two steps"), ("opening between outputs", "exchange")]
)
def test_killed_again_while_a_commit_is_completed(tmp_path: Path, since: str, how: str) -> None:
    seen = kills(tmp_path, "old", how, since, 1)
    assert set(seen) == {2}
    assert seen[2] > 100
