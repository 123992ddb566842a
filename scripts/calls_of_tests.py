"""A plugin of pytest that notes which functions of the product each test file calls, and how long the file takes.

    CALLS_OF_TESTS=FOLDER python -m pytest -p calls_of_tests -n 2 --dist loadfile tests/unit

Each process writes one JSON file into the folder: test file -> seconds, and the functions as ``path:first line``.
Calls are seen in the process of the test alone: not those of kernels, and not those of processes that it starts.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = str(Path(__file__).resolve().parent.parent) + os.sep
PACKAGES = tuple(f"{each}{os.sep}" for each in ("cli", "conf", "readers", "windowing", "writers"))

calls: defaultdict[str, set[CodeType]] = defaultdict(set)
seconds: defaultdict[str, float] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    note = calls[str(item.path)].add

    def trace(frame: FrameType, _event: str, _value: object) -> None:
        note(frame.f_code)

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type] # as its documentation says


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[str(Path(ROOT, report.fspath))] += report.duration


def pytest_sessionfinish() -> None:
    found = {
        name.removeprefix(ROOT): {
            "seconds": seconds[name],
            "calls": sorted({place for code in codes if (place := _place(code))}),
        }
        for name, codes in calls.items()
    }
    if found:
        Path(os.environ["CALLS_OF_TESTS"], f"{os.getpid()}.json").write_text(json.dumps(found))


def _place(code: CodeType) -> str | None:
    path = str(Path(code.co_filename).resolve()).removeprefix(ROOT)
    return f"{path}:{code.co_firstlineno}" if path.startswith(PACKAGES) else None
