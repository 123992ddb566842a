"""The matches of row patterns are those of backtracking row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from references import matches as reference
from support.pattern_texts import read_window
from support.random_patterns import PatternCase, pattern_cases
from support.strategies import examples
from wincli.windowing.kinds.matches.automaton import automaton_of, possible
from wincli.windowing.kinds.matches.found import AT_END, BY_LIMIT, Matches, Rows
from wincli.windowing.kinds.matches.passes import find_matches
from wincli.windowing.language.patterns import RowPattern


def same(found: Matches, wanted: Matches) -> None:
    by_limit = wanted.decided == BY_LIMIT
    for name in Matches._fields:
        one, other = (getattr(each, name) for each in (found, wanted))
        if name == "limit":
            one, other = one[by_limit], other[by_limit]
        assert one.tolist() == other.tolist(), name
        assert one.dtype == other.dtype, name


@given(pattern_cases(most_rows=10))
@examples(300)
def test_matches_and_what_decides_them_are_those_of_backtracking(case: PatternCase) -> None:
    found = find_matches(automaton_of(case.pattern), case.rows, case.pattern.is_overlapping)
    same(found, reference.find_matches(case.pattern, case.rows))


def rows_of(text: str, window: RowPattern, limit: int = 0) -> Rows:
    """Rows of one key, each with one letter; those that are no symbol are of none."""
    names = [name for name, _ in window.conditions]
    bits = np.array([1 << names.index(letter) if letter in names else 0 for letter in text], np.uint64)
    clock = np.arange(len(text)) if limit else np.empty(0, np.int64)
    return Rows(np.array([0, len(text)]), bits, clock, limit, len(text))


def find(window: RowPattern, rows: Rows) -> Matches:
    return find_matches(automaton_of(window), rows, window.is_overlapping)


def pattern(text: str) -> RowPattern:
    return read_window(f"match({text}, {', '.join(f'{name} = x = 1' for name in 'abc' if name in text)})")


@pytest.mark.parametrize(
    ("text", "rows", "taken"),
    [
        ("a b+ c?", "abbcab", "abbc ab"),
        ("a b+? c?", "abbcab", "ab ab"),
        ("a -> b c", "abxbc", ""),
        ("a .*? b c", "abxbc", "abxbc"),
        ("a . c | b", "abc", "abc"),
        ("b*", "aab", "b"),
        ("a -> b+ -> c", "axbbybc", "abbc"),
        ("a (-> b)+ -> c", "axbbybc", "abbbc"),
        ("a -> b", "aabb", "ab"),
    ],
)
def test_matches_are_those_of_the_semantics(text: str, rows: str, taken: str) -> None:
    window = pattern(text)
    found = find(window, rows_of(rows, window))
    letters = ["".join(rows[row] for row in part) for part in np.split(found.row, found.bounds[1:-1])]
    assert " ".join(filter(None, letters)) == taken


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("(a??)* b", "b a"),  # the round without a row is preferred, and is the last
        ("(a?)* b", "a b"),
        ("((a?)*)* b", "a b"),
        ("(a* b*)* c", "a b c"),
        ("(a | b*)*? c", "c a b"),
        ("a* | b", "a end"),
        ("-> a b", "a"),  # nothing is passed over before the first row
        ("(-> (-> a | b))? c", "a b c"),
        ("a?? -> b", "b a"),
        ("(a{2,3}){2}", "a"),
    ],
)
def test_begins_of_matches_are_in_the_order_of_preference(text: str, begins: str) -> None:
    window = pattern(text)
    automaton = automaton_of(window)
    names = [name for name, _ in window.conditions]
    nodes = automaton.behind(automaton.end)
    assert " ".join("end" if node == automaton.end else names[automaton.symbol[node]] for node in nodes) == begins


def test_a_wait_ends_with_the_rows_by_which_what_follows_can_begin() -> None:
    automaton = automaton_of(pattern("a -> (b? -> c)"))
    assert automaton.symbol.tolist() == [0, 1, 2]
    assert automaton.accept.tolist() == [1, 2, 4, 6, 4]
    assert [automaton.behind(node) for node in range(6)] == [[3], [4], [5], [1, 2], [2], [0]]
    assert automaton_of(pattern("a -> .")).accept.tolist() == [1, 0, 0]


MANY = " | ".join(f"a {one} {two} (-> {three})?" for one in "abc" for two in "abc" for three in "cba")


@pytest.mark.parametrize("text", ["a{1,70} b", "a{62}", "a{63}", "a{64} c?", "(a | b){64,66}? c", "a (-> b){70}", MANY])
@pytest.mark.parametrize("limit", [0, 90, 200])
def test_patterns_have_more_places_than_bits_of_a_word(text: str, limit: int) -> None:
    window = pattern(text)
    rows = rows_of("c" + "ab" * 32 + "c" + "a" * 72 + "b" * 75 + "ac" + "ab" * 33 + "c", window, limit)
    same(find(window, rows), reference.find_matches(window, rows))


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("text", ["a b* c", "a (-> b (-> c)?)?", "a+ b", "(a | b)+? c"])
def test_rows_of_one_key_are_more_than_those_of_a_block(text: str, overlapping: bool) -> None:
    random = np.random.default_rng(42)
    window, size = replace(pattern(text), is_overlapping=overlapping), 9_000
    steps = random.choice([0, 1, 2, 3], size)
    steps[5_000:6_000] = 0  # a limit with more rows than those before it
    bits = np.uint64(1) << random.integers(0, 4, size).astype(np.uint64)
    bits[5_000:6_000] = 0
    rows = Rows(np.array([0, size]), bits, np.cumsum(steps), 6, int(steps.sum()) + 3)
    same(find(window, rows), reference.find_matches(window, rows))


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("text", ["a b* c", "a+ -> b -> c", "a+ b | a", "a (b .*)? c?", "(a b)+? c | a b"])
def test_a_limit_behind_all_rows_changes_nothing(text: str, overlapping: bool) -> None:
    random = np.random.default_rng(7)
    window, sizes = replace(pattern(text), is_overlapping=overlapping), random.integers(0, 60, 100)
    sizes[50] = 5_000  # more than a block
    bounds = np.append(0, np.cumsum(sizes))
    bits = random.integers(0, 8, bounds[-1]).astype(np.uint64)
    without = find(window, Rows(bounds, bits, np.empty(0, np.int64), 0, 0))
    clock = np.sort(random.integers(0, 100, bounds[-1]))  # ascends over all keys, and so in each
    same(find(window, Rows(bounds, bits, clock, 1_000, 100)), without)
    assert len(without.key) > 100
    assert (without.decided == AT_END).any()


def test_rows_are_possible_where_a_symbol_is_true_or_any_row_may_be_taken() -> None:
    window = pattern("a b c")
    rows = rows_of("abxc", window)
    assert possible(automaton_of(window), rows).tolist() == [True, True, False, True]
    assert possible(automaton_of(pattern("a . b c")), rows).all()
