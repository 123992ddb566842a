"""Which stage a message is about, where a job has several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cli.asked import Asked
from windowing.errors import WincliError


def about(asked: Asked, stage: str) -> str:
    """Return what a message about a stage begins with: ``stage sites: ``, or nothing where there is only one."""
    return f"stage {stage}: " if len(asked.stages) > 1 else ""


@contextmanager
def errors_about(asked: Asked, stage: str) -> Iterator[None]:
    """Let every `WincliError` of the body say which stage it is of."""
    try:
        yield
    except WincliError as error:
        error.what = about(asked, stage) + error.what
        raise
