"""What a user sees of a mistake in a window, an aggregate or a duration."""

from collections.abc import Callable

import pytest

from wincli.windowing.errors import SpecError


def mistakes(table: str) -> list[object]:
    blocks = table.strip("\n").split("\n\n")
    return [pytest.param(block.split("\n")[1][2:], block, id=block.split("\n")[1].strip()) for block in blocks]


def message(parse: Callable[[str], object], text: str) -> str:
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)
