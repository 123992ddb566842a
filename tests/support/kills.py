"""Kill a run somewhere in its course, look at what stands, run it again, and list all that is wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from support.processes import Ran, ended
from support.range_scenario import (
    COMMAND,
    DAYS,
    OUTPUTS,
    POLL,
    Course,
    Moment,
    content_of,
    names_of,
    promised,
    start_course,
    told_of,
    where,
)

Victim = Literal["driver", "worker", "java"]
Fault = Literal["mix", "loss", "leftover", "bad end"]
VICTIMS: tuple[Victim, ...] = ("driver", "worker", "java")
FAULTS: tuple[Fault, ...] = ("mix", "loss", "leftover", "bad end")
_SPARK_FAILED = 5
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Kill:
    """What a kill came to. ``moment``: where it hit. ``code``: how the run ended. ``done``: its unit is all the same.

    ``faults``: what must not be, each a kind and a text. A *mix* is not as undisturbed; a *loss* was done and is not,
    or had to be done again; a *leftover* is a file or a process; a *bad end* is one that the user was not told of in
    one line, with the exit code of what happened.
    """

    victim: Victim
    moment: Moment
    code: int
    done: bool
    faults: tuple[tuple[Fault, str], ...]


def kill(course: Course, run: Callable[..., Ran], victim: Victim, moment: Moment, chance: random.Random) -> Kill | None:
    """Kill ``victim`` at random after ``moment`` has come, then run again; None where the run ended before that.

    ``run``: runs a command in the folder of the course.
    """
    folder = course.folder
    process = start_course(folder, course.log)
    target = find_victim(
        process, victim, lambda: where(folder) >= moment, chance.uniform(0, course.seconds[moment]), chance
    )
    if target is None:
        ended(process)
        return None
    before = where(folder)
    target.send_signal(signal.SIGKILL)
    ran = ended(process)
    hit = where(folder) if victim == "driver" else before
    done: dict[str, str | None] = {**told_of(folder, "run"), **promised(folder)}
    faults = [*mixes(course), *([] if victim == "driver" else _of_an_end(folder, ran))]
    again = run(*COMMAND)
    faults += [*mixes(course), *_of_the_next_run(course, done, again, process.pid)]
    return Kill(victim, hit, ran.code, hit.day < len(done), tuple(faults))


def _of_an_end(folder: Path, ran: Ran) -> Iterator[tuple[Fault, str]]:
    """What is wrong with how a run ended by itself, be it that its Spark had died; why it failed stays."""
    if ran.code not in (0, _SPARK_FAILED) or "Traceback" in ran.err:
        yield "bad end", f"ended with {ran.code}: {ran.err}"
    for path in (*folder.rglob(".*"), *(folder / "tmp").iterdir()):
        if path.name not in (".wincli-state", ".last-error.json"):
            yield "leftover", f"{path.relative_to(folder)} after an orderly end"


def _of_the_next_run(
    course: Course, done: Mapping[str, str | None], ran: Ran, session: int
) -> Iterator[tuple[Fault, str]]:
    """What is wrong after the run that had to put things right; ``done``: the runs of the days that it found done."""
    if ran.code != 0:
        yield "loss", f"running again ends with {ran.code}: {ran.err}"
    yield from left_over(course, session)
    now = told_of(course.folder, "run")
    yield from (("loss", f"{day} was done, and is of another run") for day, run in done.items() if now.get(day) != run)


def left_over(course: Course, session: int) -> Iterator[tuple[Fault, str]]:
    """What is wrong with what an ended course has left: processes of its session, and the names of files."""
    for each in alive(session):  # before files are looked at, for it might write some
        yield "leftover", f"process {each.pid}, {each.name()}"
    names = names_of(course.folder)
    yield from (("loss", name) for name in sorted(course.names - names))
    yield from (("leftover", name) for name in sorted(names - course.names))


def find_victim(
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
        time.sleep(POLL)
    return None


def _any(process: subprocess.Popen[str], victim: Victim, chance: random.Random) -> psutil.Process | None:
    try:
        found = list(_processes(psutil.Process(process.pid), victim))
    except psutil.NoSuchProcess:  # it ends just now
        return None
    return chance.choice(found) if found else None


def _processes(driver: psutil.Process, victim: Victim) -> Iterator[psutil.Process]:
    """The driver starts Java, and forks a seed that workers are forked from; the daemon that Java starts only waits."""
    if victim == "driver":
        yield driver
        return
    for child in driver.children():
        if victim == "java" and child.name() == "java":
            yield child
        elif victim == "worker" and child.name() != "java":
            yield from child.children()


def alive(session: int) -> list[psutil.Process]:
    """The processes of a session that still run a minute later."""
    found = []
    for each in psutil.process_iter():
        try:
            found += [each] if os.getsid(each.pid) == session else []
        except ProcessLookupError:
            continue
    return psutil.wait_procs(found, timeout=_PATIENCE)[1]


def mixes(course: Course) -> Iterator[tuple[Fault, str]]:
    """What stands in the folder of a course, and is neither absent as a whole nor as undisturbed."""
    folder = course.folder
    for name, content in course.content.items():
        if (folder / name).exists() and (now := content_of(folder / name)) != content:
            differ = sorted(path for path in {*now, *content} if now.get(path) != content.get(path))
            yield "mix", f"{name} is not as undisturbed: {differ}"
    runs, states, began = (told_of(folder, key) for key in ("run", "state", "began"))
    if tuple(runs) != DAYS[: len(runs)]:
        yield "mix", f"the state holds {list(runs)}"
    if [*began.values()] != [None, *states.values()][: len(states)]:
        yield "mix", f"the states {states} do not follow each other: they began from {began}"
    for day in (day for day in DAYS if day not in promised(folder)):
        outputs = [_run_of(folder / output / f"dt={day}") for output in OUTPUTS]
        if outputs != [runs.get(day)] * len(OUTPUTS):
            yield "mix", f"{day} is of run {runs.get(day)} in the state, of {outputs} in its outputs"


def _run_of(out: Path) -> str | None:
    path = out / "_wincli" / "manifest.json"
    return str(json.loads(path.read_text())["run"]) if path.exists() else None
