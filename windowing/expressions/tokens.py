"""The tokens of expressions, and their limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError

MOST_TOKENS: Final = 50_000
"""The longest expression: names, literals, operators and brackets."""

MOST_LEVELS: Final = 100
"""The deepest nesting of an expression."""

KEYWORDS: Final = frozenset(
    {"and", "or", "not", "is", "null", "in", "between", "like", "ilike", "case", "when", "then", "else", "end"}
    | {"cast", "try_cast", "as", "true", "false", "distinct", "from"}
)
"""Words that are no names of columns unless they are quoted."""

UNITS: Final = {
    **dict.fromkeys(["ns", "nanosecond", "nanoseconds"], (0, 1)),
    **dict.fromkeys(["us", "microsecond", "microseconds"], (0, 10**3)),
    **dict.fromkeys(["ms", "millisecond", "milliseconds"], (0, 10**6)),
    **dict.fromkeys(["s", "sec", "second", "seconds"], (0, 10**9)),
    **dict.fromkeys(["m", "min", "minute", "minutes"], (0, 60 * 10**9)),
    **dict.fromkeys(["h", "hour", "hours"], (0, 3600 * 10**9)),
    **dict.fromkeys(["d", "day", "days"], (0, 86400 * 10**9)),
    **dict.fromkeys(["w", "week", "weeks"], (0, 7 * 86400 * 10**9)),
    **dict.fromkeys(["month", "months"], (1, 0)),
    **dict.fromkeys(["quarter", "quarters"], (3, 0)),
    **dict.fromkeys(["year", "years"], (12, 0)),
}
"""The units of an interval, as months and nanoseconds."""

WORD: Final = r"[^\W\d]\w*"
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r'|(?P<quoted>"(?:[^"]|"")*")'
    r"|(?P<text>'(?:[^']|'')*')"
    rf"|(?P<number>{_NUMBER}(?P<unit>{WORD}|\s+(?:{'|'.join(UNITS)})\b)?)"
    rf"|(?P<word>{WORD})"
    r"|(?P<symbol>::|<=|>=|<>|!=|==|\|\||[-+*/%(),.\[\]=<>])",
    re.IGNORECASE,
)
TOKEN_AMOUNT: Final = re.compile(rf"\s*([+-]?{_NUMBER})\s*({WORD})?\s*")


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    ``kind``: ``word``, ``name`` (a word in double quotes), ``number``, ``text``, ``interval`` (a number with a unit) or
        ``symbol``.
    ``value``: what it says: a name or a text without its quotes, an interval as months and nanoseconds.
    ``span``: where it is in the source.
    """

    kind: str
    value: str
    span: Span


def read_tokens(source: str) -> list[Token]:
    """Return the tokens of a text, each by itself. Raises `SpecError` for what no expression may have."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise _no_token(source, at)
        at = match.end()
        if match["space"] is None:
            found.append(_token(source, match))
    if not found:
        raise SpecError("an expression is empty", source, Span(0, 0), 'write one, such as "price * items > 100"')
    if len(found) > MOST_TOKENS:
        what = f"an expression has {len(found):,} names, literals and operators, and may have {MOST_TOKENS:,}"
        raise SpecError(what, source, found[MOST_TOKENS].span, "give a part of it a name of its own")
    return found


def interval_parts(amount: str, unit: str) -> tuple[int, int] | None:
    """Return the months and nanoseconds of an amount of a unit; None where it is no whole number of them."""
    if len(amount) > 400 or len(amount.lower().partition("e")[2]) > 3:
        return None
    months, nanoseconds = UNITS[unit.lower()]
    exact = Fraction(amount) * (months or nanoseconds)
    if exact.denominator != 1 or abs(exact) >= 2**63:
        return None
    return (int(exact), 0) if months else (0, int(exact))


def _no_token(source: str, at: int) -> SpecError:
    span = Span(at, at + 1)
    if source[at] in "\"'":
        return SpecError("this quote is never closed", source, span, "a quote inside quotes is written twice")
    do = 'a column name with other characters goes in double quotes: "my column"'
    return SpecError(f"an expression has no {source[at]!r}", source, span, do)


def _token(source: str, match: re.Match[str]) -> Token:
    span, text = Span(*match.span()), match.group()
    if match["unit"] is not None:
        return _duration(source, span, text[: match.start("unit") - match.start()], match["unit"].strip())
    if match["quoted"] or match["text"]:
        quote = text[0]
        value = text[1:-1].replace(quote * 2, quote)
        if quote == '"' and not value:
            raise SpecError("a column name is empty", source, span)
        return Token("name" if quote == '"' else "text", value, span)
    if match["number"]:
        return Token("number", text, span)
    return Token("word" if match["word"] else "symbol", text, span)


def _duration(source: str, span: Span, amount: str, unit: str) -> Token:
    if unit.lower() not in UNITS:
        do = "the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes"
        raise SpecError(f"unknown unit {unit!r}", source, span, do)
    parts = interval_parts(amount, unit)
    if parts is None:
        raise SpecError("an interval is a whole number of nanoseconds or months, below 2**63", source, span)
    return Token("interval", f"{parts[0]} {parts[1]}", span)
