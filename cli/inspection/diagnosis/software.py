"""Python, wincli and the packages that it needs, as they are installed.

Packages are imported by the checks of them: one that is broken fails its check, and no other.
"""

from __future__ import annotations

import locale
import platform
import re
import sys
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ....windowing.errors import install_extra
from ....writers.output.versions import version_of
from .check import Check, warn_of

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
    own = [each for each in required if not each.extra]
    wrong = [check for each in own if (check := _wrong(each)) is not None]
    yield from wrong
    if not wrong:
        shown = ", ".join(f"{each.name} {metadata.version(each.name)}" for each in own[:4])
        yield Check("packages", "ok", f"{shown} and {len(own) - 4} more, all in the versions that wincli takes")
    yield from _extras(required)


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
    ">=": lambda own, limit: own >= limit,
    "<=": lambda own, limit: own <= limit,
    "==": lambda own, limit: own == limit,
    "!=": lambda own, limit: own != limit,
    "<": lambda own, limit: own < limit,
    ">": lambda own, limit: own > limit,
}


def _wrong(required: Requirement) -> Check | None:
    version = version_of(required.name)
    wanted = ",".join(f"{sign}{limit}" for sign, limit in sorted(required.limits, reverse=True))
    do = f"run: pip install '{required.name}{wanted}'"
    if version is None:
        return Check("packages", "fail", f"{required.name} is not installed", do)
    if not fits(version, required):
        return Check("packages", "warn", f"{required.name} is {version}, and wincli takes {wanted}", do)
    return None


def _extras(required: list[Requirement]) -> Iterator[Check]:
    """Yield a line for each extra: one that is not installed is no fault."""
    for extra, purpose in _EXTRAS.items():
        needed = [each.name for each in required if each.extra == extra]
        found = [f"{name} {version}" for name in needed if (version := version_of(name))]
        missing = f"{extra} is not installed: {purpose}; {install_extra(extra)}"
        is_there = found and len(found) == len(needed)
        yield Check("extras", "ok", f"{extra}: {', '.join(found)}" if is_there else missing)


def check_windows() -> Check:
    """Check that a window over three rows comes out right: kernels load or compile, and are kept."""
    import pyarrow as pa  # noqa: PLC0415

    from ....windowing.in_memory import aggregate  # noqa: PLC0415
    from ....windowing.support.jit import REFUSED, refusals  # noqa: PLC0415

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
