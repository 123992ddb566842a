"""A report as one HTML page that needs nothing else, no file and no server: its values as JSON, and the script of all
pages, which draws them.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from ....windowing.errors import shown
from ...console.row_account import WORDS
from .report import Lane, Lanes, Report

MOST_BYTES = 2_000_000
LONGEST = 300
"""Letters of one text; what is longer is cut."""
_MOST = 20
"""Stages, expectations and notes that a page has."""
MARK = "<!doctype html><!-- report of wincli -->"
"""How a page begins; only a file that begins so is replaced."""
_PAGE = """\
<html lang="en"><head><meta charset="utf-8">\
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src '{style_hash}'; \
script-src '{script_hash}'; base-uri 'none'; form-action 'none'">\
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">\
<title>{title}</title><link rel="icon" href="data:,"><style>{style}</style></head>\
<body><main><noscript>This page is drawn by its script, which this browser does not run.</noscript></main>\
<script id="data" type="application/json">{data}</script><script>{script}</script></body></html>
"""


def page_of(report: Report) -> str:
    """Return the page, at most `MOST_BYTES` in UTF-8."""
    texts = {name: (files(__package__) / name).read_text("utf-8") for name in ("page.css", "page.js", "lanes.js")}
    style, script = texts["page.css"], f'"use strict";\n(() => {{\n{texts["page.js"]}\n{texts["lanes.js"]}}})();\n'
    hashes = (f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}" for text in (style, script))
    parts = dict(zip(("style_hash", "script_hash"), hashes, strict=True), style=style, script=script)
    title = escape(safe(f"{report.path}: windows"))
    while True:
        page = MARK + _PAGE.format(**parts, title=title, data=json_of(report))
        bars = [len(lane.starts) for lane in report.lanes.lanes] if report.lanes else []
        if len(page.encode()) <= MOST_BYTES or max(bars, default=0) < 2:
            return page
        assert report.lanes is not None
        lanes = replace(report.lanes, lanes=tuple(lane.halved() for lane in report.lanes.lanes))
        report = replace(report, lanes=lanes)


def safe(text: str) -> str:
    """Return a text without unsafe characters, cut to `LONGEST` letters."""
    return shown(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def json_of(report: Report) -> str:
    """Return what was measured, as JSON in which nothing can end the element that holds it.

    Keys that are values of data stand in pairs: an object of a script has an order and names of its own.
    """
    notes, accounts = report.notes, []
    for name, account in list(report.accounts.items())[:_MOST]:
        rejected = sorted(account.rejected.items(), key=lambda each: -each[1])[:12]
        accounts.append((name, asdict(account) | {"rejected": rejected, "balanced": account.balanced}))
    if len(notes) > _MOST:
        notes = (*notes[:_MOST], f"and {len(notes) - _MOST:,} more")
    told = asdict(
        replace(
            report,
            lanes=None,
            accounts={},
            notes=notes,
            clauses=report.clauses[:200],
            settings=report.settings[:100],
            expectations=report.expectations[:_MOST],
        )
    )
    told |= {"totals": dict(report.totals), "accounts": accounts, "stages": len(report.accounts), "words": WORDS}
    told = _plain(told) | {"lanes": None if report.lanes is None else _lanes(report.lanes)}
    text = json.dumps(told, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _lanes(lanes: Lanes) -> dict[str, Any]:
    """Return the lanes: starts as steps from the one before, and lengths, which take half as many digits."""
    end = 1 if lanes.axis.scale == "window" else 0
    filled = [lane for lane in lanes.lanes if len(lane.starts)]
    spans = [(lane.starts.min().item(), lane.ends.max().item() + end) for lane in filled]
    spans += [(lane.held.start, lane.held.end) for lane in lanes.lanes if lane.held]
    low, high = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else (0, 1)

    def told(lane: Lane) -> dict[str, Any]:
        starts, held = lane.starts - low, lane.held
        return {
            "key": safe(lane.key),
            "is_chosen": lane.is_chosen,
            "windows": lane.windows,
            "rows": lane.rows,
            "starts": np.nan_to_num(np.diff(starts, prepend=starts[:1] * 0)).tolist(),
            "lengths": np.nan_to_num(lane.ends - lane.starts).tolist(),
            "sizes": None if lane.sizes is None else lane.sizes.tolist(),
            "counts": lane.counts.tolist() if (lane.counts > 1).any() else None,  # else each bar is one window
            "held": None if held is None else [held.start - low, held.end - held.start, held.rows],
        }

    about = {"keys": lanes.keys, "missed": lanes.missed, "is_by_rows": lanes.is_by_rows}
    return {"axis": _plain(asdict(lanes.axis)), **about, "low": low, "high": high, "lanes": [*map(told, lanes.lanes)]}


def _plain(value: Any) -> Any:
    """Return a value with safe texts, and with numbers that JSON can hold."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return max(-sys.float_info.max, min(value, sys.float_info.max))
    return value
