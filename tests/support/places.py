"""Where the project and its cases of conformance lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
TESTS = ROOT / "tests"
"""What is on the module path of the tests."""
