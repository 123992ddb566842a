"""Scripts are run rarely, and by hand: what they import from the product is there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
PYTHON = sorted(
    path
    for path in SCRIPTS.iterdir()
    if path.is_file() and (path.suffix == ".py" or "python" in path.read_bytes()[:60].decode("utf-8", "replace"))
)


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_names_that_a_script_imports_are_there(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    tried = {each for node in ast.walk(tree) if isinstance(node, ast.Try) for each in ast.walk(node)}  # an older house
    for node in ast.walk(tree):
        if node not in tried and isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "wincli":
            module = import_module(str(node.module))
            for name in node.names:
                found = hasattr(module, name.name) or import_module(f"{node.module}.{name.name}") is not None
                assert found, f"{node.module} has no {name.name}"
