"""``wincli run``: read the options, start Java, and load all that is heavy while it starts."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.asked import Asked, read_job
from cli.messages import Messages, Stopped, exit_code
from cli.variables import strange_variables
from conf.spark import spark_settings
from windowing.engine.bare import BARE, without_pandas
from windowing.engine.seed import may_seed, prepare
from windowing.engine.session import Boot, boot
from windowing.engine.setup import is_local
from windowing.errors import WincliError


def run_command(options: Mapping[str, Any], level: int) -> int:
    """Run the job that the options describe, and return the exit code.

    Raises a `WincliError` for what is wrong with the options; from then on errors are told as the job wants them.
    """
    started = time.perf_counter()
    _look_for_user_functions_here()
    asked = read_job(options)
    messages = Messages(level, asked.job.log_format == "json")
    for note in (*strange_variables(os.environ), *asked.notes):
        messages.note(note)
    try:
        with _boot(asked, messages) as spark:
            # loads pyarrow and numba, which takes as long as Java takes to start
            gc.disable()  # what is imported stays: to look for garbage in it takes 0.1 s
            if not asked.runs_user_code:
                without_pandas()
            from cli.desk import Desk  # noqa: PLC0415
            from cli.progress import show_progress  # noqa: PLC0415
            from cli.runs import run_asked  # noqa: PLC0415

            if _forks(asked):
                spark.plant()
            gc.enable()
            spark.connect()
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


def _forks(asked: Asked) -> bool:
    """Whether workers are to be forks of this process."""
    return is_local(asked.job.master) and may_seed(asked.job.spark_conf) and not asked.runs_user_code


def _boot(asked: Asked, messages: Messages) -> Boot:
    job, verbose = asked.job, messages.level >= 2
    settings = spark_settings(job.master, job.spark_conf, verbose)
    environ = os.environ if asked.runs_user_code else {**os.environ, BARE: "1"}
    if _forks(asked):
        prepare(settings)
    return boot(job.master, job.spark_conf, settings, verbose, environ)
