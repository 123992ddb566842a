"""The cases of ``conformance/``: wincli answers all of them, and so do the references that are its second judge.

Their data speaks for other engines, too, so what it says of itself is checked: names, sources, and that no word of the
window language is without a case.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from support import conformance_judge
from support.docs_pages import rows_of
from support.places import ROOT
from wincli.conformance.adapters import wincli
from wincli.conformance.kit import (
    TYPES,
    UNKNOWN,
    Answer,
    Case,
    are_alike,
    is_alike,
    outcome_of,
    read_cases,
    read_outcomes,
    table_of,
)
from wincli.windowing.language import joins, parser
from wincli.windowing.language.aggregate_names import AGGREGATES
from wincli.windowing.language.options import WINDOW_OPTIONS
from wincli.windowing.rows.panes import CLOSED_BY

CASES = read_cases()
KINDS = list(dict.fromkeys(case.kind for case in CASES))
TEXT = "\n".join(case.spec["window"] for case in CASES)
NOT_OF_WINDOWS = {"sort_by", "operator", "max_open_rows"}
"""Options that do not say which rows are in a window, or are user's code."""
SKETCHES = {"approx_count_distinct", "approx_quantile", "hll_sketch", "kll_sketch"}
"""Aggregates whose answers are bytes or estimates."""


def of_kind(kind: str) -> list[Case]:
    return [case for case in CASES if case.kind == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_wincli_answers_every_case_in_its_order(kind: str) -> None:
    wrong = {case.name: outcome_of(case, wincli.answer).why for case in of_kind(kind)}
    assert {name: why for name, why in wrong.items() if why} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_the_references_say_what_the_data_says(kind: str) -> None:
    judged = [case for case in of_kind(kind) if case.judge == "reference"]
    wrong = [case.name for case in judged if not are_alike(conformance_judge.rows_of(case), case.answer)]
    assert wrong == []


def test_a_wrong_answer_is_not_taken_for_a_right_one() -> None:
    for case in CASES:
        for wrong in (
            case.answer[:-1],
            [*case.answer, case.answer[-1]] if case.answer else [[None] * len(case.columns)],
        ):
            if len(wrong) != len(case.answer):
                told = Answer(case.columns, wrong)
                assert outcome_of(case, lambda _, told=told: told).verdict == "differs", case.name


def test_what_is_alike() -> None:
    assert is_alike(1, 1.0)
    assert is_alike(0.1 + 0.2, 0.3)
    assert is_alike("1.50", "1.5")
    assert is_alike([1, None], [1, None])
    assert not any(
        is_alike(one, other)
        for one, other in [(1, 2), (1, True), (None, 0), ("a", "b"), ([1], [1, 1]), (1.0, 1.0001), ("1", 1), (1, None)]
    )


def test_there_are_many_cases_and_most_have_a_second_judge() -> None:
    judges = Counter(case.judge for case in CASES)
    assert set(judges) == {"reference", "hand"}
    assert judges["reference"] >= 300
    assert judges["hand"] < 0.1 * len(CASES)


def test_names_are_unique_and_what_cases_hold_is_of_the_form_that_the_page_says() -> None:
    for case in CASES:
        assert sum(other.name == case.name for other in of_kind(case.kind)) == 1, case.name
        assert all(kind in TYPES for table in (case.given, *case.tables.values()) for kind in table.columns.values())
        assert all(len(row) == len(case.given.columns) for row in case.given.rows), case.name
        assert all(len(row) == len(case.columns) for row in case.answer), case.name
        assert len({(case.spec["window"], repr(case)) for case in of_kind(case.kind)}) == len(of_kind(case.kind))
        for line in (case.rule, case.name):
            assert line == line.strip()
            assert not line.endswith("."), line


def test_no_two_cases_ask_the_same() -> None:
    asked = Counter(repr((case.spec, case.given, case.tables, case.marks, case.units)) for case in CASES)
    assert [
        case.name for case in CASES if asked[repr((case.spec, case.given, case.tables, case.marks, case.units))] > 1
    ] == []


def test_each_rule_stands_on_a_page() -> None:
    for case in CASES:
        page, _, anchor = case.source.partition(";")[0].partition("#")
        text = (ROOT / page).read_text(encoding="utf-8")
        headings = [
            re.sub(r"[^\w\- ]", "", line).strip().replace(" ", "-").lower()
            for line in re.findall(r"^#+ (.*)", text, re.M)
        ]
        assert not anchor or anchor in headings, (case.name, case.source)


# --- the language has no word without a case ----------------------------------------------------------------------


@pytest.mark.parametrize("word", [*parser.POLICIES, *parser.EVICTIONS, *parser.SETTINGS, *parser._KINDS])
def test_each_word_of_the_window_language_has_a_case(word: str) -> None:
    assert re.search(rf"\b{word}\b", TEXT, re.I), word


@pytest.mark.parametrize("evict", ["count", "delta", "time"])
@pytest.mark.parametrize("trigger", ["count", "delta", "time"])
def test_each_pair_of_sliding_policies_has_a_case(evict: str, trigger: str) -> None:
    assert re.search(rf"sliding, {evict}\([^)]*\), {trigger}\(", TEXT)


@pytest.mark.parametrize(
    "word", ["or", "every", "unique", "partition by", "prevailing", "overlapping", "partitioned", "->"]
)
def test_each_clause_has_a_case(word: str) -> None:
    assert f"{word} " in TEXT or f"{word}\n" in TEXT or f"{word})" in TEXT or f"{word}," in TEXT


@pytest.mark.parametrize("how", joins.HOWS)
def test_each_how_of_joins_has_a_case(how: str) -> None:
    asked: list[Any] = [joins.parse_join(case.spec["join"]).how for case in CASES if "join" in case.spec]
    assert how in asked


@pytest.mark.parametrize("name", [name for name in AGGREGATES if name not in SKETCHES])
def test_each_aggregate_has_a_case(name: str) -> None:
    assert any(re.search(rf"\b{name}\(", text) for case in CASES for text in (case.spec.get("agg") or {}).values())


@pytest.mark.parametrize("option", [each.attribute for each in WINDOW_OPTIONS if each.attribute not in NOT_OF_WINDOWS])
def test_each_option_of_windows_has_a_case(option: str) -> None:
    assert any(option in case.spec for case in CASES)


@pytest.mark.parametrize("reason", CLOSED_BY)
def test_each_close_reason_is_in_an_answer(reason: str) -> None:
    told = {
        row[case.columns.index("closed_by")] for case in CASES if "closed_by" in case.columns for row in case.answer
    }
    assert reason in told


# --- the table of the docs ----------------------------------------------------------------------------------------


ENGINES = {
    "wincli": "wincli", "duckdb": "DuckDB", "polars": "Polars", "pandas": "pandas", "spark": "Spark SQL",
    "flink": "Flink SQL",
}  # fmt: skip


def test_the_table_of_the_docs_is_that_of_the_outcomes_and_wincli_answers_all() -> None:
    rows = rows_of("comparison", "Conformance")
    outcomes = {title: read_outcomes(name) for name, title in ENGINES.items()}
    wanted = [line.strip("| ").split(" | ") for line in table_of(CASES, outcomes).splitlines()[2:]]
    assert rows == wanted
    for kind, count, own, *_ in rows:
        assert own == f"{count} / {count}", kind
    assert rows[-1][1] == str(len(CASES))


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "wincli"])
def test_each_outcome_is_of_a_case_and_has_a_reason(engine: str) -> None:
    outcomes = read_outcomes(engine)
    assert set(outcomes) <= {case.id for case in CASES}
    assert {outcome.verdict for outcome in outcomes.values()} == {"same", "differs", "cannot say"}
    reasons = [outcome.why for outcome in outcomes.values() if outcome.verdict != "same"]
    assert all(why and not why.startswith(UNKNOWN) for why in reasons)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas"])
def test_an_adapter_answers_as_it_did(engine: str) -> None:
    adapter = pytest.importorskip(f"wincli.conformance.adapters.{engine}")
    known = read_outcomes(engine)
    for case in CASES[::7]:
        assert outcome_of(case, adapter.answer).verdict == known[case.id].verdict, case.id
