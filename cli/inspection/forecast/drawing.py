"""The windows of the first stage drawn over the first rows of its input, through the scan in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....readers.source import FileSource
from ....windowing.drawings.draw import draw_with
from ....windowing.drawings.text import picture_text
from ....windowing.engine.task import FILES, STREAM
from ....windowing.enrichment.source import EnrichedSource
from ....windowing.errors import ConfigError, WincliError, did_you_mean, shown
from ....windowing.language.options import WINDOW_OPTIONS
from ....windowing.ports import Source, Split
from ...console.amounts import count_of
from ...planning.open_input import AnySource, columns_of_call
from ...planning.stage_plans import StagePlan
from .forecast import Choice
from .stages import OpenJob

# The first rows of an input, read in this process: of all keys, or of chosen ones wherever these stand.


_HEAD = 20_000
"""Rows that are read for a drawing; of chosen keys, rows of these keys."""
_PIECE = 4 << 20  # bytes of text that are read at a time


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Rows of an input in arrival order.

    ``rows``: the rows.
    ``ends``: after how many of them a file ends, ascending.
    ``seen``: how many rows of the input were looked at.
    ``is_all``: whether that were all.
    """

    rows: pa.Table
    ends: tuple[int, ...]
    seen: int
    is_all: bool


def read_head(source: Source, columns: Sequence[str], only: Mapping[str, Sequence[Any]], most: int = _HEAD) -> HeadRows:
    """Read rows in arrival order until there are ``most``.

    ``only``: values by column; rows with others are passed over. Memory is bounded by ``most`` and one part of a file.
    """
    schema = pa.schema([source.schema.field(name) for name in columns])
    tables, ends, count, seen = [schema.empty_table()], [], 0, 0
    parts = _parts(source)
    for part, ends_file in parts:
        found = _read_part(source, part, columns, only)
        tables.append(found.slice(0, most - count).cast(schema))
        count, seen = count + found.num_rows, seen + part.rows
        if count > most:
            break
        if ends_file:
            ends.append(count)
        if count == most:
            break
    is_all = count <= most and next(parts, None) is None
    return HeadRows(pa.concat_tables(tables), tuple(ends), seen, is_all)


def _parts(source: Source) -> Iterator[tuple[Split, bool]]:
    for split in source.splits:
        before = None
        files = source.base if isinstance(source, EnrichedSource) else source
        for piece in files.pieces_of(split, _PIECE) if isinstance(files, FileSource) else source.parts_of(split):
            if before is not None:
                yield before, False
            before = piece
        if before is not None:
            yield before, split.ends_file


def _read_part(source: Source, part: Split, columns: Sequence[str], only: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Read a part; where it is columnar, columns besides the chosen keys only if these have rows in it."""
    if only and source.columnar and len(only) < len(columns):
        mask = _mask(source.read(part, list(only)).rows, only)
        if not pc.any(mask).as_py():
            return pa.schema([source.schema.field(name) for name in columns]).empty_table()
    rows = source.read(part, columns).rows
    return rows.filter(_mask(rows, only)) if only else rows


def _mask(rows: pa.Table, only: Mapping[str, Sequence[Any]]) -> Any:
    mask = pa.repeat(True, rows.num_rows)
    for name, values in only.items():
        mask = pc.and_(mask, pc.is_in(rows.column(name), pa.array(values, rows.column(name).type)))
    return mask


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
    key, schema, found = stage.plan.key, stage.plan.projection.schema, dict[str, list[Any]]()
    for name, text in choice.only:
        if name not in key:
            what = f"--only: {name!r} is no key column" if key else "--only: the window has no key"
            raise ConfigError(what, did_you_mean(name, key) if key else "say --key, or leave it out")
        kind = schema.field(name).type
        try:
            value = pa.array([text]).cast(kind)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ConfigError(f"--only: {text!r} is no {kind}, which {name} is", "give a value of that type") from None
        found.setdefault(name, []).append(value)
    only = found
    if source is None:
        return f"{_NO_DRAWING}: an enrich table is too large to be read here"
    if virtual := stage.plan.projection.virtual:
        return f"{_NO_DRAWING}: they depend on {', '.join(sorted(virtual))}, which only a run knows"
    head = read_head(source, _columns(stage, source.schema), _apart(stage, source, only))
    if not head.rows.num_rows and only:
        given = ", ".join(shown(f"{name}={value}") for name, value in choice.only)
        raise ConfigError(f"--only: no key has {given}", "look at the values of the key columns")
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


def _columns(stage: StagePlan, schema: pa.Schema) -> list[str]:
    plan = stage.plan
    if plan.reads_result:
        return list(schema.names)
    options = plan.options
    expressions = [*(each for _, each in options.let), *([options.where] if options.where is not None else [])]
    needed = {*plan.projection.needs(plan.columns), *(name for each in expressions for name in each.columns)}
    needed |= {name for item in stage.request.calls or () for call in item.calls for name in columns_of_call(call)}
    needed |= {stage.marks.removeprefix("column:")}
    found = [name for name in schema.names if name in needed]
    return found or list(schema.names[:1])  # a table without columns would have no rows


def _arguments(stage: StagePlan, head: HeadRows) -> dict[str, Any]:
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
        "watermarks": None,
        "rejected": "drop",
    }


def _marks(stage: StagePlan, head: HeadRows) -> Any:
    if stage.marks == STREAM:
        return None
    if stage.marks.startswith("column:"):
        return stage.marks.removeprefix("column:")
    return list(head.ends) if stage.marks == FILES else []


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
