"""The parser of the window language, by recursive descent: one function for each rule.

    window     = tumbling | sliding | interval | batched
    tumbling   = [ "tumbling" "," ] policy { "or" policy } { "," option }
    sliding    = "sliding" "," policy [ "," policy ] { "," option }
    interval   = "timeInterval" { "," setting }
    batched    = "retain" "all" | [ "partition" "by" column { "," column } ] ( within | retain ) [ unique ]
    within     = "within" duration [ "every" duration ] [ "retain" n ]
    retain     = "retain" n [ "every" n ]
    unique     = "with" "unique" column
    policy     = a call of `windowing.language.policies.POLICIES`, such as count(n) or delta(column, amount)
    option     = "partitioned" | partitionAge(duration) | partitionCount(n) | tupleCount(n)
    setting    = "partitioned" | intervalDuration(duration) | creationPeriod(duration) | discardAge(duration)
               | intervalOffset(duration)
    aggregate  = [ column "=" ] word [ ":" word ] arguments
    arguments  = "(" [ argument { "," argument } ] ")"
    argument   = [ word "=" ] ( column | number | text | clock | weekday | expression )

    column     = word | '"' any characters, '""' for one '"', '"'
    text       = "'" any characters, "''" for one "'", "'"
    number     = decimal, 1e3 too, with a unit where it is a duration or an amount: 1.5s 250ms 5m 2h 1w "5 minutes"
    clock      = hh:mm | hh:mm:ss
    expression = all tokens up to the comma or parenthesis behind them, as `windowing.expressions` reads them

Keywords and the names of built-in functions ignore case, and a column may have the name of a keyword. Each option and
setting may occur once, in any order. Sections 2 to 6 of the semantics define the valid numbers.

The rules of policies, the batched clause and aggregates are in `windowing.language.policies`,
`windowing.language.batched` and `windowing.language.aggregates.calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError
from ..expressions.syntax import Expression, parse_expression
from . import spec
from .aggregates.expressions import read_item
from .aggregates.names import AGGREGATES, ALIASES
from .batched import read_batched, stray
from .calls import Form, read_call
from .policies import (
    EVICTIONS,
    POLICIES,
    SLIDING_POLICIES,
    TRIGGER_POLICIES,
    looks_at_window_before,
    read_eviction,
    read_policy,
    read_tumbling_policy,
)
from .tokens import Cursor

_WINDOWS: Final = ("tumbling", "sliding", "timeInterval", "within", "retain", "partition by")
_OPTIONS: Final = ("partitioned", "partitionAge", "partitionCount", "tupleCount")
SETTINGS: Final = ("intervalDuration", "creationPeriod", "discardAge", "intervalOffset")
"""The settings of ``timeInterval`` that are calls."""
_SETTINGS: Final = (*SETTINGS, "partitioned")
_ELSEWHERE: Final = {
    "session": "gap(ts, 30m)", "sessions": "gap(ts, 30m)", "session_window": "gap(ts, 30m)",
    "hop": "timeInterval, intervalDuration(1h), creationPeriod(5m)",
    "hopping": "timeInterval, intervalDuration(1h), creationPeriod(5m)",
    "tumble": "time(5m)", "fixed": "time(5m)", "slide": "sliding, time(1h), time(5m)",
}  # fmt: skip
"""The names of windows in other tools, and how they are written in this language."""
_DURATION: Final = "write it like 60, 1.5s, 250ms, 5m, 2h or 1d"


def parse_window(text: str) -> spec.WindowSpec:
    """Parse a window spec, such as ``sliding, count(100), delta(ts, 5m)`` (sections 2 to 6).

    Parsing the canonical text of the result gives an equal value. Raises `SpecError` with the span at fault.

    >>> str(parse_window("Delta(ts, 1.5m)"))
    'tumbling, delta(ts, 90)'
    """
    cursor = Cursor(text)
    window = _window(cursor)
    _end(cursor, isinstance(window, spec.Batched))
    return window


def parse_aggregate(text: str) -> spec.AggregateCall | spec.AggregateExpression:
    """Parse an aggregate, such as ``p95=quantile(latency, 0.95)`` or ``stats.mine:trimmed(x)`` (section 9).

    Also with expressions (section 11): ``sum(price * items) where ok``, ``rise=last(temp) - first(temp)``. Only the
    form is checked: neither the function nor the columns need to exist. An aggregate without a name gets that of
    `windowing.language.spec.default_name`. Raises `SpecError` with the span at fault.
    """
    cursor = Cursor(text)
    if cursor.peek().kind == "end":
        raise cursor.error("the aggregate is empty", cursor.peek().span, "write for example sum(amount)")
    return read_item(text)


def parse_let(text: str) -> tuple[str, Expression]:
    """Parse a new column, ``NAME=EXPRESSION`` (section 11). Raises `SpecError` with the span at fault."""
    cursor = Cursor(text)
    name = cursor.take()
    if name.kind not in ("word", "column") or not cursor.skip("=") or cursor.at("="):
        raise cursor.error("a new column needs a name", name.span, "write it as NAME=EXPRESSION")
    begin = cursor.last.span.stop
    try:
        return name.value, parse_expression(text[begin:])
    except SpecError as error:
        span = Span(error.span.start + begin, error.span.stop + begin)
        raise SpecError(error.what, cursor.source, span, error.do) from None


def parse_duration(text: str) -> Fraction:
    """Parse a duration, such as ``60``, ``1.5s`` or ``2h``, as exact seconds, 0 or more. Raises `SpecError`."""
    cursor = Cursor(text)
    seconds = cursor.duration(cursor.take(), _DURATION, zero=True)
    _only(cursor, _DURATION)
    return seconds


def _window(cursor: Cursor) -> spec.WindowSpec:
    token, word = cursor.peek(), cursor.keyword()
    rule = _tumbling if word in POLICIES else _KINDS.get(word)
    if rule is not None:
        return rule(cursor)
    if token.kind == "end":
        raise cursor.error("the window spec is empty", token.span, "write for example delta(ts, 60)")
    if word in _ELSEWHERE:
        raise cursor.error(f"there is no window {token}", token.span, f"here it is written {_ELSEWHERE[word]}")
    if word in AGGREGATES or word in ALIASES:
        raise cursor.error(f"{word} is an aggregate, not a window", token.span, "give it with --agg, and a window here")
    if token.kind == "number":
        do = f"write for example time({token.text}), or gap(ts, {token.text})"
        raise cursor.error(f"{token} says how long a window is, and not which kind it is of", token.span, do)
    raise cursor.unknown("window", (*_WINDOWS, *POLICIES))


def _tumbling(cursor: Cursor) -> spec.Tumbling:
    if cursor.skip("tumbling"):
        _comma(cursor, "write for example tumbling, count(100)")
    start, policy = cursor.peek().span.start, read_tumbling_policy(cursor)
    stop = cursor.last.span.stop
    partitioned, eviction = _options(cursor, "a tumbling window takes one policy, or several with 'or' between them")
    if eviction is not None and looks_at_window_before(policy):
        raise cursor.error(f"{eviction} does not go with previous", Span(start, stop), "leave one of them out")
    return spec.Tumbling(policy, partitioned, eviction)


def _sliding(cursor: Cursor) -> spec.Sliding:
    cursor.take()
    _comma(cursor, "write for example sliding, count(100), count(10)")
    evict = read_policy(cursor, "sliding", SLIDING_POLICIES, least=0)
    trigger: spec.TriggerPolicy = spec.Count(1)
    if cursor.at(",") and cursor.keyword(1) in POLICIES:
        cursor.take()
        trigger = read_policy(cursor, "sliding", TRIGGER_POLICIES)
    return spec.Sliding(evict, trigger, *_options(cursor, "a sliding window takes an eviction and a trigger"))


def _options(cursor: Cursor, policies: str) -> tuple[bool, spec.PartitionEviction | None]:
    partitioned, eviction = False, None
    while cursor.skip(","):
        token, word = cursor.peek(), cursor.keyword()
        if word in POLICIES:
            raise cursor.error(f"{policies}, {token} is one too many", token.span, "leave this one out")
        if (word in EVICTIONS and eviction) or (word == "partitioned" and partitioned):
            what = "'partitioned' is given twice" if word == "partitioned" else "a window takes one partition eviction"
            raise cursor.error(what, token.span, "leave this one out")
        if cursor.skip("partitioned"):
            partitioned = True
        elif word in EVICTIONS:
            eviction = read_eviction(cursor)
        else:
            raise cursor.unknown("option", (*_OPTIONS, *POLICIES))
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
        raise cursor.unknown("setting", _SETTINGS)
    name = next(setting for setting in SETTINGS if setting.lower() == word)
    call = read_call(cursor, Form(f"{name}(duration)"))
    return cursor.duration(call.first, call.do, zero=word in {"discardage", "intervaloffset"})


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
        raise stray(cursor)
    raise cursor.error(f"expected ',' or the end, found {token}", token.span)


def _only(cursor: Cursor, do: str) -> None:
    if cursor.peek().kind != "end":
        raise cursor.error(f"expected the end, found {cursor.peek()}", cursor.peek().span, do)


_KINDS: Final[Mapping[str, Callable[[Cursor], spec.WindowSpec]]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "timeinterval": _time_interval,
    "partition": read_batched,
    "within": read_batched,
    "retain": read_batched,
}
