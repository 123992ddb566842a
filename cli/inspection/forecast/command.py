"""``wincli plan``: what a run would do, and its windows over the first rows; nothing is written."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....conf.recorded_job import secrets_of
from ....windowing.errors import ConfigError, WincliError
from ....windowing.spark.boot import Progress
from ....windowing.spark.workers.no_pandas import block_pandas
from ....windowing.support.user_modules import search
from ...arguments import strange_variables
from ...console.messages import OK, Messages, Stopped, exit_code
from ...console.progress import Show, show_progress
from ...console.side_file import check_side_files
from ...console.streams import ReaderGoneError, has_colour, json_text, say
from ...launch import run_on_spark
from ...monitoring.monitors import side_files_of
from ...planning.request import JobRequest, parse_request
from .as_json import forecast_as_json
from .drawing.choice import Choice
from .text import forecast_text, strategy_text

if TYPE_CHECKING:
    from ...run.context import RunContext
    from ..effect.effect import Effect
    from .foresee import JobForecast

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
        _print_effect(effect, messages)
    print_plan(foreseen, choice, own.as_json, messages, effect)
    if problem is None:
        return OK
    messages.error(problem)
    return exit_code(problem)


def _effect_of(request: JobRequest, messages: Messages) -> Effect:
    """Compute the effect of a range, on Spark as a run does."""

    def load() -> Callable[[RunContext], Effect]:
        from ..effect.effect import effect_of  # noqa: PLC0415

        return lambda context: effect_of(request, context)

    return run_on_spark(request, messages, time.perf_counter(), load)


@contextmanager
def _progress(mode: str, messages: Messages) -> Iterator[Show]:
    """Yield what shows progress, which is loaded when it is first called."""
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
    from .drawing.drawn import drawing_of  # noqa: PLC0415 - what was printed is there while the scan loads
    from .tasks import sample_job  # noqa: PLC0415

    sampled = sample_job(foreseen.job)
    if sampled.strategy is not None:
        _print(strategy_text(sampled.strategy, width), messages)
    drawing = drawing_of(foreseen.job, sampled.source, choice, width, has_colour())
    if drawing is not None:
        _print(drawing, messages)


def _json_text(foreseen: JobForecast, choice: Choice, effect: Effect | None, messages: Messages) -> str:
    from .drawing.drawn import drawing_of  # noqa: PLC0415
    from .tasks import sample_job  # noqa: PLC0415

    forecast, drawing = foreseen.forecast, None
    if foreseen.job is not None:
        sampled = sample_job(foreseen.job)
        forecast = forecast.with_strategy(sampled.strategy)
        drawing = drawing_of(foreseen.job, sampled.source, choice, _WIDEST, is_coloured=False)
    values = {**forecast_as_json(forecast), "drawing": drawing}
    if effect is not None:
        from ..effect.text import effect_json  # noqa: PLC0415

        values["effect"] = effect_json(effect)
    return json_text(messages.clean_values(values), 2)


def _print_effect(effect: Effect, messages: Messages) -> None:
    from ..effect.text import effect_text  # noqa: PLC0415

    _print(f"{effect_text(effect)}\n", messages)


def _print(text: str, messages: Messages) -> None:
    say(messages.clean(text))
