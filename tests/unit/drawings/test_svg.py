"""SVG drawings: accessible, and readable on light and dark pages."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import wincli
from support.colours import contrast
from support.drawn_windows import SVG, has_class, root_of
from wincli.windowing.drawings.svg import STYLE

LOG = pa.table({"user": ["ann", "bob", "ann", "ann", "bob"], "t": [0, 10, 45, 70, 90]})


def test_a_drawing_says_in_words_what_it_shows() -> None:
    drawing = wincli.draw(LOG, "delta(t, 60)", key="user", order_by="t", aggregates={"last": "last(t)"})
    root = root_of(drawing)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Windows tumbling, delta(t, 60): key user; order t; 5 rows, 2 keys, 4 panes"
    assert root.findtext(f"{SVG}desc") == str(drawing)
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert "pane 0; closed by delta; 2 rows; last = 45" in titles
    assert "row 2: t 45" in titles


def test_rows_in_no_pane_are_hollow() -> None:
    root = root_of(wincli.draw(LOG, "sliding, count(4)", order_by="t", at_end="drop"))
    assert not [each for each in root.iter() if has_class(each, "wd-out")]
    root = root_of(wincli.draw(LOG, "from(t = 45, until=t = 70)", order_by="t"))
    assert [each.findtext(f"{SVG}title") for each in root.iter() if has_class(each, "wd-out")] == [
        f"row {row}: t {t}, in no pane that is drawn" for row, t in [(0, 0), (1, 10), (4, 90)]
    ]


def test_marks_and_ticks_are_lines() -> None:
    marked = root_of(wincli.draw(LOG, "punct()", order_by="t", marks=[2, 4]))
    assert sum(has_class(each, "wd-mark") for each in marked.iter()) == 2
    ticked = root_of(wincli.draw(LOG, "time(30)", order_by="t"))
    assert sum(has_class(each, "wd-tick") for each in ticked.iter()) >= 3


def test_many_rows_make_a_wide_drawing() -> None:
    root = root_of(wincli.draw(pa.table({"t": np.arange(200)}), "count(10)", order_by="t", limit=200))
    assert float(root.get("width", 0)) > 2000


# Colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_what_is_behind_them(scheme: str) -> None:
    style = STYLE.split("@media (prefers-color-scheme:dark)")[scheme == "dark"]
    fills = dict(re.findall(r"(\.wd-[\w.-]+)\{fill:(#\w{6})", style))
    card = fills[".wd-card"]
    assert all(contrast(fills[name], card) >= 4.5 for name in (".wd-text", ".wd-faint", ".wd-mark-text"))
    bars = re.findall(r"\.wd-bar\.wd-(\d)\{fill:(#\w{6});stroke:(#\w{6})", style)
    assert len(bars) == 4
    assert all(contrast(fill, line) >= 3 and contrast(card, line) >= 3 for _, fill, line in bars)


def test_names_of_styles_belong_to_drawings_alone() -> None:
    assert all(part.strip().startswith((".wd", "@media")) for part in re.findall(r"(?:^|[}{,])([.@][^{},]*)\{", STYLE))
