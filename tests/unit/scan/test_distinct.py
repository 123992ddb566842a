"""``--distinct``: which rows are let through, what windows and ``lag`` see of them, and what a state keeps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.distinct import Row, let_through
from references.tumbling import read, seconds_per_unit
from support.event_logs import logs
from support.strategies import column, examples, walk
from support.table_equality import difference, in_order, same
from support.window_cases import MORE, WINDOWS, T, WindowCase
from wincli.windowing.columns.arrays import combined
from wincli.windowing.columns.row_hashes import RowHasher
from wincli.windowing.errors import ClockError, ConfigError, SpecError
from wincli.windowing.language.distinct import Distinct, parse_distinct

VALUES = [
    pa.int64(), pa.uint8(), pa.uint64(), pa.float64(), pa.float32(), pa.string(), pa.binary(), pa.bool_(),
    pa.decimal128(30, 2), pa.timestamp("ns"), pa.date32(), pa.null(),
]  # fmt: skip
CLOCKS = [
    pa.int64(), pa.int16(), pa.float64(), pa.float32(), pa.timestamp("ns"), pa.timestamp("s"), pa.date32(),
    pa.decimal128(18, 1),
]  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows with two columns of any type, with nulls and NaN, a key, and a clock with ties, falls and extremes."""
    size = draw(st.integers(0, 40))
    found: dict[str, Any] = {"id": pa.array(range(size), pa.int64())}
    for name in ("a", "b"):
        kind = draw(st.sampled_from(VALUES))
        values = pa.nulls(size, kind) if pa.types.is_null(kind) else draw(column(kind, size))
        odd = [None, float("nan"), 0.0, -0.0] if pa.types.is_floating(kind) else [None]
        these = draw(st.lists(st.sampled_from([False, False, False, True]), min_size=size, max_size=size))
        others = pa.array(draw(st.lists(st.sampled_from(odd), min_size=size, max_size=size)), kind)
        found[name] = pc.if_else(pa.array(these, pa.bool_()), others, values)
    found["k"] = pa.array(draw(st.lists(st.sampled_from("xyz"), min_size=size, max_size=size)), pa.string())
    kind = draw(st.sampled_from(CLOCKS))
    found["t"] = pa.array(draw(walk(kind, size)), kind)
    return pa.table(found)


def kept(table: pa.Table, distinct: Distinct, key: Sequence[str], order: Sequence[str]) -> list[int]:
    """The numbers of the rows that are let through, by the reference."""
    kind, within = table.schema.field("t").type, distinct.within
    rows = list(read(table).values())
    is_near = None
    if within is not None:
        number = kind.to_pandas_dtype() if pa.types.is_floating(kind) else None
        most = number(float(within)) if number else within / seconds_per_unit(kind)

        def is_near(one: Row, other: Row) -> bool:
            with np.errstate(over="ignore"):
                return bool((number(other["t"]) - number(one["t"]) if number else other["t"] - one["t"]) <= most)

    if order:
        rows = sorted(rows, key=lambda row: row["t"])
    of_keys = [[row for row in rows if row["k"] == each] for each in "xyz"] if key else [rows]
    return sorted(row["id"] for own in of_keys for row in let_through(own, distinct.columns, is_near, distinct.count))


def ids(table: pa.Table, distinct: str, **options: Any) -> list[int]:
    found = wincli.aggregate(table, "count(1)", distinct=distinct, aggregates=["id=first(id)"], **options)
    return sorted(found["id"].drop_null().to_pylist())


ASKED = st.builds(
    Distinct,
    st.sampled_from([("a",), ("a",), ("b", "a"), ("a", "k"), ("t",), ("b",)]),
    st.none() | st.sampled_from([Fraction(0), Fraction(1), Fraction(5, 2), Fraction(30), Fraction(100_000)]),
    st.none() | st.integers(1, 12),
)


@examples(1500)
@given(tables(), ASKED, st.booleans(), st.booleans())
def test_rows_are_let_through_as_row_at_a_time(table: pa.Table, asked: Distinct, keyed: bool, collide: bool) -> None:
    """Also where all rows have one hash."""
    key, order = ["k"] if keyed else [], [] if asked.within is None and len(table) % 2 else T
    weak = mock.patch.object(RowHasher, "hashes", lambda _, rows: np.arange(rows.num_rows).astype(np.uint64) & 0)
    with weak if collide else nullcontext():
        found = ids(table, str(asked), key=key, order_by=order or "arrival")
    assert found == kept(table, asked, key, order)


@examples(400)
@given(tables(), ASKED, st.booleans(), st.data())
def test_a_state_keeps_what_can_still_match_and_no_more(
    table: pa.Table, asked: Distinct, keyed: bool, data: st.DataObject
) -> None:
    """Calls give what one call gives; what waits is what the next row could repeat, if it came at once."""
    if asked.within is None and asked.count is None:
        asked = Distinct(asked.columns, Fraction(3), None)
    key, order = ["k"] if keyed else [], [] if asked.within is None else T
    table = table.sort_by("t") if order else table
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    found, state = list[int](), "new"
    for low, high in zip([0, *cuts], [*cuts, len(table)], strict=True):
        options = {"key": key, "order_by": order or "arrival", "distinct": str(asked), "aggregates": ["id=first(id)"]}
        got, state = wincli.aggregate(table.slice(low, high - low), "count(1)", state=state, at_end="hold", **options)
        found += got["id"].drop_null().to_pylist()
        waiting = pc.struct_field(combined(state["_state"]), "newest").drop_null()
        sizes = pc.list_value_length(waiting).to_pylist()
        assert all(0 < size <= (asked.count or size) for size in sizes)
        if asked.within is not None and table.schema.field("t").type == pa.int64():
            at = waiting.flatten().field("t").to_pylist()
            assert all(table["t"][high - 1].as_py() - each <= asked.within for each in at)
    assert sorted(found) == kept(table, asked, key, order)


CLOCKED = [case for case in [*WINDOWS, *MORE] if case[1] == T and "timeInterval" not in case[0]]


@examples(400)
@given(logs(), st.sampled_from(CLOCKED), st.booleans(), st.sampled_from(["u within 3", "u, flag within 9 count 4"]))
def test_windows_see_the_rows_that_are_let_through(
    table: pa.Table, case: WindowCase, keyed: bool, distinct: str
) -> None:
    """As if the others were not there, but for the clock, which has seen them; ``lag`` passes them over, too."""
    window, order, own = case
    keyed = (keyed or "partitioned" in window) and own.get("empty") != "mark"
    key, table = ["k"] if keyed else [], table.sort_by("t")
    rows = list(read(table).values())
    asked = parse_distinct(distinct)
    of_keys = [[row for row in rows if row["k"] == each] for each in "abcd"] if key else [rows]
    near = lambda one, other: other["t"] - one["t"] <= asked.within  # noqa: E731
    ids = {row["id"] for own_rows in of_keys for row in let_through(own_rows, asked.columns, near, asked.count)}
    options: dict[str, Any] = {"key": key, "order_by": order, "plain": True, "rejected": "drop", **own}
    options |= {"aggregates": ["count()", "ids=collect(id)", "before=collect(lag(id))"]}
    options |= {"marks": "flag"} if window.startswith("punct()") else {}
    if options.get("marks"):
        return  # marks of rows that are left out stay
    left = table.filter(pa.array([row["id"] in ids for row in rows], pa.bool_()))
    clock = {"clock": rows[-1]["t"]} if rows and own.get("empty") != "mark" else {}
    wanted = wincli.aggregate(left, window, **options, **clock)
    found = wincli.aggregate(table, window, distinct=distinct, **options)
    assert same(found, wanted), difference(found, wanted)


MARKED = [
    ("time(1)", {}), ("time(2)", {"closed": "right"}), ('cron("* * * * *", "Europe/Paris")', {}),
    ("time(2)", {"ends": "till"}), ("time(1)", {"ends": "till", "closed": "right"}),
]  # fmt: skip
"""Windows that tell ticks without rows."""


@examples(400)
@given(st.data(), logs(), st.sampled_from(MARKED), st.booleans(), st.booleans())
def test_ticks_without_rows_are_told_once_however_rows_are_cut(
    data: st.DataObject, table: pa.Table, case: tuple[str, dict[str, Any]], keyed: bool, fails: bool
) -> None:
    """A row that is left out has no cell, and moves no clock: with a key, too, and where ``lag`` has it rejected."""
    window, own = case
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": T, "empty": "mark", "rejected": "drop", **own}
    options |= {"aggregates": ["n=count()", "ids=collect(id)"]}
    if asked := data.draw(st.sampled_from(["u within 3", "u, flag within 9 count 4", "flag count 3", None])):
        options["distinct"] = asked
    if fails:
        options["let"] = "y=CAST(CASE WHEN lag(flag) THEN u ELSE '1' END AS int)"
        options["aggregates"].append("y=sum(y)")
    table = table.sort_by("t")
    whole = wincli.aggregate(table, window, **options)
    found, state = list[pa.Table](), "new"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), min_size=1, max_size=4)))
    for low, high in zip([0, *cuts], [*cuts, None], strict=True):
        rows, at_end = table[low:high], "flush" if high is None else "hold"
        part, state = wincli.aggregate(rows, window, state=state, at_end=at_end, **options)
        found.append(part)
    got, want = in_order(pa.concat_tables(found)), in_order(whole)
    assert same(got, want), difference(got, want)


@pytest.mark.parametrize("own", [{}, {"ends": "e"}])
def test_a_row_that_is_left_out_does_not_take_the_mark_of_its_tick(own: dict[str, str]) -> None:
    """The last row of the first call repeats one; it is alone in its cell, which ends in the second call."""
    table = pa.table({"t": [1, 8, 62, 181], "e": [2, 9, 63, 182], "g": ["v", "v", "v", "u"], "k": ["b", "a", "b", "a"]})
    options = {"key": "k", "order_by": "t", "distinct": "g count 2", "empty": "mark", **own}
    _, state = wincli.aggregate(table[:3], "time(7)", state="new", **options)
    found, _ = wincli.aggregate(table[3:], "time(7)", state=state, at_end="flush", **options)
    only = found.filter(pc.equal(found["_mark"], "only"))["_at"].to_pylist()
    assert only == list(range(21, 182, 7))


def rejected_with(distinct: str, **options: Any) -> str:
    table = pa.table({"id": [1, 2], "t": [0, 1], "at": pa.array([0, 1], pa.timestamp("s")), "n": [[1], [2]]})
    table = table.append_column("clock", pa.array(["a", "b"]))
    with pytest.raises((ConfigError, SpecError, ClockError)) as caught:
        wincli.aggregate(table, "count(1)", distinct=distinct, **{"order_by": ["at"], **options})
    return str(caught.value)


@pytest.mark.parametrize(
    ("distinct", "options", "said"),
    [
        ("id within 1d", {"order_by": "arrival"}, "within needs a clock; say --order-by, or count N"),
        ("ids", {}, "there is no column 'ids' for --distinct; did you mean 'id'?"),
        ("n within 5", {}, "column 'n' is list<item: int64>, which does not sort; name another"),
        ("id within 1h", {"order_by": ["t"]}, "--distinct within 1h is a time, and column 't' is int64"),
        ("id within 1", {"order_by": ["clock"]}, "column 'clock' is string, which is no clock; order by a time or a"),
        ("id", {"state": "new"}, 'a state would keep every id for ever; say how long: --distinct "id within 1d"'),
        ("d count 2", {"let": ["d=id - lag(id)"]}, "--distinct: 'd', which uses lag(), needs rows in order"),
        ("id, id", {}, "column 'id' is there twice; name it once"),
        ("id within -1", {}, "expected a duration of 0 or more, found '-1'; write it as within 5m"),
        ("id count 0", {}, "expected a whole number, 1 or more, found '0'; write it as count 1000"),
        ("id count 1 within 2", {}, "expected the end, found 'within'; write it as COL,.. [within D] [count N]"),
        ("within 5", {}, "expected the end, found '5'; write it as COL,.. [within D] [count N]"),
        ("", {}, "expected a column, found the end"),
    ],
)
def test_a_mistake_says_what_to_do(distinct: str, options: dict[str, Any], said: str) -> None:
    assert said in rejected_with(distinct, **options)


@pytest.mark.parametrize("text", ["id", "a, b within 60 count 2", '"odd name" within 0.5', "within, count count 7"])
def test_the_text_of_a_request_is_canonical(text: str) -> None:
    assert str(parse_distinct(text)) == text
