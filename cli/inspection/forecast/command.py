"""``wincli plan``: what a run would do, and its windows over the first rows; nothing is written."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....conf.job import secrets_of
from ....windowing.engine.enrich import SMALL_TABLE, load_tables
from ....windowing.engine.range_cuts import slices_of
from ....windowing.engine.run import prepare_window
from ....windowing.engine.strategy import Exchange, largest_window
from ....windowing.enrichment.source import EnrichedSource
from ....windowing.errors import ConfigError, WincliError
from ....windowing.spark.boot import Progress
from ....windowing.spark.fork_server import block_pandas
from ....windowing.support.modules import search
from ....windowing.support.redaction import redacted
from ....writers.state.stage_files import ParquetStateFiles
from ...arguments import strange_variables
from ...console.messages import OK, Messages, Stopped, exit_code
from ...console.progress import Show, show_progress
from ...console.side_file import check_side_files
from ...console.streams import ReaderGoneError, has_colour, json_text, say
from ...launch import run_on_spark
from ...monitoring.monitors import side_files_of
from ...planning.open_input import AnySource
from ...planning.request import JobRequest, parse_request
from ...run.pipeline import sizes_of, task_of
from ...run.reports import window_words
from .drawing import Choice
from .forecast import Forecast, StrategyForecast
from .stages import DriverExecutor, MemoryTables, OpenJob, driver_of
from .text import forecast_text, strategy_text

if TYPE_CHECKING:
    from ...run.context import RunContext
    from ..effect import Effect
    from .foresee import JobForecast


# A forecast for programs: one JSON object.


def forecast_as_json(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as plain JSON values, its keys always in the same order."""
    fields = asdict(forecast)
    problem, way = fields.pop("problem"), fields.pop("way")
    counts = {action: len(forecast.having(action)) for action in ("run", "may run", "skip", "gap", "stop")}
    text = None if problem is None else redacted(str(problem))
    return {"way": way, "counts": counts, **fields, "problem": text}


_WIDEST = 120


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options of ``plan`` that ``run`` does not have.

    ``as_json``: whether to print one JSON object.
    ``only``: the keys that are drawn, as ``COL=VALUE``.
    ``rows``: how many rows are drawn; 0: none.
    ``effect``: whether to compute what a range would change, which starts Spark.
    """

    as_json: bool
    only: Sequence[str]
    rows: int
    effect: bool = False


def plan_command(options: Mapping[str, Any], level: int, own: PlanOptions) -> int:
    """Print what a run with these options would do; return the exit code.

    That is 0, or the exit code of the error with which the run would stop before it computes, which is reported after
    all that is known. Raises a `WincliError` for what is wrong with the options.
    """
    request = parse_request(options)
    messages = Messages(level, request.job.log_format == "json", secrets=secrets_of(request.job, os.environ))
    for note in (*strange_variables(os.environ), *request.notes):
        messages.note(note)
    try:
        return _plan(request, own, messages)
    except ReaderGoneError:  # who reads stdout has read enough
        raise
    except (Stopped, Exception) as error:  # caught here because these messages know the secrets of the job
        messages.error(error)
        return exit_code(error)


def _plan(request: JobRequest, own: PlanOptions, messages: Messages) -> int:
    choice = Choice.of(own.only, own.rows)
    check_side_files(side_files_of(request), request.named)
    if own.effect and (request.job.start is None or request.job.end is None):
        raise ConfigError("--effect: an effect is that of a range of units", "say --start and --end")
    if request.runs_user_code:
        search(Path.cwd())
    else:
        block_pandas()
    gc.disable()  # imported modules stay, and to look for garbage among them takes 0.1 s
    from .foresee import foresee  # noqa: PLC0415 - loads pyarrow and numba

    gc.enable()
    with _progress(request.job.progress, messages) as show:
        foreseen = foresee(request, show)
    problem = foreseen.forecast.problem
    effect = None
    if own.effect and problem is None:
        try:
            effect = _effect_of(request, messages)
        except WincliError as error:
            problem = error
    if effect is not None and not own.as_json:
        from ..effect import effect_text  # noqa: PLC0415

        _print(f"{effect_text(effect)}\n", messages)
    print_plan(foreseen, choice, own.as_json, messages, effect)
    if problem is None:
        return OK
    messages.error(problem)
    return exit_code(problem)


def _effect_of(request: JobRequest, messages: Messages) -> Effect:
    def load() -> Callable[[RunContext], Effect]:
        from ..effect import effect_of  # noqa: PLC0415

        return lambda context: effect_of(request, context)

    return run_on_spark(request, messages, time.perf_counter(), load)


@contextmanager
def _progress(mode: str, messages: Messages) -> Iterator[Show]:
    with ExitStack() as stack:
        shows: list[Show] = []

        def show(seen: Progress) -> None:
            if not shows:
                shows.append(stack.enter_context(show_progress(mode, messages)))
            shows[0](seen)

        yield show


def print_plan(
    foreseen: JobForecast, choice: Choice, as_json: bool, messages: Messages, effect: Effect | None = None
) -> None:
    """Print a forecast at once; then, which takes longer, how it is computed, and its windows over the first rows.

    ``effect``: what a range would change, for the JSON object; None without ``--effect``.
    """
    if as_json:
        say(_json_text(foreseen, choice, effect, messages))
        return
    width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    _print(forecast_text(foreseen.forecast, width), messages)
    if foreseen.job is None:
        return
    from .drawing import drawing_of  # noqa: PLC0415 - what was printed is there while the scan loads

    sampled = sample_job(foreseen.job)
    if sampled.strategy is not None:
        _print(strategy_text(sampled.strategy, width), messages)
    drawing = drawing_of(foreseen.job, sampled.source, choice, width, has_colour())
    if drawing is not None:
        _print(drawing, messages)


def _json_text(foreseen: JobForecast, choice: Choice, effect: Effect | None, messages: Messages) -> str:
    from .drawing import drawing_of  # noqa: PLC0415

    forecast, drawing = foreseen.forecast, None
    if foreseen.job is not None:
        sampled = sample_job(foreseen.job)
        forecast = forecast.with_strategy(sampled.strategy)
        drawing = drawing_of(foreseen.job, sampled.source, choice, _WIDEST, is_coloured=False)
    values = {**forecast_as_json(forecast), "drawing": drawing}
    if effect is not None:
        from ..effect import effect_json  # noqa: PLC0415

        values["effect"] = effect_json(effect)
    return json_text(messages.clean_values(values), 2)


def _print(text: str, messages: Messages) -> None:
    say(messages.clean(text))


# How the first stage of a job will be computed, by the sample of its input that a run takes, too.


@dataclass(frozen=True, slots=True)
class JobSample:
    """A job whose input was looked into.

    ``source``: the input, with enrich tables that are read; None where these are too large for this process.
    ``strategy``: how the first stage will be computed; None as ``source``.
    """

    source: AnySource | None
    strategy: StrategyForecast | None


def sample_job(job: OpenJob) -> JobSample:
    """Read the enrich tables of a job and a sample of its rows, and choose a strategy as a run does.

    Raises `DataError` where the result would have more rows than the job allows, and what reading raises.
    """
    options = job.plan.request.job
    driver = driver_of(options.master, options.spark_conf)
    source = _with_tables(job, driver)
    return JobSample(source, None if source is None else _strategy(job, source, driver))


def _with_tables(job: OpenJob, driver: DriverExecutor) -> AnySource | None:
    """Return the input with its enrich tables read; None where they are too large for this process."""
    source = job.plan.source
    if not isinstance(source, EnrichedSource):
        return source
    if sum(split.nbytes for table in source.tables for split in table.splits) > SMALL_TABLE:
        return None
    sink: Any = MemoryTables()
    return load_tables(source, sink, driver, None, job.plan.request.job.slice_size).source


def _strategy(job: OpenJob, source: AnySource, driver: DriverExecutor) -> StrategyForecast:
    plan, mode = replace(job.plan, source=source), job.mode
    stage = plan.stages[0]
    work = task_of(plan, stage, source, plan.stage_outputs[0])
    if mode is not None:
        folder = f"{mode.state.storage.path_of(mode.unit.label)}/{stage.name}"
        work = mode.restore(stage, work, ParquetStateFiles(folder, f"{mode.state.shown}/{mode.unit.label}"))
    work, sample, strategy = prepare_window(work, driver, sizes_of(plan.request.job))
    slices: int | None = None
    if isinstance(strategy, Exchange) and driver.is_known:
        slices = slices_of(strategy.bounds(work.plan, driver.parallelism))
    largest = largest_window(work, sample)
    memory = None if largest is None else window_words(largest)
    return StrategyForecast(strategy.name, strategy.reason, len(strategy.chunks), slices, memory)
