"""The page on formats has a line for each format of the table, with its suffixes, and the README names them all."""

from __future__ import annotations

import pytest

from support.docs_pages import DOCS, ROOT
from wincli.windowing.support.formats import FORMATS, Format


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_on_formats_has_a_line_for_each(name: Format) -> None:
    lines = [
        line for line in DOCS["formats"].read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")
    ]
    (line,) = lines
    assert [word for word in line.split("|")[2].split("`") if word.startswith(".")] == list(FORMATS[name].suffixes)


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_on_results_says_how_each_is_written(name: Format) -> None:
    assert f"- **{FORMATS[name].title}**: " in DOCS["results"].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_the_readme_names_each(name: Format) -> None:
    assert FORMATS[name].title in (ROOT / "README.md").read_text(encoding="utf-8")
