"""What a run has loaded when it starts Java: nothing heavy, and nothing whose environment is still to be set."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pyarrow", "numpy", "numba", "pyspark", "pandas")


def test_the_module_of_run_loads_nothing_heavy() -> None:
    """Pyarrow reads the allocator of workers from the environment when it is loaded, and `prepare` sets it first."""
    code = f"import sys, wincli.cli.commands.run; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
