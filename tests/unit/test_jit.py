"""What is kept of kernels is not taken for that of others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CALLER = """
from windowing.jit import kernel
from called import FACTOR, step

@kernel
def total(n):
    found = 0
    for i in range(n):
        found += step(i) * FACTOR
    return found

if __name__ == "__main__":
    import caller
    stats = caller.total.stats
    print(caller.total(4), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
CALLED = """
from windowing.jit import kernel

FACTOR = 1

@kernel
def step(i):
    return i + 1
"""


def test_a_kernel_is_compiled_anew_where_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)

    def told(called: str) -> list[int]:
        """What it gives, and how often it was loaded and compiled."""
        (tmp_path / "called.py").write_text(called)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        done = subprocess.run(
            [sys.executable, "-B", tmp_path / "caller.py"], env=env, capture_output=True, text=True, check=True
        )
        return [int(word) for word in done.stdout.split()]

    assert told(CALLED) == [10, 0, 1]
    assert told(CALLED) == [10, 1, 0]
    assert told(CALLED.replace("i + 1", "i + 2")) == [14, 0, 1]
    assert told(CALLED.replace("FACTOR = 1", "FACTOR = 3")) == [30, 0, 1]
    assert told(CALLED) == [10, 1, 0]
