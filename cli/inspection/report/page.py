"""A report as one HTML page that needs nothing else, no file and no server: its values as JSON, and the script of all
pages, which draws them.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from ....windowing.errors import shown
from ...console.lanes import Lane
from ...console.row_account import WORDS

Report = Mapping[str, Any]
"""The values of a page, as `report_of` makes them; texts have no secrets, and are not escaped."""

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
    title = escape(safe(f"{report['path']}: windows"))
    while True:
        page = MARK + _PAGE.format(**parts, title=title, data=json_of(report))
        lanes = report["lanes"]
        if len(page.encode()) <= MOST_BYTES or lanes is None or all(len(lane.starts) < 2 for lane in lanes["lanes"]):
            return page
        report = {**report, "lanes": {**lanes, "lanes": [lane.halved() for lane in lanes["lanes"]]}}


def safe(text: str) -> str:
    """Return a text without unsafe characters, cut to `LONGEST` letters."""
    return shown(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def json_of(report: Report) -> str:
    """Return what was measured, as JSON in which nothing can end the element that holds it.

    Keys that are values of data stand in pairs: an object of a script has an order and names of its own.
    """
    notes, accounts = report["notes"], []
    for name, account in list(report["accounts"].items())[:_MOST]:
        rejected = sorted(account.rejected.items(), key=lambda each: -each[1])[:12]
        accounts.append((name, account.recorded() | {"rejected": rejected, "balanced": account.balanced}))
    if len(notes) > _MOST:
        notes = (*notes[:_MOST], f"and {len(notes) - _MOST:,} more")
    cut = {"clauses": 200, "settings": 100, "expectations": _MOST}
    told = {**report, "notes": notes, **{name: report[name][:most] for name, most in cut.items()}}
    told |= {"lanes": None, "accounts": accounts, "stages": len(report["accounts"]), "words": WORDS}
    told = _plain(told) | {"lanes": None if report["lanes"] is None else _lanes(report["lanes"])}
    text = json.dumps(told, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _lanes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lanes: starts as steps from the one before, and lengths, which take half as many digits."""
    lanes, end = found["lanes"], 1 if found["axis"]["scale"] == "window" else 0
    spans = [(lane.starts.min().item(), lane.ends.max().item() + end) for lane in lanes if len(lane.starts)]
    spans += [lane.held[:2] for lane in lanes if lane.held]
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
            "sizes": None if lane.values is None else lane.values.tolist(),
            "counts": lane.counts.tolist() if (lane.counts > 1).any() else None,  # else each bar is one window
            "held": None if held is None else [held[0] - low, held[1] - held[0], held[2]],
        }

    about = _plain({name: each for name, each in found.items() if name != "lanes"})
    return {**about, "low": low, "high": high, "lanes": [*map(told, lanes)]}


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
