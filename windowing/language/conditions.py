"""The policies that follow conditions, each with how it is written, read and told (section 12).

A policy is its value, the form of its call and its reader, one below the other, and a line of `CONDITION_POLICIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from ..errors import Span, SpecError
from ..expressions.nodes import Node
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..expressions.tokens import Token
from .calls import Call, Distance, Form, Policy, Rule
from .tokens import AMOUNT, PLAIN, Cursor, Times, column_text, decimal_text

# Operands of policies: a column, or an expression over columns (sections 11 and 12).
#
# A plain column stays its name, so that a spec without expressions has the text that it always had. Whatever computes
# expressions gives each a column of its own, whose name is `operand_column`; kinds of window know columns alone.


Operand: TypeAlias = str | Expression
"""A column by its name, or an expression."""
Read = TypeVar("Read")


def operand_text(operand: Operand) -> str:
    """Return an operand as it is written in a spec."""
    return column_text(operand) if isinstance(operand, str) else str(operand)


def operand_column(operand: Operand) -> str:
    """Return the name of the column that holds an operand's values; for an expression no column of an input has it."""
    return operand if isinstance(operand, str) else f"={operand}"


def read_operand(cursor: Cursor, token: Token, do: str) -> Operand:
    """Return the operand of a token. Raises `SpecError` with the place in the whole text."""
    if token.kind != "expression":
        return cursor.column(token, do)
    return read_placed(cursor, token.span.start, lambda: parse_expression(token.text))


def read_placed(cursor: Cursor, start: int, read: Callable[[], Read]) -> Read:
    """Read the part of a text that begins at ``start``; a `SpecError` shows the place in the whole text."""
    try:
        return read()
    except SpecError as error:
        span = Span(start + error.span.start, start + error.span.stop)
        raise cursor.error(error.what, span, error.do) from None


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
    return kind(read_operand(cursor, call.first, call.do))


@dataclass(frozen=True, slots=True)
class From(Policy):
    """``from(E, until=U)``: from a row for which one condition is true to one for which another is (section 12).

    ``condition``: a boolean column or expression; null is not true.
    ``until``: as ``condition``; the row that opens a window may also end it.
    """

    condition: Operand
    until: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.condition, self.until)

    @property
    def opening(self) -> str:
        opener = f"A window begins at a row for which {operand_text(self.condition)} is true"
        return f"{opener}; rows between windows are in none."

    def ending(self, _: Times) -> str:
        until = operand_text(self.until)
        return f"with the first row for which {until} is true, which may be the row that opened it"

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
        Form("from(condition, until=condition)", 2, 2, "2 arguments", column=True, expressions=0, names=("until",)),
        _from,
        closed_by="until",
    ),
    "reaches": Rule(Form("reaches(sum(column), value)", 2, 2, "2 arguments", words=REACHES, expressions=0), _reaches),
}
"""The policies of this module, by keyword in lower case."""


# ``previous(AGG, DEFAULT)`` in the amount of a policy: an aggregate of the key's window before (section 13).
#
# What an amount says of single rows is an operand, as in any policy. What is left is arithmetic over these operands,
# numbers and aggregates, as steps for a stack: each pushes a value, or takes its operands from the stack.


PREVIOUS: Final = ("count", "sum", "mean", "min", "max", "first", "last", "range")
"""The aggregates of `Previous`."""
MOST_STEPS: Final = 1000
"""The most steps of an amount."""

Sign: TypeAlias = Literal["+", "-", "*", "/", "negate", "least", "greatest"]
Number: TypeAlias = "int | float"

_FORM: Final = "write it like previous(mean(latency), 30)"
_ONLY: Final = "around previous there may be numbers, columns, + - * /, least and greatest"


@dataclass(frozen=True, slots=True)
class Previous:
    """An aggregate of the window before; as a step it takes its default from the stack.

    ``function``: one of `PREVIOUS`.
    ``argument``: what it aggregates; None: ``count()``.
    """

    function: str
    argument: Operand | None


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an operand in the row from which the amount is taken."""

    operand: Operand


Step: TypeAlias = "Number | Value | Previous | Sign"


def uses_previous(operand: Operand) -> bool:
    """Whether an amount asks for the window before."""
    return not isinstance(operand, str) and "previous" in operand.calls


def read_amount(cursor: Cursor, token: Token, do: str) -> Operand:
    """Return an amount, which may ask for the window before. Raises `SpecError` with the place in the whole text."""
    amount = read_operand(cursor, token, do)
    if not isinstance(amount, str) and uses_previous(amount):
        read_placed(cursor, token.span.start, lambda: steps_of(amount))
    return amount


def steps_of(amount: Expression) -> tuple[Step, ...]:
    """Return an amount as steps. Raises `SpecError` with the span at fault where ``previous`` cannot be so used."""
    if "lag" in amount.calls:
        raise amount.error("lag does not go with previous", amount.root.span, "leave one of them out")
    steps: list[Step] = []
    _add(amount, amount.root, steps)
    if len(steps) > MOST_STEPS:
        raise amount.error(f"an amount has at most {MOST_STEPS} steps", amount.root.span, "write it shorter")
    return tuple(steps)


def operands_of(steps: tuple[Step, ...]) -> tuple[Operand, ...]:
    """Return what is computed of single rows, each once."""
    found = [
        step.operand if isinstance(step, Value) else step.argument if isinstance(step, Previous) else None
        for step in steps
    ]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def has_duration(node: Node) -> bool:
    """Whether a part of an amount that asks for the window before is a sum, or another sign, of some duration."""
    is_single = not _asks(node)  # of which the type of its column says whether it is a duration
    return node.kind == "interval" if is_single else any(map(has_duration, node.operands))


def _add(amount: Expression, node: Node, steps: list[Step]) -> None:
    number = _number(node)
    if number is not None:
        steps.append(number)
    elif not _asks(node):
        steps.append(Value(_as_operand(amount, node)))
    elif node.kind == "call" and node.value[0] == "previous":
        _add_previous(amount, node, steps)
    else:
        _add_signs(amount, node, steps)


def _add_signs(amount: Expression, node: Node, steps: list[Step]) -> None:
    signs: tuple[Any, ...] = ()
    if node.kind in {"sum", "product"} and "%" not in node.value:
        signs = node.value
    elif node.kind == "call" and node.value[0] in {"least", "greatest"}:
        signs = node.value * (len(node.operands) - 1)
    elif node.kind != "negate":
        raise amount.error("this cannot be computed of the window before", node.span, _ONLY)
    # Steps are for a stack: the first operand, then each other one and the sign that joins it to what is there.
    _add(amount, node.operands[0], steps)
    for sign, operand in zip(signs, node.operands[1:], strict=False):
        _add(amount, operand, steps)
        steps.append(sign)
    if node.kind == "negate":
        steps.append("negate")


def _add_previous(amount: Expression, node: Node, steps: list[Step]) -> None:
    if len(node.operands) != 2:
        raise amount.error("previous takes an aggregate and a default", node.span, _FORM)
    call, default = node.operands
    if _asks(default):
        raise amount.error("the default of previous cannot ask for the window before", default.span, _FORM)
    if call.kind != "call" or call.value[0] not in PREVIOUS or len(call.operands) > 1:
        raise amount.error(f"expected one of {', '.join(PREVIOUS)} of a column", call.span, _FORM)
    if not call.operands and call.value[0] != "count":
        raise amount.error(f"{call.value[0]} needs a column", call.span, _FORM)
    _add(amount, default, steps)
    steps.append(Previous(call.value[0], _as_operand(amount, call.operands[0]) if call.operands else None))


def _asks(node: Node) -> bool:
    return (node.kind == "call" and node.value[0] == "previous") or any(map(_asks, node.operands))


def _as_operand(amount: Expression, node: Node) -> Operand:
    if _asks(node):
        raise amount.error("previous cannot stand inside of previous", node.span, _FORM)
    return node.value[0] if node.kind == "column" else expression_of(node, amount.source)


def _number(node: Node) -> Number | None:
    """Return the number that a node is, seconds of a duration; None where it is another thing."""
    if node.kind == "interval" and node.value[0] == "0":
        exact = Fraction(node.value[1]) / 10**9
    elif node.kind == "number":
        exact = Fraction(node.value[0])
        if not node.value[0].removeprefix("-").isdecimal():
            return float(node.value[0])
    else:
        return None
    return int(exact) if exact.denominator == 1 and abs(exact) < 2**63 else float(exact)
