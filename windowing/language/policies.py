"""The policy and partition eviction rules of the window language (sections 2 to 4)."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, TypeVar

from ..support.suggest import did_you_mean, nearest
from . import spec
from .calls import Call, read_call
from .tokens import Cursor, Token

_T = TypeVar("_T")

UNITS: Final = ("day", "week", "month", "year")
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = re.compile("([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")


def read_policy(
    cursor: Cursor, kind: str, rules: Mapping[str, Callable[[Cursor, Call, int], _T]], least: int = 1
) -> _T:
    """Parse a policy.

    ``rules``: the policies that windows of this ``kind`` can have; ``least``: the smallest ``count``. Raises
    `SpecError` for any other policy.
    """
    token, word = cursor.peek(), cursor.keyword()
    if word in rules:
        return rules[word](cursor, read_call(cursor), least)
    if word in POLICIES:
        do = f"use one of {', '.join(rules)}, or a tumbling window"
        raise cursor.error(f"a {kind} window cannot use {token}", token.span, do)
    raise cursor.unknown("policy", rules)


def read_eviction(cursor: Cursor) -> spec.PartitionEviction:
    """Parse a partition eviction of `EVICTIONS`; the cursor is at its name."""
    return EVICTIONS[cursor.keyword()](cursor, read_call(cursor))


def _count(cursor: Cursor, call: Call, least: int) -> spec.Count:
    return spec.Count(cursor.count(call.first, call.do, least))


def _delta(cursor: Cursor, call: Call, _: int) -> spec.Delta:
    return spec.Delta(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


def _time(cursor: Cursor, call: Call, _: int) -> spec.Time:
    return spec.Time(cursor.duration(call.first, call.do))


def _punct(cursor: Cursor, call: Call, _: int) -> spec.Punct:
    return spec.Punct(cursor.column(call.first, call.do) if call.arguments else None)


def _gap(cursor: Cursor, call: Call, _: int) -> spec.Gap:
    return spec.Gap(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


def _calendar(cursor: Cursor, call: Call, _: int) -> spec.Calendar:
    found = _bind(cursor, call, ("unit", "tz", "at"))
    if "unit" not in found:
        raise cursor.error("calendar needs a unit", call.first.span, call.do)
    unit, start = _unit(cursor, found["unit"])
    tz = _zone(cursor, found["tz"]) if "tz" in found else "UTC"
    at = _clock(cursor, found["at"]) if "at" in found else dt.time(0)
    return spec.Calendar(unit, tz, at, start)


def _bind(cursor: Cursor, call: Call, names: tuple[str, ...]) -> dict[str, Token]:
    found: dict[str, Token] = {}
    for place, argument in enumerate(call.arguments):
        token = argument.name or argument.value
        name = names[place] if argument.name is None else argument.name.text.lower()
        if name not in names:
            raise cursor.error(f"there is no argument called {token}", token.span, did_you_mean(name, names))
        if name in found:
            raise cursor.error(f"the argument {name!r} is given twice", token.span, call.do)
        found[name] = argument.value
    return found


def _unit(cursor: Cursor, token: Token) -> tuple[str, str]:
    unit, weekday, start = token.text.lower().partition("@")
    if token.kind not in {"word", "weekday"} or unit not in UNITS:
        raise cursor.error(f"unknown calendar unit {token}", token.span, did_you_mean(unit, UNITS))
    if weekday and unit != "week":
        raise cursor.error(f"a {unit} does not begin on a weekday", token.span, f"write {unit}")
    if weekday and start not in _WEEKDAYS:
        raise cursor.error(f"unknown weekday in {token}", token.span, did_you_mean(start, _WEEKDAYS))
    return unit, start or "mon"


def _zone(cursor: Cursor, token: Token) -> str:
    if token.kind not in {"word", "column", "text"}:
        raise cursor.error(f"expected a time zone, found {token}", token.span, 'write it like "Europe/Paris"')
    try:
        zoneinfo.ZoneInfo(token.value)
    except (KeyError, ValueError, OSError):
        near = nearest(token.value, zoneinfo.available_timezones())
        do = f"did you mean {near!r}?" if near else 'write it like "Europe/Paris"'
        raise cursor.error(f"unknown time zone {token.value!r}", token.span, do) from None
    return token.value


def _clock(cursor: Cursor, token: Token) -> dt.time:
    if not _CLOCK.fullmatch(token.text):
        raise cursor.error(f"expected a time of day, found {token}", token.span, "write it like 07:00 or 23:59:30")
    return dt.time.fromisoformat(token.text)


def _partition_age(cursor: Cursor, call: Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionAge", cursor.duration(call.first, call.do))


def _partition_count(cursor: Cursor, call: Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionCount", Fraction(cursor.count(call.first, call.do)))


def _tuple_count(cursor: Cursor, call: Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("tupleCount", Fraction(cursor.count(call.first, call.do)))


SLIDING_POLICIES: Final[Mapping[str, Callable[[Cursor, Call, int], spec.SlidingPolicy]]] = {
    "count": _count,
    "delta": _delta,
    "time": _time,
}
"""The policies of a sliding window, by keyword in lower case."""

POLICIES: Final[Mapping[str, Callable[[Cursor, Call, int], spec.Policy]]] = {
    **SLIDING_POLICIES,
    "punct": _punct,
    "gap": _gap,
    "calendar": _calendar,
}
"""The policies of a tumbling window, which are all policies, by keyword in lower case."""

EVICTIONS: Final[Mapping[str, Callable[[Cursor, Call], spec.PartitionEviction]]] = {
    "partitionage": _partition_age,
    "partitioncount": _partition_count,
    "tuplecount": _tuple_count,
}
"""The partition evictions, by keyword in lower case."""
