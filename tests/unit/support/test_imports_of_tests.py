"""What test modules share is in ``references`` and ``support``: no test module imports another."""

from __future__ import annotations

import re

from support.places import TESTS

IMPORT = re.compile(r"^\s*(?:import|from) ([\w.]+)(?: import (test_\w+))?", re.MULTILINE)


def test_no_test_module_imports_another() -> None:
    modules = sorted(TESTS.rglob("test_*.py"))
    assert len(modules) > 100
    for path in modules:
        for module, name in IMPORT.findall(path.read_text(encoding="utf-8")):
            top, *rest = module.split(".")
            is_test = top in {"", "cli", "spark", "tests", "unit"} or any(part.startswith("test_") for part in rest)
            assert not is_test, (path, module)
            assert not name, (path, name)
