"""Operands with ``lag``: columns that need rows in order, so the scan computes them (semantics section 11).

Of an expression with ``lag`` map tasks compute what is inside of each lag, where that is an expression at all. The scan
moves these columns by some rows within each key, and computes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined
from ..errors import DataError
from ..expressions.binding import bind
from ..expressions.lags import Lag, split_lags
from ..expressions.syntax import Expression
from ..language.conditions.operands import Operand, operand_column
from ..sequences.sequence import Sequences


def lagged(operands: Iterable[Operand]) -> tuple[Expression, ...]:
    """Return the operands with ``lag``, each once."""
    return tuple(dict.fromkeys(each for each in operands if isinstance(each, Expression) and each.uses_lag))


def expressions_of(operands: Sequence[Operand]) -> Mapping[str, Expression]:
    """Return the expressions that map tasks compute, by the names of their columns."""
    late = lagged(operands)
    early = [each for each in operands if isinstance(each, Expression) and each not in late]
    early += [lag.argument for each in late for lag in _outer_lags(each) if lag.argument.name is None]
    return {operand_column(each): each for each in early}


def inputs_of(names: Iterable[str], operands: Sequence[Operand]) -> tuple[str, ...]:
    """Return columns, and instead of those of operands with ``lag`` the ones that these are computed from."""
    late = {operand_column(each): each for each in lagged(operands)}
    return tuple(dict.fromkeys(one for name in names for one in (_inputs(late[name]) if name in late else (name,))))


def depth_of(operands: Sequence[Operand]) -> int:
    """Return how many rows before a row its operands may look at."""
    return max((_depth(each) for each in lagged(operands)), default=0)


def lag_types(schema: pa.Schema, operands: Sequence[Operand]) -> dict[str, pa.DataType]:
    """Return the types of operands with ``lag`` by the names of their columns. Raises `SpecError` as `bind` does."""
    found = {}
    for each in lagged(operands):
        outer, lags = split_lags(each)
        known = schema
        for lag in lags:
            known = known.append(pa.field(lag.name, _argument_type(known, lag)))
        found[operand_column(each)] = bind(outer, known).type
    return found


def with_lags(sequences: Sequences, operands: Sequence[Operand]) -> Sequences:
    """Return sequences with a column for each operand with ``lag``. Raises `DataError` where one fails for a row."""
    for each in lagged(operands):
        outer, lags = split_lags(each)
        rows = sequences.rows
        for lag in lags:
            values = _argument_values(rows, lag)
            rows = rows.append_column(lag.name, values.take(_rows_before(sequences.bounds, lag.n)))
        found = bind(outer, rows.schema).evaluate(rows)
        if found.failures is not None:
            raise DataError(f"{each} fails for a row: {found.details[0].as_py()}", "mend the row, or the expression")
        sequences = replace(sequences, rows=sequences.rows.append_column(operand_column(each), combined(found.values)))
    return sequences


def _outer_lags(expression: Expression) -> list[Lag]:
    """Return the lags whose arguments have no lag themselves."""
    _, lags = split_lags(expression)
    names = {lag.name for lag in lags}
    return [lag for lag in lags if not names & set(lag.argument.columns)]


def _inputs(expression: Expression) -> tuple[str, ...]:
    """Return the columns from which the scan computes an expression."""
    outer, lags = split_lags(expression)
    names = {lag.name for lag in lags}
    early = [operand_column(lag.argument) for lag in _outer_lags(expression) if lag.argument.name is None]
    plain = [name for lag in lags if lag.argument.name or lag not in _outer_lags(expression)
             for name in lag.argument.columns]  # fmt: skip
    return tuple(dict.fromkeys(name for name in [*early, *plain, *outer.columns] if name not in names))


def _depth(expression: Expression) -> int:
    _, lags = split_lags(expression)
    depths: dict[str, int] = {}
    for lag in lags:
        depths[lag.name] = lag.n + max((depths.get(name, 0) for name in lag.argument.columns), default=0)
    return max(depths.values())


def _argument_type(schema: pa.Schema, lag: Lag) -> pa.DataType:
    name = operand_column(lag.argument)
    return schema.field(name).type if name in schema.names else bind(lag.argument, schema).type


def _argument_values(rows: pa.RecordBatch, lag: Lag) -> pa.Array:
    name = lag.argument.name or operand_column(lag.argument)
    if name in rows.schema.names:
        return combined(rows.column(name))
    return combined(bind(lag.argument, rows.schema).evaluate(rows).values)


def _rows_before(bounds: Ints, n: int) -> pa.Array:
    """Return for each row the n-th row before it of its key; null where there is none."""
    rows = np.arange(bounds[-1])
    begin = np.repeat(bounds[:-1], np.diff(bounds))
    return pa.array(rows - n, mask=rows - n < begin)


def rows_to_look_back_at(bounds: Ints, held: Mask, depth: int) -> Mask:
    """Return rows with the ``depth`` rows before the first of ``held`` of their key, or its last rows if none is held.

    ``held``: bool (n,), rows up to the last of each key, if any.
    """
    first = bounds[1:] - _held_per_key(bounds, held)
    from_on = np.repeat(np.maximum(first - depth, bounds[:-1]), np.diff(bounds))
    return np.asarray(np.arange(bounds[-1]) >= from_on)


def _held_per_key(bounds: Ints, held: Mask) -> Ints:
    total = np.concatenate([[0], np.cumsum(held)])
    return np.asarray(total[bounds[1:]] - total[bounds[:-1]], np.int64)
