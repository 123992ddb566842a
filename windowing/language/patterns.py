"""Row patterns as plain values: ``match(PATTERN, SYMBOL = CONDITION, ..)``, ``funnel(..)`` (semantics section 15).

``str`` of a value is its canonical text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from ..expressions.nodes import name_text
from ..expressions.syntax import Expression
from .calls import Distance
from .operands import Operand, operand_column, operand_of
from .programs import Term, looks_at_window, matched_term, parts_of_term
from .tokens import decimal_text

MATCHED_AS: Final = "matched_as"
"""The column that says as what a match takes a row: the name of a symbol, or ``.``."""
ANY: Final = "."
"""What the pattern calls any row."""
STEPS: Final = "steps"
"""The result column of a funnel that says how many steps were reached."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A row for which the condition of a symbol is true.

    ``name``: the symbol; None: ``.``, any row.
    """

    name: str | None

    def __str__(self) -> str:
        return ANY if self.name is None else name_text(self.name)


@dataclass(frozen=True, slots=True)
class Concatenation:
    """``P Q``: each part from the row behind the part before it. ``parts``: two or more, none of them such a chain."""

    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return " ".join(_in(part, Alternation, Concatenation) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Alternation:
    """``P | Q``: the first of ``parts``, two or more, is preferred; none of them is such a choice."""

    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return " | ".join(_in(part, Alternation) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Repetition:
    """``E{n,m}`` and its kin.

    ``of``: what is repeated.
    ``least``: how often at least.
    ``most``: how often at most, at least 1 and not below ``least``, and not both 1; None: without a limit.
    ``is_reluctant``: whether fewer rounds are preferred; False where there is but one number of rounds.
    """

    of: Pattern
    least: int
    most: int | None
    is_reluctant: bool = False

    def __str__(self) -> str:
        of = _in(self.of, Alternation, Concatenation, FollowedBy, Repetition)
        return f"{of}{self.quantifier}{'?' * self.is_reluctant}"

    @property
    def quantifier(self) -> str:
        sign = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        if sign is not None:
            return sign
        if self.least == self.most:
            return f"{{{self.least}}}"
        return f"{{{self.least or ''},{'' if self.most is None else self.most}}}"


@dataclass(frozen=True, slots=True)
class FollowedBy:
    """``-> E``: rows by which E cannot begin are passed over; the first by which it can is taken.

    ``of``: E; a way through it that takes no row is none.
    """

    of: Pattern

    def __str__(self) -> str:
        return f"-> {_in(self.of, Alternation, Concatenation, FollowedBy)}"


Pattern: TypeAlias = Symbol | Concatenation | Alternation | Repetition | FollowedBy


def _in(pattern: Pattern, *loose: type[Pattern]) -> str:
    """Return the text of a part, in brackets where it is one of the patterns that bind less than what it is in."""
    return f"({pattern})" if isinstance(pattern, loose) else str(pattern)


def parts_within(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all below it, in the order of the text."""
    yield pattern
    below = pattern.parts if isinstance(pattern, Concatenation | Alternation) else ()
    for each in below or ((pattern.of,) if isinstance(pattern, Repetition | FollowedBy) else ()):
        yield from parts_within(each)


def places_of(pattern: Pattern) -> int:
    """Return how many symbols and dots a pattern has when its quantifiers are written out."""
    match pattern:
        case Symbol():
            return 1
        case Concatenation() | Alternation():
            return sum(map(places_of, pattern.parts))
        case Repetition():
            return places_of(pattern.of) * (pattern.least + 1 if pattern.most is None else pattern.most)
        case _:
            return places_of(pattern.of)


def prefers_nothing(pattern: Pattern) -> bool:
    """Whether the first choice of a pattern, whatever the rows are, is to take none."""
    match pattern:
        case Symbol() | FollowedBy():
            return False
        case Concatenation():
            return all(map(prefers_nothing, pattern.parts))
        case Alternation():
            return prefers_nothing(pattern.parts[0])
        case Repetition():
            return (pattern.least == 0 and pattern.is_reluctant) or prefers_nothing(pattern.of)


def _takes_any(pattern: Pattern, anything: Collection[str | None]) -> bool:
    """Whether a pattern takes rows whatever they are. ``anything``: the symbols that do."""
    match pattern:
        case Symbol():
            return pattern.name in anything
        case Concatenation():
            return all(_takes_any(part, anything) for part in pattern.parts)
        case Alternation():
            return any(_takes_any(part, anything) for part in pattern.parts)
        case _:
            return _takes_any(pattern.of, anything)


def funnel_of(names: tuple[str, ...]) -> Pattern:
    """Return the pattern of a funnel of these steps, one or more: ``s1 (-> s2 (-> .. sn)?)?``."""
    *steps, last = names
    if not steps:
        return Symbol(last)
    found: Pattern = FollowedBy(Symbol(last))
    for name in reversed(steps[1:]):
        found = Concatenation((FollowedBy(Symbol(name)), Repetition(found, 0, 1)))
    return Concatenation((Symbol(steps[0]), Repetition(found, 0, 1)))


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

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.conditions)

    @property
    def has_waits(self) -> bool:
        """Whether rows may be passed over: whether there is a ``->``."""
        return any(isinstance(each, FollowedBy) for each in parts_within(self.pattern))

    @property
    def may_stay_open(self) -> bool:
        """Whether a match can wait, or take rows, whatever the rows are, and nothing ends that but the data."""
        anything = {name for name, condition in self.conditions if str(condition) == "TRUE"} | {None}
        rounds = [each for each in parts_within(self.pattern) if isinstance(each, Repetition) and each.most is None]
        return self.within is None and (self.has_waits or any(_takes_any(each.of, anything) for each in rounds))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What conditions need of single rows, each once.

        That is a condition itself; of one that reads matched rows its parts.
        """
        found: dict[Operand, None] = {}
        for (_, condition), term in zip(self.conditions, self.terms, strict=True):
            found |= dict.fromkeys([operand_of(condition)] if term is None else parts_of_term(term))
        return tuple(found)

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The boolean columns of the conditions, in their order; None where a condition reads matched rows."""
        return tuple(
            operand_column(operand_of(condition)) if term is None else None
            for (_, condition), term in zip(self.conditions, self.terms, strict=True)
        )

    @property
    def terms(self) -> tuple[Term | None, ...]:
        """The conditions that read matched rows, as trees, in the order of ``conditions``; None: of columns alone."""
        symbols = self.symbols
        return tuple(matched_term(each, symbols) if looks_at_window(each) else None for _, each in self.conditions)

    def __str__(self) -> str:
        parts = [] if self.is_funnel else [str(self.pattern)]
        parts += [f"{name_text(name)} = {condition}" for name, condition in self.conditions]
        text = f"{'funnel' if self.is_funnel else 'match'}({', '.join(parts)})"
        within = "" if self.within is None else f" within {decimal_text(self.within)}"
        return f"{text}{within}{', overlapping' * self.is_overlapping}{', partitioned' * self.partitioned}"
