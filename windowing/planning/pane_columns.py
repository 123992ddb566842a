"""Columns of a row that depend on the window that shows it, such as how much of it is inside (sections 15 and 18).

A kind names those of its rows: `Needs.pane_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from ..aggregates.table import BEGINS, TABLE, UNTIL
from ..columns.arrays import measure_type
from ..errors import ConfigError
from ..expressions.binding import bind
from ..expressions.nodes import Node, transform
from ..expressions.syntax import Expression, expression_of
from ..language.patterns import MATCHED_AS
from ..language.spec import HIDDEN, AggregateCall, Column
from ..rows.projection import ComputedColumn

OVERLAP, SHARE = "_overlap", "_share"


class _Meaning(NamedTuple):
    """What a column of panes is.

    ``where``: where rows have it.
    ``otherwise``: why they do not elsewhere, and what to do.
    """

    text: str
    where: str
    otherwise: tuple[str, str]


_NO_ENDS = ("rows have no end", "give --ends COL")
_MEANINGS: Final = {
    OVERLAP: _Meaning("the seconds of a row inside its window", "with --ends", _NO_ENDS),
    SHARE: _Meaning("the part of a row inside its window", "with --ends", _NO_ENDS),
    MATCHED_AS: _Meaning(
        "the symbol as which a match takes a row", "in a match", ("this window is no match", "use match(..)")
    ),
}
"""The columns that rows have in some windows."""


def apart(
    calls: Iterable[AggregateCall],
    columns: Mapping[str, Expression],
    known: Iterable[str],
    pane_columns: Mapping[str, pa.DataType],
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """Return the hidden columns of aggregates that rows alone decide, and those that their windows decide, too.

    ``known``: the columns of the input, and those of ``--let``. ``pane_columns``: those that the window has. A ``lag``
    in what windows decide is a column of its own that rows alone decide. Raises `ConfigError` for other columns of
    windows, and for ``lag`` of one, which is known before windows.
    """
    late = {name: each for name, each in columns.items() if any(word in pane_columns for word in each.columns)}
    early = {name: each for name, each in columns.items() if name not in late}
    named = {each.name for call in calls for each in call.arguments if isinstance(each, Column)}
    named |= {word for each in columns.values() for word in each.columns}
    for word in sorted(named & _MEANINGS.keys() - pane_columns.keys() - set(known)):
        why, do = _MEANINGS[word].otherwise
        raise ConfigError(f"{word} is {_MEANINGS[word].text}, and {why}", do)
    if OVERLAP not in pane_columns and any(call.function in TABLE and TABLE[call.function].reads for call in calls):
        raise ConfigError("max_overlap() counts rows that last, and rows have no end", "give --ends COL")
    return early, {name: _without_lags(each, early, pane_columns) for name, each in late.items()}


def _without_lags(
    expression: Expression, early: dict[str, Expression], pane_columns: Mapping[str, pa.DataType]
) -> Expression:
    """Return an expression with a column for each ``lag`` in it, which goes into ``early``."""

    def change(node: Node) -> Node | None:
        if node.kind != "call" or node.value[0] != "lag":
            return None
        lag = expression_of(node, expression.source)
        for name in lag.columns:
            if name in pane_columns:
                what = f"{lag}: lag() is known before windows, and {name}, {_MEANINGS[name].text}, after that"
                raise ConfigError(what, f"leave {name} out of it")
        early[HIDDEN + str(lag)] = lag
        return Node("column", (HIDDEN + str(lag),), (), node.span)

    return expression_of(transform(expression.root, change), expression.source)


def check_free(schema: pa.Schema, pane_columns: Iterable[str]) -> None:
    """Raise `ConfigError` where a column has the name of one that rows have in their windows."""
    for name in pane_columns:
        if name in schema.names:
            what = f"the input has a column {name!r}, and {_MEANINGS[name].where} there is another"
            raise ConfigError(what, "rename it")


def reads_panes(calls: Iterable[AggregateCall], pane_columns: Mapping[str, pa.DataType]) -> bool:
    """Whether plain arguments of aggregates are columns that rows have in their windows."""
    return any(isinstance(each, Column) and each.name in pane_columns for call in calls for each in call.arguments)


def bind_late(
    late: Mapping[str, Expression],
    schema: pa.Schema,
    pane_columns: Mapping[str, pa.DataType],
    bounds: pa.DataType | None,
) -> tuple[pa.Schema, tuple[ComputedColumn, ...]]:
    """Return the schema of the columns that windows decide, and those of them that expressions compute.

    ``schema``: the other columns. ``bounds``: the type of the bounds of windows, where rows last; None: they do not.
    """
    own = [pa.field(name, dtype) for name, dtype in pane_columns.items()]
    own += [] if bounds is None else [pa.field(name, measure_type(bounds)) for name in (BEGINS, UNTIL)]
    every = pa.schema([*schema, *own])
    computed = tuple(ComputedColumn(name, bind(each, every), str(each)) for name, each in late.items())
    return pa.schema([*own, *(pa.field(each.name, each.value.type) for each in computed)]), computed
