"""``wincli doctor``: memory, space, Java, Spark and stores, each printed when it is checked; or all as JSON.

What a user did wrong or a machine lacks is an answer here, and no error. What else a run misses, it says itself.
"""

from __future__ import annotations

import os
import platform
import shutil
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from ...conf.spark import heap_mb, memory_bytes, spark_settings
from ...windowing.errors import WincliError
from ...windowing.spark.boot import boot
from ...windowing.spark.java import OLDEST, find_java
from ...windowing.spark.setup import is_local, temporary_place
from ...windowing.support.amounts import count_of
from ...windowing.support.redaction import redacted_settings, secret_values, without
from ...writers.output.versions import versions
from ..console.messages import OK, UNEXPECTED
from ..console.streams import clean, has_colour, json_text, say, terminal_width

Level = Literal["ok", "warn", "fail"]

_GB = 1 << 30
_LEAST_MEMORY, _LEAST_FREE = 2 * _GB, _GB
_LEAST_SPACE, _ENOUGH_SPACE = _GB, 10 * _GB
_LEAST_INODES = 10_000
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m\x1b[1m"}
_PLAIN = "\x1b[0m"
_NAME = 12
_WIDTH = 110
_ACCOUNTS = ("AWS_", "AZURE_", "GOOGLE_")
"""The values of these variables are names of accounts and files at best: only that they are set is printed."""
_RELEVANT = ("WINCLI_", "SPARK_", "PYSPARK_", "JAVA_", "JDK_", "_JAVA_", "HADOOP_", "NUMBA_", *_ACCOUNTS)
_RELEVANT_NAMES = ("TMPDIR", "TZ", "LANG", "LC_ALL", "XDG_CACHE_HOME", "PYTHONPATH", "PYTHONIOENCODING")


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one thing.

    ``level``: ``ok``; ``warn``: runs work, but not well, or not all; ``fail``: runs do not work.
    ``do``: what to do about it; empty where it is ok.
    """

    name: str
    level: Level
    what: str
    do: str = ""


Look = Callable[[], Iterator[Check]]


def diagnose(stores: Sequence[str], master: str, starts_spark: bool, as_json: bool) -> int:
    """Check what runs need of this machine, print what was found, and return the exit code: 1 where something fails.

    ``stores``: paths and URIs to check, too. ``master``: the Spark to start, if ``starts_spark``.
    """
    found = []
    secrets = secret_values({}, (*stores, master), os.environ)  # errors of stores quote what they were given
    for told in run_checks(stores, master, starts_spark, os.environ):
        check = replace(told, what=without(told.what, secrets), do=without(told.do, secrets))
        found.append(check)
        if not as_json:
            say("\n".join(_lines(check, has_colour(), terminal_width() or _WIDTH)))
    if as_json:  # with what bug reports need besides
        names = [name for name in sorted(os.environ) if name.startswith(_RELEVANT) or name in _RELEVANT_NAMES]
        relevant = {name: "is set" if name.startswith(_ACCOUNTS) else os.environ[name] for name in names}
        report = {
            "checks": [{name: clean(text) for name, text in asdict(check).items()} for check in found],
            "versions": versions(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "environment": {name: clean(value) for name, value in redacted_settings(relevant).items()},
        }
        say(json_text(report, 2))
    else:
        counts = {"failed": "fail", "to look at": "warn"}
        words = [
            f"{count} {word}"
            for word, level in counts.items()
            if (count := sum(check.level == level for check in found))
        ]
        say(f"{count_of(len(found), 'check')}: {', '.join(words) or 'all is well'}")
    return UNEXPECTED if any(check.level == "fail" for check in found) else OK


def run_checks(stores: Sequence[str], master: str, starts_spark: bool, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield what each check finds, in the order in which a run would miss what is checked."""
    looks: list[tuple[str, Look]] = [
        ("memory", check_memory),
        ("temporary", partial(check_temporary, environ)),
        ("java", partial(check_java, environ)),
    ]
    if starts_spark:
        looks.append(("spark", partial(check_spark, master)))
    looks += [("store", partial(check_place, uri)) for uri in stores]
    for name, look in looks:
        yield from run_check(name, look)


def run_check(name: str, look: Look) -> Iterator[Check]:
    """Yield what ``look`` finds, as it is found; where it cannot look, that is a fail."""
    try:
        yield from look()
    except WincliError as error:
        yield Check(name, "fail", error.what, error.do or "")
    except Exception as error:  # whatever a broken machine raises is an answer, and other checks go on
        text = (str(error).splitlines() or [""])[0]
        do = "mend it, or report what wincli doctor --json prints"
        yield Check(name, "fail", f"{type(error).__name__}: {text}", do)


def check_memory() -> Iterator[Check]:
    """Check the memory of the machine or the container, and what is free of it."""
    total, free = memory_bytes(), _available()
    what = f"{total / _GB:.1f} GiB" + (f", {free / _GB:.1f} free" if free is not None else "")
    what += f"; Java gets {heap_mb(total) / 1024:.1f} of it"
    if total < _LEAST_MEMORY or (free is not None and free < _LEAST_FREE):
        yield Check("memory", "warn", what, "free some, or run fewer tasks at a time: --master 'local[1]'")
    else:
        yield Check("memory", "ok", what)


def _available() -> int | None:
    """Return the bytes of memory that can be had without swapping; None where the system does not say."""
    path = Path("/proc/meminfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else min(int(found) * 1024, memory_bytes())


def check_temporary(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the folders for temporary files: the blocks of an exchange take about the bytes of its columns."""
    place, notes = temporary_place()
    for note in notes:
        what, _, do = note.partition("; ")
        yield Check("temporary", "warn", what, do)
    named = [part.strip() for part in environ.get("SPARK_LOCAL_DIRS", "").split(",") if part.strip()]
    for folder in dict.fromkeys([place, *named]):
        yield _space(folder)


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


def check_java(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check that there is a Java for Spark, and say why it is the one. Raises `SparkError` where there is none."""
    found = find_java(environ)
    home = "has none" if environ.get("JAVA_HOME") else "is not set"
    why = {
        "JAVA_HOME": "JAVA_HOME names it",
        "PATH": f"the first on PATH that is {OLDEST} or newer; JAVA_HOME {home}",
    }.get(found.origin, f"of {found.origin}, as neither JAVA_HOME nor PATH has one")
    yield Check("java", "ok", f"Java {found.version}, {found.path}: {why}")
    for name in _JAVA_OPTIONS:
        if environ.get(name):
            do = f"if Java misbehaves, try without: unset {name}"
            yield Check("java", "warn", f"{name} changes how every Java starts", do)


def check_spark(master: str) -> Iterator[Check]:
    """Start Spark as a run does, run a task in a Python worker, and end it. Raises `SparkError` where it fails."""
    began = time.perf_counter()
    starting = boot(master, {}, spark_settings(master, {}), None, dict(os.environ))
    try:
        session = starting.session()
        ready = time.perf_counter() - began
        found = session.map("doctor", len, ["wincli"])
        cores, is_open = session.parallelism, session.is_open
    finally:
        starting.close()
    seconds = time.perf_counter() - began
    what = f"{master}, {count_of(cores, 'task')} at a time: "
    what += f"it started in {ready:.1f} s and ran a task in {seconds - ready:.1f} s"
    if found != [6]:
        yield Check("spark", "fail", f"a task gives {found!r}, not [6]", "report what wincli doctor --json prints")
    elif is_open and not is_local(master):
        do = "set spark.authenticate on the cluster"
        yield Check("spark", "warn", f"{what}; it takes messages from anyone who reaches its ports", do)
    else:
        yield Check("spark", "ok", what)


def check_place(uri: str) -> Iterator[Check]:
    """Check that files can be listed, written, read, moved and deleted in a place. Raises `WincliError` if not.

    Of a result, also look whether rows were ahead of their time.
    """
    from .doctor_store import check_store, rows_ahead_in  # noqa: PLC0415 - loads pyarrow, which may be what is broken

    yield Check("store", "ok", check_store(uri))
    for what in rows_ahead_in(uri):
        yield Check("rows", "warn", what, "correct them and run it again, or see what _rejected has of them")


def _lines(check: Check, is_coloured: bool, width: int) -> list[str]:
    """Return what was found as lines of a table; what to do stands below it."""
    colour = _COLOURS[check.level] if is_coloured else ""
    word = f"{colour}{check.level:4}{_PLAIN if colour else ''}"
    room = max(20, width - 6 - _NAME)
    lines = textwrap.wrap(clean(check.what), room, break_on_hyphens=False) or [""]
    if check.do:
        lines += textwrap.wrap(clean(f"-> {check.do}"), room, subsequent_indent="   ", break_on_hyphens=False)
    pad = " " * (6 + _NAME)
    return [f"{word}  {clean(check.name):{_NAME}}{lines[0]}", *(pad + line for line in lines[1:])]
