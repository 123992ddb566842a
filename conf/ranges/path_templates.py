"""Paths that differ from unit to unit: templates with ``{date}``, and partition folders by units."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ...windowing.errors import ConfigError
from .units import LABELS, STEPS, Kind, Unit, instant_of, unit_at

_DATE = re.compile(r"\{date(?::([^{}]+))?\}")


_ALIKE_FOR = dt.timedelta(days=10227)  # 28 years, after which weekdays and dates come together again
_PROBES = 10_000


def has_date(path: str) -> bool:
    """Whether a path is a template: it contains ``{date}`` or, for example, ``{date:%Y/%m/%d}``."""
    return _DATE.search(path) is not None


def fill(path: str, unit: Unit) -> str:
    """Fill a template with a unit: with its label, or with its start in a format of ``strftime``."""
    start = unit.start
    return _DATE.sub(lambda found: start.strftime(found[1]) if found[1] and start else unit.label, path)


def as_glob(path: str) -> str:
    """Return a template as a glob that matches the paths of all units: a date has a digit."""
    return _DATE.sub(lambda found: "/".join(["*[0-9]*"] * (1 + (found[1] or "").count("/"))), path)


def before_date(path: str) -> str:
    """Return the folder of a template that is the same for all units, ``.`` where there is none."""
    found = _DATE.search(path)
    folder, slash, _ = path[: found.start() if found else len(path)].rpartition("/")
    return folder or slash or "."


def check_template(path: str, first: Unit, kind: Kind) -> None:
    """Raise `ConfigError` where two units, from ``first`` on, would have the same path."""
    there = fill(path, first)
    for other in _others(first, kind):
        if fill(path, other) == there:
            what = f"{path} is {there} for {first.label} and for {other.label}"
            raise ConfigError(what, "write {date}, or a layout that is different for every " + kind)


def _others(first: Unit, kind: Kind) -> Iterator[Unit]:
    """Yield units whose path may be that of the first: the next ones, and the one 28 years later."""
    alike = first.ordinal + _ALIKE_FOR // STEPS[kind]
    yield from (unit_at(ordinal, kind) for ordinal in range(first.ordinal + 1, min(alike, first.ordinal + _PROBES)))
    yield unit_at(alike, kind)


def output_of(path: str, unit: Unit, name: str) -> str:
    """Return the output of a unit: the filled template, or else the folder ``NAME=LABEL`` below the path."""
    return fill(path, unit) if has_date(path) else f"{path.rstrip('/')}/{name}={unit.label}"


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition folders ``NAME=VALUE`` of one name.

    ``name``: the NAME of all folders.
    ``folders``: decoded value to the folder names as they are written; several can decode to one value.
    """

    name: str
    folders: Mapping[str, tuple[str, ...]]


def partitions(names: Sequence[str], kind: Kind, path: str) -> Partitions | None:
    """Find the partitions by units among the folders below ``path``; None where there are none.

    Raises `ConfigError` where partition folders have several names, or where they are days and ``kind`` is week.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for folder in names:
        name, equals, value = folder.partition("=")
        label = unquote(value)
        if equals and name and re.fullmatch(LABELS[kind], label) and (instant := instant_of(label)):
            if kind == "week" and instant.weekday():
                raise ConfigError(f"{path}/{folder} is no week: {label} is a {instant:%A}", "say --unit day")
            folders = found.setdefault(name, {})
            folders[label] = (*folders.get(label, ()), folder)
    if len(found) > 1:
        one, other = sorted(found)[:2]
        raise ConfigError(f"{path} holds folders {one}= and {other}=", f"say which: {path}/{one}={{date}}")
    return next((Partitions(name, folders) for name, folders in found.items()), None)
