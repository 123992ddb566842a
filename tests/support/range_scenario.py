"""A range of three days through two stages, both written, onto a state: to be disturbed, and what it is undisturbed.

The phase of a run is read off its folder: from outside that is all there is to see, and after a kill all that is left.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyarrow import parquet

from support.processes import ended, start, write

Phase = Literal["starting", "stage 1", "stage 2", "commit"]
PHASES: tuple[Phase, ...] = ("starting", "stage 1", "stage 2", "commit")
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
OUTPUTS = ("sessions", "lots")
COMMAND = ("run", "job.yaml", "--start", DAYS[0], "--end", "2026-11-04")
JOB = """
{input: log, output: lots, state: state, master: "local[2]", split_size: 64KiB, slice_size: 64KiB, stages: [
  {name: one, window: "gap(ts, 30m)", key: [shop, user], agg: [n=count(), spent=sum(amount)], output: sessions},
  {name: two, window: count(7), key: shop, agg: [n=sum(n), spent=sum(spent), users=collect(user)]}]}
"""
_ROWS = 3_000
_MOMENTS = tuple(itertools.product(range(len(DAYS)), range(len(PHASES))))
POLL = 0.002
"""Seconds between two looks at a run."""
_VOLATILE = ("run", "state", "began", "started", "finished", "reruns", "seconds", "bytes", "nbytes", "checksum", "tail")
"""What no two courses have in common."""


class Moment(NamedTuple):
    """A phase of the unit of a day: 0 is the first. Moments compare as they follow each other."""

    day: int
    turn: int

    @property
    def phase(self) -> Phase:
        return PHASES[self.turn]


@dataclass(frozen=True, slots=True)
class Course:
    """The undisturbed run. ``folder``: where each disturbed one takes place, as this one did, or paths would differ.

    ``log``: its input. ``content``: of each folder it leaves. ``names``: of all that it leaves. ``seconds``: how long
    each phase took.
    """

    folder: Path
    log: Path
    content: Mapping[str, Mapping[str, Any]]
    names: frozenset[str]
    seconds: Mapping[Moment, float]


def undisturbed(base: Path) -> Course:
    """Run the course once, and watch it."""
    folder, log = base / "course", base / "log"
    _write_log(log)
    process = start_course(folder, log)
    seen = {Moment(0, 0): time.monotonic()}
    while process.poll() is None:
        seen.setdefault(where(folder), time.monotonic())
        time.sleep(POLL)
    ran = ended(process)
    assert ran.code == 0, ran.err
    seconds = _durations(seen)
    visible = [f"{output}/dt={day}" for output in OUTPUTS for day in DAYS] + [f"state/{day}" for day in DAYS]
    return Course(folder, log, {name: content_of(folder / name) for name in visible}, names_of(folder), seconds)


def _durations(seen: Mapping[Moment, float]) -> dict[Moment, float]:
    """Seconds of each phase: none for one that passed between two looks, but each is seen on some day."""
    assert {moment.turn for moment in seen if moment.day < len(DAYS)} == set(range(len(PHASES))), seen
    found = {one: seen[other] - seen[one] for one, other in itertools.pairwise(sorted(seen))}
    return {moment: found.get(moment, 0.0) for moment in itertools.starmap(Moment, _MOMENTS)}


def _write_log(log: Path) -> None:
    """Three days of 40 users in three shops, who come and go; a few rows say nobody."""
    chance = random.Random(5)
    for day in DAYS:
        instants = sorted(chance.randrange(86_400) for _ in range(_ROWS))
        users = ["" if chance.random() < 0.01 else f"u{chance.randrange(40)}" for _ in instants]
        lines = [
            f"{day}T{dt.timedelta(seconds=at)!s:0>8},s{chance.randrange(3)},{user},{chance.randrange(1000) / 4}"
            for at, user in zip(instants, users, strict=True)
        ]
        write(log / f"dt={day}", a__csv="\n".join(["ts,shop,user,amount", *lines, ""]))


def start_course(folder: Path, log: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the course anew."""
    lay_out(folder, log)
    return start_again(folder, env)


def lay_out(folder: Path, log: Path) -> None:
    """Make the folder of a course as it is before its first run."""
    if folder.exists():
        shutil.rmtree(folder)
    write(folder, job__yaml=JOB)
    shutil.copytree(log, folder / "log")
    (folder / "tmp").mkdir()


def start_again(folder: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the course on what stands in its folder."""
    return start(COMMAND, folder, {"TMPDIR": str(folder / "tmp"), **(env or {})})


def where(folder: Path) -> Moment:
    """Return where a run is, or was when it was killed; day 3 is after the last commit."""
    state = folder / "state"
    for label in promised(folder):
        return Moment(DAYS.index(label), PHASES.index("commit"))
    names = _listed(state)
    day = len(_done(names))
    stages = [stage for name in names if name.startswith(".new-") for stage in _listed(state / name)]
    if day < len(DAYS) and any((folder / "sessions").glob(f".dt={DAYS[day]}.wincli-new-*/_wincli/manifest.json")):
        return Moment(day, PHASES.index("commit"))
    return Moment(day, 2 if "two" in stages else 1 if "one" in stages else 0)


def _done(names: list[str]) -> list[str]:
    """The days in a state."""
    return [name for name in names if not name.startswith(".")]


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, not paths
    except FileNotFoundError:
        return []


def promised(folder: Path) -> dict[str, str]:
    """The day that a journal promises, if there is one, and the id of its run."""
    try:
        told = json.loads((folder / "state" / ".journal.json").read_text())
    except FileNotFoundError:
        return {}
    return {told["label"]: told["run"]}


def told_of(folder: Path, key: str) -> dict[str, str | None]:
    """What the record of each day in the state says."""
    days = sorted(_done(_listed(folder / "state")))
    return {day: json.loads((folder / "state" / day / "unit.json").read_text())[key] for day in days}


def content_of(folder: Path) -> dict[str, Any]:
    """All files of a folder: tables, what JSON says less ids and times, bytes."""
    return {str(path.relative_to(folder)): _read(path) for path in folder.rglob("*") if path.is_file()}


def _read(path: Path) -> Any:
    if path.suffix == ".parquet":
        return parquet.ParquetFile(path).read()
    if path.suffix == ".json":
        return json.loads(path.read_text(), object_hook=_lasting)
    return path.read_bytes()


def _lasting(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key not in _VOLATILE}


def names_of(folder: Path) -> frozenset[str]:
    """The path of everything a folder holds but temporary files, hidden or not."""
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return frozenset(str(path) for path in paths if path.parts[0] != "tmp")
