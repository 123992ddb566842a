"""The pages of the docs, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.places import ROOT

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
DOCS = {path.relative_to(INDEX.parent).with_suffix("").as_posix(): path for path in sorted(INDEX.parent.rglob("*.md"))}
WINDOWS = [path for page, path in DOCS.items() if page.startswith("windows/")]
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS.values()]


def place_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(page: str) -> str:
    return DOCS[page].read_text(encoding="utf-8")


def fences(path: Path, language: str) -> Iterator[tuple[int, list[str]]]:
    """Blocks of code of one language: the number of the first line, and the lines."""
    block: list[str] | None = None
    wanted = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if block is not None and wanted:
                yield number - len(block), block
            block, wanted = (None, False) if block is not None else ([], line.removeprefix("```").strip() == language)
        elif block is not None:
            block.append(line)


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Rows of the first table under a heading, without its head; backquotes are left out."""
    below = re.split(rf"^##? {heading}\n", text_of(page), maxsplit=1, flags=re.MULTILINE)
    assert len(below) == 2, f"docs/{page}.md has no section {heading!r}"
    found = re.search(r"(?:^\|.*\n)+", below[1], re.MULTILINE)
    assert found is not None
    lines = found[0].splitlines()[2:]
    split = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    return [[cell.strip().replace("`", "").replace("\\|", "|") for cell in row] for row in split]


def missing_from(page: str, words: Iterable[str]) -> list[str]:
    text = text_of(page)
    return [word for word in words if f"`{word}`" not in text]
