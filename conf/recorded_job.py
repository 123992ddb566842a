"""A job as manifests and unit records hold it: complete, but without its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..windowing.errors import ConfigError, SpecError
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
        "enrich": as_recorded("enrich", job.enrich),
        "stages": stages,
        "state": _path(values["state"]),
        "lineage": _path(values["lineage"]),
        "master": redacted(values["master"]),
        "spark_conf": redacted_settings(values["spark_conf"]),
    }


def as_recorded(key: str, value: Any) -> Any:
    """Return the value of a key that names places as this version records it, also one that an earlier one recorded.

    A version that masks more makes no other job of what was recorded before it. A text that cannot be parsed stays.
    """
    if key == "state":
        return _path(value)
    try:
        found = map(parse_enrichment, value or ()) if key == "enrich" else ()
        return [str(with_path(each, redacted_path(each.path))) for each in found] if key == "enrich" else value
    except (SpecError, ConfigError):
        return value


def paths_of(job: Job) -> tuple[str, ...]:
    """Return all paths and URIs that a job names."""
    tables = (parse_enrichment(text).path for text in job.enrich)
    named = (*job.input, job.output, *(stage.output for stage in job.stages), job.state, *tables)
    return tuple(path for path in named if path)


def secrets_of(job: Job, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secret texts of a job and of the environment, to be masked in messages."""
    return secret_values(job.spark_conf, (*paths_of(job), job.master, job.lineage or ""), environ)


def _path(path: str | None) -> str | None:
    return None if path is None else redacted_path(path)
