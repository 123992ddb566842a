"""Aggregates with expressions: ``sum(price * items)``, ``count() where ok``, ``rise=last(t) - first(t)`` (section 11).

An item of ``--agg`` is either one call, whose arguments may be expressions, or arithmetic over calls. Calls are found
by their names in the tokens of the text; the texts between are read by `windowing.expressions.syntax`. The filter of a
call reaches to the parenthesis that the call stands in, or to the end; SQL's has parentheses of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ..errors import Span, SpecError, did_you_mean
from ..expressions.nodes import moved
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..expressions.tokens import Token, quoted
from . import spec
from .aggregate_names import AGGREGATES
from .calls import read_arguments
from .tokens import PLAIN, Cursor

ALIASES: Final = {
    "avg": "mean", "average": "mean", "variance": "var", "stdev": "stddev", "skewness": "skew", "kurt": "kurtosis",
}  # fmt: skip
"""Names of other tools that the language accepts, with the built-in names, which name the columns of a result."""


# The aggregate rule of the language: a function, its columns and constants, and its output column (section 9).


_FORM: Final = "write it as [NAME=]FUNCTION(COLUMN, ..)"


def read_aggregate(cursor: Cursor) -> spec.AggregateCall:
    """Read ``[NAME=]FUNCTION(ARGUMENTS)``, named by `windowing.language.spec.default_name` where no name is given.

    Raises `SpecError` with the span at fault.
    """
    name = _name_of_call(cursor)
    function = _function(cursor)
    values: list[spec.Argument] = []
    for argument in read_arguments(cursor, _FORM):
        if argument.name is not None:
            raise cursor.error(f"there is no argument called {argument.name}", argument.name.span, _FORM)
        values.append(_value(cursor, argument.value))
    return spec.AggregateCall(name or spec.default_name(function, values), function, tuple(values))


def alias_of(text: str) -> str | None:
    """Return the function of a valid aggregate if it is a name of another tool (`ALIASES`), else None."""
    cursor = Cursor(text)
    _name_of_call(cursor)
    word = cursor.keyword()
    return word if word in ALIASES and not cursor.at(":", 1) else None


def _name_of_call(cursor: Cursor) -> str | None:
    if not cursor.at("=", 1):
        return None
    name = cursor.column(cursor.take(), _FORM)
    cursor.take()
    return name


def _function(cursor: Cursor) -> str:
    token = cursor.take()
    if token.kind != "word":
        raise cursor.error(f"expected a function, found {token}", token.span, _FORM)
    if not cursor.skip(":"):
        return ALIASES.get(token.text.lower(), token.text.lower())
    name = cursor.take()
    if name.kind != "word":
        raise cursor.error(f"expected a function of {token}, found {name}", name.span, "write it as module:name")
    return f"{token.text}:{name.text}"


def _value(cursor: Cursor, token: Token) -> spec.Argument:
    if token.kind == "number":
        return cursor.number(token, PLAIN, "write a plain number")
    return token.value if token.kind == "text" else spec.Column(cursor.column(token, _FORM))


_WORDS: Final = frozenset(
    {"where", "filter", "case", "not", "is", "in", "like", "ilike", "between", "interval", "timestamp", "date"}
)
_SYMBOLS: Final = frozenset("+-*/%<>|!=[")
_NAMES: Final = frozenset((*AGGREGATES, *ALIASES))
_FILLS: Final = "locf"


@dataclass(frozen=True, slots=True)
class _Found:
    """A call in a text: its tokens are ``[first, stop)``."""

    first: int
    stop: int
    call: spec.AggregateCall


def read_item(text: str) -> spec.AggregateCall | spec.AggregateExpression:
    """Read an item of ``--agg``. Raises `SpecError` with the span at fault.

    A call without a name gets that of `spec.default_name`; arithmetic needs one.
    """
    cursor = Cursor(text)
    tokens = cursor.tokens
    name, begin = _name(tokens)
    if not _has_expression(tokens[begin:]) or (name is None and _has_equals(tokens)):
        return _plain(cursor)
    found: list[_Found] = []
    at = begin
    while at < len(tokens):
        opens = _opens(tokens, at)
        if opens is not None:
            found.append(_call(cursor, at, opens))
        at = at + 1 if opens is None else found[-1].stop
    if len(found) == 1 and found[0].first == begin and tokens[found[0].stop].kind == "end":
        call = found[0].call
        return call if name is None else replace(call, name=name)
    if not found:
        return _plain(cursor)
    if name is None:
        raise cursor.error("arithmetic over aggregates needs a name", _span(tokens[begin:-1]), "write NAME=EXPRESSION")
    return _expression(cursor, name, begin, found)


def _plain(cursor: Cursor) -> spec.AggregateCall:
    call = read_aggregate(cursor)
    rest = cursor.peek()
    if rest.kind != "end" and ":" not in call.function and call.function not in _NAMES:
        named = next(token for token in cursor.tokens if token.text.lower() == call.function)
        raise cursor.error(
            f"there is no aggregate {call.function}", named.span, did_you_mean(call.function, AGGREGATES)
        )
    if rest.kind != "end":
        raise cursor.error(f"expected the end, found {rest}", rest.span, _advice(cursor, rest))
    return call


def _advice(cursor: Cursor, rest: Token) -> str:
    before, after = cursor.source[: rest.span.start].strip(), cursor.source[rest.span.stop :].strip()
    name = after if rest.text.lower() == "as" else f"{rest.text}{after}"
    is_name = re.fullmatch(r'\w+|"[^"]+"', name) is not None
    return f"a name stands before: write {name}={before}" if is_name else "give one aggregate at a time"


def _name(tokens: Sequence[Token]) -> tuple[str | None, int]:
    if len(tokens) > 2 and tokens[0].kind in ("word", "quoted") and _is(tokens[1], "=") and not _is(tokens[2], "="):
        return tokens[0].value, 2
    return None, 0


def _has_equals(tokens: Sequence[Token]) -> bool:
    """Whether there is an ``=`` before any parenthesis: what is before it should have been a name."""
    return next((_is(token, "=") for token in tokens if _is(token, "=") or _is(token, "(")), False)


def _has_expression(tokens: Sequence[Token]) -> bool:
    """Whether a text holds more than a call with plain arguments: an operator, a word of SQL, or a call in a call."""
    depth = 0
    if [token.text for token in tokens[1:4]] == ["(", "*", ")"]:
        return False  # SQL's count(*), which has an answer of its own
    for at, (before, token) in enumerate(pairwise([tokens[0], *tokens])):
        is_field = _is(token, ".") or (token.kind == "quoted" and before.text.endswith("."))  # of a quoted column
        if is_field or (_is(before, ":") and _is(token, ":")):
            return True  # x::type
        if (
            token.kind == "symbol"
            and token.text in _SYMBOLS
            and not (token.text == "=" and depth and before.kind == "word" and _is(tokens[at - 2], ","))
        ):
            return True
        if token.kind == "word" and token.text.lower() in _WORDS and before is not token:
            return True
        depth += _is(token, "(") - _is(token, ")")
        if depth > 1 or (_is(token, "(") and before is token):
            return True
    return False


def _opens(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the parenthesis that opens the arguments of a call at a token; None: there is no call."""
    if tokens[at].kind != "word":
        return None
    if tokens[at].text.lower() in _NAMES and _is(tokens[at + 1], "("):
        return at + 1
    is_user = at + 3 < len(tokens) and _is(tokens[at + 1], ":") and tokens[at + 2].kind == "word"
    return at + 3 if is_user and _is(tokens[at + 3], "(") else None


def _call(cursor: Cursor, first: int, opens: int) -> _Found:
    tokens = cursor.tokens
    close = _end(tokens, opens + 1)
    if tokens[close].kind == "end":
        raise cursor.error("this parenthesis is never closed", tokens[opens].span, "close it with )")
    if tokens[first].text.lower() == _FILLS:
        return _filled(cursor, first, opens, close)
    edges, depth = [opens], 0
    for at in range(opens + 1, close):
        depth += _is(tokens[at], "(") - _is(tokens[at], ")")
        edges += [at] if depth == 0 and _is(tokens[at], ",") else []
    edges.append(close)
    _check_arguments(cursor, tokens[first].text, opens, close)
    arguments = tuple(_argument(cursor, low + 1, high) for low, high in pairwise(edges)) if close > opens + 1 else ()
    stop, where = _filter(cursor, close + 1)
    words = [token.text for token in tokens[first:opens]]
    function = "".join(words) if ":" in words else ALIASES.get(words[0].lower(), words[0].lower())
    name = spec.default_name(function, arguments)
    return _Found(first, stop, spec.AggregateCall(name, function, arguments, where))


def _filled(cursor: Cursor, first: int, opens: int, close: int) -> _Found:
    """Read ``locf(AGG)``: a call that fills its nulls, whose filter stands inside."""
    tokens = cursor.tokens
    within = _opens(tokens, opens + 1)
    inner = None if within is None or within > close else _call(cursor, opens + 1, within)
    if inner is None or inner.stop != close or inner.call.fills:
        what = f"{_FILLS} takes one aggregate, and fills it where it is null"
        raise cursor.error(what, _span(tokens[opens : close + 1]), "write for example locf(last(x))")
    stop, where = _filter(cursor, close + 1)
    if where is not None:
        do = "write for example locf(last(x) where ok)"
        raise cursor.error(f"the filter of an aggregate in {_FILLS} stands inside", tokens[close + 1].span, do)
    call = inner.call
    return _Found(first, stop, replace(call, name=f"{_FILLS}_{call.name}", fills=True))


def _filter(cursor: Cursor, at: int) -> tuple[int, Expression | None]:
    """Read the filter at a token, ``where CONDITION`` or SQL's ``filter (where CONDITION)``, which is the same.

    Return the index of the token behind it, and the condition; None where there is no filter.
    """
    tokens = cursor.tokens
    if _is_word(tokens[at], "where"):
        stop = _end(tokens, at + 1)
        return stop, _parse(cursor, at + 1, stop)
    if not _is_word(tokens[at], "filter"):
        return at, None
    if not (_is(tokens[at + 1], "(") and _is_word(tokens[at + 2], "where")):
        raise cursor.error("filter is followed by (where CONDITION)", tokens[at].span, "write filter (where price > 3)")
    stop = _end(tokens, at + 2)
    if tokens[stop].kind == "end":
        raise cursor.error("this parenthesis is never closed", tokens[at + 1].span, "close it with )")
    condition = _parse(cursor, at + 3, stop)
    if _is_word(tokens[stop + 1], "where") or _is_word(tokens[stop + 1], "filter"):
        raise cursor.error("a second filter follows a first one", tokens[stop + 1].span, "join them with AND")
    return stop + 1, condition


def _check_arguments(cursor: Cursor, outer: str, opens: int, close: int) -> None:
    """Raise `SpecError` where the arguments of a call hold another: it takes rows, and a call gives one result."""
    tokens = cursor.tokens
    for at in range(opens + 1, close):
        if tokens[at].text.lower() in _NAMES and _opens(tokens[:close], at) is not None:
            inner = f"{tokens[at].text}({'' if _is(tokens[at + 2], ')') else '..'})"
            do = f"take two stages: NAME={inner} in the first, {outer}(NAME) in the second"
            raise cursor.error("an aggregate is no part of the argument of another", tokens[at].span, do)


def _argument(cursor: Cursor, low: int, high: int) -> spec.Argument:
    """Read the argument of tokens ``[low, high)``: a column, a number, a text, or an expression."""
    token = cursor.tokens[low]
    is_plain = high - low == 1 and token.kind in {"number", "text", "word", "quoted"}
    return _value(cursor, token) if is_plain else _parse(cursor, low, high)


def _parse(cursor: Cursor, low: int, high: int) -> Expression:
    tokens = cursor.tokens
    if low >= high:
        raise cursor.error(
            f"expected an expression, found {tokens[low]}", tokens[low].span, "write for example price > 3"
        )
    for at in range(low, high):
        if _opens(tokens[:high], at) is not None and tokens[at].text.lower() in _NAMES:
            do = "put a filter that ends earlier into parentheses: (sum(x) where ok) / 2"
            raise cursor.error("an aggregate is no part of this expression", tokens[at].span, do)
    span = _span(tokens[low:high])
    return _parse_part(cursor.source, cursor.source[span.start : span.stop], lambda at: at + span.start)


def _expression(cursor: Cursor, name: str, begin: int, found: Sequence[_Found]) -> spec.AggregateExpression:
    """Read arithmetic over calls: the expression has a column in the place of each call."""
    tokens = cursor.tokens
    calls: dict[str, spec.AggregateCall] = {}
    at, text = tokens[begin].span.start, ""
    places: list[tuple[int, int]] = [(0, at)]  # where a place of the new text is in the old one
    for each in found:
        hidden = spec.hidden_call(each.call)
        calls[hidden.name] = hidden
        text += cursor.source[at : tokens[each.first].span.start]
        places.append((len(text), tokens[each.first].span.start))
        text += quoted(hidden.name, '"')
        at = tokens[each.stop - 1].span.stop
        places.append((len(text), at))
    text += cursor.source[at:]

    def place(at: int) -> int:
        new, old = places[bisect_right(places, at, key=lambda place: place[0]) - 1]
        return old + at - new

    return spec.AggregateExpression(name, tuple(calls.values()), _parse_part(cursor.source, text, place))


def _parse_part(source: str, text: str, place: Callable[[int], int]) -> Expression:
    """Parse a text that stands for a part of a source, so that messages show the source.

    ``place``: where a place of the text is in the source.
    """
    try:
        expression = parse_expression(text)
    except SpecError as error:
        start, stop = place(error.span.start), place(error.span.stop)
        raise SpecError(error.what, source, Span(start, max(stop, start + 1)), error.do) from None
    return expression_of(moved(expression.root, place), source)


def _end(tokens: Sequence[Token], low: int) -> int:
    depth = 0
    for at in range(low, len(tokens)):
        if tokens[at].kind == "end" or (depth == 0 and _is(tokens[at], ")")):
            return at
        depth += _is(tokens[at], "(") - _is(tokens[at], ")")
    return len(tokens) - 1


def _is_word(token: Token, word: str) -> bool:
    return token.kind == "word" and token.text.lower() == word


def _is(token: Token, symbol: str) -> bool:
    return token.kind == "symbol" and token.text == symbol


def _span(tokens: Sequence[Token]) -> Span:
    return Span(tokens[0].span.start, tokens[-1].span.stop)
