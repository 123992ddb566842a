"""What a page is made of: elements whose texts are always escaped, and cut where data would make them endless."""

from __future__ import annotations

from xml.etree import ElementTree

from .....windowing.errors import shown

Element = ElementTree.Element
LONGEST = 300
"""Letters of one text; what is longer is cut."""


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


def safe(text: str) -> str:
    """Return a text without unsafe characters, cut to `LONGEST` letters."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return shown(text)


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
