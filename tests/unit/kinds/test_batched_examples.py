"""Batched windows by hand, and the published cases."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import strategies as my
from support.batched_panes import PLAIN, EmittedPane, batched_panes, by_kernel, sequences_of
from support.places import CASES
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched
from wincli.windowing.rows.membership import sizes


def published() -> list[Any]:
    cases = [case for case in json.loads((CASES / "batched_windows.json").read_text()) if "name" in case]
    return [pytest.param(case, id=case["name"]) for case in cases]


@pytest.mark.parametrize("case", published())
def test_published_cases(case: dict[str, Any]) -> None:
    stream, spec = stream_of(case)
    clock = case.get("observe_until")
    setting = WindowContext(clock=None if clock is None else float(clock), origin=Fraction(case["query_created_at"]))
    emitted = [one for one in by_kernel(spec, stream, setting) if one.closed_by != "end"]
    values = dict(zip(stream.table["id"].to_pylist(), stream.table["item"].to_pylist(), strict=True))
    expected = case["expected"]
    for name, field in (("istream", "entered"), ("rstream", "left")):
        if name in expected:
            lots = [(at_of(one), [values[pos] for pos in getattr(one, field)]) for one in emitted]
            assert [lot for lot in lots if lot[1]] == [(float(one["t"]), texts(one["lot"])) for one in expected[name]]
    amounts = dict(zip(stream.table["id"].to_pylist(), stream.table["amount"].to_pylist(), strict=True))
    for name, total in (("sum", sum), ("count", len), ("max", max)):
        if name in expected:
            panes = [(at_of(one), total([amounts[pos] for pos in one.rows])) for one in emitted]
            assert panes == [(float(one["t"]), one["value"]) for one in expected[name]]
    if "group_sum" in expected:
        assert [at_of(one) for one in emitted] == [float(one["t"]) for one in expected["group_sum"]]


def at_of(one: EmittedPane) -> float:
    assert one.at is not None
    return float(one.at[0])


def texts(items: list[Any]) -> list[str]:
    return [json.dumps(item) for item in items]


def stream_of(case: dict[str, Any]) -> tuple[my.Stream, Batched]:
    """A case's items as a table: ``item`` as text, ``amount`` its last field, ``f0``, ``f1`` its fields as text."""
    rows = [(float(lot["t"]), item) for lot in case["input"] for item in lot["items"]]
    fields = [item if isinstance(item, list) else [item, item] for _, item in rows]
    table = pa.table(
        {
            "id": range(len(rows)),
            "clock": pa.array([t for t, _ in rows], pa.float64()),
            "item": texts([item for _, item in rows]),
            "amount": [field[1] for field in fields],
            "first": [str(field[0]) for field in fields],
            "band": [str(int(field[1] // 100)) for field in fields],
        }
    )
    window = case["window"].removesuffix(" group by x").replace("floor(volume)/100", "band")
    for name in ("partition by symbol", "partition by x", "partition by k"):
        window = window.replace(name, "partition by first")
    for name in ("unique letter", "unique key"):
        window = window.replace(name, "unique first")
    spec = parse_window(window)
    assert isinstance(spec, Batched)
    return my.Stream(table, (), ("clock",)), spec


def table_of(clock: list[Any], kind: pa.DataType = pa.float64(), **columns: Any) -> my.Stream:  # noqa: B008
    table = pa.table({"clock": pa.array(clock, kind), **columns})
    return my.Stream(table, (), ("clock",))


def test_expiry_precedes_the_arrivals_of_its_instant() -> None:
    #   clock      2      4      6
    #   row 0      [------)
    #   row 1, 2          [------)
    #   panes      0      -      -      at 4 row 0 expires first: an empty pane, then 1, then 1 2; at 6 both go
    #                     1
    #                     1 2
    emitted = by_kernel(Batched(within=Fraction(2)), table_of([2, 4, 4], pa.int64()))
    assert [(one.at, one.pos, one.rows, one.closed_by) for one in emitted] == [
        ((2,), 0, (0,), "trigger"),
        ((4,), -1, (), "expiry"),
        ((4,), 1, (1,), "trigger"),
        ((4,), 2, (1, 2), "trigger"),
        ((6,), -1, (), "end"),
    ]
    assert [(one.start, one.end) for one in emitted] == [(0, 2), (2, 4), (2, 4), (2, 4), (4, 6)]


def test_every_expiry_up_to_the_clock_fires_for_every_key() -> None:
    #   clock   0        3        6
    #   x       [--------)                the clock ends at 3, where x has expired
    #   y                [--------)       y goes only at the end
    stream = replace(table_of([0, 3], pa.int64(), k=["x", "y"]), key=("k",))
    emitted = by_kernel(Batched(within=Fraction(3)), stream)
    assert [(one.key, one.at, one.closed_by) for one in emitted] == [
        (("x",), (0,), "trigger"),
        (("x",), (3,), "expiry"),
        (("y",), (3,), "trigger"),
        (("y",), (6,), "end"),
    ]


def test_the_last_tick_is_the_first_after_the_clock_and_nothing_drains() -> None:
    #   clock   0 . . 3 4 . . . 8 9 . . 12      every 4, within 100
    #   row           0 1         2
    #   ticks   |       |       |        |      at 4: 0 1; at 8 nothing is new; 12 is of the end: 0 1 2
    emitted = by_kernel(Batched(within=Fraction(100), every=Fraction(4)), table_of([3, 4, 9], pa.int64()))
    assert [(one.at, one.rows, one.closed_by, one.pos) for one in emitted] == [
        ((4,), (0, 1), "batch", -1),
        ((12,), (0, 1, 2), "end", -1),
    ]


def test_gap_of_years_has_no_ticks() -> None:
    #   clock   0 ms   1 ms   ... 200 years ...   n ms   n + 1 ms
    #   row     0                                 1
    #   panes   0      -                          1      -             no tick between 1 ms and n ms gives a pane
    second = 10**9
    stream = table_of([0, 400 * 365 * 86_400 * second // 2], pa.timestamp("ns"))
    emitted = by_kernel(Batched(within=Fraction(1, 1000), every=Fraction(1, 1000)), stream)
    assert [len(one.rows) for one in emitted] == [1, 0, 1, 0]


def test_expiry_between_two_clock_units_has_a_finer_type() -> None:
    #   clock   4.5 s       7 s         9.5 s
    #   row                 0
    #   panes   [ ends as 0 )
    #                       [ ends as - )          0 comes in at 7 s and goes at 9.5 s, which has no whole seconds
    stream = table_of([7], pa.timestamp("s", "UTC"))
    panes = batched_panes(Batched(within=Fraction(5, 2)), sequences_of(stream), PLAIN)
    assert panes.end == pa.array([7_000, 9_500], pa.timestamp("ms", "UTC"))
    assert panes.start == pa.array([4_500, 7_000], pa.timestamp("ms", "UTC"))
    days = batched_panes(Batched(within=Fraction(3600)), sequences_of(table_of([1], pa.date32())), PLAIN)
    assert days.end == pa.array([86_400, 90_000], pa.timestamp("s"))


def test_window_start_has_the_type_of_window_end() -> None:
    #   clock   0     0.5     1     1.5
    #   row                   0
    #   ticks          |             |      ticks at 0.5 1.5 2.5 ..
    #   pane    [                    )      it begins 1.5 s before its tick, on a whole second
    spec = Batched(within=Fraction(3, 2), every=Fraction(1))
    panes = batched_panes(spec, sequences_of(table_of([1], pa.timestamp("s"))), WindowContext(origin=Fraction(1, 2)))
    assert panes.start == pa.array([0], pa.timestamp("ms"))
    assert panes.end == pa.array([1_500], pa.timestamp("ms"))


def test_tick_without_visible_rows_gives_no_pane_after_a_key_that_keeps_rows() -> None:
    #   clock   0  1  .  .  4  .  .  .  8  .  .  11 12      within 2, every 4
    #   x                                        0
    #   y          1                             2
    #   ticks               |           |           |       at 4 row 1 is 3 old: never seen; at 12 x has 0, y has 2
    stream = replace(table_of([11, 1, 11], pa.int64(), k=["x", "y", "y"]), key=("k",))
    emitted = by_kernel(Batched(within=Fraction(2), every=Fraction(4)), stream)
    assert [(one.key, one.at, one.rows) for one in emitted] == [(("x",), (12,), (0,)), (("y",), (12,), (2,))]


def test_float_row_expires_at_the_float_nearest_to_its_exact_end() -> None:
    #   clock   0.2       0.3       0.4
    #   row 0   [---------)
    #   row 1             [---------)      0.2 + 0.1 is above 0.3 in floats; the float nearest to the sum is 0.3
    #   panes   0         -
    #                     1
    emitted = by_kernel(Batched(within=Fraction(1, 10)), table_of([0.2, 0.3]))
    assert [(one.at, one.rows) for one in emitted[:3]] == [
        ((Fraction(0.2),), (0,)),
        ((Fraction(0.3),), ()),
        ((Fraction(0.3),), (1,)),
    ]


def test_unfilled_batches_of_all_partitions_enter_together_at_the_end() -> None:
    #   clock    1  2  3  4
    #   a       [0     2] 3        the batch of a is full at 3: 0 2
    #   b           1              at the end the short batches of both come in, 1 and 3, and 0 goes: 1 2 3
    stream = table_of([1, 2, 3, 4], pa.int64(), k=["a", "b", "a", "a"])
    emitted = by_kernel(Batched(retain=2, every=2, partition_by=("k",)), stream)
    assert [(one.rows, one.entered, one.left, one.closed_by, one.at) for one in emitted] == [
        ((0, 2), (0, 2), (), "batch", (3,)),
        ((1, 2, 3), (1, 3), (0,), "end", None),
    ]


def test_row_that_is_not_retained_hides_no_other() -> None:
    #   clock     1   2   3   4
    #   part a   [w   x]               full at 2: the last one stays, row 1 (x)
    #   part b           [x   y]       full at 4: row 3 (y) stays; row 2, a newer x, is not seen, so row 1 stays: 1 3
    stream = table_of([1, 2, 3, 4], pa.int64(), k=["a", "a", "b", "b"], u=["w", "x", "x", "y"])
    emitted = by_kernel(Batched(retain=1, every=2, unique="u", partition_by=("k",)), stream)
    assert [one.rows for one in emitted] == [(1,), (1, 3)]


def test_unique_hides_no_row_of_another_partition() -> None:
    #   clock    1     2
    #   part a   x              tick 1: 0
    #   part b         x y      tick 2: of the rows 1 and 2 the last stays, y; part b hides no x of part a: 0 2
    stream = table_of([1, 2, 2], pa.int64(), g=["a", "b", "b"], u=["x", "x", "y"])
    spec = Batched(within=Fraction(10), every=Fraction(1), retain=1, unique="u", partition_by=("g",))
    assert [one.rows for one in by_kernel(spec, stream)][:2] == [(0,), (0, 2)]


def test_older_row_entering_after_a_newer_one_of_another_partition_is_visible() -> None:
    #   clock     1   2   3   4
    #   part a   [x           z]      full at 4: 0 3 come in beside 1 2
    #   part b       [y   x]          full at 3: 1 2
    stream = table_of([1, 2, 3, 4], pa.int64(), k=["a", "b", "b", "a"], u=["x", "y", "x", "z"])
    emitted = by_kernel(Batched(retain=2, every=2, unique="u", partition_by=("k",)), stream)
    assert [one.rows for one in emitted] == [(1, 2), (0, 1, 2, 3)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [2**63 - 2]),
        (pa.timestamp("ns"), [-(2**63) + 1]),
        (pa.decimal128(38, 10), [Decimal(2**63 - 2).scaleb(-10)]),
        (pa.uint64(), [2**63]),
        (pa.date32(), [2**31 - 1]),
        (pa.float64(), [1e300]),
        (pa.float64(), [2.0**53]),
        (pa.float32(), [float(np.finfo(np.float32).max)]),
    ],
)
@pytest.mark.parametrize("ticking", [False, True])
def test_instant_beyond_the_range_of_the_clock_type_is_an_error(kind: pa.DataType, values: Any, ticking: bool) -> None:
    unit = Fraction(86_400 if pa.types.is_date32(kind) else 1)
    with pytest.raises(DataError):
        batched_panes(Batched(unit, unit if ticking else None), sequences_of(table_of(values, kind)), PLAIN)


@pytest.mark.parametrize("window", ["within 5", "within 5 every 2", "retain 2 every 3", "retain all", "retain 1"])
@pytest.mark.parametrize("key", [(), ("k",)])
def test_no_rows_give_no_panes(window: str, key: tuple[str, ...]) -> None:
    stream = replace(table_of([], k=pa.array([], pa.string())), key=key)
    spec = parse_window(window)
    assert isinstance(spec, Batched)
    panes = batched_panes(spec, sequences_of(stream), PLAIN)
    assert (len(panes), len(panes.membership)) == (0, 0)


@pytest.mark.parametrize("kind", [pa.null(), pa.float64()])
def test_columns_without_a_type_are_columns_without_rows(kind: pa.DataType) -> None:
    stream = table_of([], kind, k=pa.array([], kind), u=pa.array([], kind))
    for clause in ("within 5 retain 2", "within 5 every 2 retain 2"):
        spec = parse_window(f"partition by k {clause} with unique u")
        assert isinstance(spec, Batched)
        assert len(batched_panes(spec, sequences_of(stream), PLAIN)) == 0


def test_a_clock_that_runs_far_ahead_of_one_key_changes_nothing_for_it() -> None:
    #   clock   1  2  3  .  .  6  7  8  ...  100  ...  2**62      the last row goes at 8, whatever the clock says
    #   row 0   [--------------)
    #   row 1      [--------------)
    #   row 2         [--------------)
    near = WindowContext(clock=100)
    far = WindowContext(clock=2**62)
    stream = table_of([1, 2, 3], pa.int64())
    for spec in (Batched(within=Fraction(5)), Batched(within=Fraction(5), every=Fraction(3))):
        assert by_kernel(spec, stream, near) == by_kernel(spec, stream, far)


def test_sizes_over_many_keys_are_those_of_a_queue() -> None:
    #   100,000 keys of one to three rows: a row goes with the row two after it
    keys = np.repeat(np.arange(100_000), np.arange(100_000) % 3 + 1)
    stream = my.Stream(pa.table({"k": keys}), ("k",), ())
    panes = batched_panes(Batched(retain=2), sequences_of(stream), PLAIN)
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys)
    assert (sizes(panes.membership) == np.minimum(rank + 1, 2)).all()
    assert (panes.number == rank).all()
