"""What looks on while a command runs its job: each run, or each unit, begins, and is committed or fails.

Metrics and lineage are made of this. A run asks nothing of who looks on, and is the same without.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ..request.request import JobRequest
from .staged_job import StagedJob

Committed = Callable[[StagedJob], None]
"""Says that a run is committed."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run that is looked at.

    ``request``: the job of the run, with the inputs and outputs of its unit.
    ``unit``: the label of the unit; empty for a run without a state or a range.
    ``started``: when it began, in UTC.
    """

    request: JobRequest
    unit: str
    started: dt.datetime


class RunObserver(Protocol):
    """Looks on. With ``--jobs`` its methods are called from several threads, those about one run from one."""

    def begin(self, run: ObservedRun) -> None:
        """See a run begin, before its input is opened."""
        ...

    def commit(self, run: ObservedRun, job: StagedJob) -> None:
        """See that a run is committed."""
        ...

    def fail(self, run: ObservedRun, error: BaseException) -> None:
        """See a run fail: it has left no trace."""
        ...

    def pass_over(self, skipped: int, gaps: int) -> None:
        """See how many units of a range were done before, and how many have no input."""
        ...


@contextmanager
def observed(observers: Sequence[RunObserver], request: JobRequest, label: str) -> Iterator[Committed]:
    """Let observers see a run: that it begins, then what the function that is yielded says, or that it fails.

    ``label``: the unit, as it begins the labels of progress.
    """
    if not observers:
        yield _nobody
        return
    run = ObservedRun(request, label.removesuffix(": "), dt.datetime.now(dt.UTC))
    for each in observers:
        each.begin(run)
    committed: list[StagedJob] = []
    try:
        yield committed.append
    except BaseException as error:
        if not committed:
            for each in observers:
                each.fail(run, error)
        raise
    finally:  # also where a signal comes after the commit: the result is there
        for job in committed:
            for each in observers:
                each.commit(run, job)


def _nobody(_: StagedJob) -> None:
    """Say it to nobody."""
