"""``wincli doctor``: one check after the other, each printed when it is done; or all as JSON, for bug reports."""

from __future__ import annotations

import locale
import operator
import os
import platform
import re
import sys
import textwrap
import time
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from ...conf.spark import spark_settings
from ...windowing.errors import install_extra, shown
from ...windowing.spark.boot import boot
from ...windowing.spark.java import OLDEST, find_java
from ...windowing.spark.setup import is_local
from ...windowing.support.redaction import redacted, redacted_settings, secret_values, without
from ...writers.output.versions import version_of, versions
from ..arguments import strange_variables
from ..console.amounts import count_of
from ..console.messages import OK, UNEXPECTED
from ..console.streams import has_colour, json_text, say, terminal_width
from .doctor_machine import (
    Check,
    Look,
    check_cache,
    check_clock,
    check_cores,
    check_files,
    check_folder,
    check_memory,
    check_temporary,
    run_check,
    warn_of,
)

# Python, wincli and the packages that it needs, as they are installed.
#
# Packages are imported by the checks of them: one that is broken fails its check, and no other.


_OLDEST_PYTHON = (3, 11)
_EXTRAS = {"sketch": "approximate aggregates", "java": "a Java runtime, where the machine has none"}
_REQUIRED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?([^;]*)(?:;\s*extra\s*==\s*['\"](\w+)['\"])?")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that wincli needs.

    ``name``: the package.
    ``limits``: pairs of an operator, such as ``>=``, and a version.
    ``extra``: the extra that needs it; empty: wincli itself.
    """

    name: str
    limits: tuple[tuple[str, str], ...]
    extra: str


def check_python() -> Check:
    """Check the version of Python."""
    here = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        return Check("python", "fail", here, f"install wincli with Python {oldest} or newer")
    return Check("python", "ok", here)


def check_packages() -> Iterator[Check]:
    """Check that wincli's packages are installed, in versions that it takes, and which extras are there."""
    try:
        texts = metadata.requires("wincli") or []
    except metadata.PackageNotFoundError:
        yield Check("packages", "warn", "wincli is not installed as a package", "in its folder, run: pip install .")
        return
    required = [found for text in texts if (found := read_requirement(text)) is not None]
    own, wrong = [each for each in required if not each.extra], 0
    for each in own:
        version = version_of(each.name)
        wanted = ",".join(f"{sign}{limit}" for sign, limit in sorted(each.limits, reverse=True))
        do = f"run: pip install '{each.name}{wanted}'"
        if version is None:
            yield Check("packages", "fail", f"{each.name} is not installed", do)
        elif not fits(version, each):
            yield Check("packages", "warn", f"{each.name} is {version}, and wincli takes {wanted}", do)
        wrong += version is None or not fits(version, each)
    if not wrong:
        told = ", ".join(f"{each.name} {metadata.version(each.name)}" for each in own[:4])
        yield Check("packages", "ok", f"{told} and {len(own) - 4} more, all in the versions that wincli takes")
    for extra, purpose in _EXTRAS.items():  # one that is not installed is no fault
        needed = [each.name for each in required if each.extra == extra]
        there = [f"{name} {version}" for name in needed if (version := version_of(name))]
        missing = f"{extra} is not installed: {purpose}; {install_extra(extra)}"
        is_whole = there and len(there) == len(needed)
        yield Check("extras", "ok", f"{extra}: {', '.join(there)}" if is_whole else missing)


def read_requirement(text: str) -> Requirement | None:
    """Read a requirement as package metadata has it: ``pyarrow<27,>=20``; None for one with another condition."""
    found = _REQUIRED.match(text)
    if found is None or (";" in text and not found[3]):
        return None
    limits = re.findall(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9A-Za-z.]*)", found[2])
    return Requirement(found[1], tuple(limits), found[3] or "")


def fits(version: str, requirement: Requirement) -> bool:
    """Whether a version is within the limits of a requirement."""
    own = _numbers(version)
    return all(_HOLDS[sign](own, _numbers(limit)) for sign, limit in requirement.limits)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at the end: 2.0 is 2."""
    found = [int(each) for each in re.findall(r"\d+", re.split(r"[a-zA-Z+-]", version, maxsplit=1)[0])]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


_HOLDS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def check_windows() -> Check:
    """Check that a window over three rows comes out right: kernels load or compile, and are kept."""
    import pyarrow as pa  # noqa: PLC0415

    from ...windowing.in_memory import aggregate  # noqa: PLC0415
    from ...windowing.support.jit import REFUSED, refusals  # noqa: PLC0415

    found = aggregate(pa.table({"t": [0, 1, 100]}), "delta(t, 60)")
    if found.num_rows != 2:
        return Check(
            "windows", "fail", "delta(t, 60) over 0, 1, 100 gives other windows than two", "install wincli again"
        )
    if notes := refusals():
        return warn_of("windows", notes[0])
    kept = next(iter(REFUSED), None)
    return Check(
        "windows", "ok", "a window over three rows is right" + (f"; kernels are kept in {kept}" if kept else "")
    )


def check_text() -> Check:
    """Check that texts beyond ASCII can be printed."""
    encoding = getattr(sys.stdout, "encoding", None) or "none"
    if encoding.lower().replace("-", "") != "utf8":
        what = f"stdout is {encoding}, so letters beyond it are escaped"
        return Check("encoding", "warn", what, "set LC_ALL=C.UTF-8 or PYTHONIOENCODING=utf-8")
    return Check("encoding", "ok", f"{encoding}, locale {locale.setlocale(locale.LC_CTYPE)}")


def check_zones() -> Check:
    """Check that rules of time zones are there, for Python and for Arrow."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        zoneinfo.ZoneInfo("Europe/Paris")
        pc.assume_timezone(pa.array([0], pa.timestamp("s")), "Europe/Paris")
    except (zoneinfo.ZoneInfoNotFoundError, pa.ArrowInvalid) as error:
        return Check("time zones", "fail", f"there are no rules of Europe/Paris: {error}", "run: pip install tzdata")
    where = next((path for path in zoneinfo.TZPATH if Path(path, "Europe/Paris").exists()), "the package tzdata")
    return Check("time zones", "ok", f"rules are in {where}")


# Java, which one and why, and Spark: whether it starts and runs a task.


_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def check_java(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check that there is a Java for Spark, and say why it is the one. Raises `SparkError` where there is none."""
    found = find_java(environ)
    home = "has none" if environ.get("JAVA_HOME") else "is not set"
    why = {
        "JAVA_HOME": "JAVA_HOME names it",
        "PATH": f"the first on PATH that is {OLDEST} or newer; JAVA_HOME {home}",
    }.get(found.origin, f"of {found.origin}, as neither JAVA_HOME nor PATH has one")
    yield Check("java", "ok", f"Java {found.version}, {found.path}: {why}")
    for name in _OPTIONS:
        if environ.get(name):
            do = f"if Java misbehaves, try without: unset {name}"
            yield Check("java", "warn", f"{name} changes how every Java starts", do)


def check_spark(master: str) -> Check:
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
    if found != [6]:
        return Check("spark", "fail", f"a task gives {found!r}, not [6]", "report what wincli doctor --json prints")
    what = f"{master}, {count_of(cores, 'task')} at a time: "
    what += f"it started in {ready:.1f} s and ran a task in {seconds - ready:.1f} s"
    if is_open and not is_local(master):
        do = "set spark.authenticate on the cluster"
        return Check("spark", "warn", f"{what}; it takes messages from anyone who reaches its ports", do)
    return Check("spark", "ok", what)


_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m\x1b[1m"}
_PLAIN = "\x1b[0m"
_NAME = 12
_WIDTH = 110
_ACCOUNTS = ("AWS_", "AZURE_", "GOOGLE_")
"""The values of these variables are names of accounts and files at best: only that they are set is printed."""
_RELEVANT = ("WINCLI_", "SPARK_", "PYSPARK_", "JAVA_", "JDK_", "_JAVA_", "HADOOP_", "NUMBA_", *_ACCOUNTS)
_RELEVANT_NAMES = ("TMPDIR", "TZ", "LANG", "LC_ALL", "XDG_CACHE_HOME", "PYTHONPATH", "PYTHONIOENCODING")


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
            say("\n".join(check_lines(check, has_colour(), terminal_width() or _WIDTH)))
    if as_json:
        say(json_text(report(found, os.environ), 2))
    else:
        say(closing_line(found))
    return UNEXPECTED if any(check.level == "fail" for check in found) else OK


def run_checks(stores: Sequence[str], master: str, starts_spark: bool, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield what each check finds, in the order in which a run would miss what is checked."""
    looks: tuple[tuple[str, Look], ...] = (
        ("python", check_python),
        ("packages", check_packages),
        ("windows", check_windows),
        ("memory", check_memory),
        ("cores", check_cores),
        ("temporary", partial(check_temporary, environ)),
        ("open files", check_files),
        ("cache", partial(check_cache, environ)),
        ("folder", check_folder),
        ("clock", check_clock),
        ("time zones", check_zones),
        ("encoding", check_text),
    )
    for name, look in looks:
        yield from run_check(name, look)
    for note in strange_variables(environ):
        yield warn_of("variables", note, "unset it")
    yield from run_check("java", partial(check_java, environ))
    if starts_spark:
        yield from run_check("spark", partial(check_spark, master))
    for uri in stores:
        yield from run_check("store", partial(_check_place, "check_store", uri))
        yield from run_check("late rows", partial(_check_place, "check_late", uri))


def _check_place(function: str, uri: str) -> Any:
    from . import doctor_store  # noqa: PLC0415 - loads pyarrow, which may be what is broken

    return getattr(doctor_store, function)(uri)


def check_lines(check: Check, is_coloured: bool, width: int) -> list[str]:
    """Return what was found as lines of a table; what to do stands below it."""
    colour = _COLOURS[check.level] if is_coloured else ""
    word = f"{colour}{check.level:4}{_PLAIN if colour else ''}"
    room = max(20, width - 6 - _NAME)
    lines = textwrap.wrap(_clean(check.what), room, break_on_hyphens=False) or [""]
    if check.do:
        lines += textwrap.wrap(_clean(f"-> {check.do}"), room, subsequent_indent="   ", break_on_hyphens=False)
    pad = " " * (6 + _NAME)
    return [f"{word}  {_clean(check.name):{_NAME}}{lines[0]}", *(pad + line for line in lines[1:])]


def closing_line(found: Sequence[Check]) -> str:
    """Return the last line: how many checks failed or warn."""
    counts = {level: sum(check.level == level for check in found) for level in ("fail", "warn")}
    words = [f"{count} {word}" for count, word in ((counts["fail"], "failed"), (counts["warn"], "to look at")) if count]
    return f"{len(found)} checks: {', '.join(words)}" if words else f"{len(found)} checks: all is well"


def report(found: Sequence[Check], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what was found and what bug reports need besides, without secrets."""
    names = [name for name in sorted(environ) if name.startswith(_RELEVANT) or name in _RELEVANT_NAMES]
    relevant = {name: "is set" if name.startswith(_ACCOUNTS) else environ[name] for name in names}
    return {
        "checks": [{name: _clean(text) for name, text in asdict(check).items()} for check in found],
        "versions": versions(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "environment": {name: _clean(value) for name, value in redacted_settings(relevant).items()},
    }


def _clean(text: str) -> str:
    return redacted(shown(text))
