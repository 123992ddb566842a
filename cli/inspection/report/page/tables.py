"""Tables: what pictures show in numbers, for readers who do not see them, and shares of a whole with a bar each."""

from __future__ import annotations

from collections.abc import Sequence

from .elements import Element, add, set_attributes


def add_table(parent: Element, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    """Add a table; the first cell of each row is its header, the others are numbers."""
    frame = add(parent, "div", "scroll", role="region", tabindex=0, aria_label=caption)
    table = add(frame, "table")
    add(table, "caption", text=caption)
    line = add(add(table, "thead"), "tr")
    for name in head:
        add(line, "th", text=name, scope="col")
    body = add(table, "tbody")
    for row in rows:
        line = add(body, "tr")
        add(line, "th", text=row[0], scope="row")
        for cell in row[1:]:
            add(line, "td", text=cell)
    return table


def add_hidden_table(parent: Element, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Add a table that readers open: the numbers behind the picture above it."""
    details = add(parent, "details")
    add(details, "summary", text=f"{caption} as a table")
    add_table(details, caption, head, rows)


def add_bars(parent: Element, caption: str, rows: Sequence[tuple[str, str, str, float, str]]) -> None:
    """Add a table of shares; a row is a name, a value, its share as text, the length of its bar, and class of that."""
    table = add(parent, "table", "bars")
    add(table, "caption", text=caption)
    for name, value, share, length, classes in rows:
        line = add(table, "tr")
        add(line, "th", text=name, scope="row")
        add(line, "td", text=value)
        add(line, "td", "share", text=share)
        cell = add(line, "td", "bar")
        svg = add(cell, "svg", width="100%", height=10, aria_hidden="true")
        set_attributes(add(svg, "rect", classes), x=0, y=1, width=f"{100 * length:.2f}%", height=8)
