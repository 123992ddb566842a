"""Columns with ``lag``: they need the rows of each key in order, so the scan computes them (semantics section 11).

What is inside of a lag needs no order where it has no lag itself: such an expression becomes a column that map tasks
compute, so that a row for which it fails is rejected as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..expressions.binding import BoundExpression, bind
from ..expressions.lags import split_lags
from ..expressions.syntax import Expression
from ..language.spec import HIDDEN

NUMBER = f"{HIDDEN}number"
"""A column of rows that others look back at, where they count rows: 0 less how many rows of the key came since, itself
among them."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Values of rows before.

    ``name``: the column that holds them, such as ``lag(price, 1)``.
    ``argument``: the column that they are taken from, or what computes it once columns before it are there.
    ``n``: from how many rows before.
    """

    name: str
    argument: str | BoundExpression
    n: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.argument,) if isinstance(self.argument, str) else self.argument.columns


@dataclass(frozen=True, slots=True)
class LagColumn:
    """A column that the scan computes of rows in order.

    ``label``: what messages call it.
    ``shifts``: the values of rows before that it needs, each after those that it uses.
    ``value``: the expression over these and other columns.
    """

    name: str
    label: str
    shifts: tuple[Shift, ...]
    value: BoundExpression

    @property
    def columns(self) -> tuple[str, ...]:
        own = {shift.name for shift in self.shifts}
        read = [*(name for shift in self.shifts for name in shift.columns), *self.value.columns]
        return tuple(dict.fromkeys(name for name in read if name not in own))


def bind_lag_column(
    name: str, label: str, expression: Expression, schema: pa.Schema, arguments: Iterable[tuple[Expression, str]]
) -> LagColumn:
    """Bind an expression with ``lag``, or over columns with it.

    ``arguments``: arguments of lags that columns of ``schema`` hold, and the names of these columns.
    """
    outer, lags = split_lags(expression)
    held = dict(arguments)
    shifts = []
    for lag in lags:
        argument = held.get(lag.argument) or bind(lag.argument, schema)
        kind = schema.field(argument).type if isinstance(argument, str) else argument.type
        shifts.append(Shift(lag.name, argument, lag.n))
        schema = schema.append(pa.field(lag.name, kind))
    return LagColumn(name, label, tuple(shifts), bind(outer, schema))


def early_arguments(expression: Expression, late: Iterable[str]) -> list[Expression]:
    """Return the arguments of lags that need no order, and are no plain columns; ``late``: the columns that need it."""
    _, lags = split_lags(expression)
    ordered = {*late, *(lag.name for lag in lags)}
    found = [lag.argument for lag in lags if lag.argument.name is None and not ordered & set(lag.argument.columns)]
    return list(dict.fromkeys(found))


def among(columns: Sequence[LagColumn], names: Iterable[str]) -> tuple[LagColumn, ...]:
    """Return the columns that others, named ``names``, are or need, in their order."""
    wanted = set(names)
    found: list[LagColumn] = []
    for column in reversed(columns):
        if column.name in wanted:
            wanted |= set(column.columns)
            found.insert(0, column)
    return tuple(found)


def inputs_of(columns: Sequence[LagColumn]) -> tuple[str, ...]:
    """Return the columns that some columns with ``lag`` are computed from, and that are not among them."""
    own = {column.name for column in columns}
    return tuple(dict.fromkeys(name for column in columns for name in column.columns if name not in own))


def depth_of(columns: Sequence[LagColumn]) -> int:
    """Return how many rows before a row decide its values."""
    depths: dict[str, int] = {}
    for column in columns:
        own = dict(depths)
        for shift in column.shifts:
            own[shift.name] = shift.n + max((own.get(name, 0) for name in shift.columns), default=0)
        depths[column.name] = max(
            (own.get(name, 0) for name in (*column.value.columns, *tuple(shift.name for shift in column.shifts))),
            default=0,
        )
    return max(depths.values(), default=0)
