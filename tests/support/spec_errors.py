"""What a user sees of a mistake in a window, an aggregate or a duration."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wincli.windowing.errors import SpecError


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return the mistakes of a file, and what is shown of each: blocks of lines, of which the second has the text."""
    found = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [(block.split("\n")[1][2:], block) for block in found]


def message(parse: Callable[[str], object], text: str) -> str:
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)
