"""Units of a range: hours, days and weeks with their labels and ordinals.

A unit is what one incremental run adds to a state and commits at once, or one output of a range. Times are local times
of the data: labels are compared with names of folders and files, and no time zone is involved.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal
from urllib.parse import unquote

from ..windowing.errors import ConfigError

Kind = Literal["hour", "day", "week"]

STEPS: dict[Kind, dt.timedelta] = {
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
    "week": dt.timedelta(weeks=1),
}
_EPOCH = dt.datetime(1970, 1, 1)
_ZEROS: dict[Kind, dt.datetime] = {"hour": _EPOCH, "day": _EPOCH, "week": dt.datetime(1969, 12, 29)}
_END = dt.datetime(3000, 1, 1)  # ordinal * 10**12 has to fit into 64 bits
LABELS = {"hour": r"\d{4}-\d\d-\d\dT\d\d", "day": r"\d{4}-\d\d-\d\d", "week": r"\d{4}-\d\d-\d\d"}
_EXAMPLES = {"hour": "2026-11-01T05", "day": "2026-11-01", "week": "2026-11-02, a Monday"}


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit.

    ``label``: its name in folders, records and messages, such as ``2026-11-01`` or ``run-000001``.
    ``ordinal``: hours, days or weeks since 1970-01-01, weeks since Monday 1969-12-29; of a plain run its number from 0.
    ``start``: its first instant, inclusive; None for a plain run.
    ``end``: the first instant after it, exclusive; None for a plain run.
    """

    label: str
    ordinal: int
    start: dt.datetime | None
    end: dt.datetime | None


def units(start: str, end: str, kind: Kind) -> tuple[Unit, ...]:
    """Return the units of the half-open range of ``start`` and ``end``, which are labels, at least one.

    Raises `ConfigError` where one is no label of that kind, or the end is not after the start.
    """
    first, stop = (_ordinal(text, kind, option) for text, option in ((start, "--start"), (end, "--end")))
    if stop <= first:
        raise ConfigError(f"--end {end} is not after --start {start}", "the end is the first that is left out")
    return tuple(unit_at(ordinal, kind) for ordinal in range(first, stop))


def unit_at(ordinal: int, kind: Kind) -> Unit:
    """Return the hour, day or week with this ordinal."""
    start = _ZEROS[kind] + ordinal * STEPS[kind]
    label = start.isoformat(timespec="hours") if kind == "hour" else start.date().isoformat()
    return Unit(label, ordinal, start, start + STEPS[kind])


def unit_of(label: str, kind: Kind) -> Unit | None:
    """Return the unit with this label, None where it is none of that kind."""
    instant = instant_of(label)
    if instant is None or not _ZEROS[kind] <= instant < _END:
        return None
    unit = unit_at((instant - _ZEROS[kind]) // STEPS[kind], kind)
    return unit if unit.label == label else None


def unit_of_plain_run(last: int | None) -> Unit:
    """Return the unit of a plain run on a state whose last ordinal is ``last``; None for a new state."""
    ordinal = 0 if last is None else last + 1
    return Unit(f"run-{ordinal + 1:06d}", ordinal, None, None)


def kind_of(label: str, ordinal: int) -> Kind | None:
    """Return the kind of the unit with this label and ordinal; None for a plain run."""
    if label.startswith("run-"):
        return None
    if "T" in label:
        return "hour"
    return "day" if (dt.datetime.fromisoformat(label) - _EPOCH).days == ordinal else "week"


def check_kind(records: Iterable[tuple[str, int]], kind: Kind | None) -> None:
    """Raise `ConfigError` where a state has units of another kind: ordinals of different kinds have no common order.

    ``records``: label and ordinal of each unit of the state. ``kind``: that of the units to run; None for plain runs.
    """
    for label, ordinal in records:
        if (found := kind_of(label, ordinal)) != kind:
            has, wants = (f"{each}s" if each else "plain runs" for each in (found, kind))
            do = "use another --state" if kind else f"say --start and --end for {has}, or use another --state"
            raise ConfigError(f"the state holds {has} ({label}), and this run adds {wants}", do)


def compact(found: Iterable[Unit]) -> str:
    """Write units in ascending order in few words: ``2026-11-01, 2026-11-03..2026-11-05``."""
    lots = [[unit for _, unit in lot] for _, lot in groupby(enumerate(found), lambda at: at[1].ordinal - at[0])]
    return ", ".join(lot[0].label if len(lot) == 1 else f"{lot[0].label}..{lot[-1].label}" for lot in lots)


def _ordinal(text: str, kind: Kind, option: str) -> int:
    instant = instant_of(text)
    if instant is None or not _ZEROS[kind] <= instant < _END:
        raise ConfigError(f"{option} {text!r} is no {kind} of the years 1970 to 2999", f"write {_EXAMPLES[kind]}")
    ordinal, rest = divmod(instant - _ZEROS[kind], STEPS[kind])
    if not rest:
        return ordinal
    if kind == "week" and instant.time() == dt.time():
        before, after = (unit_at(ordinal + n, kind).label for n in (0, 1))
        what = f"{option} {text} is a {instant:%A}, and weeks start on Mondays"
        raise ConfigError(what, f"say {before} or {after}")
    raise ConfigError(f"{option} {text!r} is no {kind}", f"write {_EXAMPLES[kind]}, or choose another --unit")


def instant_of(text: str) -> dt.datetime | None:
    """Return the local date, or date and hour, that a text is; None where it is neither."""
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is None and re.match(r"\d{4}-\d\d-\d\d", text) else None


# Paths that differ from unit to unit: templates with ``{date}``, and partition folders by units.


_DATE = re.compile(r"\{date(?::([^{}]+))?\}")


_ALIKE_FOR = dt.timedelta(days=10227)  # 28 years
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
    # The next units, and the one 28 years later, after which weekdays and dates come together again.
    alike = first.ordinal + _ALIKE_FOR // STEPS[kind]
    for ordinal in (*range(first.ordinal + 1, min(alike, first.ordinal + _PROBES)), alike):
        other = unit_at(ordinal, kind)
        if fill(path, other) == there:
            what = f"{path} is {there} for {first.label} and for {other.label}"
            raise ConfigError(what, "write {date}, or a layout that is different for every " + kind)


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
