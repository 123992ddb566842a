"""The types of operators: arithmetic, comparisons, conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as t

from . import arithmetic, logic
from .nodes import Node
from .scope import Scope, Value
from .steps import Program, as_array
from .types import (
    BOOL,
    DOUBLE,
    HUGE,
    common_number,
    common_type,
    decimal_of,
    integer_range,
    is_interval,
    is_number,
    is_text,
    is_time,
    type_text,
)

_FLOORS = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_WORDS = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided", "%": "divided"}


def _literal_types(left: Value, right: Value) -> tuple[pa.DataType, pa.DataType]:
    """Return the types of two values, where an integer literal has that of the integer that it meets, if it fits."""
    for one, other in ((left, right), (right, left)):
        is_adaptive = one.is_literal and not other.is_literal and t.is_integer(one.type) and t.is_integer(other.type)
        if is_adaptive and _fits(one, other.type):
            return other.type, other.type
    return left.type, right.type


def _fits(literal: Value, kind: pa.DataType) -> bool:
    assert literal.constant is not None
    low, high = integer_range(kind)
    return low <= literal.constant.as_py() <= high


def compare(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value:
    """Bind ``left sign right``, with one of the signs of a comparison."""
    sign, left, right = _whole_sides(scope, sign, left, right)
    kind = common_type(*_literal_types(left, right))
    if kind is None or t.is_nested(kind) or (sign in _ORDERS and _mixes_text(left, right)):
        do = "convert one of them with CAST"
        raise scope.error(f"{left.shown} and {right.shown} cannot be compared", node, do)
    kind = pa.int32() if t.is_null(kind) else kind
    operands = [scope.cast(left, kind), scope.cast(right, kind)]
    if sign.endswith("from"):
        return scope.emit(node, BOOL, logic.is_distinct, operands, (" not " in sign,))
    if any(each.is_null for each in operands):
        return scope.nothing(node, BOOL, operands)
    return scope.emit(node, BOOL, logic.compare, operands, (sign,), "each")


def _whole_sides(scope: Scope, sign: str, left: Value, right: Value) -> tuple[str, Value, Value]:
    """Compare integers with an integer where a decimal literal allows it: ``i > 2.5`` is ``i > 2``, and far faster."""
    if left.is_literal and t.is_decimal(left.type) and sign in logic.MIRRORED:
        sign, left, right = logic.MIRRORED[sign], right, left
    if not (right.is_literal and t.is_decimal(right.type) and t.is_integer(left.type) and right.constant is not None):
        return sign, left, right
    number = right.constant.as_py()
    below = int(number.to_integral_value(ROUND_FLOOR))
    is_whole = number == below
    whole_sign = sign if is_whole else _FLOORS.get(sign)
    whole = Value(0, left.type, right.node, pa.scalar(Decimal(below), pa.decimal128(38, 0)))
    if whole_sign is None or not _fits(whole, left.type):
        return sign, left, right
    return whole_sign, left, scope.constant(below, left.type, right.node)


def _mixes_text(left: Value, right: Value) -> bool:
    """Whether one is a text and no literal, and the other is none: only = and <> convert such a text."""
    for one, other in ((left, right), (right, left)):
        if is_text(one.type) and not is_text(other.type) and not t.is_null(other.type):
            return not one.is_literal
    return False


def condition(scope: Scope, value: Value) -> Value:
    """Return a value as a condition: a number is true unless it is 0. Raises `SpecError` where it is none."""
    if not (t.is_boolean(value.type) or t.is_null(value.type) or is_number(value.type) or is_text(value.type)):
        raise scope.error(f"a condition is wanted here, and this is {value.shown}", value.node)
    return scope.cast(value, BOOL)


def without_type(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    """Bind ``left sign right`` where one is of a column without a type yet; None where none is, or they do not fit.

    Beside a number it is a number, of the widest type. Else the result has no type yet either: less a timestamp it may
    be a span of time or a timestamp, by what the column will hold.
    """
    if not (left.has_no_type or right.has_no_type):
        return None
    others = [each.type for each in (left, right) if not t.is_null(each.type)]
    if any(is_number(kind) for kind in others):
        return scope.nothing(node, DOUBLE, [left, right])
    fits_other = all((is_time(kind) and sign in "+-") or (is_interval(kind) and sign in "+-*/") for kind in others)
    return scope.nothing(node, pa.null(), [left, right]) if fits_other else None


def arithmetic_of(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value:
    """Bind ``left sign right`` over numbers. Raises `SpecError` where one is no number."""
    for value in (left, right):
        if not is_number(value.type) and not t.is_null(value.type):
            do = "convert it with CAST" if is_text(value.type) else None
            raise scope.error(f"{left.shown} and {right.shown} cannot be {_WORDS[sign]}", node, do)
    kind = _number_type(scope, node, sign, left, right)
    if any(each.is_null or t.is_null(each.type) for each in (left, right)):
        return scope.nothing(node, kind, [left, right])
    if t.is_floating(kind):
        return scope.emit(node, kind, arithmetic.floats, [left, right], (sign, kind), "each")
    if sign == "%":
        rest = arithmetic.decimal_remainders if t.is_decimal(kind) else arithmetic.remainders
        return scope.emit(node, kind, rest, [left, right], (kind,), "each")
    compute = arithmetic.decimals if t.is_decimal(kind) else arithmetic.integers
    return scope.emit(node, kind, compute, [left, right], (sign, kind), "each")


def _number_type(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> pa.DataType:
    one, other = _literal_types(left, right)
    if t.is_null(one) or t.is_null(other):
        found = other if t.is_null(one) else one
        return DOUBLE if sign == "/" and not t.is_float32(found) else pa.int32() if t.is_null(found) else found
    common = common_number(one, other)
    if t.is_floating(common):
        return common
    if sign == "/":
        return DOUBLE
    if t.is_integer(one) and t.is_integer(other):
        return _integer_type(one, other)
    return _decimal_type(scope, node, sign, decimal_of(one), decimal_of(other))


def _integer_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if t.is_signed_integer(one) == t.is_signed_integer(other):
        return one if one.bit_width >= other.bit_width else other
    signed, plain = (one, other) if t.is_signed_integer(one) else (other, one)
    if plain.bit_width == 64:
        return HUGE
    return signed if signed.bit_width > plain.bit_width else pa.int64()


def _decimal_type(scope: Scope, node: Node, sign: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    widest = max(one.precision, other.precision)
    if sign == "*":
        digits, scale = one.precision + other.precision, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + (sign != "%")
    if scale > 38:
        do = "convert one of them to DOUBLE"
        raise scope.error(
            f"{type_text(one)} times {type_text(other)} has more than 38 digits behind the point", node, do
        )
    if sign == "%":
        return pa.decimal128(min(digits, 37), scale)
    most = 18 if widest <= 18 and scale < 18 else 38
    return pa.decimal128(min(digits, most), scale)


# The types of what has several values to choose from: CASE, COALESCE, NULLIF, IN and BETWEEN.


Bind = Callable[[Scope, Node], Value]


def case(scope: Scope, node: Node, bind: Bind) -> Value:
    """Bind CASE. Conditions and values are programs of their own, so that a row is failed only by what it takes."""
    rest = list(node.operands)
    first = rest.pop(0) if node.value[0] else None
    default = rest.pop() if node.value[1] else None
    conditions = [_when(scope.branch(), each, first, bind) for each in rest[::2]]
    nodes = [*([] if default is None else [default]), *rest[1::2]]  # as in DuckDB, types meet from ELSE on
    values = same_type(scope, nodes, bind, "the branches of CASE")
    programs = tuple(program for _, program in values)
    last = None if default is None else programs[0]
    options = (tuple(conditions), programs[-len(conditions) :], last)
    return _of_branches(scope, node, values[0][0], logic.case, options)


def coalesce(scope: Scope, node: Node, bind: Bind) -> Value:
    """Bind COALESCE."""
    values = same_type(scope, list(node.operands), bind, "the values of COALESCE")
    options = (tuple(program for _, program in values),)
    return _of_branches(scope, node, values[0][0], logic.coalesce, options)


def nullif(scope: Scope, node: Node, left: Value, right: Value) -> Value:
    """Bind NULLIF: the left value, or null where it equals the right one."""
    equal = compare(scope, node, "=", left, right)
    if t.is_null(left.type):
        return left
    return scope.emit(node, left.type, logic.null_where, [left, equal], ())


def extreme(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    """Bind GREATEST or LEAST."""
    name = node.value[0]
    kind = _branch_type(scope, values, f"the values of {name.upper()}")
    if t.is_null(kind):
        return scope.nothing(node, kind, values)
    if t.is_nested(kind) or t.is_interval(kind):
        raise scope.error(f"{type_text(kind)} has no order", node)
    same = [scope.cast(value, kind) for value in values]
    return scope.emit(node, kind, logic.extreme, same, ("<" if name == "greatest" else ">",))


def is_in(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    """Bind IN: over literals one look-up in a set, else comparisons."""
    kind = values[0].type
    literal = values[0].is_literal
    for value in values[1:]:
        both = [Value(0, kind, values[0].node, values[0].constant if literal else None, literal), value]
        found = common_type(*_literal_types(*both))
        if found is None:
            raise scope.error(
                f"{type_text(kind)} and {value.shown} cannot be compared", value.node, "convert one with CAST"
            )
        literal = literal and value.is_literal and found == kind
        kind = found
    same = [scope.cast(value, kind) for value in values]
    if all(each.constant is not None for each in same[1:]) and not t.is_null(kind) and not t.is_floating(kind):
        known = [each.constant for each in same[1:] if each.constant is not None]
        valid = pa.concat_arrays([pa.array([], kind), *(as_array(each, 1) for each in known if each.is_valid)])
        found_in = scope.emit(node, BOOL, logic.is_in, [same[0]], (valid, len(valid) < len(known)), "plain")
    else:
        found_in = scope.emit(node, BOOL, logic.either, [compare(scope, node, "=", same[0], each) for each in same[1:]])
    return _negated(scope, node, found_in)


def between(scope: Scope, node: Node, value: Value, low: Value, high: Value) -> Value:
    """Bind BETWEEN, both bounds included."""
    bounds = [compare(scope, node, ">=", value, low), compare(scope, node, "<=", value, high)]
    return _negated(scope, node, scope.emit(node, BOOL, logic.both, bounds))


def same_type(scope: Scope, nodes: Sequence[Node], bind: Bind, what: str) -> list[tuple[pa.DataType, Program]]:
    """Bind each node to a program of its own, all of one type. Raises `SpecError` where there is none."""
    scopes = [scope.branch() for _ in nodes]
    values = [bind(each, node) for each, node in zip(scopes, nodes, strict=True)]
    kind = _branch_type(scope, values, what)
    stored = pa.int32() if t.is_null(kind) else kind
    return [(kind, each.program(each.cast(value, stored))) for each, value in zip(scopes, values, strict=True)]


def _of_branches(scope: Scope, node: Node, kind: pa.DataType, compute: Callable[..., Any], options: Any) -> Value:
    """The value of programs that run for some rows; where all are null it has the type of null, as in DuckDB."""
    found = scope.emit(node, pa.int32() if t.is_null(kind) else kind, compute, [], options, "lazy")
    return scope.nothing(node, kind, [found]) if t.is_null(kind) else found


def _branch_type(scope: Scope, values: Sequence[Value], what: str) -> pa.DataType:
    kept = values[0]
    kind = kept.type
    for value in values[1:]:
        found = common_type(*_literal_types(kept, value))
        if found is None or _mixes_text(kept, value):
            what = f"{what} are {type_text(kind)} and {value.shown}"
            raise scope.error(what, value.node, "convert one of them with CAST")
        literal = kept.is_literal and value.is_literal
        is_wider = t.is_integer(found) and literal and found == value.type
        kept = (
            value
            if is_wider or t.is_null(kind)
            else Value(0, found, kept.node, kept.constant, literal and found == kind)
        )
        kind = found
    return kind


def _when(scope: Scope, node: Node, first: Node | None, bind: Bind) -> Program:
    value = bind(scope, node)
    if first is None:
        return scope.program(condition(scope, value))
    return scope.program(compare(scope, node, "=", bind(scope, first), value))


def _negated(scope: Scope, node: Node, value: Value) -> Value:
    return scope.emit(node, BOOL, logic.opposite, [value], (), "each") if node.value[0] else value
