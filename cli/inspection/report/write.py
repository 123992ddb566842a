"""``wincli report``: the page of a report is written to a file, whole or not at all, or to stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ....windowing.errors import ConfigError
from ....writers.folders.atomic_file import attempt_at, writing
from ....writers.folders.os_errors import output_errors
from ...console.counts import count_of
from ...console.messages import Messages
from .gather import gather_report
from .page.document import MARK, page_of
from .page.quantities import bytes_text

_MOST_NOTES = 10


def write_report(path: str, output: str, only: Sequence[str], messages: Messages) -> None:
    """Write the report on ``path`` to the file ``output``, or to stdout where that is ``-``.

    ``only``: texts ``COLUMN=VALUE`` that choose keys. Raises as `gather_report` does, `ConfigError` where the file
    exists and is no report, `OutputError` where it cannot be written.
    """
    target = Path(output)
    if output != "-":
        _check_target(target, output)
    report = gather_report(path, only)
    _tell(report.notes, messages)
    page = page_of(report)
    if output == "-":
        sys.stdout.buffer.write(page.encode())
        return
    with output_errors(output), writing(target, attempt_at(target)) as attempt:
        attempt.write_bytes(page.encode())
    messages.summary(f"{output}: {bytes_text(len(page.encode()))}, open it in a browser", bytes=len(page.encode()))


def _tell(notes: Sequence[str], messages: Messages) -> None:
    for note in notes[:_MOST_NOTES]:
        messages.note(note)
    if len(notes) > _MOST_NOTES:
        messages.note(f"there are {count_of(len(notes) - _MOST_NOTES, 'more note')} of this kind")


def _check_target(target: Path, output: str) -> None:
    """Check before the work that the file may be written."""
    with output_errors(output):
        if target.is_dir():
            raise ConfigError(f"-o {output} is a folder", "name a file, such as report.html")
        if not target.parent.is_dir():
            raise ConfigError(f"-o {output}: there is no folder {target.parent}", "make it first")
        if target.exists() and not _may_be_replaced(target):
            raise ConfigError(f"-o {output} exists and is no report", "name another file, or remove it")


def _may_be_replaced(target: Path) -> bool:
    """Whether a file is a report, or empty, as that of ``mktemp`` is."""
    if not target.is_file():
        return False
    with target.open("rb") as file:
        return file.read(len(MARK)) in (MARK.encode(), b"")
