"""A report as one HTML page that needs nothing else: no file, no server, no script to be read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.resources import files

import numpy as np

from ..report import Lane, Report
from .account import add_accounts, add_job, add_phases
from .calendar import add_calendar
from .distributions import add_distributions
from .elements import Element, add, add_json, as_html, element
from .lanes import add_lanes, data_of
from .over_time import add_over_time
from .quantities import bytes_text, seconds_text

MOST_BYTES = 2_000_000
MARK = "<!doctype html><!-- report of wincli -->"
"""How a page begins; only a file that begins so is replaced."""


def page_of(report: Report) -> str:
    """Return the page, at most `MOST_BYTES` in UTF-8."""
    page = _page(report)
    while len(page.encode()) > MOST_BYTES and report.lanes is not None:
        lanes = replace(report.lanes, lanes=tuple(map(_half, report.lanes.lanes)))
        report = replace(report, lanes=lanes)
        page = _page(report)
    return page


def _half(lane: Lane) -> Lane:
    """Return a lane with each two bars as one."""
    begins = np.arange(0, len(lane.starts), 2)
    return replace(
        lane,
        starts=np.minimum.reduceat(lane.starts, begins),
        ends=np.maximum.reduceat(lane.ends, begins),
        sizes=None if lane.sizes is None else np.add.reduceat(lane.sizes, begins),
        counts=np.add.reduceat(lane.counts, begins),
    )


def _page(report: Report) -> str:
    style, script = (_resource(name) for name in ("page.css", "page.js"))
    root = element("html", lang="en")
    _add_head(root, report, style, script)
    body = add(root, "body")
    main = add(body, "main")
    _add_header(main, report)
    for name, heading, fill in _sections(report):
        section = add(main, "section", id=name, aria_labelledby=f"{name}-heading")
        add(section, "h2", text=heading, id=f"{name}-heading")
        fill(section)
    if report.lanes is not None:
        add_json(body, "data", data_of(report.lanes))
        add(body, "script").text = script
    return MARK + as_html(root) + "\n"


def _sections(report: Report) -> Iterator[tuple[str, str, Callable[[Element], None]]]:
    """Yield the id, the heading and what fills each section that has something to show."""
    if report.lanes is not None:
        yield "windows", "Windows over time", partial(add_lanes, lanes=report.lanes)
    if report.over_time is not None:
        yield "time", "Rows over time", partial(add_over_time, found=report.over_time)
    if report.lengths is not None or report.sizes is not None or report.reasons:
        yield "distributions", "Distributions", partial(add_distributions, report=report)
    if report.calendar is not None:
        yield "units", "Units", partial(add_calendar, calendar=report.calendar)
    if report.accounts:
        yield "account", "Account of rows", partial(add_accounts, report=report)
    if report.phases:
        yield "phases", "Where the time went", partial(add_phases, report=report)
    yield "job", "The job in words", partial(add_job, report=report)


def _add_head(root: Element, report: Report, style: str, script: str) -> None:
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    add(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add(head, "meta", name="color-scheme", content="light dark")
    add(head, "title", text=f"{report.path}: windows")
    add(head, "link", rel="icon", href="data:,")
    add(head, "style").text = style


def _add_header(main: Element, report: Report) -> None:
    header = add(main, "header")
    add(header, "p", "kind", {"state": "State", "range": "Results of a range", "result": "Result"}[report.what])
    add(header, "h1", text=report.path)
    add(header, "p", "spec", report.window)
    add(header, "p", "lead", _lead(report))
    if report.notes:
        notes = add(header, "ul", "notes", aria_label="Notes")
        for note in report.notes[:20]:
            add(notes, "li", text=note)
        if len(report.notes) > 20:
            add(notes, "li", text=f"and {len(report.notes) - 20:,} more")


def _lead(report: Report) -> str:
    """Return what was read and what came out, in one or two sentences."""
    totals = dict(report.totals)
    text = f"{_count(totals['rows in'], 'row')} of {_count(totals['input files'], 'file')}"
    text += f" ({bytes_text(totals['input bytes'])})"
    if "windows" in totals:
        text += f" became {_count(totals['windows'], 'window')}"
        text += f" of {_count(totals['keys'], 'key')}" if "keys" in totals else ""
    text += f"; {totals['rejected']:,} rows were rejected." if totals["rejected"] else "; no row was rejected."
    if "units" in totals:
        text += f" {_count(totals['units'], 'unit')}, {_count(totals['gaps'], 'gap')}."
    if totals.get("open windows"):
        text += f" {_count(totals['open windows'], 'window')} still open."
    seconds = dict(report.phases).get("total")
    return text if seconds is None else f"{text} It took {seconds_text(seconds)}."


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
