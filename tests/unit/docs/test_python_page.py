"""The page of Python shows what its code prints and draws; its part for Spark runs in ``tests/spark``."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import Any

import pytest

import wincli
from support.docs_pages import DOCS, rows_of, text_of

IMAGES = DOCS["python"].parent / "images"
WITHOUT_SPARK = text_of("python").partition("\n## Spark DataFrames\n")[0]


def test_the_page_shows_what_its_code_prints_and_the_image_that_it_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks run in one namespace; what a block prints stands in the block of text behind it, if there is one."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", WITHOUT_SPARK, re.DOTALL)
    assert len(blocks) > 6
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "page", "exec"), names)
        assert printed.getvalue().rstrip("\n") == shown.rstrip("\n"), code
    drawing = names["sessions"]
    assert isinstance(drawing, wincli.windowing.drawings.draw.Drawing)
    fresh = tmp_path / "sessions.svg"
    fresh.write_text(drawing.svg() + "\n", encoding="utf-8")
    image = IMAGES / fresh.name
    assert image.read_text(encoding="utf-8") == drawing.svg() + "\n", f"{image} is out of date: copy {fresh} over it"


def test_every_argument_of_the_library_is_documented() -> None:
    told = {name for row in rows_of("python", "Arguments") for name in row[0].split(", ")}
    assert told == set(inspect.signature(wincli.aggregate).parameters)


def test_every_argument_of_a_drawing_is_documented() -> None:
    of_draw, of_aggregate = (set(inspect.signature(each).parameters) for each in (wincli.draw, wincli.aggregate))
    assert {row[0] for row in rows_of("python", "See a window")} == of_draw - of_aggregate
    left_out = {"emit", "sort_by", "group_by", "operator", "plain", "state"}
    assert of_aggregate - of_draw == left_out
    assert all(f"`{name}`" in text_of("python") for name in left_out)
