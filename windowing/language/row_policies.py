"""The policies that rows or marks decide, each with how it is written, read and told (sections 2 and 3).

A policy is its value, the form of its call and its reader, one below the other, and a line of `ROW_POLICIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Literal

from ..expressions.tokens import Token
from .calls import Call, Distance, Form, Policy, Rule
from .operands import Operand, operand_text, read_operand, read_placed
from .programs import parts_of, read_amount, read_condition, refuse_window, uses_previous
from .tokens import Cursor, Times, column_text, decimal_text, listed, rows


@dataclass(frozen=True, slots=True)
class Count(Policy):
    """``count(n)``: n rows (sections 2 and 3).

    ``n``: at least 1; also 0 where it is the eviction of a sliding window.
    """

    n: int

    def ending(self, _: Times) -> str:
        return f"when it holds {rows(self.n)}"

    def __str__(self) -> str:
        return f"count({self.n})"


def _count(cursor: Cursor, call: Call, least: int) -> Count | Changing:
    if _changes(call.first):
        return Changing("count", None, read_amount(cursor, call.first, call.do))
    return Count(cursor.count(call.first, call.do, least))


_COMPARED_WITH: Final = {"delta": "the window's first row", "gap": "the row before it"}


@dataclass(frozen=True, slots=True)
class _Rise(Policy):
    """More than an amount above an earlier row's value.

    ``attribute``: the column that is compared.
    ``amount``: at least 0.
    """

    word: ClassVar[Literal["delta", "gap"]]
    attribute: str
    amount: Fraction

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (Distance(self.attribute, self.amount),)

    def ending(self, times: Times) -> str:
        rise = times.rise(self.attribute, self.amount)
        return f"before a row whose {self.attribute} is {rise} that of {_COMPARED_WITH[self.word]}"

    def __str__(self) -> str:
        return f"{self.word}({column_text(self.attribute)}, {decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Delta(_Rise):
    """``delta(attribute, amount)``: more than an amount above an earlier row's value (sections 2 and 3)."""

    word = "delta"


@dataclass(frozen=True, slots=True)
class Gap(_Rise):
    """``gap(attribute, amount)``: until a row more than an amount above the row before it (section 2)."""

    word = "gap"


def _rise(kind: type[Delta | Gap], cursor: Cursor, call: Call, _: int) -> Delta | Gap | Changing:
    attribute = cursor.column(call.first, call.do)
    if _changes(call.second):
        return Changing(kind.word, attribute, read_amount(cursor, call.second, call.do))
    return kind(attribute, cursor.amount(call.second, call.do))


@dataclass(frozen=True, slots=True)
class Changing(Policy):
    """``delta(a, E)``, ``gap(a, E)`` and ``count(E)``: an amount that rows say (section 13).

    ``word``: the name of the policy.
    ``attribute``: the column that is compared; None for ``count``.
    ``amount``: a number or a duration, taken from the row that opens the window; for ``gap`` from the row before.
    """

    word: Literal["count", "delta", "gap"]
    attribute: str | None
    amount: Operand

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The amount; where that asks for the window before, what it needs of single rows."""
        return parts_of(self.amount, True)

    @property
    def distances(self) -> tuple[Distance, ...]:
        """The amount, unless it is one of rows."""
        return () if self.attribute is None else (Distance(self.attribute, self.amount),)

    @property
    def looks_at_window_before(self) -> bool:
        return uses_previous(self.amount)

    def ending(self, times: Times) -> str:
        amount, name = operand_text(self.amount), self.attribute
        before = ", and previous(..) asks for the window before of the same key" if self.looks_at_window_before else ""
        if name is None:
            return f"when it holds as many rows as {amount} says in its first row{before}"
        other, more = _COMPARED_WITH[self.word], f"more than {amount} {times.above(name)}"
        return f"before a row whose {name} is {more} that of {other}, where {amount} is that of {other}{before}"

    def __str__(self) -> str:
        attribute = "" if self.attribute is None else f"{column_text(self.attribute)}, "
        return f"{self.word}({attribute}{operand_text(self.amount)})"


def _changes(token: Token) -> bool:
    return token.kind in {"word", "quoted", "expression"}


@dataclass(frozen=True, slots=True)
class Punct(Policy):
    """``punct()``: until a window mark; ``punct(E)``: until a row for which a condition is true (sections 2 and 12).

    ``column``: a boolean column or expression, in which null is not true, and which may look at the open window; None
        for marks.
    """

    column: Operand | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        return () if self.column is None else parts_of(self.column)

    @property
    def looks_at_window_before(self) -> bool:
        return self.column is not None and uses_previous(self.column)

    def ending(self, _: Times) -> str:
        if self.column is None:
            return "at a window mark, which ends the windows of all keys"
        return f"with a row for which {operand_text(self.column)} is true"

    def __str__(self) -> str:
        return f"punct({operand_text(self.column) if self.column is not None else ''})"


@dataclass(frozen=True, slots=True)
class Change(Policy):
    """``change(E, ..)``: until a row that is distinct from the row before it (section 12).

    ``columns``: the columns or expressions that are compared, at least one, without repeats.
    """

    columns: tuple[Operand, ...]

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.columns

    def ending(self, _: Times) -> str:
        verb = "is" if len(self.columns) == 1 else "are"
        names = listed([operand_text(column) for column in self.columns])
        return f"before a row whose {names} {verb} not as in the row before it"

    def __str__(self) -> str:
        return f"change({', '.join(map(operand_text, self.columns))})"


def _change(cursor: Cursor, call: Call, _: int) -> Change:
    columns: list[Operand] = []
    for argument in call.arguments:
        name = read_operand(cursor, argument.value, call.do)
        read_placed(cursor, argument.value.span.start, lambda name=name: refuse_window(name))  # type: ignore[misc]
        if name in columns:
            thing = f"column {name!r}" if isinstance(name, str) else f"expression {name}"
            raise cursor.error(f"the {thing} is given twice", argument.value.span, "name it once")
        columns.append(name)
    return Change(tuple(columns))


_MOST_COLUMNS: Final = 1_000  # of a change: more than any table has, but calls are bounded

_CHANGE: Final = Form("change(column, ..)", 1, _MOST_COLUMNS, "at least 1 argument", column=True, expressions=0)

ROW_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    "count": Rule(Form("count(n)", expressions=0), _count),
    "delta": Rule(
        Form("delta(attribute, amount)", 2, 2, "2 arguments", column=True, expressions=1), partial(_rise, Delta)
    ),
    "punct": Rule(
        Form("punct() or punct(column)", 0, 1, "at most 1 argument", column=True, expressions=0),
        lambda cursor, call, _: Punct(read_condition(cursor, call.first, call.do) if call.arguments else None),
    ),
    "gap": Rule(Form("gap(attribute, amount)", 2, 2, "2 arguments", column=True, expressions=1), partial(_rise, Gap)),
    "change": Rule(_CHANGE, _change),
}
"""The policies of this module, by keyword in lower case."""
