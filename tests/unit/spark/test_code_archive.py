"""What goes to executors elsewhere: our code, the kernels compiled from just that, and what their daemon is to do.

The driver here is this process, with a package of one kernel; an executor is another Python that sees only the
archive's contents.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from wincli.windowing.spark.code_archive import FOLDER, ORDERS, USER_CODE, ship
from wincli.windowing.spark.daemon import make_calls
from wincli.windowing.spark.fork_server import NO_PANDAS, WORKER_CALLS
from wincli.windowing.spark.setup import Setup, worker_environment
from wincli.windowing.support.modules import FOLDER as WORKING_FOLDER

KERNEL = """
from wincli.windowing.support.jit import kernel

from shipped.steps import step

@kernel
def total(values):
    found = 0
    for value in values:
        found = step(found, value)
    return found
"""
CALLED = """
from wincli.windowing.support.jit import kernel

@kernel
def step(found, value):
    return found + value
"""
CALL = """
import numpy as np
from shipped.sums import total
print(total(np.arange(4)), sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values()))
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The source of a kernel that this process has compiled; it calls one of another source."""
    package = tmp_path / "driver" / "shipped"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    path = package / "sums.py"
    path.write_text(KERNEL)
    (package / "steps.py").write_text(CALLED)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert importlib.import_module("shipped.sums").total(np.arange(4)) == 6
    yield path
    for name in ("shipped.sums", "shipped.steps", "shipped"):
        del sys.modules[name]


def shipped(tmp_path: Path) -> list[str]:
    """The kernels in the archive, each with the sorts of files it has there."""
    infos = zipfile.ZipFile(ship(tmp_path, packages=["shipped"])).infolist()
    assert {info.external_attr >> 16 for info in infos} == {0o644}  # executors can read and write what they unpack
    names = [info.filename for info in infos]
    code = [f"shipped/{name}.py" for name in ("__init__", "sums", "steps")]
    assert {*code, ORDERS} <= set(names)
    kernels = [Path(name) for name in names if name not in {*code, ORDERS}]
    assert all(path.parent == Path("shipped/__pycache__") for path in kernels)
    return sorted({f"{path.name.partition('-')[0]}{path.suffix}" for path in kernels})


def unpacked(tmp_path: Path) -> Path:
    """What an executor has."""
    folder = tmp_path / "executor" / FOLDER
    zipfile.ZipFile(ship(tmp_path, packages=["shipped"])).extractall(folder)
    return folder


def called(folder: Path, tmp_path: Path) -> list[int]:
    """What the kernel gives on an executor, and how many were loaded and how many compiled there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CALL], env=env, capture_output=True, text=True, check=True, cwd=folder)
    return [int(word) for word in done.stdout.split()]


def test_the_archive_is_the_same_for_the_same_code(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = ship(tmp_path / "a", packages=["wincli.conf"]), ship(tmp_path / "b", packages=["wincli.conf"])
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"wincli/__init__.py", "wincli/conf/spark.py", "wincli/conf/examples/peaks.yaml"} <= set(names)
    assert not any("__pycache__" in name for name in names)


def test_kernels_go_along_and_are_loaded_and_not_compiled(tmp_path: Path, source: Path) -> None:
    assert shipped(tmp_path) == ["steps.step.nbc", "steps.step.nbi", "sums.total.nbc", "sums.total.nbi"]
    folder = unpacked(tmp_path)
    there = {path: path.read_bytes() for path in folder.rglob("*.nb?")}
    assert called(folder, tmp_path) == [6, 1, 0]
    assert {path: path.read_bytes() for path in folder.rglob("*.nb?")} == there


def change_code(folder: Path) -> None:
    (folder / "sums.py").write_text(KERNEL.replace("found = 0", "found = 1"))


def change_called_code(folder: Path) -> None:
    (folder / "steps.py").write_text(CALLED.replace("found + value", "found - value"))
    os.utime(folder / "steps.py", (0, 0))  # whatever its time


def cut_index(folder: Path) -> None:
    (index,) = (folder / "__pycache__").glob("sums.*.nbi")
    index.write_bytes(index.read_bytes()[:40])


def remove_kernels(folder: Path) -> None:
    for compiled in (folder / "__pycache__").glob("sums.*.nbc"):
        compiled.unlink()


STEPS = ["steps.step.nbc", "steps.step.nbi"]


@pytest.mark.parametrize(
    ("spoil", "there", "result"),
    [(change_code, STEPS, 7), (change_called_code, None, -6), (cut_index, STEPS, 6), (remove_kernels, STEPS, 6)],
)
def test_kernels_that_are_not_of_the_code_stay_at_home_and_are_compiled_there(
    tmp_path: Path, source: Path, spoil: Callable[[Path], None], there: list[str] | None, result: int
) -> None:
    spoil(source.parent)
    assert there is None or shipped(tmp_path) == there
    assert called(unpacked(tmp_path), tmp_path) == [result, 0, 1]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path, source: Path) -> None:
    folder = unpacked(tmp_path)
    cache = folder / "shipped" / "__pycache__"
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()
    cache.touch()  # for root, too, nothing can be written there
    assert called(folder, tmp_path) == [6, 0, 1]


def test_orders_are_obeyed_and_their_failure_is_left_to_tasks(tmp_path: Path) -> None:
    orders = [(Path.touch, (tmp_path / "done",)), (int, ("x",)), (Path.touch, (tmp_path / "not done",))]
    archive = zipfile.ZipFile(ship(tmp_path, orders, ["wincli.conf"]))
    assert pickle.loads(archive.read(ORDERS)) == tuple(orders)
    make_calls(Path(archive.extract(ORDERS, tmp_path)))
    make_calls(tmp_path / "no such file")
    assert [(tmp_path / name).exists() for name in ("done", "not done")] == [True, False]


def test_remote_workers_import_wincli_first_and_then_user_modules_and_find_the_store_of_the_driver(
    tmp_path: Path,
) -> None:
    def sent(environ: dict[str, str], requested: dict[str, str]) -> dict[str, str]:
        return worker_environment(Setup("yarn", {}, environ, tmp_path, ()), requested)

    ours = {"PYTHONPATH": FOLDER, WORKER_CALLS: f"{FOLDER}/{ORDERS}"}
    assert sent({}, {}) == ours
    behind = {**ours, "PYTHONPATH": f"{FOLDER}:/a:/b", NO_PANDAS: "1"}
    assert sent({NO_PANDAS: "1"}, {"PYTHONPATH": "/a:/b", "MY": "1"}) == behind
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://h"}
    others = {"AWS_REGION": "r", "HOME": "/home", "AWS_PROFILE": "p"}
    assert sent({**keys, **others}, {"AWS_REGION": "of the user"}) == {**ours, **keys}


def test_modules_of_the_working_folder_go_where_workers_look_for_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("mine.py", "data.csv", "package/__init__.py", "package/inner/more.py", "package/a.bin", "other/x.py"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    names = zipfile.ZipFile(ship(tmp_path, packages=["wincli.conf"], working_folder=home)).namelist()
    assert [name for name in names if name.startswith(USER_CODE)] == [
        f"{USER_CODE}/mine.py",
        f"{USER_CODE}/package/__init__.py",
        f"{USER_CODE}/package/inner/more.py",
    ]
    assert not any(name.startswith(USER_CODE) for name in zipfile.ZipFile(ship(tmp_path)).namelist())
    there = worker_environment(Setup("yarn", {}, {}, tmp_path, ()), {}, has_user_code=True)
    assert there[WORKING_FOLDER] == f"{FOLDER}/{USER_CODE}"
