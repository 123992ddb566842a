"""The page in a real browser with hostile texts in all of its places: each is text, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from support.browser import Browser
from support.fake_report import report
from support.hostile_texts import PAGE_TEXTS
from support.in_process import wincli_here
from wincli.cli.inspection.report.page import MARK, page_of, safe
from wincli.windowing.errors import shown

_TREE = """return [...document.querySelectorAll('*')].map(
  e => e.localName + ' ' + [...e.attributes].map(a => a.localName).sort().join(' '))"""
_TEXTS = """const found = [], walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
while (walk.nextNode())
  if (!['SCRIPT', 'STYLE'].includes(walk.currentNode.parentNode.nodeName)) found.push(walk.currentNode.data);
for (const e of document.querySelectorAll('*')) for (const a of e.attributes) found.push(a.value);
return found"""


def look(browser: Browser, page: Path) -> Counter[str]:
    """Show a page, use its script, and return its elements with the names of their attributes."""
    browser.open(page)
    press = "document.getElementById('sheet').dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]}))"
    for key in ("n", "+", "ArrowDown", "0"):
        browser.run(press, key)
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return Counter(browser.run(_TREE))


def check(browser: Browser, page: Path, plain: Counter[str]) -> list[str]:
    """Check that a page has the elements of a harmless one and does nothing; return its texts."""
    assert look(browser, page) == plain
    assert browser.run("return window.hit === undefined && Object.keys({}.__proto__).length === 0")
    assert browser.logged() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
    return list(browser.run(_TEXTS))


@pytest.fixture(scope="module")
def harmless(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Counter[str], int]:
    """The elements of a page with a harmless text in each place, and in how many this is."""
    page = tmp_path_factory.mktemp("harmless") / "plain.html"
    page.write_text(page_of(report("u7")), encoding="utf-8")
    return look(browser, page), list(browser.run(_TEXTS)).count("u7")


@pytest.mark.parametrize("at", range(len(PAGE_TEXTS)))
def test_a_hostile_text_in_each_place_of_a_report_is_text(
    browser: Browser, harmless: tuple[Counter[str], int], tmp_path: Path, at: int
) -> None:
    text, (plain, places) = PAGE_TEXTS[at], harmless
    assert places > 0
    (tmp_path / "hostile.html").write_text(page_of(report(text)), encoding="utf-8")
    found = check(browser, tmp_path / "hostile.html", plain)
    assert found.count(safe(text)) >= places
    readout = browser.texts("#readout")[0]
    assert safe(f"{text}1") in readout or safe(f"{text}0") in readout


def test_no_value_stands_in_the_file_as_markup() -> None:
    """A reader that is less strict than a browser, such as a filter of mails, finds none in attributes either."""
    for text in PAGE_TEXTS:
        page = page_of(report(text)).removeprefix(MARK)
        assert text not in page or not set(text) & set("<>&\"'")
    scripts = (files("wincli.cli.inspection.report") / name for name in ("page.js", "lanes.js"))
    script = "".join(each.read_text("utf-8") for each in scripts)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert word not in script


def write_rows(path: Path, texts: tuple[str, ...]) -> None:
    """Write a log in which each text is a value of the key, and the name of a column."""
    rows = [
        {"ts": f"2026-11-01T{hour:02}:00:00", "user": text, "v": n, **dict.fromkeys(texts, text)}
        for n, text in enumerate(texts)
        for hour in (0, 1, 9)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"user": texts[0], "v": 1}]), encoding="utf-8")


def made(folder: Path, texts: tuple[str, ...], name: str) -> Path:
    """Return the page of a result over a log with these texts: keys, columns, an expectation, a folder."""
    folder.mkdir()
    write_rows(folder / f"{name.replace('/', '')}.jsonl", texts)
    quoted = '"' + texts[-1].replace('"', '""') + '"'
    said = texts[-1].replace("'", "''")
    words: Any = ("-w", f"gap(ts, 2h) or change({quoted})", "-k", "user", "-a", f"{quoted}=last({quoted})")
    words += ("--expect", f"rejected_share < 2 or '{said}' = ''", "--where", f"user != '{said}!'", "-a", "count()")
    words += ("--schema", "ts:timestamp")
    ran = wincli_here("run", *words, f"{name}.jsonl", f"out {name}", cwd=folder)
    assert ran.code == 0, ran.err
    only = [word for text in texts[:12] for word in ("--only", f"user={text}")]
    ran = wincli_here("report", f"out {name}", *only, "-o", "report.html", cwd=folder)
    assert ran.code == 0, ran.err
    return folder / "report.html"


def test_hostile_keys_columns_names_and_expectations_of_a_run_are_texts(browser: Browser, tmp_path: Path) -> None:
    hostile = tuple(text for text in PAGE_TEXTS if not set(text) & set("\x00\ud800\udfff") and len(text) < 200)
    plain = tuple(f"k{n}" for n in range(len(hostile)))
    last = "<img src=y onerror=window.hit=1>"
    before = look(browser, made(tmp_path / "plain", (*plain, "kk"), "img"))
    found = check(browser, made(tmp_path / "hostile", (*hostile, last), f"<img src=x onerror={'hit=1'}>"), before)
    keys = browser.texts("svg.lane text.key")
    assert set(keys) <= {shown(text) if len(shown(text)) <= 60 else shown(text)[:59] + "\u2026" for text in hostile}
    assert any(f"{last}" in text for text in found)
