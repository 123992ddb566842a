"""``wincli plan``: what a run would do, and its windows over the first rows; nothing is written."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....conf.job import secrets_of
from ....windowing.errors import ConfigError, WincliError, shown
from ....windowing.spark.boot import Progress
from ....windowing.spark.fork_server import block_pandas
from ....windowing.support.modules import search
from ....windowing.support.redaction import redacted
from ...arguments import strange_variables
from ...console.amounts import count_of, size, span
from ...console.messages import OK, Messages, Stopped, exit_code
from ...console.progress import Show, show_progress
from ...console.side_file import check_side_files
from ...console.streams import ReaderGoneError, has_colour, json_text, say
from ...launch import run_on_spark
from ...monitoring.monitors import side_files_of
from ...planning.request import JobRequest, parse_request
from .forecast import (
    Action,
    Choice,
    ColumnForecast,
    ExpectedTime,
    Forecast,
    InputForecast,
    StageForecast,
    StrategyForecast,
    UnitForecast,
)

if TYPE_CHECKING:
    from ...run.context import RunContext
    from ..effect import Effect
    from .foresee import JobForecast


# A forecast in words, for the terminal.


_LEFT = 11
_LONGEST_LIST = 40
_WIDEST_CELL = 32
_VERBS: Mapping[Action, tuple[str, str]] = {
    "run": ("unit runs", "units run"),
    "may run": ("may run", "may run"),
    "skip": ("is done", "are done"),
    "gap": ("has no input", "have no input"),
    "stop": ("is not reached", "are not reached"),
}


def forecast_text(forecast: Forecast, width: int) -> str:
    """Return the lines of a forecast, each of at most ``width`` characters where its words can be divided."""
    return "\n".join(line for section in _sections(forecast) for line in _wrap(section, width))


def strategy_text(found: StrategyForecast, width: int) -> str:
    """Return the lines on how the first stage is computed."""
    memory = [found.memory] if found.memory is not None else []
    return "\n".join(_wrap(("tasks", [_strategy_lines(found), *memory]), width))


def _wrap(section: tuple[str, Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a section, with its name at the left of the first; a line keeps the blanks it begins with."""
    name, lines = section
    for line in map(shown, lines):
        inner = len(line) - len(line.lstrip())
        first, rest = name.ljust(_LEFT) + " " * inner, " " * (_LEFT + inner + 2)
        yield from _fold(line.strip(), first, rest, width)
        name = ""
    yield ""


def _fold(line: str, first: str, rest: str, width: int) -> Iterator[str]:
    """Yield a line in pieces of at most ``width`` characters, cut between words; blanks between cells stay."""
    head = first
    while len(head) + len(line) > width and (at := line.rfind(" ", 0, max(width - len(head), 1) + 1)) > 0:
        yield (head + line[:at]).rstrip()
        head, line = rest, line[at:].lstrip()
    yield (head + line).rstrip()


def _sections(forecast: Forecast) -> Iterator[tuple[str, Sequence[str]]]:
    yield "run", [*_head(forecast)]
    if forecast.way == "range":
        yield "units", [*_units(forecast)]
    if forecast.input is not None:
        yield "input", [*_input(forecast.input, forecast.shown if forecast.way == "range" else None)]
    for stage in forecast.stages:
        yield from _stage(stage, len(forecast.stages) > 1)
    if forecast.notes:
        yield "notes", forecast.notes


def _head(forecast: Forecast) -> Iterator[str]:
    places = f"output {forecast.output}" + (f", state {forecast.state}" if forecast.state is not None else "")
    if forecast.way == "range":
        yield f"{_counts(forecast)}; {places}"
    else:
        (unit,) = forecast.units
        what = {"run": "it runs", "skip": "nothing to do", "stop": "it stops"}[unit.action]
        label = f"{unit.label}: " if unit.label is not None else ""
        yield f"{label}{what}: {unit.why}; {places}"
    if forecast.reach is not None:
        yield forecast.reach
    if len(forecast.having("run", "may run")) > 1:
        yield _together(forecast)
    if forecast.expected is not None:
        yield _expected(forecast.expected) + (", one after the other" if forecast.jobs > 1 else "")


def _together(forecast: Forecast) -> str:
    if forecast.why_one_by_one is not None:
        return f"units run one after the other: {forecast.why_one_by_one}"
    if forecast.jobs > 1:
        return f"no unit needs another: up to {forecast.jobs:,} run at the same time"
    return "no unit needs another: --jobs N runs up to N at the same time"


def _counts(forecast: Forecast) -> str:
    words = []
    for action, (one, several) in _VERBS.items():
        found = forecast.having(action)
        if found or action == "run":
            words.append(f"{len(found):,} {one if len(found) == 1 else several}")
        if action == "run" and (again := sum(unit.is_again for unit in found)):
            words[-1] += f" ({again:,} again)"
    return ", ".join(words)


def _expected(expected: ExpectedTime) -> str:
    seconds = _seconds(expected.seconds)
    if expected.at_most > expected.seconds:
        most = _seconds(expected.at_most)
        seconds = f"at most {most}" if not expected.seconds else f"{seconds}, at most {most}"
    far = "; none of them had a quarter of this input" if expected.is_far else ""
    return f"about {seconds}, by {count_of(expected.runs, 'earlier run')} of this job{far}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else span(seconds)


def _units(forecast: Forecast) -> Iterator[str]:
    lots = [list(lot) for _, lot in groupby(forecast.units, key=lambda unit: (unit.action, unit.why, unit.is_again))]
    heads = [
        ((f"{lot[0].label}" if len(lot) == 1 else f"{lot[0].label}..{lot[-1].label}"), _action(lot[0])) for lot in lots
    ]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    for head, lot in zip(heads, lots, strict=True):
        cells = "  ".join(text.ljust(width) for text, width in zip(head, widths, strict=True))
        files, nbytes = sum(unit.files for unit in lot), sum(unit.nbytes for unit in lot)
        is_read = lot[0].action in ("run", "may run") and files
        read = f" ({count_of(files, 'file')}, {size(nbytes)})" if is_read else ""
        yield f"{cells}  {lot[0].why}{read}"


def _action(unit: UnitForecast) -> str:
    return "run again" if unit.action == "run" and unit.is_again else unit.action


def _input(found: InputForecast, label: str | None) -> Iterator[str]:
    of = f"of {label}: " if label is not None else ""
    words = f"{count_of(found.files, 'file')}, {count_of(found.rows, 'row')}, {size(found.nbytes)}"
    names = found.first if found.files == 1 else f"{found.first} .. {found.last}"
    yield f"{of}{words}: {names}"
    if found.cut_at is not None:
        yield f"cut at {count_of(found.cut_at, 'row')} by --limit: the input has more"
    for skipped in found.skipped:
        yield f"passed over: {skipped}"
    yield from _columns(found.columns)


def _columns(columns: Sequence[ColumnForecast]) -> Iterator[str]:
    listed = [(shown(each.name), each.type, each.origin) for each in columns[:_LONGEST_LIST]]
    name, kind = (min(max((len(row[at]) for row in listed), default=0), _WIDEST_CELL) for at in (0, 1))
    for row in listed:
        yield f"  {row[0].ljust(name)}  {row[1].ljust(kind)}  {row[2]}"
    if len(columns) > len(listed):
        yield f"  .. and {len(columns) - len(listed):,} more columns (--json has all)"


def _stage(stage: StageForecast, is_named: bool) -> Iterator[tuple[str, Sequence[str]]]:
    named = [f"stage {stage.name}: {stage.window}"] if is_named else [stage.window]
    yield "window", [*named, *(f"  {sentence}" for sentence in stage.sentences)]
    order = ", ".join(stage.order) if stage.order else "arrival"
    clock = [f"the clock is {stage.clock}"] if stage.clock is not None else []
    marks = [f"window marks come from {stage.marks}"] if stage.marks is not None else []
    yield "order", [f"{order}: {stage.order_why}", *clock, *marks]
    where = f"{stage.output} ({stage.format})" if stage.output is not None else "read by the next stage only"
    yield "output", [where, *_columns(stage.columns)]


def _strategy_lines(found: StrategyForecast) -> str:
    if found.name == "one task":
        return f"one task: {found.why}"
    slices = "" if found.slices is None else f", about {count_of(found.slices, 'scan task')}"
    chunks = count_of(found.chunks, "map task" if found.name == "exchange" else "task")
    return f"{found.name}: {found.why}; {chunks}{slices if found.name == 'exchange' else ''}"


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
    from .sample import sample_job  # noqa: PLC0415

    source, strategy = sample_job(foreseen.job)
    if strategy is not None:
        _print(strategy_text(strategy, width), messages)
    drawing = drawing_of(foreseen.job, source, choice, width, has_colour())
    if drawing is not None:
        _print(drawing, messages)


def _json_text(foreseen: JobForecast, choice: Choice, effect: Effect | None, messages: Messages) -> str:
    from .drawing import drawing_of  # noqa: PLC0415
    from .sample import sample_job  # noqa: PLC0415

    forecast, drawing = foreseen.forecast, None
    if foreseen.job is not None:
        source, strategy = sample_job(foreseen.job)
        forecast = forecast.with_strategy(strategy)
        drawing = drawing_of(foreseen.job, source, choice, _WIDEST, is_coloured=False)
    values = {**forecast_as_json(forecast), "drawing": drawing}
    if effect is not None:
        from ..effect import effect_json  # noqa: PLC0415

        values["effect"] = effect_json(effect)
    return json_text(messages.clean_values(values), 2)


def _print(text: str, messages: Messages) -> None:
    say(messages.clean(text))
