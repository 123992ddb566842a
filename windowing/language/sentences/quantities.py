"""Durations, amounts and lists as sentences have them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction

from ..canonical import decimal_text

_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))


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


def duration(seconds: Fraction) -> str:
    """Return a duration in its largest units: ``90 s`` is ``1 min 30 s``, 1/4 is ``0.25 s``."""
    words, left = [], seconds
    for size, name in _UNITS[:-1]:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:,} {name}{'s' if name == 'day' and count != 1 else ''}")
    if left or not words:
        words.append(f"{decimal_text(left)} s")
    return " ".join(words)


def rows(count: int) -> str:
    """Return a number of rows: ``1 row``, ``1,000 rows``."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def listed(names: tuple[str, ...]) -> str:
    """Return names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
