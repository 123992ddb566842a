"""What a folder of a test holds, hidden files included."""

from __future__ import annotations

from pathlib import Path


def names(folder: Path) -> list[str]:
    """What is in a folder, hidden names too."""
    return sorted(path.name for path in folder.iterdir())


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too, with what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
