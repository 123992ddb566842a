"""Texts for stdout, as `cli.console.messages` has those for stderr. Data, such as rows of CSV, goes to its bytes."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from ...windowing.errors import UNSAFE

_UNSAFE = re.compile(f"(?!\n)[{UNSAFE}]")


def say(*lines: str) -> None:
    """Print lines, at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def json_text(value: Any, indent: int | None = None, *, is_ascii: bool = True) -> str:
    """Return a value as JSON in which a terminal finds nothing but text; what is no JSON value is its text."""
    text = json.dumps(value, default=str, indent=indent, ensure_ascii=is_ascii)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
