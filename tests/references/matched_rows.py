"""Conditions of row patterns, and aggregates over matches, row at a time (semantics section 15).

The tree of an expression is walked for one row. An aggregate goes over all rows that are matched so far; which of them
a symbol in its argument picks, and what its argument is there, is looked up row by row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from references import aggregates
from references.matches import Condition, Taken
from references.open_window import above, at_least, both, differs, either, fits, minus, plus, times
from references.tumbling import Row, TooFarError
from wincli.windowing.expressions.nodes import Node, walk
from wincli.windowing.expressions.syntax import parse_expression

KEPT = frozenset({"count", "sum", "mean", "min", "max", "range", "first", "last", "nth"})
"""The aggregates that a condition may have."""


@dataclass(frozen=True)
class Place:
    """Where an expression is computed: a row of a key, with the rows that are taken, itself among them."""

    rows: Sequence[Row]
    row: int
    taken: Taken
    symbols: frozenset[str]


def condition(text: str, symbols: Sequence[str]) -> Condition:
    root = parse_expression(text).root
    known = frozenset(symbols)
    return lambda rows, row, taken: value(root, Place(rows, row, taken, known)) is True


def reads_matches(text: str) -> bool:
    """Whether a condition reads the rows matched so far."""
    return any(node.kind == "call" and node.value[0] in KEPT for node in walk(parse_expression(text).root))


def of_match(text: str, rows: Sequence[Row], taken: Taken, symbols: Sequence[str]) -> Any:
    """What an expression of ``--agg`` says of a match: an aggregate of its rows, perhaps ``AGG where EXPR``."""
    text, _, where = text.partition(" where ")
    known = frozenset(symbols)
    if where:
        test = parse_expression(where).root
        taken = tuple(
            (row, name) for row, name in taken if value(test, Place(rows, row, ((row, name),), known)) is True
        )
    return value(parse_expression(text).root, Place(rows, -1, taken, known))


def value(node: Node, place: Place) -> Any:
    """What an expression is; None: null. Raises `TooFarError` for an integer that does not fit 64 bits."""
    if node.kind == "call":
        return _call(node, place)
    if node.kind in {"column", "field"}:
        return _of_row(node, place)
    if node.kind in {"number", "text", "constant"}:
        return _literal(node)
    found = _OF_VALUES[node.kind](node, [value(each, place) for each in node.operands])
    return _negated(found) if node.kind in {"is null", "in", "between", "like"} and "not" in node.value else found


def _of_row(node: Node, place: Place) -> Any:
    if node.kind == "field":
        assert node.operands[0].value[0] in place.symbols, "s.x stands in an aggregate"
    elif node.value[0] == "matched_as":
        return dict(place.taken)[place.row]
    return place.rows[place.row][node.value[0]]


def _chain(node: Node, values: list[Any]) -> Any:
    signs: dict[str, Callable[[Any, Any], Any]] = {"+": plus, "-": minus, "*": times, "/": _over}
    total = values[0]
    for sign, other in zip(node.value, values[1:], strict=True):
        total = signs[sign](total, other)
    return total


def _like(_: Node, values: list[Any]) -> bool | None:
    text, pattern = values
    if text is None or pattern is None:
        return None
    return re.fullmatch(re.escape(pattern).replace("%", ".*").replace("_", "."), text) is not None


def _literal(node: Node) -> Any:
    text = node.value[0]
    if node.kind == "number":
        return int(text) if text.removeprefix("-").isdecimal() else float(Fraction(text))
    return {"true": True, "false": False, "null": None}[text] if node.kind == "constant" else text


def _call(node: Node, place: Place) -> Any:
    name, operands = node.value[0], node.operands
    if name == "lag":
        back = place.row - (int(operands[1].value[0]) if len(operands) > 1 else 1)
        return None if back < 0 else value(operands[0], Place(place.rows, back, place.taken, place.symbols))
    if name in {"coalesce", "least", "greatest"}:
        found = [each for each in (value(each, place) for each in operands) if each is not None]
        if name == "coalesce" or not found:
            return found[0] if found else None
        better = above if name == "greatest" else lambda one, other: above(other, one)
        return reduce(lambda one, other: other if better(*_alike(other, one)) else one, found)
    argument, literals = operands[:1], [_literal(each) for each in operands[1:]]
    picked = [row for row, symbol in place.taken if _picks(argument, symbol, place.symbols)]
    if not argument or (argument[0].kind == "column" and argument[0].value[0] in place.symbols):
        return len(picked)  # count() and count(s)
    values = [value(argument[0], Place(place.rows, row, place.taken, place.symbols)) for row in picked]
    try:
        return aggregates.REFERENCE[name](values, *literals)
    except aggregates.TooWideError:
        raise TooFarError from None


def _picks(argument: Sequence[Node], symbol: str | None, symbols: frozenset[str]) -> bool:
    """Whether an aggregate looks at a row: one of the symbol that its argument names, or all."""
    named = {
        node.value[0] for each in argument for node in walk(each) if node.kind == "column" and node.value[0] in symbols
    }
    assert len(named) < 2, "one aggregate reads rows of one symbol or of all"
    return not named or symbol in named


def _over(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values as they are compared: a float makes floats of integers."""
    if isinstance(a, float) != isinstance(b, float) and a is not None and b is not None:
        return float(a), float(b)
    return a, b


def _negated(found: bool | None) -> bool | None:
    return None if found is None else not found


def _compared(sign: str, a: Any, b: Any) -> bool | None:
    a, b = _alike(a, b)
    if sign.startswith("is"):
        is_distinct = (a is None) != (b is None) or differs(a, b) is True
        return is_distinct == (sign == "is distinct from")
    found: dict[str, Callable[[], bool | None]] = {
        "=": lambda: _negated(differs(a, b)), "<>": lambda: differs(a, b), ">": lambda: above(a, b),
        "<": lambda: above(b, a), ">=": lambda: at_least(a, b), "<=": lambda: at_least(b, a),
    }  # fmt: skip
    return found[sign]()


def _between(_: Node, values: list[Any]) -> bool | None:
    return both(_compared(">=", values[0], values[1]), _compared("<=", values[0], values[2]))


_OF_VALUES: dict[str, Callable[[Node, list[Any]], Any]] = {
    "and": lambda _, values: reduce(both, values),
    "or": lambda _, values: reduce(either, values),
    "not": lambda _, values: _negated(values[0]),
    "sum": _chain,
    "product": _chain,
    "negate": lambda _, values: None if values[0] is None else fits(-values[0]),
    "is null": lambda _, values: values[0] is None,
    "compare": lambda node, values: _compared(node.value[0], *values),
    "in": lambda _, values: reduce(either, (_compared("=", values[0], each) for each in values[1:])),
    "between": _between,
    "like": _like,
}
