"""Runs on a store whose requests go wrong and that are killed or paused, and all that is wrong afterwards."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from support.fault_proxy import FaultProxy, Request, Side, UnsentError, Watch
from support.forked_runs import ForkedRun, ForkedRuns
from support.lake_courses import IN, MANIFEST, Course, Run, masked_names, result, results, runs_done
from support.places_to_write import Lake, restore
from support.processes import Ran

Fault: TypeAlias = Literal["mix", "loss", "leftover", "bad end"]
Faults: TypeAlias = list[tuple[Fault, str]]
FAULTS: tuple[Fault, ...] = ("mix", "loss", "leftover", "bad end")
LOCK = "wincli-lock"
"""What is in the name of each lease."""
_OUTPUT_FAILED = 3
_PAUSE = 0.02
_LONGEST_DELAY = 0.03
_LEASE = 0.8
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where courses are disturbed: the place that runs write to, the proxy before it, and what starts them."""

    lake: Lake
    proxy: FaultProxy
    runs: ForkedRuns


@dataclass(frozen=True, slots=True)
class Trial:
    """What a disturbed course came to. ``codes``: how each of its runs ended. ``happened``: how many requests failed.

    ``faults``: what must not be, each a kind and a text. A *mix* is a result that is neither as before nor as after; a
    *loss* was done and is not, or had to be done again; a *leftover* is an object or an upload that no result has; a
    *bad end* is one that the user was not told of in one line.
    """

    course: str
    codes: tuple[int, ...]
    happened: int
    faults: tuple[tuple[Fault, str], ...]


def prepare(stage: Stage, make: Callable[[Lake, Run, Path], Course]) -> tuple[Course, int]:
    """Make a course, and say how many requests it makes undisturbed."""

    def run(*args: str) -> Ran:
        stage.proxy.begin()
        return stage.runs.run(*args)

    return make(stage.lake, run, stage.runs.folder), stage.proxy.count


def lease_request(stage: Stage, course: Course) -> int:
    """The number of the request that takes the first lease of a course; a run that is paused before it is no owner."""
    restore(stage.lake, course.before, but=IN)
    stage.proxy.log = []
    stage.proxy.begin()
    ran = stage.runs.run(*course.args)
    assert ran.code == 0, ran.err
    log, stage.proxy.log = stage.proxy.log, None
    assert log
    return next(each.number for each in log if LOCK in each.target and each.method == "PUT")


def kill_and_fail(stage: Stage, course: Course, requests: int, rate: float, chance: random.Random) -> Trial:
    """Run a course up to three times with requests that go wrong, kill it each time, then run it in peace.

    A kill may come after the end. ``requests``: of the course undisturbed. ``rate``: the share that goes wrong.
    """
    restore(stage.lake, course.before, but=IN)
    faults: Faults = []
    codes, happened = [], 0
    with watched(stage, course, faults):
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            ran = killed(stage, course, chance.randint(1, requests), rate, chance)
            happened += stage.proxy.happened.total()
            codes.append(ran.code)
            faults += _of_an_end(stage, course, ran)
            faults += mixes(stage.lake, course)
        faults += faults_of_next_run(stage, course)
    return Trial(course.name, tuple(codes), happened, tuple(dict.fromkeys(faults)))


def killed(stage: Stage, course: Course, number: int, rate: float, chance: random.Random) -> Ran:
    """Run a course, and kill it at a request: before it is sent, when it is under way, or some time after that."""
    how = chance.choice(("unsent", "sent", "later"))
    runs: list[ForkedRun] = []
    started = threading.Event()

    def watch(request: Request, side: Side) -> None:
        if request.number != number or side != ("after" if how == "later" else "before"):
            return
        started.wait(_PATIENCE)
        if how == "later":
            time.sleep(delay)
        runs[0].send(signal.SIGKILL)
        if how == "unsent":
            raise UnsentError

    delay = chance.uniform(0, _LONGEST_DELAY)
    stage.proxy.begin(chance.randrange(2**32), rate, watch)
    runs.append(stage.runs.start(course.args))
    started.set()
    ran = stage.runs.ended(runs[0])
    stage.proxy.settle()
    return ran


def pause(stage: Stage, course: Course, number: int, other: Course) -> Trial:
    """Pause a run at a request for longer than its lease holds; let another one do its work; let the first go on.

    The request of the first arrives after all that the other one did, as if it had been on its way all the time.
    """
    restore(stage.lake, course.before, but=IN)
    quick = replace(stage, runs=replace(stage.runs, lease=_LEASE))
    is_held, may_go = threading.Event(), threading.Event()
    stage.proxy.begin(watch=_holding(number, is_held, may_go))
    paused = quick.runs.start(course.args)
    while not is_held.wait(_PAUSE) and not paused.has_ended():
        continue
    paused.send(signal.SIGSTOP)
    second = _patiently(quick, other)
    faults = [*_of_code(second)]
    done = runs_done(stage.lake.objects())
    may_go.set()
    paused.send(signal.SIGCONT)
    first = quick.runs.ended(paused)
    stage.proxy.settle()
    faults += [*_of_code(first)]
    if first.code != 0 or _others(stage.lake, course):  # it may have begun before the other, and read after it
        faults += [("loss", f"{each} is not what the last run wrote") for each in _others(stage.lake, other)]
    faults += _lost_units(done, runs_done(stage.lake.objects()))
    faults += faults_of_next_run(stage, other)
    return Trial(f"{course.name}, paused", (first.code, second.code), 0, tuple(faults))


def _holding(number: int, is_held: threading.Event, may_go: threading.Event) -> Watch:
    """Hold a request before it is sent on."""

    def watch(request: Request, side: Side) -> None:
        if request.number == number and side == "before":
            is_held.set()
            may_go.wait(_PATIENCE)

    return watch


def _patiently(stage: Stage, course: Course) -> Ran:
    """Run a course until no other run holds what it needs."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        ran = stage.runs.run(*course.args)
        if ran.code == 0 or "another run is writing" not in ran.err or time.monotonic() > deadline:
            return ran
        time.sleep(_LEASE / 4)


@contextlib.contextmanager
def watched(stage: Stage, course: Course, faults: Faults) -> Iterator[None]:
    """Read all results over and over meanwhile, as somebody does who follows the manifests."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(_PAUSE):
            faults.extend((kind, f"while it ran: {text}") for kind, text in mixes(stage.lake, course))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def mixes(lake: Lake, course: Course) -> Faults:
    """What stands in a place and is neither as before a course nor as after it."""
    faults: Faults = []
    for folder in course.new.keys() | course.old.keys():
        found, text = _look(lake, folder)
        if text:
            faults.append(("mix", text))
        elif found != course.old.get(folder) and found != course.new.get(folder):
            faults.append(("mix", f"{folder} is neither as before nor as after"))
    return faults


def _look(lake: Lake, folder: str) -> tuple[object, str]:
    """What is in a folder, or what it lacks. Who finds no file that a manifest names looks whether that is replaced."""
    while True:
        told = lake.get(f"{folder}/{MANIFEST}")
        if told is None:
            return None, ""
        try:
            return result(folder, lambda name, told=told: _get(lake, folder, told, name)), ""
        except LookupError as error:
            if lake.get(f"{folder}/{MANIFEST}") == told:
                return None, f"{error.args[0]} is named by a manifest, and missing"


def _get(lake: Lake, folder: str, told: bytes, name: str) -> bytes:
    content = told if name == f"{folder}/{MANIFEST}" else lake.get(name)
    if content is None:
        raise LookupError(name)
    return content


def _of_an_end(stage: Stage, course: Course, ran: Ran) -> Faults:
    """What is wrong with how a run ended that may have been killed."""
    if ran.code == 0:
        return [("loss", f"{each} was said to be done") for each in _others(stage.lake, course)]
    return [] if ran.code == -signal.SIGKILL else _of_code(ran)


def _of_code(ran: Ran) -> Faults:
    last = (ran.err.splitlines() or [""])[-1]
    is_told = ran.code == 0 or (ran.code == _OUTPUT_FAILED and last.startswith("wincli: error: "))
    return [] if is_told and "Traceback" not in ran.err else [("bad end", f"ended with {ran.code}: {ran.err}")]


def faults_of_next_run(stage: Stage, course: Course) -> Faults:
    """What is wrong after a run in peace, which puts all right."""
    stage.proxy.begin()
    done = runs_done(stage.lake.objects()) if course.name == "range" else {}
    ran = stage.runs.run(*course.args)
    objects = stage.lake.objects()
    names = masked_names(objects)
    return [
        *([("bad end", f"running again ends with {ran.code}: {ran.err}")] if ran.code else []),
        *[("loss", f"{each} is not as undisturbed") for each in _others(stage.lake, course)],
        *_lost_units(done, runs_done(objects)),
        *[("loss", f"{name} is missing") for name in _less(course.names, names)],
        *[("leftover", name) for name in _less(names, course.names)],
        *[("leftover", f"the upload of {name}") for name in stage.lake.open_uploads()],
    ]


def _others(lake: Lake, course: Course) -> list[str]:
    """The results that are not as after a course."""
    found = results(lake.objects())
    return [each for each in sorted(found.keys() | course.new.keys()) if found.get(each) != course.new.get(each)]


def _lost_units(done: dict[str, str], now: dict[str, str]) -> Faults:
    return [("loss", f"{unit} was done, and is of another run") for unit, run in done.items() if now.get(unit) != run]


def _less(some: Sequence[str], others: Sequence[str]) -> list[str]:
    """Names that are there more often than among others."""
    return sorted((Counter(some) - Counter(others)).elements())


# Many runs that take one lease at the same moment: one gets it and does the work, the others say who has it


def race(stage: Stage, course: Course, runs: int, after_kill: bool = False) -> Trial:
    """Start a course many times; no put of a lease arrives before each run has sent one.

    ``after_kill``: whether they take it over from a run that has died.
    """
    restore(stage.lake, course.before, but=IN)
    faults: Faults = []
    if after_kill:
        holds = lease_request(stage, course)
        restore(stage.lake, course.before, but=IN)
        ran = killed(stage, course, holds + 1, 0.0, random.Random(0))
        faults += [] if ran.code == -signal.SIGKILL else [("bad end", f"was to be killed: {ran}")]
    gate = threading.Barrier(runs, timeout=_PATIENCE)
    came: set[int] = set()

    def watch(request: Request, side: Side) -> None:
        if side == "before" and LOCK in request.target and request.method == "PUT" and len(came) < runs:
            came.add(request.number)
            gate.wait()

    stage.proxy.begin(watch=watch)
    with watched(stage, course, faults):
        started = [stage.runs.start(course.args) for _ in range(runs)]
        rans = [stage.runs.ended(each) for each in started]
    stage.proxy.settle()
    faults += [*_of_race(rans), *mixes(stage.lake, course), *faults_of_next_run(stage, course)]
    return Trial(f"{course.name}, race", tuple(ran.code for ran in rans), 0, tuple(dict.fromkeys(faults)))


def _of_race(rans: list[Ran]) -> Faults:
    codes = Counter(ran.code for ran in rans)
    faults: Faults = (
        [] if codes == {0: 1, _OUTPUT_FAILED: len(rans) - 1} else [("bad end", f"exit codes {dict(codes)}")]
    )
    for ran in rans:
        last = (ran.err.splitlines() or [""])[-1]
        if ran.code != 0 and "another run is writing to " not in last:
            faults.append(("bad end", f"ended with {ran.code}: {ran.err}"))
    return faults
