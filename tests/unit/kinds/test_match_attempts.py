"""How far a start without a match comes, and what would have had to come there: the reference is asked row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from references.matches import find_matches
from support.random_patterns import PatternCase, pattern_cases
from support.strategies import examples
from wincli.windowing.kinds.matches.automaton import automaton_of
from wincli.windowing.kinds.matches.found import ANY_ROW, Rows
from wincli.windowing.kinds.matches.kind import attempt


def is_alive(case: PatternCase, start: int, bits: list[int]) -> bool:
    """Whether the start has a match in rows with these symbols, or may have one with rows to come."""
    clock, limit = case.rows.clock[start : start + len(bits)], case.rows.limit
    rows = Rows(np.array([0, len(bits)]), np.array(bits, np.uint64), clock, limit, clock[-1] if limit else 0)
    found = find_matches(case.pattern, rows)
    return bool(found.undecided[0] == 0) or 0 in found.row[found.bounds[:-1]]


@given(pattern_cases(most_rows=8, most_keys=1), st.integers(0, 7))
@examples(200)
def test_a_start_comes_as_far_as_rows_to_come_might_still_give_it_a_match(case: PatternCase, start: int) -> None:
    size, bits, clock = int(case.rows.bounds[1]), case.rows.symbols.tolist(), case.rows.clock
    if start >= size:
        return
    stop = int(np.searchsorted(clock, clock[start] + case.rows.limit)) if case.rows.limit else size
    alone = case.rows._replace(
        bounds=np.array([0, size - start]), symbols=case.rows.symbols[start:], clock=clock[start:]
    )
    found = find_matches(case.pattern, alone)
    if 0 in found.row[found.bounds[:-1]]:
        return
    tried = attempt(automaton_of(case.pattern), case.rows, None, start, stop)
    assert tried.is_open == (tried.row == stop)
    assert all(is_alive(case, start, bits[start:row]) for row in range(start + 1, tried.row + 1))
    if not tried.is_open:
        assert not is_alive(case, start, bits[start : tried.row + 1])
        assert ANY_ROW not in tried.symbols
        before, symbols = bits[start : tried.row], range(len(case.pattern.conditions))
        assert set(tried.symbols) == {s for s in symbols if is_alive(case, start, [*before, 1 << s])}
