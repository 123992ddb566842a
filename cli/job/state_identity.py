"""The identity of a state: the options and columns that decide the windows, which all its runs must share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...windowing.language.options import WINDOW_OPTIONS, Options
from ..console.counts import option_text
from ..planning.stage_plans import StagePlan

# as they stand in the records of states that exist
_FIRST = ("empty", "origin", "partial", "group_by", "emit", "event_time", "lag", "min_gap", "emit_evicted")
_DECIDING = tuple(each.name for each in WINDOW_OPTIONS if each.decides_windows)
_OPTIONS = (*_FIRST, *(name for name in _DECIDING if name not in _FIRST))


def state_identity(stage: StagePlan) -> dict[str, Any]:
    """Return the identity of a stage as plain JSON values: window, key, order, options and needed columns."""
    plan = stage.plan
    options = {name: getattr(plan.options, name) for name in _OPTIONS}
    late = [column.name for column in plan.lag_columns if column.name in plan.values]
    return {
        "window": str(plan.spec),
        "key": list(plan.key),
        "order": list(plan.order.columns),
        **{name: _plain(value) for name, value in options.items()},
        "enrich": list(stage.enrichments),
        "columns": {name: str(stage.schema.field(name).type) for name in (*plan.columns, *late)},
    }


def identity_changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Describe how the stages of two jobs differ, by name; return an empty list where they do not.

    Options that a state of an older version lacks had their defaults.
    """
    if list(was) != list(now):
        return [f"its stages are {', '.join(was)}, not {', '.join(now)}"]
    which = {name: f"stage {name}: " if len(was) > 1 else "" for name in was}
    return [which[name] + text for name in was for text in _different(was[name], now[name])]


def _different(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, value in now.items():
        if key == "columns":
            yield from _different_columns(was.get(key) or {}, value)
        elif (old := was.get(key, _DEFAULTS.get(key))) != value:
            yield f"its {key} is {option_text(old)}, not {option_text(value)}"


def _different_columns(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, dtype in now.items():
        if name not in was:
            yield f"it does not hold column {name}"
        elif was[name] != dtype:
            yield f"it holds column {name} as {was[name]}, not {dtype}"


def _plain(value: Any) -> Any:
    """Return a value as it is after a round trip through JSON."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | str) else str(value)


_DEFAULTS = {**{name: _plain(getattr(Options(), name)) for name in _OPTIONS}, "enrich": []}
