"""Stages before the one that wrote a result, and enrich tables, computed again in a temporary folder."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from .....windowing.local_executor import LocalExecutor
from .....windowing.ports import Source
from ....console.messages import Messages
from ....planning.job_plan import open_outputs, plan_job
from ....planning.open_input import enriched_input
from ....planning.request import JobRequest, request_of
from ....planning.stage_plans import StagePlan
from ....run.context import owner
from ....run.pipeline import PlainRun, loaded_tables
from ....run.run_modes import local_context, run_request
from .recorded_input import RecordedInput

_ALONE = {"mode": "error", "state": None, "start": None, "end": None, "expect": (), "max_rejects": None}
"""What a job has that is run for the rows of its stages alone."""


@contextmanager
def enriched(request: JobRequest, found: RecordedInput) -> Iterator[tuple[Source, StagePlan]]:
    """Yield the input with the columns of its enrich tables, and the first stage planned over it.

    Raises what `loaded_tables` raises.
    """
    with _alone(request, found) as alone, open_outputs(alone, owner()) as outputs:
        source = enriched_input(alone, found.source, LocalExecutor())
        plan = plan_job(alone, source, outputs)
        with loaded_tables(plan, PlainRun(time.perf_counter()), LocalExecutor()) as loaded:
            yield loaded.source, loaded.stages[0]


@contextmanager
def computed(request: JobRequest, found: RecordedInput) -> Iterator[str]:
    """Run the stages of a request in this process; yield the folder of the result. Raises what a run raises."""
    with _alone(request, found) as alone:
        run_request(alone, local_context(Messages(-1)))
        yield alone.job.output


@contextmanager
def _alone(request: JobRequest, found: RecordedInput) -> Iterator[JobRequest]:
    """Yield a request for a job in a temporary folder, over the input that was found."""
    stages = [each.stage.model_copy(update={"output": None, "plain": False}) for each in request.stages]
    with tempfile.TemporaryDirectory(prefix="wincli-") as folder:
        changed = {**_ALONE, "input": found.paths, "output": f"{folder}/out", "stages": tuple(stages)}
        alone = request_of(request.job.model_copy(update=changed))
        yield replace(alone, reading=replace(alone.reading, bases=found.bases))
