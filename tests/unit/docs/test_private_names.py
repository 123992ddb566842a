"""The page of private names: it lists what the code touches, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.docs_pages import ROOT

PAGE = ROOT / "docs" / "private-names.md"
_PACKAGES = ("cli", "conf", "readers", "windowing", "writers")
SPARK = "windowing/spark/"
DATAFRAMES = "windowing/dataframes/"
EXAMPLE = "conf/examples/live_windows.py"
OUTSIDE = ("conf/spark.py", "windowing/support/modules.py")
"""Files that name a setting or a module of pyspark as text, and touch nothing of it."""


@dataclass(frozen=True)
class Row:
    """A row of the page: the name as the code has it, and the files that use it."""

    name: str
    files: set[str]


def rows(table: int) -> list[Row]:
    """The rows of one of the two tables of the page."""
    tables = re.findall(r"\n\|---.*?\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for line in tables[table].splitlines():
        name, used, *_ = (cell.strip() for cell in line.strip("|").split(" | "))
        pattern = r"`.*?(_[a-z]\w*)" if table == 0 else r"`(?:[\w.]*\.)?([\w-]+)"
        files = {path if path.startswith(("conf/", "windowing/")) else SPARK + path for path in _paths(used)}
        (called, *_) = re.findall(pattern, name)
        found[called] = found.get(called, set()) | files
    return [Row(*each) for each in found.items()]


def _paths(cell: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py)`", cell)


def modules() -> Iterator[Path]:
    for package in _PACKAGES:
        yield from (ROOT / package).rglob("*.py")


Nodes = tuple[ast.AST, ...]
"""All nodes of a module."""


@pytest.fixture(scope="module")
def parsed() -> dict[Path, Nodes]:
    """The modules, parsed once for all tests of this file, which only read."""
    return {path: tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in modules()}


def own_names(nodes: Nodes) -> set[str]:
    """What a module defines: functions, classes and variables, but not the attributes of its objects."""
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def private_names(nodes: Nodes) -> Iterator[str]:
    """Names with one underscore that are looked up in anything but ``self`` and ``cls``, or given as keywords."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            name = "" if is_own else node.attr
        else:
            name = node.arg or "" if isinstance(node, ast.keyword) else ""
        if re.match("_[^_]", name):
            yield name


def test_every_private_name_of_pyspark_and_py4j_is_on_the_page(parsed: dict[Path, Nodes]) -> None:
    touched = {name for nodes in parsed.values() for name in private_names(nodes)}
    touched -= {name for nodes in parsed.values() for name in own_names(nodes)}
    listed = set(re.findall(r"`(?:[\w.]*[.(])?(_[a-z]\w*)", PAGE.read_text(encoding="utf-8")))
    assert "_accumulatorServer" in touched
    assert touched == listed


def test_private_names_are_touched_only_in_the_package_of_spark_where_the_page_says(
    parsed: dict[Path, Nodes],
) -> None:
    named = {row.name: row.files for row in rows(0)}
    found: dict[str, set[str]] = {name: set() for name in named}
    for path, nodes in parsed.items():
        for name in set(private_names(nodes)) & set(named):
            found[name].add(str(path.relative_to(ROOT)))
    assert found == named
    assert all(path.startswith(SPARK) for paths in found.values() for path in paths)


def test_each_other_name_is_in_the_files_that_the_page_says() -> None:
    for row in rows(1):
        for path in row.files:
            assert row.name in (ROOT / path).read_text(encoding="utf-8"), (row.name, path)
            assert path.startswith(SPARK) or path in OUTSIDE, path


def test_only_the_packages_of_spark_import_pyspark_or_name_its_modules(parsed: dict[Path, Nodes]) -> None:
    listed = PAGE.read_text(encoding="utf-8")
    for path, nodes in parsed.items():
        place = str(path.relative_to(ROOT))
        for node in nodes:
            imports = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imports += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in imports:
                is_spark = name.partition(".")[0] in {"pyspark", "py4j"}
                assert not is_spark or place.startswith((SPARK, DATAFRAMES, EXAMPLE)), (name, place)
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.fullmatch(r"(pyspark|py4j)(\.\w+)+", text) and not place.startswith(SPARK):
                assert place in OUTSIDE
                assert text in listed


def test_every_test_named_on_the_page_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 5
    assert {name for name in named if f"def {name}(" not in code} == set()
