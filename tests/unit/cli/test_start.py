"""What a run has loaded when it starts Java: nothing heavy, and nothing whose environment is still to be set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.in_process import wincli_here
from support.processes import write

HEAVY = ("pyarrow", "numpy", "numba", "pyspark", "pandas")


def test_the_module_of_run_loads_nothing_heavy() -> None:
    """Pyarrow reads the allocator of workers from the environment when it is loaded, and `prepare` sets it first."""
    code = f"import sys, wincli.cli.launch; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_run_without_expressions_loads_nothing_that_computes_them() -> None:
    names = ("datasketches", "wincli.windowing.expressions.binder", "wincli.windowing.expressions.steps")
    modules = "wincli.cli.run.pipeline, wincli.windowing.engine.run, wincli.windowing.in_memory"
    run = "wincli.aggregate(pa.table({'x': [1, 2]}), 'count(1)', aggregates=['s=sum(x)'])"
    found = f"[name for name in {names} if name in sys.modules]"
    code = f"import sys, pyarrow as pa, wincli, {modules}; {run}; print({found})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


SHOWN = [
    (["show", "out"], ("numba", "pandas", "yaml")),
    (["status", "state"], ("pandas",)),
    (["plan", "-w", "count(2)", "log.csv", "new"], ("pandas",)),
]
LOADED = """
import os, sys
from wincli.cli.main import app
for words, heavy in {shown}:
    if os.fork() == 0:
        app(words, standalone_mode=False)
        print("loaded", words[0], [name for name in heavy if name in sys.modules], flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_command_that_shows_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """Numba takes as long to load as all else that `show` does. Each command is a fork of a process."""
    write(tmp_path, log__csv="n\n1\n2\n")
    for more in (["out"], ["other", "--state", "state"]):
        assert wincli_here("run", "-w", "count(2)", "log.csv", *more, cwd=tmp_path).code == 0
    command = [sys.executable, "-c", LOADED.format(shown=SHOWN)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    told = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert told == [f"loaded {words[0]} []" for words, _ in SHOWN]
