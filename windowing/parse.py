"""The window language read from text, by recursive descent: one function a rule.

    window     = tumbling | sliding | interval | batched
    tumbling   = [ "tumbling" "," ] policy { "," option }
    sliding    = "sliding" "," policy [ "," policy ] { "," option }
    interval   = "timeInterval" { "," setting }
    batched    = "retain" "all" | [ "partition" "by" column { "," column } ] ( within | retain ) [ unique ]
    within     = "within" duration [ "every" duration ] [ "retain" n ]
    retain     = "retain" n [ "every" n ]
    unique     = "with" "unique" column
    policy     = count(n) | delta(column, amount) | time(duration) | punct() | punct(column) | gap(column, amount)
               | calendar(unit [, zone] [, clock])     unit: day, week, week@mon .. week@sun, month, year
    option     = "partitioned" | partitionAge(duration) | partitionCount(n) | tupleCount(n)
    setting    = "partitioned" | intervalDuration(duration) | creationPeriod(duration) | discardAge(duration)
               | intervalOffset(duration)
    aggregate  = [ column "=" ] word [ ":" word ] arguments
    arguments  = "(" [ argument { "," argument } ] ")"
    argument   = [ word "=" ] ( column | number | text | clock | weekday )

    column     = word | '"' any characters, '""' for one '"', '"'
    text       = "'" any characters, "''" for one "'", "'"
    number     = decimal, 1e3 too, with a unit where it is a duration or an amount: 1.5s 250ms 100us 5ns 5m 2h 1d
    clock      = hh:mm | hh:mm:ss

Keywords and the names of built-in functions do not mind case, and a column may be called like one. Each option and
setting stands once, in any order. What the numbers must be is in sections 2 to 6 of the semantics.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, TypeVar

from windowing import spec
from windowing.errors import Span, SpecError
from windowing.names import did_you_mean, nearest
from windowing.tokens import PLAIN, Cursor, Token

_T = TypeVar("_T")


class _Form(NamedTuple):
    """How a call is written, and how many arguments it takes."""

    text: str
    least: int = 1
    most: int = 1
    takes: str = "1 argument"


_FORMS: Final = {
    "count": _Form("count(n)"),
    "delta": _Form("delta(attribute, amount)", 2, 2, "2 arguments"),
    "time": _Form("time(duration)"),
    "punct": _Form("punct() or punct(column)", 0, 1, "at most 1 argument"),
    "gap": _Form("gap(attribute, amount)", 2, 2, "2 arguments"),
    "calendar": _Form('calendar(day, "Europe/Paris", 23:59)', 1, 3, "1 to 3 arguments"),
    "partitionage": _Form("partitionAge(duration)"),
    "partitioncount": _Form("partitionCount(n)"),
    "tuplecount": _Form("tupleCount(n)"),
    "intervalduration": _Form("intervalDuration(duration)"),
    "creationperiod": _Form("creationPeriod(duration)"),
    "discardage": _Form("discardAge(duration)"),
    "intervaloffset": _Form("intervalOffset(duration)"),
}
_WINDOWS: Final = ("tumbling", "sliding", "timeInterval", "within", "retain", "partition by")
_OPTIONS: Final = ("partitioned", "partitionAge", "partitionCount", "tupleCount")
_SETTINGS: Final = ("intervalDuration", "creationPeriod", "discardAge", "intervalOffset", "partitioned")
_CLAUSES: Final = ("within", "every", "retain", "with")
_UNITS: Final = ("day", "week", "month", "year")
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = re.compile("([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")

_COMPUTE: Final = "compute it as a column first, or put a name with other characters in double quotes"
_AGGREGATE: Final = "write it as [NAME=]FUNCTION(COLUMN, ..)"
_DURATION: Final = "write it like 60, 1.5s, 250ms, 5m, 2h or 1d"
_BATCHED_ORDER: Final = "the order is [partition by K] within D [every P] [retain N] [with unique K]"


def parse_window(text: str) -> spec.WindowSpec:
    """Read a window spec, such as ``sliding, count(100), delta(ts, 5m)`` (sections 2 to 6).

    Reading its canonical text again gives an equal value. Raises `SpecError` with the place at fault.

    >>> str(parse_window("Delta(ts, 1.5m)"))
    'tumbling, delta(ts, 90)'
    """
    cursor = Cursor(text)
    window = _window(cursor)
    _end(cursor, isinstance(window, spec.Batched))
    return window


def parse_aggregate(text: str) -> spec.AggregateCall:
    """Read an aggregate, such as ``p95=quantile(latency, 0.95)`` or ``stats.mine:trimmed(x)`` (section 9).

    Only its form is read: neither the function nor the columns need exist. One without a name gets that of
    `windowing.spec.default_name`. Raises `SpecError` with the place at fault.
    """
    cursor = Cursor(text)
    if cursor.peek().kind == "end":
        raise cursor.error("the aggregate is empty", cursor.peek().span, "write for example sum(amount)")
    name = _aggregate_name(cursor)
    function = _function(cursor)
    values = tuple(_value(cursor, argument) for argument in _arguments(cursor, _AGGREGATE))
    _only(cursor, "give one aggregate at a time")
    return spec.AggregateCall(name or spec.default_name(function, values), function, values)


def parse_duration(text: str) -> Fraction:
    """Read a duration, such as ``60``, ``1.5s`` or ``2h``, as exact seconds, 0 or more. Raises `SpecError`."""
    cursor = Cursor(text)
    seconds = cursor.duration(cursor.take(), _DURATION, zero=True)
    _only(cursor, _DURATION)
    return seconds


# Windows


def _window(cursor: Cursor) -> spec.WindowSpec:
    token, word = cursor.peek(), cursor.keyword()
    rule = _tumbling if word in _POLICIES else _KINDS.get(word)
    if rule is not None:
        return rule(cursor)
    if token.kind == "end":
        raise cursor.error("the window spec is empty", token.span, "write for example delta(ts, 60)")
    raise _unknown(cursor, "window", (*_WINDOWS, *_POLICIES))


def _tumbling(cursor: Cursor) -> spec.Tumbling:
    if cursor.skip("tumbling"):
        _comma(cursor, "write for example tumbling, count(100)")
    policy = _policy(cursor, "tumbling", _POLICIES)
    return spec.Tumbling(policy, *_options(cursor, "a tumbling window takes one policy"))


def _sliding(cursor: Cursor) -> spec.Sliding:
    cursor.take()
    _comma(cursor, "write for example sliding, count(100), count(10)")
    evict = _policy(cursor, "sliding", _SLIDING_POLICIES, least=0)
    trigger: spec.SlidingPolicy = spec.Count(1)
    if cursor.at(",") and cursor.keyword(1) in _POLICIES:
        cursor.take()
        trigger = _policy(cursor, "sliding", _SLIDING_POLICIES)
    return spec.Sliding(evict, trigger, *_options(cursor, "a sliding window takes an eviction and a trigger"))


def _options(cursor: Cursor, policies: str) -> tuple[bool, spec.PartitionEviction | None]:
    partitioned, eviction = False, None
    while cursor.skip(","):
        token, word = cursor.peek(), cursor.keyword()
        if word in _POLICIES:
            raise cursor.error(f"{policies}, {token} is one too many", token.span, "leave this one out")
        if (word in _EVICTIONS and eviction) or (word == "partitioned" and partitioned):
            what = "'partitioned' is given twice" if word == "partitioned" else "a window takes one partition eviction"
            raise cursor.error(what, token.span, "leave this one out")
        if cursor.skip("partitioned"):
            partitioned = True
        elif word in _EVICTIONS:
            eviction = _EVICTIONS[word](cursor, _call(cursor))
        else:
            raise _unknown(cursor, "option", (*_OPTIONS, *_POLICIES))
    return partitioned, eviction


def _time_interval(cursor: Cursor) -> spec.TimeInterval:
    start, do = cursor.take(), "write for example timeInterval, intervalDuration(60), creationPeriod(10)"
    _comma(cursor, do)
    found = _settings(cursor)
    if "intervalduration" not in found:
        raise cursor.error("timeInterval needs an intervalDuration", start.span, do)
    duration = found["intervalduration"]
    period = found.get("creationperiod", duration)
    age, offset = found.get("discardage", Fraction(0)), found.get("intervaloffset", Fraction(0))
    return spec.TimeInterval(duration, period, age, offset, "partitioned" in found)


def _settings(cursor: Cursor) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    more = True
    while more:
        token, word = cursor.peek(), cursor.keyword()
        if word in found:
            raise cursor.error(f"{token} is given twice", token.span, "leave this one out")
        found[word] = _setting(cursor)
        more = cursor.skip(",")
    return found


def _setting(cursor: Cursor) -> Fraction:
    word = cursor.keyword()
    if cursor.skip("partitioned"):
        return Fraction(1)
    if word not in map(str.lower, _SETTINGS):
        raise _unknown(cursor, "setting", _SETTINGS)
    call = _call(cursor)
    return cursor.duration(call.first, call.do, zero=word in {"discardage", "intervaloffset"})


def _batched(cursor: Cursor) -> spec.Batched:
    by = _partition_by(cursor)
    if cursor.skip("within"):
        within, every, retain = _within(cursor)
        return spec.Batched(within, every, retain, False, _unique(cursor), by)
    if not cursor.skip("retain"):
        raise _unknown(cursor, "clause", ("within", "retain"))
    if cursor.keyword() == "all":
        return _retain_all(cursor, by)
    retain, rows = _retain(cursor)
    return spec.Batched(None, rows, retain, False, _unique(cursor), by)


def _partition_by(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.skip("partition"):
        return ()
    token = cursor.peek()
    if not cursor.skip("by"):
        raise cursor.error(f"expected 'by' after 'partition', found {token}", token.span, _BATCHED_ORDER)
    columns = [_partition_column(cursor)]
    while cursor.skip(","):
        columns.append(_partition_column(cursor))
    return tuple(columns)


def _partition_column(cursor: Cursor) -> str:
    token = cursor.take()
    column, after = cursor.column(token, "write partition by COLUMN, .."), cursor.peek()
    if after.kind == "symbol" and after.text in "(+-*/%":
        span = Span(token.span.start, after.span.stop)
        raise cursor.error("partition by takes columns, not expressions", span, _COMPUTE)
    return column


def _within(cursor: Cursor) -> tuple[Fraction, Fraction | None, int | None]:
    within = cursor.duration(cursor.take(), "write within 5m")
    every = cursor.duration(cursor.take(), "next to within, every is a duration") if cursor.skip("every") else None
    if not cursor.skip("retain"):
        return within, every, None
    if cursor.keyword() == "all":
        raise cursor.error("retain all stands alone", cursor.peek().span, "leave out either it or within")
    return within, every, cursor.count(cursor.take(), "write retain n")


def _retain(cursor: Cursor) -> tuple[int, int | None]:
    retain = cursor.count(cursor.take(), "write retain n or retain all")
    if not cursor.skip("every"):
        return retain, None
    return retain, cursor.count(cursor.take(), "next to a lone retain, every is a number of rows")


def _retain_all(cursor: Cursor, by: tuple[str, ...]) -> spec.Batched:
    token = cursor.take()
    if by:
        raise cursor.error("retain all takes no 'partition by'", token.span, "leave it out, or use the option --key")
    if cursor.keyword() in {"every", "with"}:
        raise cursor.error(f"retain all takes no {cursor.keyword()!r}", cursor.peek().span, "it stands alone")
    return spec.Batched(retain_all=True)


def _unique(cursor: Cursor) -> str | None:
    if not cursor.skip("with"):
        return None
    token = cursor.peek()
    if not cursor.skip("unique"):
        raise cursor.error(f"expected 'unique' after 'with', found {token}", token.span, _BATCHED_ORDER)
    return cursor.column(cursor.take(), "write with unique COLUMN")


def _unknown(cursor: Cursor, thing: str, known: Iterable[str]) -> SpecError:
    token = cursor.peek()
    article = "an" if thing == "option" else "a"
    what = f"unknown {thing} {token}" if token.kind == "word" else f"expected {article} {thing}, found {token}"
    return cursor.error(what, token.span, did_you_mean(token.text, known))


def _comma(cursor: Cursor, do: str) -> None:
    if not cursor.skip(","):
        raise cursor.error(f"expected ',', found {cursor.peek()}", cursor.peek().span, do)


def _end(cursor: Cursor, batched: bool) -> None:
    token = cursor.peek()
    if token.kind == "end":
        return
    if cursor.keyword() == "group":
        column = cursor.peek(2) if cursor.keyword(1) == "by" else cursor.peek(1)
        do = f"use the option --group-by {column.text if column.kind == 'word' else 'COLUMN'}"
        raise cursor.error("group by is no part of a window", Span(token.span.start, column.span.stop), do)
    if batched:
        near = nearest(token.text, _CLAUSES) if token.text.lower() not in _CLAUSES else None
        do = _BATCHED_ORDER if near is None else f"did you mean {near!r}?"
        raise cursor.error(f"expected the end, found {token}", token.span, do)
    raise cursor.error(f"expected ',' or the end, found {token}", token.span)


def _only(cursor: Cursor, do: str) -> None:
    if cursor.peek().kind != "end":
        raise cursor.error(f"expected the end, found {cursor.peek()}", cursor.peek().span, do)


# Policies and other calls


@dataclass(frozen=True, slots=True)
class _Argument:
    """``value``, or ``name=value``."""

    name: Token | None
    value: Token


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with as many arguments as its form takes; ``do`` tells the form."""

    arguments: tuple[_Argument, ...]
    do: str

    @property
    def first(self) -> Token:
        return self.arguments[0].value

    @property
    def second(self) -> Token:
        return self.arguments[1].value


def _policy(cursor: Cursor, kind: str, rules: Mapping[str, Callable[[Cursor, _Call, int], _T]], least: int = 1) -> _T:
    token, word = cursor.peek(), cursor.keyword()
    if word in rules:
        return rules[word](cursor, _call(cursor), least)
    if word in _POLICIES:
        do = f"use one of {', '.join(rules)}, or a tumbling window"
        raise cursor.error(f"a {kind} window cannot use {token}", token.span, do)
    raise _unknown(cursor, "policy", rules)


def _call(cursor: Cursor) -> _Call:
    """Step over a call of `_FORMS`, whose name the cursor is at."""
    form, start = _FORMS[cursor.keyword()], cursor.take().span.start
    do = f"write it as {form.text}"
    arguments = _arguments(cursor, do)
    if not form.least <= len(arguments) <= form.most:
        what = f"{form.text.partition('(')[0]} takes {form.takes}, found {len(arguments)}"
        raise cursor.error(what, Span(start, cursor.last.span.stop), do)
    named = [argument.name for argument in arguments if argument.name is not None]
    if named and form is not _FORMS["calendar"]:
        raise cursor.error(f"there is no argument called {named[0]}", named[0].span, do)
    return _Call(arguments, do)


def _arguments(cursor: Cursor, do: str) -> tuple[_Argument, ...]:
    opening = cursor.peek()
    if not cursor.skip("("):
        raise cursor.error(f"expected '(', found {opening}", opening.span, do)
    if cursor.skip(")"):
        return ()
    found = [_argument(cursor, opening, do)]
    while cursor.skip(","):
        found.append(_argument(cursor, opening, do))
    if not cursor.skip(")"):
        raise _broken(cursor, opening, "expected ',' or ')'", do)
    return tuple(found)


def _argument(cursor: Cursor, opening: Token, do: str) -> _Argument:
    name = None
    if cursor.keyword() and cursor.at("=", 1):
        name = cursor.take()
        cursor.take()
    if cursor.peek().kind in {"symbol", "end"}:
        raise _broken(cursor, opening, "expected an argument", do)
    return _Argument(name, cursor.take())


def _broken(cursor: Cursor, opening: Token, expected: str, do: str) -> SpecError:
    token = cursor.peek()
    if token.kind == "end":
        return cursor.error("this parenthesis is never closed", opening.span, do)
    if cursor.last is opening and token.text == "*":
        return cursor.error("'*' is no column", token.span, "write count() to count rows")
    if token.kind == "symbol" and token.text not in ",)":
        do = f"{do}, and put a name with other characters in double quotes"
    return cursor.error(f"{expected}, found {token}", token.span, do)


def _count(cursor: Cursor, call: _Call, least: int) -> spec.Count:
    return spec.Count(cursor.count(call.first, call.do, least))


def _delta(cursor: Cursor, call: _Call, _: int) -> spec.Delta:
    return spec.Delta(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


def _time(cursor: Cursor, call: _Call, _: int) -> spec.Time:
    return spec.Time(cursor.duration(call.first, call.do))


def _punct(cursor: Cursor, call: _Call, _: int) -> spec.Punct:
    return spec.Punct(cursor.column(call.first, call.do) if call.arguments else None)


def _gap(cursor: Cursor, call: _Call, _: int) -> spec.Gap:
    return spec.Gap(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


def _calendar(cursor: Cursor, call: _Call, _: int) -> spec.Calendar:
    found = _bind(cursor, call, ("unit", "tz", "at"))
    if "unit" not in found:
        raise cursor.error("calendar needs a unit", call.first.span, call.do)
    unit, start = _unit(cursor, found["unit"])
    tz = _zone(cursor, found["tz"]) if "tz" in found else "UTC"
    at = _clock(cursor, found["at"]) if "at" in found else dt.time(0)
    return spec.Calendar(unit, tz, at, start)


def _bind(cursor: Cursor, call: _Call, names: tuple[str, ...]) -> dict[str, Token]:
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
    if token.kind not in {"word", "weekday"} or unit not in _UNITS:
        raise cursor.error(f"unknown calendar unit {token}", token.span, did_you_mean(unit, _UNITS))
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


def _partition_age(cursor: Cursor, call: _Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionAge", cursor.duration(call.first, call.do))


def _partition_count(cursor: Cursor, call: _Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionCount", Fraction(cursor.count(call.first, call.do)))


def _tuple_count(cursor: Cursor, call: _Call) -> spec.PartitionEviction:
    return spec.PartitionEviction("tupleCount", Fraction(cursor.count(call.first, call.do)))


# Aggregates


def _aggregate_name(cursor: Cursor) -> str | None:
    if not cursor.at("=", 1):
        return None
    name = cursor.column(cursor.take(), _AGGREGATE)
    cursor.take()
    return name


def _function(cursor: Cursor) -> str:
    token = cursor.take()
    if token.kind != "word":
        raise cursor.error(f"expected a function, found {token}", token.span, _AGGREGATE)
    if not cursor.skip(":"):
        return token.text.lower()
    name = cursor.take()
    if name.kind != "word":
        raise cursor.error(f"expected a function of {token}, found {name}", name.span, "write it as module:name")
    return f"{token.text}:{name.text}"


def _value(cursor: Cursor, argument: _Argument) -> spec.Argument:
    if argument.name is not None:
        raise cursor.error(f"there is no argument called {argument.name}", argument.name.span, _AGGREGATE)
    if argument.value.kind == "number":
        return cursor.number(argument.value, PLAIN, "write a plain number")
    if argument.value.kind == "text":
        return argument.value.value
    return spec.Column(cursor.column(argument.value, _AGGREGATE))


_SLIDING_POLICIES: Final[Mapping[str, Callable[[Cursor, _Call, int], spec.SlidingPolicy]]] = {
    "count": _count,
    "delta": _delta,
    "time": _time,
}
_POLICIES: Final[Mapping[str, Callable[[Cursor, _Call, int], spec.Policy]]] = {
    **_SLIDING_POLICIES,
    "punct": _punct,
    "gap": _gap,
    "calendar": _calendar,
}
_EVICTIONS: Final[Mapping[str, Callable[[Cursor, _Call], spec.PartitionEviction]]] = {
    "partitionage": _partition_age,
    "partitioncount": _partition_count,
    "tuplecount": _tuple_count,
}
_KINDS: Final[Mapping[str, Callable[[Cursor], spec.WindowSpec]]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "timeinterval": _time_interval,
    "partition": _batched,
    "within": _batched,
    "retain": _batched,
}
