"""A `RunObserver` that sends OpenLineage events: of the command, and of each unit as a run below it."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ....conf.ranges.units import unit_of
from ....conf.table_outputs import plain_path
from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted, redacted_path
from ...console.messages import Messages, Stopped
from ...job.observer import ObservedRun
from ...job.staged_job import StagedJob
from ...request.request import JobRequest
from .events import InputFacts, OutputFacts, RunFacts, complete_event, fail_event, new_run_id, start_event
from .facts import inputs_read, outputs_written, planned_inputs, planned_outputs
from .parent import Parents, RunName, parents_in
from .transport import Outbox

_NAMESPACE = "wincli"

Datasets = tuple[Sequence[InputFacts], Sequence[OutputFacts]]
NO_DATASETS: Datasets = ((), ())


class Lineage:
    """Sends the events of one command. What cannot be made or sent is a note at its end, and fails no run.

    ``request``: the job as the user requested it.
    ``messages``: the writer to stderr.
    ``outbox``: where events go.
    ``environ``: the environment, which names the runs above this one.
    """

    def __init__(
        self,
        request: JobRequest,
        messages: Messages,
        outbox: Outbox,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._request, self._messages, self._outbox = request, messages, outbox
        self._is_range = request.job.start is not None
        self._has_units = self._is_range or request.job.state is not None
        parents = parents_in(environ)
        for note in parents.notes:
            messages.note(note)
        namespace = environ.get("OPENLINEAGE_NAMESPACE") or _NAMESPACE
        name = RunName(namespace, shown(redacted_path(plain_path(request.job.output))), new_run_id())
        self._facts = RunFacts(name, _about(request), parents)
        self._units: dict[int, RunFacts] = {}
        self._datasets: Callable[[], Datasets] = lambda: NO_DATASETS
        self._lock = threading.Lock()

    def open(self, at: dt.datetime) -> None:
        """Send that the command starts. ``at``: when it began."""
        self._emit(lambda: start_event(self._facts, at, *self._planned_by_command()))

    def begin(self, run: ObservedRun) -> None:
        """Send that a unit starts."""
        if self._has_units:
            facts = self._facts_of(run)
            self._units[id(run)] = facts
            self._emit(lambda: start_event(facts, run.started, *self._planned(run.request)))

    def commit(self, run: ObservedRun, job: StagedJob) -> None:
        """Send that a unit is committed, with its datasets. A run without units is sent at the end of the command."""
        datasets = partial(self._committed, run.request, job)
        if self._has_units:
            facts = self._units.pop(id(run))
            self._emit(lambda: complete_event(facts, _now(), *datasets()))
        else:
            self._datasets = datasets

    def fail(self, run: ObservedRun, error: BaseException) -> None:
        """Send that a unit has failed."""
        if self._has_units:
            facts = self._units.pop(id(run))
            self._emit(lambda: self._failure(facts, error))

    def pass_over(self, skipped: int, gaps: int) -> None:
        """Send nothing of units that did not run."""

    def close(self, error: BaseException | None) -> None:
        """Send that the command has ended, well or with an error; say how many events could not be sent."""
        if error is None:
            self._emit(lambda: complete_event(self._facts, _now(), *self._datasets()))
        else:
            self._emit(lambda: self._failure(self._facts, error))
        for note in self._outbox.close():
            self._messages.note(note)

    def _planned_by_command(self) -> Datasets:
        return NO_DATASETS if self._has_units else self._planned(self._request)

    def _planned(self, own: JobRequest) -> Datasets:
        request = self._naming(own)
        return planned_inputs(request), planned_outputs(request)

    def _committed(self, own: JobRequest, job: StagedJob) -> Datasets:
        request = self._naming(own)
        return inputs_read(request, job), tuple(outputs_written(request, job))

    def _naming(self, own: JobRequest) -> JobRequest:
        """Return the job that names the datasets of a run: units of a range are parts of those of the whole job."""
        return self._request if self._is_range else own

    def _facts_of(self, run: ObservedRun) -> RunFacts:
        above = self._facts
        name = replace(above.run, name=f"{above.run.name}.unit", run_id=new_run_id())
        parents = Parents(above.run, above.parents.root or above.parents.parent or above.run)
        return RunFacts(name, above.about, parents, unit_of(run.unit, run.request.job.unit))

    def _failure(self, facts: RunFacts, error: BaseException) -> Any:
        text = self._messages.clean(shown(redacted(str(error)))) or type(error).__name__
        is_stopped = isinstance(error, Stopped | KeyboardInterrupt)
        return fail_event(facts, _now(), "stopped by a signal" if is_stopped else text, is_stopped)

    def _emit(self, make: Callable[[], Any]) -> None:
        """Make an event and send it."""
        with self._lock:
            self._outbox.put(make)


def _about(request: JobRequest) -> str:
    """Return a job in words: the window of each stage."""
    return "; then ".join(str(each.spec) for each in request.stages)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
