"""Courses over a place where runs write: what stands there before, the command to disturb, and what stands after it."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyarrow import parquet

from support.places_to_write import Lake, Objects, restore
from support.processes import Ran, write

IN = "in/"
"""Below this is the log, which no course touches once it has begun."""
STATE = "state/"
MANIFEST = "_wincli/manifest.json"
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
_ROWS = 400
_JOB = """
{{input: "{lake}/in/log", output: "{lake}/lots", master: "local[2]", split_size: 8KiB, slice_size: 64KiB, stages: [
  {{name: one, window: "gap(ts, 30m)", key: [shop, user], agg: [n=count(), spent=sum(amount)],
    output: "{lake}/sessions"}},
  {{name: two, window: count(7), key: shop, agg: [n=sum(n), spent=sum({spent}), users=collect(user)]}}],
  {more}}}
"""
_ON_STATE = 'state: "{lake}/state", late: redo'
_VOLATILE = {
    *("run", "state", "began", "started", "finished", "reruns", "seconds", "bytes", "nbytes", "checksum", "fence"),
    *("mtime", "size", "end", "mode"),  # of which a command says other things than the one before it
}
"""What no two courses have in common."""
_TOKEN = re.compile(r"\b(?:[0-9a-f]{12}|[0-9a-f]{8})\b")

Run = Callable[..., Ran]
"""Runs a command line to its end."""


@dataclass(frozen=True, slots=True)
class Course:
    """A command, and what stood where it writes before and after it, undisturbed.

    ``name``: for messages. ``args``: the command. ``before``: all objects, less the log. ``old``, ``new``: each result
    before and after, by folder. ``names``: of all objects after it, without what no two runs have in common.
    """

    name: str
    args: Sequence[str]
    before: Objects
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    names: Sequence[str]


def plain_course(lake: Lake, run: Run, folder: Path, is_first: bool = False) -> Course:
    """A plain run that replaces the results of another job, or writes the first ones."""
    _write_jobs(lake, folder)
    _write_log(lake)
    setup = [] if is_first else [_job(lake, "old")]
    return _undisturbed("first" if is_first else "plain", lake, run, setup, _job(lake, "new"))


def _job(lake: Lake, name: str) -> tuple[str, ...]:
    return ("run", f"{lake.name}/{name}.yaml", "--mode", "overwrite")


def back(course: Course, lake: Lake) -> Course:
    """The other way round: the job whose results a plain course replaces."""
    return replace(course, args=_job(lake, "old"), old=course.new, new=course.old, names=masked_names(course.before))


def range_course(lake: Lake, run: Run, folder: Path) -> Course:
    """Three days onto a state, of which the first is done."""
    _write_jobs(lake, folder)
    _write_log(lake)
    return _undisturbed("range", lake, run, [_days(lake, 1)], _days(lake, 3))


def redo_course(lake: Lake, run: Run, folder: Path) -> Course:
    """Three days that are done, and run again from the second on."""
    _write_jobs(lake, folder)
    _write_log(lake)
    return _undisturbed("redo", lake, run, [_days(lake, 3)], (*_days(lake, 3, first=2), "--redo"))


def late_course(lake: Lake, run: Run, folder: Path) -> Course:
    """Two days that are done, and a third with rows of the first, which is run again with them."""
    _write_jobs(lake, folder)
    _write_log(lake)
    _write_late_rows(lake)
    return _undisturbed("late redo", lake, run, [_days(lake, 2)], _days(lake, 3))


COURSES: Mapping[str, Callable[[Lake, Run, Path], Course]] = {
    "plain": plain_course,
    "range": range_course,
    "redo": redo_course,
    "late": late_course,
}


def _days(lake: Lake, last: int, first: int = 1) -> tuple[str, ...]:
    end = dt.date.fromisoformat(DAYS[last - 1]) + dt.timedelta(days=1)
    return ("run", f"{lake.name}/state.yaml", "--start", DAYS[first - 1], "--end", str(end))


def _undisturbed(name: str, lake: Lake, run: Run, setup: Sequence[Sequence[str]], args: Sequence[str]) -> Course:
    for each in setup:
        _well(run(*each))
    before = below(lake.objects())
    _well(run(*args))
    after = lake.objects()
    course = Course(name, args, before, results(before), results(after), masked_names(after))
    restore(lake, before, but=IN)
    return course


def _well(ran: Ran) -> None:
    assert ran.code == 0, ran.err


def below(objects: Objects) -> dict[str, bytes]:
    """All objects but the log."""
    return {name: content for name, content in objects.items() if not name.startswith(IN)}


def masked_names(objects: Objects) -> list[str]:
    """The names of all objects but the log, without the ids of runs; why a run has failed may stay."""
    return sorted(_TOKEN.sub("*", name) for name in below(objects) if name != f"{STATE}.last-error.json")


def results(objects: Objects) -> dict[str, Any]:
    """What who follows the manifests finds, by folder; raises `LookupError` where a part is not there."""
    folders = [name.removesuffix(f"/{MANIFEST}") for name in objects if name.endswith(f"/{MANIFEST}")]
    return {folder: found for folder in folders if (found := result(folder, objects.__getitem__)) is not None}


def result(folder: str, get: Callable[[str], bytes]) -> Any:
    """The result in a folder: what its manifest says but ids and times, and its rows; None where it has none."""
    told = json.loads(get(f"{folder}/{MANIFEST}"))
    if "parts" not in told:
        return None
    tables = [parquet.read_table(io.BytesIO(get(f"{folder}/{part['name']}"))) for part in told["parts"]]
    for reject in told["rejects"]:
        get(f"{folder}/{reject['name']}")
    return lasting(told), [table.to_pylist() for table in tables]


def lasting(told: Any) -> Any:
    """A value of JSON without ids and times."""
    if isinstance(told, dict):
        return {key: lasting(value) for key, value in told.items() if key not in _VOLATILE}
    if isinstance(told, list):
        return [lasting(value) for value in told]
    return _TOKEN.sub("*", told) if isinstance(told, str) else told


def runs_done(objects: Objects) -> dict[str, str]:
    """The run of each unit that is done, as the head of the state says: it is in place, or a journal will put it there.

    The record of a unit whose run was killed before it wrote the journal is there, too, and says nothing.
    """
    head = json.loads(objects.get(f"{STATE}.journal.json", b"{}"))
    journal = json.loads(head.get("journal") or "{}")
    return {**head.get("units", {}), **({journal["label"]: journal["run"]} if journal else {})}


def _write_jobs(lake: Lake, folder: Path) -> None:
    texts = {
        "old": _JOB.format(lake=lake.uri, spent="spent", more=""),
        "new": _JOB.format(lake=lake.uri, spent="2 * spent", more=""),
        "state": _JOB.format(lake=lake.uri, spent="spent", more=_ON_STATE.format(lake=lake.uri)),
    }
    write(folder / lake.name, **{f"{name}__yaml": text for name, text in texts.items()})


def _write_log(lake: Lake) -> None:
    """Three days of 12 users in three shops, who come and go; a few rows say nobody."""
    chance = random.Random(5)
    for day in DAYS:
        instants = sorted(chance.randrange(86_400) for _ in range(_ROWS))
        users = ["" if chance.random() < 0.01 else f"u{chance.randrange(12)}" for _ in instants]
        rows = zip(instants, users, strict=True)
        lines = [f"{_at(day, at)},s{chance.randrange(3)},{user},{chance.randrange(1000) / 4}" for at, user in rows]
        lake.put(f"{IN}log/dt={day}/a.csv", _csv(lines))


def _write_late_rows(lake: Lake) -> None:
    lines = [f"{_at(DAYS[0], 40_000 + 700 * n)},s{n % 3},u{n % 5},{n / 4}" for n in range(20)]
    lake.put(f"{IN}log/dt={DAYS[2]}/late.csv", _csv(lines))


def _at(day: str, second: int) -> str:
    return f"{day}T{dt.timedelta(seconds=second)!s:0>8}"


def _csv(lines: Sequence[str]) -> bytes:
    return "\n".join(["ts,shop,user,amount", *lines, ""]).encode()
