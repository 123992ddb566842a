"""The wheel has every package of the tree, and every folder with modules is one."""

from __future__ import annotations

import tomllib

from support.docs_pages import ROOT

TOP = ("cli", "conf", "readers", "windowing", "writers")
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts) for top in TOP for path in (ROOT / top).rglob("__init__.py")
)


def test_the_wheel_has_every_package_of_the_tree() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    assert listed == ["wincli", *(f"wincli.{package}" for package in PACKAGES)]


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent.relative_to(ROOT) for top in TOP for path in (ROOT / top).rglob("*.py")}
    assert sorted(".".join(folder.parts) for folder in folders) == PACKAGES
