"""Python files that lie in the working folder are not run unless they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT
from support.processes import environment, rows, wincli, write
from support.spark_cluster import QUICK

PYTHONS = ("sitecustomize", "usercustomize", "typing")  # what Python itself runs before wincli is there
PLANTED = (*PYTHONS, "scipy", "coverage", "cffi", "numpy", "pyarrow", "numba", "pyspark")
LOCAL, CLUSTER = "local[2]", "local-cluster[1, 1, 1024]"
PLAIN = ("-a", "n=count()")
OWN = ("-a", "n=mine:how_many(id)")
MINE = """
import numpy as np
from wincli.windowing.operator import Operator

import helper


def how_many(id) -> int:
    from tools.counting import ONE

    return ONE * helper.size(np.asarray(id))


class Sizes(Operator):
    output = {"n": int}

    def trigger(self, rows, pane):
        import importlib

        yield {"n": importlib.import_module("helper").size(rows)}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a log, modules that tell when they are run, and one that is a user's own."""
    here = tmp_path / "it's here"
    write(here / "log", a__csv="id\n1\n2\n3\n")
    (tmp_path / "run").mkdir()
    for name in PLANTED:
        write(here, **{f"{name}__py": f"open({str(tmp_path / 'run' / name)!r}, 'w').close()\n"})
    write(here, mine__py=MINE, helper__py="def size(values):\n    return len(values)\n")
    write(
        here / "tools",
        __init____py="",
        counting__py="from tools import units\n\nONE = units.UNIT\n",
        units__py="UNIT = 1\n",
    )
    write(here, **{"__numba_config__yaml": f"cache_dir: {tmp_path / 'run' / 'kernels'}\n"})
    return here


def was_run(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder.parent / "run").iterdir())


@pytest.mark.parametrize(
    ("asked", "master"),
    [
        pytest.param(PLAIN, LOCAL, id="plain", marks=pytest.mark.nightly),
        pytest.param(OWN, LOCAL, id="own", marks=pytest.mark.nightly),
        pytest.param(PLAIN, CLUSTER, id="plain, on a cluster", marks=pytest.mark.nightly),
        pytest.param(OWN, CLUSTER, id="own, on a cluster"),
    ],
)
def test_no_file_of_the_working_folder_is_run_but_the_module_that_is_named(
    folder: Path, master: str, asked: tuple[str, ...]
) -> None:
    quick = ("--spark-conf", f"spark.executor.extraJavaOptions={QUICK}")  # 15 s of processor time become 11
    ran = wincli("run", "--master", master, *quick, "-w", "count(2)", *asked, "log", "out", cwd=folder)
    assert (ran.code, ran.summary) == (0, "3 rows in, 2 windows out, 0 rejected"), ran.err
    assert rows(folder / "out", "n") == [2, 1]
    assert was_run(folder) == []


def test_python_with_a_module_leaves_the_working_folder_out_too(folder: Path) -> None:
    (folder / "typing.py").unlink()  # Python itself takes what its -m needs from there
    env = environment({"PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-m", "wincli.cli.main", "run", "-w", "count(2)", *PLAIN, "log", "out"]
    done = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True, timeout=180, check=False)
    assert (done.returncode, rows(folder / "out", "n")) == (0, [2, 1]), done.stderr
    assert was_run(folder) == []


def test_user_module_is_found_through_pythonpath_whose_empty_entry_is_not_the_working_folder(folder: Path) -> None:
    for name in PYTHONS:  # Python itself takes these from there
        (folder / f"{name}.py").unlink()
    lib = folder.parent / "lib"
    lib.mkdir()
    for name in ("mine.py", "helper.py", "tools"):
        (folder / name).rename(lib / name)
    args = ("run", "--master", LOCAL, "-w", "count(2)", *OWN, "log", "out")
    ran = wincli(*args, cwd=folder, env={"PYTHONPATH": ":../lib"})
    assert (ran.code, rows(folder / "out", "n")) == (0, [2, 1]), ran.err
    assert was_run(folder) == []


def test_an_operator_finds_its_helpers_where_rows_are_exchanged(folder: Path) -> None:
    write(folder / "log", b__csv="id\n" + "".join(f"{i}\n" for i in range(2000)))
    args = ("run", "--master", LOCAL, "-w", "count(2)", "-k", "id", "--operator", "mine:Sizes", "log", "out")
    ran = wincli(*args, "--split-size", "1KiB", "--slice-size", "1KiB", cwd=folder)
    assert ran.code == 0, ran.err
    assert sorted(set(rows(folder / "out", "n"))) == [1, 2]
    assert was_run(folder) == []
