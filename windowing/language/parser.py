"""The parser of the window language, by recursive descent: one function for each rule.

    window     = tumbling | sliding | interval | batched | table | match | around | at | sides
    tumbling   = [ "tumbling" "," ] ( policy { "or" policy } | growing ) { "," option }
    growing    = policy "every" duration
    sliding    = "sliding" "," policy [ "," policy ] { "," option }
    interval   = "timeInterval" { "," setting }
    batched    = "retain" "all" | [ "partition" "by" column { "," column } ] ( within | retain ) [ unique ]
    within     = "within" duration [ "every" duration ] [ "retain" n ]
    retain     = "retain" n [ "every" n ]
    unique     = "with" "unique" column
    table      = "table" "(" word ")" [ "," "partitioned" ]
    match      = as `windowing.language.pattern_parser` reads it
    around     = "around" "(" duration "," duration [ "," "prevailing" ] ")"
    at         = "at" "(" duration { "," duration } ")" [ "within" duration ]
    sides      = "sliding" "," policy "join" policy | batched "join" batched
    policy     = a call of `windowing.language.parser.POLICIES`, such as count(n) or delta(column, amount)
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
setting may occur once, in any order. Durations of ``around`` and offsets of ``at`` may be negative. Sections 2 to 6 of
the semantics, and 16 for joins, define the valid numbers.

The values of policies and the rule of aggregates are in modules of their own.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, TypeVar

from ..errors import ConfigError, Span, SpecError, nearest, short
from ..expressions.syntax import Expression, parse_expression
from . import spec
from .aggregate_names import AGGREGATES
from .aggregates import ALIASES, read_item
from .calls import Call, Form, Policy, Rule, read_call
from .clock_policies import CLOCK_POLICIES, Growing, read_growing
from .conditions import CONDITION_POLICIES, MOST_POLICIES, OPENERS, AnyOf
from .joins import read_around, read_at
from .operands import read_placed
from .pattern_parser import READERS
from .row_policies import ROW_POLICIES, Changing
from .tokens import Cursor, Duration

# The policies and partition evictions of the window language, by keyword (sections 2 to 4).


_T = TypeVar("_T")
_LEAVE_ONE: Final = "leave one of them out"
_ONE_OPENER: Final = "give one of when, while and from"
_ALONE: Final = "write table(NAME), and nothing beside it"


def read_policy(cursor: Cursor, kind: str, rules: Mapping[str, Rule[_T]], least: int = 1) -> _T:
    """Parse a policy.

    ``rules``: the policies that windows of this ``kind`` can have; ``least``: the smallest ``count``. Raises
    `SpecError` for any other policy.
    """
    token, word = cursor.peek(), cursor.keyword()
    if word in rules:
        call = read_call(cursor, rules[word].form)
        policy = rules[word].read(cursor, call, least)
        if kind == "sliding" and isinstance(policy, Changing):
            amount = call.arguments[-1].value
            raise cursor.error(f"expected a number, found {amount}", amount.span, call.do)
        return policy
    if word == "table" or word in READERS:
        do = _ALONE if word == "table" else f"write {word}(..), and what it takes behind it"
        raise cursor.error(f"{word} stands alone: it is no policy of a {kind} window", token.span, do)
    if word in POLICIES:
        do = f"use one of {', '.join(rules)}, or a tumbling window"
        raise cursor.error(f"a {kind} window cannot use {token}", token.span, do)
    raise cursor.unknown("policy", rules)


def read_tumbling_policy(cursor: Cursor) -> Policy:
    """Parse the policy of a tumbling window: one, or several between ``or`` (section 12). Raises `SpecError`."""
    found: list[Policy] = []
    while not found or cursor.skip("or"):
        token = cursor.peek()
        policy = read_policy(cursor, "tumbling", POLICIES)
        every = cursor.peek()
        if cursor.keyword() == "every":
            policy = read_growing(cursor, policy, token.span)
            if found or cursor.keyword() == "or":
                raise cursor.error("every does not go with or", every.span, _LEAVE_ONE)
        if policy in found:
            raise cursor.error(f"the policy {policy} is given twice", token.span, "leave this one out")
        if isinstance(policy, OPENERS) and any(isinstance(other, OPENERS) for other in found):
            raise cursor.error(f"{token} is the second policy that opens windows", token.span, _ONE_OPENER)
        found.append(policy)
        if len(found) > MOST_POLICIES:
            raise cursor.error(f"a window takes at most {MOST_POLICIES} policies", token.span, "leave some out")
    return found[0] if len(found) == 1 else AnyOf(tuple(found))


def _counted(
    kind: Literal["partitionCount", "tupleCount"], cursor: Cursor, call: Call, _: int
) -> spec.PartitionEviction:
    return spec.PartitionEviction(kind, Fraction(cursor.count(call.first, call.do)))


def _aged(cursor: Cursor, call: Call, _: int) -> spec.PartitionEviction:
    return spec.PartitionEviction("partitionAge", cursor.duration(call.first, call.do))


SLIDING_POLICIES: Final[Mapping[str, Rule[spec.SlidingPolicy]]] = {
    "count": ROW_POLICIES["count"],
    "delta": ROW_POLICIES["delta"],
    "time": CLOCK_POLICIES["time"],
}
"""The policies that evict rows of a sliding window, by keyword in lower case."""

TRIGGER_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    **SLIDING_POLICIES,
    "when": CONDITION_POLICIES["when"],
}
"""The policies that trigger a sliding window, by keyword in lower case."""

POLICIES: Final[Mapping[str, Rule[Any]]] = {
    **SLIDING_POLICIES,
    **ROW_POLICIES,
    **CLOCK_POLICIES,
    **CONDITION_POLICIES,
}
"""The policies of a tumbling window, which are all policies, by keyword in lower case."""

EVICTIONS: Final[Mapping[str, Rule[spec.PartitionEviction]]] = {
    "partitionage": Rule(Form("partitionAge(duration)"), _aged),
    "partitioncount": Rule(Form("partitionCount(n)"), partial(_counted, "partitionCount")),
    "tuplecount": Rule(Form("tupleCount(n)"), partial(_counted, "tupleCount")),
}
"""The partition evictions, by keyword in lower case."""


# The batched clause of the window language: within, every, retain, with unique (section 6).


_CLAUSES: Final = ("within", "every", "retain", "with")
_COMPUTE: Final = "compute it as a column first, or put a name with other characters in double quotes"
_ORDER: Final = "the order is [partition by K] within D [every P] [retain N] [with unique K]"


def read_batched(cursor: Cursor) -> spec.Batched:
    """Parse a batched clause, up to the first token that cannot belong to it. Raises `SpecError`."""
    by = _partition_by(cursor)
    if cursor.skip("within"):
        within, every, retain = _within(cursor)
        return spec.Batched(within, every, retain, False, _unique(cursor), by)
    if not cursor.skip("retain"):
        raise cursor.unknown("clause", ("within", "retain"))
    if cursor.keyword() == "all":
        token = cursor.take()
        if by:
            raise cursor.error(
                "retain all takes no 'partition by'", token.span, "leave it out, or use the option --key"
            )
        if cursor.keyword() in {"every", "with"}:
            raise cursor.error(f"retain all takes no {cursor.keyword()!r}", cursor.peek().span, "it stands alone")
        return spec.Batched(retain_all=True)
    retain = cursor.count(cursor.take(), "write retain n or retain all")
    do = "next to a lone retain, every is a number of rows"
    rows = cursor.count(cursor.take(), do) if cursor.skip("every") else None
    return spec.Batched(None, rows, retain, False, _unique(cursor), by)


def _partition_by(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.skip("partition"):
        return ()
    token = cursor.peek()
    if not cursor.skip("by"):
        raise cursor.error(f"expected 'by' after 'partition', found {token}", token.span, _ORDER)
    return cursor.series(_partition_column)


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


def _unique(cursor: Cursor) -> str | None:
    if not cursor.skip("with"):
        return None
    token = cursor.peek()
    if not cursor.skip("unique"):
        raise cursor.error(f"expected 'unique' after 'with', found {token}", token.span, _ORDER)
    return cursor.column(cursor.take(), "write with unique COLUMN")


_WINDOWS: Final = (
    "tumbling", "sliding", "timeInterval", "within", "retain", "partition by", "table", "around", "at", *READERS
)  # fmt: skip
_SIDES: Final = "write sliding, EVICTION join EVICTION, or retain 1 join retain 1"
_OPTIONS: Final = ("partitioned", "partitionAge", "partitionCount", "tupleCount")
SETTINGS: Final = ("intervalDuration", "creationPeriod", "discardAge", "intervalOffset")
"""The settings of ``timeInterval`` that are calls."""
_ELSEWHERE: Final = {
    "session": "gap(ts, 30m)", "sessions": "gap(ts, 30m)", "session_window": "gap(ts, 30m)",
    "hop": "timeInterval, intervalDuration(1h), creationPeriod(5m)",
    "hopping": "timeInterval, intervalDuration(1h), creationPeriod(5m)",
    "match_recognize": "match(a b+, a = x > 1, b = x > 2)", "windowfunnel": "funnel(a = x > 1, b = x > 2) within 30m",
    "cumulate": "time(1d) every 1h", "tumble": "time(5m)", "fixed": "time(5m)", "slide": "sliding, time(1h), time(5m)",
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
    if cursor.keyword() == "join":
        window = _sides(cursor, window)
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
    if name.kind not in ("word", "quoted") or not cursor.skip("=") or cursor.at("="):
        raise cursor.error("a new column needs a name", name.span, "write it as NAME=EXPRESSION")
    begin = cursor.last.span.stop
    return name.value, read_placed(cursor, begin, lambda: parse_expression(text[begin:]))


def parse_duration(text: str) -> Fraction:
    """Parse a duration, such as ``60``, ``1.5s`` or ``2h``, as exact seconds, 0 or more. Raises `SpecError`."""
    cursor = Cursor(text)
    seconds = cursor.duration(cursor.take(), _DURATION, zero=True)
    if cursor.peek().kind != "end":
        raise cursor.error(f"expected the end, found {cursor.peek()}", cursor.peek().span, _DURATION)
    return seconds


def duration_seconds(text: str) -> Fraction:
    """Parse the duration of an option. Raises `ConfigError`, whose text follows the name of the option."""
    try:
        return parse_duration(text)
    except SpecError as error:
        raise ConfigError(f"{short(text)!r} is no duration: {error.what}", "write it as 10, 1.5s or 5m") from None


def origin_seconds(text: str) -> Fraction:
    """Parse the origin of the time grid: seconds or a duration, or an ISO date or time (UTC where it has no zone).

    Returns seconds since the clock's zero, which is the Unix epoch for timestamps. Raises as `duration_seconds` does.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        sign = -1 if text.startswith("-") else 1
        try:
            seconds = parse_duration(text.lstrip("+-"))
            return Duration(sign * seconds, text) if isinstance(seconds, Duration) else sign * seconds
        except SpecError as error:
            raise ConfigError(f"{short(text)!r} is no time: {error.what}", "write 2026-11-01T06:00 or 6h") from None
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{short(text)!r} is no date or time", "write 2026-11-01 or 2026-11-01T06:00") from None
    since = instant.replace(tzinfo=instant.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return Duration(Fraction(since // dt.timedelta(microseconds=1), 10**6), text)


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
    for word, unfit in (("previous", policy.looks_at_window_before), ("every", isinstance(policy, Growing))):
        if eviction is not None and unfit:
            raise cursor.error(f"{eviction} does not go with {word}", Span(start, stop), _LEAVE_ONE)
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
            rule = EVICTIONS[word]
            eviction = rule.read(cursor, read_call(cursor, rule.form), 1)
        else:
            raise cursor.unknown("option", (*_OPTIONS, *POLICIES))
    return partitioned, eviction


def _time_interval(cursor: Cursor) -> spec.TimeInterval:
    start, do = cursor.take(), "write for example timeInterval, intervalDuration(60), creationPeriod(10)"
    _comma(cursor, do)
    names = {name.lower(): name for name in SETTINGS}
    found: dict[str, Fraction] = {}
    while not found or cursor.skip(","):
        token, word = cursor.peek(), cursor.keyword()
        if word in found:
            raise cursor.error(f"{token} is given twice", token.span, "leave this one out")
        if cursor.skip("partitioned"):
            found[word] = Fraction(1)
            continue
        if word not in names:
            raise cursor.unknown("setting", (*SETTINGS, "partitioned"))
        call = read_call(cursor, Form(f"{names[word]}(duration)"))
        found[word] = cursor.duration(call.first, call.do, zero=word in {"discardage", "intervaloffset"})
    if "intervalduration" not in found:
        raise cursor.error("timeInterval needs an intervalDuration", start.span, do)
    duration = found["intervalduration"]
    period = found.get("creationperiod", duration)
    age, offset = found.get("discardage", Fraction(0)), found.get("intervaloffset", Fraction(0))
    return spec.TimeInterval(duration, period, age, offset, "partitioned" in found)


def _table(cursor: Cursor) -> spec.TableWindows:
    call = read_call(cursor, Form("table(name)"))
    name = call.first
    if name.kind not in ("word", "quoted"):
        raise cursor.error(f"expected the name of a table, found {name}", name.span, call.do)
    is_partitioned = bool(cursor.at(",") and cursor.keyword(1) == "partitioned")
    if is_partitioned:
        cursor.take()
        cursor.take()
    token = cursor.peek()
    if token.kind != "end":
        what = "'or'" if cursor.keyword() == "or" else str(cursor.peek(1) if cursor.at(",") else token)
        raise cursor.error(f"table stands alone: it takes no {what}", token.span, _ALONE)
    return spec.TableWindows(name.value, is_partitioned)


def _sides(cursor: Cursor, left: spec.WindowSpec) -> spec.SideWindows:
    """Read ``join SIDE`` behind a window, from which the text begins."""
    before = Span(cursor.tokens[0].span.start, cursor.last.span.stop)
    cursor.take()
    if not isinstance(left, spec.Sliding | spec.Batched):
        raise cursor.error("the sides of a join are sliding or batched windows", before, _SIDES)
    _check_side(cursor, left, before)
    start, word = cursor.peek(), cursor.keyword()
    is_batched = word in ("within", "retain", "partition")
    if word == "sliding":
        raise cursor.error("sliding is said once, for both sides", start.span, "write sliding, count(1) join count(0)")
    if is_batched != isinstance(left, spec.Batched):
        raise cursor.error("both sides of a join are sliding, or both are batched", start.span, _SIDES)
    right: spec.Sliding | spec.Batched = (
        read_batched(cursor) if is_batched else spec.Sliding(read_policy(cursor, "sliding", SLIDING_POLICIES, least=0))
    )
    _check_side(cursor, right, Span(start.span.start, cursor.last.span.stop))
    if cursor.at(","):
        raise cursor.error("a side of a join takes an eviction alone", cursor.peek(1).span, "leave this out")
    if cursor.keyword() == "join":
        raise cursor.error("a join has two sides", cursor.peek().span, "more joins are more stages of a job file")
    return spec.SideWindows(left, right)


def _check_side(cursor: Cursor, side: spec.Sliding | spec.Batched, span: Span) -> None:
    if isinstance(side, spec.Batched):
        if side.retain_all:
            raise cursor.error("a side of a join cannot retain all", span, "write retain n, or within")
    elif side.eviction is not None:
        raise cursor.error(f"{side.eviction} does not go with a join", span, "leave it out")
    elif side.partitioned:
        raise cursor.error(
            "the sides of a join have the key of --join", span, "leave partitioned out, and say on COLUMN"
        )
    elif side.trigger != spec.Count(1):
        raise cursor.error("the sides of a join come out with every row", span, "leave the trigger out")


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
        do = _ORDER if near is None else f"did you mean {near!r}?"
        raise cursor.error(f"expected the end, found {token}", token.span, do)
    raise cursor.error(f"expected ',' or the end, found {token}", token.span)


_KINDS: Final[Mapping[str, Callable[[Cursor], spec.WindowSpec]]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "timeinterval": _time_interval,
    "partition": read_batched,
    "within": read_batched,
    "retain": read_batched,
    "table": _table,
    "around": read_around,
    "at": read_at,
    **READERS,
}
