"""Outputs in tables: users name a path and a format, and inside the address of an output says which table it is."""

from __future__ import annotations

from ..windowing.errors import ConfigError
from ..windowing.support.formats import TABLE_FORMATS
from .job import PIPE, Job

_ICEBERG = "iceberg://"


def with_table_outputs(job: Job) -> Job:
    """Return a job whose outputs that are tables begin with the format of these, as ``delta+out``.

    Raises as `table_address` does.
    """
    stages = tuple(
        stage
        if stage.output is None
        else stage.model_copy(update={"output": table_address(stage.output, stage.output_format)})
        for stage in job.stages
    )
    output = table_address(job.output, stages[-1].output_format)
    return job.model_copy(update={"output": output, "stages": stages})


def table_address(path: str, format: str) -> str:
    """Return the address of an output; that of a folder is its path.

    Raises `ConfigError` for the address of an Iceberg table with another format.
    """
    if format in TABLE_FORMATS and path.startswith(_ICEBERG):
        raise ConfigError(f"{path} is an Iceberg table, and --output-format is {format}", "leave --output-format out")
    is_whole = format not in TABLE_FORMATS or path == PIPE or path.startswith(f"{format}+")
    return path if is_whole else f"{format}+{path}"


def plain_path(address: str) -> str:
    """Return the path of an output as the user wrote it."""
    prefix = next((f"{name}+" for name in TABLE_FORMATS if address.startswith(f"{name}+")), "")
    return address.removeprefix(prefix)


def is_table(address: str) -> bool:
    """Whether an output is in a table, of which several outputs may be parts."""
    return plain_path(address) != address or address.startswith(_ICEBERG)
