"""Random row patterns, and rows whose symbols, clocks and keys are random."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import strategies as st

from references.matches import prefers_no_row, symbols_of
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.kinds.matches.found import Rows
from wincli.windowing.language.patterns import (
    Alternation,
    Concatenation,
    FollowedBy,
    Pattern,
    Repetition,
    RowPattern,
    Symbol,
)

NAMES = "abc"
ROUNDS: list[tuple[int, int | None]] = [(0, 1), (0, None), (1, None), (2, 2), (0, 2), (1, 3), (2, None), (3, None)]


@dataclass(frozen=True, slots=True)
class PatternCase:
    """A pattern, and rows for it: their symbols are bits, and so no condition reads matched rows."""

    pattern: RowPattern
    rows: Rows


def trees(waits: bool = True, any_row: bool = True, leaves: int = 5) -> st.SearchStrategy[Pattern]:
    """Trees of patterns that do not prefer to take no row. ``waits``: whether they may have ``->``."""
    symbols = st.sampled_from([*NAMES, *NAMES, *([None] if any_row else [])])

    def larger(of: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
        parts = st.lists(of, min_size=2, max_size=3).map(tuple)
        found = [
            st.builds(Concatenation, parts), st.builds(Concatenation, parts), st.builds(Alternation, parts),
            st.builds(lambda part, rounds, slow: Repetition(part, *rounds, slow), of, st.sampled_from(ROUNDS),
                      st.booleans()),
        ]  # fmt: skip
        return st.one_of(*found, *([st.builds(FollowedBy, of)] * waits))

    drawn = st.recursive(st.builds(Symbol, symbols), larger, max_leaves=leaves)
    return drawn.filter(lambda tree: not prefers_no_row(tree))


@st.composite
def patterns(draw: st.DrawFn, waits: bool = True, any_row: bool = True) -> RowPattern:
    """Patterns whose symbols are ``true`` in their own columns, ``is_a = true`` for the symbol a."""
    tree = draw(trees(waits, any_row))
    names = sorted(name for name in symbols_of(tree) if name is not None)
    conditions = tuple((name, parse_expression(f"is_{name} = true")) for name in draw(st.permutations(names)))
    within = draw(st.sampled_from([None, Fraction(1), Fraction(2), Fraction(4), Fraction(9)]))
    return RowPattern(tree, conditions, within, draw(st.booleans()))


@st.composite
def pattern_cases(draw: st.DrawFn, most_rows: int = 10, most_keys: int = 3, waits: bool = True) -> PatternCase:
    """Patterns with rows of a few keys, some without any; clocks that stand still, and floats."""
    pattern = draw(patterns(waits))
    sizes = draw(st.lists(st.integers(0, most_rows), min_size=1, max_size=most_keys))
    full = (1 << len(pattern.conditions)) - 1
    of_rows = st.lists(st.integers(0, full), min_size=sum(sizes), max_size=sum(sizes))
    bits = np.array(draw(of_rows), np.uint64)
    bounds = np.array([0, *accumulate(sizes)], np.int64)
    if pattern.within is None:
        return PatternCase(pattern, Rows(bounds, bits, np.empty(0, np.int64), 0, 0))
    clock, limit, now = _clocks(draw, sizes, pattern.within)
    return PatternCase(pattern, Rows(bounds, bits, clock, limit, now))


def _clocks(draw: st.DrawFn, sizes: list[int], within: Fraction) -> tuple[Any, Any, Any]:
    """The clock of each row, the limit, and where the clock stands behind all rows."""
    times: list[int] = []
    for size in sizes:
        steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2, 3, 7]), min_size=size, max_size=size))
        times += accumulate(steps)
    now = max(times, default=0) + draw(st.sampled_from([0, 0, 1, 5]))
    if draw(st.booleans()):
        return np.array(times, np.int64), int(within), now
    return np.array(times, np.float64) / 4, float(within) / 4, now / 4


PLAIN = ["true", "x > 1", "s = 'p'", "f < 0.5", "x is null", "x <= 1 or s = 'q'"]
READING = [
    "x >= mean(x)", "sum(N.x) < 5", "coalesce(sum(N.x), 0) <= 3", "count(N) <= 2", "count() < 4", "mean(N.x) = 1",
    "x > nth(x, -2) or nth(x, -2) is null", "f > first(N.f)", "sum(f) < 1", "mean(N.f) >= f", "min(x) >= 0",
    "max(N.f) > 1", "range(x) <= 2", "s = last(N.s)", "s <> first(s) or s is null", "nth(x, 1) = x or count() < 2",
    "x - first(x) in (0, 1)", "x between min(N.x) and max(N.x)", "count(N.x) < 2", "range(N.f) < 2",
    "nth(N.s, -3) is null", "sum(x) / count() < 2", "least(last(N.x), 2) >= x", "not (nth(N.f, 1) > 0.25)",
    "s = 'p' and x > last(N.x)", "max(N.s) is not distinct from s", "x < 3 or first(N.x) is null",
]  # fmt: skip
"""Conditions; N is the name of a symbol."""


@st.composite
def reading_patterns(draw: st.DrawFn) -> tuple[RowPattern, dict[str, str]]:
    """Patterns of which some conditions read matched rows, and their texts."""
    pattern = draw(patterns())
    names = [name for name, _ in pattern.conditions]
    texts = {
        name: draw(st.sampled_from(PLAIN) | st.sampled_from(READING)).replace("N.", f"{draw(st.sampled_from(names))}.")
        for name in names
    }
    texts = {name: text.replace("(N)", f"({draw(st.sampled_from(names))})") for name, text in texts.items()}
    return replace(pattern, conditions=tuple((name, parse_expression(text)) for name, text in texts.items())), texts


@st.composite
def value_rows(draw: st.DrawFn, size: int) -> list[dict[str, Any]]:
    """Rows with integers, floats and texts, of which some are null."""
    values: dict[str, list[Any]] = {
        "x": [None, -1, 0, 1, 1, 2, 3], "s": [None, "p", "p", "q", "r"],
        "f": [None, 0.1, 0.2, 0.3, 1e16, -1e16, 0.0, -0.0, 0.5, 1.5, math.nan, math.inf, -math.inf],
    }  # fmt: skip
    row = st.fixed_dictionaries({name: st.sampled_from(each) for name, each in values.items()})
    return draw(st.lists(row, min_size=size, max_size=size))
