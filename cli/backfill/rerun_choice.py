"""Whether a finished unit with the same files is reprocessed: its output is lost, or it is to end otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...windowing.errors import ConfigError
from ...writers.state.unit_record import UnitRecord
from ..request.fingerprint import AT_END, job_differences, new_end
from ..request.request import JobRequest
from .lost_outputs import RerunReason, loss_of
from .rerun import with_same_end


def check_same_job(now: Mapping[str, Any], records: Sequence[UnitRecord]) -> None:
    """Raise `ConfigError` where units of a range were done by another job than ``now``, saying what differs.

    ``at_end`` does not count: finished units stay as they were ended, but for `why_rerun`.
    """
    for record in records:
        if found := differences_of(record, now):
            of_types = all(text.startswith("its schema is ") for text in found)
            other = "begin the range after the units that are done" if of_types else "name another state"
            raise ConfigError(
                f"{record.label} was done by a job that asks for something else: {'; '.join(found)}",
                f"run that job, redo the range with --redo, or {other}",
            )


def differences_of(record: UnitRecord, now: Mapping[str, Any]) -> list[str]:
    """Describe how the job of a unit differs from ``now``, a job on the same state by whatever path.

    ``at_end`` does not count.
    """
    return job_differences({**record.job, "state": now["state"]}, now, AT_END)


def why_rerun(record: UnitRecord, now: Mapping[str, Any], is_last: bool, is_newest: bool) -> RerunReason | None:
    """Return the reason to reprocess a unit that this job has finished with the same files; None where there is none.

    ``is_last``: whether it is the last requested unit. ``is_newest``: whether the state has no later unit. The windows
    that the newest unit holds can be flushed, for no unit has begun from them. Windows that were flushed are taken
    back only with ``--redo``.
    """
    if loss := loss_of(record.outputs, record.run):
        return loss
    end = new_end(record.job, now) if is_last else None
    if end is None:
        return None
    return RerunReason(f"it was ended with {end[0]}, and is to be ended with {end[1]}", end[2] and is_newest)


def replacing(request: JobRequest) -> JobRequest:
    """Return a job that replaces results of an earlier run in its outputs."""
    return replace(request, job=request.job.model_copy(update={"mode": "overwrite"}))


def rerun_of_finished(request: JobRequest, record: UnitRecord, now: Mapping[str, Any], is_end: bool) -> JobRequest:
    """Return the job that reprocesses a unit without ``--redo``: its windows end as they did, or are flushed now.

    ``is_end``: whether it is the last requested unit, and the newest of the state.
    """
    end = new_end(record.job, now)
    return replacing(request if is_end and end is not None and end[2] else with_same_end(request, record))
