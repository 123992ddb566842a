"""A file of text that a command writes beside its result: a report, or a job."""

from __future__ import annotations

from pathlib import Path

from ...windowing.errors import OutputError, printable


def write_text(path: str, text: str) -> None:
    """Write a text to a file, which is replaced. Raises `OutputError` where it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{printable(path)} cannot be written: {error.strerror}", "name another file") from None
