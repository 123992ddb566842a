"""A job as manifests and unit records hold it: complete, but without its secrets."""

from __future__ import annotations

from typing import Any

from ..windowing.language.enrichment import parse_enrichment, with_path
from ..windowing.support.addresses.redaction import redacted, redacted_path, redacted_settings, secret_values
from .job import Job


def recorded(job: Job) -> dict[str, Any]:
    """Return a job as plain JSON values for manifests and records, with secrets masked."""
    values = job.model_dump(mode="json", by_alias=True)
    stages = [{**stage, "output": _path(stage["output"])} for stage in values["stages"]]
    return {
        **values,
        "input": [redacted_path(path) for path in values["input"]],
        "output": redacted_path(values["output"]),
        "enrich": [str(with_path(each, redacted_path(each.path))) for each in map(parse_enrichment, job.enrich)],
        "stages": stages,
        "state": _path(values["state"]),
        "lineage": _path(values["lineage"]),
        "master": redacted(values["master"]),
        "spark_conf": redacted_settings(values["spark_conf"]),
    }


def paths_of(job: Job) -> tuple[str, ...]:
    """Return all paths and URIs that a job names."""
    tables = (parse_enrichment(text).path for text in job.enrich)
    named = (*job.input, job.output, *(stage.output for stage in job.stages), job.state, *tables)
    return tuple(path for path in named if path)


def secrets_of(job: Job) -> tuple[str, ...]:
    """Return the secret texts of a job, to be masked in messages."""
    return secret_values(job.spark_conf, (*paths_of(job), job.master, job.lineage or ""))


def _path(path: str | None) -> str | None:
    return None if path is None else redacted_path(path)
