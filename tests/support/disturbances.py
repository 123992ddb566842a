"""Runs that are disturbed, but not killed: stopped for a while, raced by others, told a wrong time, fed crumbs.

Each function disturbs one run, or many, and returns all that is wrong afterwards, nothing where all is well.
"""

from __future__ import annotations

import datetime as dt
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from support.kills import Victim, alive, find_victim, left_over, mixes
from support.places import ROOT
from support.processes import MASTER, Ran, ended, start, table, write
from support.range_scenario import Course, Moment, lay_out, start_again, start_course, told_of, where

_WINDOW = ("-w", "gap(ts, 30m)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "ids=collect(id)")


def stop_and_continue(
    course: Course, victim: Victim | None, moment: Moment, seconds: float, chance: random.Random
) -> list[str]:
    """Stop a process of the course after a moment, or all of them (as a laptop that sleeps), and let it go on."""
    process = start_course(course.folder, course.log)
    delay = chance.uniform(0, course.seconds[moment])
    target = find_victim(process, victim or "driver", lambda: where(course.folder) >= moment, delay, chance)
    if target is None:
        return [f"the run ended before {moment.phase} of day {moment.day}: {ended(process).err}"]
    stopped = [target] if victim else [target, *target.children(recursive=True)]
    for each in stopped:
        _signal(each, signal.SIGSTOP)
    time.sleep(seconds)
    for each in reversed(stopped):
        _signal(each, signal.SIGCONT)
    return [*_of_ran(ended(process)), *_of_course(course, process.pid)]


def jump_clock(course: Course, moment: Moment, by: dt.timedelta, rule: Path, library: Path) -> list[str]:
    """Let the wall clock of all processes of a course jump when a moment has come.

    ``rule``: a file for how far it is ahead. ``library``: `scripts/wall_clock.c`, compiled.
    """
    _set_clock(rule, dt.timedelta())
    process = start_course(course.folder, course.log, {"LD_PRELOAD": str(library), "WALL_CLOCK": str(rule)})
    while process.poll() is None and where(course.folder) < moment:
        time.sleep(0.01)
    _set_clock(rule, by)
    ran = ended(process)
    wrong = [*_of_ran(ran), *_of_course(course, process.pid)]
    return wrong if ran.code else [*wrong, *_of_clock(course.folder, by)]


def clock_that_jumps(folder: Path) -> Path:
    """Compile the library with a wall clock that jumps."""
    library = folder / "wall_clock.so"
    source = ROOT / "scripts" / "wall_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def race_on_state(course: Course, runs: int) -> list[str]:
    """Start the course many times at once on one state and its outputs: one does the work, none does harm."""
    lay_out(course.folder, course.log)
    processes = [start_again(course.folder) for _ in range(runs)]
    rans = [ended(process) for process in processes]
    wrong = [*_of_race(rans, "another run is writing to"), *(f"{fault}: {text}" for fault, text in mixes(course))]
    last = start_again(course.folder)  # those that were refused are run again by who starts them, as a scheduler does
    wrong += [*_of_ran(ended(last)), *_of_course(course, last.pid)]
    return wrong + [f"process {left.pid} is left" for process in processes for left in alive(process.pid)]


def race_on_output(folder: Path, runs: int) -> list[str]:
    """Start one job many times at once on one output: one writes it, the others say that it is taken."""
    write(folder, log__csv=_lines(range(400)))
    alone = start(_job("log.csv", "alone"), folder)
    wrong = [*_of_ran(ended(alone))]
    processes = [start(_job("log.csv", "out"), folder) for _ in range(runs)]
    rans = [ended(process) for process in processes]
    wrong += _of_race(rans, "another run is writing to", "is not empty", "holds a result")
    if (writers := Counter(ran.code for ran in rans)[0]) != 1:
        wrong.append(f"{writers} runs wrote one output")
    if not table(folder / "out").equals(table(folder / "alone")):
        wrong.append("the result is not as undisturbed")
    left = {path.name for path in folder.iterdir()} - {"log.csv", "alone", "out"}
    return wrong + [f"{name} is left" for name in sorted(left)]


def read_crumbs(folder: Path, files: int, run: Callable[[list[str]], Ran], rows: int = 4) -> list[str]:
    """Read many small files on Spark: the same windows as of one file with all rows."""
    (folder / "log").mkdir(parents=True)
    for n in range(files):
        (folder / "log" / f"{n:05d}.csv").write_text(_lines(range(n * rows, (n + 1) * rows)))
    write(folder, whole__csv=_lines(range(files * rows)))
    rans = [run([*_job(log, out), "--master", MASTER]) for log, out in (("log", "many"), ("whole.csv", "one"))]
    wrong = [text for ran in rans for text in _of_ran(ran)]
    if not wrong and not table(folder / "many").equals(table(folder / "one")):
        wrong.append("many files give other windows than one")
    return wrong


def _job(log: str, out: str) -> list[str]:
    return ["run", *_WINDOW, log, out]


def _lines(ids: range) -> str:
    """Rows of 7 users, two minutes apart, with a pause now and then that ends the session of a user."""
    start_at = dt.datetime(2026, 11, 1)
    rows = (f"{start_at + dt.timedelta(minutes=2 * n + 40 * (n // 90)):%Y-%m-%dT%H:%M:%S},u{n % 7},{n}" for n in ids)
    return "\n".join(["ts,user,id", *rows, ""])


def _of_ran(ran: Ran) -> Iterator[str]:
    """What is wrong with how a run ended that had to end well."""
    if ran.code != 0 or "Traceback" in ran.err:
        yield f"ended with {ran.code}: {ran.err}"


def _of_race(rans: list[Ran], *refusals: str) -> list[str]:
    """What is wrong with how runs ended that got into each other's way."""
    wrong = [] if any(ran.code == 0 for ran in rans) else ["none of the runs ended well"]
    for ran in rans:
        last = (ran.err.splitlines() or [""])[-1]
        is_refused = ran.code in (2, 3) and any(text in last for text in refusals)
        if "Traceback" in ran.err or not (ran.code == 0 or is_refused):
            wrong.append(f"ended with {ran.code}: {ran.err}")
    return wrong


def _of_course(course: Course, session: int) -> Iterator[str]:
    """What is wrong with what an ended course left."""
    yield from (f"{fault}: {text}" for fault, text in (*mixes(course), *left_over(course, session)))
    yield from (f"tmp/{path.name} is left" for path in (course.folder / "tmp").iterdir())


def _of_clock(folder: Path, by: dt.timedelta) -> Iterator[str]:
    """Whether the first and the last unit were recorded by clocks that far apart, or nothing has been tried."""
    times = [dt.datetime.fromisoformat(str(when)) for when in told_of(folder, "finished").values()]
    if abs(times[-1] - times[0] - by) > abs(by) / 2:
        yield f"the clock has not jumped by {by}: units ended at {times}"


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:  # a worker may have ended by itself
        return


def _set_clock(rule: Path, by: dt.timedelta) -> None:
    """Let the clock run ahead; in place, since those who go by the file have it mapped."""
    with rule.open("r+b" if rule.exists() else "wb") as file:
        file.write(int(by.total_seconds()).to_bytes(8, sys.byteorder, signed=True))
