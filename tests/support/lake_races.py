"""Many runs that take one lease at the same moment: one gets it and does the work, the others say who has it."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter

from support.fault_proxy import Request, Side
from support.lake_courses import IN, Course
from support.lake_disturbances import (
    LOCK,
    Faults,
    Stage,
    Trial,
    faults_of_next_run,
    killed,
    lease_request,
    mixes,
    watched,
)
from support.places_to_write import restore
from support.processes import Ran

_REFUSED = 3
_PATIENCE = 60.0


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
    faults: Faults = [] if codes == {0: 1, _REFUSED: len(rans) - 1} else [("bad end", f"exit codes {dict(codes)}")]
    for ran in rans:
        last = (ran.err.splitlines() or [""])[-1]
        if ran.code != 0 and "another run is writing to " not in last:
            faults.append(("bad end", f"ended with {ran.code}: {ran.err}"))
    return faults
