"""A job as it is recorded and compared: without what is secret in it, but otherwise as run."""

from __future__ import annotations

from typing import Any

from ..windowing.support.redaction import redacted, redacted_path, redacted_settings, secret_values
from .job import Job


def recorded(job: Job) -> dict[str, Any]:
    """Return a job as plain JSON values for manifests and records."""
    told = job.model_dump(mode="json", by_alias=True)
    stages = [{**stage, "output": _path(stage["output"])} for stage in told["stages"]]
    return {
        **told,
        "input": [redacted_path(path) for path in told["input"]],
        "output": redacted_path(told["output"]),
        "stages": stages,
        "state": _path(told["state"]),
        "master": redacted(told["master"]),
        "spark_conf": redacted_settings(told["spark_conf"]),
    }


def paths_of(job: Job) -> tuple[str, ...]:
    """Return all paths and URIs that a job names."""
    named = (*job.input, job.output, *(stage.output for stage in job.stages), job.state)
    return tuple(path for path in named if path)


def secrets_of(job: Job) -> tuple[str, ...]:
    """Return what is secret in a job, to be masked in texts."""
    return secret_values(job.spark_conf, (*paths_of(job), job.master))


def _path(path: str | None) -> str | None:
    return None if path is None else redacted_path(path)
