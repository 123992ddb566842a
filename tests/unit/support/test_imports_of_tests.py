"""What test modules share is in ``references`` and ``support``: no test module imports another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import TESTS

TEST_FOLDERS = {"cli", "spark", "tests", "unit"}
MODULES = sorted(TESTS.rglob("test_*.py"))


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Every module, and every name taken from a module, that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def is_test_import(name: str) -> bool:
    """Whether a name is in a folder of tests, or relative, or has a part that is named like a test module."""
    parts = name.split(".")
    return parts[0] in TEST_FOLDERS | {""} or any(part.startswith("test_") for part in parts[:-1])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import unit.kinds.test_sliding", True),
        ("from unit.kinds import test_sliding", True),
        ("from cli.test_ranges import JOB", True),
        ("from .test_ranges import JOB", True),
        ("def f():\n    from spark import test_session", True),
        ("from wincli.cli.main import main", False),
        ("from support.spl_cases import ALL", False),
    ],
)
def test_import_of_a_test_module_is_found(code: str, expected: bool) -> None:
    assert any(map(is_test_import, imported_names(ast.parse(code)))) == expected


def test_no_test_module_imports_another() -> None:
    def imports_of(path: Path) -> list[str]:
        return [name for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))) if is_test_import(name)]

    assert len(MODULES) > 100
    assert {str(path.relative_to(TESTS)): found for path in MODULES if (found := imports_of(path))} == {}
