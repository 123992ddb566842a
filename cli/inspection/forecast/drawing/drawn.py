"""The windows of the first stage drawn over the first rows of its input, through the scan in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from .....windowing.drawings.draw import draw_with
from .....windowing.drawings.text import picture_text
from .....windowing.engine.tasks.task import FILES, STREAM
from .....windowing.errors import ConfigError, WincliError, shown
from .....windowing.expressions.syntax import Expression
from .....windowing.language.options import WINDOW_OPTIONS
from .....windowing.language.spec import AggregateCall, AggregateExpression, Column
from .....windowing.support.suggest import did_you_mean
from ....console.amounts import count_of
from ....planning.open_input import AnySource
from ....planning.stage_plans import StagePlan
from ..stages import OpenJob
from .choice import Choice
from .head_rows import HeadRows, read_head

_KEYS, _PANES = 3, 12
_NO_DRAWING = "the windows are not drawn"
_NOT_DRAWN = frozenset({"emit", "group_by", "sort_by", "operator"})  # a drawing has panes with all their rows
_BOLD, _DIM, _COLOURS, _PLAIN = "\x1b[1m", "\x1b[2m", ("\x1b[36m", "\x1b[33m"), "\x1b[0m"
_PANE = re.compile(r"^( *pane (\d+): )(.*?[\]>…])(.*)$")


def drawing_of(job: OpenJob, source: AnySource | None, choice: Choice, width: int, is_coloured: bool) -> str | None:
    """Return the lines of the windows of a first stage, or why they are not drawn; None where nothing is to be drawn.

    ``source``: its input; None where that cannot be read here. Raises `ConfigError` for keys that there are not.
    """
    stage = job.plan.stages[0]
    if not choice.rows:
        return None
    only = _values(stage, choice.only)
    if source is None:
        return f"{_NO_DRAWING}: an enrich table is too large to be read here"
    if virtual := stage.plan.projection.virtual:
        return f"{_NO_DRAWING}: they depend on {', '.join(sorted(virtual))}, which only a run knows"
    head = read_head(source, _columns(stage, source.schema), _apart(stage, source, only))
    if not head.rows.num_rows and only:
        raise ConfigError(f"--only: no key has {_choice_text(choice)}", "look at the values of the key columns")
    if not head.rows.num_rows:
        return None
    lines = [*_lines(stage, head, only, choice.rows, width), *_notes(job, head, bool(only))]
    return "\n".join(map(_colour, lines) if is_coloured else lines)


def _lines(stage: StagePlan, head: HeadRows, only: Mapping[str, list[Any]], rows: int, width: int) -> list[str]:
    limits = {"limit": rows, "limit_keys": _KEYS, "limit_panes": _PANES}
    try:
        drawing = draw_with(head.rows, _arguments(stage, head), limits, only, busiest=not only)
    except WincliError as error:
        if only:
            raise
        return [f"{_NO_DRAWING}: {shown(error.what)}"]
    return picture_text(drawing.picture, width).split("\n")


def _apart(stage: StagePlan, source: AnySource, only: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the values by which rows can be passed over: of columns of the input, where keys are independent."""
    plan = stage.plan
    if plan.takes_marks or plan.kind.has_watermark or getattr(plan.spec, "eviction", None) is not None:
        return {}
    return {name: values for name, values in only.items() if name in source.schema.names}


def _values(stage: StagePlan, only: Sequence[tuple[str, str]]) -> dict[str, list[Any]]:
    """Return the chosen values of key columns in the types of these."""
    key, schema, found = stage.plan.key, stage.plan.projection.schema, dict[str, list[Any]]()
    for name, text in only:
        if name not in key:
            what = f"--only: {name!r} is no key column" if key else "--only: the window has no key"
            raise ConfigError(what, did_you_mean(name, key) if key else "say --key, or leave it out")
        kind = schema.field(name).type
        try:
            value = pa.array([text]).cast(kind)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ConfigError(f"--only: {text!r} is no {kind}, which {name} is", "give a value of that type") from None
        found.setdefault(name, []).append(value)
    return found


def _columns(stage: StagePlan, schema: pa.Schema) -> list[str]:
    """Return the columns of the input that the window, its expressions and its marks need."""
    plan = stage.plan
    if plan.reads_result:
        return list(schema.names)
    options = plan.options
    expressions = [*(each for _, each in options.let), *([options.where] if options.where is not None else [])]
    needed = {*plan.projection.needs(plan.columns), *(name for each in expressions for name in each.columns)}
    needed |= {name for call in stage.request.calls or () for name in _of_call(call)}
    needed |= {stage.marks.removeprefix("column:")}
    found = [name for name in schema.names if name in needed]
    return found or list(schema.names[:1])  # a table without columns would have no rows


def _of_call(item: AggregateCall | AggregateExpression) -> Iterator[str]:
    """Yield the columns that an aggregate names."""
    for part in (each for call in item.calls for each in (*call.arguments, call.where)):
        if isinstance(part, Column):
            yield part.name
        elif isinstance(part, Expression):
            yield from part.columns


def _arguments(stage: StagePlan, head: HeadRows) -> dict[str, Any]:
    """Return the arguments of `draw` that stand for the options of a stage."""
    plan, options = stage.plan, stage.request.options
    given = {each.attribute: getattr(plan.options, each.attribute) for each in WINDOW_OPTIONS}
    given = {name: value for name, value in given.items() if name not in _NOT_DRAWN}
    given |= {"let": {name: str(each) for name, each in options.let}}
    given |= {name: None if given[name] is None else str(given[name]) for name in ("where", "having")}
    has_aggregates = plan.options.operator is None and plan.options.emit == "aggregates"
    at_end = "flush" if given["at_end"] == "hold" else given["at_end"]
    order = None if plan.reads_result else list(plan.order.columns) or "arrival"
    return {
        **given,
        "window": plan.spec,
        "key": list(plan.key),
        "order_by": order,
        "aggregates": list(stage.request.stage.agg) or None if has_aggregates else None,
        "at_end": at_end,
        "marks": _marks(stage, head) if plan.takes_marks else None,
        "clock": None,
        "since": None,
        "watermarks": None,
        "rejected": "drop",
    }


def _marks(stage: StagePlan, head: HeadRows) -> Any:
    if stage.marks == STREAM:
        return None
    if stage.marks.startswith("column:"):
        return stage.marks.removeprefix("column:")
    return list(head.ends) if stage.marks == FILES else []


def _choice_text(choice: Choice) -> str:
    return ", ".join(shown(f"{name}={value}") for name, value in choice.only)


def _notes(job: OpenJob, head: HeadRows, is_chosen: bool) -> Iterator[str]:
    if job.mode is not None and job.mode.before is not None:
        yield f"... drawn from nothing: windows that {job.mode.before.label} left open are not in it"
    if not head.is_all:
        of = f"{count_of(head.rows.num_rows, 'row')} of the chosen keys among the " if is_chosen else "the "
        seen = f"first {count_of(head.seen if is_chosen else head.rows.num_rows, 'row')}"
        yield f"... drawn over {of}{seen} as they arrive; a run sees all, so windows at the end may go on"


def _colour(line: str) -> str:
    """Return a line of a drawing in colours: neighbouring panes differ, and the words on them are dim."""
    if found := _PANE.match(line):
        label, bar, words = found[1], found[3], found[4]
        return f"{_DIM}{label}{_PLAIN}{_COLOURS[int(found[2]) % 2]}{bar}{_PLAIN}{_DIM}{words}{_PLAIN}"
    if line.startswith("..."):
        return f"{_DIM}{line}{_PLAIN}"
    return f"{_BOLD}{line}{_PLAIN}" if line.startswith("rows") else line
