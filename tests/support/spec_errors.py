"""What a user sees of a mistake in a window, an aggregate or a duration."""

from collections.abc import Callable

import pytest

from wincli.windowing.errors import SpecError


def message(parse: Callable[[str], object], text: str) -> str:
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)
