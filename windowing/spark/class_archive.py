"""An archive of Java's classes, read, checked and linked beforehand, in the user's cache folder.

Half of the processor time that Java and Spark take to start goes into some 8,000 classes. Java can keep them in a file
that it only maps into memory: class data sharing, from Java 25 on the ahead-of-time cache. A file fits one Java and one
class path. Java itself checks whether it fits, and ignores it where it does not.

A run that finds no archive and ends well starts a process that makes one: `windowing.spark.class_archive_training`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..support.modules import FOLDER
from ..support.trusted_folders import planted, way_in
from .java import CLASS_PATH, CONF_FOLDERS, Java, spark_home

SWITCH = "WINCLI_CLASS_ARCHIVE"
"""Environment variable: with ``off`` no archive is used or made."""

_RECIPE = 1  # increased when existing archives must not be used any more
_TRIED_AGAIN = 86_400  # seconds
_AHEAD = 25  # the first Java that makes its cache in one step; it keeps linked lambdas, too
_OF_THE_USER = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "-XX:AOT")


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive for one Java and one class path, whether or not it exists.

    Its file is ``java-KEY-BYTES.jsa``, so that its name shows whether it is truncated. ``BYTES`` is 0 where none could
    be made; then none is tried again for a day: a machine without memory or time may have some then.

    ``key``: a hash of the Java and the class path.
    ``ahead``: whether it is an ahead-of-time cache.
    """

    folder: Path
    key: str
    ahead: bool

    def path_for(self, size: int) -> Path:
        """Return the path of an archive of ``size`` bytes."""
        return self.folder / f"java-{self.key}-{size}.jsa"

    def sizes(self) -> list[int]:
        """Return the sizes of complete files: an empty list, 0 where none could be made within a day, or one size."""
        with suppress(OSError):
            found, since = [(path, path.stat()) for path in self._files()], time.time() - _TRIED_AGAIN
            counting = [(path, state.st_size) for path, state in found if state.st_size or state.st_mtime >= since]
            return [size for path, size in counting if path == self.path_for(size)]
        return []

    def refusal(self) -> str | None:
        """Return why the folder is not used, or None: others could have written what Java would run."""
        return way_in(self.folder) or planted(self._files())

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"java-{self.key}-*.jsa"))

    def is_due(self) -> bool:
        """Whether to make one: none exists, none was tried, and only we can write the folder."""
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        return not self.sizes() and os.access(there, os.W_OK | os.X_OK) and self.refusal() is None

    def use_options(self) -> Sequence[str]:
        """Return the options with which Java uses the archive; none where it does not exist or is not to be trusted."""
        size = max(self.sizes(), default=0) if self.refusal() is None else 0
        option = "AOTCache" if self.ahead else "SharedArchiveFile"
        return (f"-XX:{option}={self.path_for(size)}", "-Xlog:disable") if size else ()

    def write_options(self, target: Path) -> Sequence[str]:
        """Return the options with which Java writes an archive when it ends."""
        return (f"-XX:{'AOTCacheOutput' if self.ahead else 'ArchiveClassesAtExit'}={target}",)


def archive_of(java: Java, settings: Mapping[str, str], environ: Mapping[str, str]) -> Archive | None:
    """Return the archive for a Java that is started with these settings in this environment.

    None where there must be none: with `SWITCH`, without a home, and where the user's options for Java name an archive.
    """
    folder = cache_folder(environ)
    own = settings.get("spark.driver.extraJavaOptions", "")
    java_options = " ".join([own, environ.get("JDK_JAVA_OPTIONS", ""), environ.get("JAVA_TOOL_OPTIONS", "")])
    if folder is None or any(word in java_options for word in _OF_THE_USER):
        return None
    extra, jars = settings.get(CLASS_PATH, ""), spark_home(environ) / "jars"
    ingredients = [_RECIPE, *_identity(Path(java.path).resolve()), extra, *_identity(jars)]
    key = hashlib.sha256(repr(ingredients).encode()).hexdigest()[:16]
    return Archive(folder, key, java.version >= _AHEAD)


def make_later(archive: Archive, settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Start a process that makes the archive for a Spark with these settings; nobody waits for it.

    It gets its orders through a pipe. Its Java gets no configuration folders: an archive is of jars alone.
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
    """Return ``wincli`` in the user's cache folder; None with `SWITCH` or without a home."""
    caches = (Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""), ".cache"))
    cache = next((path for path in caches if path.is_absolute()), None)
    return None if cache is None or environ.get(SWITCH) == "off" else cache / "wincli"


def _identity(path: Path) -> list[object]:
    with suppress(OSError):
        found = path.stat()
        return [str(path), found.st_size, found.st_mtime_ns]
    return [str(path)]
