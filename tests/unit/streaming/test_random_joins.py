"""Random joins in memory, against the reference row at a time; and against what other engines say of the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given

import wincli
from support.random_joins import JoinCase, join_cases
from support.strategies import examples


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


@given(join_cases())
@examples(3000)
def test_joins_are_what_the_reference_says(case: JoinCase) -> None:
    found, expected = case.found(joined(case)), case.expected()
    assert by_key(case, found) == by_key(case, expected)


@given(join_cases())
@examples(1000)
def test_lots_of_all_keys_come_out_in_one_order(case: JoinCase) -> None:
    assert case.found(joined(case)) == case.expected()
