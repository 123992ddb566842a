"""Operands of policies: a column, or an expression over columns (sections 11 and 12).

A plain column stays its name, so that a spec without expressions has the text that it always had. Whatever computes
expressions gives each a column of its own, whose name is `operand_column`; kinds of window know columns alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ..errors import Span, SpecError
from ..expressions.syntax import Expression, parse_expression
from ..expressions.tokens import Token
from .tokens import Cursor, column_text

Operand: TypeAlias = str | Expression
"""A column by its name, or an expression."""
Read = TypeVar("Read")


def operand_text(operand: Operand) -> str:
    """Return an operand as it is written in a spec."""
    return column_text(operand) if isinstance(operand, str) else str(operand)


def operand_column(operand: Operand) -> str:
    """Return the name of the column that holds an operand's values; for an expression no column of an input has it."""
    return operand if isinstance(operand, str) else f"={operand}"


def operand_of(expression: Expression) -> Operand:
    """Return an expression as an operand: its column, where it is one and no more."""
    return expression if expression.name is None else expression.name


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
