"""The page of private names: it lists what the code touches, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from support.docs_pages import ROOT

PAGE = ROOT / "docs" / "decisions" / "private-names.md"
_PACKAGES = ("cli", "conf", "readers", "windowing", "writers")


def trees() -> Iterator[ast.Module]:
    for package in _PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            yield ast.parse(path.read_text(encoding="utf-8"))


def own_names(tree: ast.Module) -> set[str]:
    """What a module defines: functions, classes and variables, but not the attributes of its objects."""
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def private_names(tree: ast.Module) -> Iterator[str]:
    """Names with one underscore that are looked up in anything but ``self`` and ``cls``, or given as keywords."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            name = "" if is_own else node.attr
        else:
            name = node.arg or "" if isinstance(node, ast.keyword) else ""
        if re.match("_[^_]", name):
            yield name


def test_every_private_name_of_pyspark_and_py4j_is_on_the_page() -> None:
    parsed = list(trees())
    touched = {name for tree in parsed for name in private_names(tree)}
    touched -= {name for tree in parsed for name in own_names(tree)}
    listed = set(re.findall(r"`(?:[\w.]*[.(])?(_[a-z]\w*)", PAGE.read_text(encoding="utf-8")))
    assert "_accumulatorServer" in touched
    assert touched == listed


def test_every_test_named_on_the_page_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 5
    assert {name for name in named if f"def {name}(" not in code} == set()
