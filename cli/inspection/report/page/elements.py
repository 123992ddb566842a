"""What a page is made of: elements whose texts are always escaped, and cut where data would make them endless.

This is the one way from a value to a page. A value is the text of an element or of an attribute, which `as_html` writes
so that no reader, strict or not, finds markup in it; a script gets values as JSON (`add_json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from xml.etree import ElementTree

from .....windowing.errors import shown

Element = ElementTree.Element
LONGEST = 300
"""Letters of one text; what is longer is cut."""
_RAW, _VOID = ("script", "style"), ("meta", "link")


def element(tag: str, classes: str = "", text: str = "", **attributes: object) -> Element:
    """Return an element; underscores in names of attributes are dashes, at their end nothing."""
    made = Element(tag, {"class": classes} if classes else {})
    set_attributes(made, **attributes)
    if text:
        made.text = safe(text)
    return made


def add(parent: Element, tag: str, classes: str = "", text: str = "", **attributes: object) -> Element:
    """Add an element to another."""
    made = element(tag, classes, text, **attributes)
    parent.append(made)
    return made


def set_attributes(to: Element, **attributes: object) -> None:
    """Set attributes; numbers have at most two digits behind the point."""
    for name, value in attributes.items():
        to.set(name.rstrip("_").replace("_", "-"), _value(value))


def add_svg(parent: Element, classes: str, height: float, title: str, described_by: str = "") -> Element:
    """Add a picture of full width; ``title`` says to readers that do not see it what it shows."""
    more = {"aria_describedby": described_by} if described_by else {}
    return add(parent, "svg", classes, role="img", aria_label=safe(title), width="100%", height=height, **more)


def add_plot(svg: Element, top: float, height: float, wide: float = 1000) -> Element:
    """Add an area that is ``wide`` and ``height`` units, and is stretched to the width of the picture."""
    plot = add(svg, "svg", x=0, y=top, width="100%", height=height)
    set_attributes(plot, viewBox=f"0 0 {wide:g} {height:g}", preserveAspectRatio="none", aria_hidden="true")
    return plot


def add_text(svg: Element, share: float, y: float, words: str, classes: str = "", edge: float = 0.06) -> Element:
    """Add a text at a share of the width; near an edge it stands on the inner side of its place."""
    anchor = "start" if share < edge else "end" if share > 1 - edge else "middle"
    return add(svg, "text", classes, words, x=f"{share * 100:.2f}%", y=y, text_anchor=anchor)


def add_json(parent: Element, name: str, value: object) -> None:
    """Add a value for the script, as JSON in which nothing can end the element that holds it."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    add(parent, "script", id=name, type="application/json").text = text


def as_html(of: Element) -> str:
    """Return an element as HTML. Texts of scripts and styles, none of which is a value, stay as they are."""
    return "".join(_parts(of))


def _parts(of: Element) -> Iterator[str]:
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in of.items())
    yield f"<{of.tag}{attributes}>"
    if of.tag in _VOID:
        return
    if of.text:
        yield of.text if of.tag in _RAW else escape(of.text)
    for child in of:
        yield from _parts(child)
    yield f"</{of.tag}>"


def safe(text: str) -> str:
    """Return a text without unsafe characters, cut to `LONGEST` letters."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return shown(text)


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else shown(str(value))
