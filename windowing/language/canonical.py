"""The canonical text of names, numbers and quoted texts in the window language."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from ..errors import ConfigError

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
    places = _decimal_places(amount)
    digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if amount < 0 else "") + whole + ("." + part if part else "")


def _decimal_places(amount: Fraction) -> int:
    twos = (amount.denominator & -amount.denominator).bit_length() - 1
    rest, fives = amount.denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ConfigError(f"the amount {amount} of a window has no exact decimal text", "use a decimal number")
    return max(twos, fives)


def quoted(text: str, quote: str) -> str:
    """Return a text in quotes, with the quotes inside it doubled."""
    return quote + text.replace(quote, quote * 2) + quote
