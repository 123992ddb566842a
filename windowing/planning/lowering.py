"""Lowering: aggregates with expressions become plain calls over columns, and expressions over their results.

An argument that is an expression becomes a hidden column of the input. A filter becomes part of the arguments: all
built-in aggregates skip nulls, so they look at the rows where it is true (section 11). A user function looks at all
rows that it is given, so for it the filter stays, as a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..errors import Span
from ..expressions.nodes import Node, moved
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..language.spec import HIDDEN, AggregateCall, AggregateExpression, Argument, Column


@dataclass(frozen=True, slots=True)
class LoweredAggregates:
    """Aggregates as plain calls.

    ``calls``: the calls, each once; their arguments are columns and literals.
    ``filters``: the column of the filter of a user function, by the name of the call.
    ``columns``: the hidden columns of the input that they read, by name.
    ``results``: the columns of the result in order, each with its expression over the calls; None: it is a call.
    """

    calls: tuple[AggregateCall, ...] = ()
    filters: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Expression] = field(default_factory=dict)
    results: tuple[tuple[str, Expression | None], ...] = ()


def lower(items: Sequence[AggregateCall | AggregateExpression], names: Iterable[str]) -> LoweredAggregates:
    """Lower aggregates; ``names``: the columns of the input, and those of ``--let``."""
    known = frozenset(names)
    lowered = LoweredAggregates()
    calls: dict[str, AggregateCall] = {}
    results: list[tuple[str, Expression | None]] = []
    for item in items:
        results.append((item.name, item.expression if isinstance(item, AggregateExpression) else None))
        for call in item.calls:
            calls.setdefault(str(call), _lower(call, known, lowered))
    return replace(lowered, calls=tuple(calls.values()), results=tuple(results))


def _lower(call: AggregateCall, known: frozenset[str], lowered: LoweredAggregates) -> AggregateCall:
    arguments = call.arguments
    if call.where is not None and ":" in call.function:
        lowered.filters[call.name] = _column(call.where, lowered).name
    elif call.where is not None:
        arguments = tuple(_where_true(each, call.where) for each in arguments or (parse_expression("TRUE"),))
    return AggregateCall(call.name, call.function, tuple(_argument(each, known, lowered) for each in arguments))


def _where_true(argument: Argument, where: Expression) -> Argument:
    """Return an argument that is null where the filter is not true; a literal stays."""
    if not isinstance(argument, Column | Expression):
        return argument
    source = where.source
    if isinstance(argument, Expression) and argument.source == source:
        value = argument.root
    else:
        value = _elsewhere(str(argument), source)
    return expression_of(Node("case", ("", ""), (where.root, value), Span(0, len(source))), source)


def _elsewhere(text: str, source: str) -> Node:
    """Return the tree of a text that has no place in a source: a mistake in it shows the source as a whole."""
    return moved(parse_expression(text).root, lambda at: at and len(source))


def _argument(argument: Argument, known: frozenset[str], lowered: LoweredAggregates) -> Argument:
    if isinstance(argument, Expression):
        return _column(argument, lowered)
    if isinstance(argument, Column) and argument.name not in known and argument.name.partition(".")[0] in known:
        return _column(parse_expression(argument.name), lowered)  # a field of a column
    return argument


def _column(expression: Expression, lowered: LoweredAggregates) -> Column:
    name = HIDDEN + str(expression)
    lowered.columns[name] = expression
    return Column(name)
