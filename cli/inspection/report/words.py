"""A recorded job in words: the windows of its stages clause by clause, and the options that differ from defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....conf.options import JOB_OPTIONS, STAGE_OPTIONS
from ....windowing.support.option import Option
from ....windowing.support.redaction import redacted
from .report import Clause

_SAID = {"window", "key", "order_by", "agg", "where", "output", "input", "stages", "name", "log_format", "progress"}


def clauses_of(job: Mapping[str, Any]) -> tuple[Clause, ...]:
    """Return the windows of a job in words, stage by stage."""
    stages = job["stages"]
    found = []
    for stage in stages:
        name = f"{stage['name']}: " if len(stages) > 1 else ""
        found += [Clause(f"{name}{clause.about}", redacted(clause.text)) for clause in _clauses(stage)]
    return tuple(found)


def _clauses(stage: Mapping[str, Any]) -> Iterator[Clause]:
    yield Clause("window", str(stage["window"]))
    yield Clause("key", ", ".join(stage.get("key") or ()) or "none: one sequence of all rows")
    if stage.get("order_by"):
        yield Clause("order", ", ".join(stage["order_by"]))
    if stage.get("where"):
        yield Clause("rows", f"only where {stage['where']}")
    if (stage.get("emit") or "aggregates") == "aggregates" and not stage.get("operator"):
        yield Clause("columns", "; ".join(stage.get("agg") or ("count()",)))


def settings_of(job: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the options that differ from their defaults and that no clause says, as (name, value)."""
    stages = job["stages"]
    found = []
    for stage in stages:
        name = f"{stage['name']}: " if len(stages) > 1 else ""
        found += [(f"{name}{option.name}", text) for option in STAGE_OPTIONS if (text := _differs(option, stage))]
    found += [(option.name, text) for option in JOB_OPTIONS if (text := _differs(option, job))]
    return tuple(found)


def _differs(option: Option, values: Mapping[str, Any]) -> str:
    """Return the value of an option that is not its default, as text; else an empty text."""
    value = values.get(option.attribute, values.get(option.name))
    if option.attribute in _SAID or value in (None, [], {}, False) or str(value) == str(option.default):
        return ""
    if isinstance(value, dict):
        return redacted(", ".join(f"{name}={each}" for name, each in value.items()))
    return redacted(", ".join(map(str, value)) if isinstance(value, list) else str(value))
