"""The process that makes an archive of Java's classes, at the lowest priority, after a run has ended.

It starts Spark once more, does in small what a run does, and has Java write down which classes that loaded. No run
waits for it. The archive is put in place complete or not at all, and failures are silent.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import SparkError, WincliError
from .boot import SparkExecutor, start
from .class_archive import Archive

_MASTER = "local[2]"
_PATIENCE = 300.0
_MOST_SECONDS = 1800
_MOST_ARCHIVES = 3
_MAKING = "making-"


def main() -> None:
    """Make the archive that the JSON on stdin describes."""
    os.nice(19)
    signal.alarm(_MOST_SECONDS)  # then the system ends it: a Java that hangs must not keep the lock for ever
    order = json.load(sys.stdin)
    archive = Archive(Path(order["folder"]), order["key"], order["ahead"])
    make(archive, lambda target: train(archive, target, order["settings"]))


def make(archive: Archive, write: Callable[[Path], object]) -> None:
    """Let ``write`` write the archive, unless one exists or another process is writing it; then remove the oldest.

    Where ``write`` writes nothing or raises a `WincliError`, an empty file records that. Nothing is made in a folder
    where others can write.
    """
    archive.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if archive.refusal() is not None:
        return
    with (archive.folder / "making.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        _tidy(archive)
        if archive.sizes():
            return
        target = archive.folder / f"{_MAKING}{os.getpid()}.jsa"
        try:
            write(target)
        except WincliError:
            target.unlink(missing_ok=True)
        _put(target, archive)
        _tidy(archive)


def _put(written: Path, archive: Archive) -> None:
    """Give the archive its name once it is completely on the disk; else a power cut could leave one of zeros."""
    handle = os.open(written, os.O_RDONLY | os.O_CREAT, 0o600)
    os.fsync(handle)
    size = os.fstat(handle).st_size
    os.close(handle)
    written.rename(archive.path_for(size))


def train(archive: Archive, target: Path, settings: Mapping[str, str]) -> None:
    """Run Spark in small with these settings, and have its Java write ``target`` when it ends.

    Raises `SparkError` where any of that fails.
    """
    options = shlex.join(archive.write_options(target))
    session = start(_MASTER, {"spark.driver.extraJavaOptions": options}, settings)
    try:
        exercise(session)
    finally:
        code = session.stop(_PATIENCE)
    if code:
        raise SparkError(f"Java ended with exit code {code} when it was to write its classes down", None)


def exercise(session: SparkExecutor) -> None:
    """Do what runs do: tasks without and with an exchange, a broadcast, a look at the progress."""
    session.on_progress = lambda _: None
    session.broadcast(b"")
    session.map("train", _same, range(4))
    session.shuffle("train", _pairs, _received, range(2), 2)


def _same(item: int) -> int:
    return item


def _pairs(items: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    return ((item, b"") for item in items)


def _received(_: int, pairs: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    return pairs


def _tidy(archive: Archive) -> None:
    found = [(path, path.stat()) for path in archive.folder.glob("java-*.jsa")]
    short = [path for path, state in found if not path.name.endswith(f"-{state.st_size}.jsa")]
    whole = [
        (max(state.st_atime, state.st_mtime), path) for path, state in found if state.st_size and path not in short
    ]
    for path in (
        *archive.folder.glob(f"{_MAKING}*.jsa*"),
        *short,
        *(path for _, path in sorted(whole)[:-_MOST_ARCHIVES]),
    ):
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
