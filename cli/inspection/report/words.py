"""A recorded job in words: the windows of its stages clause by clause, and the options that differ from defaults."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ....conf.job import Job, with_later_keys
from ....conf.options import JOB_OPTIONS, STAGE_OPTIONS
from ....windowing.errors import WincliError
from ....windowing.language.sentences.sentences import sentences_of
from ....windowing.support.addresses.redaction import redacted
from ....windowing.support.option import Option
from ...planning.request import StageRequest, request_of
from .report import Clause

_SAID = frozenset(
    {"window", "key", "agg", "let", "where", "having", "group_by", "emit", "sort_by", "operator"}
    | {"at_end", "closed", "empty", "output", "input", "stages", "name"}
)
_HOW = frozenset({"log_format", "progress", "split_size", "slice_size", "max_open_files"})
"""Options of how a run went, not of what it made."""


def clauses_of(job: Mapping[str, Any], times: Set[str]) -> tuple[Clause, ...]:
    """Return the windows of a recorded job in English, stage by stage; ``times``: the columns that are times.

    A job of another version, which this one cannot parse, is told by the texts of its windows.
    """
    try:
        stages = request_of(Job.model_validate(with_later_keys(job))).stages
    except (WincliError, ValueError):
        return tuple(Clause(stage["name"], redacted(str(stage["window"]))) for stage in job["stages"])
    return tuple(Clause(each.stage.name, redacted(text)) for each in stages for text in _sentences(each, times))


def _sentences(request: StageRequest, times: Set[str]) -> tuple[str, ...]:
    return sentences_of(request.spec, request.stage.key, request.calls, request.options, times)


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
    if option.attribute in _SAID | _HOW or value in (None, [], {}, False) or str(value) == str(option.default):
        return ""
    if isinstance(value, dict):
        return redacted(", ".join(f"{name}={each}" for name, each in value.items()))
    return redacted(", ".join(map(str, value)) if isinstance(value, list) else str(value))
