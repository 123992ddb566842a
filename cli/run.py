"""``wincli run``: read the options, start Java, and load all that is heavy while it starts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.asked import read_job
from cli.messages import Messages
from conf.job import Job
from conf.spark import spark_settings
from windowing.engine.session import Boot, boot


def run_command(options: Mapping[str, Any], messages: Messages) -> None:
    """Run the job that the options describe. Raises a `WincliError` for everything that a user can cause."""
    started = time.perf_counter()
    _look_for_user_functions_here()
    asked = read_job(options)
    with _boot(asked.job, messages) as spark:
        from cli.pipeline import run_job  # noqa: PLC0415 - loads pyarrow and numba, which takes as long as Java does

        run_job(asked, spark, messages, started)


def _look_for_user_functions_here() -> None:
    """Let ``module:name`` be a file of the working folder: last, or it could take the place of a module of ours."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _boot(job: Job, messages: Messages) -> Boot:
    verbose = messages.level >= 2
    return boot(job.master, job.spark_conf, spark_settings(job.master, job.spark_conf, verbose), verbose)
