"""Row patterns as plain values: ``match(PATTERN, SYMBOL = CONDITION, ..)``, ``funnel(..)`` (semantics section 15)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ..expressions.syntax import Expression
from .calls import Distance


@dataclass(frozen=True, slots=True)
class Symbol:
    """A row for which the condition of a symbol is true.

    ``name``: the symbol; None: ``.``, any row.
    """

    name: str | None


@dataclass(frozen=True, slots=True)
class Concatenation:
    """``P Q``: each part from the row behind the part before it. ``parts``: two or more."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """``P | Q``: the first of ``parts``, two or more, is preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """``E{n,m}`` and its kin.

    ``of``: what is repeated.
    ``least``: how often at least.
    ``most``: how often at most, at least 1; None: without a limit.
    ``is_reluctant``: whether fewer rounds are preferred.
    """

    of: Pattern
    least: int
    most: int | None
    is_reluctant: bool = False


@dataclass(frozen=True, slots=True)
class FollowedBy:
    """``-> E``: rows by which E cannot begin are passed over; the first by which it can is taken."""

    of: Pattern


Pattern: TypeAlias = Symbol | Concatenation | Alternation | Repetition | FollowedBy


@dataclass(frozen=True, slots=True)
class RowPattern:
    """``match(PATTERN, SYMBOL = CONDITION, ..) [within D] [, overlapping] [, partitioned]``.

    ``pattern``: what a window is: the rows that it takes.
    ``conditions``: the symbols with their conditions, in the order of the text, each once; all of them are in the
        pattern, and all of the pattern are here.
    ``within``: seconds, greater than 0; a match holds rows less than that behind its first row; None: no limit.
    ``is_overlapping``: whether the next match may begin in the row behind the first row of a match.
    ``partitioned``: whether the spec says so; then a key is required.
    ``is_funnel``: whether it was written as ``funnel(..)``: a pattern ``s1 (-> s2 (-> .. sn)?)?``.
    """

    pattern: Pattern
    conditions: tuple[tuple[str, Expression], ...]
    within: Fraction | None = None
    is_overlapping: bool = False
    partitioned: bool = False
    is_funnel: bool = False

    @property
    def distances(self) -> tuple[Distance, ...]:
        return () if self.within is None else (Distance(None, self.within),)
