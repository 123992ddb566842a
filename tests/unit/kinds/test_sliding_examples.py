"""Sliding windows by hand, as the semantics spell them out, and the cases of SPL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from support import strategies as my
from support.places import CASES
from support.sliding_panes import by_kernels, kernel_panes, sequences_of
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.language import spec
from wincli.windowing.language.parser import parse_window
from wincli.windowing.rows.membership import Memberships, contiguous

Shown = list[tuple[list[int], float | None]]


def shown(
    window: str, columns: dict[str, Any], key: Sequence[str] = (), order: Sequence[str] = (), **setting: Any
) -> Shown:
    """The rows of each pane, counted from 1, with the row or the instant of the tick that caused it; None: the end."""
    size = len(next(iter(columns.values())))
    stream = my.Stream(pa.table({"id": pa.array(range(size), pa.int64()), **columns}), tuple(key), tuple(order))
    parsed = parse_window(window)
    assert isinstance(parsed, spec.Sliding)
    panes = by_kernels(stream, parsed, WindowContext(**setting))
    causes = [p.pos if p.pos is None else p.pos + 1 if p.pos >= 0 else float(p.at) for p in panes]
    return [([pos + 1 for pos in pane.rows], cause) for pane, cause in zip(panes, causes, strict=True)]


def test_count_evicts_count_triggers() -> None:
    #   row                    1 2 3 4 5 6
    #   count(3), count(2)      [2 3 4]          at 4; not at 2: nothing has been evicted, so the window is not full
    #                               [4 5 6]      at 6
    #   count(3), count(4)      [2 3 4]          at 4
    #                               [4 5 6]      at the end
    #   count(9), count(4)    [1 2 3 4]          at 4, with partial
    #                         [1 2 3 4 5 6]      at the end, with partial
    #   count(1), count(1)    [1]                at 1
    #                           [2]              at 2
    a = {"a": [1, 2, 3, 4, 5, 6]}
    assert shown("sliding, count(3), count(2)", a) == [([2, 3, 4], 4), ([4, 5, 6], 6)]
    assert shown("sliding, count(3), count(4)", a) == [([2, 3, 4], 4), ([4, 5, 6], None)]
    assert shown("sliding, count(9), count(4)", a) == []
    assert shown("sliding, count(9), count(4)", a, partial=True) == [([1, 2, 3, 4], 4), ([1, 2, 3, 4, 5, 6], None)]
    assert shown("sliding, count(1), count(1)", {"a": [7, 8]}) == [([1], 1), ([2], 2)]


def test_count_evicts_delta_triggers_before_the_row() -> None:
    #   count(3), delta(a, 2)   a  0 1 2 3 4 5 6 7
    #                             [0 1 2]                before 3, which is more than 2 above 0
    #                                   [3 4 5]          before 6, which is more than 2 above 3
    #                                       [5 6 7]      at the end
    a = {"a": [0, 1, 2, 3, 4, 5, 6, 7]}
    assert shown("sliding, count(3), delta(a, 2)", a) == [([1, 2, 3], 4), ([4, 5, 6], 7), ([6, 7, 8], None)]


def test_delta_evicts_a_row_at_any_position_of_the_window() -> None:
    #   delta(a, 2), count(1)   a  0 1 2 3 9 1 4
    #                               [1 2 3]            at 3, the first eviction: full
    #                                     [9]          at 9, which evicts all
    #                                     [9 1]        at 1
    #                                     [9 . 4]      at 4, which evicts the 1 but not the 9 before it
    #   delta(a, 0), count(3)   a  1 1 2 1 3 1
    #                                 [2]              at 2, the third row, which evicts both 1
    #                                     [3 1]        at the last 1, the sixth row
    a = {"a": [0, 1, 2, 3, 9, 1, 4]}
    assert shown("sliding, delta(a, 2), count(1)", a) == [([2, 3, 4], 4), ([5], 5), ([5, 6], 6), ([5, 7], 7)]
    assert shown("sliding, delta(a, 0), count(3)", {"a": [1, 1, 2, 1, 3, 1]}) == [([3], 3), ([5, 6], 6)]


def test_the_end_is_one_more_trigger_where_rows_came_in_since_the_last() -> None:
    #   at                     0.5 1.0     2.0
    #   row                    1   2       3
    #   count(3)              [1   2       3]      at 3; the end has nothing new
    #   count(2)              [1   2]              at 2
    #                         [1   2       3]      at the end, also where the clock stands at 9.5
    #       clock at 10.5                 [3]      at the end: 1 and 2 are older than 9
    #       clock at 11.5                          all are older than 9: no pane, or an empty one with partial
    #   time(1)               [1]                  at tick 1, before the row at 1.0
    #                         [1   2]              at tick 2
    #                         [1   2       3]      at tick 3 or at the end
    at = {"at": [0.5, 1.0, 2.0]}
    assert shown("sliding, time(9), count(3)", at, order=["at"]) == [([1, 2, 3], 3)]
    assert shown("sliding, time(9), count(2)", at, order=["at"]) == [([1, 2], 2), ([1, 2, 3], None)]
    assert shown("sliding, time(9), count(2)", at, order=["at"], clock=9.5) == [([1, 2], 2), ([1, 2, 3], None)]
    assert shown("sliding, time(9), count(2)", at, order=["at"], clock=10.5) == [([1, 2], 2), ([3], None)]
    assert shown("sliding, time(9), count(2)", at, order=["at"], clock=11.5) == [([1, 2], 2)]
    empty = shown("sliding, time(9), count(2)", at, order=["at"], clock=11.5, partial=True)
    assert empty == [([1, 2], 2), ([], None)]
    ticks = [([1], 1.0), ([1, 2], 2.0)]  # the row on a tick belongs behind it
    assert shown("sliding, time(9), time(1)", at, order=["at"]) == [*ticks, ([1, 2, 3], None)]
    assert shown("sliding, time(9), time(1)", at, order=["at"], clock=3.0) == [*ticks, ([1, 2, 3], 3.0)]


def test_ticks_before_the_first_row() -> None:
    #   at       0       1       2   2.5 3
    #   panes            []      []      [1]      those at 1 and 2 only with partial, where the clock begins at 0
    at = {"at": [2.5]}
    want = [([1], 3.0), ([], 1.0), ([], 2.0)]
    assert shown("sliding, count(1), time(1)", at, order=["at"], since=0.0, clock=3.0, partial=True) == want
    assert shown("sliding, count(1), time(1)", at, order=["at"], since=0.0, clock=3.0) == want[:1]
    assert shown("sliding, count(1), time(1)", at, order=["at"], clock=3.0, partial=True) == want[:1]
    nothing = {"at": pa.array([], pa.float64())}
    assert shown("sliding, count(1), time(1)", nothing, order=["at"], since=0, clock=2, partial=True) == [
        ([], 1.0),
        ([], 2.0),
    ]


def test_count_0_keeps_no_row() -> None:
    #   at       1       5
    #   row      1       2
    #   panes    []      []      one a row under count(1), with partial and without a key; else none
    at = {"at": [1, 5], "k": [0, 0]}
    for trigger in ("count(1)", "delta(at, 1)", "time(1)"):
        assert shown(f"sliding, count(0), {trigger}", at, order=["at"]) == []
        assert shown(f"sliding, count(0), {trigger}", at, key=["k"], order=["at"], partial=True) == []
    assert shown("sliding, count(0), count(1)", at, partial=True) == [([], 1), ([], 2)]


def test_no_rows() -> None:
    nothing = {"a": pa.array([], pa.int64())}
    for trigger in ("count(1)", "delta(a, 1)", "time(1)"):
        for evict in ("count(1)", "delta(a, 1)", "time(1)"):
            for key in ([], ["a"]):
                for partial in (False, True):
                    window = f"sliding, {evict}, {trigger}"
                    assert shown(window, nothing, key=key, order=["a"], partial=partial) == []


def test_thousands_of_keys_of_one_row() -> None:
    #   key 0   [1]
    #   key 1       [2]
    #   key 2           [3]   ...      at its row, at tick 1 or at the end
    n = 5_000
    columns = {"k": list(range(n)), "a": [0] * n}
    alone = [([row], row) for row in range(1, n + 1)]
    at_end = [([row], None) for row in range(1, n + 1)]
    assert shown("sliding, count(1), count(1)", columns, key=["k"]) == alone
    assert shown("sliding, delta(a, 1), count(1)", columns, key=["k"], partial=True) == alone
    assert shown("sliding, delta(a, 1), count(1)", columns, key=["k"]) == []
    assert shown("sliding, count(1), delta(a, 1)", columns, key=["k"]) == at_end
    assert shown("sliding, time(1), time(1)", columns, key=["k"], order=["a"]) == at_end
    assert shown("sliding, time(1), time(1)", columns, key=["k"], order=["a"], clock=9) == [
        ([row], 1.0) for row in range(1, n + 1)
    ]


def test_gap_of_years_takes_no_time() -> None:
    #   at      0 s     1 s     2 s     3 s   ... years ...   10**9 s      time(2.5), time(1)
    #   row     1                                             2
    #   panes           [1]     [1]                           [2]          at ticks 1, 2 and at the end
    at = {"at": pa.array([0, 10**18], pa.timestamp("ns")), "k": [0, 1]}
    near = [([1], 1.0), ([1], 2.0), ([2], None)]
    instants = shown("sliding, time(2.5), time(1)", at, order=["at"])
    assert instants == [(rows, cause and cause * 10**9) for rows, cause in near]
    assert len(shown("sliding, time(10), time(0.001)", at, order=["at"])) == 10_001
    assert shown("sliding, count(2), time(1)", at, key=["k"], order=["at"]) == []  # never full
    for setting in ({}, {"partial": True}):
        with pytest.raises(DataError, match="longer trigger period"):
            shown("sliding, count(1), time(1)", at, order=["at"], **setting)
    with pytest.raises(DataError, match="longer trigger period"):
        shown("sliding, time(1), time(1)", at, order=["at"], partial=True)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_differences_of_64_bits(kind: pa.DataType) -> None:
    #   a                      low high-1 high
    #   delta(a, 2**64 - 2)       [high-1 high]      at high, which evicts low
    #   delta(a, 2**64 - 3)       [high-1]           at high-1, which evicts low
    #                             [high-1 high]      at high
    #   count(1), delta(..)       [high-1]           before high
    #                                    [high]      at the end
    low, high = my.limits(kind)
    a = {"a": pa.array([low, high - 1, high], kind)}
    width = 2**64 - 1
    assert shown(f"sliding, delta(a, {width})", a) == []
    assert shown(f"sliding, delta(a, {width - 1})", a) == [([2, 3], 3)]
    assert shown(f"sliding, delta(a, {width - 2})", a) == [([2], 2), ([2, 3], 3)]
    assert shown(f"sliding, count(1), delta(a, {width - 1})", a) == [([2], 3), ([3], None)]


def test_an_amount_that_a_column_cannot_hold_is_never_exceeded() -> None:
    #   a    -3e38 3e38
    #       [-3e38]           at the first row
    #       [-3e38 3e38]      at the second, which evicts none
    a = {"a": pa.array([-3e38, 3e38], pa.float32())}
    assert shown(f"sliding, delta(a, {10**39})", a, partial=True) == [([1], 1), ([1, 2], 2)]


def test_contiguous_is_true_for_keys_whose_panes_are_ranges() -> None:
    #   key 0   a  0 1 3 5
    #             [0]
    #             [0 1]
    #               [1 3]
    #                 [3 5]      each pane is a run of rows
    #   key 1   a  0 9 1 4
    #             [0]
    #               [9]
    #               [9 1]
    #               [9 . 4]      the 1 leaves before the 9 does
    table = pa.table({"k": [0, 0, 0, 0, 1, 1, 1, 1], "a": [0, 1, 3, 5, 0, 9, 1, 4]})
    window = spec.Sliding(spec.Delta("a", Fraction(2)))
    panes = kernel_panes(window, sequences_of(my.Stream(table, ("k",), ())), WindowContext(partial=True))
    assert isinstance(panes.membership, Memberships)
    assert contiguous(panes.membership).tolist() == [True, False]


def cases() -> list[dict[str, Any]]:
    with (CASES / "spl_windows.json").open(encoding="utf-8") as file:
        found = [case for case in json.load(file) if "window" in case]
    parsed = [(case, parse_window(case["window"])) for case in found]
    return [case for case, window in parsed if isinstance(window, spec.Sliding) and window.eviction is None]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_sliding_case_of_spl_conforms(case: dict[str, Any]) -> None:
    """NaN included: the kernels get it here, though no row that holds one comes so far in a run."""
    rows = [event["row"] for event in case["events"] if "row" in event]
    stands = [sum("row" in event for event in case["events"][: index + 1]) for index in range(len(case["events"]))]
    clock = [event["clock"] for event in case["events"] if "clock" in event]
    columns = {name: [float(row[name]) if name == "f" else row[name] for row in rows] for name in rows[0]}
    order = ["at"] if "at" in columns else []
    setting: dict[str, Any] = {"clock": clock[-1], "since": 0.0} if clock else {}
    setting |= {"partial": case.get("partial", False)}
    got = shown(case["window"], columns, [case["key"]] if "key" in case else [], order, **setting)
    want = [(o["ids"] or [], o["tick"] if "tick" in o else stands[o["after"]]) for o in case["expect"]]
    assert sorted(pane for pane in got if pane[1] is not None) == sorted(want)


def test_all_sliding_cases_are_run() -> None:
    assert len(cases()) == 20
