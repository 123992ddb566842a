"""The windows over the rows of a case, drawn as in notebooks, for the first window that is not as expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ....readers.open import open_source
from ....readers.source import FileSource
from ....windowing.drawings.draw import draw
from ....windowing.errors import WincliError
from ....windowing.local_executor import LocalExecutor
from ...planning.request import StageRequest
from ..results.result import open_result_folder
from .case import Part
from .case_job import Run
from .compare import Mismatch

_MOST_ROWS = 24
_AS_THEY_ARE = ("at_end", "empty", "closed", "partial", "event_time", "lag", "min_gap", "emit_evicted")
_AS_TEXTS = ("let", "where", "having")


def draw_mismatch(run: Run, found: Sequence[tuple[Part, str, Mismatch]]) -> str | None:
    """Return the windows of the stage that has the first window which is not as expected, over the key of that window.

    None where no window differs, or where it cannot be drawn: over columns of an enrich table, for example.
    """
    first = next(((part, stage, each) for part, stage, each in found if stage), None)
    if first is None:
        return None
    part, stage, mismatch = first
    try:
        return _drawing(run, run.parts.index(part), stage, mismatch)
    except WincliError:
        return None  # the drawing is an extra: the rows that differ are listed without it


def _drawing(run: Run, number: int, stage: str, mismatch: Mismatch) -> str:
    at = list(run.outputs[number]).index(stage)
    request = run.request.stages[at]
    rows, marks = _input_rows(run, number) if at == 0 else (_result_rows(run, number, at - 1), None)
    return str(draw(rows, request.spec, **_options(request, marks), **_chosen(request, rows, mismatch)))


def _options(request: StageRequest, marks: Sequence[int] | None) -> dict[str, Any]:
    """Return the arguments of a drawing that the options of a stage are; what is open at the end is drawn as such."""
    stage, options = request.stage, request.options
    given = {name: getattr(options, name) for name in _AS_THEY_ARE}
    given |= {name: getattr(stage, name) for name in _AS_TEXTS}
    given["key"] = stage.key
    given["order_by"] = "arrival" if stage.order_by == ("arrival",) else stage.order_by
    given["at_end"] = "flush" if options.at_end == "hold" else options.at_end
    given["marks"] = marks if stage.marks in ("auto", "files") else None if stage.marks == "none" else stage.marks
    if options.origin:
        given["origin"] = options.origin
    return given


def _chosen(request: StageRequest, rows: pa.Table, mismatch: Mismatch) -> dict[str, Any]:
    """Return which key is drawn: that of the first row that differs, where its texts fit the types of the key."""
    chosen: dict[str, Any] = {"limit": _MOST_ROWS, "limit_keys": 1 if request.stage.key else 5}
    key = request.stage.key
    if not key or not mismatch.pairs or not set(key) <= {*mismatch.columns} or not set(key) <= {*rows.column_names}:
        return chosen | {"limit_keys": 5}
    pair = mismatch.pairs[0]
    texts = dict(zip(mismatch.columns, pair.found or pair.expected or (), strict=True))
    try:
        only = {name: pa.scalar(texts[name]).cast(rows.schema.field(name).type).as_py() for name in key}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return chosen | {"limit_keys": 5}
    return chosen | {"only": only}


def _input_rows(run: Run, number: int) -> tuple[pa.Table, list[int] | None]:
    """Return the rows that are given to a part, and where its files end: after how many rows.

    With a state they are the rows of all parts up to it, as the windows of a part may begin in one before.
    """
    first = 0 if run.request.job.state is not None else number
    sources = [_source(run, paths) for paths in run.inputs[first : number + 1]]
    tables = [table for source in sources for table in _tables(source)]
    ends, rows = [], 0
    for source in sources:
        files = [sum(s.rows for s in source.splits if s.file == at) for at in range(len(source.files))]
        for count in files:
            rows += count
            ends.append(rows)
    is_stream = any(source.stream is not None for source in sources)
    return pa.concat_tables(tables, promote_options="permissive"), None if is_stream else ends


def _source(run: Run, paths: Sequence[str]) -> FileSource:
    return open_source(paths, run.request.reading, LocalExecutor())


def _tables(source: FileSource) -> list[pa.Table]:
    names = source.schema.names
    return [source.schema.empty_table(), *(source.read(split, names).rows for split in source.splits)]


def _result_rows(run: Run, number: int, at: int) -> pa.Table:
    result = open_result_folder(list(run.outputs[number].values())[at])
    return pa.concat_tables([result.schema.empty_table(), *result.rows.tables()])
