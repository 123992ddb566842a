"""A picture as SVG: rows are points on an axis, panes are bars under them, keys are lanes."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ..errors import shown
from ..support.amounts import count_of
from .picture import Extent, Lane, Measure, Pane, Picture, cut, pack
from .text import Scale, lane_notes, picture_text, scale

# What SVG drawings are made of: elements, whose text is always escaped, and one style for light and dark pages.


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


# Bars with captions on tracks: no two on one track touch, and captions are as long as the room allows.


_MOST_TRACKS = 4
"""With more, captions are shortened where that needs fewer tracks."""


def best_captions(
    bars: Sequence[Extent], widths: Sequence[Sequence[float]], within: Extent, apart: float
) -> tuple[list[int], int, list[Extent]]:
    """Choose one of several forms of all captions, the longest that needs few tracks.

    ``bars``: the bars, in the order in which they are placed. ``widths``: of each form, the longest first, how wide the
    caption of each bar is. ``within``: captions stay inside. Returns the track of each bar, the number of the form, and
    where captions stand.
    """
    found: tuple[list[int], int, list[Extent]] | None = None
    for form, wide in enumerate(widths):
        starts = [max(min(left, within[1] - width), within[0]) for (left, _), width in zip(bars, wide, strict=True)]
        captions = [(left, left + width) for left, width in zip(starts, wide, strict=True)]
        whole = [(min(a, x), max(b, y)) for (a, b), (x, y) in zip(bars, captions, strict=True)]
        tracks = [track or 0 for track in pack(whole, apart)]
        if found is None or max(tracks, default=0) < max(found[0]):
            found = tracks, form, captions
        if max(tracks, default=0) < _MOST_TRACKS:
            break
    assert found is not None
    return found


_WIDTH = 960
_SIDE = 24
_FIRST, _ROOM = 56, _WIDTH - 2 * 56
_APART, _WIDEST = 12, 48
_AXIS = 92
_TRACK, _BAR, _HALF = 38, 16, 5.5
_FITS = "max-width:100%;height:auto"
_LETTER = 6.0
"""Pixels of a letter of a caption, about."""


def picture_svg(picture: Picture) -> str:
    """Return the document."""
    along = scale(picture.axis, 0, len(picture.axis.texts), _APART, _ROOM, _WIDEST)
    wide = max(_WIDTH, round(2 * _FIRST + (along.at[-1] if along.at else 0)))
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "wd", "role": "img", "style": _FITS})
    explain(root, f"Windows {picture.window}: {picture.about}")
    add(root, "desc").text = picture_text(picture)
    add(root, "style").text = STYLE
    card = add(root, "rect", "wd-card", x=0.5, y=0.5, rx=8, width=wide - 1)
    write(root, _SIDE, 32, cut(picture.window, 100), "wd-title wd-text")
    write(root, _SIDE, 52, picture.about, "wd-faint")
    behind = add(root, "g")
    sheet = _Sheet(picture, along, root, behind, wide)
    bottom = sheet.lanes()
    sheet.axis(bottom)
    height = sheet.notes(bottom)
    card.set("height", f"{height - 1}")
    root.attrib |= {"width": f"{wide}", "height": f"{height}", "viewBox": f"0 0 {wide} {height}"}
    return as_text(root)


class _Sheet:
    """A document to which the parts of a picture are added.

    ``behind``: what is painted before lanes: lines from top to bottom.
    """

    def __init__(self, picture: Picture, along: Scale, root: Element, behind: Element, wide: int) -> None:
        self.picture = picture
        self.along = along
        self.root = root
        self.behind = behind
        self.within = (_SIDE, wide - _SIDE)
        self.at = [_FIRST + x for x in along.at]

    def of(self, value: Measure | None) -> float | None:
        """Where a value stands; None for none, and outside of the sheet."""
        found = None if value is None else self.along.of(value)
        return None if found is None else _FIRST + found

    def axis(self, bottom: float) -> None:
        """Add the axis, the values of rows as far as they have room, and lines of ticks and marks."""
        axis = self.picture.axis
        is_even = axis.measures is not None and not self.along.is_true
        write(self.root, _SIDE, 72, axis.name + (" (not to scale)" if is_even else ""), "wd-faint")
        add(self.behind, "line", "wd-axis", x1=self.within[0], y1=_AXIS, x2=self.within[1], y2=_AXIS)
        reached = 0.0
        for x, text in zip(self.at, axis.texts, strict=True):
            half = len(text) * _LETTER / 2
            if x - half > max(reached, self.within[0] - 8):
                write(self.root, x, _AXIS - 6, text, "wd-faint", text_anchor="middle")
                vertical(self.behind, x, _AXIS - 3, _AXIS + 3, "wd-axis")
                reached = x + half + 8
        for tick in axis.ticks:
            if (at := self.of(tick)) is not None and self.within[0] <= at <= self.within[1]:
                vertical(self.behind, at, _AXIS, bottom, "wd-tick")
        edges = [self.within[0], *self.at, self.within[1]]
        for mark in axis.marks:
            x = (edges[mark + 1] + edges[mark + 2]) / 2
            explain(vertical(self.behind, x, _AXIS, bottom, "wd-mark"), "window mark")
            write(self.root, x, bottom + 10, "mark", "wd-mark-text", text_anchor="middle")

    def lanes(self) -> float:
        """Add all lanes; return where the last one ends."""
        top = _AXIS + 12.0
        for lane in self.picture.lanes:
            top = self._lane(lane, top)
        return top

    def _lane(self, lane: Lane, top: float) -> float:
        group = add(self.root, "g")
        explain(group, f"rows of {lane.label}" if lane.label else "rows")
        if lane.label:
            write(group, _SIDE, top + 12, lane.label, "wd-key wd-text")
            top += 18
        line = top + 10
        bottom = self._panes(group, lane, top + 24) + 8
        shown = {place for pane in lane.panes for place in pane.places}
        for place, arrival in lane.rows.items():
            vertical(self.behind, self.at[place], line, bottom - 8, "wd-guide")
            classes, where = ("wd-row", "") if place in shown else ("wd-row wd-out", ", in no pane that is drawn")
            is_right = lane.right is not None and place in lane.right
            point = add(group, "circle", classes, cx=self.at[place], cy=bottom if is_right else line, r=4)
            side = "" if lane.right is None else "right " if is_right else "left "
            explain(point, f"{side}row {arrival}: {self.picture.axis.name} {self.picture.axis.texts[place]}{where}")
        return bottom if lane.right is None else bottom + 12

    def _panes(self, group: Element, lane: Lane, top: float) -> float:
        """Add the bars of a lane on as few tracks as hold them; return where the last one ends."""
        if not lane.panes:
            return top
        last = lane.panes[-1]
        bars = [self._extent(pane, pane is last) for pane in lane.panes]
        forms = list(zip(*(_captions(pane) for pane in lane.panes), strict=True))
        widths = [[len(text) * _LETTER for text in form] for form in forms]
        tracks, form, captions = best_captions(bars, widths, self.within, 6)
        for pane, bar, track, caption, text in zip(lane.panes, bars, tracks, captions, forms[form], strict=True):
            self._bar(group, pane, bar, top + track * _TRACK)
            write(group, caption[0], top + track * _TRACK + _BAR + 12, text, "wd-text")
        return top + (max(tracks) + 1) * _TRACK

    def _extent(self, pane: Pane, is_last: bool) -> Extent:
        """From where to where a pane reaches: over its bounds, if it has some, and all its drawn rows.

        Rows that are not drawn come after those that are, so a pane with such rows goes on to the right; and so does
        the last of a key, if it is open.
        """
        bounds = [x for x in (self.of(pane.start), self.of(pane.end)) if x is not None]
        rows = [self.at[place] + side for place in pane.places for side in (-_HALF, _HALF)]
        reached = [min(max(x, self.within[0]), self.within[1]) for x in (*bounds, *rows)] or [self.within[0]]
        if pane.more or (pane.is_open and is_last and not bounds):
            reached.append(self.within[1])
        return min(reached), max(*reached, min(reached) + 2 * _HALF)

    def _bar(self, group: Element, pane: Pane, bar: Extent, top: float) -> None:
        hue = f"wd-{pane.number % COLOURS}"
        held = add(group, "g")
        told = [f"pane {pane.number}", f"closed by {pane.closed_by}", count_of(pane.count, "row")]
        told += [f"{pane.more:,} of them not drawn"] if pane.more else []
        told += [f"{name} = {text}" if name else text for name, text in (*pane.way, *pane.told)]
        explain(held, "; ".join(told))
        if pane.is_open or pane.more:
            edge = f"M{bar[1]:.1f} {top:.1f}H{bar[0]:.1f}V{top + _BAR:.1f}H{bar[1]:.1f}"
            add(held, "path", f"wd-bar wd-open {hue}" if pane.is_open else f"wd-bar {hue}", d=edge)
        else:
            size = {"width": bar[1] - bar[0], "height": _BAR}
            add(held, "rect", f"wd-bar {hue}", x=bar[0], y=top, rx=3, **size)
        for place in pane.places:
            add(held, "circle", f"wd-in {hue}", cx=self.at[place], cy=top + _BAR / 2, r=3)

    def notes(self, bottom: float) -> int:
        """Add what is left out under the lanes; return the height of the document."""
        line = bottom + (26 if self.picture.axis.marks else 12)
        panes = [pane for lane in self.picture.lanes for pane in lane.panes]
        legend = ["dashed: emitted at the end of the data"] if any(pane.is_open for pane in panes) else []
        legend += ["open at the right: shows more rows than are drawn"] if any(pane.more for pane in panes) else []
        for note in [*legend, *lane_notes(self.picture), *self.picture.notes]:
            write(self.root, _SIDE, line, note, "wd-faint")
            line += 16
        return round(line + 4)


def _captions(pane: Pane) -> tuple[str, str, str]:
    """What stands under a bar: in full, without values, and the number alone."""
    values = [f"{name}={text}" for name, text in (*pane.way, *pane.told) if name]
    short = f"{pane.number} {pane.closed_by}, {pane.count:,}"
    return (
        cut(", ".join([f"{pane.number} {pane.closed_by}", count_of(pane.count, "row"), *values]), 64),
        short,
        f"{pane.number}",
    )
