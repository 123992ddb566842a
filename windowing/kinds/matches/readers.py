"""From conditions that read matched rows to what the threads take: programs over the rows, and aggregates as words."""

from __future__ import annotations

import numpy as np

from ...aggregates.exact_sums import LIMBS
from ...language.patterns import RowPattern
from ...rows.sequence import Sequences
from ..rules.compiler import Compiler, Taken, Typed, Types
from ..rules.programs import Programs, bools, int64s
from ..rules.reach import FUNCTIONS
from .matched import ALL_ROWS, NTH, Readers, words_of

_ENDS = {"first": 0, "last": -1}


def readers_of(pattern: RowPattern, sequences: Sequences) -> Readers | None:
    """Return what conditions of a pattern read of matched rows, over some rows; None: all are of columns alone."""
    if not any(term is not None for term in pattern.terms):
        return None
    schema, rows = sequences.rows.schema, Programs(sequences)
    compiler = compiled(pattern, lambda name: schema.field(name).type)
    matched = compiler.matched or {}
    functions = [NTH if each.function in {"nth", *_ENDS} else FUNCTIONS[each.function] for each in matched]
    numbers = [_ENDS.get(each.function, each.number) for each in matched]
    programs = iter(range(len(compiler.results)))
    asked = sorted((program, aggregate) for aggregate, program in compiler.asked)
    words = [words_of(*each) for each in zip(functions, numbers, (each.is_float for each in matched), strict=True)]
    return Readers(
        rows.machine(compiler),
        int64s(-1 if term is None else next(programs) for term in pattern.terms),
        int64s(aggregate for _, aggregate in asked),
        np.searchsorted(int64s(program for program, _ in asked), np.arange(len(compiler.results) + 1)),
        int64s(functions), int64s(numbers),
        int64s(ALL_ROWS if each.symbol is None else pattern.symbols.index(each.symbol) for each in matched),
        bools(each.is_float for each in matched), bools(each.source.is_narrow for each in matched),
        int64s(compiler.place_of(each) for each in matched), rows.valid(list(matched)),
        int64s(each.lacks for each in matched), int64s(each.digits for each in matched),
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
