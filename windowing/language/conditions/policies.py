"""The policies that follow conditions, each with how it is written and read (section 12).

A policy is its value, the form of its call and its reader, one below the other, and a line of `CONDITION_POLICIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ..calls import Call, Distance, Form, Policy, Rule
from ..canonical import decimal_text
from ..tokens import AMOUNT, PLAIN, Cursor, Token
from .operands import Operand, operand_column, operand_text, read_operand

REACHES: Final = ("count", "sum", "min", "max", "range")
"""The aggregates of `Reaches`."""
MOST_POLICIES: Final = 100
"""The most policies of an `AnyOf`: more than any window needs, but the loop over them is bounded."""


@dataclass(frozen=True, slots=True)
class When(Policy):
    """``when(E)``: a window begins at each row for which a condition is true (section 12).

    ``condition``: a boolean column or expression; null is not true.
    """

    condition: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The condition."""
        return (self.condition,)

    def __str__(self) -> str:
        return f"when({operand_text(self.condition)})"


def read_when(cursor: Cursor, call: Call, _: int) -> When:
    """Read ``when(E)``."""
    return When(read_operand(cursor, call.first, call.do))


@dataclass(frozen=True, slots=True)
class While(Policy):
    """``while(E)``: a window holds the rows for which a condition is true, one after the other (section 12).

    ``condition``: as in `When`.
    """

    condition: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The condition."""
        return (self.condition,)

    def __str__(self) -> str:
        return f"while({operand_text(self.condition)})"


def _while(cursor: Cursor, call: Call, _: int) -> While:
    return While(read_operand(cursor, call.first, call.do))


@dataclass(frozen=True, slots=True)
class From(Policy):
    """``from(E, until=U)``: from a row for which one condition is true to one for which another is (section 12).

    ``condition``: as in `When`.
    ``until``: as ``condition``; the row that opens a window may also end it.
    """

    condition: Operand
    until: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The two conditions."""
        return (self.condition, self.until)

    def __str__(self) -> str:
        return f"from({operand_text(self.condition)}, until={operand_text(self.until)})"


def _from(cursor: Cursor, call: Call, _: int) -> From:
    condition, until = call.arguments
    if condition.name is not None:
        raise cursor.error("the first argument of from has no name", condition.name.span, call.do)
    if until.name is None:
        raise cursor.error("the second argument of from is until=..", until.value.span, call.do)
    return From(read_operand(cursor, condition.value, call.do), read_operand(cursor, until.value, call.do))


@dataclass(frozen=True, slots=True)
class Reaches(Policy):
    """``reaches(AGG(x), v)``: until an aggregate over the window's rows so far is at least a value (section 12).

    ``function``: one of `REACHES`.
    ``argument``: what it aggregates; None: ``count()``.
    ``amount``: the value, exact; seconds for the range of timestamps.
    """

    function: str
    argument: Operand | None
    amount: Fraction

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is aggregated."""
        return () if self.argument is None else (self.argument,)

    @property
    def distances(self) -> tuple[Distance, ...]:
        """The value, unless it is a number of rows."""
        return (
            ()
            if self.argument is None or self.function == "count"
            else (Distance(operand_column(self.argument), self.amount),)
        )

    def __str__(self) -> str:
        argument = "" if self.argument is None else operand_text(self.argument)
        return f"reaches({self.function}({argument}), {decimal_text(self.amount)})"


def _reaches(cursor: Cursor, call: Call, _: int) -> Reaches:
    function, argument = _aggregate(cursor, call.first, call.do)
    units = PLAIN if function == "count" else AMOUNT  # a number of rows has no unit
    return Reaches(function, argument, cursor.number(call.second, units, call.do))


def _aggregate(cursor: Cursor, token: Token, do: str) -> tuple[str, Operand | None]:
    """Return the aggregate and its argument that a text such as ``sum(bytes)`` names."""
    name, opening, rest = token.text.partition("(")
    function, inner = name.strip().lower(), rest.removesuffix(")")
    if token.kind != "expression" or not opening or inner == rest or function not in REACHES:
        raise cursor.error(f"expected one of {', '.join(REACHES)} of a column, found {token}", token.span, do)
    if function == "count" and not inner.strip():
        return function, None
    start = token.span.start + len(name) + 1
    return function, read_operand(cursor, cursor.part(start, start + len(inner)), do)


@dataclass(frozen=True, slots=True)
class AnyOf(Policy):
    """``P or Q or ..``: until the first of several policies ends the window (section 12).

    ``policies``: two or more, each once, and at most one of `OPENERS` among them.
    """

    policies: tuple[Policy, ...]

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Those of all policies."""
        return tuple(operand for policy in self.policies for operand in policy.operands)

    @property
    def distances(self) -> tuple[Distance, ...]:
        """Those of all policies."""
        return tuple(distance for policy in self.policies for distance in policy.distances)

    @property
    def zones(self) -> tuple[str, ...]:
        """Those of all policies."""
        return tuple(dict.fromkeys(zone for policy in self.policies for zone in policy.zones))

    def __str__(self) -> str:
        return " or ".join(map(str, self.policies))


OPENERS: Final = (When, While, From)
"""The policies that say at which rows a window may begin."""

_WHEN: Final = Form("when(condition)", column=True, expressions=0)
_WHILE: Final = Form("while(condition)", column=True, expressions=0)
_FROM: Final = Form(
    "from(condition, until=condition)", 2, 2, "2 arguments", column=True, expressions=0, names=("until",)
)
_REACHES: Final = Form("reaches(sum(column), value)", 2, 2, "2 arguments", words=REACHES, expressions=0)

CONDITION_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    "when": Rule(_WHEN, read_when),
    "while": Rule(_WHILE, _while),
    "from": Rule(_FROM, _from, closed_by="until"),
    "reaches": Rule(_REACHES, _reaches),
}
"""The policies of this module, by keyword in lower case."""
