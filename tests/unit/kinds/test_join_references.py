"""The reference of joins by the examples of the semantics (section 16), by hand, and over nights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from references.joins import Join, Lot, Night, Sides, sides
from references.tumbling import Row
from support.join_cases import ALL, Case, by_reference, is_answer, lots_of


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in ALL])
def test_the_reference_has_the_answer_of_the_case(case: Case) -> None:
    found = by_reference(case)
    assert is_answer(case, found), (found, case["expect"]["rows"])


def rows(*times: Any, key: Any = 0) -> list[Row]:
    """Rows of one key whose names are their times, or names and times."""
    named = [time if isinstance(time, tuple) else (time, time) for time in times]
    return [{"k": key, "t": t, "id": name} for name, t in named]


def both(*nights: Night, **join: Any) -> Sides:
    columns = ["k", "t", "id"]
    told = {
        "name": "r",
        "orders": [("t", "t")],
        "keys": [("k", "k")],
        "left_columns": columns,
        "right_columns": columns,
    }
    return sides(nights, Join(**(told | join)))


def named(lots: Sequence[Lot]) -> list[tuple[Any, ...]]:
    """When a lot comes out and the names of its pairs."""
    name = lambda event, side: event and getattr(event, side)["id"]  # noqa: E731
    return [(lot.at, *((name(a, "left"), name(b, "right")) for a, b in lot.pairs)) for lot in lots]


def counts(window: str, *inputs: list[Row]) -> dict[Any, int]:
    return {lot.pairs[0][0].left["id"]: len(lot.pairs) for lot in lots_of(both(inputs), window, "rows")}  # type: ignore


def test_around_counts_as_in_the_example() -> None:
    assert counts("around(2, 1)", rows(1, 4, 8), rows(1, 2, 3, 5, 9)) == {1: 2, 4: 3, 8: 1}


def test_a_prevailing_row_comes_first_unless_one_stands_exactly_there() -> None:
    assert named(lots_of(both((rows(5), rows(1, 2, 6))), "around(1, 1, prevailing)", "rows")) == [
        (None, (5, 2), (5, 6))
    ]
    exactly = rows(1, ("a", 4), ("b", 4), 6)
    assert named(lots_of(both((rows(5), exactly)), "around(1, 1, prevailing)", "rows")) == [
        (None, (5, "a"), (5, "b"), (5, 6))
    ]


def test_a_row_without_a_partner_comes_out_when_it_can_have_none() -> None:
    log = rows(("l", 1), 30), rows(("x", 10), ("y", 40))
    found = lots_of(both(log, how="full"), "around(2, 5)", "rows")
    assert [(lot.at, lot.turn, lot.start, lot.end) for lot in found] == [
        (6, 2, -1, 6), (12, 2, 5, 12), (35, 2, 28, 35), (None, None, 35, 42)
    ]  # fmt: skip
    assert named(found) == [(6, ("l", None)), (12, (None, "x")), (35, (30, None)), (None, (None, "y"))]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(3, ("L2", "R"))]),
        ("left", [(3, ("L2", "R")), (4, ("L1", None)), (None, ("L3", None))]),
        ("semi", [(3, ("L2", None))]),
        ("anti", [(4, ("L1", None)), (None, ("L3", None))]),
    ],
)
def test_rows_come_out_without_a_partner_when_they_leave(how: str, expected: list[Any]) -> None:
    log = rows(("L1", 1), ("L2", 3), ("L3", 4)), rows(("R", 2))
    join = both(log, how=how, match=lambda row: row["id"] == "L2")
    assert named(lots_of(join, "sliding, count(2) join count(2)", "entered")) == expected


def test_the_newest_rows_of_both_sides_are_paired() -> None:
    found = named(lots_of(both((rows(1, 3, 6), rows((10, 2), (20, 4), (30, 5)))), "retain 1 join retain 1", "entered"))
    assert [pair for _, *pairs in found for pair in pairs] == [(1, 10), (2 + 1, 10), (3, 20), (3, 30), (6, 30)]


def test_both_sides_change_at_once_at_a_tick() -> None:
    log = rows(1, 2, 3, (4, 11), (5, 12), (6, 25)), rows(("a", 4), ("b", 5), ("c", 6), ("d", 13))
    window = "within 1000 every 10 retain 3 join within 1000 every 10 retain 3"
    entered = named(lots_of(both(log, at_end="hold"), window, "entered"))
    assert entered[1] == (20, (3, "d"), (4, "b"), (4, "c"), (4, "d"), (5, "b"), (5, "c"), (5, "d"))
    left = named(lots_of(both(log, at_end="hold"), window, "left"))
    assert left == [(20, (1, "a"), (1, "b"), (1, "c"), (2, "a"), (2, "b"), (2, "c"), (3, "a"))]


@pytest.mark.parametrize(("at_end", "ticks"), [("hold", [2]), ("drop", [2, 4])])
def test_a_tick_where_the_clock_stands_has_come_unless_more_rows_may(at_end: str, ticks: list[int]) -> None:
    log = rows(1, 3, 4), rows(1, 3)
    found = lots_of(both(log, at_end=at_end), "within 9 every 2 join within 9 every 2", "entered")
    assert [lot.at for lot in found] == ticks


def test_one_log_on_both_sides_is_one_activation() -> None:
    log = rows(1, 2, 3)
    assert named(lots_of(both((log, None)), "retain 1 join retain 1", "entered")) == [
        (1, (1, 1)),
        (2, (2, 2)),
        (3, (3, 3)),
    ]
    assert named(lots_of(both((log, None)), "sliding, count(0) join count(1)", "entered")) == [(2, (2, 1)), (3, (3, 2))]


def test_time_join_time_has_the_pairs_of_around() -> None:
    log = rows(0, 3, 4, 9, 17), rows(1, 5, 6, 8, 11, 15)
    around = {pair for _, *pairs in named(lots_of(both(log), "around(5, 3)", "rows")) for pair in pairs}
    found = named(lots_of(both(log), "sliding, time(3) join time(5)", "entered"))
    assert {pair for _, *pairs in found for pair in pairs} == around
    assert all(at == max(pair) for at, *pairs in found for pair in pairs)


WINDOWS = [
    "around(2, 1)", "around(-1, 3)", "around(3, -1)", "at(0, -2, 3)", "sliding, count(2) join count(1)",
    "sliding, time(3) join time(2)", "within 3 join retain 2", "within 4 every 2 join within 3 every 3",
    "time(4)", "count(3)",
]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
def test_nights_are_one_run(window: str) -> None:
    """What a night brings is there in the next, and all of them together are one run."""
    log = rows(0, 1, 3, 4, 6, 9, 10, 14), rows(1, 2, 5, 6, 7, 11, 12, 13)
    cut: list[Night] = [tuple([row for row in side if low <= row["t"] < high] for side in log)
                        for low, high in [(0, 4), (4, 9), (9, 20)]]  # type: ignore[misc]  # fmt: skip
    for how in ("inner", "left") if "sliding" in window or " join " not in window else ("inner",):
        before: list[Any] = []
        for nights in range(1, 4):
            end = "flush" if nights == 3 else "hold"
            lots = named(lots_of(both(*cut[:nights], how=how, at_end=end), window, "entered"))
            assert lots[: len(before)] == before
            before = lots
        assert before == named(lots_of(both(log, how=how), window, "entered"))


def test_late_rows_are_rejected_or_run_again() -> None:
    first: Night = (rows(1, 5), rows(2))
    second: Night = (rows(8), rows(4, 7))
    assert both(first, second).rejected == {4 - 1: "late"}
    redone = sides([first, second], both(first).join, late="redo")
    assert not redone.rejected
    assert [event.at for event in redone.events] == sorted(map(Fraction, (1, 2, 4, 5, 7, 8)))


def test_null_keys_are_rows_without_a_partner_or_rejects() -> None:
    log: Night = (rows(1) + rows(2, key=None), rows(2, key=None))
    assert both(log).rejected == {0: "null_key", 2: "null_key"}
    assert both(log, how="left").rejected == {0: "null_key"}
    assert both(log, how="full").rejected == {}
