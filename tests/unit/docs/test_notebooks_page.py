"""The page of notebooks shows what its code prints and draws."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import wincli
from support.docs_pages import DOCS, rows_of, text_of
from support.pages_that_print import run_page

IMAGES = DOCS["notebooks"].parent / "images"


def test_the_page_shows_what_its_code_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = run_page(text_of("notebooks"))
    assert len(blocks) > 6
    for code, shown, printed in blocks:
        assert printed.rstrip("\n") == shown.rstrip("\n"), code


def test_the_image_is_what_its_code_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = text_of("notebooks").split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(compile(code, "page", "exec"), names)
    drawing = names["sessions"]
    assert isinstance(drawing, wincli.windowing.drawings.draw.Drawing)
    fresh = tmp_path / "sessions.svg"
    fresh.write_text(drawing.svg() + "\n", encoding="utf-8")
    image = IMAGES / fresh.name
    assert image.read_text(encoding="utf-8") == drawing.svg() + "\n", f"{image} is out of date: copy {fresh} over it"


def test_every_argument_of_a_drawing_is_documented() -> None:
    of_draw, of_aggregate = (set(inspect.signature(each).parameters) for each in (wincli.draw, wincli.aggregate))
    assert {row[0] for row in rows_of("notebooks", "See a window")} == of_draw - of_aggregate
    left_out = {"emit", "sort_by", "group_by", "operator", "plain", "state"}
    assert of_aggregate - of_draw == left_out
    assert all(f"`{name}`" in text_of("notebooks") for name in left_out)
