"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.browser import Browser, open_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found
