"""Drawings read back: which rows each pane shows, by their text and by their SVG."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

import wincli
from wincli.windowing.drawings.draw import Drawing

SVG = "{http://www.w3.org/2000/svg}"
Pairs = Counter[tuple[str, int, int]]
"""Key, window number and arrival position of each row that each pane shows."""


def pairs_of_picture(drawing: Drawing) -> Pairs:
    found: Pairs = Counter()
    for lane in drawing.picture.lanes:
        found.update((lane.label, pane.number, lane.rows[place]) for pane in lane.panes for place in pane.places)
    return found


def pairs_of_text(drawing: Drawing) -> Pairs:
    """Read the letters between brackets; a row is the letter above them, of all rows of the drawing at most 52.

    A letter is that of its row; or, where the drawing says so, the symbol as which a match takes it.
    """
    taken = {
        (lane.label, pane.number, place): symbol
        for lane in drawing.picture.lanes
        for pane in lane.panes
        for place, symbol in zip(pane.places, pane.taken, strict=bool(pane.taken))
    }
    has_symbols = "; letters in panes are symbols\n" in str(drawing)
    places = dict(chain.from_iterable(lane.rows.items() for lane in drawing.picture.lanes))
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    found: Pairs = Counter()
    key, above = "", ""
    for line in str(drawing).splitlines():
        if lane := re.match(r"rows ?(.*?): ", line):
            key, above = lane[1], line
        elif pane := re.match(r" *pane (\d+): ", line):
            drawn = re.match(r"[ .\w]*[\[…][ .\w]*[\]>…]", line[pane.end() - 1 :])
            assert drawn is not None, line
            stop = pane.end() - 1 + drawn.end()
            for at in range(pane.end() - 1, stop):
                if line[at].isalpha():
                    place = letters.index(above[at])
                    wanted = taken[key, int(pane[1]), place] if has_symbols else above[at]
                    assert line[at] == wanted, f"{line[at]} stands under {above[at]}"
                    found[key, int(pane[1]), places[place]] += 1
    return found


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


def counts_of_svg(drawing: Drawing) -> tuple[int, int, int]:
    """Return how many rows, panes, and rows of panes an SVG has."""
    elements = [*root_of(drawing).iter()]
    rows, panes, shown = (sum(has_class(each, name) for each in elements) for name in ("wd-row", "wd-bar", "wd-in"))
    return rows, panes, shown


def pairs_of_rows(table: pa.Table, window: str, **options: Any) -> Pairs:
    """The same from the rows that a result has."""
    numbered = table.append_column("row_", pa.array(range(len(table)), pa.int64()))
    rows = wincli.aggregate(numbered, window, emit="rows", **options).to_pylist()
    keys = [options["key"]] if isinstance(options.get("key"), str) else options.get("key", [])
    return Counter(
        (", ".join(str(row[key]) for key in keys), row["window"], row["row_"])
        for row in rows
        if row["row_"] is not None
    )
