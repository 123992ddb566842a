"""The page as a text: small whatever it shows, without anything from outside, and legible in light and dark."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_report import TIME, report
from support.strategies import examples
from wincli.cli.inspection.report.page import MARK, MOST_BYTES, page_of
from wincli.cli.inspection.report.page_elements import axis_ticks, duration_text, log_ticks, share_text, time_text
from wincli.cli.inspection.report.report import (
    Axis,
    Bar,
    Distribution,
)

TEXTS = st.text(min_size=1, max_size=40) | st.sampled_from(
    ["</script><script>x()</script>", "<!--", "]]>", "&lt;", '" onload="x()']
)


class Reader(HTMLParser):
    """Collects the elements of a page, and the texts outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


@examples(30)
@given(TEXTS)
def test_a_text_of_data_adds_no_element_and_no_attribute(text: str) -> None:
    plain, found = (read(page_of(report(each))) for each in ("u7", text))
    assert [tag for tag, _ in plain.elements] == [tag for tag, _ in found.elements]
    assert [list(attributes) for _, attributes in plain.elements] == [
        list(attributes) for _, attributes in found.elements
    ]


def test_a_page_names_nothing_outside_of_itself() -> None:
    page = page_of(report())
    assert page.startswith(MARK)
    for tag, attributes in read(page).elements:
        assert not {"src", "action", "srcset", "data", "poster"} & attributes.keys()
        assert attributes.get("href") in (None, "data:,")
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("text", ["u7", "\u00e9" * 5000])
def test_a_page_has_at_most_2_mb_however_much_it_shows(text: str) -> None:
    lengths = tuple(Bar(2.0**n, 2.0 ** (n + 1), 10**15 + n) for n in range(40))
    spread = Distribution("duration", lengths, 1, 9, 0, 3, 14.0, ((50, 1.0),))
    large = report(text, keys=24, bars=20_000, cells=1000, lengths=spread, clauses=((text, text),) * 1000)
    page = page_of(large)
    assert len(page.encode()) <= MOST_BYTES
    assert page.count('class="lane"') == 24


def test_numbers_of_a_page_are_those_of_the_report() -> None:
    texts = " ".join(read(page_of(report())).texts)
    for words in ("5 rows in: every row is accounted for", "3 windows, 6 rows", "up to 7 more"):
        assert words in texts


def test_an_empty_report_is_a_page() -> None:
    nothing = dict.fromkeys(("lanes", "over_time", "lengths", "sizes", "calendar"))
    page = page_of(report(**nothing, reasons=(), accounts={}, phases=(), expectations=(), notes=()))
    assert "The job in words" in page
    assert "<script" not in page


def test_lanes_without_windows_are_a_page() -> None:
    assert 'data-lane="1"' in page_of(report(bars=0))


Colour = tuple[float, float, float]


def colours(style: str) -> dict[str, Colour]:
    found = re.findall(r"--(\w+):#([0-9a-f]{6})", style)
    return {name: tuple(int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)) for name, text in found}  # type: ignore[misc]


def luminance(colour: Colour) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Colour, other: Colour) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_texts_and_pictures_stand_out_in_light_and_dark() -> None:
    style = (files("wincli.cli.inspection.report") / "page.css").read_text("utf-8")
    light, dark = (colours(part) for part in style.split("\n")[:2])
    shade = re.findall(r"--soft:(\d+),(\d+),(\d+)", style)[:2]
    for scheme, soft in zip((light, dark), shade, strict=True):
        assert all(contrast(scheme[name], scheme["paper"]) >= 4.5 for name in ("ink", "faint", "trouble"))
        assert all(contrast(scheme[name], scheme["paper"]) >= 3 for name in ("mark", "held", "focus"))
        tint: Any = tuple(p + (int(s) / 255 - p) * 0.52 for p, s in zip(scheme["paper"], soft, strict=True))
        assert contrast(scheme["ink"], tint) >= 4.5


@given(st.integers(-(2**55), 2**55), st.integers(1, 2**56))
def test_ticks_of_times_lie_on_the_axis_and_are_few(low: int, span: int) -> None:
    ticks = axis_ticks(TIME, low, low + span)
    assert len(ticks) <= 9
    assert all(-1e-9 <= tick.share <= 1 + 1e-9 for tick in ticks)
    assert [tick.share for tick in ticks] == sorted({tick.share for tick in ticks})


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12))
def test_ticks_of_numbers_lie_on_the_axis_and_are_few(low: float, span: float) -> None:
    ticks = axis_ticks(Axis("number", "x"), low, low + span)
    assert len(ticks) <= 9
    assert all(-1e-6 <= tick.share <= 1 + 1e-6 for tick in ticks)


@given(st.floats(1e-6, 1e12), st.floats(1.1, 1e12), st.sampled_from(["duration", "rows"]))
def test_ticks_of_logarithms_lie_on_the_axis(low: float, factor: float, unit: str) -> None:
    assert all(0 <= tick.share <= 1 for tick in log_ticks(unit, low, low * factor))


def test_texts_of_quantities() -> None:
    texts = [duration_text(n) for n in (0, 7, 250_000, 12_500_000, 3_780_000_000, 90_000_000_000, 86_400_000_000 * 400)]
    assert texts == ["0 µs", "7 µs", "250 ms", "12.5 s", "1 h 3 min", "1 d 1 h", "400 d"]
    assert [share_text(n, 100_000) for n in (0, 1, 50_000, 99_999, 100_000)] == [
        "0 %",
        "< 0.01 %",
        "50 %",
        "> 99.9 %",
        "100 %",
    ]
    assert time_text(1_793_491_200_250_000) == "2026-11-01 00:00:00.25"
