"""Aggregates over the rows of a match: what they read by symbol, and those of a funnel (semantics section 15)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeGuard

from ..errors import Span, SpecError, did_you_mean
from ..expressions.nodes import Node, moved, name_text, walk
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..expressions.tokens import quoted
from ..language.options import Options
from ..language.patterns import MATCHED_AS, STEPS, RowPattern
from ..language.programs import of_symbol, refuse_symbols
from ..language.spec import AggregateCall, AggregateExpression, Argument, Column, WindowSpec
from ..language.tokens import column_text

_FILTER = f"a filter sees one row at a time: name its column alone, and say {MATCHED_AS} = {{}} for its symbol"


def matched_calls(
    calls: Sequence[AggregateCall | AggregateExpression], spec: WindowSpec
) -> tuple[AggregateCall | AggregateExpression, ...]:
    """Return aggregates in which ``AGG(s.x)`` and ``count(s)`` are filters by `MATCHED_AS`, under their names.

    Those of other windows than row patterns stay. Raises `SpecError` for a symbol where no rows matched as it can be
    meant.
    """
    if not isinstance(spec, RowPattern):
        return tuple(calls)
    symbols = spec.symbols
    return tuple(
        replace(item, calls=tuple(_matched(call, symbols) for call in item.calls))
        if isinstance(item, AggregateExpression)
        else _matched(item, symbols)
        for item in calls
    )


def _matched(call: AggregateCall, symbols: Sequence[str]) -> AggregateCall:
    if call.where is not None:
        refuse_symbols(call.where, symbols, _FILTER)
    if call.function == "count" and len(call.arguments) == 1:
        (only,) = call.arguments
        if isinstance(only, Column) and only.name in symbols:
            return replace(call, arguments=(), where=_where(call, only.name))
    found = [_split(number, call, symbols) for number in range(len(call.arguments))]
    named = [(symbol, number) for number, (symbol, _) in enumerate(found) if _has_columns(call.arguments[number])]
    symbol = named[0][0] if named else None
    for other, number in named:
        if other != symbol:
            what = "an aggregate reads rows of one symbol, or of all"
            raise call.error(what, number, "take all its columns from rows of one symbol")
    if symbol is None:
        return call
    return replace(call, arguments=tuple(each for _, each in found), where=_where(call, symbol))


def _has_columns(argument: Argument) -> bool:
    return isinstance(argument, Column) or (isinstance(argument, Expression) and bool(argument.columns))


def _split(number: int, call: AggregateCall, symbols: Sequence[str]) -> tuple[str | None, Argument]:
    argument = call.arguments[number]
    if isinstance(argument, Expression):
        return of_symbol(argument, symbols)
    if not isinstance(argument, Column):
        return None, argument
    if argument.name in symbols:
        name = column_text(argument.name)
        what, do = (
            f"{argument.name!r} is a symbol, and no column",
            f"write {call.function}({name}.COLUMN)",
        )
        raise call.error(what, number, do)
    symbol, _, column = argument.name.partition(".")
    return (symbol, Column(column)) if column and symbol in symbols else (None, argument)


def _where(call: AggregateCall, symbol: str) -> Expression:
    """Return the filter of a call and that its rows are matched as a symbol."""
    written = [each.source for each in (call.where, *call.arguments) if isinstance(each, Expression)]
    source = next(iter(written), str(call))
    own = parse_expression(f"{MATCHED_AS} = {quoted(symbol, chr(39))}").root
    root = moved(own, lambda at: at and len(source))  # it stands nowhere in the source, and means all of it
    if call.where is not None:
        others = call.where.root.operands if call.where.root.kind == "and" else (call.where.root,)
        root = Node("and", (), (root, *others), call.where.root.span)
    return expression_of(root, source)


def steps_of(spec: RowPattern, order: str) -> tuple[AggregateCall, ...]:
    """Return what a funnel gives without ``--agg``: how many steps were reached, and the order value of each."""
    calls = [AggregateCall(name, "first", (Column(order),)) for name in spec.symbols]
    by_symbol = zip(calls, spec.symbols, strict=True)
    return (AggregateCall(STEPS, "count"), *(replace(each, where=_where(each, name)) for each, name in by_symbol))


def gives_steps(spec: WindowSpec, options: Options) -> TypeGuard[RowPattern]:
    """Whether a window without aggregates gives those of a funnel."""
    gives_rows = options.emit != "aggregates" or options.operator is not None
    return isinstance(spec, RowPattern) and spec.is_funnel and not gives_rows


def shown_calls(
    calls: Sequence[AggregateCall | AggregateExpression] | None, spec: WindowSpec, options: Options, order: str
) -> Sequence[AggregateCall | AggregateExpression] | None:
    """Return the aggregates that were asked for, or those of a funnel; None: ``count()``.

    ``order``: the order column of the window.
    """
    return steps_of(spec, order) if calls is None and gives_steps(spec, options) else calls


def check_symbols(
    spec: WindowSpec, calls: Sequence[AggregateCall | AggregateExpression], known: Collection[str]
) -> None:
    """Raise `SpecError` for a symbol with the name of a column, and for one that is not in a pattern.

    ``calls``: as `matched_calls` returns them. ``known``: the columns of the input, and those of ``--let``.
    """
    if not isinstance(spec, RowPattern):
        return
    for name in spec.symbols:
        if name in known:
            raise _of_symbol(spec, name, f"{name!r} is a column, and a symbol of the pattern")
    for _, condition in spec.conditions:
        _check_fields(condition, spec.symbols, known)
        for node in walk(condition.root):
            if node.kind == "call" and node.value[0] == "count" and node.operands:
                _check_counted(condition, node.operands[0], spec.symbols, known)
    for item in calls:
        for call in item.calls:
            for number, each in enumerate((*call.arguments, call.where)):
                if isinstance(each, Expression):
                    _check_fields(each, spec.symbols, known)
                elif isinstance(each, Column):
                    _check_column(number, each.name, call, spec.symbols, known)


def _of_symbol(spec: RowPattern, name: str, what: str) -> SpecError:
    """Return (not raise) an error about the name of a symbol, where the spec says its condition."""
    text, condition = str(spec), dict(spec.conditions)[name]
    start = text.index(f"{name_text(name)} = {condition}")
    return SpecError(what, text, Span(start, start + len(name_text(name))), "give the symbol another name")


def _check_counted(condition: Expression, node: Node, symbols: Sequence[str], known: Collection[str]) -> None:
    if node.kind == "column" and node.value[0] not in (*symbols, *known):
        what, do = (
            f"there is no symbol and no column {node.value[0]!r}",
            did_you_mean(node.value[0], [*symbols, *known]),
        )
        raise condition.error(what, node.span, do)


def _check_column(number: int, name: str, call: AggregateCall, symbols: Sequence[str], known: Collection[str]) -> None:
    of, _, field = name.partition(".")
    if name in known or of in known or name == MATCHED_AS:
        return
    if field:
        raise call.error(f"the pattern has no symbol {of!r}", number, did_you_mean(of, symbols))
    if call.function == "count":
        what = f"there is no symbol and no column {name!r}"
        raise call.error(what, number, did_you_mean(name, [*symbols, *known]))


def _check_fields(expression: Expression, symbols: Sequence[str], known: Collection[str]) -> None:
    for node in walk(expression.root):
        if node.kind != "field" or node.operands[0].kind != "column":
            continue
        of = node.operands[0]
        if of.value[0] not in (*symbols, *known):
            what = f"the pattern has no symbol {of.value[0]!r}, and the input no such column"
            raise expression.error(what, of.span, did_you_mean(of.value[0], [*symbols, *known]))
