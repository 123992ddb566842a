"""What each policy of a spec says of the rows, gathered for the loop (semantics section 12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask, Measures, combined, measures, scale_of
from ...expressions.syntax import Expression
from ...language.operands import Operand, operand_column
from ...rows.sequence import Sequences, have_risen, rises
from ...support.jit import kernel
from ..delta import comparable
from .machine import Conditions
from .previous import Earlier
from .programs import Amount, Programs, int64s, stacked, written
from .reach import FUNCTIONS, Kept, Reaches
from .walk import Counts, Deltas, Flags, RowRules, Rules, no_window

_FAR = Fraction(2**94)  # more than any sum of integers
_LARGEST = Fraction(np.finfo(np.float64).max)


class Said(NamedTuple):
    """What rules say of rows, as `walk` takes it."""

    rules: RowRules
    reaches: Reaches | None
    conditions: Conditions | None
    earlier: Earlier | None


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
    ``programs``: the amounts and conditions that look at windows.
    ``has_holes``: whether a row inside of a window may be rejected, so that the last row of a window need not be the
        row before.
    """

    rows: int
    programs: Programs
    has_holes: bool = False
    before: Rules | None = None
    after: Rules | None = None
    opens: Mask | None = None
    deltas: list[tuple[int, int, Any, Any]] = field(default_factory=list)
    counts: list[tuple[int, Any]] = field(default_factory=list)
    sums: list[tuple[int, int, bool, Any, Mask, Fraction, int]] = field(default_factory=list)

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
        self, rule: int, amount: Expression, attribute: str | None, moves: bool, sequences: Sequences, text: str
    ) -> None:
        """Note a rule whose amount asks for the window before, as in `Amount`.

        ``attribute``: the column that is compared; None: the rows are counted.
        """
        if attribute is None:
            self.programs.amounts.append(Amount(amount, None, len(self.counts), moves, text))
            self.counts.append((rule, np.zeros(self.rows, np.int64)))
            return
        column = combined(sequences.rows.column(attribute))
        values = measures(column)
        is_float = values.dtype.kind == "f"
        self.programs.amounts.append(Amount(amount, column.type, self._place(is_float), moves, text))
        self.rises_from_first_row(rule, values, np.zeros(self.rows, np.float64 if is_float else np.uint64))

    def rises_from_last_row(self, rule: int, values: Any, amount: Any, sequences: Sequences) -> None:
        """Note a rule that compares a row with the last of its window, where that need not be the row before.

        ``amount``: of each row, or of all.
        """
        is_float = values.dtype.kind == "f"
        kind = pa.float64() if is_float else pa.int64()
        self.programs.amounts.append(Amount(None, kind, self._place(is_float), True, ""))
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

    def said(self, event: Rules, cause: Ints, why: npt.NDArray[np.int8]) -> Said:
        """Return all as the loops take it, with the events and the close reasons as in `Flags`, and no window open."""
        nothing, anywhere = np.empty(0, np.int16), np.empty(0, np.bool_)
        before, after = (nothing if each is None else each for each in (self.before, self.after))
        flags = Flags(anywhere if self.opens is None else self.opens, before, after, event, cause, why)
        integers = [each for each in self.deltas if not each[1]]
        floats = [each for each in self.deltas if each[1]]
        deltas = Deltas(
            int64s(rule for rule, *_ in integers),
            _only_read(stacked([values for *_, values, _ in integers], np.int64, self.rows)),
            written([amount for *_, amount in integers], np.uint64),
            int64s(rule for rule, *_ in floats),
            int64s(bits for _, bits, *_ in floats),
            _only_read(stacked([values for *_, values, _ in floats], np.float64, self.rows)),
            written([amount for *_, amount in floats], np.float64),
        )
        counts = Counts(int64s(rule for rule, _ in self.counts), written([most for _, most in self.counts], np.int64))
        reaches, (earlier, conditions) = self._reaches(), self.programs.built()
        window = no_window(deltas, counts, reaches, conditions)
        return Said(RowRules(flags, deltas, counts, window), reaches, conditions, earlier)

    def _reaches(self) -> Reaches | None:
        if not self.sums:
            return None
        rule, function, floating, values, valid, least, offset = zip(*self.sums, strict=True)
        enough = [each.__ceil__() for each in least]
        ticks = [own for own, is_float in zip(values, floating, strict=True) if not is_float]
        floats = [own for own, is_float in zip(values, floating, strict=True) if is_float]
        kept = Kept(
            int64s(function),
            np.array(floating, np.bool_),
            np.zeros(len(rule), np.bool_),
            int64s(floating[:i].count(is_float) for i, is_float in enumerate(floating)),
            written(ticks, np.int64, self.rows),
            int64s(offset),
            written(floats, np.float64, self.rows),
            written(valid, np.bool_, self.rows),
            np.zeros(len(rule), np.int64),
        )
        return Reaches(
            kept,
            int64s(rule),
            int64s(each >> 32 for each in enough),
            int64s(each & 0xFFFFFFFF for each in enough),
            np.array([float(_within(each, _LARGEST)) for each in least], np.float64),
        )


def _within(amount: Fraction, most: Fraction) -> Fraction:
    return min(max(amount, -most), most)


def _first(rules: Rules | None, rule: int, fires: Mask) -> Rules:
    if rules is None:
        return np.where(fires, np.int16(rule), np.int16(-1))
    rules[fires & (rules < 0)] = rule
    return rules


def _only_read(array: Any) -> Any:
    """Return an array as loops know it that only read it, be it of a column or made here: they are compiled once."""
    array.flags.writeable = False
    return array


@kernel
def _gap_flags(values: Measures, amounts: Any) -> Mask:
    # over all rows, whatever their keys: before the first row of a key no window is open that could end
    flags = np.zeros(len(values), np.bool_)
    for i in range(1, len(values)):
        flags[i] = rises(values[i], values[i - 1], amounts[min(i, len(amounts)) - 1])
    return flags


def tell_gap(rule: int, rules: Gathered, sequences: Sequences, values: Measures, amount: Any) -> None:
    """Say which rows rise above the row before them. ``amount``: of all rows, or of each as the row before says it."""
    if rules.has_holes:
        rules.rises_from_last_row(rule, values, amount, sequences)
    elif len(values) == 2:
        # Two rows on the two sides of a cut: the driver asks while no task runs, and would load its first kernel.
        old, new = comparable(values)
        rules.ends_before(rule, np.array([False, bool(have_risen(new, old, np.atleast_1d(amount)[0]))]))
    else:
        rules.ends_before(rule, _gap_flags(values, np.atleast_1d(amount)))
