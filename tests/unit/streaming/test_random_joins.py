"""Random joins in memory, against the reference row at a time; and against what other engines say of the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

import wincli
from support.random_joins import JoinCase, join_cases


def joined(case: JoinCase, **more: Any) -> Any:
    """The result of a case in memory."""
    request = f"r {case.request}"
    given = {"match": case.match, "where": case.where, "emit": case.emit, "aggregates": list(case.calls) or None}
    options = {name: value for name, value in given.items() if value is not None}
    more |= {"event_time": "t"} if case.window.startswith("timeInterval") else {}
    join = request if case.right is None else {request: case.right}
    return wincli.aggregate(case.left, case.window, join=join, rejected="drop", **options, **more)


def by_key(case: JoinCase, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows by key and the number of their window, in which the rows have an order."""
    if not case.keyed:
        return sorted(rows, key=lambda row: row[0])
    return sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, row[1]))


@settings(max_examples=300)
@given(join_cases())
def test_joins_are_what_the_reference_says(case: JoinCase) -> None:
    found, expected = case.found(joined(case)), case.expected()
    assert by_key(case, found) == by_key(case, expected)


@settings(max_examples=100)
@given(join_cases())
def test_lots_of_all_keys_come_out_in_one_order(case: JoinCase) -> None:
    assert case.found(joined(case)) == case.expected()
