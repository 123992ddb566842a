"""What the words of an expression mean, and what the SQL parser reads in their place.

The SQL parser is handed a stand-in for each name and literal: a quoted identifier that holds the number of the token,
and ``fN`` for the name of a function. So it decides about operators and their order and nothing else, texts reach us as
they were written, and each place in its tree is a place in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError

# The tokens of an expression, and its limits.


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

    ``kind``: as read: ``word``, ``name`` (a word in double quotes), ``number``, ``text``, ``interval`` or ``symbol``.
        `windowing.expressions.words` makes of words what they mean: ``name``, ``function``, ``constant``, ``keyword``,
        ``timestamp``, ``timestamptz``, ``date``, ``interval`` or ``type``.
    ``value``: what it says, a name or a text without its quotes.
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


_AT_TIME_ZONE = "at time zone"
_AT_TIME_ZONE_WORDS = [("word", word) for word in _AT_TIME_ZONE.split()]
_PREFIXES = frozenset({"not", "-", "+"})
_POSTFIXES = frozenset(
    {".", "[", _AT_TIME_ZONE, "is", "in", "like", "ilike", "between", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "::"}
)
_COMPARISONS = _POSTFIXES - {".", "[", "::", _AT_TIME_ZONE}
_SIGNS = frozenset({"+", "-", "*", "/", "%", "||"})
_BREAKS = frozenset({",", "and", "or", "when", "then", "else"})
_FRESH = frozenset({"(", ",", "+", "-", "*", "/", "%", "||", "and", "or", "when", "then", "else", "case"})


@dataclass(frozen=True, slots=True)
class Words:
    """The tokens of one text with their meaning.

    ``source``: the text.
    ``tokens``: the tokens. A literal of several words is one.
    ``closers``: for each opening bracket, by the number of its token, the number of the one that closes it.
    """

    source: str
    tokens: tuple[Token, ...]
    closers: dict[int, int]

    def error(self, what: str, span: Span, do: str | None = None) -> SpecError:
        """Return (not raise) an error about a span of the text."""
        return SpecError(what, self.source, span, do)

    def stand_ins(self) -> list[str]:
        """Return what the SQL parser reads for each token."""
        return [_stand_in(token, index) for index, token in enumerate(self.tokens)]

    def call_span(self, index: int) -> Span:
        """Return the span of the call of the function at a token."""
        return Span(self.tokens[index].span.start, self.tokens[self.closers[index + 1]].span.stop)


def read_words(text: str) -> Words:
    """Return the tokens of a text with their meaning. Raises `SpecError`."""
    reader = _Reader(text, read_tokens(text))
    while reader.at < len(reader.raw):
        reader.done.append(reader.take())
    return Words(text, tuple(reader.done), _closers(text, reader.done))


def _stand_in(token: Token, index: int) -> str:
    if token.kind in {"keyword", "symbol"}:
        return token.value
    return f"f{index}" if token.kind == "function" else f'"{index}"'


class _Reader:
    """A position in the tokens as they were read, and those with meaning before it.

    ``source``: the text. ``raw``: its tokens. ``at``: the next of them. ``done``: the tokens with meaning so far.
    """

    def __init__(self, source: str, raw: list[Token]) -> None:
        self.source = source
        self.raw = raw
        self.at = 0
        self.done: list[Token] = []
        self._calls: list[str] = []  # for each open bracket, the function or keyword before it

    def take(self) -> Token:
        """Return the next token with its meaning, and step over it."""
        token = self.raw[self.at]
        self.at += 1
        if token.kind == "symbol":
            if token.value in "([":
                before = self.done[-1] if self.done else None
                self._calls.append(before.value if before and before.kind in {"function", "keyword"} else "")
            elif token.value in ")]" and self._calls:
                self._calls.pop()
            return token
        if token.kind != "word":
            return token
        if self._after("symbol", "."):
            return Token("name", token.value, token.span)
        if self._after("symbol", "::"):
            return self._short_type(token)
        if self._call() in {"cast", "try_cast"} and self._after("keyword", "as"):
            depth, last = 0, token
            while (following := self._peek()) is not None and (depth or following.value != ")"):
                depth += (following.value in "([") - (following.value in ")]")
                last = following
                self.at += 1
            return self._type(token, last)
        return self._at_time_zone(token) or self._literal(token) or self._word(token, token.value.lower())

    def _word(self, token: Token, word: str) -> Token:
        if self._is_next("(") and word not in KEYWORDS:
            return Token("function", word, token.span)
        if word == "from" and self._call() == "extract":
            return Token("symbol", ",", token.span)
        if self._call() == "extract" and self._after("symbol", "("):
            return Token("text", word, token.span)
        if word in {"true", "false"} or (word == "null" and not self._is_of_is()):
            return Token("constant", word, token.span)
        if word in KEYWORDS:
            return Token("keyword", word, token.span)
        return Token("name", token.value, token.span)

    def _at_time_zone(self, token: Token) -> Token | None:
        """The three words behind a time, one keyword; each of them alone is a name."""
        words = [token, *self.raw[self.at : self.at + 2]]
        is_name = [(each.kind, each.value.lower()) for each in words] != _AT_TIME_ZONE_WORDS
        if is_name or not self._is_behind_operand():
            return None
        self.at += 2
        return Token("keyword", _AT_TIME_ZONE, Span(token.span.start, words[-1].span.stop))

    def _literal(self, token: Token) -> Token | None:
        word, following = token.value.lower(), self._peek()
        if following is None or following.kind not in {"text", "number", "interval"}:
            return None
        if word in {"timestamp", "timestamptz", "date"} and following.kind == "text":
            self.at += 1
            return Token(word, following.value, Span(token.span.start, following.span.stop))
        return self._interval(token, following) if word == "interval" else None

    def _interval(self, token: Token, amount: Token) -> Token:
        self.at += 1
        if amount.kind == "interval":  # INTERVAL 5 MINUTES: the amount and its unit are one token already
            return Token("interval", amount.value, Span(token.span.start, amount.span.stop))
        found = TOKEN_AMOUNT.fullmatch(amount.value)
        unit, stop = (found[2] or "") if found else "", amount.span.stop
        following = self._peek()
        if not unit and following is not None and following.kind == "word":
            self.at += 1
            unit, stop = following.value, following.span.stop
        span = Span(token.span.start, stop)
        parts = interval_parts(found[1], unit) if found and unit.lower() in UNITS else None
        if parts is None:
            raise SpecError(
                "this interval cannot be read", self.source, span, "write it like INTERVAL '5' MINUTE or 5m"
            )
        return Token("interval", f"{parts[0]} {parts[1]}", span)

    def _short_type(self, token: Token) -> Token:
        last = token
        if self._is_next("("):
            stops = (at for at in range(self.at, len(self.raw)) if self.raw[at].value == ")")
            end = next(stops, len(self.raw) - 1)
            self.at, last = end + 1, self.raw[end]
        return self._type(token, last)

    def _type(self, first: Token, last: Token) -> Token:
        span = Span(first.span.start, last.span.stop)
        return Token("type", " ".join(self.source[span.start : span.stop].lower().split()), span)

    def _peek(self) -> Token | None:
        return self.raw[self.at] if self.at < len(self.raw) else None

    def _is_next(self, symbol: str) -> bool:
        following = self._peek()
        return following is not None and (following.kind, following.value) == ("symbol", symbol)

    def _is_behind_operand(self) -> bool:
        before = self.done[-1] if self.done else None
        if before is None or before.kind in {"symbol", "keyword"}:
            return before is not None and before.value in {")", "]", "end"}
        return True

    def _after(self, kind: str, value: str) -> bool:
        return bool(self.done) and (self.done[-1].kind, self.done[-1].value) == (kind, value)

    def _is_of_is(self) -> bool:
        before = [token.value for token in self.done[-2:] if token.kind == "keyword"]
        return before[-1:] == ["is"] or before == ["is", "not"]

    def _call(self) -> str:
        return self._calls[-1] if self._calls else ""


def _closers(source: str, tokens: list[Token]) -> dict[int, int]:
    closers: dict[int, int] = {}
    open_ones: list[int] = []
    levels, comparisons = _Levels(), _Comparisons()
    for index, token in enumerate(tokens):
        if token.kind == "symbol" and token.value in "([":
            open_ones.append(index)
        elif token.kind == "symbol" and token.value in ")]":
            pairs = {")": "(", "]": "["}
            if not open_ones or tokens[open_ones[-1]].value != pairs[token.value]:
                raise SpecError("this bracket closes nothing", source, token.span)
            closers[open_ones.pop()] = index
        if len(open_ones) + levels.step(token) > MOST_LEVELS:
            do = "give a part of it a name of its own"
            raise SpecError(f"an expression is nested more than {MOST_LEVELS} levels deep", source, token.span, do)
        if token == Token("keyword", "not", token.span) and index and tokens[index - 1].value in _SIGNS:
            raise SpecError("NOT cannot stand here", source, token.span, "put it and what it negates in brackets")
        if not comparisons.step(token):
            do = "put one of the two comparisons in brackets"
            raise SpecError("a second comparison follows a first one", source, token.span, do)
    if open_ones:
        raise SpecError("this bracket is never closed", source, tokens[open_ones[-1]].span)
    return closers


class _Levels:
    """Counts the levels that no bracket shows: CASE in CASE, and runs of operators before or behind one operand."""

    def __init__(self) -> None:
        self._cases = self._prefixes = self._postfixes = 0

    def step(self, token: Token) -> int:
        word = token.value if token.kind in {"keyword", "symbol"} else ""
        self._cases += (word == "case") - (word == "end")
        self._prefixes = self._prefixes + 1 if word in _PREFIXES else 0
        self._postfixes = 0 if word in _FRESH else self._postfixes + (word in _POSTFIXES)
        return self._cases + self._prefixes + self._postfixes


class _Comparisons:
    """Tells whether a comparison is an operand of another one without brackets, where SQL dialects disagree."""

    def __init__(self) -> None:
        self._seen = [False]  # for each open bracket or CASE, whether there is a comparison since the last break

    def step(self, token: Token) -> bool:
        word = token.value if token.kind in {"keyword", "symbol"} else ""
        if word in {"(", "[", "case"}:
            self._seen.append(False)
        elif word in {")", "]", "end"} and len(self._seen) > 1:
            self._seen.pop()
        elif word in _BREAKS:
            self._seen[-1] = False
        elif word in _COMPARISONS:
            was, self._seen[-1] = self._seen[-1], True
            return not was
        return True
