"""What was asked for: the options, read and checked as far as that goes without looking at any input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conf.job import Job, make_job, origin_seconds, pairs
from readers.options import ReadOptions, parse_schema
from windowing.errors import ConfigError
from windowing.options import Options
from windowing.parse import parse_aggregate, parse_duration, parse_window
from windowing.spec import AggregateCall, WindowSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, read: nothing heavy was imported for it."""

    job: Job
    spec: WindowSpec
    calls: tuple[AggregateCall, ...] | None
    options: Options
    reading: ReadOptions


def read_job(options: Mapping[str, Any]) -> Asked:
    """Read the options of ``wincli run``. Raises `SpecError` and `ConfigError`."""
    given = dict(options)
    given["input"] = (given["input"],)
    given["spark_conf"] = pairs(given.get("spark_conf") or [])
    if not given.get("window"):
        raise ConfigError("no window is given", "say --window SPEC, for example --window 'delta(ts, 60)'")
    job = make_job(given)
    column_types = parse_schema(job.column_types) if job.column_types else ()
    reading = ReadOptions(job.input_format, column_types, job.multiline, job.delimiter, job.file_order, job.split_size)
    calls = tuple(parse_aggregate(text) for text in job.agg) or None
    return Asked(job, parse_window(job.window), calls, _window_options(job), reading)


def _window_options(job: Job) -> Options:
    """What a job asks of its window."""
    if job.at_end == "hold":
        raise ConfigError("--at-end hold keeps open windows in a state, and there is none", "say flush or drop")
    return Options(
        at_end=job.at_end,
        empty=job.empty,
        origin=origin_seconds(job.origin),
        partial=job.partial,
        group_by=job.group_by,
        emit=job.emit,
        sort_by=job.sort_by,
        event_time=job.event_time,
        lag=parse_duration(job.lag),
        min_gap=parse_duration(job.min_gap),
        emit_evicted=job.emit_evicted,
        operator=job.operator,
        plain=job.plain,
    )
