"""Kill a run somewhere in its course, look at what stands, run it again, and list all that is wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from tests.cli.course import (
    COMMAND,
    DAYS,
    OUTPUTS,
    Course,
    Moment,
    content_of,
    names_of,
    pending,
    start_course,
    told_of,
    where,
)
from tests.cli.running import Ran, Warm, ended

Victim = Literal["driver", "worker", "java"]
VICTIMS: tuple[Victim, ...] = ("driver", "worker", "java")
_SPARK_FAILED = 5
_PATIENCE = 10.0


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


def kill(course: Course, warm: Warm, victim: Victim, moment: Moment, chance: random.Random) -> Kill | None:
    """Kill ``victim`` at random after ``moment`` has come, then run again; None where the run ended before that."""
    folder = course.folder
    process = start_course(folder, course.log)
    target = _find(process, victim, lambda: where(folder) >= moment, chance.uniform(0, course.seconds[moment]), chance)
    if target is None:
        ended(process)
        return None
    hit = where(folder)
    target.send_signal(signal.SIGKILL)
    ran = ended(process)
    hit = where(folder) if victim == "driver" else hit
    runs, is_done = told_of(folder, "run"), pending(folder) is not None or hit.day < len(told_of(folder, "run"))
    mixes, losses, leftovers = _mixes(course), list[str](), list[str]()
    if victim != "driver":
        mixes += [] if _ended_well(ran) else [f"ended with {ran.code}: {ran.err}"]
        leftovers += [f"{path} after an orderly end" for path in _hidden(folder)]
    again = warm.run(COMMAND, folder)
    losses += [] if again.code == 0 else [f"running again ends with {again.code}: {again.err}"]
    leftovers += [f"process {each.pid}, {each.name()}" for each in _alive(process.pid)]  # before files are looked at
    losses += [
        f"{day} was done, and was done again" for day, run in runs.items() if told_of(folder, "run").get(day) != run
    ]
    losses += sorted(course.names - names_of(folder))
    leftovers += sorted(names_of(folder) - course.names)
    traces = [ran.err] if "Traceback" in ran.err else []
    return Kill(
        victim, hit, ran.code, is_done, (*mixes, *_mixes(course)), tuple(losses), tuple(leftovers), tuple(traces)
    )


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
        if (folder / name).exists() and (is_now := content_of(folder / name)) != content:
            differ = [path for path in {*is_now, *content} if is_now.get(path) != content.get(path)]
            found.append(f"{name} is not as undisturbed: {sorted(differ)}")
    runs, states, began = told_of(folder, "run"), told_of(folder, "state"), told_of(folder, "began")
    if list(runs) != list(DAYS[: len(runs)]):
        found.append(f"the state holds {list(runs)}")
    if [*began.values()] != [None, *states.values()][: len(states)]:
        found.append(f"the states {states} do not follow each other: they began from {began}")
    for day in DAYS:
        outputs = [_run_of(folder / output / f"dt={day}") for output in OUTPUTS]
        if day != pending(folder) and outputs != [runs.get(day)] * len(OUTPUTS):
            found.append(f"{day} is of run {runs.get(day)} in the state, of {outputs} in its outputs")
    return found


def _run_of(out: Path) -> str | None:
    path = out / "_wincli" / "manifest.json"
    return str(json.loads(path.read_text())["run"]) if path.exists() else None


def _hidden(folder: Path) -> list[str]:
    """What a run that ended by itself should have taken away; why it failed stays."""
    found = [*folder.rglob(".*"), *(folder / "tmp").iterdir()]
    kept = (".wincli-state", ".last-error.json")
    return sorted(str(path.relative_to(folder)) for path in found if path.name not in kept)
