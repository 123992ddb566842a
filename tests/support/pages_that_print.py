"""Pages whose Python is run, block by block, and whose text blocks show what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any


def run_page(text: str) -> list[tuple[str, str, str]]:
    """Run the Python blocks of a page in one namespace.

    Return of each block the code, what the text block right behind it shows, which may be empty, and what it printed.
    """
    names: dict[str, Any] = {}
    found = []
    for block in re.finditer(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], "page", "exec"), names)
        found.append((block[1], block[2] or "", printed.getvalue()))
    return found
