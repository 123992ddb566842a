"""The machine: memory, cores, space, limits, permissions and clock."""

from __future__ import annotations

import datetime as dt
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...conf.spark import heap_mb, memory_bytes, usable_cores
from ...windowing.errors import WincliError
from ...windowing.spark.class_archive import SWITCH, cache_folder
from ...windowing.spark.setup import NEEDED, temporary_place
from ...windowing.spark.temporary_folders import PREFIX
from ...windowing.support.trusted_folders import way_in
from ..console.amounts import count_of

# One thing that was checked, and how: what a user did wrong or a machine lacks is an answer, and no error.


Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one thing.

    ``name``: the thing.
    ``level``: ``ok``; ``warn``: runs work, but not well, or not all; ``fail``: runs do not work.
    ``what``: what was found, in words.
    ``do``: what to do about it; empty where it is ok.
    """

    name: str
    level: Level
    what: str
    do: str = ""


def warn_of(name: str, note: str, do: str = "") -> Check:
    """Return a note, ``what; do``, as a check that warns. ``do``: what to do where the note does not say it."""
    what, _, advice = note.partition("; ")
    return Check(name, "warn", what, advice or do)


Look = Callable[[], Check | Iterator[Check]]


def run_check(name: str, look: Look) -> Iterator[Check]:
    """Yield what ``look`` finds, as it is found; where it cannot look, that is a fail."""
    try:
        found = look()
        if isinstance(found, Check):
            yield found
        else:
            yield from found
    except WincliError as error:
        yield Check(name, "fail", error.what, error.do or "")
    except Exception as error:  # whatever a broken machine raises is an answer, and other checks go on
        text = (str(error).splitlines() or [""])[0]
        yield Check(
            name, "fail", f"{type(error).__name__}: {text}", "mend it, or report what wincli doctor --json prints"
        )


_GB = 1 << 30
_USUAL_FILES = 1024
_LEAST_MEMORY, _LEAST_FREE = 2 * _GB, _GB
_LEAST_SPACE, _ENOUGH_SPACE = _GB, 10 * _GB
_LEAST_INODES = 10_000
_MOST_SKEW = 2.0
"""Seconds by which the clock of a file system may differ: a run sees by their times whether files have changed."""
_OLDEST_YEAR = 2025


def check_memory() -> Check:
    """Check the memory of the machine or the container, and what is free of it."""
    total, free = memory_bytes(), _available()
    what = f"{total / _GB:.1f} GiB" + (f", {free / _GB:.1f} free" if free is not None else "")
    what += f"; Java gets {heap_mb(total) / 1024:.1f} of it"
    if total < _LEAST_MEMORY or (free is not None and free < _LEAST_FREE):
        return Check("memory", "warn", what, "free some, or run fewer tasks at a time: --master 'local[1]'")
    return Check("memory", "ok", what)


def _available() -> int | None:
    """Return the bytes of memory that can be had without swapping; None where the system does not say."""
    path = Path("/proc/meminfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else min(int(found) * 1024, memory_bytes())


def check_cores() -> Check:
    """Check how many cores this process may use."""
    usable, quota = usable_cores(), _quota()
    if quota is not None and quota < usable:
        tasks = max(1, round(quota))
        what = f"{usable}, and the container may use {quota:g} of them at a time"
        return Check("cores", "warn", what, f"run as many tasks as that: --master 'local[{tasks}]'")
    return Check("cores", "ok", f"{usable}")


def _quota() -> float | None:
    """Return how many cores the container may use; None: there is no limit."""
    path = Path("/sys/fs/cgroup/cpu.max")
    limit, _, period = (path.read_text().strip() if path.exists() else "").partition(" ")
    return int(limit) / int(period) if limit.isdigit() and period.isdigit() else None


def check_temporary(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the folders for temporary files: the blocks of an exchange take about the bytes of its columns."""
    place, notes = temporary_place()
    yield from (warn_of("temporary", note) for note in notes)
    named = [part.strip() for part in environ.get("SPARK_LOCAL_DIRS", "").split(",") if part.strip()]
    for folder in dict.fromkeys([place, *named]):
        yield _space(folder)
    left = [path for path in Path(place).glob(f"{PREFIX}*") if path.stat().st_uid == os.geteuid()]
    if left:
        what = f"{count_of(len(left), 'folder')} of runs that run now, or were killed, in {place}"
        yield Check("temporary", "ok", f"{what}; the next run removes those of killed ones")


def _space(folder: str) -> Check:
    usage, state = shutil.disk_usage(folder), os.statvfs(folder)
    what = f"{usage.free / _GB:.1f} GiB free in {folder}"
    faults: tuple[tuple[bool, Level, str], ...] = (
        (bool(state.f_flag & os.ST_RDONLY), "fail", ", which is read-only"),
        (usage.free < _LEAST_SPACE, "fail", ""),
        (bool(state.f_files) and state.f_favail < _LEAST_INODES, "warn", f", and room for {state.f_favail:,} files"),
        (bool(state.f_flag & getattr(os, "ST_NOEXEC", 0)), "warn", ", from which no library can be loaded (noexec)"),
        (_is_in_memory(folder), "warn", ", which is in memory (tmpfs)"),
        (usage.free < _ENOUGH_SPACE, "warn", ""),
    )
    for is_so, level, words in faults:
        if is_so:
            do = "free some, or name another folder: TMPDIR=FOLDER, or --spark-conf spark.local.dir=FOLDER"
            return Check("temporary", level, what + words, do)
    return Check("temporary", "ok", what)


def _is_in_memory(folder: str) -> bool:
    mounts = Path("/proc/mounts")
    lines = [line.split() for line in mounts.read_text().splitlines()] if mounts.exists() else []
    own = os.path.realpath(folder)
    above = [(point, kind) for _, point, kind, *_ in lines if point == "/" or f"{own}/".startswith(f"{point}/")]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1] == "tmpfs"


def check_files() -> Check:
    """Check how many files may be open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    what = f"{'unlimited' if soft == unlimited else f'{soft:,}'} may be open at once"
    if hard != unlimited and hard < NEEDED:
        return Check("open files", "fail", f"{what}, and Spark needs {NEEDED}", "raise the limit: ulimit -n 4096")
    if soft != unlimited and soft < _USUAL_FILES:
        return Check("open files", "warn", f"{what}, and {_USUAL_FILES:,} are usual", "raise the limit: ulimit -n 4096")
    return Check("open files", "ok", what)


def check_cache(environ: Mapping[str, str]) -> Check:
    """Check the folder in which Java's classes are kept, which halves the time that Java takes to start."""
    folder = cache_folder(environ)
    if folder is None:
        why = f"{SWITCH} is off" if environ.get(SWITCH) == "off" else "there is no HOME"
        return Check("cache", "warn", f"Java's classes are not kept between runs: {why}", "set HOME or XDG_CACHE_HOME")
    if why_not := way_in(folder):
        do = "make it yours alone (chown, chmod go-w)"
        return Check("cache", "warn", f"Java's classes are not kept between runs, for {why_not}", do)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        do = "make it writable, or name another with XDG_CACHE_HOME"
        return Check("cache", "warn", f"{there} cannot be written, so each run starts Java anew", do)
    sizes = [path.stat().st_size for path in folder.glob("java-*.jsa")] if folder.exists() else []
    kept = f", {sum(sizes) / (1 << 20):,.0f} MiB" if sizes else ", empty: the first run that ends well fills it"
    return Check("cache", "ok", f"{folder}{kept}")


def check_folder() -> Check:
    """Check that the working folder can be written, where outputs go that are named without a folder."""
    try:
        with tempfile.TemporaryDirectory(dir=".", prefix=".wincli-doctor-"):
            return Check("folder", "ok", f"{Path.cwd()} can be written")
    except OSError as error:
        here = "the working folder"
        with suppress(OSError):
            here = str(Path.cwd())
        do = "name outputs in folders that can be, or change the folder"
        return Check("folder", "warn", f"{here} cannot be written: {error.strerror}", do)


def check_clock() -> Check:
    """Check the clock, and that of the file system of temporary files."""
    now = dt.datetime.now().astimezone()
    what = f"{now.isoformat(timespec='seconds')}"
    if now.year < _OLDEST_YEAR:
        return Check("clock", "fail", f"it says {what}", "set the clock of this machine")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"wincli")
        file.flush()
        skew = os.fstat(file.fileno()).st_mtime - time.time()
    if abs(skew) > _MOST_SKEW:
        do = "set the clocks (ntp): a run sees by times of files whether an input has changed"
        return Check("clock", "warn", f"{what}, and that of the file system differs by {skew:+.1f} s", do)
    return Check("clock", "ok", what)
