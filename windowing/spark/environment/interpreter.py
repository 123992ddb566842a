"""Python itself, as files of an archive: its program, its standard library, and the shared libraries that these need.

A Python that is unpacked finds its library beside its program, wherever that is. Shared libraries of the system are
packed with it, except those of the C library, which only fit the kernel and the loader that they came with.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

PROGRAM = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
"""The program of Python in the archive."""

LIBRARY = f"{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"
"""The standard library in the archive."""

_LIBRARIES = "lib/shared"
_FOLDERS_LEFT_OUT = {"site-packages", "dist-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip"}
_FILES_LEFT_OUT = re.compile(r"_tkinter\.|_test|.*\.opt-[12]\.pyc$|.*\.a$")
_C_LIBRARY = re.compile(r"(ld-|linux-|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl|mvec|BrokenLocale|thread_db)[.-])")
_NEEDED = re.compile(r"=> (/\S+) \(0x")
_FILES_AT_ONCE = 200

LAUNCHER = f"""\
#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P) || exit
export LD_LIBRARY_PATH="$here/{_LIBRARIES}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" PYTHONNOUSERSITE=1
unset PYTHONHOME
exec "$here/{PROGRAM}" "$@"
"""
"""``bin/python`` in the archive: Python with the shared libraries beside it, without packages of the user there."""


def files() -> Iterator[tuple[str, Path]]:
    """Yield the program and the standard library: names in the archive, and the files."""
    yield PROGRAM, Path(os.path.realpath(sys.executable))
    for key in dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))):
        yield from _below(Path(key))


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a library, less tests, tools with windows, and what only a compiler reads."""
    for place, folders, names in os.walk(folder):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(
            name for name in folders if name not in _FOLDERS_LEFT_OUT and not name.startswith("config-")
        )
        for name in sorted(names):
            path = Path(place, name)
            if not _FILES_LEFT_OUT.match(name) and path.is_file():  # not a link to a file that is not installed
                yield (Path(LIBRARY) / inside / name).as_posix(), path


def shared_libraries(programs: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the libraries of the system that programs and extension modules need.

    Raises `OSError` where there is no ``ldd``.
    """
    given = [str(path) for path in programs]
    packed, found = {os.path.realpath(path) for path in given}, dict[str, Path]()
    for at in range(0, len(given), _FILES_AT_ONCE):
        command = ["ldd", *given[at : at + _FILES_AT_ONCE]]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found |= {Path(path).name: Path(path) for path in _NEEDED.findall(text)}
    for name, path in sorted(found.items()):
        if not _C_LIBRARY.match(name) and os.path.realpath(path) not in packed:
            yield f"{_LIBRARIES}/{name}", path
