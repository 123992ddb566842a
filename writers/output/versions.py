"""The versions of what can influence a result, from the metadata of installed packages: nothing is imported."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

_PACKAGES = ("wincli", "pyspark", "pyarrow", "numpy", "numba")


def versions() -> dict[str, str | None]:
    """Return the versions of wincli, of Python and of the packages that can influence a result.

    The version is None for a package that is not installed, such as wincli when run from its source folder.
    """
    return {**{name: version_of(name) for name in _PACKAGES}, "python": platform.python_version()}


@cache  # each unit of a range records them, and metadata are read as a mail is: 1 ms a package
def version_of(package: str) -> str | None:
    """Return the version of a package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
