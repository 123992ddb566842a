"""The outputs of a job, locked and opened before any input is read: a run that cannot write fails at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...writers.commit.tables import table_of
from ...writers.folders.lock import Owner
from ...writers.output.output import Output, open_output
from ...writers.output.overlap import refuse_each_other, refuse_overlap
from ...writers.state.storage.places import storage_of
from ..request.request import JobRequest


@contextmanager
def open_outputs(request: JobRequest, owner: Owner) -> Iterator[tuple[Output | None, ...]]:
    """Lock and open every output of a job: one for each stage, None for a stage without one, the job's own last.

    Outputs that are not committed when the context ends leave no trace. Raises `ConfigError`, with nothing touched,
    where outputs overlap each other, an enrich table or the job file, and what `open_output` raises.
    """
    job = request.job
    paths = [*(stage.stage.output for stage in request.stages[:-1]), request.stdout or job.output]
    refuse_overlaps(request, [path for path in paths if path])
    with ExitStack() as stack:

        def opened(path: str) -> Output:
            held = open_output(
                path, job.mode, request.inputs, owner, evolve=job.evolve_schema, is_unsafe=job.unsafe_commit
            )
            return stack.enter_context(held)

        yield tuple(opened(path) if path else None for path in paths)


def refuse_overlaps(request: JobRequest, outputs: Sequence[str]) -> None:
    """Raise `ConfigError` where outputs overlap each other, an enrich table or the job file.

    `open_output` looks at the inputs of the job.
    """
    refuse_each_other(outputs)
    for place in (table_of(path).place for path in outputs):
        for what, path in request.read_besides:
            refuse_overlap(place, [path], what)


def refuse_state_overlap(request: JobRequest) -> None:
    """Raise `ConfigError` where the state of a job without a range overlaps what it reads: it would be read, too.

    Of a range each unit reads a folder of its own.
    """
    if request.job.state is None or request.job.start is not None:
        return
    place = storage_of(request.job.state).place
    for what, path in (*(("input", path) for path in request.inputs), *request.read_besides):
        refuse_overlap(place, [path], what, "state")
