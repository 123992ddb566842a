"""The types of operators: arithmetic, comparisons, conditions."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

import pyarrow as pa
import pyarrow.types as t

from ..nodes import Node
from ..operations import arithmetic, logic
from ..types import (
    BOOL,
    DOUBLE,
    HUGE,
    common_number,
    common_type,
    decimal_of,
    is_interval,
    is_number,
    is_text,
    is_time,
    type_text,
)
from .scope import Scope, Value

_MIRRORS = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FLOORS = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_WORDS = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided", "%": "divided"}


def meeting_type(left: Value, right: Value) -> pa.DataType | None:
    """Return the type in which two values meet: a literal takes the type of the other one, where it fits into it."""
    for one, other in ((left, right), (right, left)):
        if one.is_literal and t.is_integer(one.type) and t.is_integer(other.type) and not other.is_literal:
            return other.type if fits(one, other.type) else common_type(one.type, other.type)
    return common_type(left.type, right.type)


def fits(literal: Value, kind: pa.DataType) -> bool:
    """Return whether an integer literal is in the range of an integer type."""
    assert literal.constant is not None
    bits, number = kind.bit_width, literal.constant.as_py()
    return -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) if t.is_signed_integer(kind) else 0 <= number < 2**bits


def compare(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value:
    """Bind ``left sign right``, with one of the signs of a comparison."""
    sign, left, right = _whole_sides(scope, sign, left, right)
    kind = meeting_type(left, right)
    if kind is None or t.is_nested(kind) or (sign in _ORDERS and mixes_text(left, right)):
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
    if left.is_literal and t.is_decimal(left.type) and sign in _MIRRORS:
        sign, left, right = _MIRRORS[sign], right, left
    if not (right.is_literal and t.is_decimal(right.type) and t.is_integer(left.type) and right.constant is not None):
        return sign, left, right
    number = right.constant.as_py()
    below = int(number.to_integral_value(ROUND_FLOOR))
    is_whole = number == below
    whole_sign = sign if is_whole else _FLOORS.get(sign)
    whole = Value(0, left.type, right.node, pa.scalar(Decimal(below), pa.decimal128(38, 0)))
    if whole_sign is None or not fits(whole, left.type):
        return sign, left, right
    return whole_sign, left, scope.constant(below, left.type, right.node)


def mixes_text(left: Value, right: Value) -> bool:
    """Return whether one is a text and no literal, and the other is none: only = and <> convert such a text."""
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


def negative(scope: Scope, node: Node, value: Value) -> Value:
    """Bind ``-value`` over a number."""
    if not is_number(value.type) and not t.is_null(value.type):
        raise scope.error(f"{value.shown} has no negative", node)
    if value.has_no_type:
        return scope.nothing(node, value.type, [value])
    kind = pa.int32() if t.is_null(value.type) else value.type
    if value.is_null:
        return scope.constant(None, kind, node)
    return scope.emit(node, kind, arithmetic.negative, [value], (kind,), "each")


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


def _literal_types(left: Value, right: Value) -> tuple[pa.DataType, pa.DataType]:
    for one, other in ((left, right), (right, left)):
        is_adaptive = one.is_literal and not other.is_literal and t.is_integer(one.type) and t.is_integer(other.type)
        if is_adaptive and fits(one, other.type):
            return other.type, other.type
    return left.type, right.type


def _integer_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if t.is_signed_integer(one) == t.is_signed_integer(other):
        return one if one.bit_width >= other.bit_width else other
    signed, plain = (one, other) if t.is_signed_integer(one) else (other, one)
    if plain.bit_width == 64:
        return HUGE
    return signed if signed.bit_width > plain.bit_width else pa.int64()


def _decimal_type(scope: Scope, node: Node, sign: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The digits of a result. Two decimals of at most 18 digits give at most 18, as long as rows keep to them."""
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
