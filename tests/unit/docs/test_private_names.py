"""The page of private names: it lists what the code touches, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.docs_pages import ROOT

PAGE = (ROOT / "docs" / "private-names.md").read_text(encoding="utf-8")
SPARK = "windowing/spark/"
MAY_IMPORT = (SPARK, "windowing/dataframes/", "conf/examples/live_windows.py")
OUTSIDE = ("conf/spark.py", "windowing/support/modules.py")
"""Files that name a setting or a module of pyspark as text, and touch nothing of it."""


def rows(table: int, pattern: str) -> dict[str, set[str]]:
    """The rows of one of the two tables of the page: each name as the code has it, and the files that use it."""
    tables = re.findall(r"\n\|---.*?\n((?:\|.*\n)+)", PAGE)
    found: dict[str, set[str]] = {}
    for line in tables[table].splitlines():
        name, used, *_ = (cell.strip() for cell in line.strip("|").split(" | "))
        paths = re.findall(r"`([\w/]+\.py)`", used)
        files = {path if path.startswith(("conf/", "windowing/")) else SPARK + path for path in paths}
        found.setdefault(re.findall(pattern, name)[0], set()).update(files)
    return found


Nodes = tuple[ast.AST, ...]
"""All nodes of a module."""


@pytest.fixture(scope="module")
def parsed() -> dict[str, Nodes]:
    """The modules by their places, parsed once for all tests of this file, which only read."""
    paths = (path for top in ("cli", "conf", "readers", "windowing", "writers") for path in (ROOT / top).rglob("*.py"))
    return {str(path.relative_to(ROOT)): tuple(ast.walk(ast.parse(path.read_text("utf-8")))) for path in paths}


def own_names(nodes: Nodes) -> set[str]:
    """What a module defines: functions, classes and variables, but not the attributes of its objects."""
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def private_names(nodes: Nodes) -> Iterator[str]:
    """Names with one underscore that are looked up in anything but ``self`` and ``cls``, or given as keywords."""
    for node in nodes:
        name = node.arg or "" if isinstance(node, ast.keyword) else ""
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            name = "" if is_own else node.attr
        if re.match("_[^_]", name):
            yield name


def test_every_private_name_of_pyspark_and_py4j_is_on_the_page_with_the_files_that_touch_it(
    parsed: dict[str, Nodes],
) -> None:
    own = {name for nodes in parsed.values() for name in own_names(nodes)}
    found: dict[str, set[str]] = {}
    for place, nodes in parsed.items():
        for name in set(private_names(nodes)) - own:
            found.setdefault(name, set()).add(place)
    assert "_accumulatorServer" in found
    assert set(found) == set(re.findall(r"`(?:[\w.]*[.(])?(_[a-z]\w*)", PAGE))
    named = rows(0, r"`.*?(_[a-z]\w*)")
    assert {name: found.get(name, set()) for name in named} == named
    assert all(path.startswith(SPARK) for paths in named.values() for path in paths)


def test_each_other_name_is_in_the_files_that_the_page_says() -> None:
    for name, files in rows(1, r"`(?:[\w.]*\.)?([\w-]+)").items():
        for path in files:
            assert name in (ROOT / path).read_text(encoding="utf-8"), (name, path)
            assert path.startswith(SPARK) or path in OUTSIDE, path


def test_only_the_packages_of_spark_import_pyspark_or_name_its_modules(parsed: dict[str, Nodes]) -> None:
    for place, nodes in parsed.items():
        for node in nodes:
            imports = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imports += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in imports:
                is_spark = name.partition(".")[0] in {"pyspark", "py4j"}
                assert not is_spark or place.startswith(MAY_IMPORT), (name, place)
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.fullmatch(r"(pyspark|py4j)(\.\w+)+", text) and not place.startswith(SPARK):
                assert place in OUTSIDE
                assert text in PAGE


def test_every_test_named_on_the_page_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 5
    assert {name for name in named if f"def {name}(" not in code} == set()
