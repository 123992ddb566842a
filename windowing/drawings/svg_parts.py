"""What SVG drawings are made of: elements, whose text is always escaped, and one style for light and dark pages."""

from __future__ import annotations

from xml.etree import ElementTree

from ..errors import shown

Element = ElementTree.Element
_LIGHT = ("#2f6fd6", "#0f8a6d", "#b4580e", "#7a4fc9")
_DARK = ("#7eb0ff", "#4fd1ae", "#f0a35e", "#bb9bf7")
_PALE = ("#e3edfc", "#dcf3ec", "#fbe9d9", "#ece4fa")
_DEEP = ("#1c2f4d", "#14382f", "#422a15", "#2f2549")
COLOURS = len(_LIGHT)


def _colours(strong: tuple[str, ...], soft: tuple[str, ...]) -> str:
    return "".join(
        f".wd-bar.wd-{i}{{fill:{pale};stroke:{line}}}.wd-in.wd-{i}{{fill:{line}}}"
        for i, (line, pale) in enumerate(zip(strong, soft, strict=True))
    )


def _page(card: str, edge: str, text: str, faint: str, guide: str, mark: str) -> str:
    return (
        f".wd-card{{fill:{card};stroke:{edge}}}.wd-text{{fill:{text}}}.wd-faint{{fill:{faint}}}"
        f".wd-axis{{stroke:{faint}}}.wd-guide{{stroke:{guide}}}.wd-tick{{stroke:{faint}}}"
        f".wd-mark{{stroke:{mark}}}.wd-mark-text{{fill:{mark}}}"
        f".wd-row{{fill:{text};stroke:{text}}}.wd-row.wd-out{{fill:{card}}}"
    )


STYLE = (
    ".wd text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:11px}"
    ".wd text.wd-title{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "font-size:15px;font-weight:600}"
    ".wd text.wd-key{font-size:13px;font-weight:600}"
    ".wd-guide,.wd-axis{stroke-width:1}.wd-tick{stroke-width:1;stroke-dasharray:1 3}"
    ".wd-mark{stroke-width:1.5;stroke-dasharray:5 3}.wd-row,.wd-bar{stroke-width:1.25}"
    ".wd-bar.wd-open{stroke-dasharray:4 3}"
    + _page("#ffffff", "#d5dbe3", "#1d2733", "#5c6b7c", "#e9edf2", "#b3264a")
    + _colours(_LIGHT, _PALE)
    + "@media (prefers-color-scheme:dark){"
    + _page("#12171e", "#303a46", "#e6ebf1", "#98a6b5", "#232b35", "#ff7d9c")
    + _colours(_DARK, _DEEP)
    + "}"
)
"""Colours of text are at least 4.5 times as light or dark as what is behind them, in both schemes."""


def add(parent: Element, tag: str, classes: str = "", **attributes: float | str) -> Element:
    """Add an element; underscores in names of attributes are dashes."""
    named = {name.replace("_", "-"): number(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, {**({"class": classes} if classes else {}), **named})


def write(parent: Element, x: float, y: float, words: str, classes: str, **attributes: float | str) -> Element:
    """Add a line of text that begins at ``x``, and stands on ``y``."""
    line = add(parent, "text", classes, x=x, y=y, **attributes)
    line.text = shown(words)
    return line


def explain(parent: Element, words: str) -> None:
    """Add a title, which browsers show where the pointer is, and readers read aloud."""
    add(parent, "title").text = shown(words)


def vertical(parent: Element, x: float, top: float, bottom: float, classes: str) -> Element:
    """Add a vertical line."""
    return add(parent, "line", classes, x1=x, y1=top, x2=x, y2=bottom)


def number(value: float | str) -> str:
    """Return an attribute as text, pixels with at most one digit behind the point."""
    return value if isinstance(value, str) else f"{round(value, 1):g}"


def as_text(root: Element) -> str:
    """Return a document as text."""
    return ElementTree.tostring(root, encoding="unicode")
