"""What conditions read of the rows matched so far, as words: equal words mean equal values in all that follows.

Values are exact, as aggregates are (semantics section 9): sums of integers have two words, those of floats limbs.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ...aggregates.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs
from ...aggregates.loops import LIMB, Floats
from ...columns.arrays import Ints
from ...language.patterns import RowPattern
from ...rows.sequence import Sequences
from ...support.jit import frugal_kernel
from ..rules.compiler import Compiler, Taken, Typed, Types
from ..rules.machine import MOST_WORD, Machine, run
from ..rules.programs import Programs, int64s
from ..rules.reach import COUNT, FUNCTIONS, MAX, MEAN, MIN, RANGE, SUM, Kept, mean_in_limbs, mean_of_ints

NTH: Final = 8
"""Beside the functions of ``rules/reach.py``: value ``number``, from 0 on; negative from the newest, which is -1."""
ALL_ROWS: Final = -2
"""In place of a symbol: an aggregate of all rows."""

FALSE, TRUE, FAILED = range(3)
"""What a condition says of a row; an integer that does not fit 64 bits says nothing."""


class Readers(NamedTuple):
    """The conditions of S symbols over n rows; A aggregates of matched rows are read by R of them.

    ``machine``: the R programs.
    ``program``: int64 (S,), the program of each symbol; -1: its bit in the rows says all.
    ``used``: int64, the aggregates that each program reads; those of program p are ``bounds[p]:bounds[p + 1]``.
    ``kept``: the aggregates; `NTH` is in place of `FIRST` and `LAST`. ``number``: int64 (A,), which value `NTH` is.
    ``symbol``: int64 (A,), as what the rows are matched that it reads, or `ALL_ROWS`.
    ``register``: int64 (A,), where the machine wants its value.
    ``offset``: int64 (A + 1,), its words.
    ``limbs``: int64 (`LIMBS`,), and ``parts``: float64 (3,), of any value.
    """

    machine: Machine
    program: Ints
    used: Ints
    bounds: Ints
    kept: Kept
    number: Ints
    symbol: Ints
    register: Ints
    offset: Ints
    limbs: Ints
    parts: Floats


def words_of(function: int, number: int, is_float: bool) -> int:
    """Return how many words an aggregate has: how many values it has seen, or whether any, and those that it keeps."""
    if function in (SUM, MEAN):
        return 2 + LIMBS if is_float else 3
    if function == NTH:
        return 1 + max(1, -number)
    return {COUNT: 1, RANGE: 3}.get(function, 2)


@frugal_kernel
def _bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


@frugal_kernel
def _float(word: int) -> float:
    return float(np.int64(word).view(np.float64))


@frugal_kernel
def _extreme(words: Ints, function: int, value: Any, is_float: bool) -> None:
    """Note a value, which is not NaN, among the least and the most."""
    low, high = 1, 2 if function == RANGE else 1
    word = _bits(value + 0.0) if is_float else np.int64(value)
    least, most = (_float(words[low]), _float(words[high])) if is_float else (words[low], words[high])
    is_first = words[0] == 0
    words[0] = 1
    if function != MAX and (is_first or value < least):
        words[low] = word
    if function != MIN and (is_first or value > most):
        words[high] = word


@frugal_kernel
def _place(words: Ints, number: int, word: int) -> None:
    """Note a value among those that `NTH` keeps."""
    if number >= 0:
        if words[0] <= number:
            words[0] += 1
            words[1] = word if words[0] > number else 0
        return
    words[0] = min(words[0] + 1, -number)
    for k in range(1, -number):
        words[k] = words[k + 1]
    words[-number] = word


@frugal_kernel
def see_row(readers: Readers, state: Ints, symbol: int, row: int) -> None:
    """Add a row that is matched as a symbol to the words of all aggregates, int64 (W,)."""
    kept = readers.kept
    for a in range(len(kept.function)):
        if not kept.valid[a, row] or (readers.symbol[a] != ALL_ROWS and readers.symbol[a] != symbol):
            continue
        words, function, column = state[readers.offset[a] : readers.offset[a + 1]], kept.function[a], kept.row[a]
        if function == COUNT:
            words[0] += 1
        elif kept.floating[a]:
            value = kept.floats[column, row]
            if function in (SUM, MEAN):
                words[0] = 1 if function == SUM else words[0] + 1
                special = add_to_limbs(kept.floats[column], row, row + 1, words[2:])
                add_to_limbs(kept.floats[column], 0, 0, words[2:])  # carries: equal sums have equal limbs
                words[1] = _bits(_float(words[1]) + special)
            elif function == NTH:
                _place(words, readers.number[a], _bits(value))
            elif value == value:  # noqa: PLR0124 - only NaN is not itself; the extremes skip it
                _extreme(words, function, value, True)
        else:
            tick = kept.ticks[column, row]
            if function in (SUM, MEAN):
                words[0] = 1 if function == SUM else words[0] + 1
                low = words[2] + (tick & LIMB)
                words[1] += (tick >> 32) + kept.offset[a] + (low >> 32)
                words[2] = low & LIMB
            elif function == NTH:
                _place(words, readers.number[a], tick)
            else:
                _extreme(words, function, tick, False)


@frugal_kernel
def _value_of_floats(readers: Readers, a: int, words: Ints) -> float:
    function = readers.kept.function[a]
    if function in (SUM, MEAN):
        limbs = readers.limbs
        for limb in range(len(limbs)):
            limbs[limb] = words[2 + limb]
        special = _float(words[1])
        found: float = nearest_in_limbs(limbs, special) if function == SUM else mean_in_limbs(limbs, special, words[0])
        return found
    if function == RANGE:
        spread = _float(words[2]) - _float(words[1])
        return np.float64(np.float32(spread)) if readers.kept.narrow[a] else spread
    return _float(words[1])


@frugal_kernel
def _fetch(readers: Readers, a: int, words: Ints) -> bool:
    """Put the value of an aggregate into its register; return whether it fits 64 bits."""
    kept, machine, at, number = readers.kept, readers.machine, readers.register[a], readers.number[a]
    function = kept.function[a]
    enough = 1 if function != NTH else number + 1 if number >= 0 else -number
    machine.is_there[at] = function == COUNT or words[0] >= enough
    if not machine.is_there[at]:
        return True
    if kept.floating[a]:
        machine.float_at[at] = _value_of_floats(readers, a, words)
    elif function == MEAN:
        machine.float_at[at] = mean_of_ints(words[1], words[2], words[0], kept.digits[a], readers.parts, readers.limbs)
    elif function == SUM:
        machine.int_at[at] = (words[1] << 32) | words[2]
        return bool(-(2**31) <= words[1] < 2**31)
    elif function == RANGE:
        # the difference wraps to the 64 unsigned bits of the distance
        spread = np.uint64(words[2]) - np.uint64(words[1])
        machine.int_at[at] = np.int64(spread)
        return bool(spread <= np.uint64(MOST_WORD))
    else:
        machine.int_at[at] = words[0] if function == COUNT else words[1]
    return True


@frugal_kernel
def says(readers: Readers, symbol: int, state: Ints, row: int) -> int:
    """Return what the condition of a symbol, which reads matched rows, says of a row; ``state`` has the row in."""
    p, machine = readers.program[symbol], readers.machine
    for u in range(readers.bounds[p], readers.bounds[p + 1]):
        a = readers.used[u]
        if not _fetch(readers, a, state[readers.offset[a] : readers.offset[a + 1]]):
            return FAILED
    if not run(machine, p, row, None, None, 0):
        return FAILED
    at = machine.result[p]
    return TRUE if machine.is_there[at] and machine.int_at[at] == 1 else FALSE


# From conditions to what the loops above take: programs over the rows, and aggregates as words.


_ENDS = {"first": 0, "last": -1}


def readers_of(pattern: RowPattern, sequences: Sequences) -> Readers | None:
    """Return what conditions of a pattern read of matched rows, over some rows; None: all are of columns alone."""
    if not any(term is not None for term in pattern.terms):
        return None
    schema, rows = sequences.rows.schema, Programs(sequences)
    compiler = compiled(pattern, lambda name: schema.field(name).type)
    matched = compiler.matched or {}
    made = rows.machine(compiler)
    kept = rows.kept(compiler, made, list(matched), FUNCTIONS | dict.fromkeys(("nth", *_ENDS), NTH))
    numbers = [_ENDS.get(each.function, each.number) for each in matched]
    programs = iter(range(len(compiler.results)))
    asked = sorted((program, aggregate) for aggregate, program in compiler.asked)
    words = [words_of(*each) for each in zip(kept.function.tolist(), numbers, kept.floating.tolist(), strict=True)]
    return Readers(
        made,
        int64s(-1 if term is None else next(programs) for term in pattern.terms),
        int64s(aggregate for _, aggregate in asked),
        np.searchsorted(int64s(program for program, _ in asked), np.arange(len(compiler.results) + 1)),
        kept, int64s(numbers),
        int64s(ALL_ROWS if each.symbol is None else pattern.symbols.index(each.symbol) for each in matched),
        int64s(found.at for found in matched.values()), np.cumsum([0, *words], dtype=np.int64),
        np.zeros(LIMBS, np.int64), np.zeros(3),
    )  # fmt: skip


def compiled(pattern: RowPattern, types: Types) -> Compiler:
    """Return the programs of the conditions that read matched rows. Raises `SpecError` where types do not go together.

    ``types``: of the columns.
    """
    matched: dict[Taken, Typed] = {}
    compiler = Compiler(types, matched=matched)
    for (_, condition), term in zip(pattern.conditions, pattern.terms, strict=True):
        if term is not None:
            compiler.add(condition, term)
    return compiler
