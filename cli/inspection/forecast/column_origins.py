"""Where the type of each input column comes from, and what each column of a result holds, in words."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ....readers.source import FileSource
from ....windowing.enrichment.source import EnrichedSource
from ....windowing.language.spec import AggregateCall
from ....windowing.planning.plan import Plan
from ....windowing.planning.result_schema import FIXED, MARK, OUTPUTS
from ....windowing.support.formats import FORMATS, Format
from ...planning.open_input import AnySource
from ...planning.request import JobRequest
from ...planning.stage_plans import StagePlan
from .forecast import ColumnForecast

_MOST_TEXT = 16 << 20  # bytes of a split that are read again to name the value which made a column text
_FIXED: Mapping[str, str] = {
    "window": "number of the window of its key",
    "window_start": "first bound of the window",
    "window_end": "last bound of the window",
    "closed_by": "what ended the window",
    "timing": "whether rows came too late for the window to be on time",
    "index": "number of the output of one window",
    MARK: "whether a window mark follows the row",
}


def input_columns(request: JobRequest, source: AnySource, plan: Plan) -> tuple[ColumnForecast, ...]:
    """Return all columns of the input and of the expressions over it, with where their types come from."""
    base, tables = source, {}
    if isinstance(source, EnrichedSource):
        base = source.base
        tables = {field.name: each.bound.enrichment.name for each in source.enriched for field in each.bound.fields}
    assert isinstance(base, FileSource)
    schema = plan.projection.schema
    lets = dict(plan.options.let)
    found = []
    for field in schema:
        if field.name in plan.projection.hidden:
            continue
        if field.name in tables:
            origin = f"enrich table {tables[field.name]}"
        elif field.name in base.schema.names:
            origin = _file_origin(request, base, field.name, field.name in plan.columns)
        elif field.name in lets:
            origin = f"--let {lets[field.name]}"
        else:
            origin = "of every input"
        found.append(ColumnForecast(field.name, str(field.type), origin))
    return tuple(found)


def _file_origin(request: JobRequest, source: FileSource, name: str, is_used: bool) -> str:
    declared = dict(request.reading.schema)
    if name in declared:
        return f"--schema {declared[name]}"
    if name in source.constants:
        return "folder names"
    place = source.type_places.get(name, "")
    if request.job.state is not None and place.startswith(f"the state {request.job.state} at "):
        return place
    form = format_of(source)
    if not FORMATS[form].is_text:
        lacking = sum(name not in layout for layout in source.layouts)
        return form if not lacking else f"{form}; {lacking:,} of {len(source.files):,} files lack it"
    if is_used and name in source.text_at and source.splits[source.text_at[name]].nbytes <= _MOST_TEXT:
        return f"{form}, by all values: {source.explain_type(name) or 'text'}"
    return f"{form}, by all values"


def format_of(source: FileSource) -> Format:
    """Return the format of the files of an input."""
    module = type(source.reader).__module__
    return next(name for name, each in FORMATS.items() if module.endswith(each.reader.rpartition(".")[2]))


def result_columns(stage: StagePlan) -> tuple[ColumnForecast, ...]:
    """Return the columns of a stage's result, with what each holds."""
    plan = stage.plan
    holds = _words(plan)
    own = _aggregates(stage)
    other = "column of the row" if plan.options.operator is None else f"operator {plan.options.operator}"
    return tuple(
        ColumnForecast(field.name, _type(field), holds.get(field.name) or own.get(field.name, other))
        for field in stage.result
    )


def _type(field: pa.Field) -> str:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return str(kind)


def _aggregates(stage: StagePlan) -> dict[str, str]:
    calls = stage.request.calls
    if calls is None:
        return {"count": "count()"}
    return {each.name: each.text if isinstance(each, AggregateCall) else str(each.expression) for each in calls}


def _words(plan: Plan) -> dict[str, str]:
    """Return what each column of a result holds that is neither an aggregate nor a column of the row."""
    known = dict.fromkeys(plan.place_names, "number of the row in its window")
    known |= dict.fromkeys(plan.stream_names, "when the window came out, for a next stage")
    known |= {each: _FIXED[each] for each in (*FIXED, *OUTPUTS, MARK)}
    return known | dict.fromkeys(plan.options.group_by, "group") | dict.fromkeys(plan.key, "key")
