"""From the tree of an expression to the steps of a program; the functions of the language with what they take."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as t

from ..errors import did_you_mean
from . import arithmetic, logic, numbers, operators, texts, times
from .casts import cast, is_castable
from .nodes import Node, canonical
from .operators import coalesce, extreme, nullif
from .scope import Scope, Value
from .steps import Failures, arrow_function
from .types import (
    BOOL,
    DOUBLE,
    HUGE,
    INTERVAL,
    TEXT,
    TYPE_NAMES,
    common_type,
    is_interval,
    is_number,
    is_text,
    is_time,
    plain_type,
    type_named,
    type_text,
    unit_of,
)

# The types of dates, timestamps and intervals: literals and arithmetic.

MONTHS: Final = pa.month_day_nano_interval()
"""The type of an interval of months or years, which has no length of its own."""


def _moment(scope: Scope, node: Node) -> Value:
    """Bind ``TIMESTAMP '..'`` or ``DATE '..'``. Raises `SpecError` where the text is no such time."""
    kind = pa.date32()
    if node.kind == "timestamp":
        part = node.value[0].partition(".")[2]
        digits = len(part) - len(part.lstrip("0123456789"))
        kind = pa.timestamp("ns" if digits > 6 else "us", "UTC" if node.value[1] == "timestamptz" else None)
    failures = Failures(1)
    found = cast(failures, pa.array([node.value[0]]), kind, False)
    if failures.mask is not None:
        word = "date" if node.kind == "date" else "timestamp"
        raise scope.error(f"{node.value[0]!r} is no {word}", node, "write it like TIMESTAMP '2026-01-31 18:30:00'")
    return scope.constant(found[0], kind, node)


def _interval(scope: Scope, node: Node) -> Value:
    months, nanoseconds = map(int, node.value)
    if months:
        return scope.constant(pa.scalar(pa.MonthDayNano([months, 0, 0]), MONTHS), MONTHS, node)
    unit, size = ("ns", 1) if nanoseconds % 1000 else ("us", 1000)
    kind = pa.duration(unit)
    return scope.constant(pa.scalar(nanoseconds // size, pa.int64()).cast(kind), kind, node)


def _arithmetic_of(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
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
        return scope.emit(node, kind, arithmetic.times, operands, (sign, kind), "each")
    return _scale(scope, node, sign, left, right)


def _timestamp_of(scope: Scope, value: Value) -> Value:
    """Return a date or a timestamp as a timestamp of microseconds, or of nanoseconds where it has these."""
    kind = value.type
    return scope.cast(value, pa.timestamp(unit_of(kind), kind.tz if t.is_timestamp(kind) else None))


def _difference(scope: Scope, node: Node, left: Value, right: Value) -> Value:
    if t.is_date(left.type) and t.is_date(right.type):
        return scope.emit(node, pa.int64(), times.days_between, [left, right], (), "each")
    unit = unit_of(left.type, right.type)
    zones = [each.type.tz for each in (left, right) if t.is_timestamp(each.type) and each.type.tz]
    kind = pa.timestamp(unit, zones[0] if zones else None)
    operands = [scope.cast(left, kind), scope.cast(right, kind)]
    return scope.emit(node, pa.duration(unit), arithmetic.times, operands, ("-", pa.duration(unit)), "each")


def _shift(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    if t.is_date(left.type) and t.is_integer(right.type):
        return scope.emit(node, pa.date32(), times.shift_days, [left, scope.cast(right, pa.int64())], (sign,), "each")
    if not is_interval(right.type):
        return None
    moment = _timestamp_of(scope, left)
    if right.type == MONTHS:
        assert right.constant is not None
        months = right.constant.as_py().months * (1 if sign == "+" else -1)
        return scope.emit(node, moment.type, times.shift_months, [moment], (months,), "each")
    unit = unit_of(moment.type, right.type)
    kind = pa.timestamp(unit, moment.type.tz)
    operands = [scope.cast(moment, kind), scope.cast(right, pa.duration(unit))]
    return scope.emit(node, kind, arithmetic.times, operands, (sign, kind), "each")


def _scale(scope: Scope, node: Node, sign: str, left: Value, right: Value) -> Value | None:
    if is_number(left.type) and sign == "*":
        left, right = right, left
    if not t.is_duration(left.type) or not is_number(right.type) or sign not in "*/":
        return None
    kind = left.type if left.type.unit == "ns" else INTERVAL
    factor = scope.cast(right, pa.int64()) if t.is_integer(right.type) else right
    return scope.emit(node, kind, times.scale, [scope.cast(left, kind), factor], (sign, kind), "each")


_WHERE_LAG: Final = "it goes into conditions, amounts, and the arguments and filters of aggregates"
_AGGREGATES = frozenset({"avg", "count", "first", "last", "max", "mean", "median", "min", "stddev", "sum", "var"})
_WHERE_AGGREGATES = "give it a name with --agg; the condition of a result, --having, may use the name"
BindCall = Callable[[Scope, Node, Sequence[Value]], Value]


Function = tuple[str, int, int, BindCall | None]
"""How a function is called, for messages; the least and the most values that it takes; and what binds these.

None binds each value by itself: it is `coalesce`.
"""


def _call(scope: Scope, node: Node) -> Value:
    name = node.value[0]
    if name not in FUNCTIONS:
        if name == "lag":
            raise scope.error("lag(x) needs rows in order, and here there is none", node, _WHERE_LAG)
        if name in _AGGREGATES:
            raise scope.error(f"{name}() is an aggregate, and here is one row at a time", node, _WHERE_AGGREGATES)
        raise scope.error(f"unknown function {name!r}", node, did_you_mean(name, FUNCTIONS))
    form, least, most, bind = FUNCTIONS[name]
    if not least <= len(node.operands) <= most:
        raise scope.error(f"{name} is given {len(node.operands)} values", node, f"write it like {form}")
    return coalesce(scope, node, bind_node) if bind is None else bind(scope, node, _all(scope, node))


def _text(scope: Scope, node: Node, value: Value) -> Value:
    if not is_text(value.type) and not t.is_null(value.type):
        do = "convert it with CAST(.. AS VARCHAR)"
        raise scope.error(f"{node.value[0]} takes a text, and this is {value.shown}", value.node, do)
    return scope.cast(value, TEXT)


def _any_text(scope: Scope, value: Value) -> Value:
    """Return a value as a text, whatever its type. Raises `SpecError` for one that has no text."""
    if not is_castable(value.type, TEXT):
        raise scope.error(f"{value.shown} cannot become a text", value.node)
    return scope.cast(value, TEXT)


def _number(scope: Scope, node: Node, value: Value) -> Value:
    if not is_number(value.type) and not t.is_null(value.type):
        do = "convert it with CAST" if is_text(value.type) else None
        raise scope.error(f"{node.value[0]} takes a number, and this is {value.shown}", value.node, do)
    return value


def _same_for_all(scope: Scope, node: Node, value: Value, wanted: str) -> Any:
    """The value of an argument that is the same for all rows. ``wanted``: ``text`` or ``whole number``."""
    fits = is_text(value.type) if wanted == "text" else t.is_integer(value.type)
    if value.constant is None or not value.constant.is_valid or not fits:
        raise scope.error(f"{node.value[0]} takes a {wanted} here that is the same for all rows", value.node)
    return value.constant.as_py()


def _of_text(name: str, kind: pa.DataType) -> BindCall:
    def bind(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
        return scope.emit(node, kind, arrow_function, [_text(scope, node, values[0])], (kind, name), "each")

    return bind


def _trim(sides: str) -> BindCall:
    def bind(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
        characters = " " if len(values) == 1 else _same_for_all(scope, node, values[1], "text")
        return scope.emit(node, TEXT, texts.trim, [_text(scope, node, values[0])], (characters, sides), "each")

    return bind


def _substr(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    start = _same_for_all(scope, node, values[1], "whole number")
    count = None if len(values) == 2 else _same_for_all(scope, node, values[2], "whole number")
    text = _text(scope, node, values[0])
    return scope.emit(node, TEXT, texts.substring, [text], _slice(start, count), "each")


def _slice(start: int, count: int | None) -> tuple[int, int | None]:
    """The characters of ``substr`` as a slice of Python: places count from 1, or from the end."""
    first = start - 1 if start > 0 else start
    if start == 0 and count is not None:
        return 0, max(count - 1, 0)
    if count is None:
        return first, None
    low, high = (first, first + count) if count >= 0 else (first + count, first)
    if first >= 0:
        return max(low, 0), max(high, 0)
    return low, high if high < 0 else None


def _replace(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    old, new = (_same_for_all(scope, node, each, "text") for each in values[1:])
    return scope.emit(node, TEXT, texts.replace, [_text(scope, node, values[0])], (old, new), "each")


def _split_part(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    separator = _same_for_all(scope, node, values[1], "text")
    if not separator:
        raise scope.error("split_part takes a separator that is not empty", values[1].node)
    index = _same_for_all(scope, node, values[2], "whole number")
    return scope.emit(node, TEXT, texts.split_part, [_text(scope, node, values[0])], (separator, index), "each")


def _concat(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    kept = [_any_text(scope, each) for each in values if not each.is_null]
    return scope.emit(node, TEXT, texts.concat, kept) if kept else scope.constant("", TEXT, node)


def _regex(scope: Scope, node: Node, value: Value) -> str:
    pattern: str = _same_for_all(scope, node, value, "text")
    try:
        texts.regexp_matches(Failures(1), pa.array([""]), pattern, False)
    except pa.ArrowInvalid as error:
        reason = str(error).rpartition("regular expression: ")[2]
        raise scope.error(f"this is no regular expression: {reason}", value.node) from None
    return pattern


def _regexp_matches(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    pattern = _regex(scope, node, values[1])
    letters = "" if len(values) == 2 else _same_for_all(scope, node, values[2], "text")
    if letters not in {"", "i", "c"}:
        raise scope.error("the options of regexp_matches are 'i', which ignores case, and 'c'", values[2].node)
    options = (pattern, letters == "i")
    return scope.emit(node, BOOL, texts.regexp_matches, [_text(scope, node, values[0])], options, "each")


def _regexp_extract(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    pattern = _regex(scope, node, values[1])
    group = 0 if len(values) == 2 else _same_for_all(scope, node, values[2], "whole number")
    one = texts.one_group(pattern, group) if group >= 0 else None
    if one is None:
        raise scope.error(f"the regular expression has no group {group}", values[-1].node)
    return scope.emit(node, TEXT, texts.regexp_extract, [_text(scope, node, values[0])], (one,), "each")


def _abs(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    value = _number(scope, node, values[0])
    if t.is_null(value.type):
        return scope.constant(None, DOUBLE, node)
    return scope.emit(node, value.type, numbers.absolute, [value], (), "each")


def _double(name: str) -> BindCall:
    def bind(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
        operands = [scope.cast(_number(scope, node, each), DOUBLE) for each in values]
        if any(each.is_null for each in operands):
            return scope.nothing(node, DOUBLE, operands)
        return scope.emit(node, DOUBLE, arrow_function, operands, (DOUBLE, name), "each")

    return bind


def _whole(name: str) -> BindCall:
    def bind(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
        value = _number(scope, node, values[0])
        if t.is_decimal(value.type):
            kind = pa.decimal128(value.type.precision, 0)
        else:
            kind = value.type if t.is_float32(value.type) else DOUBLE
            value = scope.cast(value, kind)
        return scope.emit(node, kind, numbers.whole, [value], (kind, name), "each")

    return bind


def _round(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    value = _number(scope, node, values[0])
    places = 0 if len(values) == 1 else _same_for_all(scope, node, values[1], "whole number")
    if not -38 <= places <= 38:
        raise scope.error("round takes from -38 to 38 places", values[1].node)
    if t.is_unsigned_integer(value.type):
        value = scope.cast(value, HUGE if value.type == pa.uint64() else pa.int64())
    kind = DOUBLE if t.is_null(value.type) else value.type
    if t.is_null(value.type) or (not t.is_floating(kind) and places >= getattr(kind, "scale", 0)):
        return scope.cast(value, kind)
    if t.is_decimal(kind):
        kind = pa.decimal128(kind.precision, max(places, 0))
    return scope.emit(node, kind, numbers.rounded, [value], (places, kind), "each")


def _unit(scope: Scope, node: Node, value: Value, known: Sequence[str]) -> str:
    word = str(_same_for_all(scope, node, value, "text")).lower()
    name = next((each for each in (word, word.removesuffix("s")) if each in known), None)
    if name is None:
        raise scope.error(f"{node.value[0]} has no {word!r}", value.node, did_you_mean(word, known))
    return name


def _time(scope: Scope, node: Node, value: Value) -> Value:
    if t.is_null(value.type):
        return scope.cast(value, pa.timestamp("us"))
    if not is_time(value.type):
        do = "convert it with CAST(.. AS TIMESTAMP) or strptime" if is_text(value.type) else None
        raise scope.error(f"{node.value[0]} takes a date or a timestamp, and this is {value.shown}", value.node, do)
    return _timestamp_of(scope, value)


def _date_trunc(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    unit = _unit(scope, node, values[0], times.TRUNCATIONS)
    value = _time(scope, node, values[1])
    return scope.emit(node, value.type, times.truncate, [value], (unit,), "each")


def _extract(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    name = _unit(scope, node, values[0], [*times.PARTS, "epoch"])
    if name == "epoch":
        return _epoch(scope, node, values[1:])
    return scope.emit(node, pa.int64(), times.part, [_time(scope, node, values[1])], (name,), "each")


def _part(name: str) -> BindCall:
    def bind(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
        return scope.emit(node, pa.int64(), times.part, [_time(scope, node, values[0])], (name,), "each")

    return bind


def _date_diff(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    unit = _unit(scope, node, values[0], times.TRUNCATIONS)
    both = [_time(scope, node, each) for each in values[1:]]
    kind = common_type(both[0].type, both[1].type)
    assert kind is not None, "two timestamps have a common type"
    same = [scope.cast(each, kind) for each in both]
    return scope.emit(node, pa.int64(), times.boundaries, same, (unit,), "each")


def _to_timestamp(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    seconds = scope.cast(_number(scope, node, values[0]), DOUBLE)
    return scope.emit(node, pa.timestamp("us", "UTC"), times.from_epoch, [seconds], (), "each")


def _zone(scope: Scope, node: Node, value: Value) -> str:
    name = str(_same_for_all(scope, node, value, "text"))
    try:
        return zoneinfo.ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        do = did_you_mean(name, sorted(zoneinfo.available_timezones()))
        raise scope.error(f"unknown time zone {name!r}", value.node, do) from None


def _timezone(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    zone, value = _zone(scope, node, values[0]), _time(scope, node, values[1])
    if value.type.tz is None:
        return scope.emit(node, pa.timestamp(value.type.unit, "UTC"), times.from_local, [value], (zone,), "each")
    return _shown(scope, node, value, zone)


def _local_timestamp(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    return _shown(scope, node, _time(scope, node, values[0]), _zone(scope, node, values[1]))


def _shown(scope: Scope, node: Node, value: Value, zone: str) -> Value:
    return scope.emit(node, pa.timestamp(value.type.unit), times.to_local, [value], (zone,), "each")


def _hash(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    for value in values:
        if not texts.is_hashable(value.type):
            raise scope.error(f"{value.shown} has no hash", value.node, "take a field or an item of it")
    return scope.emit(node, pa.uint64(), texts.hash_values, values)


def _epoch(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    value = values[0] if t.is_duration(values[0].type) else _time(scope, node, values[0])
    return scope.emit(node, DOUBLE, times.epoch, [value], (), "each")


def _strptime(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    layout = times.layout_of(_same_for_all(scope, node, values[1], "text"))
    if layout is None:
        letters = " ".join(f"%{letter}" for letter in times.LETTERS)
        raise scope.error("this is no layout of a time", values[1].node, f"it may have, once each: {letters}")
    kind = pa.timestamp("us", "UTC" if "zone" in layout.parts else None)
    return scope.emit(node, kind, times.strptime, [_text(scope, node, values[0])], (layout, kind), "each")


_ANY: Final = 1000
_SHORT: Final = {name: name for name in times.PARTS if name not in {"dow", "doy"}} | {
    "dayofmonth": "day", "dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "weekofyear": "week",
}  # fmt: skip
"""Functions of one part of a time, by name."""
_ROWS: Final[list[Function]] = [
    ("lower(text)", 1, 1, _of_text("utf8_lower", TEXT)),
    ("upper(text)", 1, 1, _of_text("utf8_upper", TEXT)),
    ("trim(text [, characters])", 1, 2, _trim("both")),
    ("ltrim(text [, characters])", 1, 2, _trim("left")),
    ("rtrim(text [, characters])", 1, 2, _trim("right")),
    ("length(text)", 1, 1, _of_text("utf8_length", pa.int64())),
    ("substr(text, start [, count])", 2, 3, _substr),
    ("replace(text, old, new)", 3, 3, _replace),
    ("split_part(text, separator, n)", 3, 3, _split_part),
    ("concat(value, ..)", 1, _ANY, _concat),
    ("regexp_matches(text, pattern [, 'i'])", 2, 3, _regexp_matches),
    ("regexp_extract(text, pattern [, group])", 2, 3, _regexp_extract),
    ("abs(x)", 1, 1, _abs),
    ("round(x [, places])", 1, 2, _round),
    ("floor(x)", 1, 1, _whole("floor")),
    ("ceil(x)", 1, 1, _whole("ceil")),
    ("sqrt(x)", 1, 1, _double("sqrt")),
    ("ln(x)", 1, 1, _double("ln")),
    ("exp(x)", 1, 1, _double("exp")),
    ("power(x, y)", 2, 2, _double("power")),
    ("date_trunc(unit, time)", 2, 2, _date_trunc),
    ("extract(part from time)", 2, 2, _extract),
    ("strptime(text, layout)", 2, 2, _strptime),
    ("epoch(time)", 1, 1, _epoch),
    ("date_part(part, time)", 2, 2, _extract),
    *((f"{name}(time)", 1, 1, _part(part)) for name, part in _SHORT.items()),
    ("date_diff(unit, time, time)", 3, 3, _date_diff),
    ("to_timestamp(seconds)", 1, 1, _to_timestamp),
    ("timezone(zone, time)", 2, 2, _timezone),
    ("local_timestamp(time, zone)", 2, 2, _local_timestamp),
    ("local_date(time, zone)", 2, 2, lambda *given: given[0].cast(_local_timestamp(*given), pa.date32())),
    ("greatest(x, ..)", 1, _ANY, extreme),
    ("least(x, ..)", 1, _ANY, extreme),
    ("hash(x, ..)", 1, _ANY, _hash),
    ("coalesce(x, ..)", 1, _ANY, None),
    ("nullif(x, y)", 2, 2, lambda scope, node, values: nullif(scope, node, *values)),
]
FUNCTIONS: Final[Mapping[str, Function]] = {row[0].partition("(")[0]: row for row in _ROWS}
"""The functions by name."""


# From the tree of an expression to the steps of a program.


def bind_node(scope: Scope, node: Node) -> Value:
    """Return the value of a node, whose steps are then in the scope. Raises `SpecError`."""
    return _BINDERS[node.kind](scope, node)


def _all(scope: Scope, node: Node) -> list[Value]:
    return [bind_node(scope, each) for each in node.operands]


def _number_of(scope: Scope, node: Node) -> Value:
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
        other = _arithmetic_of(scope, node, sign, found, right) if other is None else other
        found = operators.arithmetic_of(scope, node, sign, found, right) if other is None else other
    return found


def _negative(scope: Scope, node: Node) -> Value:
    value = bind_node(scope, node.operands[0])
    if t.is_duration(value.type):
        zero = scope.constant(pa.scalar(0, pa.int64()).cast(value.type), value.type, node)
        return scope.emit(node, value.type, arithmetic.times, [zero, value], ("-", value.type), "each")
    if not is_number(value.type) and not t.is_null(value.type):
        raise scope.error(f"{value.shown} has no negative", node)
    if value.has_no_type:
        return scope.nothing(node, value.type, [value])
    kind = pa.int32() if t.is_null(value.type) else value.type
    if value.is_null:
        return scope.constant(None, kind, node)
    return scope.emit(node, kind, arithmetic.negative, [value], (kind,), "each")


def _joined(scope: Scope, node: Node) -> Value:
    found = [_any_text(scope, value) for value in _all(scope, node)]
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
    taken = f"{inner.value[0]}_{node.value[0]}"
    if inner.kind == "column" and inner.value[0] not in scope.schema.names and taken in scope.schema.names:
        raise scope.error(f"the column {inner.value[0]!r} is not there", inner, f"did you mean {taken!r}?")
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


def _conditions(scope: Scope, node: Node) -> Value:
    values = [operators.condition(scope, each) for each in _all(scope, node)]
    return scope.emit(node, BOOL, logic.both if node.kind == "and" else logic.either, values)


def _not(scope: Scope, node: Node) -> Value:
    value = operators.condition(scope, bind_node(scope, node.operands[0]))
    return scope.emit(node, BOOL, logic.opposite, [value], (), "each")


_BINDERS: Final[dict[str, Callable[[Scope, Node], Value]]] = {
    "column": lambda scope, node: scope.column(node),
    "number": _number_of,
    "text": lambda scope, node: scope.constant(node.value[0], TEXT, node, True),
    "constant": _constant,
    "sum": _chain,
    "product": _chain,
    "negate": _negative,
    "concat": _joined,
    "like": _like,
    "cast": _cast,
    "field": _field,
    "item": _item,
    "timestamp": _moment,
    "date": _moment,
    "interval": _interval,
    "in": lambda scope, node: operators.is_in(scope, node, _all(scope, node)),
    "between": lambda scope, node: operators.between(scope, node, *_all(scope, node)),
    "case": lambda scope, node: operators.case(scope, node, bind_node),
    "call": _call,
    "compare": lambda scope, node: operators.compare(scope, node, node.value[0], *_all(scope, node)),
    "and": _conditions,
    "or": _conditions,
    "not": _not,
    "is null": lambda scope, node: scope.emit(node, BOOL, logic.is_null, _all(scope, node), (bool(node.value[0]),)),
}
