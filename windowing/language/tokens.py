"""The tokens of the window language, and the cursor with which its rules read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeVar

from ..errors import ConfigError, Span, SpecError, did_you_mean
from ..expressions.tokens import NUMBER, QUOTED, TEXT, UNITS, Token, quoted, scan

# The canonical text of names, numbers and quoted texts in the window language.


T = TypeVar("T")
WORD: Final = r"[^\W\d][\w.]*"
"""A bare column name: letters of any script, digits, ``_`` and ``.``, with no digit or ``.`` first."""

_BARE = re.compile(WORD)


def column_text(name: str) -> str:
    """Return a column name as it is written in a spec: bare where possible, else in double quotes."""
    return name if _BARE.fullmatch(name) else quoted(name, '"')


def decimal_text(amount: Fraction) -> str:
    """Return an exact decimal without exponent, ``Fraction(5, 2)`` as ``2.5``.

    Raises `ConfigError` where there is no such decimal (one third).
    """
    twos = (amount.denominator & -amount.denominator).bit_length() - 1
    rest, fives = amount.denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ConfigError(f"the amount {amount} of a window has no exact decimal text", "use a decimal number")
    places = max(twos, fives)
    digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if amount < 0 else "") + whole + ("." + part if part else "")


SECONDS: Final = {"": Fraction(1)} | {
    unit: Fraction(nanoseconds, 10**9) for unit, (months, nanoseconds) in UNITS.items() if not months
}
"""The units of a duration, in seconds: those of intervals in expressions that have a length of their own."""

_VALUE = rf"-?{NUMBER}"
_APART = rf"\s+(?:{'|'.join(filter(None, SECONDS))})\b"  # white space may separate a unit from its number: 5 minutes
_NUMBER = re.compile(rf"({_VALUE})(?:\s+(?=\w))?([\w.]*)")
_TOKEN = re.compile(
    rf"(?P<space>\s+)|{QUOTED}|{TEXT}"
    r"|(?P<clock>[0-9]+:[0-9:]+)"
    rf"|(?P<number>{_VALUE}(?:[\w.]+|{_APART})?)"
    rf"|(?P<weekday>{WORD}@{WORD})"
    rf"|(?P<word>{WORD})"
    r"|(?P<symbol>.)",
    re.DOTALL,
)

AMOUNT: Final = SECONDS | {"u": Fraction(1)}  # u: an unsigned literal of SPL; in a duration it would hide a lost `us`
"""The units of an amount of an attribute."""

PLAIN: Final = {"": Fraction(1), "u": Fraction(1)}
"""The units of a number of rows or of keys: none."""

QUOTING: Final = 'a column name with other characters goes in double quotes: "my column"'
"""The advice about a column name with a syntax error."""

# Enough digits for any float64; a limit because 1e999999999 would not fit into memory.
_DIGITS = 400
_SCALE = 10**_DIGITS


class Duration(Fraction):
    """An amount that was written with a unit of time: the 60 of ``1m``.

    It equals the number, and so does its text: only whoever asks for `written` sees a difference.
    """

    __slots__ = ("written",)

    written: str
    """The number and the unit as they were written."""

    def __new__(cls, seconds: Fraction, written: str) -> Duration:
        amount = super().__new__(cls, seconds)
        amount.written = written
        return amount

    def __reduce__(self) -> tuple[type[Duration], tuple[Fraction, str]]:
        return Duration, (Fraction(self), self.written)

    def __copy__(self) -> Duration:
        return self

    def __deepcopy__(self, memo: object) -> Duration:
        return self


class Cursor:
    """A position in the tokens of one text, from ``start`` on. Raises `SpecError` for a quote that is never closed.

    ``source``: the text, with a space for each unprintable character.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        # One line, so that a caret line fits under it; the spans stay valid.
        self.source = "".join(c if c.isprintable() else " " for c in source)
        self._tokens = list(scan(_TOKEN, source, start))
        stop = self._tokens[-1].span.stop if self._tokens else start
        self._tokens.append(Token("end", "", Span(stop, stop)))
        self._index = 0

    @property
    def tokens(self) -> list[Token]:
        """All tokens; the last one is of kind ``end``."""
        return self._tokens

    def peek(self, ahead: int = 0) -> Token:
        """Return the token ``ahead`` of the cursor; the last one is of kind ``end``."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the token under the cursor and step over it."""
        token = self.peek()
        self._index += 1
        return token

    @property
    def last(self) -> Token:
        return self._tokens[self._index - 1]

    def keyword(self, ahead: int = 0) -> str:
        """Return the bare word at the token ``ahead`` in lower case, or ``""`` where it is no bare word."""
        token = self.peek(ahead)
        return token.text.lower() if token.kind == "word" else ""

    def at(self, symbol: str, ahead: int = 0) -> bool:
        """Return whether the token ``ahead`` is this symbol."""
        token = self.peek(ahead)
        return token.kind == "symbol" and token.text == symbol

    def part(self, start: int, stop: int) -> Token:
        """Return the tokens between two characters as one, of kind ``expression`` unless it is a single token."""
        inside = [token for token in self._tokens[:-1] if start <= token.span.start and token.span.stop <= stop]
        if not inside:
            return Token("end", "", Span(stop, stop))
        first, last = inside[0], inside[-1]
        span = Span(first.span.start, last.span.stop)
        return first if first is last else Token("expression", self.source[span.start : span.stop], span)

    def skip(self, text: str) -> bool:
        """Step over a symbol or a keyword (given in lower case) if it is there."""
        found = self.at(text) or self.keyword() == text
        self._index += found
        return found

    def series(self, read: Callable[[Cursor], T]) -> tuple[T, ...]:
        """Read one value or several, with commas between them."""
        found = [read(self)]
        while self.skip(","):
            found.append(read(self))
        return tuple(found)

    def error(self, what: str, span: Span, do: str | None = None) -> SpecError:
        """Return (not raise) an error about a span of this text."""
        return SpecError(what, self.source, span, do)

    def unknown(self, thing: str, known: Iterable[str]) -> SpecError:
        """Return (not raise) an error about the token under the cursor, which is none of the ``known`` keywords."""
        token = self.peek()
        article = "an" if thing == "option" else "a"
        what = f"unknown {thing} {token}" if token.kind == "word" else f"expected {article} {thing}, found {token}"
        return self.error(what, token.span, did_you_mean(token.text, known))

    def column(self, token: Token, do: str) -> str:
        """Return the column that a token names; ``do``: the advice of the `SpecError` where it names none."""
        if token.kind not in {"word", "quoted"}:
            raise self.error(f"expected a column, found {token}", token.span, QUOTING if _is_name(token) else do)
        if not token.value:
            raise self.error("a column name is empty", token.span)
        return token.value

    def count(self, token: Token, do: str, least: int = 1) -> int:
        """Return an integer from ``least`` to 2**63 - 1."""
        amount = self.number(token, PLAIN, do)
        if amount.denominator != 1 or not least <= amount < 2**63:
            raise self.error(f"expected a whole number, {least} or more, found {token}", token.span, do)
        return int(amount)

    def duration(self, token: Token, do: str, *, zero: bool = False) -> Fraction:
        """Return a duration in seconds, greater than 0; with ``zero`` at least 0."""
        seconds = self.number(token, SECONDS, do)
        if seconds < 0 or (seconds == 0 and not zero):
            wanted = "of 0 or more" if zero else "greater than 0"
            raise self.error(f"expected a duration {wanted}, found {token}", token.span, do)
        return seconds

    def amount(self, token: Token, do: str) -> Fraction:
        """Return an amount of an attribute, at least 0."""
        amount = self.number(token, AMOUNT, do)
        if amount < 0:
            raise self.error(f"expected an amount of 0 or more, found {token}", token.span, do)
        return amount

    def number(self, token: Token, units: dict[str, Fraction], do: str) -> Fraction:
        """Return the exact product of a number and its unit, a `Duration` where that is a unit of time."""
        found = _NUMBER.fullmatch(token.text) if token.kind == "number" else None
        if found is None:
            raise self.error(f"expected a number, found {token}", token.span, do)
        text, unit = found.groups()
        if unit not in units:
            do = do if units is PLAIN else "the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes"
            raise self.error(f"unknown unit {unit!r} in {token}", token.span, do)
        is_short = len(text) <= 1000 and len(text.lower().partition("e")[2]) <= 4
        amount = Fraction(text) * units[unit] if is_short else Fraction(_SCALE)
        if abs(amount) >= _SCALE or _SCALE % amount.denominator:
            raise self.error(f"a number has more than {_DIGITS} digits on one side of its point", token.span)
        return amount if unit in PLAIN else Duration(amount, token.text)


def _is_name(token: Token) -> bool:
    """Return whether a token was probably meant as the name of a column: ``'x'``, ``user@host``, ``2nd``."""
    found = _NUMBER.fullmatch(token.text) if token.kind == "number" else None
    return token.kind in {"text", "weekday"} or (found is not None and found[2] not in AMOUNT)


# Durations, amounts and lists as sentences have them.


_SPANS = ((86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Times:
    """The columns whose amounts are seconds.

    ``names``: columns that are timestamps or dates.
    """

    names: Set[str] = frozenset()

    def amount(self, column: str, amount: Fraction) -> str:
        """Return an amount of a column: a duration where that is a time, else a number."""
        return duration(amount) if column in self.names else decimal_text(amount)

    def above(self, column: str) -> str:
        """Return how a larger value of a column compares: ``after`` where that is a time, else ``above``."""
        return "after" if column in self.names else "above"

    def rise(self, column: str, amount: Fraction) -> str:
        """Return how a value is compared that is more than an amount above another one: ``more than 5 s after``."""
        return f"more than {self.amount(column, amount)} {self.above(column)}"


def duration(seconds: Fraction) -> str:
    """Return a duration in its largest units: ``90 s`` is ``1 min 30 s``, 1/4 is ``0.25 s``."""
    words, left = [], seconds
    for size, name in _SPANS[:-1]:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:,} {name}{'s' if name == 'day' and count != 1 else ''}")
    if left or not words:
        words.append(f"{decimal_text(left)} s")
    return " ".join(words)


def rows(count: int) -> str:
    """Return a number of rows: ``1 row``, ``1,000 rows``."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
