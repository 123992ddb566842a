"""wincli takes one name in site-packages, and modules of the user's own may have any of the names inside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.places import ROOT
from support.processes import WINCLI, environment, table, write

NAMES = ("cli", "conf", "readers", "windowing", "writers")
USES = [word for name in NAMES for word in ("-a", f"{name}={name}:total(id)")]
FUNCTION = "def total(id) -> int:\n    return int(sum(id)) + {}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a wheel of the project is installed in."""
    folder = tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "bench-data", "tests", "docs")
    shutil.copytree(ROOT, folder / "source", ignore=left_out)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder]
    subprocess.run([*pip, folder / "source"], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with modules and packages that are called as those inside wincli."""
    write(tmp_path, log__csv="id\n1\n2\n3\n")
    for number, name in enumerate(NAMES):
        path = tmp_path / (f"{name}.py" if number % 2 else f"{name}/__init__.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(FUNCTION.format(number))
    return tmp_path


def totals(folder: Path, command: list[str], path: str) -> dict[str, int]:
    """What the functions of all five modules give in one run."""
    args = ["run", "-q", "-w", "count(3)", *USES, "log.csv", "out", "--master", "local[1]"]
    env = environment({"PYTHONPATH": path})
    done = subprocess.run([*command, *args], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = table(folder / "out").to_pylist()
    return {name: int(row[name]) for name in NAMES}


@pytest.mark.parametrize("path", [pytest.param("", marks=pytest.mark.nightly), "."], ids=["as it is", "on PYTHONPATH"])
def test_modules_called_as_those_of_wincli_work_beside_an_editable_install(folder: Path, path: str) -> None:
    assert totals(folder, [str(WINCLI)], path) == {name: 6 + number for number, name in enumerate(NAMES)}


@pytest.mark.nightly  # it installs the package anew
def test_modules_called_as_those_of_wincli_work_beside_a_regular_install(folder: Path, site: Path) -> None:
    start = "import sys, wincli; from wincli.cli.main import main; sys.argv[0] = 'wincli'; sys.exit(main())"
    command = [sys.executable, "-P", "-c", start]
    found = subprocess.run(
        [sys.executable, "-P", "-c", "import wincli; print(wincli.__path__[0])"],
        env=environment({"PYTHONPATH": str(site)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()) == site / "wincli"
    path = os.pathsep.join([str(site), "."])
    assert totals(folder, command, path) == {name: 6 + number for number, name in enumerate(NAMES)}


def test_an_install_has_one_name_and_every_package_and_data_file(site: Path) -> None:
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"wincli"}
    listed = subprocess.run(
        ["git", "ls-files", *NAMES, "__init__.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kept = {
        str(path.relative_to(site / "wincli"))
        for path in (site / "wincli").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept == set(listed.stdout.split())
