"""Row patterns: texts read as their values and back, and what follows from a pattern alone (section 15)."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.spec_errors import message
from wincli.windowing.expressions.nodes import Node
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.pattern_parser import MOST_LEVELS, MOST_PLACES, MOST_SYMBOLS
from wincli.windowing.language.patterns import (
    Alternation,
    Concatenation,
    FollowedBy,
    Pattern,
    Repetition,
    RowPattern,
    Symbol,
    funnel_of,
    parts_within,
    places_of,
    prefers_nothing,
)
from wincli.windowing.language.programs import Aggregate, Literal, Operation, Value, terms
from wincli.windowing.language.sentences import caution_of

A, B, C, DOT = Symbol("a"), Symbol("b"), Symbol("c"), Symbol(None)


def pattern_of(text: str) -> Pattern:
    """Read a pattern alone: each symbol gets a condition."""
    names = [name for name in "abcdefgh" if name in text]
    spec = parse_window(f"match({text}, {', '.join(f'{name} = x = {at}' for at, name in enumerate(names))})")
    assert isinstance(spec, RowPattern)
    return spec.pattern


@pytest.mark.parametrize(
    ("text", "pattern", "canonical"),
    [
        ("a", A, "a"),
        ("(a)(b)(a)", Concatenation((A, B, A)), "a b a"),
        ("a b|c|a", Alternation((Concatenation((A, B)), C, A)), "a b | c | a"),
        ("(a|b)|c", Alternation((A, B, C)), "a | b | c"),
        ("((a b) c)(a b)", Concatenation((A, B, C, A, B)), "a b c a b"),
        ("(a | b) .", Concatenation((Alternation((A, B)), DOT)), "(a | b) ."),
        (
            "a? . * b+",
            Concatenation((Repetition(A, 0, 1), Repetition(DOT, 0, None), Repetition(B, 1, None))),
            "a? .* b+",
        ),
        ("a?? .*? b+?", None, "a?? .*? b+?"),
        ("a{2} b{2,} c{,3} a{2,3}", None, "a{2} b{2,} c{,3} a{2,3}"),
        ("a { 2 , } b{1} c{1,1}?", Concatenation((Repetition(A, 2, None), B, C)), "a{2,} b c"),
        ("a{0,1} b{0,} c{1,} a{0,4} b{2}? c{2,2}", None, "a? b* c+ a{,4} b{2} c{2}"),
        ("a{2,3}? (a b)+ (a+)+", None, "a{2,3}? (a b)+ (a+)+"),
        ("a -> b", Concatenation((A, FollowedBy(B))), "a -> b"),
        ("->a->b", Concatenation((FollowedBy(A), FollowedBy(B))), "-> a -> b"),
        ("a -> b+ (-> c)+", None, "a -> b+ (-> c)+"),
        ("-> (b | c) -> (a b) -> (-> c)", None, "-> (b | c) -> (a b) -> (-> c)"),
        ("a-> b | c", Alternation((Concatenation((A, FollowedBy(B))), C)), "a -> b | c"),
    ],
)
def test_a_pattern_reads_as_its_value_and_has_one_text(text: str, pattern: Pattern | None, canonical: str) -> None:
    found = pattern_of(text)
    assert pattern is None or found == pattern
    assert str(found) == canonical
    assert pattern_of(canonical) == found


def test_a_match_has_conditions_a_limit_and_options() -> None:
    spec = parse_window('MATCH(b "my a", "my a" = x > \',)\', b=ok) WITHIN 1.5m, partitioned, Overlapping')
    conditions = (("my a", parse_expression("x > ',)'")), ("b", parse_expression("ok")))
    assert spec == RowPattern(Concatenation((B, Symbol("my a"))), conditions, Fraction(90), True, True)
    assert str(spec) == 'match(b "my a", "my a" = x > \',)\', b = ok) within 90, overlapping, partitioned'
    assert parse_window(str(spec)) == spec


def test_a_funnel_is_a_pattern_and_stays_a_funnel() -> None:
    spec = parse_window("funnel(a = x = 1, b = x = 2, c = x = 3) within 30m, overlapping")
    assert isinstance(spec, RowPattern)
    assert str(spec) == "funnel(a = x = 1, b = x = 2, c = x = 3) within 1800, overlapping"
    assert spec.pattern == pattern_of("a (-> b (-> c)?)?")
    assert (spec.is_funnel, spec.symbols, spec.has_waits) == (True, ("a", "b", "c"), True)
    assert parse_window(str(spec)) == spec
    assert funnel_of(("a",)) == A


def test_conditions_need_columns_or_their_parts_where_they_read_matched_rows() -> None:
    spec = parse_window(
        "match(a b c, a = ok, b = x > lag(x) and y, c = last(a.x + 1) > nth(y, -2) and x in (count(a), sum(y)))"
    )
    assert isinstance(spec, RowPattern)
    assert [str(each) for each in spec.operands] == ["ok", "x > lag(x) AND y", "x + 1", "y", "x"]
    assert [term is None for term in spec.terms] == [True, True, False]
    assert spec.columns == ("ok", "=x > lag(x) AND y", None)
    found = [each for each in terms(spec.terms[2]) if isinstance(each, Aggregate)]  # type: ignore[arg-type]
    assert [(each.function, str(each.argument), each.symbol, each.number) for each in found] == [
        ("last", "x + 1", "a", 0),
        ("nth", "y", None, -2),
        ("count", "None", "a", 0),
        ("sum", "y", None, 0),
    ]


def test_aggregates_of_conditions_have_their_own_names() -> None:
    spec = parse_window("match(a, a = AVG(x + avg) > average(a.y))")
    assert str(spec) == "match(a, a = mean(x + avg) > mean(a.y))"
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("count(a) between x and 3", "count(a) >= x and count(a) <= 3"),
        ("sum(x) not between 1 and x", "not (sum(x) >= 1 and sum(x) <= x)"),
        ("count(a) in (1, x, 3)", "count(a) = 1 or count(a) = x or count(a) = 3"),
        ("x not in (last(a.x))", "not (x = last(a.x))"),
    ],
)
def test_ranges_and_lists_are_comparisons(condition: str, same: str) -> None:
    """Each as the tree of the other, but for where its parts stand in the text."""

    def shape(term: object) -> object:
        if isinstance(term, Operation):
            return term.sign, [shape(each) for each in term.operands]
        return term if isinstance(term, Literal | Value) else replace(term, node=Node("constant"))  # type: ignore[type-var]

    one, other = (parse_window(f"match(a, a = {each})") for each in (condition, same))
    assert isinstance(one, RowPattern)
    assert isinstance(other, RowPattern)
    assert shape(*one.terms) == shape(*other.terms)


# Laws: what follows from a pattern, against all ways through it, one by one.

leaves = st.sampled_from([A, B, DOT])


def _repeated(of: Pattern, least: int, more: int | None, is_reluctant: bool) -> Pattern:
    most = None if more is None else max(1, least + more)
    return of if least == most == 1 else Repetition(of, least, most, is_reluctant and least != most)


def _chained(kind: type[Concatenation | Alternation], parts: list[Pattern]) -> Pattern:
    flat = [each for part in parts for each in (part.parts if isinstance(part, kind) else (part,))]
    return kind(tuple(flat))


patterns = st.recursive(
    leaves,
    lambda inner: (
        st.builds(lambda parts: _chained(Concatenation, parts), st.lists(inner, min_size=2, max_size=3))
        | st.builds(lambda parts: _chained(Alternation, parts), st.lists(inner, min_size=2, max_size=3))
        | st.builds(_repeated, inner, st.integers(0, 2), st.none() | st.integers(0, 2), st.booleans())
        | st.builds(FollowedBy, inner)
    ),
    max_leaves=5,
)


def paths(pattern: Pattern, rows: int) -> Iterator[int]:
    """Yield how many of so many rows each way through a pattern takes, the preferred first; each row is anything."""
    match pattern:
        case Symbol():
            yield from [1] if rows else []
        case FollowedBy():
            yield from filter(None, paths(pattern.of, rows))
        case Alternation():
            for part in pattern.parts:
                yield from paths(part, rows)
        case Concatenation():
            first, *rest = pattern.parts
            for taken in paths(first, rows):
                left = rows - taken
                yield from (taken + more for more in (paths(_rest(rest), left) if rest else [0]))
        case Repetition():
            yield from _rounds(pattern, pattern.least, pattern.most, rows)


def _rest(parts: list[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _rounds(pattern: Repetition, least: int, most: int | None, rows: int) -> Iterator[int]:
    if least:
        for taken in paths(pattern.of, rows):
            yield from (taken + more for more in _rounds(pattern, least - 1, most and most - 1, rows - taken))
        return
    stop = [0]
    if pattern.is_reluctant or most == 0:
        yield from stop
    if most != 0:
        for taken in paths(pattern.of, rows):
            left = None if most is None else most - 1
            again = _rounds(pattern, 0, left, rows - taken) if taken or most is not None else iter(stop)
            yield from (taken + more for more in again)
    if not pattern.is_reluctant and most != 0:
        yield from stop


@given(patterns)
def test_the_first_of_all_ways_through_a_pattern_says_whether_it_prefers_to_take_no_row(pattern: Pattern) -> None:
    assert prefers_nothing(pattern) == (next(paths(pattern, 100)) == 0)


@given(patterns, st.booleans())
def test_any_pattern_reads_back_from_its_text(pattern: Pattern, is_overlapping: bool) -> None:
    if prefers_nothing(pattern) or places_of(pattern) > MOST_PLACES:
        return
    names = dict.fromkeys(each.name for each in parts_within(pattern) if isinstance(each, Symbol) and each.name)
    spec = RowPattern(
        pattern, tuple((name, parse_expression(f"x > {name}1")) for name in names), None, is_overlapping, False
    )
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "count"), [("a b | .", 3), ("a{3} b?", 4), ("a+ b*", 3), ("(a b{2}){2,}", 9), ("b -> a{1,4}", 5)]
)
def test_places_are_those_of_the_pattern_written_out(text: str, count: int) -> None:
    assert places_of(pattern_of(text)) == count


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("match(a b+, a = x, b = y)", False),
        ("match(a -> b, a = x, b = y)", True),
        ("match(a -> b, a = x, b = y) within 5", False),
        ("match(a .*? b, a = x, b = y)", True),
        ("match(a b* a, a = x, b = true)", True),
        ("match((a | .)+, a = x)", True),
        ("match((a .)+, a = x)", False),
        ("match(a .{3}, a = x)", False),
        ("funnel(a = x, b = y) within 5", False),
    ],
)
def test_a_pattern_that_any_rows_keep_open_is_known(text: str, may: bool) -> None:
    spec = parse_window(text)
    assert isinstance(spec, RowPattern)
    assert (spec.may_stay_open, caution_of(spec) is not None) == (may, may)


# Limits


def test_a_pattern_has_64_symbols_1000_places_and_100_levels_and_no_more() -> None:
    def symbols(count: int) -> str:
        names = [f"s{at}" for at in range(count)]
        return f"match({' '.join(names)}, {', '.join(f'{name} = x = 1' for name in names)})"

    assert len(parse_window(symbols(MOST_SYMBOLS)).symbols) == MOST_SYMBOLS  # type: ignore[union-attr]
    assert message(parse_window, symbols(MOST_SYMBOLS + 1)).startswith("a pattern has at most 64 symbols")
    steps = ", ".join(f"s{at} = x = 1" for at in range(MOST_SYMBOLS + 1))
    assert message(parse_window, f"funnel({steps}) within 5").startswith("a pattern has at most 64 symbols")
    assert places_of(pattern_of(f"a{{{MOST_PLACES // 2}}} b{{,{MOST_PLACES // 2}}}")) == MOST_PLACES
    for text in (
        f"a{{{MOST_PLACES}}} b",
        f"a | b{{{MOST_PLACES}}}",
        f"a{{{MOST_PLACES},}} b?",
        f"(a{{9}}){{{10**9}}} b",
    ):
        assert message(parse_window, f"match({text}, a = x, b = y)").startswith("a pattern has at most 1,000 symbols")
    deep = "(" * MOST_LEVELS + "a" + ")" * MOST_LEVELS
    assert pattern_of(deep) == A
    assert message(parse_window, f"match(({deep}), a = x)").startswith("a pattern is nested more than 100 levels")
