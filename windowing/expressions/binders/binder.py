"""From the tree of an expression to the steps of a program."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pyarrow as pa

from ..nodes import Node
from ..operations import logic
from ..types import BOOL, DOUBLE, HUGE, TEXT
from . import operators
from .scope import Scope, Value


def bind_node(scope: Scope, node: Node) -> Value:
    """Return the value of a node, whose steps are then in the scope. Raises `SpecError`."""
    return _BINDERS[node.kind](scope, node)


def _all(scope: Scope, node: Node) -> list[Value]:
    return [bind_node(scope, each) for each in node.operands]


def _number(scope: Scope, node: Node) -> Value:
    text = node.value[0]
    if "e" in text.lower():
        return scope.constant(float(text), DOUBLE, node, True)
    digits = text.lstrip("-")
    if "." in digits:
        whole, part = digits.split(".")
        width = len(whole) + len(part)
        if width > 38 or not part:
            return scope.constant(float(text), DOUBLE, node, True) if part else _integer(scope, node, text.rstrip("."))
        return scope.constant(Decimal(text), pa.decimal128(width, len(part)), node, True)
    return _integer(scope, node, text)


def _integer(scope: Scope, node: Node, text: str) -> Value:
    if len(text) > 38:
        return scope.constant(float(text), DOUBLE, node, True)
    number = int(text)
    kind = pa.int32() if -(2**31) <= number < 2**31 else pa.int64() if -(2**63) <= number < 2**63 else HUGE
    return scope.constant(Decimal(number) if kind == HUGE else number, kind, node, True)


def _constant(scope: Scope, node: Node) -> Value:
    word = node.value[0]
    return scope.constant(None, pa.null(), node) if word == "null" else scope.constant(word == "true", BOOL, node)


def _chain(scope: Scope, node: Node) -> Value:
    found = bind_node(scope, node.operands[0])
    for sign, operand in zip(node.value, node.operands[1:], strict=True):
        found = operators.arithmetic_of(scope, node, sign, found, bind_node(scope, operand))
    return found


def _compare(scope: Scope, node: Node) -> Value:
    left, right = _all(scope, node)
    return operators.compare(scope, node, node.value[0], left, right)


def _conditions(scope: Scope, node: Node) -> Value:
    values = [operators.condition(scope, each) for each in _all(scope, node)]
    return scope.emit(node, BOOL, logic.both if node.kind == "and" else logic.either, values)


def _not(scope: Scope, node: Node) -> Value:
    value = operators.condition(scope, bind_node(scope, node.operands[0]))
    return scope.emit(node, BOOL, logic.opposite, [value], (), "each")


def _is_null(scope: Scope, node: Node) -> Value:
    return scope.emit(node, BOOL, logic.is_null, _all(scope, node), (bool(node.value[0]),))


def _unknown(scope: Scope, node: Node) -> Value:
    raise scope.error(f"{node.kind} is not known", node)


_BINDERS: Final[dict[str, Callable[[Scope, Node], Value]]] = {
    "column": lambda scope, node: scope.column(node),
    "number": _number,
    "text": lambda scope, node: scope.constant(node.value[0], TEXT, node, True),
    "constant": _constant,
    "sum": _chain,
    "product": _chain,
    "negate": lambda scope, node: operators.negative(scope, node, bind_node(scope, node.operands[0])),
    "compare": _compare,
    "and": _conditions,
    "or": _conditions,
    "not": _not,
    "is null": _is_null,
}
