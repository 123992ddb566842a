"""``previous(AGG, DEFAULT)`` in the amount of a policy: an aggregate of the key's window before (section 13).

What an amount says of single rows is an operand, as in any policy. What is left is arithmetic over these operands,
numbers and aggregates, as steps for a stack: each pushes a value, or takes its operands from the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from ...expressions.nodes import Node
from ...expressions.syntax import Expression, expression_of
from ..tokens import Cursor, Token
from .operands import Operand, read_operand, read_placed

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
        read_placed(cursor, token, lambda: steps_of(amount))
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
    found = [_operand(step) for step in steps]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def has_duration(amount: Expression) -> bool:
    """Whether an amount that asks for the window before is a sum, or another sign, of some duration."""
    return _has_duration(amount.root)


def _has_duration(node: Node) -> bool:
    is_single = not _asks(node)  # of which the type of its column says whether it is a duration
    return node.kind == "interval" if is_single else any(map(_has_duration, node.operands))


def _operand(step: Step) -> Operand | None:
    if isinstance(step, Value):
        return step.operand
    return step.argument if isinstance(step, Previous) else None


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
    signs = _signs(amount, node)
    for operand in node.operands[:1]:
        _add(amount, operand, steps)
    for sign, operand in zip(signs, node.operands[1:], strict=False):
        _add(amount, operand, steps)
        steps.append(sign)
    if node.kind == "negate":
        steps.append("negate")


def _signs(amount: Expression, node: Node) -> tuple[Sign, ...]:
    """Return a sign for each operand but the first."""
    if node.kind in {"sum", "product"} and "%" not in node.value:
        return node.value  # type: ignore[return-value]
    if node.kind == "negate":
        return ()
    if node.kind == "call" and node.value[0] in {"least", "greatest"}:
        return node.value * (len(node.operands) - 1)  # type: ignore[return-value]
    raise amount.error("this cannot be computed of the window before", node.span, _ONLY)


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
