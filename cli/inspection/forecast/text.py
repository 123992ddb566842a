"""A forecast in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ....windowing.errors import shown
from ...console.amounts import count_of, size, span
from .forecast import (
    Action,
    ColumnForecast,
    ExpectedTime,
    Forecast,
    InputForecast,
    StageForecast,
    StrategyForecast,
    UnitForecast,
)

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
    return "\n".join(_wrap(("tasks", [_strategy(found), *memory]), width))


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
        yield f"{cells}  {lot[0].why}{_size_of(lot)}"


def _action(unit: UnitForecast) -> str:
    return "run again" if unit.action == "run" and unit.is_again else unit.action


def _size_of(lot: Sequence[UnitForecast]) -> str:
    files, nbytes = sum(unit.files for unit in lot), sum(unit.nbytes for unit in lot)
    is_read = lot[0].action in ("run", "may run") and files
    return f" ({count_of(files, 'file')}, {size(nbytes)})" if is_read else ""


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


def _strategy(found: StrategyForecast) -> str:
    if found.name == "one task":
        return f"one task: {found.why}"
    slices = "" if found.slices is None else f", about {count_of(found.slices, 'scan task')}"
    chunks = count_of(found.chunks, "map task" if found.name == "exchange" else "task")
    return f"{found.name}: {found.why}; {chunks}{slices if found.name == 'exchange' else ''}"
