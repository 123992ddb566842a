"""Each package says what lives there, what it imports, and which packages import it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.docs_pages import ROOT

TOP = ("cli", "conf", "readers", "windowing", "writers")
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts) for top in TOP for path in (ROOT / top).rglob("__init__.py")
)


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(path: Path) -> Iterator[tuple[str, ...]]:
    """The modules that a module imports by relative imports, each from the root."""
    own = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*own[: len(own) - node.level + 1], *(node.module or "").split("."))
            base = tuple(part for part in base if part)
            for name in node.names:
                is_module = (ROOT.joinpath(*base, name.name)).with_suffix(".py").exists()
                yield (*base, name.name) if is_module else base


@cache
def edges() -> frozenset[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The imports of all modules; not a constant, which each process would compute that collects tests."""
    files = [path for top in TOP for path in (ROOT / top).rglob("*.py")]
    return frozenset((module_of(path), target) for path in files for target in imports_of(path))


def neighbour(package: tuple[str, ...], module: tuple[str, ...]) -> str | None:
    """What a module outside a package is called there: the path to where it parts from the package."""
    common = next((i for i, (a, b) in enumerate(zip(package, module, strict=False)) if a != b), None)
    return None if common is None else ".".join(module[: common + 1])


def neighbours(package: str) -> tuple[list[str], list[str]]:
    """What a package imports, and what imports it; what is inside it counts as it."""
    own = tuple(package.split("."))
    inside = [(a[: len(own)] == own, b[: len(own)] == own, a, b) for a, b in edges()]
    imports = {neighbour(own, b) for a_in, b_in, a, b in inside if a_in and not b_in}
    importers = {neighbour(own, a) for a_in, b_in, a, b in inside if b_in and not a_in}
    return sorted(name for name in imports if name), sorted(name for name in importers if name)


def sentences(package: str) -> str:
    imports, importers = (", ".join(f"`{name}`" for name in names) or "nothing" for names in neighbours(package))
    return f"Imports {imports}. Imported by {importers}."


def test_the_wheel_has_every_package_of_the_tree() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    assert listed == ["wincli", *(f"wincli.{package}" for package in PACKAGES)]


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent.relative_to(ROOT) for top in TOP for path in (ROOT / top).rglob("*.py")}
    assert sorted(".".join(folder.parts) for folder in folders) == PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_imports_and_what_imports_it(package: str) -> None:
    text = (ROOT.joinpath(*package.split("."), "__init__.py")).read_text(encoding="utf-8")
    doc = re.sub(r"\s+", " ", ast.get_docstring(ast.parse(text)) or "")
    assert sentences(package) in doc
