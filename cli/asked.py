"""What was asked for: the options, read and checked as far as that goes without looking at any input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conf.job import Job, make_job, pairs
from readers.options import ReadOptions, parse_schema
from windowing.errors import ConfigError
from windowing.parse import parse_aggregate, parse_window
from windowing.spec import AggregateCall, WindowSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, read: nothing heavy was imported for it."""

    job: Job
    spec: WindowSpec
    calls: tuple[AggregateCall, ...]
    options: ReadOptions


def read_job(options: Mapping[str, Any]) -> Asked:
    """Read the options of ``wincli run``. Raises `SpecError` and `ConfigError`."""
    given = dict(options)
    given["input"] = (given["input"],)
    given["spark_conf"] = pairs(given.get("spark_conf") or [])
    if not given.get("window"):
        raise ConfigError("no window is given", "say --window SPEC, for example --window 'delta(ts, 60)'")
    job = make_job(given)
    if job.at_end == "hold":
        raise ConfigError("--at-end hold keeps open windows in a state, and there is none", "say flush or drop")
    column_types = parse_schema(job.column_types) if job.column_types else ()
    options_read = ReadOptions(
        job.input_format, column_types, job.multiline, job.delimiter, job.file_order, job.split_size
    )
    return Asked(job, parse_window(job.window), tuple(parse_aggregate(text) for text in job.agg), options_read)
