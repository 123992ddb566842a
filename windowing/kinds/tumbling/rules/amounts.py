"""Amounts that ask for the window before, from the steps of a spec to those that the loop runs (semantics section 13).

Types are decided here: integers stay integers, of 64 bits, until they meet a float or are divided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ....columns.arrays import combined, measures, scale_of
from ....language.conditions import PREVIOUS, Operand, Previous, Step, Value, operand_column
from ....rows.panes import NO_REJECTS, ScanRejects, concatenate, reject_rows
from ....rows.sequence import Sequences
from . import arithmetic
from . import previous as kernel
from .previous import Earlier

_BINARY: Final = {
    "+": arithmetic.ADD, "-": arithmetic.SUBTRACT, "*": arithmetic.MULTIPLY, "/": arithmetic.DIVIDE,
    "least": arithmetic.LEAST, "greatest": arithmetic.GREATEST,
}  # fmt: skip
_REASONS: Final = {kernel.NEGATIVE: "negative_amount", kernel.NAN: "nan_attribute"}


def is_previous_number(dtype: pa.DataType) -> bool:
    """Whether values of a type go into an amount with ``previous``: integers of at most 64 signed bits, and floats."""
    types = pa.types
    fits = types.is_integer(dtype) and not types.is_uint64(dtype)
    return bool(fits or types.is_float32(dtype) or types.is_float64(dtype) or types.is_null(dtype))


@dataclass(slots=True)
class EarlierAmounts:
    """Amounts of n rows as they are collected, rule after rule; the columns of `Earlier`.

    ``sequences``: the rows.
    """

    sequences: Sequences
    heads: list[tuple[int, int, bool, float, int, int, bool]] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    code: list[tuple[int, int]] = field(default_factory=list)
    aggregates: list[tuple[int, bool, bool, int]] = field(default_factory=list)
    valid: list[Any] = field(default_factory=list)
    ints: list[Any] = field(default_factory=list)
    floats: list[Any] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, steps: tuple[Step, ...], compared: pa.DataType | None, place: int, moves: bool, text: str) -> None:
        """Add an amount.

        ``compared``: the type of what it is compared with; None: a number of rows. ``place``: its row among the
        amounts of its kind. ``moves``: as in `Earlier`. ``text``: its policy, for messages.
        """
        is_float = self._compile(steps)
        self.start.append(len(self.code))
        self.texts.append(text)
        per_second = scale_of(compared or pa.int64()).per_second
        kind = kernel.ROWS if compared is None else kernel.NUMBERS if per_second is None else kernel.TICKS
        over, under = (1, 1) if per_second is None else per_second.as_integer_ratio()
        self.heads.append((kind, place, moves, over / under, min(over, 2**64 - 1), under, is_float))

    def add_known(self, place: int, is_float: bool) -> None:
        """Add an amount that is known for each row, of which the one of the last row of the window counts."""
        self.start.append(len(self.code))
        self.texts.append("")
        self.heads.append((kernel.NUMBERS if is_float else kernel.TICKS, place, True, 1.0, 1, 1, is_float))

    def _compile(self, steps: tuple[Step, ...]) -> bool:
        stack: list[bool] = []
        for step in steps:
            if isinstance(step, str):
                self._add_sign(step, stack)
            elif isinstance(step, Previous):
                self._add_previous(step, stack)
            elif isinstance(step, Value):
                is_float, row = self._column(step.operand)
                self._push(arithmetic.FLOAT_COLUMN if is_float else arithmetic.INT_COLUMN, row, is_float, stack)
            else:
                bits = int(np.float64(step).view(np.int64)) if isinstance(step, float) else step
                is_float = isinstance(step, float)
                self._push(arithmetic.FLOAT if is_float else arithmetic.INT, bits, is_float, stack)
        return stack.pop()

    def _push(self, code: int, number: int, is_float: bool, stack: list[bool]) -> None:
        self.code.append((code, number))
        stack.append(is_float)

    def _add_sign(self, sign: str, stack: list[bool]) -> None:
        if sign == "negate":
            self.code.append((arithmetic.NEGATE + arithmetic.OF_FLOATS * stack[-1], 0))
            return
        right, left = stack.pop(), stack.pop()
        is_float = left or right or sign == "/"
        if is_float:
            self.code += [(arithmetic.TO_FLOAT, depth) for depth, known in ((1, left), (0, right)) if not known]
        self._push(_BINARY[sign] + arithmetic.OF_FLOATS * is_float, 0, is_float, stack)

    def _add_previous(self, step: Previous, stack: list[bool]) -> None:
        """Add an aggregate, which takes its default from the stack; of an integer and a float it is a float."""
        of_floats = self._add_aggregate(step)
        is_float, default = of_floats or step.function == "mean" or stack[-1], stack.pop()
        if is_float and not default:
            self.code.append((arithmetic.TO_FLOAT, 0))
        self._push(arithmetic.OLD_FLOAT if is_float else arithmetic.OLD_INT, len(self.aggregates) - 1, is_float, stack)

    def _add_aggregate(self, step: Previous) -> bool:
        """Add an aggregate; return whether it is a float."""
        function = PREVIOUS.index(step.function)
        if step.argument is None:
            self.valid.append(np.ones(len(self.sequences), np.bool_))
            self.aggregates.append((function, False, False, 0))
            return False
        column = self._values(step.argument)
        self.valid.append(column.is_valid().to_numpy(zero_copy_only=False))
        if step.function == "count":
            self.aggregates.append((function, False, False, 0))
            return False
        of_floats, row = self._column(step.argument)
        self.aggregates.append((function, of_floats, pa.types.is_float32(column.type), row))
        return of_floats

    def _values(self, operand: Operand) -> pa.Array:
        return combined(self.sequences.rows.column(operand_column(operand)))

    def _column(self, operand: Operand) -> tuple[bool, int]:
        """Add a column; return whether it has floats, and its row among these or the integers."""
        column = self._values(operand)
        values, is_float = measures(column), pa.types.is_floating(column.type)
        columns = self.floats if is_float else self.ints
        columns.append(np.where(column.is_valid().to_numpy(zero_copy_only=False), values, 0))
        return is_float, len(columns) - 1

    def earlier(self) -> Earlier:
        """Return the amounts as the loop takes them."""
        kind, place, moves, scale, over, under, floating = zip(*self.heads, strict=True) if self.heads else [()] * 7
        function, of_floats, narrow, source = zip(*self.aggregates, strict=True) if self.aggregates else [()] * 4
        rows, count, steps = len(self.sequences), len(self.aggregates), len(self.code)
        ints, bools = np.int64, np.bool_
        return Earlier(
            np.array(kind, ints), np.array(place, ints), np.array(moves, bools), np.array(scale, np.float64),
            np.array(over, np.uint64), np.array(under, np.uint64), np.array(self.start, ints),
            np.array(self.code, ints).reshape(-1, 2), np.array(floating, bools), np.array(function, ints),
            np.array(of_floats, bools), np.array(narrow, bools), np.array(source, ints),
            _rows(self.valid, bools, rows), _rows(self.ints, ints, rows), _rows(self.floats, np.float64, rows),
            np.full(2, -1, ints), np.zeros(count, bools), np.zeros(count, bools), np.zeros(count, ints),
            np.zeros(count), np.zeros(steps, ints), np.zeros(steps), np.zeros(rows, ints), np.zeros(rows, ints),
        )  # fmt: skip

    def rejects(self, earlier: Earlier) -> ScanRejects:
        """Return the rows that the loop has left out, for an amount that is none."""
        rows = np.flatnonzero(earlier.problem != kernel.FINE)
        if not len(rows):
            return NO_REJECTS
        why, pos = earlier.problem[rows], self.sequences.pos[rows]
        having = {reason: why == problem for problem, reason in _REASONS.items()}
        parts = [reject_rows(pos[which], reason, row=rows[which]) for reason, which in having.items()]
        for amount, text in enumerate(self.texts):
            is_far = (why == kernel.OVERFLOW) & (earlier.amount_at_fault[rows] == amount)
            parts.append(reject_rows(pos[is_far], "expression_error", text, rows[is_far]))
        return concatenate(parts)


def _rows(arrays: list[Any], dtype: Any, width: int) -> Any:
    return np.array(arrays, dtype).reshape(len(arrays), width) if arrays else np.zeros((0, width), dtype)
