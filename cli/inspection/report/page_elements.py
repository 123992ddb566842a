"""What a page is made of: elements whose texts are always escaped, and cut where data would make them endless.

This is the one way from a value to a page. A value is the text of an element or of an attribute, which `as_html` writes
so that no reader, strict or not, finds markup in it; a script gets values as JSON (`add_json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from xml.etree import ElementTree

import numpy as np

from ....windowing.errors import shown
from .report import Axis

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
        text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else shown(str(value))
        to.set(name.rstrip("_").replace("_", "-"), text)


def add_svg(parent: Element, classes: str, height: float, title: str) -> Element:
    """Add a picture of full width; ``title`` says to readers that do not see it what it shows."""
    return add(parent, "svg", classes, role="img", aria_label=safe(title), width="100%", height=height)


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


# Counts, durations, sizes and times as a page writes them.


_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"))
_SMALL = ((1_000_000, "s"), (1_000, "ms"), (1, "µs"))
_BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def duration_text(micros: float) -> str:
    """Return a duration in its two largest units: ``1 h 3 min``, ``12.5 s``, ``250 ms``."""
    if micros < 0:
        return f"-{duration_text(-micros)}"
    if micros < 60_000_000:
        size, unit = next(((size, unit) for size, unit in _SMALL if micros >= size), _SMALL[-1])
        return f"{micros / size:.3g} {unit}"
    at = next(at for at, (size, _) in enumerate(_UNITS) if micros >= size)
    (size, unit), (below, smaller) = _UNITS[at], _UNITS[at + 1]
    whole, rest = divmod(round(micros / below), size // below)
    if whole >= 100 or not rest:
        return f"{whole:,} {unit}"
    return f"{whole:,} {unit} {rest} {smaller}"


def seconds_text(seconds: float) -> str:
    """Return seconds as a duration."""
    return duration_text(seconds * 1_000_000)


def bytes_text(size: float) -> str:
    """Return a number of bytes in a unit of its size."""
    for unit, name in _BYTES:
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:,.0f} bytes"


def number_text(value: float) -> str:
    """Return a number with at most 6 digits that count; a whole number in full."""
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def time_text(micros: float) -> str:
    """Return a time: ``2026-11-03 14:30:05.25``, digits behind the second as far as there are some."""
    text = str(np.datetime_as_string(np.datetime64(int(micros), "us"))).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def place_text(value: float, axis: Axis) -> str:
    """Return a place on an axis."""
    return time_text(value) + (" UTC" if axis.is_utc else "") if axis.scale == "time" else number_text(value)


def measure_text(value: float, unit: str) -> str:
    """Return a value of a distribution with its unit."""
    if unit == "duration":
        return duration_text(value)
    return number_text(value) + (f" row{'' if value == 1 else 's'}" if unit == "rows" else "")


def share_text(part: float, whole: float) -> str:
    """Return a share in percent: three digits that count, and never 0 or 100 for what is not."""
    if not whole or not part:
        return "0 %"
    share = 100 * part / whole
    if share < 0.01:
        return "< 0.01 %"
    return "> 99.9 %" if 99.95 <= share < 100 else f"{share:.3g} %"


# Tables: what pictures show in numbers, for readers who do not see them, and shares of a whole with a bar each.


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


# Where an axis has its labels, and what they say. The script of the page has the same rules for zooming.


_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_STEPS = (
    *(factor * 10**power for power in range(6) for factor in (1, 2, 5)),
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)),
    *(_DAY * n for n in (1, 2, 3, 7, 14)),
)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000)
_MONTH = 30.4 * _DAY
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DURATIONS = (
    *(10.0**power for power in range(6)),
    *(_SECOND * n for n in (1, 10, 60, 600, 3600, 21_600)),
    *(_DAY * n for n in (1, 7, 30, 365, 3650, 36_500)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis.

    ``share``: where it stands, from 0 at the left to 1 at the right.
    ``text``: what it says.
    """

    share: float
    text: str


def axis_ticks(axis: Axis, low: float, high: float, most: int = 7) -> list[Tick]:
    """Return at most ``most`` labels, and one more, between two places."""
    if high <= low:
        return [Tick(0.5, time_text(low) if axis.scale == "time" else number_text(low))]
    return [*(_times(low, high, most) if axis.scale == "time" else _numbers(low, high, most))]


def log_ticks(unit: str, low: float, high: float) -> list[Tick]:
    """Return labels for a logarithmic axis between two values above 0."""
    if unit == "duration":
        values = [value for value in _DURATIONS if low <= value <= high]
        texts = [duration_text(value) for value in values]
    else:
        first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
        factors = (1, 2, 5) if last - first <= 3 else (1,)
        every = max(1, (last - first) // 8)
        found = (factor * 10.0**power for power in range(first, last + 1, every) for factor in factors)
        values = [value for value in found if low <= value <= high]
        texts = [number_text(value) for value in values]
    span = np.log(high / low)
    return [Tick(float(np.log(value / low) / span), text) for value, text in zip(values, texts, strict=True)]


def _times(low: float, high: float, most: int) -> Iterator[Tick]:
    step = next((step for step in _STEPS if (high - low) / step <= most), None)
    if step is None:
        yield from _months(low, high, most)
        return
    anchor = 4 * _DAY  # a Monday
    first = int(-((anchor - low) // step)) * step + anchor if step >= _DAY else int(-(-low // step)) * step
    first += step if first < low else 0
    before = ""
    for place in range(int(first), int(high) + 1, int(step)):
        day = day_text(str(np.datetime64(place, "us").astype("datetime64[D]")))
        clock = time_text(place).partition(" ")[2]
        clock = clock[:5] if step >= 60 * _SECOND else clock
        text = day if step >= _DAY else clock if day == before else f"{day} {clock}"
        yield Tick((place - low) / (high - low), text)
        before = day


def _months(low: float, high: float, most: int) -> Iterator[Tick]:
    step = next((months for months in _MONTHS if (high - low) / (months * _MONTH) <= most), _MONTHS[-1])
    first = int(np.datetime64(int(low), "us").astype("datetime64[M]").astype(np.int64))
    for month in range(-(-first // step) * step, 1 << 40, step):
        place = int(np.datetime64(month, "M").astype("datetime64[us]").astype(np.int64))
        if place > high:
            return
        if place >= low:
            year = 1970 + month // 12
            yield Tick((place - low) / (high - low), f"{year}" if step >= 12 else f"{_NAMES[month % 12]} {year}")


def day_text(label: str) -> str:
    """Return a date as an axis has it: ``2026-11-03`` is ``3 Nov``."""
    return f"{int(label[-2:])} {_NAMES[int(label[-5:-3]) - 1]}"


def _numbers(low: float, high: float, most: int) -> Iterator[Tick]:
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= most)
    for at in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1):
        share = (at * step - low) / (high - low)
        yield Tick(min(max(share, 0.0), 1.0), number_text(float(f"{at * step:.12g}")))
