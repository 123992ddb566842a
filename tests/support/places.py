"""Where the project and its cases of conformance lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
TESTS = ROOT / "tests"
"""What is on the module path of the tests."""


def table_of(name: str) -> Any:
    """Return a table of ``tests/cases``."""
    return yaml.safe_load((CASES / f"{name}.yaml").read_text())


def blocks_of(name: str) -> list[str]:
    """Return the blocks of lines of a text in ``tests/cases``, between which a line is empty."""
    return (CASES / f"{name}.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")


def mistakes(name: str) -> Any:
    """Return a table of ``tests/cases/mistakes``: texts, and what is said of each."""
    return table_of(f"mistakes/{name}")
