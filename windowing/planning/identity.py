"""The identity of a state: the options and columns that decide the windows, which all its runs must share.

Types of columns are no part of it: a state gets those of the run that goes on from it (`StateTypes`), and where these
and its own have nothing in common, that is an error of its own (`check_types`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..errors import ConfigError
from ..language.joins import Join
from ..language.options import WINDOW_OPTIONS, Options
from ..language.spec import HIDDEN, RowPattern
from ..language.tokens import listed
from ..operator import check_saves, load
from ..rows.projection import VIRTUAL
from ..state.state_tables import BASELINE, NEWEST, ONGOING
from ..state.state_types import StateTypes
from ..state.window_state import baseline_type
from ..support.column_types import common_type, how_to_keep, type_of_text
from ..support.option import option_text
from .plan import Plan

# as they stand in the records of states that exist
_FIRST = ("empty", "origin", "partial", "group_by", "emit", "event_time", "lag", "min_gap", "emit_evicted")
_THEN = ("let", "where", "closed")  # in those of 0.18, too; later options stand there where they have no default
_NOW = tuple(each.name for each in WINDOW_OPTIONS if each.decides_windows)
DECIDING = (*_FIRST, *(name for name in _NOW if name not in _FIRST))
"""The options of a window that all runs of a state share."""
_ALWAYS = frozenset({*_FIRST, *_THEN})


def identity_of(plan: Plan, enrichments: Sequence[str] = ()) -> dict[str, Any]:
    """Return the identity of a window as plain JSON values: window, key, order, options and needed columns.

    ``columns``: those that a state holds. ``input``: those of the input that these are computed from, in their order.
    ``rows``: whether all columns of the input are held.
    """
    options = {name: getattr(plan.options, name) for name in DECIDING}
    options = {name: each for name, each in options.items() if name in _ALWAYS or each != getattr(Options(), name)}
    late = [column.name for column in plan.lag_columns if column.name in plan.values]
    schema = plan.projection.schema
    read = [name for name in plan.projection.needs(plan.columns) if name not in VIRTUAL]
    return {
        "window": str(plan.spec),
        "key": list(plan.key),
        "order": list(plan.order.columns),
        **{name: _plain(value) for name, value in options.items()},
        "enrich": list(enrichments),
        **({} if plan.windows is None else {"windows": plan.windows.bound.request.clauses}),
        "columns": {
            **{name: str(schema.field(name).type) for name in (*plan.columns, *late)},
            **{name: str(dtype) for name, dtype in plan.ongoing.items()},
        },
        "input": {name: str(schema.field(name).type) for name in read},
        "rows": bool(plan.rows),
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Describe how two identities differ. Options that a state of an older version lacks had their defaults."""
    held, read = was.get("columns") or {}, was.get("input") or {}
    # A state that holds all columns of its input lacks none: no file has had this one.
    holds_all = was.get("rows", was.get("emit", "aggregates") != "aggregates")
    spared = {*(now.get("input") or {})} if holds_all else set()
    left_out = {name: _DEFAULTS[name] for name in DECIDING if name in was and name not in now}
    for key, value in {**now, **left_out}.items():
        if key == "max_ahead" and was.get(key) is None:
            continue  # a state may begin to look for rows ahead: it is asked for after a bad night
        old = was.get(key, _DEFAULTS.get(key))
        if key == "columns":
            yield from (f"it does not hold column {name}" for name in value if name not in held and name not in spared)
        elif key not in _OF_COLUMNS and old != value:
            types = {**read, **held}
            orders = [[name for name in each or () if types.get(name) != "null"] for each in (old, value)]
            if key == "order" and orders[0] == orders[1]:
                continue  # columns without any value order nothing
            yield f"its {key} is {option_text(old)}, not {option_text(value)}"


def known_columns(identity: Mapping[str, Any], computed: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of the input that a state knows; of types that have no text that can be read: none.

    ``computed``: the columns that expressions compute now. A state of an older version only has what it holds.
    """
    found, left_out = identity.get("input"), {*VIRTUAL, *computed}
    if found is None:
        found = {name: kind for name, kind in (identity.get("columns") or {}).items() if not name.startswith(HIDDEN)}
    types = {name: type_of_text(kind) for name, kind in found.items() if name not in left_out}
    return pa.schema([(name, kind) for name, kind in types.items() if kind is not None])


def check_types(
    was: Mapping[str, Any], now: Mapping[str, Any], shown: str, places: Mapping[str, str] | None = None, who: str = ""
) -> None:
    """Raise `ConfigError` for a column of which a state has values that no type holds together with those of now.

    ``was``, ``now``: the identities of the state and of the window. ``shown``, ``places``: as `StateTypes` has them.
    ``who``: the beginning of the message.
    """
    held, read = was.get("columns") or {}, now.get("input") or {}
    for name, dtype in now["columns"].items():
        if name not in held or have_common_type(held[name], dtype):
            continue
        if name not in read:
            what = f"{name.removeprefix(HIDDEN)!r} is {held[name]} in {shown}, and gives {dtype} now"
            raise ConfigError(f"{who}{what}", f"cast it in its expression, so that it stays {held[name]}")
        place = (places or {}).get(name)
        by = " now" if place is None else " by --schema" if place == "--schema" else f" in {place}"
        kind = type_of_text(held[name])
        do = f"write it as {held[name]}" if kind is None else how_to_keep(name, kind)
        raise ConfigError(f"{who}column {name!r} is {held[name]} in {shown} and {dtype}{by}", do)


def have_common_type(one: str, other: str) -> bool:
    """Whether there is a type that holds the values of two types, which are given as texts."""
    kinds = type_of_text(one), type_of_text(other)
    if kinds[0] is not None and kinds[1] is not None:
        return common_type(*kinds) is not None
    return _kind_of_values(one) == _kind_of_values(other)


def state_types(plan: Plan, was: Mapping[str, Any], shown: str, places: Mapping[str, str] | None = None) -> StateTypes:
    """Return the types that a state gets from the plan that goes on from it; arguments as in `check_types`."""
    schema = plan.projection.schema
    more: dict[str, pa.DataType] = {}
    if plan.kind.needs.baseline is not None:
        more[BASELINE] = baseline_type(plan.kind.needs.baseline, schema)
    if read := list(plan.looked_back):
        more[NEWEST] = pa.list_(pa.struct(read))
    if plan.ongoing:
        more[ONGOING] = pa.struct([*plan.ongoing.items()])
    return StateTypes(schema, was.get("columns") or {}, shown, places or {}, more)


def check_goes_on(plan: Plan) -> None:
    """Raise `ConfigError` for a window that cannot go on from a state."""
    if plan.kind.needs.eviction is not None and plan.options.emit in {"entered", "left"}:
        raise ConfigError(
            f"--emit {plan.options.emit} of a window that evicts partitions does not go with a state",
            "say --emit rows, or leave the state out",
        )
    if isinstance(plan.spec, RowPattern) and plan.spec.has_waits and plan.spec.within is None:
        what = f"{plan.spec}: with a state -> needs within: else a first step waits for ever, and all rows behind it"
        raise ConfigError(what, "say how long: match(..) within 1d")
    distinct = plan.options.distinct
    if distinct is not None and distinct.within is None and distinct.count is None:
        what = f"--distinct {distinct}: a state would keep every {listed(distinct.columns)} for ever"
        raise ConfigError(what, f'say how long: --distinct "{distinct} within 1d"')
    if plan.options.operator is not None and plan.options.at_end == "hold":
        check_saves(load(plan.options.operator))


def _kind_of_values(dtype: str) -> str:
    """Return the text of a type without what differs from library to library: large text, dictionaries, time zones."""
    dtype = re.sub(r"dictionary<values=(.+), indices=\w+, ordered=\d>", r"\1", dtype)
    dtype = re.sub(r"\blarge_(string|binary|list)\b|\b(string|binary)_view\b", r"\1\2", dtype)
    return re.sub(r"tz=[^]]+", "tz=UTC", dtype)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    value = value.without_place if isinstance(value, Join) else value
    return value if value is None or isinstance(value, bool | str) else str(value)


_OF_COLUMNS = ("columns", "input", "tables", "rows")
_DEFAULTS = {**{name: _plain(getattr(Options(), name)) for name in DECIDING}, "enrich": []}
