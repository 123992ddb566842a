"""The page in a real browser: it asks for nothing, logs nothing, shows the data, and zooms by mouse and keyboard."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.browser import Browser
from support.in_process import wincli_here
from support.report_logs import DAYS, RANGE, run, write_days, write_log
from wincli.cli.inspection.results.result import open_result_folder

PAGES = ("out", "state", "numbers", "arrival", "sliding")
USERS = ("ann", "bob", "cy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages ``NAME.html`` of results and of a state."""
    path = tmp_path_factory.mktemp("pages")
    write_log(path / "log.csv")
    write_days(path / "log")
    run(path, "-w", "gap(ts, 1h)", "-k", "user", "log.csv", "out")
    run(path, "-w", "delta(amount, 3)", "-k", "user", "--order-by", "amount", "log.csv", "numbers")
    run(path, "-w", "count(4)", "-k", "user", "--order-by", "arrival", "log.csv", "arrival")
    run(path, "-w", "sliding, time(3h), count(2)", "--partial", "-k", "user", "log.csv", "sliding")
    run(path, *DAYS, "days/{date}", "--state", "state", *RANGE)
    for name in PAGES:
        ran = wincli_here("report", name, "-o", f"{name}.html", cwd=path)
        assert ran.code == 0, ran.err
    return path


def rows_of(folder: Path, user: str) -> list[dict[str, Any]]:
    found = [row for table in open_result_folder(str(folder / "out")).rows.tables() for row in table.to_pylist()]
    return [row for row in found if row["user"] == user]


def span(browser: Browser) -> tuple[float, float]:
    low, high = browser.run("const d = document.getElementById('sheet').dataset; return [d.low, d.high]")
    return float(low), float(high)


def press(browser: Browser, *keys: str) -> None:
    """Press keys as a keyboard does, in the element that has the focus."""
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(browser.driver).send_keys(key).perform()


def focus(browser: Browser) -> None:
    browser.run("document.getElementById('sheet').focus()")


def bars(browser: Browser, lane: int) -> int:
    """How many bars a lane has, after the next picture."""
    script = """const [lane, done] = arguments;
    const path = document.querySelector(`svg[data-lane="${lane}"] .windows`);
    requestAnimationFrame(() => requestAnimationFrame(() => done(path.getAttribute("d").split("M").length - 1)))"""
    return int(browser.driver.execute_async_script(script, lane))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_does_not_shift_and_fits_the_screen(browser: Browser, folder: Path, name: str) -> None:
    page = folder / f"{name}.html"
    for scheme, width in (("light", 320), ("dark", 1100)):
        browser.open(page, width, scheme)
        focus(browser)
        press(browser, "+", "n", "n", "p", "0", "-")
        browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert browser.logged() == []
        assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
        shifts = """const done = arguments[0];
        new PerformanceObserver(list => done(list.getEntries().filter(e => !e.hadRecentInput).length))
          .observe({type: "layout-shift", buffered: true});
        setTimeout(() => done(0), 100);"""
        assert browser.driver.execute_async_script(shifts) == 0
        background = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background))) < 200) == (scheme == "dark")
        assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_again_where_it_was_and_all_in_it_has_a_name(browser: Browser, folder: Path, name: str) -> None:
    browser.open(folder / f"{name}.html")
    look = "return [...document.querySelectorAll('#sheet path')].map(e => e.getAttribute('d'))"
    before = browser.texts("#sheet .ticks text"), browser.run(look)
    focus(browser)
    press(browser, "+", "-", "0")
    bars(browser, 0)
    assert (browser.texts("#sheet .ticks text"), browser.run(look)) == before
    browser.command("Accessibility.enable")
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in ("image", "button", "table", "region", "link")
    ]
    assert [role for role, text in named if not text.strip()] == []
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_what_is_shown_are_the_windows_of_the_result(browser: Browser, folder: Path) -> None:
    browser.open(folder / "out.html")
    by_user = {user: rows_of(folder, user) for user in USERS}
    ordered = sorted(by_user, key=lambda user: -sum(row["count"] for row in by_user[user]))
    assert browser.texts("svg.lane text.key") == ordered
    for at, user in enumerate(ordered):
        rows = by_user[user]
        line = browser.texts(f"svg[data-lane='{at}'] text.faint")
        assert line == [f"{len(rows)} windows, {sum(row['count'] for row in rows)} rows"]
        assert bars(browser, at) == len(rows)
    cells = browser.texts("#lanes tbody tr:first-child > *")
    first = by_user[ordered[0]]
    assert cells[:3] == [ordered[0], f"{len(first)}", f"{sum(row['count'] for row in first)}"]
    assert cells[3:] == [f"{min(r['window_start'] for r in first)}", f"{max(r['window_end'] for r in first)}"]


def test_the_keyboard_goes_through_the_windows_of_a_key(browser: Browser, folder: Path) -> None:
    browser.open(folder / "out.html")
    user = browser.texts("svg.lane text.key")[1]
    focus(browser)
    from selenium.webdriver.common.keys import Keys

    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, *["p"] * 30)
    told = []
    for row in rows_of(folder, user):
        told += browser.texts("#readout")
        rows = f"{row['count']} row{'' if row['count'] == 1 else 's'}"
        assert f"{user}: a window, from {row['window_start']} to {row['window_end']}, " in told[-1]
        assert told[-1].endswith(rows)
        press(browser, "n")
    assert len(set(told)) == len(told)


def test_the_keyboard_zooms_and_moves(browser: Browser, folder: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(folder / "out.html")
    focus(browser)
    low, high = span(browser)
    press(browser, "+")
    begin, end = span(browser)
    assert (end - begin, begin + end) == pytest.approx(((high - low) / 2, low + high))
    press(browser, Keys.ARROW_RIGHT)
    assert span(browser) == pytest.approx((begin + (end - begin) / 4, end + (end - begin) / 4))
    press(browser, *[Keys.ARROW_LEFT] * 9)
    assert span(browser)[0] == low
    press(browser, "-", "-", "+", "0")
    assert span(browser) == (low, high)


def test_zoomed_in_a_lane_shows_the_windows_that_reach_into_the_span(browser: Browser, folder: Path) -> None:
    browser.open(folder / "out.html")
    focus(browser)
    users = browser.texts("svg.lane text.key")
    press(browser, "+", "+")
    low, high = span(browser)
    for at, user in enumerate(users):
        rows = [[_micros(row[name]) for name in ("window_start", "window_end")] for row in rows_of(folder, user)]
        assert bars(browser, at) == sum(end >= low and start <= high for start, end in rows)


def _micros(time: Any) -> int:
    return (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def test_the_mouse_zooms(browser: Browser, folder: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.open(folder / "out.html")
    low, high = span(browser)
    sheet = browser.driver.find_element(By.ID, "sheet")
    box = browser.box("#sheet")
    chain = ActionChains(browser.driver, duration=50).move_to_element(sheet).move_by_offset(-int(box["width"] / 4), 0)
    chain.click_and_hold().move_by_offset(int(box["width"] / 2), 0).release().perform()
    begin, end = span(browser)
    assert (begin - low) / (high - low) == pytest.approx(0.25, abs=0.01)
    assert (high - end) / (high - low) == pytest.approx(0.25, abs=0.01)
    centre = {"x": box["left"] + box["width"] / 2, "y": box["top"] + 40}
    browser.command("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-100, modifiers=2, **centre)
    assert span(browser)[1] - span(browser)[0] < end - begin
    browser.driver.find_element(By.CSS_SELECTOR, "#controls [data-do=all]").click()
    assert span(browser) == (low, high)
    browser.command("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-100, **centre)
    assert span(browser) == (low, high)


def test_a_print_has_no_controls(browser: Browser, folder: Path) -> None:
    browser.open(folder / "out.html", scheme="dark", medium="print")
    assert browser.run("return getComputedStyle(document.getElementById('controls')).display") == "none"
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
