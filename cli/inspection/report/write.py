"""``wincli report``: the page of a report is written to a file, whole or not at all, or to stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ....conf.ranges.path_templates import as_glob
from ...console.amounts import count_of
from ...console.messages import Messages
from ...console.side_file import SideFile, check_side_files, write_side_file
from .folders import read_folder
from .gather import report_of
from .page.document import MARK, page_of
from .page.quantities import bytes_text

_MOST_NOTES = 10


def write_report(path: str, output: str, only: Sequence[str], messages: Messages) -> None:
    """Write the report on ``path`` to the file ``output``, or to stdout where that is ``-``.

    ``only``: texts ``COLUMN=VALUE`` that choose keys. Raises as `report_of` does, `ConfigError` where the file
    exists and is no report or is in the folder that is reported on, `OutputError` where it cannot be written.
    """
    file = SideFile("-o", output, "a report", "report.html", lambda line: line.startswith(MARK.encode()))
    if output != "-":
        check_side_files([file], [("the result", path)])
    folder = read_folder(path)
    if output != "-":  # a relative input counts from here: the record has it as it was written
        check_side_files([file], [("an input of the result", as_glob(each)) for each in folder.job["input"]])
    report = report_of(path, folder, only)
    _tell(report.notes, messages)
    page = page_of(report)
    if output == "-":
        sys.stdout.buffer.write(page.encode())
        return
    write_side_file(file, page)
    messages.summary(f"{output}: {bytes_text(len(page.encode()))}, open it in a browser", bytes=len(page.encode()))


def _tell(notes: Sequence[str], messages: Messages) -> None:
    for note in notes[:_MOST_NOTES]:
        messages.note(note)
    if len(notes) > _MOST_NOTES:
        messages.note(f"there are {count_of(len(notes) - _MOST_NOTES, 'more note')} of this kind")
