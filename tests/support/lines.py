"""The lines that code comes to: it can be ended before each of them, or what it has done until then be looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

WRITERS = ("/writers/", "/shutil.py")


@contextmanager
def at_each_line(call: Callable[[int], None], *places: str) -> Iterator[None]:
    """Call a function at each line that the body comes to, with the number of lines so far, from 1.

    ``places``: parts of the paths of files whose lines count; those of tests never do.
    """
    passed = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal passed
        name = frame.f_code.co_filename
        if "/tests/" in name or not any(place in name for place in places):
            return None
        if event == "line":
            passed += 1
            call(passed)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
