"""The amounts and conditions of a spec that look at windows, over some rows: what the loop takes (sections 12, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined, measures, scale_of
from ...columns.sort_keys import sort_keys
from ...expressions.syntax import Expression, parse_expression
from ...expressions.types import plain_type
from ...language.programs import term_of
from ...rows.panes import NO_REJECTS, ScanRejects, concatenate, reject_rows
from ...rows.sequence import Sequences
from . import previous
from .compiler import Compiler, Taken
from .machine import Conditions, Machine
from .previous import Earlier
from .reach import FUNCTIONS, Kept

_ONE: Final = Fraction(1)
_REASONS: Final = {previous.NEGATIVE: "negative_amount", previous.NAN: "nan_attribute"}


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount that is computed while windows are found.

    ``expression``: None: each row says it already.
    ``compared``: the type of what it is compared with; None: a number of rows.
    ``place``: its row among the amounts of its kind.
    ``moves``: as in `Earlier`.
    ``text``: its policy, for messages.
    """

    expression: Expression | None
    compared: pa.DataType | None
    place: int
    moves: bool
    text: str


@dataclass(slots=True)
class Programs:
    """Amounts and conditions over n rows as they are collected, rule after rule.

    ``sequences``: the rows.
    ``smoothed``: what `Earlier.begun` has of each key, lists of floats (K,), null for a new key; None: all are new.
    ``befores``, ``afters``: rule and condition of those that are asked before a row goes in, and after.
    ``words``: columns of their own, by name.
    """

    sequences: Sequences
    smoothed: pa.Array | None = None
    amounts: list[Amount] = field(default_factory=list)
    befores: list[tuple[int, Expression]] = field(default_factory=list)
    afters: list[tuple[int, Expression]] = field(default_factory=list)
    words: dict[str, pa.Array] = field(default_factory=dict)

    def changes(self, rule: int, column: pa.Array) -> None:
        """Note a rule that fires where a value is distinct from that of the last row of the window."""
        name = f"#{len(self.words)}"
        self.words[name] = pa.array(sort_keys(column))
        self.befores.append((rule, parse_expression(f'"{name}" IS DISTINCT FROM last("{name}")')))

    def _column(self, name: str) -> pa.Array:
        return self.words[name] if name in self.words else combined(self.sequences.rows.column(name))

    def built(self) -> tuple[Earlier | None, Conditions | None]:
        """Return the amounts, and the conditions, as the loop takes them; None where there are none."""
        schema, asked = self.sequences.rows.schema, [*self.befores, *self.afters]
        compiler = Compiler(lambda name: self.words[name].type if name in self.words else schema.field(name).type)
        for amount in self.amounts:
            if amount.expression is None:
                compiler.skip()
            else:
                compiler.add(amount.expression, term_of(amount.expression, True), True)
        for _, expression in asked:
            compiler.add(expression, term_of(expression))
        made = self.machine(compiler)
        earlier = self._earlier(compiler, made) if self.amounts or compiler.before else None
        if not asked:
            return earlier, None
        numbers = int64s([len(self.amounts)]), int64s(rule for rule, _ in asked), int64s([len(self.befores)])
        may_fail = bools([compiler.may_fail and bool(self.afters)])
        kept = self.kept(compiler, made, list(compiler.kept))
        return earlier, Conditions(made, *numbers, kept, may_fail, np.zeros(len(self.sequences), np.int64))

    def machine(self, compiler: Compiler) -> Machine:
        """Return the programs of a compiler over the rows."""
        ints, floats = self._columns(compiler, False), self._columns(compiler, True)
        registers, rows = compiler.registers, len(self.sequences)
        int_at, float_at = np.zeros(registers, np.int64), np.zeros(registers)
        is_there = np.zeros(registers, np.bool_)
        for at, value in compiler.constants.items():
            is_there[at] = True
            (float_at if isinstance(value, float) else int_at)[at] = value
        return Machine(
            np.array(compiler.code, np.int64).reshape(-1, 4), int64s(compiler.start),
            int64s(each.at for each in compiler.results),
            written([values for values, _ in ints], np.int64, rows),
            written([values for values, _ in floats], np.float64, rows),
            written([has for _, has in ints], np.bool_, rows), written([has for _, has in floats], np.bool_, rows),
            int_at, float_at, is_there, np.zeros(len(compiler.results), np.bool_),
        )  # fmt: skip

    def _columns(self, compiler: Compiler, of_floats: bool) -> list[tuple[Any, Mask]]:
        """Return values, 0 at nulls, and where they are not null, of the columns of integers or of floats."""
        names = [(name, kind) for name, kind in compiler.columns if (kind == "float") == of_floats]
        columns = {name: self._column(name) for name, _ in names}
        ranks = _ranks({name: columns[name] for name, kind in names if kind == "rank"})
        found = []
        for name, kind in names:
            column, has = columns[name], columns[name].is_valid().to_numpy(zero_copy_only=False)
            if kind == "truth":
                column = column.cast(pa.uint8())
            values = ranks[name] if kind == "rank" else measures(column)
            found.append((values if has.all() else np.where(has, values, 0), has))
        return found

    def kept(
        self, compiler: Compiler, made: Machine, taken: Sequence[Taken], functions: Mapping[str, int] = FUNCTIONS
    ) -> Kept:
        """Return aggregates over the columns of a machine. ``functions``: the number of each function."""
        has = [
            np.ones(len(self.sequences), np.bool_) if each.argument is None
            else self._column(each.argument).is_valid().to_numpy(zero_copy_only=False)
            for each in taken
        ]  # fmt: skip
        return Kept(
            int64s(functions[each.function] for each in taken),
            bools(each.is_float for each in taken), bools(each.source.is_narrow for each in taken),
            int64s(compiler.place_of(each) for each in taken), made.ints, int64s(each.lacks for each in taken),
            made.floats, written(has, np.bool_, len(self.sequences)), int64s(each.digits for each in taken),
        )  # fmt: skip

    def _earlier(self, compiler: Compiler, made: Machine) -> Earlier:
        before, rows = list(compiler.before.items()), len(self.sequences)
        kept = self.kept(compiler, made, [key.taken for key, _ in before])
        scales = [None if each.compared is None else scale_of(each.compared).per_second for each in self.amounts]
        kinds = [
            previous.ROWS if each.compared is None else previous.NUMBERS if scale is None else previous.TICKS
            for each, scale in zip(self.amounts, scales, strict=True)
        ]
        units = [scale or _ONE for scale in scales]
        asked = np.zeros((len(before), len(compiler.results)), np.bool_)
        for pair in compiler.asked:
            asked[pair] = True
        default = np.array([key.default for key, _ in before], np.float64)
        return Earlier(
            made, int64s(kinds), int64s(each.place for each in self.amounts),
            bools(each.moves for each in self.amounts),
            np.array([each.numerator / each.denominator for each in units], np.float64),
            np.array([min(each.numerator, 2**64 - 1) for each in units], np.uint64),
            np.array([each.denominator for each in units], np.uint64),
            bools(each.kind == "float" for each in compiler.results[: len(self.amounts)]),
            bools(each.expression is None for each in self.amounts),
            kept.function, kept.floating, kept.narrow, kept.row, kept.valid, int64s(found.at for _, found in before),
            bools(key.is_absolute for key, _ in before), np.zeros(len(before), np.bool_), asked,
            np.array([key.share for key, _ in before], np.float64), default, np.zeros((2, len(before))),
            self._begun(default, np.array([key.share > 0 for key, _ in before], np.bool_)), np.full(2, -1, np.int64),
            np.zeros(rows, np.int64), np.zeros(rows, np.int64),
        )  # fmt: skip

    def _begun(self, default: Any, is_smoothed: Mask) -> Any:
        begun = np.repeat(default[:, None], len(self.sequences.bounds) - 1, axis=1)
        if self.smoothed is not None and is_smoothed.any():
            for key, known in enumerate(self.smoothed.to_pylist()):
                if known is not None:
                    begun[is_smoothed, key] = known
        return begun

    def rejects(self, earlier: Earlier | None, conditions: Conditions | None) -> ScanRejects:
        """Return the rows that the loop has left out: an amount is none, or an integer does not fit 64 bits."""
        pos, parts = self.sequences.pos, [NO_REJECTS]
        if earlier is not None and (rows := np.flatnonzero(earlier.problem)).size:
            why = earlier.problem[rows]
            having = {reason: rows[why == problem] for problem, reason in _REASONS.items()}
            parts += [reject_rows(pos[which], reason, row=which) for reason, which in having.items()]
            for number, amount in enumerate(self.amounts):
                is_far = (why == previous.OVERFLOW) & (earlier.amount_at_fault[rows] == number)
                parts.append(reject_rows(pos[rows[is_far]], "expression_error", amount.text, rows[is_far]))
        if conditions is not None:
            for number, (_, expression) in enumerate([*self.befores, *self.afters]):
                which = np.flatnonzero(conditions.problem == number + 1)
                parts.append(reject_rows(pos[which], "expression_error", str(expression), which))
        return concatenate(parts)


def smoothed_of(earlier: Earlier | None) -> pa.Array | None:
    """Return the smoothed values behind the windows of each key, lists of floats (K,); None where there are none."""
    if earlier is None or not (earlier.share > 0).any():
        return None
    return pa.array(list(earlier.begun[earlier.share > 0].T), pa.list_(pa.float64()))


def _ranks(columns: Mapping[str, pa.Array]) -> dict[str, Any]:
    """Return the values of columns as ranks, among the values of all columns of the same type."""
    found: dict[str, Any] = {}
    for family in {plain_type(column.type) for column in columns.values()}:
        names = [name for name, column in columns.items() if plain_type(column.type) == family]
        plain = [columns[name] if columns[name].type == family else columns[name].cast(family) for name in names]
        words = sort_keys(pa.concat_arrays(plain))
        found |= zip(names, np.split(words, np.cumsum([len(each) for each in plain])[:-1]), strict=True)
    return found


def int64s(numbers: Any) -> Ints:
    """Return numbers as an array, int64."""
    return np.array([*numbers], np.int64)


def bools(values: Any) -> Any:
    """Return truth values as an array, bool."""
    return np.array([*values], np.bool_)


def stacked(arrays: Sequence[Any], dtype: Any, width: int) -> Any:
    """Return arrays as the rows of one; those of one value are as wide as the widest."""
    if not arrays:
        return np.zeros((0, width), dtype)
    arrays = [np.atleast_1d(np.asarray(each)) for each in arrays]
    if len(arrays) == 1:
        return np.ascontiguousarray(arrays[0].astype(dtype, copy=False)).reshape(1, -1)
    return np.stack(np.broadcast_arrays(*arrays)).astype(dtype, copy=False)


def written(arrays: Sequence[Any], dtype: Any, width: int = 1) -> Any:
    """Return arrays as `stacked` does, for loops that may write to them."""
    found = stacked(arrays, dtype, width)
    return found if found.flags.writeable else found.copy()
