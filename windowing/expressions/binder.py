"""From the tree of an expression to the steps of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as t

from ..errors import did_you_mean
from . import functions, logic, operators, texts
from .casts import cast, is_castable
from .nodes import Node
from .printing import canonical
from .scope import Scope, Value
from .times import shift
from .types import BOOL, DOUBLE, HUGE, TEXT, TYPE_NAMES, is_text, plain_type, type_named, type_text


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
        right = bind_node(scope, operand)
        other = operators.without_type(scope, node, sign, found, right)
        other = functions.arithmetic_of(scope, node, sign, found, right) if other is None else other
        found = operators.arithmetic_of(scope, node, sign, found, right) if other is None else other
    return found


def _negative(scope: Scope, node: Node) -> Value:
    value = bind_node(scope, node.operands[0])
    if t.is_duration(value.type):
        zero = scope.constant(pa.scalar(0, pa.int64()).cast(value.type), value.type, node)
        return scope.emit(node, value.type, shift, [zero, value], ("-", value.type), "each")
    return operators.negative(scope, node, value)


def _concat(scope: Scope, node: Node) -> Value:
    found = [functions.any_text(scope, value) for value in _all(scope, node)]
    if any(each.is_null for each in found):
        return scope.nothing(node, TEXT, found)
    return scope.emit(node, TEXT, texts.join, found)


def _like(scope: Scope, node: Node) -> Value:
    value, pattern = _all(scope, node)
    for each in (value, pattern):
        if not is_text(each.type) and not t.is_null(each.type):
            raise scope.error(
                f"LIKE takes texts, and this is {each.shown}", each.node, "convert it with CAST(.. AS VARCHAR)"
            )
    if pattern.is_null or value.is_null:
        return scope.nothing(node, BOOL, [value, pattern])
    if pattern.constant is None:
        raise scope.error("the pattern of LIKE is the same for all rows", pattern.node, "write it as a text in quotes")
    options = (pattern.constant.as_py(), node.value[0] == "ilike", bool(node.value[1]))
    return scope.emit(node, BOOL, texts.like, [scope.cast(value, TEXT)], options, "each")


def _cast(scope: Scope, node: Node) -> Value:
    value, wanted = bind_node(scope, node.operands[0]), type_named(node.value[1])
    if wanted is None:
        do = did_you_mean(node.value[1], TYPE_NAMES)
        raise scope.error(f"unknown type {node.value[1]!r}", node, do)
    if not is_castable(value.type, wanted):
        raise scope.error(f"{value.shown} cannot become {type_text(wanted)}", node)
    if value.type == wanted:
        return replace(value, is_literal=False)
    if value.is_null:
        return scope.constant(None, wanted, node)
    return scope.emit(node, wanted, cast, [value], (wanted, node.value[0] == "try_cast"), "each")


def _field(scope: Scope, node: Node) -> Value:
    inner = node.operands[0]
    dotted = canonical(node)
    if inner.kind == "column" and inner.value[0] not in scope.schema.names and dotted in scope.schema.names:
        raise scope.error(f"the column {inner.value[0]!r} is not there", inner, f'the column with a dot is "{dotted}"')
    of = bind_node(scope, inner)
    return _member(scope, node, of, node.value[0])


def _member(scope: Scope, node: Node, of: Value, name: str) -> Value:
    if t.is_null(of.type):
        return scope.nothing(node, of.type, [of])
    if not t.is_struct(of.type):
        raise scope.error(f"{of.shown} has no fields", of.node)
    names = [field.name for field in of.type]
    if name not in names:
        raise scope.error(f"there is no field {name!r}", node, did_you_mean(name, names))
    kind = plain_type(of.type.field(name).type)
    return scope.emit(node, kind, texts.member, [of], (name, kind))


def _item(scope: Scope, node: Node) -> Value:
    of, index = _all(scope, node)
    if t.is_struct(of.type) and is_text(index.type) and index.constant is not None:
        return _member(scope, node, of, str(index.constant.as_py()))
    if t.is_null(of.type):
        return scope.nothing(node, of.type, [of, index])
    if not (t.is_list(of.type) or t.is_large_list(of.type)):
        do = "use substr for the characters of a text" if is_text(of.type) else None
        raise scope.error(f"{of.shown} has no items", of.node, do)
    if not t.is_integer(index.type) and not t.is_null(index.type):
        raise scope.error(f"the place of an item is a whole number, and this is {index.shown}", index.node)
    kind = plain_type(of.type.value_type)
    if t.is_null(index.type):
        return scope.nothing(node, kind, [of, index])
    return scope.emit(node, kind, texts.list_items, [of, index], (kind,))


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


_BINDERS: Final[dict[str, Callable[[Scope, Node], Value]]] = {
    "column": lambda scope, node: scope.column(node),
    "number": _number,
    "text": lambda scope, node: scope.constant(node.value[0], TEXT, node, True),
    "constant": _constant,
    "sum": _chain,
    "product": _chain,
    "negate": _negative,
    "concat": _concat,
    "like": _like,
    "cast": _cast,
    "field": _field,
    "item": _item,
    "timestamp": functions.literal,
    "date": functions.literal,
    "interval": functions.interval,
    "in": lambda scope, node: operators.is_in(scope, node, _all(scope, node)),
    "between": lambda scope, node: operators.between(scope, node, *_all(scope, node)),
    "case": lambda scope, node: operators.case(scope, node, bind_node),
    "call": lambda scope, node: functions.call(scope, node, bind_node),
    "compare": _compare,
    "and": _conditions,
    "or": _conditions,
    "not": _not,
    "is null": _is_null,
}
