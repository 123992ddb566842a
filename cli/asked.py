"""What was asked for: the options, read and checked as far as that goes without looking at any input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conf.job import Job, Stage, make_job, origin_seconds, pairs
from readers.options import ReadOptions, parse_schema
from windowing.errors import ConfigError
from windowing.options import Options
from windowing.parse import parse_aggregate, parse_duration, parse_window
from windowing.spec import AggregateCall, WindowSpec


@dataclass(frozen=True, slots=True)
class AskedStage:
    """One stage of a job, read. ``calls``: None for ``count()``."""

    stage: Stage
    spec: WindowSpec
    calls: tuple[AggregateCall, ...] | None
    options: Options


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, read: nothing heavy was imported for it. ``stages``: as in the job."""

    job: Job
    stages: tuple[AskedStage, ...]
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
    return Asked(job, tuple(_stage(job, stage) for stage in job.stages), reading)


def _stage(job: Job, stage: Stage) -> AskedStage:
    calls = tuple(parse_aggregate(text) for text in stage.agg) or None
    return AskedStage(stage, parse_window(stage.window), calls, _window_options(job, stage))


def _window_options(job: Job, stage: Stage) -> Options:
    """What a stage asks of its window."""
    if stage.at_end == "hold" and job.state is None:
        raise ConfigError("--at-end hold keeps open windows in a state, and there is none", "say flush or drop")
    return Options(
        at_end=stage.at_end,
        empty=stage.empty,
        origin=origin_seconds(stage.origin),
        partial=stage.partial,
        group_by=stage.group_by,
        emit=stage.emit,
        sort_by=stage.sort_by,
        event_time=stage.event_time,
        lag=parse_duration(stage.lag),
        min_gap=parse_duration(stage.min_gap),
        emit_evicted=stage.emit_evicted,
        operator=stage.operator,
        plain=stage.plain,
    )
