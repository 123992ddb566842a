"""The policies that follow conditions, each with how it is written, read and told (section 12).

A policy is its value, the form of its call and its reader, one below the other, and a line of `CONDITION_POLICIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final

from ..expressions.tokens import Token
from .calls import Call, Distance, Form, Policy, Rule
from .operands import Operand, operand_column, operand_text, read_operand, read_placed
from .programs import parts_of, read_condition, refuse_window, uses_previous
from .tokens import AMOUNT, PLAIN, Cursor, Times, decimal_text

REACHES: Final = ("count", "sum", "min", "max", "range")
"""The aggregates of `Reaches`."""
MOST_POLICIES: Final = 100
"""The most policies of an `AnyOf`: more than any window needs, but the loop over them is bounded."""


@dataclass(frozen=True, slots=True)
class _OnCondition(Policy):
    """A policy of one condition.

    ``condition``: a boolean column or expression; null is not true.
    """

    word: ClassVar[str]
    condition: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.condition,)

    def __str__(self) -> str:
        return f"{self.word}({operand_text(self.condition)})"


@dataclass(frozen=True, slots=True)
class When(_OnCondition):
    """``when(E)``: a window begins at each row for which a condition is true (section 12)."""

    word = "when"

    @property
    def opening(self) -> str:
        opener = f"A window begins at each row for which {operand_text(self.condition)} is true"
        return f"{opener}; rows before the first are in no window."

    def ending(self, _: Times) -> str:
        return "before the next such row"


@dataclass(frozen=True, slots=True)
class While(_OnCondition):
    """``while(E)``: a window holds the rows for which a condition is true, one after the other (section 12)."""

    word = "while"

    @property
    def opening(self) -> str:
        return f"Only rows for which {operand_text(self.condition)} is true are in windows."

    def ending(self, _: Times) -> str:
        return "before a row for which it is not"


def _on_condition(kind: type[When | While], cursor: Cursor, call: Call, _: int) -> When | While:
    return kind(_of_a_row(cursor, call.first, call.do))


def _of_a_row(cursor: Cursor, token: Token, do: str) -> Operand:
    condition = read_operand(cursor, token, do)
    read_placed(cursor, token.span.start, lambda: refuse_window(condition))
    return condition


@dataclass(frozen=True, slots=True)
class Split(_OnCondition):
    """``split(E)``: until a row for which a condition is true, which opens the next window (section 12).

    The condition may look at the window that is open, without the row.
    """

    word = "split"

    @property
    def operands(self) -> tuple[Operand, ...]:
        return parts_of(self.condition)

    @property
    def looks_at_window_before(self) -> bool:
        return uses_previous(self.condition)

    def ending(self, _: Times) -> str:
        return f"before a row for which {operand_text(self.condition)} is true"


def _split(cursor: Cursor, call: Call, _: int) -> Split:
    return Split(read_condition(cursor, call.first, call.do))


@dataclass(frozen=True, slots=True)
class From(Policy):
    """``from(E, until=U)``: from a row for which one condition is true to one for which another is (section 12).

    ``condition``: a boolean column or expression; null is not true.
    ``until``: as ``condition``; the row that opens a window may also end it. It may look at the open window. None:
        other policies alone end windows.
    """

    condition: Operand
    until: Operand | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.condition, *(() if self.until is None else parts_of(self.until)))

    @property
    def looks_at_window_before(self) -> bool:
        return self.until is not None and uses_previous(self.until)

    @property
    def opening(self) -> str:
        opener = f"A window begins at a row for which {operand_text(self.condition)} is true"
        return f"{opener}; rows between windows are in none."

    def ending(self, _: Times) -> str:
        if self.until is None:
            return ""
        until = operand_text(self.until)
        return f"with the first row for which {until} is true, which may be the row that opened it"

    def __str__(self) -> str:
        until = "" if self.until is None else f", until={operand_text(self.until)}"
        return f"from({operand_text(self.condition)}{until})"


def _from(cursor: Cursor, call: Call, _: int) -> From:
    condition, *rest = call.arguments
    if condition.name is not None:
        raise cursor.error("the first argument of from has no name", condition.name.span, call.do)
    opener = _of_a_row(cursor, condition.value, call.do)
    if not rest:
        return From(opener)
    if rest[0].name is None:
        raise cursor.error("the second argument of from is until=..", rest[0].value.span, call.do)
    return From(opener, read_condition(cursor, rest[0].value, call.do))


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
        return () if self.argument is None else (self.argument,)

    @property
    def distances(self) -> tuple[Distance, ...]:
        """The value, unless it is a number of rows."""
        return (
            ()
            if self.argument is None or self.function == "count"
            else (Distance(operand_column(self.argument), self.amount),)
        )

    def ending(self, times: Times) -> str:
        name = "" if self.argument is None else operand_text(self.argument)
        amount = times.amount(name, self.amount) if self.function == "range" else decimal_text(self.amount)
        return f"with the row by which {self.function}({name}) of its rows is {amount} or more"

    def __str__(self) -> str:
        argument = "" if self.argument is None else operand_text(self.argument)
        return f"reaches({self.function}({argument}), {decimal_text(self.amount)})"


def _reaches(cursor: Cursor, call: Call, _: int) -> Reaches:
    function, argument = _aggregate(cursor, call.first, call.do)
    units = PLAIN if function == "count" else AMOUNT  # a number of rows has no unit
    return Reaches(function, argument, cursor.number(call.second, units, call.do))


def _aggregate(cursor: Cursor, token: Token, do: str) -> tuple[str, Operand | None]:
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
    def alternatives(self) -> tuple[Policy, ...]:
        return self.policies

    @property
    def looks_at_window_before(self) -> bool:
        return any(policy.looks_at_window_before for policy in self.policies)

    @property
    def operands(self) -> tuple[Operand, ...]:
        return tuple(operand for policy in self.policies for operand in policy.operands)

    @property
    def distances(self) -> tuple[Distance, ...]:
        return tuple(distance for policy in self.policies for distance in policy.distances)

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(zone for policy in self.policies for zone in policy.zones))

    def __str__(self) -> str:
        return " or ".join(map(str, self.policies))


OPENERS: Final = (When, While, From)
"""The policies that say at which rows a window may begin."""

CONDITION_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    "when": Rule(Form("when(condition)", column=True, expressions=0), partial(_on_condition, When)),
    "while": Rule(Form("while(condition)", column=True, expressions=0), partial(_on_condition, While)),
    "from": Rule(
        Form(
            "from(condition, until=condition)", 1, 2, "1 or 2 arguments", column=True, expressions=0, names=("until",)
        ),
        _from,
        closed_by="until",
    ),
    "split": Rule(Form("split(condition)", column=True, expressions=0), _split),
    "reaches": Rule(Form("reaches(sum(column), value)", 2, 2, "2 arguments", words=REACHES, expressions=0), _reaches),
}
"""The policies of this module, by keyword in lower case."""
