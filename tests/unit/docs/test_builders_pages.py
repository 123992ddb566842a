"""The pages for builders: decisions are numbered, links and paths lead somewhere, layers are those that are checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from support.docs_pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TOP = ("cli", "conf", "readers", "windowing", "writers")

DECISIONS = ROOT / "docs" / "decisions.md"
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "glossary.md", DECISIONS]


def numbers_of_decisions() -> list[str]:
    """Of those that hold, by their headings, and of those that do not, by their lines at the end."""
    holding, _, closed = DECISIONS.read_text(encoding="utf-8").partition("\n## Closed lanes\n")
    return re.findall(r"^### (\d{3}) \S", holding, re.MULTILINE) + re.findall(r"^- (\d{3}) \S", closed, re.MULTILINE)


def test_decisions_are_numbered_without_a_gap_and_each_stands_once() -> None:
    numbers = sorted(numbers_of_decisions())
    assert numbers == [f"{number:03d}" for number in range(1, len(numbers) + 1)]
    assert len(numbers) >= 74


def test_each_decision_that_is_named_anywhere_is_on_the_page() -> None:
    folders = (ROOT / top for top in (*TOP, "docs", "scripts", "tests"))
    files = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".md", ".py", ".yaml", ".txt")]
    named = {number for text in texts for number in re.findall(r"\b[Dd]ecision\s+(\d{3})\b", text)}
    assert {"001", "029", "074"} < named
    assert named - set(numbers_of_decisions()) == set()
    assert [text for text in texts if re.search(r"decisions/\d", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_resolve_and_paths_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
    named = re.findall(rf"`((?:{'|'.join(TOP)}|docs|scripts|tests)/[\w./-]*)`", text)
    own = [path for path in named if "NAME" not in path]  # NAME stands for what is to be added
    assert [path for path in own if not ((ROOT / path).exists() or (ROOT / f"{path}.py").exists())] == []


ROAD = re.findall(
    r"(\(?)`([\w/]+)`",
    ARCHITECTURE.partition("1. **request**")[2].partition("These are ")[0],
)
"""The files on the road of the data, in its order: whether each is a way back, and its name."""


def test_the_files_on_the_road_of_the_data_are_there_and_counted_and_each_way_back_leads_to_one_before() -> None:
    back = sum(bool(again) for again, _ in ROAD)
    assert f"These are {len(ROAD) - back} files and {back} ways back." in ARCHITECTURE
    paths = [path.with_suffix("").as_posix() for top in TOP for path in (ROOT / top).rglob("*.py")]
    seen: set[str] = set()
    for again, name in ROAD:
        assert any(path.endswith(f"/{name}") for path in paths), name
        assert (any(f"/{each}".endswith(f"/{name}") for each in seen)) if again else (name not in seen), name
        seen |= set() if again else {name}


# The layers that are checked, and the packages of the wheel


def layers_of_the_page() -> dict[str, list[set[str]]]:
    """The lines of each column of the table, from the top."""
    (table,) = re.findall(r"^\| top level \|.*\n(?:\|.*\n)+", ARCHITECTURE, re.MULTILINE)
    names, _, *lines = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines())
    columns = dict(zip(names, zip(*lines, strict=True), strict=True))
    return {name: [set(cell.split("`, `")) for cell in cells if cell] for name, cells in columns.items()}


def test_the_page_on_architecture_lists_the_layers_that_are_checked() -> None:
    contracts = [each for each in PROJECT["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    checked = {each["containers"][0]: [set(layer.split(" | ")) for layer in each["layers"]] for each in contracts}
    told = layers_of_the_page()
    containers = {"top level": "wincli"} | {name: f"wincli.{name.replace('/', '.')}" for name in [*told][1:]}
    assert len(told) > 5
    assert {name: checked[containers[name]] for name in told} == told


def test_the_wheel_has_every_package_of_the_tree_and_every_folder_with_modules_is_one() -> None:
    folders, packages = (
        sorted({".".join(path.parent.relative_to(ROOT).parts) for top in TOP for path in (ROOT / top).rglob(pattern)})
        for pattern in ("*.py", "__init__.py")
    )
    assert folders == packages
    assert PROJECT["tool"]["setuptools"]["packages"] == ["wincli", *(f"wincli.{package}" for package in packages)]
