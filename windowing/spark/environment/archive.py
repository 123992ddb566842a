"""The archive of an environment: packed once, and kept in the user's cache folder under a hash of what is in it.

The hash is taken of names, sizes and times of all files, so that an environment in which anything was installed,
removed or edited is packed anew. Spark unpacks the archive once for each executor, beside its working files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, SparkError
from ...support.trusted_folders import planted, way_in
from ..class_archive import cache_folder
from . import interpreter, packages

_RECIPE = 1  # increased when existing archives must not be used any more
_KEPT = 2  # one for jobs with code of the user, one for those without
_IN_USE = 86400.0  # seconds for which an archive stays: executors that start later still fetch it from there
_LEVEL = 1  # measured: 559 MB to 202 MB in 6 s of processor time; level 6: to 180 MB in 20 s
_LONGEST = 3600.0  # seconds without a byte, after which a packer is dead
_LAUNCHER = "bin/python"


@dataclass(frozen=True, slots=True)
class Environment:
    """What an archive holds.

    ``files``: names in the archive, and the files, in the order of the names.
    ``key``: a hash of the names, sizes and times.
    """

    files: Sequence[tuple[str, Path]]
    key: str


def pack_environment(folder: Path, environ: Mapping[str, str], is_whole: bool, note: Callable[[str], None]) -> Path:
    """Return the path of the archive of this process's environment; pack it unless the cache has it.

    ``folder``: where it is packed if there is no cache folder that this user alone can write. ``is_whole``: whether all
    installed packages are in it, and not only those that wincli requires. ``note``: called with what the user should
    know. Raises `ConfigError` where this system is no Linux, `SparkError` where the archive cannot be written.
    """
    if sys.platform != "linux":
        raise ConfigError(
            "--ship-environment packs programs of Linux, and this is another system",
            "submit from Linux, or install wincli's packages on the cluster: see docs/cluster.md",
        )
    environment = list_environment(is_whole)
    place, why = _place(folder, environ)
    if why:
        note(f"the environment is packed for this run alone, for {why}")
    target = place / f"environment-{environment.key}.tar.gz"
    try:
        if not _is_usable(target):
            _pack_into(target, environment, note)
        os.utime(target)
        _remove_old(place)
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or target}"
        raise SparkError(f"the environment cannot be packed: {reason}", "name a cache folder: XDG_CACHE_HOME") from None
    return target


def list_environment(is_whole: bool) -> Environment:
    """Return what is to be packed of this process's environment."""
    found = dict(sorted({**dict(packages.files(is_whole)), **dict(interpreter.files())}.items()))
    digest = hashlib.sha256(f"{_RECIPE} {sys.version} {interpreter.LAUNCHER}".encode())
    for name, path in found.items():
        status = path.stat()
        digest.update(f"\n{name}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
    return Environment(tuple(found.items()), digest.hexdigest()[:32])


def write_archive(target: Path, environment: Environment) -> None:
    """Write an environment to ``target``, with the shared libraries that its programs need. Raises `OSError`."""
    programs = [path for name, path in environment.files if name == interpreter.PROGRAM or ".so" in Path(name).name]
    with tarfile.open(target, "w:gz", compresslevel=_LEVEL) as archive:
        _add_text(archive, _LAUNCHER, interpreter.LAUNCHER)
        _add_link(archive, f"{interpreter.LIBRARY}/dist-packages", "site-packages")  # where a Python of Debian looks
        for name, path in (*environment.files, *interpreter.shared_libraries(programs)):
            entry = archive.gettarinfo(os.path.realpath(path), name)
            entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""
            with Path(path).open("rb") as file:
                archive.addfile(_as_file(entry, path), file)


def _as_file(entry: tarfile.TarInfo, path: Path) -> tarfile.TarInfo:
    """Return an entry as that of a file by itself: one with several links would be packed as a link to another."""
    entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
    return entry


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), 0o755
    archive.addfile(entry, io.BytesIO(text.encode()))


def _add_link(archive: tarfile.TarFile, name: str, to: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, to
    archive.addfile(entry)


def _place(folder: Path, environ: Mapping[str, str]) -> tuple[Path, str | None]:
    """Return the folder for the archive, and why it is not the cache folder if there is one that is not used."""
    cache = cache_folder(environ)
    if cache is None:
        return folder, None
    why = way_in(cache)
    return (cache, None) if why is None else (folder, why)


def _is_usable(target: Path) -> bool:
    """Whether an archive is there and nobody else has written it; it gets its name only when it is complete."""
    return target.is_file() and planted([target]) is None


def _pack_into(target: Path, environment: Environment, note: Callable[[str], None]) -> None:
    """Pack an environment under another name, and rename it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    attempt = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        write_archive(attempt, environment)
        size = attempt.stat().st_size
        attempt.replace(target)
    finally:
        attempt.unlink(missing_ok=True)
    note(
        f"packed the environment for executors in {time.monotonic() - started:.0f} s: {target}, {size >> 20:,} MiB; "
        "it is packed again only when it changes"
    )


def _remove_old(folder: Path) -> None:
    """Remove archives but those used last or of late, and what killed packers left."""
    for path in sorted(folder.glob("environment-*.tar.gz"), key=_last_use)[:-_KEPT]:
        if time.time() - _last_use(path) > _IN_USE:
            path.unlink(missing_ok=True)
    for path in folder.glob(".environment-*.tar.gz.*"):
        if time.time() - _last_use(path) > _LONGEST:
            path.unlink(missing_ok=True)


def _last_use(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return time.time()
