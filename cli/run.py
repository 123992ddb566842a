"""``wincli run``: read the options, start Java, and load all that is heavy while it starts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.asked import read_job
from cli.messages import Messages, Stopped, exit_code
from conf.job import Job
from conf.spark import spark_settings
from windowing.engine.session import Boot, boot
from windowing.errors import WincliError


def run_command(options: Mapping[str, Any], level: int) -> int:
    """Run the job that the options describe, and return the exit code.

    Raises a `WincliError` for what is wrong with the options; from then on errors are told as the job wants them.
    """
    started = time.perf_counter()
    _look_for_user_functions_here()
    asked = read_job(options)
    messages = Messages(level, asked.job.log_format == "json")
    try:
        with _boot(asked.job, messages) as spark:
            # loads pyarrow and numba, which takes as long as Java takes to start
            from cli.desk import Desk  # noqa: PLC0415
            from cli.progress import show_progress  # noqa: PLC0415
            from cli.runs import run_asked  # noqa: PLC0415

            with show_progress(asked.job.progress, messages) as show:
                tell = run_asked(asked, Desk(spark, show, messages, started))
        return tell()
    except (Stopped, WincliError) as error:
        messages.error(error)
        return exit_code(error)


def _look_for_user_functions_here() -> None:
    """Let ``module:name`` be a file of the working folder: last, or it could take the place of a module of ours."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _boot(job: Job, messages: Messages) -> Boot:
    verbose = messages.level >= 2
    return boot(job.master, job.spark_conf, spark_settings(job.master, job.spark_conf, verbose), verbose)
