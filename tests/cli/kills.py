"""Kill a run over a range somewhere in its course, look at what stands, run it again, and list all that is wrong.

The course is three days of two stages, both written, onto a state. What an undisturbed run gives is the measure. The
phase of a run is read off its folder: from outside that is all there is to see, and after a kill all that is left.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psutil
from pyarrow import parquet

from tests.cli.running import Ran, Warm, ended, start, write

Victim = Literal["driver", "worker", "java"]
Phase = Literal["starting", "stage 1", "stage 2", "commit"]
VICTIMS: tuple[Victim, ...] = ("driver", "worker", "java")
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
_VOLATILE = ("run", "state", "began", "started", "finished", "seconds", "bytes")  # ids, times, how well it compressed
_SPARK_FAILED = 5
_PATIENCE = 10.0


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


@dataclass(frozen=True, slots=True)
class Kill:
    """What a kill came to. ``moment``: where it hit. ``code``: how the run ended. ``done``: its unit is all the same.

    What must be empty: ``mixes``, of what is not as undisturbed; ``losses``, of what was done and is not, or had to be
    done again; ``leftovers``, files and processes; ``traces``, stack traces that the user got to see.
    """

    victim: Victim
    moment: Moment
    code: int
    done: bool
    mixes: tuple[str, ...]
    losses: tuple[str, ...]
    leftovers: tuple[str, ...]
    traces: tuple[str, ...]


def undisturbed(base: Path) -> Course:
    """Run the course once, and watch it."""
    folder, log = base / "course", base / "log"
    _write_log(log)
    process = _start(folder, log)
    seen = {Moment(0, 0): time.monotonic()}
    while process.poll() is None:
        seen.setdefault(where(folder), time.monotonic())
        time.sleep(0.001)
    ran = ended(process)
    assert ran.code == 0, ran.err
    seconds = {one: seen[other] - seen[one] for one, other in itertools.pairwise(sorted(seen))}
    assert len(seconds) == len(DAYS) * len(PHASES), seconds
    visible = [f"{output}/dt={day}" for output in OUTPUTS for day in DAYS] + [f"state/{day}" for day in DAYS]
    return Course(folder, log, {name: _content(folder / name) for name in visible}, _names(folder), seconds)


def kill(course: Course, warm: Warm, victim: Victim, moment: Moment, chance: random.Random) -> Kill | None:
    """Kill ``victim`` at random after ``moment`` has come, then run again; None where the run ended before that."""
    folder = course.folder
    process = _start(folder, course.log)
    target = _find(process, victim, lambda: where(folder) >= moment, chance.uniform(0, course.seconds[moment]), chance)
    if target is None:
        ended(process)
        return None
    hit = where(folder)
    target.send_signal(signal.SIGKILL)
    ran = ended(process)
    hit = where(folder) if victim == "driver" else hit
    runs, is_done = _runs(folder), _pending(folder) is not None or hit.day < len(_runs(folder))
    mixes, losses, leftovers = _mixes(course), list[str](), list[str]()
    if victim != "driver":
        mixes += [] if _ended_well(ran) else [f"ended with {ran.code}: {ran.err}"]
        leftovers += [f"{path} after an orderly end" for path in _hidden(folder)]
    again = warm.run(COMMAND, folder)
    losses += [] if again.code == 0 else [f"running again ends with {again.code}: {again.err}"]
    leftovers += [f"process {each.pid}, {each.name()}" for each in _alive(process.pid)]  # before files are looked at
    losses += [f"{day} was done, and was done again" for day, run in runs.items() if _runs(folder).get(day) != run]
    losses += sorted(course.names - _names(folder))
    leftovers += sorted(_names(folder) - course.names)
    traces = [ran.err] if "Traceback" in ran.err else []
    return Kill(
        victim, hit, ran.code, is_done, (*mixes, *_mixes(course)), tuple(losses), tuple(leftovers), tuple(traces)
    )


def where(folder: Path) -> Moment:
    """Return where a run is, or was when it was killed; day 3 is after the last commit."""
    state = folder / "state"
    names = _listed(state)
    if ".journal.json" in names:
        return Moment(DAYS.index(_pending(folder) or DAYS[len(_done(names)) - 1]), PHASES.index("commit"))
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


def _pending(folder: Path) -> str | None:
    """The day that a journal promises."""
    try:
        return str(json.loads((folder / "state" / ".journal.json").read_text())["label"])
    except FileNotFoundError:
        return None


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


def _start(folder: Path, log: Path) -> subprocess.Popen[str]:
    """Start the course anew."""
    if folder.exists():
        shutil.rmtree(folder)
    write(folder, job__yaml=JOB)
    shutil.copytree(log, folder / "log")
    (folder / "tmp").mkdir()
    return start(COMMAND, folder, {"TMPDIR": str(folder / "tmp")})


def _find(
    process: subprocess.Popen[str], victim: Victim, is_time: Callable[[], bool], delay: float, chance: random.Random
) -> psutil.Process | None:
    """Wait until it is time, and ``delay`` seconds more, and until there is a victim; None where the run ends before.

    It is looked for beforehand, for a commit is over in the time that takes.
    """
    due, target = None, None
    while process.poll() is None:
        if target is None or not target.is_running():
            target = _any(process, victim, chance)
        if due is None and is_time():
            due = time.monotonic() + delay
        if due is not None and target is not None and time.monotonic() >= due:
            return target
        time.sleep(0.0005)
    return None


def _any(process: subprocess.Popen[str], victim: Victim, chance: random.Random) -> psutil.Process | None:
    try:
        found = list(_processes(psutil.Process(process.pid), victim))
    except psutil.NoSuchProcess:  # it ends just now
        return None
    return chance.choice(found) if found else None


def _processes(driver: psutil.Process, victim: Victim) -> Iterator[psutil.Process]:
    """The driver starts Java, that a daemon, and that is forked for each worker."""
    if victim == "driver":
        yield driver
        return
    for java in (child for child in driver.children() if child.name() == "java"):
        if victim == "java":
            yield java
            continue
        for daemon in java.children():
            yield from daemon.children()


def _alive(session: int) -> list[psutil.Process]:
    """The processes of a session that still run some seconds later."""
    found = []
    for each in psutil.process_iter():
        try:
            found += [each] if os.getsid(each.pid) == session else []
        except ProcessLookupError:
            continue
    return psutil.wait_procs(found, timeout=_PATIENCE)[1]


def _ended_well(ran: Ran) -> bool:
    """Whether a run came through, or told in one line that Spark did not."""
    last = (ran.err.splitlines() or [""])[-1]
    return ran.code == 0 or (ran.code == _SPARK_FAILED and last.startswith("wincli: error: "))


def _mixes(course: Course) -> list[str]:
    """What stands in the folder of a course, and is neither absent as a whole nor as undisturbed."""
    folder, found = course.folder, []
    for name, content in course.content.items():
        if (folder / name).exists() and (is_now := _content(folder / name)) != content:
            differ = [path for path in {*is_now, *content} if is_now.get(path) != content.get(path)]
            found.append(f"{name} is not as undisturbed: {sorted(differ)}")
    runs, states, began = _runs(folder), _told(folder, "state"), _told(folder, "began")
    if list(runs) != list(DAYS[: len(runs)]):
        found.append(f"the state holds {list(runs)}")
    if [*began.values()] != [None, *states.values()][: len(states)]:
        found.append(f"the states {states} do not follow each other: they began from {began}")
    for day in DAYS:
        outputs = [_run_of(folder / output / f"dt={day}") for output in OUTPUTS]
        if day != _pending(folder) and outputs != [runs.get(day)] * len(OUTPUTS):
            found.append(f"{day} is of run {runs.get(day)} in the state, of {outputs} in its outputs")
    return found


def _told(folder: Path, key: str) -> dict[str, str | None]:
    """What the record of each day in the state says."""
    days = sorted(_done(_listed(folder / "state")))
    return {day: json.loads((folder / "state" / day / "unit.json").read_text())[key] for day in days}


def _runs(folder: Path) -> dict[str, str | None]:
    """The id of the run of each day that is done."""
    return _told(folder, "run")


def _run_of(out: Path) -> str | None:
    path = out / "_wincli" / "manifest.json"
    return str(json.loads(path.read_text())["run"]) if path.exists() else None


def _content(folder: Path) -> dict[str, Any]:
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


def _names(folder: Path) -> frozenset[str]:
    """The path of everything a folder holds but temporary files, hidden or not."""
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return frozenset(str(path) for path in paths if path.parts[0] != "tmp")


def _hidden(folder: Path) -> list[str]:
    """What a run that ended by itself should have taken away; why it failed stays."""
    found = [*folder.rglob(".*"), *(folder / "tmp").iterdir()]
    kept = (".wincli-state", ".last-error.json")
    return sorted(str(path.relative_to(folder)) for path in found if path.name not in kept)
