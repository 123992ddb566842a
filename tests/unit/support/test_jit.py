"""What is kept of kernels is not taken for that of others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from support.places import TESTS
from wincli.readers.values.value_kinds import field_end
from wincli.windowing.support.compiler import dispatcher
from wincli.windowing.support.jit import Kernel

CALLER = """
from typing import NamedTuple
import numpy as np
from wincli.windowing.support.jit import kernel, refusals
from called import FACTOR, step

class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray

@kernel
def total(n):
    found = 0
    for i in range(n):
        found += step(i) * FACTOR
    return found

@kernel
def of_pair(pair):
    return pair.a.sum() + pair.b.sum()

if __name__ == "__main__":
    import caller
    print(caller.total(4), of(caller.total))
    print(caller.of_pair(caller.Pair(np.arange(3), np.arange(4))), of(caller.of_pair))
    print(*refusals(), end='')
"""
CALLED = """
from wincli.windowing.support.jit import kernel

FACTOR = 1

@kernel
def step(i):
    return i + 1
"""
OF = """
def of(function):
    hits, misses = (sum(each.values()) for each in (function.stats.cache_hits, function.stats.cache_misses))
    return {(1, 0): "loaded", (0, 1): "compiled"}[hits, misses]
"""
Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run two kernels in a Python of its own: what each gives, whether it was loaded or compiled, and what is told."""
    code = tmp_path / "code"
    code.mkdir()

    def told(called: str = CALLED, pair: str = "Pair", cwd: Path = tmp_path, **environ: str) -> list[str]:
        (code / "called.py").write_text(called)
        (code / "caller.py").write_text(OF + CALLER.replace("Pair", pair))
        os.utime(code / "caller.py", (0, 0))  # for numba the source is as it was
        env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        env |= {"PYTHONPATH": os.pathsep.join([str(TESTS), str(code)]), **environ}
        command = [sys.executable, "-B", code / "caller.py"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=cwd)
        return done.stdout.splitlines()

    return told


class Planted:
    """Makes a file where its pickle is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def plant(marker: Path, folder: Path) -> Path:
    """Let an index of compiled kernels, which is a pickle, make a file when it is read."""
    index = next(folder.rglob("*.total-*.nbi"))
    index.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Planted(marker)))
    return index


def test_a_kernel_is_compiled_anew_where_what_it_needs_has_changed_or_others_can_write_to_its_cache(
    tmp_path: Path, run: Run
) -> None:
    marker, here = tmp_path / "marker", tmp_path / "here"
    here.mkdir()
    (here / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'named'}\n")
    assert run(cwd=here) == ["10 compiled", "9 compiled"]
    assert not (tmp_path / "named").exists(), "no configuration in the working folder is read"
    assert run() == ["10 loaded", "9 loaded"]
    assert run(CALLED.replace("i + 1", "i + 2"), pair="Both") == ["14 compiled", "9 compiled"]
    for factor in (3, "numpy.int64(5)", "numpy.int64(7)"):
        called = CALLED.replace("FACTOR = 1", f"import numpy\nFACTOR = {factor}")
        total = 10 * int(str(factor).removeprefix("numpy.int64(").rstrip(")"))
        assert run(called, pair="Both") == [f"{total} compiled", "9 loaded"]
    plant(marker, tmp_path / "code" / "__pycache__").chmod(0o666)
    first, _, told = run()
    assert (first, marker.exists()) == ("10 compiled", False)
    assert told.startswith(
        f"kernels are compiled anew in each run, for others can write to {tmp_path}/code/__pycache__"
    )


def test_what_was_put_into_a_folder_that_others_can_write_to_is_not_run(tmp_path: Path, run: Run) -> None:
    cache, marker = tmp_path / "cache", tmp_path / "marker"
    assert run(NUMBA_CACHE_DIR=str(cache)) == ["10 compiled", "9 compiled"]
    plant(marker, cache)
    cache.chmod(0o777)
    assert run(NUMBA_CACHE_DIR=str(cache)) == [
        "10 compiled",
        "9 compiled",
        f"kernels are compiled anew in each run, for others can write to {cache}; make it yours alone "
        "(chown, chmod go-w), or name another folder: NUMBA_CACHE_DIR",
    ]
    assert not marker.exists()


LAZY = """
import sys, numpy as np
import wincli.windowing.engine.run
from wincli.windowing.rows.membership import covered
print("numba" in sys.modules)
print(covered(*np.array([[0, 2], [1, 3]]), 4).tolist(), "numba" in sys.modules, covered.__doc__[:13])
"""


def test_kernels_are_defined_without_numba_and_the_first_that_is_called_loads_it() -> None:
    ended = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["False", "[True, False, True, False] True Which entries"]


def test_a_helper_of_kernels_counts_no_references() -> None:
    options = {**field_end.options, "cache": False}  # what is loaded from the cache has no code to look at
    assert options["_nrt"] is False
    helper = dispatcher(Kernel(field_end.py_func, options))
    assert helper(np.frombuffer(b"a,b", np.uint8), 0, 3, ord(",")) == 1
    assert all("NRT_" not in code for code in helper.inspect_llvm().values())


def test_what_kernels_call_is_compiled_without_an_entry_for_python_and_kept_apart_from_what_has_one() -> None:
    alone, called = field_end.make(), field_end.make_called()
    assert called.targetoptions["no_cpython_wrapper"] is called.targetoptions["no_cfunc_wrapper"] is True
    assert not alone.targetoptions.keys() & {"no_cpython_wrapper", "no_cfunc_wrapper"}
    assert alone.py_func.__qualname__ != called.py_func.__qualname__, "the name in the cache"
