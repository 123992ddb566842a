"""Conditions that read matched rows: the threads against backtracking, row at a time."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.matched_rows import Place, condition, reads_matches, value
from references.matches import Condition, Holds, Taken, find_by
from references.tumbling import Row
from support.pattern_texts import read_window
from support.random_patterns import PatternCase, pattern_cases, patterns, reading_patterns, value_rows
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.kinds.matches import passes
from wincli.windowing.kinds.matches.automaton import automaton_of
from wincli.windowing.kinds.matches.found import AT_END, BY_LIMIT, Matches, Rows
from wincli.windowing.kinds.matches.kind import attempt
from wincli.windowing.kinds.matches.matched import readers_of
from wincli.windowing.kinds.matches.threads import find_matches
from wincli.windowing.language.operands import operand_column
from wincli.windowing.language.patterns import RowPattern
from wincli.windowing.rows.sequence import Sequences

SCHEMA = pa.schema([("x", pa.int64()), ("f", pa.float64()), ("s", pa.string())])


def sequences_of(pattern: RowPattern, rows: Rows, values: list[Row]) -> Sequences:
    """The rows with the values of the expressions that conditions ask of single rows."""
    batch = pa.RecordBatch.from_pylist(values, SCHEMA)
    for operand in pattern.operands:
        if isinstance(operand, str):
            continue
        found: list[object] = []
        for low, high in pairwise(rows.bounds.tolist()):
            places = [Place(values[low:high], row, (), frozenset()) for row in range(high - low)]
            found += [value(operand.root, place) for place in places]
        dtype = pa.int64() if operand.root.kind in {"sum", "product", "call"} else pa.bool_()
        batch = batch.append_column(operand_column(operand), pa.array(found, dtype))
    return Sequences(None, rows.bounds, batch, np.arange(len(values)), (), None)


def found_by_threads(pattern: RowPattern, rows: Rows, values: list[Row], to_the_end: bool = True) -> Matches:
    readers = readers_of(pattern, sequences_of(pattern, rows, values))
    assert readers is not None
    return find_matches(
        automaton_of(pattern), rows, readers, pattern.is_overlapping, lambda row: f"row {row}", to_the_end
    )


def told(found: Matches) -> list[object]:
    """All fields as lists; a limit counts only where it decides."""
    by_limit = found.decided == BY_LIMIT
    plain = found._replace(limit=np.where(by_limit, found.limit, 0)) if len(by_limit) else found
    return [np.asarray(each).tolist() for each in plain]


@st.composite
def reading_cases(draw: st.DrawFn) -> tuple[PatternCase, list[Row], dict[str, str]]:
    """Patterns with rows; the bits of conditions that read matched rows are set, or they may not be true at all."""
    pattern, texts = draw(reading_patterns().filter(lambda drawn: any(map(reads_matches, drawn[1].values()))))
    case = draw(pattern_cases(most_rows=8, most_keys=2).map(lambda case: case.rows))
    if pattern.within is None:
        case = case._replace(limit=0)
    elif not case.limit:
        pattern = replace(pattern, within=None)
    size = len(case.symbols)
    values = draw(value_rows(size))
    bits = np.zeros(size, np.uint64)
    for key in range(len(case.bounds) - 1):
        low, high = case.bounds[key : key + 2]
        for number, (name, text) in enumerate(texts.items()):
            holds = condition(text, list(texts))
            for row in range(low, high):
                is_true = reads_matches(text) or holds(values[low:high], row - low, ((row - low, name),))
                bits[row] |= np.uint64(int(is_true) << number)
    return PatternCase(pattern, case._replace(symbols=bits)), values, texts


def backtracked(case: PatternCase, values: list[Row], texts: dict[str, str]) -> Matches:
    conditions: dict[str, Condition] = {name: condition(text, list(texts)) for name, text in texts.items()}

    def holds_of(first: int, stop: int) -> Holds:
        def holds(name: str, row: int, taken: Taken) -> bool:
            return conditions[name](values[first:stop], row, (*taken, (row, name)))

        return holds

    return find_by(case.pattern, case.rows, holds_of)


@given(reading_cases())
@examples(300)
def test_threads_find_what_backtracking_finds(drawn: tuple[PatternCase, list[Row], dict[str, str]]) -> None:
    case, values, texts = drawn
    wanted = told(backtracked(case, values, texts))
    assert told(found_by_threads(case.pattern, case.rows, values)) == wanted
    early = found_by_threads(case.pattern, case.rows, values, to_the_end=False)
    assert [int(by) for by in wanted[4] if by != AT_END] == early.decided.tolist()  # type: ignore[attr-defined]
    assert early.undecided.tolist() == wanted[-1]


@given(reading_cases())
@examples(100)
def test_a_start_without_a_match_comes_as_far_as_backtracking_leaves_it_undecided(
    drawn: tuple[PatternCase, list[Row], dict[str, str]],
) -> None:
    case, values, texts = drawn
    size, clock = int(case.rows.bounds[1]), case.rows.clock
    stop = int(np.searchsorted(clock[:size], clock[0] + case.rows.limit)) if size and case.rows.limit else size

    def is_open(count: int) -> bool:
        now = clock[count - 1] if case.rows.limit else 0
        some = Rows(np.array([0, count]), case.rows.symbols[:count], clock[:count], case.rows.limit, now)
        return bool(backtracked(replace(case, rows=some), values[:count], texts).undecided[0] == 0)

    found = backtracked(case, values, texts)
    if not size or 0 in found.row[found.bounds[:-1]]:
        return
    readers = readers_of(case.pattern, sequences_of(case.pattern, case.rows, values))
    assert readers is not None
    tried = attempt(automaton_of(case.pattern), case.rows, readers, 0, stop)
    assert tried.is_open == (tried.row == stop)
    assert all(is_open(count) for count in range(1, tried.row + 1))
    assert tried.is_open or not is_open(tried.row + 1)


@given(
    patterns().filter(lambda drawn: drawn.conditions),
    st.integers(0, 2**32),
    st.sampled_from([0, 3, 40, 150, 1000]),
    st.sampled_from([0.02, 0.2, 0.6]),
)
@examples(300)
def test_starts_that_wait_long_find_together_what_the_lane_of_columns_finds(
    pattern: RowPattern, seed: int, limit: int, density: float
) -> None:
    rng, names = np.random.default_rng(seed), [name for name, _ in pattern.conditions]
    sizes = rng.integers(100, 400, 2)
    size = int(sizes.sum())
    bits = np.zeros(size, np.uint64)
    for number in range(len(names)):
        bits |= (rng.random(size) < density).astype(np.uint64) << np.uint64(number)
    clock = np.concatenate([np.cumsum(rng.integers(0, 3, each)) for each in sizes])
    rows = Rows(np.append(0, np.cumsum(sizes)), bits, clock if limit else clock[:0], limit, int(clock.max()))
    # true for all rows, of ways with the same few values, and with others in each
    texts = {name: rng.choice(["max(x) >= 0", "max(x) >= 0", "count() > 0"]) for name in names}
    reading = replace(pattern, conditions=tuple((name, parse_expression(text)) for name, text in texts.items()))
    values: list[Row] = [{"x": int(x)} for x in rng.integers(0, 4, size)]
    wanted = told(passes.find_matches(automaton_of(pattern), rows, pattern.is_overlapping))
    assert told(found_by_threads(reading, rows, values)) == wanted


def test_ways_of_all_starts_that_read_the_same_values_are_gone_once() -> None:
    pattern = read_window("match(a -> b, a = true, b = x > last(a.x) + 9)")
    values: list[Row] = [{"x": row % 10} for row in range(20_000)]
    found_by_threads(pattern, rows_of(10), values[:10])  # compiles
    started = time.process_time()
    assert found_by_threads(pattern, rows_of(20_000), values).undecided.tolist() == [0]
    assert time.process_time() - started < 20, "it takes 1 s, and 80 s where each start goes alone"


def rows_of(size: int) -> Rows:
    return Rows(np.array([0, size]), np.full(size, 2**64 - 1, np.uint64), np.empty(0, np.int64), 0, 0)


def test_an_integer_beyond_64_bits_is_an_error_that_names_the_row() -> None:
    pattern = read_window("match(a+ b, a = true, b = sum(x) > 0)")
    values: list[Row] = [{"x": 2**62}, {"x": 2**62 - 1}, {"x": 5}]
    assert found_by_threads(pattern, rows_of(2), values[:2]).row.tolist() == [0, 1]
    with pytest.raises(DataError, match="does not fit 64 bits at row 2"):
        found_by_threads(pattern, rows_of(3), values)


def test_too_many_open_ways_are_an_error_that_names_the_row() -> None:
    pattern = read_window("match((a | b)* c, a = true, b = true, c = sum(a.x) < 0)")
    values: list[Row] = [{"x": 2**row} for row in range(14)]
    assert len(found_by_threads(pattern, rows_of(12), values[:12]).row) == 0
    with pytest.raises(DataError, match=r"more than 10,000 ways .* at row 13"):
        found_by_threads(pattern, rows_of(14), values)


def test_different_ways_of_all_open_starts_count() -> None:
    pattern = read_window("match((a | b)+ c, a = true, b = true, c = count(a) + count(b) < 0)")
    values: list[Row] = [{"x": 0}] * 200
    assert len(found_by_threads(pattern, rows_of(40), values[:40]).row) == 0
    with pytest.raises(DataError, match=r"more than 10,000 ways .* at row \d+"):
        found_by_threads(pattern, rows_of(200), values)
