"""Write a local file under another name and rename it: readers see all of the file or none of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import atomic_swap
from .place import new_token


@contextmanager
def writing(path: Path, attempt: Path, is_kept: bool = True) -> Iterator[Path]:
    """Yield ``attempt``, a path in the same folder to write to, and rename it to ``path``; after an error, delete it.

    ``is_kept``: whether the file is written to disk before it is renamed.
    """
    try:
        yield attempt
        if is_kept:
            atomic_swap.sync(attempt)
        attempt.replace(path)
    except BaseException:
        attempt.unlink(missing_ok=True)
        raise


def attempt_at(path: Path) -> Path:
    """Return a hidden name for one attempt at a file: attempts of a task may run at the same time, or be killed."""
    return path.with_name(f".{path.name}.{new_token()}")


def is_attempt(name: str) -> bool:
    """Whether a file is the leftover of a killed attempt."""
    return name.rpartition("/")[2].startswith(".")
