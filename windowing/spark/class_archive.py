"""Java's classes read, checked and linked beforehand: an archive in the user's cache folder.

Half of the processor time that Java and Spark take to start goes into some 8,000 classes. Java can keep them in a file
that it only maps: class data sharing, from Java 25 on the ahead-of-time cache. A file is of one Java and one class
path. Java itself looks whether it fits, and goes without it where it does not.

A run that finds none leaves a process behind when it has ended well, which makes one:
`windowing.spark.class_archive_training`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..support.module_path import FOLDER
from ..support.trusted_folders import planted, way_in
from .java import CLASS_PATH, CONF_FOLDERS, Java, spark_home

SWITCH = "WINCLI_CLASS_ARCHIVE"
"""Environment variable: with ``off`` no archive is used or made."""

_RECIPE = 1  # counts on when archives should be made anew
_AHEAD = 25  # the first Java whose cache takes one step to make; it keeps what lambdas come to, too
_OF_THE_USER = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "-XX:AOT")


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the archive of one Java and one class path lies, whether or not it is there.

    Its file is ``java-KEY-BYTES.jsa``, so that one cut short is known by its name. ``BYTES`` is 0 where none could be
    made, and none is tried again. ``ahead``: it is an ahead-of-time cache.
    """

    folder: Path
    key: str
    ahead: bool

    def named(self, size: int) -> Path:
        """The path of the archive when it has so many bytes."""
        return self.folder / f"java-{self.key}-{size}.jsa"

    def sizes(self) -> list[int]:
        """The sizes of the files that are there and whole: none, 0 where none could be made, or one."""
        with suppress(OSError):
            found = [(path, path.stat().st_size) for path in self._files()]
            return [size for path, size in found if path == self.named(size)]
        return []

    def refusal(self) -> str | None:
        """Why nothing is taken from the folder or put there: others could have written what Java would run."""
        return way_in(self.folder) or planted(self._files())

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"java-{self.key}-*.jsa"))

    def is_due(self) -> bool:
        """Whether one should be made: none is there, none was tried, and the folder can be written, by us alone."""
        return not self.sizes() and _writable(self.folder) and self.refusal() is None

    def reading(self) -> Sequence[str]:
        """The options of a Java that is to use the archive; none where it is not there, or not to be trusted."""
        size = max(self.sizes(), default=0) if self.refusal() is None else 0
        option = "AOTCache" if self.ahead else "SharedArchiveFile"
        return (f"-XX:{option}={self.named(size)}", "-Xlog:disable") if size else ()

    def writing(self, target: Path) -> Sequence[str]:
        """The options of a Java that is to write an archive when it ends."""
        return (f"-XX:{'AOTCacheOutput' if self.ahead else 'ArchiveClassesAtExit'}={target}",)


def archive_of(java: Java, settings: Mapping[str, str], environ: Mapping[str, str]) -> Archive | None:
    """The archive for a Java that is started with these settings in this environment.

    None where there shall be none: with `SWITCH`, without a home, and where options for Java name an archive.
    """
    folder = cache_folder(environ)
    own = settings.get("spark.driver.extraJavaOptions", "")
    said = " ".join([own, environ.get("JDK_JAVA_OPTIONS", ""), environ.get("JAVA_TOOL_OPTIONS", "")])
    if folder is None or any(word in said for word in _OF_THE_USER):
        return None
    extra, jars = settings.get(CLASS_PATH, ""), spark_home(environ) / "jars"
    told = [_RECIPE, *_identity(Path(java.path).resolve()), extra, *_identity(jars)]
    key = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
    return Archive(folder, key, java.version >= _AHEAD)


def make_later(archive: Archive, settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Leave a process behind that makes the archive, for a Spark with these settings; nobody waits for it.

    It gets its orders through a pipe. Folders with configuration are not for its Java: an archive is of jars alone.
    """
    env = {name: value for name, value in environ.items() if name not in (*CONF_FOLDERS, FOLDER)} | {SWITCH: "off"}
    process = subprocess.Popen(
        [sys.executable, "-m", "wincli.windowing.spark.class_archive_training"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(
        json.dumps({**asdict(archive), "folder": str(archive.folder), "settings": {**settings}}).encode()
    )
    process.stdin.close()


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """``wincli`` in the user's cache folder, or None with `SWITCH` or without a home."""
    caches = (Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""), ".cache"))
    cache = next((path for path in caches if path.is_absolute()), None)
    return None if cache is None or environ.get(SWITCH) == "off" else cache / "wincli"


def _identity(path: Path) -> list[object]:
    """What changes when a file, or the files of a folder, become others."""
    with suppress(OSError):
        found = path.stat()
        return [str(path), found.st_size, found.st_mtime_ns]
    return [str(path)]


def _writable(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return os.access(there, os.W_OK | os.X_OK)
