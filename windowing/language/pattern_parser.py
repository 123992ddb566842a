"""The parser of row patterns (semantics section 15).

match     = "match" "(" pattern { "," symbol "=" condition } ")" clauses
funnel    = "funnel" "(" symbol "=" condition { "," symbol "=" condition } ")" clauses
clauses   = [ "within" duration ] { "," ( "overlapping" | "partitioned" ) }
pattern   = chain { "|" chain }
chain     = element { element }
element   = [ "->" ] atom [ quantifier [ "?" ] ]
atom      = symbol | "." | "(" pattern ")"
quantifier = "?" | "*" | "+" | "{" n "}" | "{" n "," "}" | "{" "," m "}" | "{" n "," m "}"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError, did_you_mean
from ..expressions.nodes import Node, transform, walk
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..expressions.tokens import Token
from .aggregates import ALIASES
from .calls import read_expression
from .operands import read_placed
from .patterns import (
    ANY,
    MATCHED_AS,
    Alternation,
    Concatenation,
    FollowedBy,
    Pattern,
    Repetition,
    RowPattern,
    Symbol,
    funnel_of,
    places_of,
    prefers_nothing,
)
from .programs import looks_at_window, matched_term, refuse_symbols
from .tokens import Cursor

MOST_SYMBOLS: Final = 64
MOST_PLACES: Final = 1000
"""The most symbols and dots of a pattern whose quantifiers are written out."""
MOST_LEVELS: Final = 100
"""The deepest brackets of a pattern."""

_MATCH: Final = "write it as match(PATTERN, SYMBOL = CONDITION, ..), for example match(a b+, a = x > 1, b = x > 2)"
_FUNNEL: Final = "write it as funnel(STEP = CONDITION, STEP = CONDITION, ..) within DURATION"
_QUANTIFIER: Final = "write it as ?, *, +, {2}, {2,}, {,3} or {2,3}"
_OPTIONS: Final = ("overlapping", "partitioned")
_EVICTIONS: Final = ("partitionage", "partitioncount", "tuplecount")
_ELSEWHERE: Final = {
    "prev": "write lag(x), or nth(x, -2) for the matched row before",
    "next": "a row is tested as it comes: write the condition of the row behind it as a symbol of its own",
    "match_number": "the column window of the result counts matches",
    "classifier": f"write --agg with {MATCHED_AS}, or count(SYMBOL) > 0",
    "running": "leave it out: a condition reads the rows so far",
    "final": "leave it out: --agg reads the whole match",
}
"""The functions of SQL's row patterns, and what there is for them."""


def read_match(cursor: Cursor) -> RowPattern:
    """Parse ``match(..)`` with its clauses, the cursor at its name. Raises `SpecError`."""
    opening = _open(cursor, _MATCH)
    reader = _Reader(cursor, opening)
    begin = cursor.peek()
    if cursor.at(",") or cursor.at(")"):
        raise cursor.error("the pattern is empty", begin.span, _MATCH)
    pattern = reader.alternation(0)
    if not (cursor.at(",") or cursor.at(")")):
        raise reader.misplaced()
    span = Span(begin.span.start, cursor.last.span.stop)
    if prefers_nothing(pattern):
        do = "a window holds at least one row: let what is preferred take one, as a+? does"
        raise cursor.error("the first choice of this pattern is to take no row, whatever the rows are", span, do)
    conditions = _conditions(cursor, opening, _MATCH, reader.symbols) if cursor.skip(",") else ()
    _close(cursor, opening, _MATCH)
    known = {name for name, _ in conditions}
    for name, token in reader.symbols.items():
        if name not in known:
            do = f"add {token.text} = CONDITION, or write . for any row"
            raise cursor.error(f"symbol {name!r} has no condition", token.span, do)
    return RowPattern(pattern, conditions, *_clauses(cursor, "match"))


def read_funnel(cursor: Cursor) -> RowPattern:
    """Parse ``funnel(..)`` with its clauses, the cursor at its name. Raises `SpecError`."""
    start = cursor.peek().span.start
    opening = _open(cursor, _FUNNEL)
    conditions = _conditions(cursor, opening, _FUNNEL, None)
    _close(cursor, opening, _FUNNEL)
    stop = cursor.last.span.stop
    within, is_overlapping, partitioned = _clauses(cursor, "funnel")
    if within is None:
        do = "say how long after its first step a funnel ends: funnel(..) within 30m"
        raise cursor.error("a funnel needs within", Span(start, stop), do)
    names = tuple(name for name, _ in conditions)
    return RowPattern(funnel_of(names), conditions, within, is_overlapping, partitioned, True)


READERS: Final[Mapping[str, Callable[[Cursor], RowPattern]]] = {"match": read_match, "funnel": read_funnel}
"""The windows of this module, by keyword."""


class _Reader:
    """Reads the pattern between ``opening`` and the first comma.

    ``symbols``: those that it has read, each with its first token.
    """

    def __init__(self, cursor: Cursor, opening: Token) -> None:
        self.cursor, self.opening = cursor, opening
        self.symbols: dict[str, Token] = {}

    def alternation(self, level: int) -> Pattern:
        start, found = self.cursor.peek().span.start, list[Pattern]()
        while not found or self.cursor.skip("|"):
            each = self.chain(level)
            found += each.parts if isinstance(each, Alternation) else (each,)
        return self.counted(found[0] if len(found) == 1 else Alternation(tuple(found)), start)

    def chain(self, level: int) -> Pattern:
        found = list[Pattern]()
        while not found or self.begins():
            each = self.element(level)
            found += each.parts if isinstance(each, Concatenation) else (each,)
        return found[0] if len(found) == 1 else Concatenation(tuple(found))

    def begins(self) -> bool:
        """Whether an element begins here, or something that was meant as one."""
        cursor = self.cursor
        return cursor.peek().kind != "end" and not any(map(cursor.at, ",)|"))

    def element(self, level: int) -> Pattern:
        cursor = self.cursor
        if not self.skip_arrow():
            return self.repeated(level)
        if self.skip_arrow():
            raise cursor.error("-> is given twice", cursor.last.span, "leave one of them out")
        return FollowedBy(self.repeated(level))

    def skip_arrow(self) -> bool:
        cursor = self.cursor
        is_there = cursor.at("-") and cursor.at(">", 1) and cursor.peek().span.stop == cursor.peek(1).span.start
        if is_there:
            cursor.take()
            cursor.take()
        return is_there

    def repeated(self, level: int) -> Pattern:
        cursor, start = self.cursor, self.cursor.peek().span.start
        of = self.atom(level)
        begin = cursor.peek().span.start
        bounds = self.quantifier()
        if bounds is None:
            return of
        is_reluctant = cursor.skip("?")
        token = cursor.peek()
        if cursor.at("+"):
            do = "leave the + out, and write conditions that exclude one another"
            raise cursor.error("there are no possessive quantifiers", Span(begin, token.span.stop), do)
        if any(map(cursor.at, "?*{")) and not (cursor.at("{") and cursor.at("-", 1)):
            do = "an element has one quantifier: put it in brackets to repeat it again"
            raise cursor.error("a second quantifier follows a first one", token.span, do)
        least, most = bounds
        found = of if least == most == 1 else Repetition(of, least, most, is_reluctant and least != most)
        return self.counted(found, start)

    def quantifier(self) -> tuple[int, int | None] | None:
        cursor, token = self.cursor, self.cursor.peek()
        for sign, bounds in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if cursor.skip(sign):
                return bounds
        if not cursor.at("{") or cursor.at("-", 1):
            return None
        cursor.take()
        least = self.number()
        most = least
        if cursor.skip(","):
            most = self.number()
        elif least is None:
            raise cursor.error(f"expected a number, found {cursor.peek()}", cursor.peek().span, _QUANTIFIER)
        is_open = most is None
        if not cursor.skip("}"):
            raise cursor.error(f"expected '}}', found {cursor.peek()}", cursor.peek().span, _QUANTIFIER)
        span = Span(token.span.start, cursor.last.span.stop)
        if least is None and is_open:
            raise cursor.error("this quantifier has no number", span, "write * for any number of rounds")
        if most == 0:
            raise cursor.error("zero rounds take no row", span, "leave the element out")
        if most is not None and (least or 0) > most:
            raise cursor.error(f"at least {least} and at most {most} rounds are none", span, _QUANTIFIER)
        return least or 0, most

    def number(self) -> int | None:
        is_number = self.cursor.peek().kind == "number"
        return self.cursor.count(self.cursor.take(), _QUANTIFIER, 0) if is_number else None

    def atom(self, level: int) -> Pattern:
        cursor, token = self.cursor, self.cursor.peek()
        if cursor.at("("):
            return self.group(level)
        if cursor.skip(ANY):
            return Symbol(None)
        if token.kind not in {"word", "quoted"} or not token.value:
            raise self.misplaced()
        if cursor.keyword() == "permute" and cursor.at("(", 1):
            raise cursor.error("there is no PERMUTE", token.span, "write the orders out: (a b | b a)")
        if token.kind == "word" and ANY in token.text:
            spaced = " ".join(token.text.replace(ANY, f" {ANY} ").split())
            raise cursor.error(f"a symbol has no dot, and this is {token}", token.span, f"write {spaced} for any row")
        if token.value == MATCHED_AS:
            what = f"{MATCHED_AS} is the column that says as which symbol a row is matched"
            raise cursor.error(what, token.span, "give the symbol another name")
        self.symbols.setdefault(token.value, cursor.take())
        if len(self.symbols) > MOST_SYMBOLS:
            raise cursor.error(f"a pattern has at most {MOST_SYMBOLS} symbols", token.span, "join some with OR")
        return Symbol(token.value)

    def group(self, level: int) -> Pattern:
        cursor, opening = self.cursor, self.cursor.take()
        if level == MOST_LEVELS:
            what = f"a pattern is nested more than {MOST_LEVELS} levels deep"
            raise cursor.error(what, opening.span, "leave out brackets that it does not need")
        if cursor.at(")"):
            span = Span(opening.span.start, cursor.peek().span.stop)
            raise cursor.error("these brackets are empty", span, "write (a)? where a may be missing")
        found = self.alternation(level + 1)
        if cursor.peek().kind == "end" or cursor.at(","):
            raise cursor.error("this parenthesis is never closed", opening.span, _MATCH)
        if not cursor.skip(")"):
            raise self.misplaced()
        return found

    def counted(self, pattern: Pattern, start: int) -> Pattern:
        count = places_of(pattern)
        if count > MOST_PLACES:
            what = f"a pattern has at most {MOST_PLACES:,} symbols and dots when it is written out"
            span = Span(start, self.cursor.last.span.stop)
            raise self.cursor.error(f"{what}, and here are {count:,}", span, "repeat less, or without a limit: {2,}")
        return pattern

    def misplaced(self) -> SpecError:
        """Return (not raise) the error about the token under the cursor, which cannot stand there."""
        cursor, token = self.cursor, self.cursor.peek()
        if token.kind == "end":
            return cursor.error("this parenthesis is never closed", self.opening.span, _MATCH)
        if cursor.at("^"):
            do = "leave it out, and say lag(true) is null in the condition of the first symbol"
            return cursor.error("a pattern has no ^", token.span, do)
        if cursor.at("$"):
            do = "leave it out: a match that the end of the data brings out has closed_by 'end'"
            return cursor.error("a pattern has no $", token.span, do)
        if cursor.at("{") and cursor.at("-", 1):
            do = f"pass rows over with ->, or leave them out of an aggregate: where {MATCHED_AS} <> 'a'"
            return cursor.error("there is no {- -}", Span(token.span.start, cursor.peek(1).span.stop), do)
        what = f"expected a symbol, found {token}"
        if any(map(cursor.at, "?*+{")):
            what = f"a quantifier stands behind an element, and {token} behind none"
        elif cursor.at("="):
            what = "the pattern comes first, then a comma and the conditions"
        return cursor.error(what, token.span, _MATCH)


def _open(cursor: Cursor, do: str) -> Token:
    cursor.take()
    opening = cursor.peek()
    if not cursor.skip("("):
        raise cursor.error(f"expected '(', found {opening}", opening.span, do)
    return opening


def _close(cursor: Cursor, opening: Token, do: str) -> None:
    token = cursor.peek()
    if cursor.skip(")"):
        return
    if token.kind == "end":
        raise cursor.error("this parenthesis is never closed", opening.span, do)
    raise cursor.error(f"expected ',' or ')', found {token}", token.span, do)


def _conditions(
    cursor: Cursor, opening: Token, do: str, symbols: Mapping[str, Token] | None
) -> tuple[tuple[str, Expression], ...]:
    """Read one condition or more, each with its symbol; ``symbols``: those of the pattern, None: any."""
    found: dict[str, tuple[Token, Expression]] = {}
    while not found or cursor.skip(","):
        name = cursor.take()
        _refuse_skip(cursor, name, cursor.peek())
        if name.text.lower() == "subset" and cursor.peek().kind == "word":
            what = "there is no SUBSET"
            raise cursor.error(what, name.span, f"write where {MATCHED_AS} in ('a', 'b') behind an aggregate")
        if name.kind not in {"word", "quoted"} or not name.value or not cursor.at("=") or cursor.at("=", 1):
            raise cursor.error(f"expected SYMBOL = CONDITION, found {name}", name.span, do)
        if symbols is not None and name.value not in symbols:
            raise cursor.error(
                f"the pattern has no symbol {name.value!r}", name.span, did_you_mean(name.value, symbols)
            )
        if name.value == MATCHED_AS or (name.kind == "word" and ANY in name.text):
            raise cursor.error(f"{name} cannot be the name of a symbol", name.span, "give it another name")
        if name.value in found:
            raise cursor.error(f"symbol {name.value!r} has two conditions", name.span, "join them with AND or OR")
        if len(found) == MOST_SYMBOLS:
            raise cursor.error(f"a pattern has at most {MOST_SYMBOLS} symbols", name.span, "join some with OR")
        cursor.take()
        token = read_expression(cursor, opening, do)
        condition = read_placed(cursor, token.span.start, lambda text=token.text: _condition(text))  # type: ignore[misc]
        found[name.value] = token, condition
    for token, condition in found.values():
        read_placed(cursor, token.span.start, lambda each=condition: _check(each, tuple(found)))  # type: ignore[misc]
    return tuple((name, condition) for name, (_, condition) in found.items())


def _condition(text: str) -> Expression:
    """Return the expression of a text, in which aggregates have their own names."""
    found = parse_expression(text)
    if found.calls.isdisjoint(ALIASES):
        return found

    def named(node: Node) -> Node | None:
        if node.kind != "call" or node.value[0] not in ALIASES:
            return None
        operands = tuple(transform(each, named) for each in node.operands)
        return replace(node, value=(ALIASES[node.value[0]],), operands=operands)

    return expression_of(transform(found.root, named), text)


def _check(condition: Expression, symbols: tuple[str, ...]) -> None:
    for node in walk(condition.root):
        if node.kind == "call" and node.value[0] in _ELSEWHERE:
            raise condition.error(f"there is no function {node.value[0]} here", node.span, _ELSEWHERE[node.value[0]])
    refuse_symbols(condition, symbols)
    if looks_at_window(condition):
        matched_term(condition, symbols)


def _refuse_skip(cursor: Cursor, first: Token, second: Token) -> None:
    if (first.text.lower(), second.text.lower()) == ("after", "match"):
        do = "the next begins behind its last row; for the row behind its first one write match(..), overlapping"
        raise cursor.error("there is no AFTER MATCH SKIP", Span(first.span.start, second.span.stop), do)


def _clauses(cursor: Cursor, word: str) -> tuple[Fraction | None, bool, bool]:
    """Read what may stand behind the parenthesis: the limit, whether matches overlap, whether there is a key."""
    within = cursor.duration(cursor.take(), "write within 30m") if cursor.skip("within") else None
    if cursor.keyword() == "or":
        raise cursor.error(f"{word} stands alone: it goes with no 'or'", cursor.peek().span, "leave one of them out")
    _refuse_skip(cursor, cursor.peek(), cursor.peek(1))
    found: dict[str, bool] = {}
    while cursor.skip(","):
        token, option = cursor.peek(), cursor.keyword()
        if option in found:
            raise cursor.error(f"{token} is given twice", token.span, "leave this one out")
        if option == "within":
            raise cursor.error("within stands before the comma", token.span, f"write {word}(..) within 30m")
        if option in _EVICTIONS:
            raise cursor.error(
                f"{word} takes no partition eviction", token.span, "say how long a match lasts: within 30m"
            )
        if option not in _OPTIONS:
            raise cursor.unknown("option", _OPTIONS)
        found[option] = bool(cursor.take())
    return within, "overlapping" in found, "partitioned" in found
