"""The types of dates, timestamps and intervals: literals and arithmetic."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as t

from ..nodes import Node
from ..operations import times
from ..operations.casts import cast
from ..steps import Failures
from ..types import INTERVAL, is_interval, is_number, is_time, unit_of
from .scope import Scope, Value

MONTHS: Final = pa.month_day_nano_interval()
"""The type of an interval of months or years, which has no length of its own."""


def literal(scope: Scope, node: Node) -> Value:
    """Bind ``TIMESTAMP '..'`` or ``DATE '..'``. Raises `SpecError` where the text is no such time."""
    kind = pa.date32()
    if node.kind == "timestamp":
        kind = pa.timestamp(_unit(node.value[0]), "UTC" if node.value[1] == "timestamptz" else None)
    failures = Failures(1)
    found = cast(failures, pa.array([node.value[0]]), kind, False)
    if failures.mask is not None:
        word = "date" if node.kind == "date" else "timestamp"
        raise scope.error(f"{node.value[0]!r} is no {word}", node, "write it like TIMESTAMP '2026-01-31 18:30:00'")
    return scope.constant(found[0], kind, node)


def interval(scope: Scope, node: Node) -> Value:
    """Bind an interval: a span of time, or a number of months."""
    months, nanoseconds = map(int, node.value)
    if months:
        return scope.constant(pa.scalar(pa.MonthDayNano([months, 0, 0]), MONTHS), MONTHS, node)
    unit, size = ("ns", 1) if nanoseconds % 1000 else ("us", 1000)
    kind = pa.duration(unit)
    return scope.constant(pa.scalar(nanoseconds // size, pa.int64()).cast(kind), kind, node)


def arithmetic_of(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    """Bind ``left sign right`` where one is a time or an interval; None where none is, or they do not go together."""
    if is_time(left.type) and is_time(right.type):
        return _difference(scope, node, left, right) if sign == "-" else None
    if is_time(right.type) and sign == "+":
        left, right = right, left
    if is_time(left.type) and sign in "+-":
        return _shift(scope, node, sign, left, right)
    if is_interval(left.type) and is_interval(right.type) and sign in "+-" and MONTHS not in {left.type, right.type}:
        kind = pa.duration(unit_of(left.type, right.type))
        operands = [scope.cast(left, kind), scope.cast(right, kind)]
        return scope.emit(node, kind, times.shift, operands, (sign, kind), "each")
    return _scale(scope, node, sign, left, right)


def timestamp_of(scope: Scope, value: Value) -> Value:
    """Return a date or a timestamp as a timestamp of microseconds, or of nanoseconds where it has these."""
    kind = value.type
    return scope.cast(value, pa.timestamp(unit_of(kind), kind.tz if t.is_timestamp(kind) else None))


def _unit(text: str) -> str:
    """Nanoseconds only where a text has more than six digits of a second."""
    part = text.partition(".")[2]
    digits = len(part) - len(part.lstrip("0123456789"))
    return "ns" if digits > 6 else "us"


def _difference(scope: Scope, node: Node, left: Value, right: Value) -> Value:
    if t.is_date(left.type) and t.is_date(right.type):
        return scope.emit(node, pa.int64(), times.days_between, [left, right], (), "each")
    unit = unit_of(left.type, right.type)
    zones = [each.type.tz for each in (left, right) if t.is_timestamp(each.type) and each.type.tz]
    kind = pa.timestamp(unit, zones[0] if zones else None)
    operands = [scope.cast(left, kind), scope.cast(right, kind)]
    return scope.emit(node, pa.duration(unit), times.difference, operands, (unit,), "each")


def _shift(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    if t.is_date(left.type) and t.is_integer(right.type):
        return scope.emit(node, pa.date32(), times.shift_days, [left, scope.cast(right, pa.int64())], (sign,), "each")
    if not is_interval(right.type):
        return None
    moment = timestamp_of(scope, left)
    if right.type == MONTHS:
        assert right.constant is not None
        months = right.constant.as_py().months * (1 if sign == "+" else -1)
        return scope.emit(node, moment.type, times.shift_months, [moment], (months,), "each")
    unit = unit_of(moment.type, right.type)
    kind = pa.timestamp(unit, moment.type.tz)
    operands = [scope.cast(moment, kind), scope.cast(right, pa.duration(unit))]
    return scope.emit(node, kind, times.shift, operands, (sign, kind), "each")


def _scale(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    if is_number(left.type) and sign == "*":
        left, right = right, left
    if not t.is_duration(left.type) or not is_number(right.type) or sign not in "*/":
        return None
    kind = left.type if left.type.unit == "ns" else INTERVAL
    factor = scope.cast(right, pa.int64()) if t.is_integer(right.type) else right
    return scope.emit(node, kind, times.scale, [scope.cast(left, kind), factor], (sign, kind), "each")
