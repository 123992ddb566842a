"""What each policy of a spec says of the rows, gathered for the loop (semantics section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined, measures, scale_of
from ...language.conditions import PREVIOUS, Operand, Previous, Step, Value, operand_column
from ...rows.panes import NO_REJECTS, ScanRejects, concatenate, reject_rows
from ...rows.sequence import Sequences
from . import previous
from .previous import Earlier
from .reach import FUNCTIONS, Reaches
from .walk import Counts, Deltas, Flags, RowRules, Rules, no_window

# Amounts that ask for the window before, from the steps of a spec to those that the loop runs (semantics section 13).
#
# Types are decided here: integers stay integers, of 64 bits, until they meet a float or are divided.


_BINARY: Final = {
    "+": previous.ADD, "-": previous.SUBTRACT, "*": previous.MULTIPLY, "/": previous.DIVIDE,
    "least": previous.LEAST, "greatest": previous.GREATEST,
}  # fmt: skip
_REASONS: Final = {previous.NEGATIVE: "negative_amount", previous.NAN: "nan_attribute"}


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
        kind = previous.ROWS if compared is None else previous.NUMBERS if per_second is None else previous.TICKS
        over, under = (1, 1) if per_second is None else per_second.as_integer_ratio()
        self.heads.append((kind, place, moves, over / under, min(over, 2**64 - 1), under, is_float))

    def add_known(self, place: int, is_float: bool) -> None:
        """Add an amount that is known for each row, of which the one of the last row of the window counts."""
        self.start.append(len(self.code))
        self.texts.append("")
        self.heads.append((previous.NUMBERS if is_float else previous.TICKS, place, True, 1.0, 1, 1, is_float))

    def _compile(self, steps: tuple[Step, ...]) -> bool:
        stack: list[bool] = []
        for step in steps:
            if isinstance(step, str):
                self._add_sign(step, stack)
            elif isinstance(step, Previous):
                self._add_previous(step, stack)
            elif isinstance(step, Value):
                is_float, row = self._column(step.operand)
                self._push(previous.FLOAT_COLUMN if is_float else previous.INT_COLUMN, row, is_float, stack)
            else:
                bits = int(np.float64(step).view(np.int64)) if isinstance(step, float) else step
                is_float = isinstance(step, float)
                self._push(previous.FLOAT if is_float else previous.INT, bits, is_float, stack)
        return stack.pop()

    def _push(self, code: int, number: int, is_float: bool, stack: list[bool]) -> None:
        self.code.append((code, number))
        stack.append(is_float)

    def _add_sign(self, sign: str, stack: list[bool]) -> None:
        if sign == "negate":
            self.code.append((previous.NEGATE + previous.OF_FLOATS * stack[-1], 0))
            return
        right, left = stack.pop(), stack.pop()
        is_float = left or right or sign == "/"
        if is_float:
            self.code += [(previous.TO_FLOAT, depth) for depth, known in ((1, left), (0, right)) if not known]
        self._push(_BINARY[sign] + previous.OF_FLOATS * is_float, 0, is_float, stack)

    def _add_previous(self, step: Previous, stack: list[bool]) -> None:
        """Add an aggregate, which takes its default from the stack; of an integer and a float it is a float."""
        of_floats = self._add_aggregate(step)
        is_float, default = of_floats or step.function == "mean" or stack[-1], stack.pop()
        if is_float and not default:
            self.code.append((previous.TO_FLOAT, 0))
        self._push(previous.OLD_FLOAT if is_float else previous.OLD_INT, len(self.aggregates) - 1, is_float, stack)

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
        rows = np.flatnonzero(earlier.problem != previous.FINE)
        if not len(rows):
            return NO_REJECTS
        why, pos = earlier.problem[rows], self.sequences.pos[rows]
        having = {reason: why == problem for problem, reason in _REASONS.items()}
        parts = [reject_rows(pos[which], reason, row=rows[which]) for reason, which in having.items()]
        for amount, text in enumerate(self.texts):
            is_far = (why == previous.OVERFLOW) & (earlier.amount_at_fault[rows] == amount)
            parts.append(reject_rows(pos[is_far], "expression_error", text, rows[is_far]))
        return concatenate(parts)


def _rows(arrays: list[Any], dtype: Any, width: int) -> Any:
    return np.array(arrays, dtype).reshape(len(arrays), width) if arrays else np.zeros((0, width), dtype)


_FAR = Fraction(2**94)  # more than any sum of integers
_LARGEST = Fraction(np.finfo(np.float64).max)


@dataclass(slots=True)
class Gathered:
    """What rules say of n rows, rule after rule, in the order of the spec.

    ``rows``: n.
    ``before``, ``after``: int16 (n,), as in `Flags`; None where no rule said anything yet.
    ``opens``: bool (n,), as in `Flags`; None where windows may begin at any row.
    ``deltas``: rule, bits of floats or 0, values and amounts of each.
    ``counts``: rule and most rows of each.
    ``sums``: rule, function, whether it looks at floats, values, which are there, the least that is enough, exact and
        in the unit of the values, and what these lack, as in `Reaches`, of each.
    ``earlier``: the amounts that ask for the window before; None where there is none.
    ``has_holes``: whether a row inside of a window may be rejected, so that the last row of a window need not be the
        row before.
    """

    rows: int
    has_holes: bool = False
    before: Rules | None = None
    after: Rules | None = None
    opens: Mask | None = None
    deltas: list[tuple[int, int, Any, Any]] = field(default_factory=list)
    counts: list[tuple[int, Any]] = field(default_factory=list)
    sums: list[tuple[int, int, bool, Any, Mask, Fraction, int]] = field(default_factory=list)
    earlier: EarlierAmounts | None = None

    def ends_before(self, rule: int, fires: Mask) -> None:
        """Note the rows before which a rule ends a window, bool (n,)."""
        self.before = _first(self.before, rule, fires)

    def ends_with(self, rule: int, fires: Mask) -> None:
        """Note the rows with which a rule ends a window, bool (n,)."""
        self.after = _first(self.after, rule, fires)

    def rises_from_first_row(self, rule: int, values: Any, amount: Any) -> None:
        """Note a rule that compares a row with the first of its window.

        ``values``: as `measures` returns them. ``amount``: of each row, or of all.
        """
        self.deltas.append((rule, 0 if values.dtype.kind in "iu" else 8 * values.dtype.itemsize, values, amount))

    def amount_of_window_before(
        self, rule: int, steps: tuple[Step, ...], attribute: str | None, moves: bool, sequences: Sequences, text: str
    ) -> None:
        """Note a rule whose amount asks for the window before, as in `EarlierAmounts.add`.

        ``attribute``: the column that is compared; None: the rows are counted.
        """
        self.earlier = self.earlier or EarlierAmounts(sequences)
        if attribute is None:
            self.earlier.add(steps, None, len(self.counts), moves, text)
            self.counts.append((rule, np.zeros(self.rows, np.int64)))
            return
        column = combined(sequences.rows.column(attribute))
        values = measures(column)
        is_float = values.dtype.kind == "f"
        self.earlier.add(steps, column.type, self._place(is_float), moves, text)
        self.rises_from_first_row(rule, values, np.zeros(self.rows, np.float64 if is_float else np.uint64))

    def rises_from_last_row(self, rule: int, values: Any, amount: Any, sequences: Sequences) -> None:
        """Note a rule that compares a row with the last of its window, where that need not be the row before.

        ``amount``: of each row, or of all.
        """
        self.earlier = self.earlier or EarlierAmounts(sequences)
        is_float = values.dtype.kind == "f"
        self.earlier.add_known(self._place(is_float), is_float)
        self.rises_from_first_row(rule, values, amount)

    def reaches(
        self, rule: int, function: str, argument: Operand | None, amount: Fraction, sequences: Sequences
    ) -> None:
        """Note a rule that fires where an aggregate is large enough. ``argument``: None: rows are counted."""
        values, valid = np.zeros(self.rows, np.int64), np.ones(self.rows, np.bool_)
        is_float, per_second, offset = False, Fraction(1), 0
        if argument is not None:
            column = combined(sequences.rows.column(operand_column(argument)))
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            if function != "count" and not pa.types.is_null(column.type):
                values, per_second = measures(column), scale_of(column.type).per_second or Fraction(1)
                is_float, offset = values.dtype.kind == "f", 2**31 if pa.types.is_uint64(column.type) else 0
        if is_float:
            values = np.where(valid, values, 0.0).astype(np.float64)
        least = _within(amount, _LARGEST) if is_float else _within(amount * per_second, _FAR)
        self.sums.append((rule, FUNCTIONS[function], is_float, values, valid, least, offset))

    def _place(self, is_float: bool) -> int:
        return sum(bool(bits) == is_float for _, bits, *_ in self.deltas)

    def row_rules(self, event: Rules, cause: Ints, why: npt.NDArray[np.int8]) -> tuple[RowRules, Reaches | None]:
        """Return all as the loops take it, with the events and the close reasons as in `Flags`, and no window open."""
        nothing, anywhere = np.empty(0, np.int16), np.empty(0, np.bool_)
        before, after = (nothing if each is None else each for each in (self.before, self.after))
        flags = Flags(anywhere if self.opens is None else self.opens, before, after, event, cause, why)
        integers = [each for each in self.deltas if not each[1]]
        floats = [each for each in self.deltas if each[1]]
        deltas = Deltas(
            _ints(rule for rule, *_ in integers),
            _only_read(_stacked([values for *_, values, _ in integers], np.int64, self.rows)),
            _written([amount for *_, amount in integers], np.uint64),
            _ints(rule for rule, *_ in floats),
            _ints(bits for _, bits, *_ in floats),
            _only_read(_stacked([values for *_, values, _ in floats], np.float64, self.rows)),
            _written([amount for *_, amount in floats], np.float64),
        )
        counts = Counts(_ints(rule for rule, _ in self.counts), _written([most for _, most in self.counts], np.int64))
        reaches = self._reaches()
        return RowRules(flags, deltas, counts, no_window(deltas, counts, reaches)), reaches

    def _reaches(self) -> Reaches | None:
        if not self.sums:
            return None
        rule, function, floating, values, valid, least, offset = zip(*self.sums, strict=True)
        enough = [each.__ceil__() for each in least]
        ticks = [own for own, is_float in zip(values, floating, strict=True) if not is_float]
        floats = [own for own, is_float in zip(values, floating, strict=True) if is_float]
        return Reaches(
            _ints(rule),
            _ints(function),
            np.array(floating, np.bool_),
            _ints(floating[:i].count(is_float) for i, is_float in enumerate(floating)),
            _ints(each >> 32 for each in enough),
            _ints(each & 0xFFFFFFFF for each in enough),
            np.array([float(_within(each, _LARGEST)) for each in least], np.float64),
            _written(ticks, np.int64, self.rows),
            _ints(offset),
            _written(floats, np.float64, self.rows),
            _written(valid, np.bool_, self.rows),
        )


def _within(amount: Fraction, most: Fraction) -> Fraction:
    return min(max(amount, -most), most)


def _first(rules: Rules | None, rule: int, fires: Mask) -> Rules:
    if rules is None:
        return np.where(fires, np.int16(rule), np.int16(-1))
    rules[fires & (rules < 0)] = rule
    return rules


def _ints(numbers: Any) -> Ints:
    return np.array([*numbers], np.int64)


def _stacked(arrays: Sequence[Any], dtype: Any, width: int) -> Any:
    """Return arrays as the rows of one; those of one value are as wide as the widest."""
    if not arrays:
        return np.zeros((0, width), dtype)
    arrays = [np.atleast_1d(np.asarray(each)) for each in arrays]
    if len(arrays) == 1:
        return np.ascontiguousarray(arrays[0].astype(dtype, copy=False)).reshape(1, -1)
    return np.stack(np.broadcast_arrays(*arrays)).astype(dtype, copy=False)


def _only_read(array: Any) -> Any:
    """Return an array as loops know it that only read it, be it of a column or made here: they are compiled once."""
    array.flags.writeable = False
    return array


def _written(arrays: Sequence[Any], dtype: Any, width: int = 1) -> Any:
    """Return arrays as `_stacked` does, for loops that may write to them."""
    stacked = _stacked(arrays, dtype, width)
    return stacked if stacked.flags.writeable else stacked.copy()
