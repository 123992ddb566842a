"""The policies that rows or marks decide, each with how it is written and read (sections 2 and 3).

A policy is its value, the form of its call and its reader, one below the other, and a line of `ROW_POLICIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from .calls import Call, Form, Policy, Rule
from .canonical import column_text, decimal_text
from .tokens import Cursor


@dataclass(frozen=True, slots=True)
class Count(Policy):
    """``count(n)``: n rows (sections 2 and 3).

    ``n``: at least 1; also 0 where it is the eviction of a sliding window.
    """

    n: int

    def __str__(self) -> str:
        return f"count({self.n})"


def _count(cursor: Cursor, call: Call, least: int) -> Count:
    return Count(cursor.count(call.first, call.do, least))


@dataclass(frozen=True, slots=True)
class Delta(Policy):
    """``delta(attribute, amount)``: more than an amount above an earlier row's value (sections 2 and 3).

    ``attribute``: the column that is compared.
    ``amount``: at least 0.
    """

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"delta({column_text(self.attribute)}, {decimal_text(self.amount)})"


def _delta(cursor: Cursor, call: Call, _: int) -> Delta:
    return Delta(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


@dataclass(frozen=True, slots=True)
class Gap(Policy):
    """``gap(attribute, amount)``: until a row more than an amount above the row before it (section 2).

    ``attribute``: the column that is compared.
    ``amount``: at least 0.
    """

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"gap({column_text(self.attribute)}, {decimal_text(self.amount)})"


def _gap(cursor: Cursor, call: Call, _: int) -> Gap:
    return Gap(cursor.column(call.first, call.do), cursor.amount(call.second, call.do))


@dataclass(frozen=True, slots=True)
class Punct(Policy):
    """``punct()``: until a window mark; ``punct(column)``: until a row whose boolean column is true (section 2).

    ``column``: the boolean column; None for marks.
    """

    column: str | None = None

    def __str__(self) -> str:
        return f"punct({column_text(self.column) if self.column is not None else ''})"


def _punct(cursor: Cursor, call: Call, _: int) -> Punct:
    return Punct(cursor.column(call.first, call.do) if call.arguments else None)


@dataclass(frozen=True, slots=True)
class Change(Policy):
    """``change(column, ..)``: until a row that is distinct from the row before it (section 12).

    ``columns``: the columns that are compared, at least one, without repeats.
    """

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"change({', '.join(map(column_text, self.columns))})"


def _change(cursor: Cursor, call: Call, _: int) -> Change:
    columns: list[str] = []
    for argument in call.arguments:
        name = cursor.column(argument.value, call.do)
        if name in columns:
            raise cursor.error(f"the column {name!r} is given twice", argument.value.span, "name it once")
        columns.append(name)
    return Change(tuple(columns))


_MOST_COLUMNS: Final = 1_000  # of a change: more than any table has, but calls are bounded

ROW_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    "count": Rule(Form("count(n)"), _count),
    "delta": Rule(Form("delta(attribute, amount)", 2, 2, "2 arguments", column=True), _delta),
    "punct": Rule(Form("punct() or punct(column)", 0, 1, "at most 1 argument", column=True), _punct),
    "gap": Rule(Form("gap(attribute, amount)", 2, 2, "2 arguments", column=True), _gap),
    "change": Rule(Form("change(column, ..)", 1, _MOST_COLUMNS, "at least 1 argument", column=True), _change),
}
"""The policies of this module, by keyword in lower case."""
