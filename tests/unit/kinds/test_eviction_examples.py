"""Windows with evicted keys by hand, and the cases of SPL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from support import spl_cases as conformance
from support.eviction_jobs import Evicting, Job, by_library, is_evicting, order_of
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window


@pytest.mark.parametrize("case", [c for c in conformance.ALL if is_evicting(c)], ids=lambda case: case.name)
def test_evicting_cases_of_spl_conform(case: conformance.Case) -> None:
    assert isinstance(case.spec, Evicting)
    table = conformance.table_of(case)
    marks = tuple(case.rows_before(index) for index in case.marks)
    assert case.key
    job = Job(table, case.spec, (case.key,), order_of(case.spec), marks, case.emit_evicted)
    ids = table["id"].to_pylist()
    emitted = [
        conformance.Emitted(out.key[0], None, out.pos, [ids[pos] for pos in out.rows], out.closed_by, mark=True)
        for out in by_library(job)
        if out.closed_by != "end" and out.pos is not None
    ]
    conformance.check(case, conformance.outputs(case, emitted))


def test_all_evicting_cases_of_spl_are_run() -> None:
    assert sum(map(is_evicting, conformance.ALL)) == 9


def panes(window: str, keys: str, at: list[float] | None = None, **more: Any) -> list[str]:
    """The panes of rows 1, 2, .. of keys of one letter, as ``key: rows why @ the row or instant that caused it``."""
    columns = {"key": list(keys), "at": at or list(range(len(keys)))}
    job = Job(pa.table(columns), parse_window(window), order=("at",) if at else (), emit_evicted=True, **more)
    return [
        f"{out.key[0]}{out.number}: {','.join(str(row + 1) for row in out.rows)} {out.closed_by} "
        + ("-" if out.pos is None else f"at {out.tick}" if out.pos < 0 else f"by {out.pos + 1}")
        for out in by_library(job)
    ]


def test_partition_count_evicts_the_oldest_key() -> None:
    #   row    1 2 3 4 5 6
    #   a0    [1 . 3]            evicted by 5: b is a third key, and a is the older one
    #   b0      [2]              evicted by 4: c is a third key
    #   b1            [5 6]      at the end
    #   c0          [4]          at the end
    assert panes("count(3), partitioned, partitionCount(2)", "abacbb") == [
        "a0: 1,3 evicted by 5",
        "b0: 2 evicted by 4",
        "b1: 5,6 end -",
        "c0: 4 end -",
    ]


def test_a_key_evicts_itself_before_its_window_is_full() -> None:
    #   row    1 2 3 4
    #   a0    [1 2 3]        evicted by 3: more than 2 rows are open, before count(3) can close them
    #   a1          [4]      at the end; sliding, it is never full
    assert panes("count(3), partitioned, tupleCount(2)", "aaaa") == ["a0: 1,2,3 evicted by 3", "a1: 4 end -"]
    assert panes("sliding, count(3), count(3), partitioned, tupleCount(2)", "aaaa") == []


def test_key_without_open_rows_is_not_evicted() -> None:
    #   row    1 2 3 4 5
    #   a0    [1 2]            full at 2: a has no open row when b begins
    #   b0        [3 4]        full at 4
    #   a1            [5]      at the end
    assert panes("count(2), partitioned, partitionCount(1)", "aabba") == [
        "a0: 1,2 count by 2",
        "a1: 5 end -",
        "b0: 3,4 count by 4",
    ]


def test_partition_age_is_checked_at_rows_marks_and_ticks() -> None:
    #   count(9)   at   0.9      2.5   3.0
    #                   a0[1]                   evicted by 3: 2.1 s old at 3.0, and 1.6 s at 2.5
    #                            b0[2]
    #                                  c0[3]
    #   punct()    at   0.0      |     9.0      the mark closes a0[1] first
    #                   a0[1]
    #                                  b0[2]
    #   time(10)   at   0.0     10.0   11.0     14.5
    #                   a0[1]   tick                    evicted at the tick 10.0: 10 s old
    #                                  a1[2]            evicted by 3: 3.5 s old
    #                                           b0[3]
    age = "partitioned, partitionAge(2)"
    assert panes(f"count(9), {age}", "abc", [0.9, 2.5, 3.0]) == [
        "a0: 1 evicted by 3",
        "b0: 2 end -",
        "c0: 3 end -",
    ]
    assert panes(f"punct(), {age}", "ab", [0.0, 9.0], marks=(1,)) == ["a0: 1 punct by 1", "b0: 2 end -"]
    assert panes(f"time(10), {age}", "aab", [0.0, 11.0, 14.5]) == [
        "a0: 1 evicted at 10.0",
        "a1: 2 evicted by 3",
        "b0: 3 end -",
    ]


def test_tick_evicts_all_old_keys_if_one_is_too_old() -> None:
    #   at      0.0   1.0   2.0   4.0   6.0   6.5
    #   a       [1]         [1]
    #   b             [2]   [2]                        at 4.0 a is older than 2 s, and so is b: both go, no pane
    #   c                                     [3]      at the end
    window = "sliding, count(9), time(2), partitioned, partitionAge(2)"
    assert panes(window, "abc", [0.0, 1.0, 6.5], partial=True) == [
        "a0: 1 trigger at 2.0",
        "b0: 2 trigger at 2.0",
        "c0: 3 end -",
    ]


def test_sliding_key_emptied_by_time_is_not_evicted_and_keeps_its_baseline() -> None:
    #   at     0     10     10.5   10.6
    #   x, a   0            1      3        the row at 0 is older than 1 s at 10: x is empty, so it is not evicted for y
    #   y            0
    #   panes                      [2]      before the 3: more than 2 above the 0 of the first row; at the end [2 3]
    columns = {"key": list("xyxx"), "at": [0, 10, 10.5, 10.6], "a": [0, 0, 1, 3]}
    job = Job(
        pa.table(columns), parse_window("sliding, time(1), delta(a, 2), partitioned, partitionCount(1)"), order=("at",)
    )
    assert [(out.key, out.rows, out.closed_by) for out in by_library(job)] == [
        (("x",), (2,), "trigger"),
        (("x",), (2, 3), "end"),
    ]


@pytest.mark.parametrize("eviction", ["partitionAge(1)", "partitionCount(1)", "tupleCount(1)"])
def test_sliding_key_emptied_by_time_keeps_its_trigger_count(eviction: str) -> None:
    #   at      0.0   5.0   9.0
    #   x       1           3        row 1 is older than 1 s at 5, but it counts: row 3 is the second of x
    #   y             2
    #   panes               [3]
    assert panes(f"sliding, time(1), count(2), partitioned, {eviction}", "xyx", [0.0, 5.0, 9.0]) == [
        "x0: 3 trigger by 3",
    ]


def test_empty_key_at_a_tick_does_not_evict_others() -> None:
    """At 4.5 x is 4 s old and empty, y 3 s old and not; without the first the second is not looked at."""
    #   at     0.9   1.1   ...   4.5
    #   x      1                 -        3.6 s old: gone with time(3.5), else evicted together with y
    #   y            2           [2]      3.4 s old
    window = "sliding, time(3.5), time(4.5), partitioned, partitionAge(3)"
    assert panes(window, "xy", [0.9, 1.1], ahead=14) == ["y0: 2 trigger at 4.5"]
    assert panes(window.replace("3.5", "3.6"), "xy", [0.9, 1.1], ahead=14) == []


def test_gap_of_years_takes_no_time() -> None:
    #   at     0   1   2   3   4   5   6   ... years ...   10**15
    #   row    0                       |                   1         row 0 is older than 5 s at tick 6
    window = "sliding, count(9), time(1), partitioned, partitionAge(5)"
    job = Job(pa.table({"key": [0, 0], "at": [0, 10**15]}), parse_window(window), order=("at",))
    found = kind_of(job.window).evictions(job.sequences, job.placed, job.setting)
    assert found.rows.tolist() == [1]
    assert found.by_tick.tolist() == [True]
    assert found.tick.tolist() == [6]


def test_ages_beyond_all_clocks_evict_nothing() -> None:
    far = pa.array([-(2**61), 0, 2**61], pa.int64())
    fine = pa.array([Decimal(-5).scaleb(-20), Decimal(0), Decimal(2**62).scaleb(-20)], pa.decimal128(38, 20))
    for clock in (far, far.cast(pa.float64(), safe=False), far.cast(pa.timestamp("ns")), fine):
        table = pa.table({"key": [0, 1, 2], "at": clock})
        job = Job(table, parse_window(f"count(9), partitioned, partitionAge({10**30})"), order=("at",))
        assert len(kind_of(job.window).evictions(job.sequences, job.placed, job.setting).rows) == 0


@pytest.mark.parametrize("far", [2**62, -(2**62), 1e300, float("inf")])
def test_clock_too_far_from_zero_for_ages_is_an_error(far: float) -> None:
    job = Job(
        pa.table({"key": [0], "at": [far]}), parse_window("count(9), partitioned, partitionAge(1)"), order=("at",)
    )
    with pytest.raises(DataError, match="too far from 0 to count ages"):
        kind_of(job.window).evictions(job.sequences, job.placed, job.setting)


def test_ticks_too_fine_for_ages_are_an_error() -> None:
    table = pa.table({"key": [0], "at": pa.array([2**63 - 10**6], pa.timestamp("ns"))})
    window = parse_window("sliding, count(9), time(0.000001), partitioned, partitionAge(1)")
    job = Job(table, window, order=("at",))
    with pytest.raises(DataError, match="64 bit"):
        kind_of(job.window).evictions(job.sequences, job.placed, job.setting)
