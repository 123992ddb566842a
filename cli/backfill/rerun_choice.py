"""Whether a unit that is done is run once more over the same files: its output is lost, or it is to end otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...windowing.errors import ConfigError
from ...writers.state.unit_record import UnitRecord
from ..job.fingerprint import AT_END, job_differences, new_end
from ..job.request import JobRequest
from .lost_outputs import RerunReason, loss_of
from .rerun import with_same_end


def check_same_job(now: Mapping[str, Any], records: Sequence[UnitRecord]) -> None:
    """Raise `ConfigError` where units of a range were done by another job than ``now``, saying what differs.

    How units end is asked of each: those that are done stay as they were ended (`why_rerun`).
    """
    for record in records:
        if found := differences_of(record, now):
            raise ConfigError(
                f"{record.label} was done by a job that asks for something else: {'; '.join(found)}",
                "run that job, redo the range with --redo, or name another state",
            )


def differences_of(record: UnitRecord, now: Mapping[str, Any]) -> list[str]:
    """Say how the job of a unit differs from ``now``, a job onto the same state, whatever path leads there.

    How its windows end does not count.
    """
    return job_differences({**record.job, "state": now["state"]}, now, AT_END)


def why_rerun(record: UnitRecord, now: Mapping[str, Any], is_last: bool, is_newest: bool) -> RerunReason | None:
    """Return why a unit should be run again that was done by this job, with the same files; None where it should not.

    ``is_last``: it is the last one asked for; ``is_newest``: none of the state comes after it. Then windows that it
    holds can be let out, for no unit has gone on with them; what was let out is not taken back unasked.
    """
    if loss := loss_of(record.outputs, record.run):
        return loss
    end = new_end(record.job, now) if is_last else None
    if end is None:
        return None
    return RerunReason(f"it was ended with {end[0]}, and is to be ended with {end[1]}", end[2] and is_newest)


def replacing(asked: JobRequest) -> JobRequest:
    """Return a job whose outputs may hold results of an earlier run."""
    return replace(asked, job=asked.job.model_copy(update={"mode": "overwrite"}))


def rerun_of_finished(asked: JobRequest, record: UnitRecord, now: Mapping[str, Any], is_end: bool) -> JobRequest:
    """Return the job of a unit that is run again unasked: ended as it was, but where all it held is to be let out.

    ``is_end``: it is the last one asked for, and the newest.
    """
    end = new_end(record.job, now)
    return replacing(asked if is_end and end is not None and end[2] else with_same_end(asked, record))
