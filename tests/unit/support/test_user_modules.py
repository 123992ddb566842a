"""Who finds modules in the working folder: the user's own, and nothing that is installed."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wincli.windowing.support.modules import import_own, search

FILES = {
    "own_first": "import own_second\n\ndef late():\n    import own_third\n    return own_third\n",
    "own_second": "import json\n\nREAL = json.dumps([1])\n",
    "own_third": "",
    "own_optional": "raise SystemExit('nobody asked')\n",
    "own_class": "class Thing: ...\n",
    "json": "raise SystemExit('a name of Python')\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    search(tmp_path)
    yield tmp_path
    for name in ("own_installed", *FILES):
        if name != "json":
            sys.modules.pop(name, None)


def test_what_a_job_names_is_found_with_all_that_it_imports(folder: Path) -> None:
    module = import_own("own_first")
    assert module.own_second.REAL == "[1]"  # Python's own json, and not the folder's
    assert module.late().__file__ == str(folder / "own_third.py")


def test_others_that_ask_do_not_find_it_nor_what_is_installed_below_the_folder(folder: Path) -> None:
    for ask in (importlib.import_module, __import__):
        with pytest.raises(ModuleNotFoundError):
            ask("own_optional")
    packages = folder / ".venv" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "own_installed.py").write_text(
        "try:\n    import own_optional\nexcept ImportError:\n    own_optional = None\n"
    )
    sys.path.append(str(packages))
    assert importlib.import_module("own_installed").own_optional is None


def test_a_pickle_finds_what_it_names(folder: Path) -> None:
    pickled = b"cown_class\nThing\n."  # Thing of own_class, by name
    assert pickle._loads(pickled).__module__ == "own_class"  # type: ignore[attr-defined]


def test_only_the_folder_of_this_job_is_searched(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    search(tmp_path_factory.mktemp("other"))
    with pytest.raises(ModuleNotFoundError):
        import_own("own_first")
