"""What a run has loaded when it starts Java: nothing heavy, and nothing whose environment is still to be set."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pyarrow", "numpy", "numba", "pyspark", "pandas")


def test_the_module_of_run_loads_nothing_heavy() -> None:
    """Pyarrow reads the allocator of workers from the environment when it is loaded, and `prepare` sets it first."""
    code = f"import sys, wincli.cli.launch; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_run_without_expressions_loads_nothing_that_computes_them() -> None:
    names = ("sqlglot", "datasketches", "wincli.windowing.expressions.binder", "wincli.windowing.expressions.steps")
    modules = "wincli.cli.run.pipeline, wincli.windowing.engine.run, wincli.windowing.in_memory"
    run = "wincli.aggregate(pa.table({'x': [1, 2]}), 'count(1)', aggregates=['s=sum(x)'])"
    found = f"[name for name in {names} if name in sys.modules]"
    code = f"import sys, pyarrow as pa, wincli, {modules}; {run}; print({found})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
