"""What the words of an expression mean, and what the SQL parser reads in their place.

The SQL parser is handed a stand-in for each name and literal: a quoted identifier that holds the number of the token,
and ``fN`` for the name of a function. So it decides about operators and their order and nothing else, texts reach us as
they were written, and each place in its tree is a place in the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Span, SpecError
from .tokens import KEYWORDS, MOST_LEVELS, TOKEN_AMOUNT, UNITS, Token, interval_parts, read_tokens

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
            self._follow(token)
            return token
        if token.kind != "word":
            return token
        if self._after("symbol", "."):
            return Token("name", token.value, token.span)
        if self._after("symbol", "::"):
            return self._short_type(token)
        if self._call() in {"cast", "try_cast"} and self._after("keyword", "as"):
            return self._type(token)
        return self._at_time_zone(token) or self._literal(token) or self._word(token, token.value.lower())

    def _follow(self, token: Token) -> None:
        if token.value in "([":
            before = self.done[-1] if self.done else None
            self._calls.append(before.value if before and before.kind in {"function", "keyword"} else "")
        elif token.value in ")]" and self._calls:
            self._calls.pop()

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

    def _type(self, token: Token) -> Token:
        """The words up to the bracket that closes the cast."""
        depth, last = 0, token
        while (following := self._peek()) is not None and (depth or following.value != ")"):
            depth += (following.value in "([") - (following.value in ")]")
            last = following
            self.at += 1
        span = Span(token.span.start, last.span.stop)
        return Token("type", " ".join(self.source[span.start : span.stop].lower().split()), span)

    def _short_type(self, token: Token) -> Token:
        """The word behind ``::``, with what is in brackets behind it."""
        last = token
        if self._is_next("("):
            stops = (at for at in range(self.at, len(self.raw)) if self.raw[at].value == ")")
            end = next(stops, len(self.raw) - 1)
            self.at, last = end + 1, self.raw[end]
        span = Span(token.span.start, last.span.stop)
        return Token("type", " ".join(self.source[span.start : span.stop].lower().split()), span)

    def _peek(self) -> Token | None:
        return self.raw[self.at] if self.at < len(self.raw) else None

    def _is_next(self, symbol: str) -> bool:
        following = self._peek()
        return following is not None and (following.kind, following.value) == ("symbol", symbol)

    def _is_behind_operand(self) -> bool:
        """Whether what comes before can be an operand that ends here."""
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
    """Pair the brackets, and check the number of levels."""
    closers: dict[int, int] = {}
    open_ones: list[int] = []
    levels, comparisons = _Levels(), _Comparisons()
    for index, token in enumerate(tokens):
        if token.kind == "symbol" and token.value in "([":
            open_ones.append(index)
        elif token.kind == "symbol" and token.value in ")]":
            closers[_opener(source, tokens, open_ones, token)] = index
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


def _opener(source: str, tokens: list[Token], open_ones: list[int], closer: Token) -> int:
    pairs = {")": "(", "]": "["}
    if not open_ones or tokens[open_ones[-1]].value != pairs[closer.value]:
        raise SpecError("this bracket closes nothing", source, closer.span)
    return open_ones.pop()
