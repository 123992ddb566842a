"""SVG drawings: valid, accessible, inside their frame, and readable on light and dark pages."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.drawn_windows import SVG
from support.event_logs import logs
from support.strategies import examples
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.drawings.draw import Drawing
from wincli.windowing.drawings.svg import STYLE

LOG = pa.table({"user": ["ann", "bob", "ann", "ann", "bob"], "t": [0, 10, 45, 70, 90]})


def root_of(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg())


def has_class(element: ElementTree.Element, name: str) -> bool:
    return name in element.get("class", "").split()


def reach(element: ElementTree.Element) -> list[float]:
    """The horizontal places that an element names."""
    across = [float(element.get(name, 0)) for name in ("x", "x1", "x2", "cx") if element.get(name)]
    if element.tag == f"{SVG}rect":
        across.append(float(element.get("x", 0)) + float(element.get("width", 0)))
    return across + [float(x) for x in re.findall(r"[MH]([\d.]+)", element.get("d", ""))]


@examples(30)
@given(logs(), st.sampled_from([*WINDOWS, *MORE]), st.integers(1, 30))
def test_nothing_leaves_the_frame(table: pa.Table, case: WindowCase, rows: int) -> None:
    marks = "flag" if "punct()" in case[0] else None
    root = root_of(wincli.draw(table, case[0], key="k", order_by=case[1], marks=marks, limit=rows, **case[2]))
    wide, high = (float(root.get(side, 0)) for side in ("width", "height"))
    for element in root.iter():
        assert all(0 <= x <= wide for x in reach(element)), ElementTree.tostring(element)
        assert all(0 <= float(element.get(name, 0)) <= high for name in ("y", "y1", "y2", "cy"))


@examples(30)
@given(logs(), st.sampled_from([*WINDOWS, *MORE]))
def test_the_rows_of_a_pane_lie_on_its_bar(table: pa.Table, case: WindowCase) -> None:
    marks = "flag" if "punct()" in case[0] else None
    root = root_of(wincli.draw(table, case[0], key="k", order_by=case[1], marks=marks, **case[2]))
    for group in root.iter(f"{SVG}g"):
        bars = [child for child in group if has_class(child, "wd-bar")]
        for dot in (child for child in group if has_class(child, "wd-in")):
            (bar,) = bars
            low, *_, high = sorted(reach(bar))
            assert low < float(dot.get("cx", 0)) < high


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


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


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
