"""Tokens: what one is, how a text is divided into them, and those of expressions with their limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
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
QUOTED: Final = r'(?P<quoted>"(?:[^"]|"")*")'
"""A name in double quotes, in which a quote is written twice."""
TEXT: Final = r"(?P<text>'(?:[^']|'')*')"
NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
TOKENS: Final = re.compile(
    rf"(?P<space>\s+)|{QUOTED}|{TEXT}"
    rf"|(?P<number>{NUMBER}(?:{WORD}|\s+(?:{'|'.join(UNITS)})\b)?)"
    rf"|(?P<word>{WORD})"
    r"|(?P<symbol>::|<=|>=|<>|!=|==|\|\||[-+*/%(),.\[\]=<>])"
    r"|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
TOKEN_AMOUNT: Final = re.compile(rf"\s*([+-]?{NUMBER})\s*({WORD})?\s*")
"""A number, perhaps with a unit."""


def quoted(text: str, quote: str) -> str:
    """Return a text in quotes, with the quotes inside it doubled."""
    return quote + text.replace(quote, quote * 2) + quote


@dataclass(frozen=True, slots=True)
class Token:
    """One token, of an expression or of the window language.

    ``kind``: a group of the pattern by which a text was read; ``quoted`` is a name in double quotes. The window
        language adds ``end``, and ``expression`` for several tokens that are one argument.
    ``text``: the characters as written.
    ``span``: where they are in the source.
    """

    kind: str
    text: str
    span: Span

    @property
    def value(self) -> str:
        """What it says: a name or a text without its quotes."""
        if self.kind not in {"quoted", "text"}:
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def scan(pattern: re.Pattern[str], source: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a text from ``start`` on, all but ``space``.

    ``pattern``: has a group for each kind, and matches any character.

    Raises `SpecError` for a quote that is never closed.
    """
    for found in pattern.finditer(source, start):
        if found.lastgroup == "space":
            continue
        if found.lastgroup in {"symbol", "other"} and found[0] in "\"'":
            do = "a quote inside quotes is written twice"
            raise SpecError("this quote is never closed", source, Span(*found.span()), do)
        yield Token(str(found.lastgroup), found[0], Span(*found.span()))


def read_tokens(source: str) -> list[Token]:
    """Return the tokens of an expression. Raises `SpecError` for what no expression may have."""
    found = []
    for token in scan(TOKENS, source):
        if token.kind == "other":
            do = 'a column name with other characters goes in double quotes: "my column"'
            raise SpecError(f"an expression has no {token}", source, token.span, do)
        if token.text == '""':
            raise SpecError("a column name is empty", source, token.span)
        found.append(token)
    if not found:
        raise SpecError("an expression is empty", source, Span(0, 0), 'write one, such as "price * items > 100"')
    if len(found) > MOST_TOKENS:
        what = f"an expression has {len(found):,} names, literals and operators, and may have {MOST_TOKENS:,}"
        raise SpecError(what, source, found[MOST_TOKENS].span, "give a part of it a name of its own")
    return found
