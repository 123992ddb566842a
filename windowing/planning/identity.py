"""The identity of a state: the options and columns that decide the windows, which all its runs must share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from ..language.options import WINDOW_OPTIONS, Options
from ..operator import check_saves, load
from ..support.option import option_text
from .plan import Plan

# as they stand in the records of states that exist
_FIRST = ("empty", "origin", "partial", "group_by", "emit", "event_time", "lag", "min_gap", "emit_evicted")
_NOW = tuple(each.name for each in WINDOW_OPTIONS if each.decides_windows)
DECIDING = (*_FIRST, *(name for name in _NOW if name not in _FIRST))
"""The options of a window that all runs of a state share."""


def identity_of(plan: Plan, enrichments: Sequence[str] = ()) -> dict[str, Any]:
    """Return the identity of a window as plain JSON values: window, key, order, options and needed columns."""
    options = {name: getattr(plan.options, name) for name in DECIDING}
    late = [column.name for column in plan.lag_columns if column.name in plan.values]
    schema = plan.projection.schema
    return {
        "window": str(plan.spec),
        "key": list(plan.key),
        "order": list(plan.order.columns),
        **{name: _plain(value) for name, value in options.items()},
        "enrich": list(enrichments),
        "columns": {name: str(schema.field(name).type) for name in (*plan.columns, *late)},
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any], same: Callable[[str], str] = str) -> Iterator[str]:
    """Describe how two identities differ. Options that a state of an older version lacks had their defaults.

    ``same``: a function from the text of a type to that of all types which count as the same.
    """
    for key, value in now.items():
        if key == "columns":
            yield from _different_columns(was.get(key) or {}, value, same)
        elif (old := was.get(key, _DEFAULTS.get(key))) != value:
            yield f"its {key} is {option_text(old)}, not {option_text(value)}"


def kind_of_values(dtype: str) -> str:
    """Return the text of a type without what differs from library to library: large text, dictionaries, time zones.

    An instant is the same in every time zone.
    """
    dtype = re.sub(r"dictionary<values=(.+), indices=\w+, ordered=\d>", r"\1", dtype)
    dtype = re.sub(r"\blarge_(string|binary|list)\b|\b(string|binary)_view\b", r"\1\2", dtype)
    return re.sub(r"tz=[^]]+", "tz=UTC", dtype)


def check_goes_on(plan: Plan) -> None:
    """Raise `ConfigError` for a window that cannot go on from a state."""
    if plan.kind.eviction is not None and plan.options.emit in {"entered", "left"}:
        raise ConfigError(
            f"--emit {plan.options.emit} of a window that evicts partitions does not go with a state",
            "say --emit rows, or leave the state out",
        )
    if plan.options.operator is not None and plan.options.at_end == "hold":
        check_saves(load(plan.options.operator))


def _different_columns(was: Mapping[str, str], now: Mapping[str, str], same: Callable[[str], str]) -> Iterator[str]:
    for name, dtype in now.items():
        if name not in was:
            yield f"it does not hold column {name}"
        elif same(was[name]) != same(dtype):
            yield f"it holds column {name} as {was[name]}, not {dtype}"


def _plain(value: Any) -> Any:
    """Return a value as it is after a round trip through JSON."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | str) else str(value)


_DEFAULTS = {**{name: _plain(getattr(Options(), name)) for name in DECIDING}, "enrich": []}
