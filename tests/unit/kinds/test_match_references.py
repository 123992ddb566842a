"""Laws of row patterns that hold of the reference itself: what follows from semantics section 15 without computing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from hypothesis import assume, given

from references.matches import find_matches
from support.pattern_texts import pattern_text, read_pattern
from support.random_patterns import PatternCase, pattern_cases
from support.strategies import examples
from wincli.windowing.kinds.matches.found import AT_END, BY_LIMIT, Matches, Rows
from wincli.windowing.language.patterns import Alternation, Concatenation, Pattern, Repetition, Symbol


def of_key(case: PatternCase, stop: int, now: float | None = None) -> Matches:
    """What the first rows of the first key alone have."""
    rows = case.rows
    some = Rows(
        np.array([0, stop]), rows.symbols[:stop], rows.clock[:stop], rows.limit, rows.now if now is None else now
    )
    return find_matches(case.pattern, some)


def decided(found: Matches) -> list[tuple[list[int], list[int], int, float]]:
    return [
        (
            found.row[low:high].tolist(),
            found.symbol[low:high].tolist(),
            int(by),
            limit.item() if by == BY_LIMIT else 0,
        )
        for low, high, by, limit in zip(found.bounds, found.bounds[1:], found.decided, found.limit, strict=False)
        if by != AT_END
    ]


@given(pattern_cases(most_rows=7, most_keys=1))
@examples(100)
def test_what_is_decided_stays_as_it_is_whatever_comes_and_comes_out_when_it_says(case: PatternCase) -> None:
    size = int(case.rows.bounds[1])
    whole = decided(of_key(case, size))
    for stop in range(size):
        now = case.rows.clock[stop - 1].item() if case.rows.limit and stop else 0
        early = decided(of_key(case, stop, now))
        assert early == whole[: len(early)]
        assert not any(0 <= by < stop for _, _, by, _ in whole[len(early) :])


@given(pattern_cases(most_rows=8, most_keys=1, waits=False))
@examples(100)
def test_what_is_taken_is_what_the_regular_expressions_of_python_take(case: PatternCase) -> None:
    """Of rows that each have one symbol, without a limit; the preference of ``re`` is the same."""
    pattern = replace(case.pattern, within=None)
    names = [name for name, _ in pattern.conditions]
    assume(names and not has_empty_rounds(pattern.pattern))
    letters = [names[int(bits) % len(names)] for bits in case.rows.symbols]
    rows = Rows(case.rows.bounds, np.array([1 << names.index(each) for each in letters], np.uint64), np.empty(0), 0, 0)
    found = find_matches(pattern, rows)
    text, compiled, at, wanted = "".join(letters), re.compile(as_text(pattern.pattern)), 0, []
    while at < len(text):
        match = compiled.match(text, at)
        taken = match.end() - at if match else 0
        if taken:
            wanted.append(list(range(at, at + taken)))
        at += 1 if pattern.is_overlapping or not taken else taken
    assert [found.row[low:high].tolist() for low, high in zip(found.bounds, found.bounds[1:], strict=False)] == wanted


def as_text(pattern: Pattern) -> str:
    return pattern_text(pattern).replace(" ", "").replace("(", "(?:")


def has_empty_rounds(pattern: Pattern) -> bool:
    """Whether something is repeated that may take no row: there Python has rules of its own."""
    match pattern:
        case Repetition(of):
            return re.compile(as_text(of)).match("") is not None or has_empty_rounds(of)
        case Concatenation(parts) | Alternation(parts):
            return any(map(has_empty_rounds, parts))
    return False


@given(pattern_cases(most_rows=0))
@examples(100)
def test_patterns_as_texts_are_read_again(case: PatternCase) -> None:
    assert pattern_text(read_pattern(pattern_text(case.pattern.pattern))) == pattern_text(case.pattern.pattern)
    assert read_pattern("a") == Symbol("a")
