"""``wincli run``: the options read into a job, and Java started; all that is heavy loads while it starts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.messages import Messages
from conf.job import Job, make_job, pairs
from conf.spark import spark_settings
from readers.options import ReadOptions, parse_schema
from windowing.engine.session import Boot, boot
from windowing.errors import ConfigError
from windowing.parse import parse_aggregate, parse_window
from windowing.spec import AggregateCall, WindowSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, read: what can be known to be right before any input is opened."""

    job: Job
    spec: WindowSpec
    calls: tuple[AggregateCall, ...]
    options: ReadOptions


def run_command(options: Mapping[str, Any], messages: Messages) -> None:
    """Run the job that the options describe. Raises a `WincliError` for everything that a user can cause."""
    started = time.perf_counter()
    _look_for_user_functions_here()
    asked = _read_job(options)
    with _boot(asked.job, messages) as spark:
        from cli.pipeline import run_job  # noqa: PLC0415 - loads pyarrow and numba, which takes as long as Java does

        run_job(asked, spark, messages, started)


def _look_for_user_functions_here() -> None:
    """Let ``module:name`` be a file of the working folder: last, or it could take the place of a module of ours."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _read_job(options: Mapping[str, Any]) -> Asked:
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


def _boot(job: Job, messages: Messages) -> Boot:
    verbose = messages.level >= 2
    return boot(job.master, job.spark_conf, spark_settings(job.master, job.spark_conf, verbose), verbose)
