"""Texts that mean something to a browser, a script or a parser, and may be a name or a value of data."""

from __future__ import annotations

import json

from support.places import CASES

PAGE_TEXTS: tuple[str, ...] = (*json.loads((CASES / "hostile_texts.json").read_text()), "x" * 5000 + "<b>")
"""Forty and more texts; none may be more than text in a page. Code in them would say ``window.hit=1``."""
