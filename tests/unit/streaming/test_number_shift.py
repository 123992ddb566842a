"""Numbers that were counted from another beginning are moved key by key, and those of keys without one stay."""

from __future__ import annotations

import pyarrow as pa

from wincli.windowing.state.number_shift import NumberShift
from wincli.windowing.state.state_tables import BEGIN, RANK, ROWS, WINDOWS


def keys(**numbers: tuple[int, int, int]) -> pa.Table:
    columns = {name: [each[at] for each in numbers.values()] for at, name in enumerate((ROWS, BEGIN, WINDOWS))}
    return pa.table({"k": list(numbers), **columns})


def test_numbers_of_keys_are_moved_by_what_the_two_beginnings_differ_and_of_other_keys_by_nothing() -> None:
    shift = NumberShift.between(["k"], keys(a=(10, 20, 30), b=(1, 2, 3)), keys(a=(4, 5, 6), c=(7, 8, 9)))
    assert shift.of_keys(keys(a=(5, 5, 7), c=(8, 8, 9))) == keys(a=(11, 20, 31), b=(1, 2, 3), c=(8, 8, 9))
    rows = pa.table({"k": ["c", "a", "b"], RANK: [0, 1, 2]})
    assert shift.of_rows(rows)[RANK].to_pylist() == [0, 7, 3]
    result = pa.table({"k": ["a", "c", "b"], "window": [None, 1, 2]})
    assert shift.of_result(result)["window"].to_pylist() == [None, 1, 5]


def test_of_a_state_without_keys_nothing_is_moved() -> None:
    shift = NumberShift.between(["k"], None, keys(a=(4, 5, 6)))
    for table in (keys(a=(1, 2, 3)), pa.table({"k": ["a"], RANK: [3]}), pa.table({"k": ["a"], "window": [4]})):
        assert (shift.of_keys(table), shift.of_rows(table), shift.of_result(table)) == (table, table, table)
    assert shift.of_keys(None) is None
