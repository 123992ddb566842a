"""``wincli run``: parse the options, start Java, and import the heavy modules while Java starts."""

from __future__ import annotations

import errno
import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...conf.recorded_job import secrets_of
from ...conf.spark import spark_settings
from ...windowing.spark.boot import SparkBoot, boot
from ...windowing.spark.masters import is_local
from ...windowing.spark.open_files import too_few_files
from ...windowing.spark.setup import sweeping
from ...windowing.spark.workers.fork_server import may_fork, prepare
from ...windowing.spark.workers.no_pandas import NO_PANDAS, block_pandas
from ...windowing.support.module_path import with_working_folder
from ...windowing.support.user_modules import search
from ..arguments.environment import strange_variables
from ..console.messages import CLOSED, Messages, Stopped, exit_code
from ..monitoring.monitors import Monitors
from ..request.request import JobRequest, parse_request
from .input_size import MOST_BYTES, is_small
from .small_job import SmallJobBoot
from .standard_streams import Pipes, piped

if TYPE_CHECKING:
    from ..job.context import RunContext
    from .run_modes import Confirm

T = TypeVar("T")


def run_command(options: Mapping[str, Any], level: int, confirm: Confirm) -> int:
    """Run the job that the options describe, and return the exit code.

    ``confirm``: confirms the effect of a job with ``confirm_effect``.
    Raises a `WincliError` for what is wrong with the options. Later errors are written here, in the form that the job
    sets (``--log-format``), and give the exit code.
    """
    started = time.perf_counter()
    request = parse_request(options)
    messages = Messages(level, request.job.log_format == "json", secrets=secrets_of(request.job, os.environ))
    for note in (*strange_variables(os.environ), *request.notes):
        messages.note(note)
    monitors = Monitors(request, messages, started)
    try:
        monitors.open()
        code = _run_piped(request, messages, monitors, confirm)
    except (Stopped, Exception) as error:  # caught here because these messages know the secrets of the job
        reported = too_few_files() if isinstance(error, OSError) and error.errno == errno.EMFILE else error
        messages.error(reported)
        monitors.end(exit_code(reported), reported)
        return exit_code(reported)
    monitors.end(code)
    return code


def _run_piped(request: JobRequest, messages: Messages, monitors: Monitors, confirm: Confirm) -> int:
    with piped(request) as pipes:
        finish = _run(request, messages, pipes, monitors, confirm)
        if not pipes.write():
            return CLOSED
    return finish()


def _run(
    request: JobRequest, messages: Messages, pipes: Pipes, monitors: Monitors, confirm: Confirm
) -> Callable[[], int]:
    def load() -> Callable[[RunContext], Callable[[], int]]:
        from .run_modes import run_request  # noqa: PLC0415

        return lambda context: run_request(
            pipes.filled(request, messages.note), replace(context, observers=monitors.observers()), confirm
        )

    is_stdin_small = partial(pipes.is_all_within, MOST_BYTES, request, messages.note)
    return run_on_spark(request, messages, monitors.started, load, is_stdin_small)


def run_on_spark(
    request: JobRequest,
    messages: Messages,
    started: float,
    load: Callable[[], Callable[[RunContext], T]],
    is_stdin_small: Callable[[], bool] = lambda: False,
) -> T:
    """Start Spark for a job that is not small, and call what ``load`` returns with the context of a run.

    Returns the value of that call. A small job gets a Spark only when it comes to need one (`SmallJobBoot`).

    ``started``: `time.perf_counter` when the command began. ``load``: imports what is needed, while Java starts.
    ``is_stdin_small``: as `is_small` asks it.
    """
    start, job = partial(_boot, request, messages), request.job
    swept = sweeping(job.master, job.spark_conf, os.environ)
    with swept, SmallJobBoot(start) if is_small(request, is_stdin_small) else start() as spark:
        # The imports below load pyarrow and numba, which takes as long as Java takes to start.
        gc.disable()  # imported modules stay, and to look for garbage among them takes 0.1 s
        if not request.runs_user_code:
            block_pandas()
        from ...windowing.support.jit import refusals  # noqa: PLC0415
        from ..console.progress import show_progress  # noqa: PLC0415
        from ..job.context import RunContext  # noqa: PLC0415

        run = load()
        for note in refusals():
            messages.note(note)
        if request.runs_user_code:
            search(Path.cwd())
        if _forks(request):
            spark.start_fork_server()
        gc.enable()
        spark.connect()
        with show_progress(request.job.progress, messages) as show:
            return run(RunContext(spark, show, messages, started))


def _forks(request: JobRequest) -> bool:
    """Whether workers are forked from this process."""
    return is_local(request.job.master) and may_fork(request.job.spark_conf) and not request.runs_user_code


def _boot(request: JobRequest, messages: Messages) -> SparkBoot:
    job, verbose = request.job, messages.level >= 2
    settings = spark_settings(job.master, job.spark_conf, verbose)
    environ = with_working_folder(os.environ) if request.runs_user_code else {**os.environ, NO_PANDAS: "1"}
    if _forks(request):
        prepare(settings)
    java = messages.java if verbose else None
    spark = boot(job.master, job.spark_conf, settings, java, environ, _pack(request, environ, messages))
    for note in spark.notes:
        messages.note(note)
    return spark


def _pack(request: JobRequest, environ: Mapping[str, str], messages: Messages) -> Callable[[Path], Path] | None:
    """Return the function that packs the environment for executors, where the job asks for that."""
    if not request.job.ship_environment:
        return None
    from ...windowing.spark.environment.archive import pack_environment  # noqa: PLC0415 - 20 ms

    return lambda folder: pack_environment(folder, environ, request.runs_user_code, messages.note)
