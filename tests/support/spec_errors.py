"""What a user sees of a mistake in a window, an aggregate or a duration."""

from collections.abc import Callable

import pytest

from support.places import blocks_of
from wincli.windowing.errors import SpecError


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the mistakes in a text of ``tests/cases``, and what is shown of each, of which the second line has it."""
    return [(block.split("\n")[1][2:], block) for block in blocks_of(name)]


def message(parse: Callable[[str], object], text: str) -> str:
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)
