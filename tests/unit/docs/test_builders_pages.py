"""The pages for builders: each decision has its number, links resolve, and the paths that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.docs_pages import ROOT

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
    tops = ("cli", "conf", "docs", "readers", "scripts", "tests", "windowing", "writers")
    files = [*ROOT.glob("*.md"), *(path for top in tops for path in (ROOT / top).rglob("*"))]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".md", ".py", ".yaml", ".txt")]
    named = {number for text in texts for number in re.findall(r"\b[Dd]ecision\s+(\d{3})\b", text)}
    assert {"001", "029", "074"} < named
    assert named - set(numbers_of_decisions()) == set()
    assert [text for text in texts if re.search(r"decisions/\d", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths_that_a_page_names_exist(page: Path) -> None:
    tops = "cli|conf|docs|readers|scripts|tests|windowing|writers"
    named = re.findall(rf"`((?:{tops})/[\w./-]*)`", page.read_text(encoding="utf-8"))
    own = [path for path in named if "NAME" not in path]  # NAME stands for what is to be added
    assert [path for path in own if not ((ROOT / path).exists() or (ROOT / f"{path}.py").exists())] == []


ROAD = re.findall(
    r"(\(?)`([\w/]+)`",
    (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("1. **request**")[2].partition("These are ")[0],
)
"""The files on the road of the data, in its order: whether each is a way back, and its name."""


def test_the_files_on_the_road_of_the_data_are_counted() -> None:
    back = sum(bool(again) for again, _ in ROAD)
    wanted = f"These are {len(ROAD) - back} files and {back} ways back."
    assert wanted in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_each_file_on_the_road_is_there_and_each_way_back_leads_to_one_before() -> None:
    tops = [ROOT / top for top in ("cli", "conf", "readers", "windowing", "writers")]
    paths = {
        path.with_suffix("").as_posix() for top in tops for path in top.rglob("*") if "__pycache__" not in path.parts
    }
    seen: set[str] = set()
    for again, name in ROAD:
        assert any(path.endswith(f"/{name}") for path in paths), name
        assert (any(f"/{each}".endswith(f"/{name}") for each in seen)) if again else (name not in seen), name
        seen |= set() if again else {name}
