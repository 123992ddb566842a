"""Make the folders above an output or of a state, and take them back where nothing came of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...windowing.errors import OutputError
from .os_errors import output_errors


def make_folders(folder: Path, shown: str) -> list[Path]:
    """Make a folder and its missing parents; return the folders that were missing, innermost first.

    Raises `OutputError` that names ``shown``, after removing the folders it has made.
    """
    missing: list[Path] = []
    try:
        with output_errors(shown):
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
    except OutputError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty; innermost first."""
    for folder in folders:
        with suppress(OSError):  # it was never made, or another run writes to it by now
            folder.rmdir()
