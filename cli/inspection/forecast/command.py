"""``wincli plan``: what a run would do, and its windows over the first rows; nothing is written."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields as dataclass_fields
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ....conf.job import Job, secrets_of
from ....windowing.errors import ConfigError, WincliError, shown
from ....windowing.spark.boot import Progress
from ....windowing.spark.fork_server import block_pandas
from ....windowing.support.amounts import ahead_words, count_of, size
from ....windowing.support.modules import search
from ....windowing.support.redaction import redacted
from ...arguments import strange_variables
from ...console.messages import OK, Messages, Stopped, exit_code
from ...console.progress import Show, show_progress
from ...console.side_file import check_side_files
from ...console.streams import ReaderGoneError, has_colour, json_text, say
from ...console.table import side_by_side
from ...launch import run_on_spark
from ...monitoring.monitors import side_files_of
from ...run.request import alias_notes, parse_job
from ...run.steps import Action

if TYPE_CHECKING:
    from ...run.context import RunContext
    from ..effect import Effect
    from .foresee import Forecast, Foreseen
    from .stages import Values


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


def _strategy_text(found: Values, width: int) -> str:
    """Return the lines on how the first stage is computed."""
    how = f"{found['name']}: {found['why']}"
    if found["name"] != "one task":
        is_exchange = found["name"] == "exchange"
        how += f"; {count_of(found['chunks'], 'map task' if is_exchange else 'task')}"
        how += (
            f", about {count_of(found['slices'], 'scan task')}" if is_exchange and found["slices"] is not None else ""
        )
    sections = [("tasks", [how, *([found["memory"]] if found["memory"] is not None else [])])]
    sections += [("ahead", [ahead_words(found["ahead"])])] if "ahead" in found else []
    return "\n".join(line for section in sections for line in _wrap(section, width))


def _wrap(section: tuple[str, Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a section, with its name at the left of the first, and an empty line behind them.

    A line keeps the blanks that it begins with; where it is too long it is cut between words, and blanks between cells
    stay.
    """
    name, lines = section
    for text in map(shown, lines):
        inner = " " * (len(text) - len(text.lstrip()))
        heads = name.ljust(_LEFT) + inner, " " * (_LEFT + 2) + inner
        yield from wrap(
            text.strip(), width, initial_indent=heads[0], subsequent_indent=heads[1],
            break_long_words=False, break_on_hyphens=False,
        ) or [heads[0].rstrip()]  # fmt: skip
        name = ""
    yield ""


def _sections(forecast: Forecast) -> Iterator[tuple[str, Sequence[str]]]:
    yield "run", [*_head(forecast)]
    is_range = forecast.way == "range"
    if is_range:
        yield "units", _units(forecast)
    if found := forecast.input:
        of = f"of {forecast.shown}: " if is_range and forecast.shown is not None else ""
        words = f"{count_of(found['files'], 'file')}, {count_of(found['rows'], 'row')}, {size(found['nbytes'])}"
        names = found["first"] if found["files"] == 1 else f"{found['first']} .. {found['last']}"
        lines = [f"{of}{words}: {names}"]
        if found["cut_at"] is not None:
            lines.append(f"cut at {count_of(found['cut_at'], 'row')} by --limit: the input has more")
        if "ends" in found:
            lines.append(_ends_text(found["ends"]))
        yield "input", [*lines, *(f"passed over: {each}" for each in found["skipped"]), *_columns(found["columns"])]
    for stage in forecast.stages:
        named = f"stage {stage['name']}: {stage['window']}" if len(forecast.stages) > 1 else stage["window"]
        yield "window", [named, *(f"  {sentence}" for sentence in stage["sentences"])]
        clock = [f"the clock is {stage['clock']}"] if stage["clock"] is not None else []
        marks = [f"window marks come from {stage['marks']}"] if stage["marks"] is not None else []
        yield "order", [f"{', '.join(stage['order']) or 'arrival'}: {stage['order_why']}", *clock, *marks]
        is_kept = stage["output"] is not None
        where = f"{stage['output']} ({stage['format']})" if is_kept else "read by the next stage only"
        yield "output", [where, *_columns(stage["columns"])]
    if forecast.notes:
        yield "notes", forecast.notes


def _ends_text(ends: Values | None) -> str:
    """Return when both sides of a join end, and what that means for rows of the next unit."""
    if ends is None:
        return "when the left and the right end is not known: statistics of Parquet files would say it"
    text, later = (
        f"the left ends at {ends['left']}, the right at {ends['right']}",
        "left" if ends["left_behind"] else "right",
    )
    if not (count := ends[f"{later}_behind"]):
        return text
    other = "right" if later == "left" else "left"
    behind = f"at most {count_of(count, 'row')} of the {later} {'is' if count == 1 else 'are'} behind it"
    return f"{text}: {behind}; rows of the {other} before the later end are late in the next unit"


def _head(forecast: Forecast) -> Iterator[str]:
    places = f"output {forecast.output}" + (f", state {forecast.state}" if forecast.state is not None else "")
    if forecast.way == "range":
        words = []
        for action, (one, several) in _VERBS.items():
            units = forecast.having(action)
            if units or action == "run":
                again = sum(unit.is_again for unit in units) if action == "run" else 0
                counted = f"{len(units):,} {one if len(units) == 1 else several}"
                words.append(counted + (f" ({again:,} again)" if again else ""))
        yield f"{', '.join(words)}; {places}"
    else:
        (unit,) = forecast.units
        what = {"run": "it runs", "skip": "nothing to do", "stop": "it stops"}[unit.action]
        label = f"{unit.label}: " if unit.label else ""
        yield f"{label}{what}: {unit.why}; {places}"
    if forecast.reach is not None:
        yield forecast.reach
    if len(forecast.having("run", "may run")) > 1:
        if forecast.why_one_by_one is not None:
            yield f"units run one after the other: {forecast.why_one_by_one}"
        else:
            can = f"up to {forecast.jobs:,} run" if forecast.jobs > 1 else "--jobs N runs up to N"
            free = "no unit needs another" if forecast.state is None else "units may be computed beforehand"
            yield f"{free}: {can} at the same time"


def _units(forecast: Forecast) -> list[str]:
    lots = [list(lot) for _, lot in groupby(forecast.units, key=lambda unit: (unit.action, unit.why, unit.is_again))]
    rows = []
    for lot in lots:
        first, last = lot[0], lot[-1]
        files, nbytes = sum(len(unit.files) for unit in lot), sum(unit.nbytes for unit in lot)
        is_read = first.action in ("run", "may run") and files
        read = f" ({count_of(files, 'file')}, {size(nbytes)})" if is_read else ""
        action = "run again" if first.action == "run" and first.is_again else first.action
        rows.append((first.label if len(lot) == 1 else f"{first.label}..{last.label}", action, f"{first.why}{read}"))
    return side_by_side(rows)


def _columns(columns: Sequence[Values]) -> Iterator[str]:
    listed = [(shown(each["name"]), each["type"], each["origin"]) for each in columns[:_LONGEST_LIST]]
    name, kind = (min(max((len(row[at]) for row in listed), default=0), _WIDEST_CELL) for at in (0, 1))
    for row in listed:
        yield f"  {row[0].ljust(name)}  {row[1].ljust(kind)}  {row[2]}"
    if len(columns) > len(listed):
        yield f"  .. and {len(columns) - len(listed):,} more columns (--json has all)"


_WIDEST = 120


_MOST_ROWS = 1000


def plan_command(
    options: Mapping[str, Any],
    level: int,
    *,
    as_json: bool = False,
    only: Sequence[str] = (),
    rows: int = 40,
    with_effect: bool = False,
) -> int:
    """Print what a run with these options would do; return the exit code.

    ``as_json``: whether to print one JSON object. ``only``: the keys that are drawn, as ``COL=VALUE``. ``rows``: how
    many rows are drawn; 0: none. ``with_effect``: whether to compute what a range would change, which starts Spark.

    The exit code is 0, or that of the error with which the run would stop before it computes, which is reported after
    all that is known. Raises a `WincliError` for what is wrong with the options.
    """
    job = parse_job(options)
    messages = Messages(level, job.log_format == "json", secrets=secrets_of(job, os.environ))
    for note in (*strange_variables(os.environ), *alias_notes(job)):
        messages.note(note)
    try:
        return _plan(job, messages, as_json=as_json, only=only, rows=rows, with_effect=with_effect)
    except ReaderGoneError:  # who reads stdout has read enough
        raise
    except (Stopped, Exception) as error:  # caught here because these messages know the secrets of the job
        messages.error(error)
        return exit_code(error)


def _plan(job: Job, messages: Messages, *, as_json: bool, only: Sequence[str], rows: int, with_effect: bool) -> int:
    pairs = [text.partition("=") for text in only]  # several of one column are several values
    for text, (name, sign, _) in zip(only, pairs, strict=True):
        if not name or not sign:
            raise ConfigError(f"--only {text!r} is not COL=VALUE", "for example --only user=u7")
    if not 0 <= rows <= _MOST_ROWS:
        raise ConfigError(f"--rows {rows} is not from 0 to {_MOST_ROWS:,}", "0 draws nothing")
    check_side_files(side_files_of(job), job.named)
    if with_effect and (job.start is None or job.end is None):
        raise ConfigError("--effect: an effect is that of a range of units", "say --start and --end")
    if job.runs_user_code:
        search(Path.cwd())
    else:
        block_pandas()
    gc.disable()  # imported modules stay, and to look for garbage among them takes 0.1 s
    from .foresee import foresee  # noqa: PLC0415 - loads pyarrow and numba

    gc.enable()
    with ExitStack() as stack:
        shows: list[Show] = []

        def show(seen: Progress) -> None:  # begins with what takes long, if anything does
            if not shows:
                shows.append(stack.enter_context(show_progress(job.progress, messages)))
            shows[0](seen)

        foreseen = foresee(job, show)
    problem, effect = foreseen[0].problem, None
    if with_effect and problem is None:
        try:
            effect = run_on_spark(job, messages, time.perf_counter(), lambda: _load_effect(job))
        except WincliError as error:
            problem = error
    if effect is not None and not as_json:
        from ..effect import effect_text  # noqa: PLC0415

        _print(f"{effect_text(effect)}\n", messages)
    _print_plan(foreseen, [(name, value) for name, _, value in pairs], rows, as_json, messages, effect)
    if problem is None:
        return OK
    messages.error(problem)
    return exit_code(problem)


def _load_effect(job: Job) -> Callable[[RunContext], Effect]:
    from ..effect import effect_of  # noqa: PLC0415

    return lambda context: effect_of(job, context)


def _print_plan(
    foreseen: Foreseen,
    only: Sequence[tuple[str, str]],
    rows: int,
    as_json: bool,
    messages: Messages,
    effect: Effect | None,
) -> None:
    """Print a forecast at once; then, which takes longer, how it is computed, and its windows over the first rows.

    ``effect``: what a range would change, for the JSON object; None without ``--effect``.
    """
    forecast, job = foreseen
    width = _WIDEST if as_json else min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    if not as_json:
        _print("\n".join(line for section in _sections(forecast) for line in _wrap(section, width)), messages)
    strategy = drawing = None
    if job is not None:
        from .drawing import drawing_of, sample_job  # noqa: PLC0415 - what was printed is there while the scan loads

        source, strategy = sample_job(job)
        if strategy is not None and not as_json:
            _print(_strategy_text(strategy, width), messages)
        drawing = drawing_of(job, source, only, rows, width, has_colour() and not as_json)
        if drawing is not None and not as_json:
            _print(drawing, messages)
    if as_json:
        fields = {each.name: getattr(forecast, each.name) for each in dataclass_fields(forecast)}
        fields["units"] = [
            {
                "label": unit.label or None,
                "action": unit.action,
                "why": unit.why,
                "files": len(unit.files),
                "nbytes": unit.nbytes,
                "is_again": unit.is_again,
            }
            for unit in forecast.units
        ]
        way, problem = fields.pop("way"), fields.pop("problem")
        counts = {action: len(forecast.having(action)) for action in _VERBS}
        if fields["stages"]:
            fields["stages"][0]["strategy"] = strategy
        text = None if problem is None else redacted(str(problem))
        values = {"way": way, "counts": counts, **fields, "problem": text, "drawing": drawing}
        if effect is not None:
            from ..effect import effect_json  # noqa: PLC0415

            values["effect"] = effect_json(effect)
        say(json_text(messages.clean_values(values), 2))


def _print(text: str, messages: Messages) -> None:
    say(messages.clean(text))
