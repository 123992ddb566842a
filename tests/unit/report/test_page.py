"""The page: small whatever it shows, without anything from outside, legible in light and dark, and true to its data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.browser import Browser
from support.colours import contrast, rgb
from support.fake_report import distribution, lanes_on, one_window, report
from support.strategies import examples
from wincli.cli.inspection.report.page import MARK, MOST_BYTES, Report, page_of, safe
from wincli.windowing.ports import Counts

TEXTS = st.text(min_size=1, max_size=40) | st.sampled_from(
    ["</script><script>x()</script>", "<!--", "]]>", "&lt;", '" onload="x()']
)


def without_data(page: str) -> str:
    """A page without its values."""
    return re.sub(r'(<script id="data" type="application/json">).*?(?=</script>)', r"\1", page)


Show = Callable[[Report], Browser]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Show:
    """Shows the page of a report."""

    def shown(found: Report) -> Browser:
        (tmp_path / "page.html").write_text(page_of(found), encoding="utf-8")
        browser.open(tmp_path / "page.html")
        assert browser.logged() == []
        return browser

    return shown


@examples(30)
@given(TEXTS)
def test_a_text_of_data_stands_in_the_data_alone(text: str) -> None:
    plain, found = (without_data(page_of(report(each, path="out"))) for each in ("u7", text))
    assert plain == found
    data = re.search(r'type="application/json">(.*?)</script>', page_of(report(text)))
    assert data is not None
    assert json.loads(data[1])["lanes"]["lanes"][0]["key"] == safe(f"{text}0")


def test_a_page_names_nothing_outside_of_itself() -> None:
    page = page_of(report())
    assert page.startswith(MARK)
    assert not re.search(
        r"<[^>]*\s(?:src|action|srcset|poster|style|on\w+)=", without_data(page[: page.index("<script>")])
    )
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("text", ["u7", "\u00e9" * 5000])
def test_a_page_has_at_most_2_mb_however_much_it_shows(text: str) -> None:
    spread = distribution("duration", [(2.0**n, 2.0 ** (n + 1), 10**15 + n) for n in range(40)])
    large = report(text, keys=24, bars=20_000, cells=1000, lengths=spread, clauses=((text, text),) * 1000)
    page = page_of(large)
    assert len(page.encode()) <= MOST_BYTES
    data = re.search(r'type="application/json">(.*?)</script>', page)
    assert data is not None
    assert len(json.loads(data[1])["lanes"]["lanes"]) == 24


def test_numbers_of_a_page_are_those_of_the_report(show: Show) -> None:
    texts = " ".join(show(report()).texts("main"))
    for words in ("5 rows in: every row is accounted for", "3 windows, 6 rows", "up to 7 more"):
        assert words in texts


def test_a_stage_that_began_from_held_rows_is_counted_with_them(show: Show) -> None:
    told = {"2": Counts(100, 88, 10, 0, 7, {"late": 0}, carried=5), "1": Counts(1, 1)}
    browser = show(report(accounts=told))
    assert browser.texts("#account h3") == ["Stage 2", "Stage 1"]
    assert browser.texts("#account caption")[0] == "100 rows in + 5 carried in: every row is accounted for"
    assert browser.texts("#account figure:first-of-type th") == ["windowed", "filtered", "held"]


def test_an_empty_report_is_a_page_and_so_are_lanes_without_windows(show: Show) -> None:
    nothing = dict.fromkeys(("lanes", "over_time", "lengths", "sizes", "calendar"))
    browser = show(report(**nothing, reasons=(), accounts={}, phases=(), expectations=(), notes=()))
    assert browser.texts("h2") == ["The job in words"]
    assert len(show(report(bars=0)).texts("svg.lane")) == 2


def test_texts_and_pictures_stand_out_in_light_and_dark() -> None:
    style = (files("wincli.cli.inspection.report") / "page.css").read_text("utf-8")
    light, dark = (
        {name: rgb(colour) for name, colour in re.findall(r"--(\w+):(#[0-9a-f]{6})", part)}
        for part in style.split("\n")[:2]
    )
    shade = re.findall(r"--soft:(\d+),(\d+),(\d+)", style)[:2]
    for scheme, soft in zip((light, dark), shade, strict=True):
        assert all(contrast(scheme[name], scheme["paper"]) >= 4.5 for name in ("ink", "faint", "trouble"))
        assert all(contrast(scheme[name], scheme["paper"]) >= 3 for name in ("mark", "held", "focus"))
        tint: Any = tuple(p + (int(s) / 255 - p) * 0.52 for p, s in zip(scheme["paper"], soft, strict=True))
        assert contrast(scheme["ink"], tint) >= 4.5


def ticks(show: Show, found: Report, where: str) -> list[tuple[float, str]]:
    """Where the labels of an axis stand, in percent of the width, and what they say."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].map(e => [parseFloat(e.getAttribute('x')), e.textContent])"
    )
    return [(x, text) for x, text in show(found).run(script, where)]


SPANS = [
    ("time", 0, 3), ("time", -(2**54), 2**55), ("time", 1_793_491_200_000_000, 86_400_000_000 * 9),
    ("time", 1_793_491_200_000_000, 86_400_000_000 * 900), ("time", 1_793_491_200_123_456, 1_999_999),
    ("number", -1e12, 1e3), ("number", 0.25, 1e-3), ("number", -7.5, 1e12), ("window", 0, 1), ("window", 3, 1000),
]  # fmt: skip


@pytest.mark.parametrize(("scale", "low", "span"), SPANS)
def test_ticks_lie_on_the_axis_and_are_few(scale: Any, low: float, span: float, show: Show) -> None:
    lanes = lanes_on(scale, [one_window("u7", low, low + span)])
    found = ticks(show, report(lanes=lanes), "#sheet .ticks text")
    assert 1 <= len(found) <= 9
    assert all(0 <= x <= 100 for x, _ in found)
    assert [x for x, _ in found] == sorted({x for x, _ in found})
    assert len({text for _, text in found}) == len(found)


@pytest.mark.parametrize("unit", ["duration", "rows", "number"])
def test_ticks_of_logarithms_lie_on_the_axis(unit: Any, show: Show) -> None:
    for low, factor in ((1.0, 2.0), (1e-6, 1.1), (3.0, 1e12)):
        spread = distribution(unit, [(low, low * factor, 2)], count=3, most=low, total=low * 2, quantiles=[(50, low)])
        found = ticks(show, report(sizes=spread, lengths=None), "#distributions .histogram > text")
        assert all(0 <= x <= 100 for x, _ in found)
        assert [x for x, _ in found] == sorted({x for x, _ in found})


def test_texts_of_quantities(show: Show) -> None:
    spent = (0, 7e-6, 0.25, 12.5, 3780, 90_000, 86_400 * 400)
    phases = (*((f"p{at}", float(each)) for at, each in enumerate(spent)), ("total", 100_000.0))
    cells = """return [...document.querySelectorAll('#phases tr')].map(
      e => [...e.querySelectorAll('td')].map(c => c.textContent))"""
    rows = show(report(phases=phases)).run(cells)
    texts = ["0 µs", "7 µs", "250 ms", "12.5 s", "1 h 3 min", "1 d 1 h", "400 d", "1 d 4 h"]
    assert [row[0] for row in rows] == texts
    assert [row[1] for row in rows][:5] == ["0 %", "< 0.01 %", "< 0.01 %", "0.0125 %", "3.78 %"]
    phases = (("most", 99_999.0), ("total", 100_000.0))
    assert show(report(phases=phases)).texts("#phases .share") == ["> 99.9 %", "100 %"]
    lanes = lanes_on("time", [one_window("u7", 1_793_491_200_250_000, 1_793_491_201_000_000)])
    assert "from 2026-11-01 00:00:00.25 to 2026-11-01 00:00:01." in show(report(lanes=lanes)).texts("#windows > p")[0]
