"""SIGKILL at every line of the commit: what is there afterwards is the old result or the new one, never a mix.

A child process forks one run after the other; a run counts the lines it passes through in ``writers`` and in
``shutil`` from the start of the commit or the swap on (the first time each), and kills itself at the n-th:
n = 1, 2, 3, ... until one gets through.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.places import ROOT, TESTS
from support.processes import environment

CHILD = '''
import json, os, pathlib, shutil, signal, sys, tempfile
import pyarrow as pa
from support.forks import in_fork
from wincli.writers.commit.tables import FolderSwap
from wincli.writers.places import atomic_files as swap
from wincli.writers.places.lock import Owner
from wincli.writers.output.output import open_output

base, old, can_exchange, since = sys.argv[1], sys.argv[2] == "old", sys.argv[3] == "exchange", sys.argv[4]
schema = pa.schema([("n", pa.int64())])
os.fsync = lambda fd: None  # slow, and a kill loses nothing that the kernel has
if not can_exchange:
    swap.exchange = lambda *_: False

def put(out, value, parts, kill_at):
    with open_output(out, "overwrite", [], Owner(os.getpid(), "here", "now")) as output:
        sink = output.sink("csv", schema, schema)
        done = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(parts)]
        rejects = [sink.write_rejects(0, pa.table({"n": [value]}))]
        told = {"parts": [{"name": p.name} for p in done], "rejects": [{"name": p.name} for p in rejects]}
        if kill_at and since == "commit":
            sys.settrace(killer(kill_at))
        elif kill_at:
            publish = FolderSwap.publish
            FolderSwap.publish = lambda one: (sys.settrace(killer(kill_at)), publish(one))
        output.commit({**told, "value": value})

def killer(kill_at):
    passed, seen = 0, set()
    def trace(frame, event, arg):
        nonlocal passed
        name = frame.f_code.co_filename
        if "/writers/" not in name and not name.endswith("shutil.py"):
            return None
        at = (name, frame.f_lineno)
        if event == "line" and at not in seen:
            seen.add(at)
            passed += 1
            if passed == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    return trace

def state(out):
    """The value of a whole result, None where there is no output; anything else is a mix."""
    if not os.path.exists(out):
        return None
    told = json.loads((pathlib.Path(out) / "_wincli/manifest.json").read_text())
    files = {str(p.relative_to(out)) for p in pathlib.Path(out).rglob("*") if p.is_file()}
    names = {p["name"] for p in told["parts"] + told["rejects"]}
    assert files == names | {"_SUCCESS", "_wincli/manifest.json"}, files
    for name in told["parts"]:
        assert pathlib.Path(out, name["name"]).read_text() == '"n"\\n%d\\n' % told["value"]
    return told["value"]

def after(out, found):
    seen = state(out)
    try:
        with open_output(out, "error", [], Owner(os.getpid(), "here", "later")):
            pass
    except Exception as refused:
        assert "already holds a result" in str(refused), refused
    later = state(out)
    if later is not None:
        put(out, 3, 1, 0)
        assert state(out) == 3
        assert os.listdir(os.path.dirname(out)) == ["out"]
    else:
        assert os.listdir(os.path.dirname(out)) == []
    pathlib.Path(found).write_text(json.dumps([seen, later]))

os.mkdir(base + "/loaded")
put(base + "/loaded/out", 1, 1, 0)  # what is loaded here, such as kernels, is not loaded in each fork
shutil.rmtree(base + "/loaded")
template = base + "/template"
os.mkdir(template)
if old:
    assert in_fork(lambda: put(template + "/out", 1, 2, 0)) == 0
results, kill_at = [], 0
while True:
    kill_at += 1
    with tempfile.TemporaryDirectory(dir=base) as folder:
        out, found = folder + "/d/out", folder + "/found"
        shutil.copytree(template, folder + "/d")
        code = in_fork(lambda: put(out, 2, 1, kill_at))
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        assert in_fork(lambda: after(out, found)) == 0, kill_at
        results.append(json.loads(pathlib.Path(found).read_text()))
print(json.dumps(results))
'''


def kills(tmp_path: Path, before: str, how: str, since: str) -> list[tuple[int | None, int | None]]:
    """What stood there after each kill, and after the clean-up of the next run: 1 is the old result, 2 the new."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), before, how, since]
    env = environment({"PYTHONPATH": str(TESTS)})
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(seen, later) for seen, later in json.loads(done.stdout)]


def test_killed_while_replacing_a_result_by_exchange(tmp_path: Path) -> None:
    seen = Counter(kills(tmp_path, "old", "exchange", "commit"))
    assert set(seen) == {(1, 1), (2, 2)}
    assert seen[1, 1] > 20
    assert seen[2, 2] > 5


def test_killed_while_replacing_a_result_in_two_steps(tmp_path: Path) -> None:
    """Between the two renames there is nothing at the name for an instant; the next run goes on to the new result."""
    seen = Counter(kills(tmp_path, "old", "two steps", "swap"))
    assert set(seen) == {(1, 1), (None, 2), (2, 2)}


def test_killed_while_writing_the_first_result(tmp_path: Path) -> None:
    seen = Counter(kills(tmp_path, "none", "exchange", "swap"))
    assert set(seen) == {(None, None), (2, 2)}


@pytest.mark.parametrize("complete", [True, False])
def test_swap_killed_between_its_two_renames_is_completed_or_undone(tmp_path: Path, complete: bool) -> None:
    from wincli.writers.commit.tables import table_of

    table = table_of(str(tmp_path / "out"))
    place = table.place
    old, new = Path(place.beside("old", "0" * 12)), Path(place.beside("new", "0" * 12))
    for folder, name in ((old, "1"), (new, "2")):
        folder.mkdir()
        (folder / name).write_text("")
    if complete:
        (new / "_SUCCESS").write_text("")
    table.remove_leftovers()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / ("2" if complete else "1")).exists()
