"""``wincli doctor``: one check after the other, each printed when it is done; or all as JSON, for bug reports."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted, redacted_settings, secret_values, without
from ....writers.output.versions import versions
from ...arguments import strange_variables
from ...console.messages import OK, UNEXPECTED
from ...console.streams import has_colour, json_text, say, terminal_width
from .check import Check, run_check, warn_of
from .machine import (
    check_cache,
    check_clock,
    check_cores,
    check_files,
    check_folder,
    check_memory,
    check_temporary,
)
from .software import check_packages, check_python, check_text, check_windows, check_zones
from .spark import check_java, check_spark

_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m\x1b[1m"}
_PLAIN = "\x1b[0m"
_NAME = 12
_WIDTH = 110
_RELEVANT = (
    "WINCLI_",
    "SPARK_",
    "PYSPARK_",
    "JAVA_",
    "JDK_",
    "_JAVA_",
    "HADOOP_",
    "NUMBA_",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
)
_RELEVANT_NAMES = ("TMPDIR", "TZ", "LANG", "LC_ALL", "XDG_CACHE_HOME", "PYTHONPATH", "PYTHONIOENCODING")
_ACCOUNTS = ("AWS_", "AZURE_", "GOOGLE_")
"""The values of these variables are names of accounts and files at best: only that they are set is printed."""


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
    yield from run_check("python", check_python)
    yield from run_check("packages", check_packages)
    yield from run_check("windows", check_windows)
    yield from run_check("memory", check_memory)
    yield from run_check("cores", check_cores)
    yield from run_check("temporary", partial(check_temporary, environ))
    yield from run_check("open files", check_files)
    yield from run_check("cache", partial(check_cache, environ))
    yield from run_check("folder", check_folder)
    yield from run_check("clock", check_clock)
    yield from run_check("time zones", check_zones)
    yield from run_check("encoding", check_text)
    for note in strange_variables(environ):
        yield warn_of("variables", note, "unset it")
    yield from run_check("java", partial(check_java, environ))
    if starts_spark:
        yield from run_check("spark", partial(check_spark, master))
    for uri in stores:
        yield from run_check("store", partial(_check_store, uri))
        yield from run_check("late rows", partial(_check_late, uri))


def _check_store(uri: str) -> Check:
    from .store import check_store  # noqa: PLC0415 - loads pyarrow, which may be what is broken

    return check_store(uri)


def _check_late(uri: str) -> Iterator[Check]:
    from .store import check_late  # noqa: PLC0415 - as above

    return check_late(uri)


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
    return {
        "checks": [{name: _clean(text) for name, text in asdict(check).items()} for check in found],
        "versions": versions(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "environment": {name: _clean(value) for name, value in redacted_settings(_relevant(environ)).items()},
    }


def _relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change what a run does."""
    names = [name for name in sorted(environ) if name.startswith(_RELEVANT) or name in _RELEVANT_NAMES]
    return {name: "is set" if name.startswith(_ACCOUNTS) else environ[name] for name in names}


def _clean(text: str) -> str:
    return redacted(shown(text))
