"""Columns of a row that depend on the window that shows it: how much of a row that lasts is inside (section 18)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from ..aggregates.table import BEGINS, TABLE, UNTIL
from ..columns.arrays import measure_type
from ..errors import ConfigError
from ..expressions.binding import bind
from ..expressions.syntax import Expression
from ..language.spec import AggregateCall, Column
from ..rows.projection import ComputedColumn

OVERLAP, SHARE = "_overlap", "_share"
MEANINGS: Final = {
    OVERLAP: "_overlap is the seconds of a row inside its window",
    SHARE: "_share is the part of a row inside its window",
}
"""The columns that rows that last have in a window, and what they are."""


def apart(
    calls: Iterable[AggregateCall], columns: Mapping[str, Expression], known: Iterable[str], ends: str | None
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """Return the hidden columns of aggregates that rows alone decide, and those that their windows decide, too.

    ``known``: the columns of the input, and those of ``--let``. Raises `ConfigError` where rows do not last, and for
    ``lag``, which is known before windows.
    """
    late = {name: each for name, each in columns.items() if any(word in MEANINGS for word in each.columns)}
    if ends is None:
        named = {each.name for call in calls for each in call.arguments if isinstance(each, Column)}
        named |= {word for each in late.values() for word in each.columns}
        for word in sorted(named & MEANINGS.keys() - set(known)):
            raise ConfigError(f"{MEANINGS[word]}, and rows have no end", "give --ends COL")
        if any(call.function in TABLE and TABLE[call.function].reads for call in calls):
            raise ConfigError("max_overlap() counts rows that last, and rows have no end", "give --ends COL")
        return {**columns}, {}
    for each in late.values():
        if each.uses_lag:
            what = f"{each}: lag() is known before windows, and how much of a row is in one after that"
            raise ConfigError(what, "give lag() a name with --let, and use that")
    return {name: each for name, each in columns.items() if name not in late}, late


def bind_late(
    late: Mapping[str, Expression], schema: pa.Schema, bounds: pa.DataType
) -> tuple[pa.Schema, tuple[ComputedColumn, ...]]:
    """Return the schema of the columns that windows decide, and those of them that expressions compute.

    ``schema``: the other columns. ``bounds``: the type of the bounds of windows.
    """
    own = [pa.field(name, pa.float64()) for name in MEANINGS]
    own += [pa.field(name, measure_type(bounds)) for name in (BEGINS, UNTIL)]
    every = pa.schema([*schema, *own])
    computed = tuple(ComputedColumn(name, bind(each, every), str(each)) for name, each in late.items())
    return pa.schema([*own, *(pa.field(each.name, each.value.type) for each in computed)]), computed
