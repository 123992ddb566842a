"""``wincli run``: read the options, start Java, and load all that is heavy while it starts."""

from __future__ import annotations

import errno
import gc
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...conf.recorded_job import secrets_of
from ...conf.spark import spark_settings
from ...windowing.spark.boot import SparkBoot, boot
from ...windowing.spark.masters import is_local
from ...windowing.spark.open_files import too_few_files
from ...windowing.spark.workers.fork_server import may_fork, prepare
from ...windowing.spark.workers.no_pandas import NO_PANDAS, block_pandas
from ...windowing.support.module_path import with_working_folder
from ...windowing.support.user_modules import search
from ..arguments.environment import strange_variables
from ..console.messages import CLOSED, Messages, Stopped, exit_code
from ..job.request import JobRequest, parse_request
from .standard_streams import Pipes, piped


def run_command(options: Mapping[str, Any], level: int) -> int:
    """Run the job that the options describe, and return the exit code.

    Raises a `WincliError` for what is wrong with the options; from then on errors are told as the job wants them.
    """
    started = time.perf_counter()
    asked = parse_request(options)
    messages = Messages(level, asked.job.log_format == "json", secrets=secrets_of(asked.job))
    for note in (*strange_variables(os.environ), *asked.notes):
        messages.note(note)
    try:
        with piped(asked) as pipes:
            tell = _run(asked, messages, pipes, started)
            if not pipes.write():
                return CLOSED
        return tell()
    except (Stopped, Exception) as error:  # by these messages, which know what is secret
        told = too_few_files() if isinstance(error, OSError) and error.errno == errno.EMFILE else error
        messages.error(told)
        return exit_code(told)


def _run(asked: JobRequest, messages: Messages, pipes: Pipes, started: float) -> Callable[[], int]:
    with _boot(asked, messages) as spark:
        # loads pyarrow and numba, which takes as long as Java takes to start
        gc.disable()  # what is imported stays: to look for garbage in it takes 0.1 s
        if not asked.runs_user_code:
            block_pandas()
        from ...windowing.support.jit import refusals  # noqa: PLC0415
        from ..console.progress import show_progress  # noqa: PLC0415
        from ..job.context import RunContext  # noqa: PLC0415
        from .run_modes import run_request  # noqa: PLC0415

        for note in (*spark.notes, *refusals()):
            messages.note(note)
        if asked.runs_user_code:
            search(Path.cwd())
        if _forks(asked):
            spark.start_fork_server()
        gc.enable()
        spark.connect()
        asked = pipes.filled(asked, messages.note)
        with show_progress(asked.job.progress, messages) as show:
            return run_request(asked, RunContext(spark, show, messages, started))


def _forks(asked: JobRequest) -> bool:
    """Whether workers are to be forks of this process."""
    return is_local(asked.job.master) and may_fork(asked.job.spark_conf) and not asked.runs_user_code


def _boot(asked: JobRequest, messages: Messages) -> SparkBoot:
    job, verbose = asked.job, messages.level >= 2
    settings = spark_settings(job.master, job.spark_conf, verbose)
    environ = with_working_folder(os.environ) if asked.runs_user_code else {**os.environ, NO_PANDAS: "1"}
    if _forks(asked):
        prepare(settings)
    return boot(job.master, job.spark_conf, settings, messages.java if verbose else None, environ)
