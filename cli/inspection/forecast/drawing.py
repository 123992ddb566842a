"""How the first stage will be computed, by a sample; and its windows drawn over the first rows of its input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....readers.joined import is_right, sides_of
from ....readers.source import FileSource
from ....windowing.drawings.draw import draw_with
from ....windowing.drawings.text import picture_text
from ....windowing.engine.enrich import SMALL_TABLE, load_tables
from ....windowing.engine.range_cuts import slices_of
from ....windowing.engine.rejects import told_ahead
from ....windowing.engine.run import prepare_window
from ....windowing.engine.slice_scan import run_global_pass, with_cut
from ....windowing.engine.strategy import largest_window
from ....windowing.engine.task import FILES, STREAM
from ....windowing.enrichment.step import enrichments_of
from ....windowing.enrichment.window_table import tables_of
from ....windowing.errors import ConfigError, WincliError, did_you_mean, shown
from ....windowing.language.options import WINDOW_OPTIONS
from ....windowing.planning.matched_calls import matched_calls
from ....windowing.ports import Split
from ....windowing.support.amounts import count_of
from ....windowing.support.value_table import value_table
from ....writers.state.stage_files import LocalStage, ParquetStateFiles
from ...run.open_input import columns_of_call
from ...run.pipeline import sizes_of, task_of, with_windows
from ...run.reports import window_words
from ...run.stage_plans import StagePlan
from .stages import OpenJob, Values, driver_of


def sample_job(job: OpenJob) -> tuple[FileSource | None, Values | None]:
    """Read the enrich tables of a job and a sample of its rows, and choose a strategy as a run does.

    Returns the input with its tables, and how the first stage will be computed; None for both where the tables are too
    large for this process. Raises `DataError` where the result would have more rows than the job allows, and what
    reading raises.
    """
    options = job.plan.job
    driver = driver_of(options.master, options.spark_conf)
    source = job.plan.source
    if sum(split.nbytes for each in enrichments_of(source) for split in each.table.splits) > SMALL_TABLE:
        return None, None
    kept = dict[str, pa.RecordBatch]()  # enrich tables are written and read again, here in memory
    sink: Any = SimpleNamespace(write_scratch=kept.__setitem__, read_scratch=kept.__getitem__)
    source, _ = load_tables(source, sink, driver, None, options.slice_size)
    plan, mode = with_windows(replace(job.plan, source=source)), job.mode
    stage = plan.stages[0]
    work = task_of(plan, stage, source, plan.stage_outputs[0])
    if mode is not None:
        folder = LocalStage(f"{mode.state.storage.path_of(mode.unit.label)}/{stage.name}")
        work = mode.restore(stage, work, ParquetStateFiles(folder, f"{mode.state.shown}/{mode.unit.label}"))
    work, sample, strategy = prepare_window(work, driver, sizes_of(options))
    if work.plan.options.max_ahead is not None:
        work = with_cut(work, sample.chunks, driver)
        work = run_global_pass(work, sample.chunks, driver)[0] if work.plan.lets_vote else work
    ahead = told_ahead(work.plan, work.source, work.reached.ahead)
    slices: int | None = None
    if strategy.name == "exchange" and driver.is_known:
        slices = slices_of(strategy.bounds(work.plan, driver.parallelism))
    largest = largest_window(work, sample)
    return source, {
        "name": strategy.name,  # as -v has it
        "why": strategy.reason,
        "chunks": len(sample.chunks),  # the inputs of map tasks
        "slices": slices,  # of an exchange, about how many inputs of scan tasks; None where only the cluster knows
        "memory": None if largest is None else window_words(largest),  # of the largest window, where it is large
        **({} if ahead is None else {"ahead": ahead}),  # rows ahead of their time, as manifests have them
    }


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


def read_head(source: FileSource, columns: Sequence[str], only: Mapping[str, Sequence[Any]], most: int) -> HeadRows:
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


def _parts(source: FileSource) -> Iterator[tuple[Split, bool]]:
    for split in source.splits:
        before = None
        for piece in source.pieces_of(split, _PIECE):
            if before is not None:
                yield before, False
            before = piece
        if before is not None:
            yield before, split.ends_file


def _read_part(source: FileSource, part: Split, columns: Sequence[str], only: Mapping[str, Sequence[Any]]) -> pa.Table:
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


def drawing_of(
    job: OpenJob,
    source: FileSource | None,
    chosen: Sequence[tuple[str, str]],
    rows: int,
    width: int,
    is_coloured: bool,
) -> str | None:
    """Return the lines of the windows of a first stage, or why they are not drawn; None where nothing is to be drawn.

    ``source``: its input; None where that cannot be read here. ``chosen``: pairs of a key column and a value, as text.
    ``rows``: how many rows are drawn; 0: none. Raises `ConfigError` for keys that there are not.
    """
    stage = job.plan.stages[0]
    if not rows:
        return None
    key, schema, only = stage.plan.key, stage.plan.projection.schema, dict[str, list[Any]]()
    for name, text in chosen:
        if name not in key:
            what = f"--only: {name!r} is no key column" if key else "--only: the window has no key"
            raise ConfigError(what, did_you_mean(name, key) if key else "say --key, or leave it out")
        kind = schema.field(name).type
        try:
            value = pa.array([text]).cast(kind)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ConfigError(f"--only: {text!r} is no {kind}, which {name} is", "give a value of that type") from None
        only.setdefault(name, []).append(value)
    if source is None:
        return f"{_NO_DRAWING}: an enrich table is too large to be read here"
    if virtual := stage.plan.projection.virtual:
        return f"{_NO_DRAWING}: they depend on {', '.join(sorted(virtual))}, which only a run knows"
    plan, apart = stage.plan, dict[str, list[Any]]()
    if not (plan.takes_marks or plan.kind.needs.watermark or getattr(plan.spec, "eviction", None) is not None):
        apart = {name: values for name, values in only.items() if name in source.schema.names}  # keys are independent
    head = read_head(source, _columns(stage, source.schema), apart, _HEAD)
    if not head.is_all and sides_of(source) is not None:
        head = _head_of_both(source, stage, apart)
    if not head.rows.num_rows:
        if not only:
            return None
        given = ", ".join(shown(f"{name}={value}") for name, value in chosen)
        raise ConfigError(f"--only: no key has {given}", "look at the values of the key columns")
    stage = with_windows(job.plan).stages[0]
    limits = {"limit": rows, "limit_keys": _KEYS, "limit_panes": _PANES}
    try:
        drawing = draw_with(head.rows, _arguments(stage, head), limits, only, busiest=not only)
        lines = picture_text(drawing.picture, width).split("\n")
    except WincliError as error:
        if only:
            raise
        lines = [f"{_NO_DRAWING}: {shown(error.what)}"]
    lines += _notes(job, head, bool(only))
    return "\n".join(map(_colour, lines) if is_coloured else lines)


def _head_of_both(source: FileSource, stage: StagePlan, only: Mapping[str, Sequence[Any]]) -> HeadRows:
    """Return first rows of both sides of a join, up to where the first of those that are cut off ends."""
    columns, own = _columns(stage, source.schema), dict[bool, list[Split]]()
    for split in source.splits:  # those of one side stand together
        own.setdefault(is_right(source, split.file), []).append(split)
    parts = [replace(source, splits=value_table(Split, splits)) for splits in own.values()]
    heads = [read_head(each, columns, only, _HEAD // 2) for each in parts]
    rows, seen = pa.concat_tables([head.rows for head in heads]), sum(head.seen for head in heads)
    if stage.plan.sort and (ends := [pc.max(head.rows[stage.plan.sort[0]]) for head in heads if not head.is_all]):
        rows = rows.filter(pc.less_equal(rows[stage.plan.sort[0]], min(ends, key=lambda each: each.as_py())))
    return HeadRows(rows, (), seen, False)


def _columns(stage: StagePlan, schema: pa.Schema) -> list[str]:
    plan = stage.plan
    if plan.reads_result:
        return list(schema.names)
    options = plan.options
    expressions = [*(each for _, each in options.let), *([options.where] if options.where is not None else [])]
    needed = {*plan.projection.needs(plan.columns), *(name for each in expressions for name in each.columns)}
    calls = matched_calls(stage.request.calls or (), plan.spec)
    needed |= {name for item in calls for call in item.calls for name in columns_of_call(call)}
    needed |= {stage.marks.removeprefix("column:")}
    found = [name for name in schema.names if name in needed]
    return found or list(schema.names[:1])  # a table without columns would have no rows


def _arguments(stage: StagePlan, head: HeadRows) -> dict[str, Any]:
    plan, options = stage.plan, stage.request.options
    given = {each.attribute: getattr(plan.options, each.attribute) for each in WINDOW_OPTIONS}
    given = {name: value for name, value in given.items() if name not in _NOT_DRAWN}
    given |= {"let": {name: str(each) for name, each in options.let}}
    given |= {
        name: None if given[name] is None else str(given[name]) for name in ("where", "match", "distinct", "having")
    }
    has_aggregates = plan.options.operator is None and plan.options.emit == "aggregates"
    marks: Any = None
    if plan.takes_marks and stage.marks != STREAM:
        column = stage.marks.removeprefix("column:")
        marks = column if column != stage.marks else list(head.ends) if stage.marks == FILES else []
    return {
        **given,
        "windows": None if plan.windows is None else tables_of(plan.windows),
        "window": plan.spec,
        "key": list(plan.key),
        "order_by": None if plan.reads_result else list(plan.order.columns) or "arrival",
        "aggregates": list(stage.request.agg) or None if has_aggregates else None,
        "at_end": "flush" if given["at_end"] == "hold" else given["at_end"],
        "marks": marks,
        "watermarks": None,
        "rejected": "drop",
    }


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
