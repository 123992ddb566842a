"""The pages for builders: decisions have one form and are listed, links resolve, and the paths that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.docs_pages import ROOT

DECISIONS = ROOT / "docs" / "decisions"
NUMBERED = sorted(DECISIONS.glob("[0-9]*.md"))
PAGES = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "glossary.md",
    *sorted(DECISIONS.glob("*.md")),
]
HEADINGS = ["Context", "Decision", "Measurement"]


@pytest.mark.parametrize("page", NUMBERED, ids=lambda page: page.stem)
def test_decision_has_its_number_title_and_headings(page: Path) -> None:
    title, *lines = page.read_text(encoding="utf-8").splitlines()
    heads = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert re.fullmatch(rf"# {page.stem[:3]}: .+", title)
    assert heads in (HEADINGS, [*HEADINGS, "Consequences"])


def test_decisions_are_numbered_without_a_gap_and_listed_in_order_by_their_titles() -> None:
    listed = re.findall(r"^\| \[(\d+)\]\((.*?)\) \| (.*) \|$", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].partition(": ")[2] for page in NUMBERED]
    numbers = [f"{number:03d}" for number in range(1, len(NUMBERED) + 1)]
    assert listed == list(zip(numbers, [page.name for page in NUMBERED], titles, strict=True))


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
