"""Write a result to one stream: its part files one after the other, in the order of their names."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from ...windowing.support.formats import Format
from ..formats.encoder import encoder_of
from .sink import PART


def write_whole(folder: Path, format: Format, file: IO[bytes]) -> None:
    """Write the parts of a result to ``file`` as one file: with one header, or one footer. Raises `OSError`."""
    parts = sorted(folder.glob(f"{PART}*"), key=lambda part: (len(part.name), part.name))
    encoder_of(format).join(parts, file)
    file.flush()
