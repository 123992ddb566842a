"""The identity of the stages of a job, which all runs on a state must share, and the types that a state knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...windowing.language.enrichment import Enrichment
from ...windowing.planning.identity import differences, identity_of, known_columns
from ...windowing.support.column_types import type_of_text
from ...writers.state.unit_record import UnitRecord
from ..planning.open_input import KnownColumns
from ..planning.stage_plans import StagePlan
from ..request.request import JobRequest


def state_identity(stage: StagePlan) -> dict[str, Any]:
    """Return the identity of a stage as plain JSON values: window, key, order, options and needed columns.

    Of the first stage, columns of enrich tables are in ``tables``, and the column of marks counts as one of the input.
    """
    found = identity_of(stage.plan, stage.enrichments)
    mark = stage.marks.removeprefix("column:") if stage.marks.startswith("column:") else None
    if mark is not None and mark in stage.schema.names:
        found["input"].setdefault(mark, str(stage.schema.field(mark).type))
    if stage.tables:
        found["input"] = {name: kind for name, kind in found["input"].items() if name not in stage.enriched}
        found["tables"] = {name: {each.name: str(each.type) for each in of} for name, of in stage.tables.items()}
    return found


def identity_changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Describe how the stages of two jobs differ, by name; return an empty list where they do not."""
    if list(was) != list(now):
        return [f"its stages are {', '.join(was)}, not {', '.join(now)}"]
    which = {name: f"stage {name}: " if len(was) > 1 else "" for name in was}
    return [which[name] + text for name in was for text in differences(was[name], now[name])]


def known_by(record: UnitRecord, shown: str, request: JobRequest) -> KnownColumns:
    """Return the columns that a unit on the state ``shown`` has read, and those of its enrich tables."""
    identity = record.stages[0].identity
    computed = [name for name, _ in request.stages[0].options.let]
    computed += [name for each in request.enrichments for name in _enriched(each, identity)]
    place = place_of(record, shown)
    tables = {name: (place, _schema(types)) for name, types in (identity.get("tables") or {}).items()}
    return KnownColumns(((place, known_columns(identity, computed)),), {name: (each,) for name, each in tables.items()})


def place_of(record: UnitRecord, shown: str) -> str:
    """Return what messages call the state that a unit has left."""
    return f"the state {shown} at {record.label}"


def _enriched(enrichment: Enrichment, identity: Mapping[str, Any]) -> list[str]:
    """Return the columns of a state of an older version that an enrich table may have given its rows."""
    taken = {each.name for each in enrichment.take or ()}
    held = identity.get("columns") or {}
    return [name for name in held if name in taken or name.startswith(f"{enrichment.name}_")]


def _schema(types: Mapping[str, str]) -> pa.Schema:
    found = {name: type_of_text(kind) for name, kind in types.items()}
    return pa.schema([(name, kind) for name, kind in found.items() if kind is not None])
