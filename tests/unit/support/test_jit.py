"""What is kept of kernels is not taken for that of others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest

from support.places import TESTS
from wincli.readers.values.value_kinds import field_end

CALLER = """
from wincli.windowing.support.jit import kernel
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
from wincli.windowing.support.jit import kernel

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


NAMED = """
from typing import NamedTuple
import numpy as np
from wincli.windowing.support.jit import kernel

class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray

@kernel
def total(pair):
    return pair.a.sum() + pair.b.sum()
"""
USE = """
import named
pair = named.{}(named.np.arange(3), named.np.arange(4))
print(named.total(pair), sum(named.total.stats.cache_hits.values()), sum(named.total.stats.cache_misses.values()))
"""


def test_a_kernel_is_compiled_anew_where_the_class_of_an_argument_has_another_name(tmp_path: Path) -> None:
    def total(name: str) -> list[int]:
        """What the kernel gives, and how often it was loaded and compiled."""
        (tmp_path / "named.py").write_text(NAMED.replace("Pair", name))
        os.utime(tmp_path / "named.py", (0, 0))  # for numba the source is as it was
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        command = [sys.executable, "-B", "-c", USE.format(name)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=tmp_path)
        return [int(word) for word in done.stdout.split()]

    assert total("Pair") == [9, 0, 1]
    assert total("Pair") == [9, 1, 0]
    assert total("Both") == [9, 0, 1]
    assert total("Both") == [9, 1, 0]


PLANTED = """
import pickle, sys
from pathlib import Path
from numba.core import config

class Planted:
    def __reduce__(self):
        return (Path.touch, (Path(sys.argv[1]),))

index = next(Path(sys.argv[2]).rglob("*.total-*.nbi"))
with index.open("wb") as file:
    pickle.dump(__import__("numba").__version__, file)
    pickle.dump(Planted(), file)
"""


@pytest.fixture
def kernel_of(tmp_path: Path) -> Callable[..., tuple[list[int], str]]:
    """Run a kernel in a Python of its own: what it gives, how often it was loaded and compiled, and what is told."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "caller.py").write_text(
        CALLER + "    from wincli.windowing.support.jit import refusals\n    print(*refusals(), end='')\n"
    )
    (tmp_path / "code" / "called.py").write_text(CALLED)

    def run(cwd: Path = tmp_path, **environ: str) -> tuple[list[int], str]:
        env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        env |= {"PYTHONPATH": os.pathsep.join([str(TESTS), str(tmp_path / "code")]), **environ}
        command = [sys.executable, "-B", tmp_path / "code" / "caller.py"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=cwd)
        first, _, rest = done.stdout.partition("\n")
        return [int(word) for word in first.split()], rest

    return run


def plant(marker: Path, folder: Path) -> None:
    """Let an index of compiled kernels, which is a pickle, make a file when it is read."""
    subprocess.run([sys.executable, "-c", PLANTED, marker, folder], check=True)


def test_what_was_put_into_a_folder_that_others_can_write_to_is_not_run(
    tmp_path: Path, kernel_of: Callable[..., tuple[list[int], str]]
) -> None:
    cache, marker = tmp_path / "cache", tmp_path / "marker"
    assert kernel_of(NUMBA_CACHE_DIR=str(cache)) == ([10, 0, 1], "")
    assert kernel_of(NUMBA_CACHE_DIR=str(cache)) == ([10, 1, 0], "")
    plant(marker, cache)
    cache.chmod(0o777)
    answer, told = kernel_of(NUMBA_CACHE_DIR=str(cache))
    assert answer == [10, 0, 1]
    assert told == (
        f"kernels are compiled anew in each run, for others can write to {cache}; make it yours alone "
        "(chown, chmod go-w), or name another folder: NUMBA_CACHE_DIR"
    )
    assert not marker.exists()


def test_an_index_that_others_can_write_to_is_not_run(
    tmp_path: Path, kernel_of: Callable[..., tuple[list[int], str]]
) -> None:
    marker, cache = tmp_path / "marker", tmp_path / "code" / "__pycache__"
    assert kernel_of()[0] == [10, 0, 1]
    plant(marker, cache)
    next(cache.glob("*.total-*.nbi")).chmod(0o666)
    answer, told = kernel_of()
    assert (answer, marker.exists()) == ([10, 0, 1], False)
    assert told.startswith(f"kernels are compiled anew in each run, for others can write to {cache}")


def test_a_configuration_of_numba_in_the_working_folder_is_not_read(
    tmp_path: Path, kernel_of: Callable[..., tuple[list[int], str]]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'named'}\n")
    assert kernel_of(cwd=here) == ([10, 0, 1], "")
    assert not (tmp_path / "named").exists()


def test_a_helper_of_kernels_counts_no_references() -> None:
    options = dict(field_end.targetoptions)
    assert options["_nrt"] is False
    helper = numba.jit(**options)(field_end.py_func)  # not from the cache, which has no code to look at
    assert helper(np.frombuffer(b"a,b", np.uint8), 0, 3, ord(",")) == 1
    assert all("NRT_" not in code for code in helper.inspect_llvm().values())
