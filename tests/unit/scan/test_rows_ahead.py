"""Rows ahead of their time (semantics section 19): the product agrees with the reference, on every road.

max_ahead 3        1 2 4 5 | 60 61        60 and 61 are rejected: ``ahead``
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.rows_ahead import rows_ahead
from support.event_logs import cut_up
from support.in_memory_engine import MemorySource, in_one_pass, run_in_memory
from support.incremental_runs import IncrementalRuns
from support.strategies import DECIMALS, FLOATS, TIMESTAMPS, array, examples, value_of
from support.table_equality import difference, in_order, same
from wincli.windowing.clock.watermark import ENOUGH, Belief, make_lateness
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window
from wincli.windowing.language.spec import TimeInterval
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.planning.validation import look_at
from wincli.windowing.scan.rows_ahead import latest_rows, merge_latest
from wincli.writers.state.tables import read_state, write_state

KINDS = [pa.int32(), pa.uint64(), *FLOATS, *DECIMALS, pa.date32(), *TIMESTAMPS]
WINDOWS = ["gap(t, 2)", "time(4)", "count(3)", "delta(t, 5)", "sliding, time(4), time(3)", "within 3"]
EVENTS = "timeInterval, intervalDuration(4)"
CALLS = ["count()", "ids=collect(id)"]
JUMPS = st.sampled_from([0, 0, 1, 1, 1, 2, 4, 40, 1000])
AMOUNTS = st.sampled_from([0, 3, 50])


@st.composite
def clocks(draw: st.DrawFn) -> list[int | None]:
    """Times that rise, with jumps, most of them late in the log; some are null."""
    size = draw(st.integers(0, 30))
    steady = draw(st.integers(0, size))
    steps = [draw(st.integers(0, 2)) if at < steady else draw(JUMPS) for at in range(size)]
    missing = draw(st.sets(st.integers(0, 30), max_size=2))
    return [None if at in missing else clock for at, clock in enumerate(accumulate(steps))]


@st.composite
def logs(draw: st.DrawFn, in_order: bool, kind: pa.DataType | None = None) -> pa.Table:
    kind = draw(st.sampled_from(KINDS)) if kind is None else kind
    times = draw(clocks())
    times = times if in_order else draw(st.permutations(times))
    keys = draw(st.lists(st.sampled_from(["a", "a", "b", None]), min_size=len(times), max_size=len(times)))
    columns = {
        "t": array([None if n is None else value_of(n, kind) for n in times], kind),
        "k": pa.array(keys, pa.string()),
    }
    return pa.table({"id": pa.array(range(len(times)), pa.int64()), "n": array(times, pa.int64()), **columns})


def unit_of(kind: pa.DataType) -> Fraction:
    """Seconds from `value_of` one number to the next; of floats a little more, as they are rounded."""
    if pa.types.is_floating(kind):
        return Fraction(1001, 10_000)
    if pa.types.is_decimal(kind):
        return Fraction(1, 10**kind.scale)
    if pa.types.is_date(kind):
        return Fraction(86_400)
    return Fraction(1, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] if pa.types.is_timestamp(kind) else 1)


def ahead_of(log: pa.Table, key: list[str], amount: int, last: int | None = None) -> list[int]:
    """The rows of a log that the reference finds: those with a null in the key or the order are no rows of the run."""
    valid = [
        n is not None and (not key or k is not None) for n, k in zip(*(log[c].to_pylist() for c in "nk"), strict=True)
    ]
    late = [last is not None and n is not None and n < last for n in log["n"].to_pylist()]
    own = [
        Fraction(n) if ok and not behind else None
        for n, ok, behind in zip(log["n"].to_pylist(), valid, late, strict=True)
    ]
    return rows_ahead(own, Fraction(amount), None if last is None else Fraction(last))


def without(log: pa.Table, ahead: list[int]) -> pa.Table:
    """A log whose rows ahead have no place in the order: so their positions stay."""
    clocks, times = log["n"].to_pylist(), log["t"].combine_chunks()
    first = min((clocks[row] for row in ahead), default=None)  # whatever is behind it moves no watermark either
    gone = np.array([first is not None and n is not None and n >= first for n in clocks], np.bool_)
    return log.set_column(log.column_names.index("t"), "t", times.take(pa.array(np.arange(len(log)), mask=gone)))


@examples(300)
@given(logs(in_order=False), st.sampled_from(["count(3)", "change(id)"]), st.booleans(), AMOUNTS)
def test_rejected_rows_of_one_run_are_those_of_the_reference(
    log: pa.Table, window: str, keyed: bool, amount: int
) -> None:
    key, kind = ["k"] if keyed else [], log["t"].type
    given: dict[str, Any] = {"window": window, "key": key, "order_by": "t", "aggregates": CALLS}
    found = wincli.aggregate(log, **given, max_ahead=amount * unit_of(kind), rejected="column")
    told = [row["row"]["id"] for row in found["_rejected"].to_pylist() if row and row["reason"] == "ahead"]
    ahead = ahead_of(log, key, amount)
    assert sorted(told) == ahead
    others = wincli.aggregate(without(log, ahead), **given, rejected="drop")
    kept = found.filter(found["_rejected"].is_null()).drop_columns(["_rejected"])
    assert same(kept.drop_columns(["_at"]), others.drop_columns(["_at"])), difference(kept, others)


def planned(log: pa.Table, window: str, key: list[str], amount: int, at_end: Any = "flush") -> Plan:
    options = Options(max_ahead=Fraction(amount), at_end=at_end, event_time="t" if "timeI" in window else None)
    return make_plan(parse_window(window), log.schema, key, ["t"], [*map(parse_aggregate, CALLS)], options)


@examples(300)
@given(st.data(), st.sampled_from([*WINDOWS, EVENTS]), st.booleans(), AMOUNTS, st.booleans())
def test_chunks_slices_and_batches_give_what_one_task_gives(
    data: st.DataObject, window: str, keyed: bool, amount: int, ordered: bool
) -> None:
    log = data.draw(logs(ordered, pa.timestamp("s")))
    key = ["k"] if keyed else []
    plan = planned(log, window, key, amount)
    source, chunks, slices = data.draw(cut_up(log, keyed))
    files = MemorySource(source.tables, [[] for _ in source.tables])
    whole = run_in_memory(plan, files, [], None)
    ahead = ahead_of(log, key, amount)
    assert whole.counts.rejected.get("ahead", 0) == len(ahead)
    assert sorted(row["row"]["id"] for row in whole.rejects.to_pylist() if row["reason"] == "ahead") == ahead
    some = run_in_memory(plan, source, chunks, slices)
    assert same(in_order(some.table), in_order(whole.table)), difference(some.table, whole.table)
    assert some.counts == whole.counts
    plan = replace(plan, options=replace(plan.options, max_ahead=None))
    mended = run_in_memory(plan, MemorySource([without(log, ahead)], [[]]), [], None)
    assert same(in_order(whole.table), in_order(mended.table)), difference(whole.table, mended.table)
    if ordered:
        given: dict[str, Any] = {"window": window, "key": key, "order_by": "t", "aggregates": CALLS}
        given |= {"event_time": "t"} if "timeI" in window else {}
        reader = pa.RecordBatchReader.from_batches(log.schema, log.to_batches(data.draw(st.integers(1, 9))))
        with patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", 1):
            streamed = wincli.aggregate_stream(reader, **given, max_ahead=amount, rejected="drop").read_all()
        at_once = wincli.aggregate(log, **given, max_ahead=amount, rejected="drop")
        assert same(in_order(streamed), in_order(at_once)), difference(streamed, at_once)


@given(st.data(), logs(in_order=True, kind=pa.timestamp("s")), AMOUNTS)
def test_chunks_in_order_that_are_scanned_where_they_are_read(data: st.DataObject, log: pa.Table, amount: int) -> None:
    log = log.filter(log["t"].is_valid())
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=4).map(sorted))
    source, plan = MemorySource([log], [places]), planned(log, "gap(t, 2)", [], amount)
    if len(log):
        found = run_in_memory(plan, source, range(1, len(places) + 1), None, "none", in_order=in_one_pass)
        whole = run_in_memory(plan, source, [], None, "none")
        assert same(found.table, whole.table), difference(found.table, whole.table)
        assert found.counts == whole.counts


@examples(200)
@given(st.data(), logs(in_order=True, kind=pa.timestamp("s")), st.sampled_from([*WINDOWS, EVENTS]), AMOUNTS)
def test_nights_reject_what_is_far_from_their_last_rows_and_are_one_run_if_nothing_is(
    data: st.DataObject, log: pa.Table, window: str, amount: int
) -> None:
    plan, last, found = planned(log, window, [], amount), None, 0
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=3).map(sorted))
    runs = IncrementalRuns(plan, "none")
    for low, high in pairwise([0, *places, len(log)]):
        night = log.slice(low, high - low)
        ahead = ahead_of(night, [], amount, last)
        runs.run([night], [[]], "flush" if high == len(log) and low == [0, *places][-1] else "hold", [], None)
        assert runs.results[-1].counts.rejected.get("ahead", 0) == len(ahead)
        found += len(ahead)
        kept = [n for row, n in enumerate(night["n"].to_pylist()) if n is not None and row not in ahead]
        last = max([*kept, *([] if last is None else [last])], default=None)
    whole = run_in_memory(plan, MemorySource([log], [[]]), [], None, "none")
    if not found and not ahead_of(log, [], amount):
        assert same(in_order(runs.table), in_order(whole.table)), difference(runs.table, whole.table)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60), st.lists(st.integers(0, 60), max_size=4).map(sorted))
def test_latest_rows_of_parts_are_those_of_all(values: list[int], places: list[int]) -> None:
    told, pos = np.array(values, np.int64), np.arange(len(values))
    with patch("wincli.windowing.scan.rows_ahead._BLOCK", 2):
        whole = latest_rows(told, pos)
        parts = [
            latest_rows(told[low:high], pos[low:high])
            for low, high in pairwise([0, *places, len(values)])
            if low <= high
        ]
    assert list(whole.values) == sorted(values, reverse=True)[:ENOUGH]
    assert merge_latest(parts).values == whole.values
    assert [values[at] for at in whole.pos] == list(whole.values)


@examples(300)
@given(
    st.lists(st.sampled_from([*range(30), 30, 100, 1000, -50]), max_size=60), st.sampled_from([0, 1, 7, 60]),
    st.lists(st.integers(0, 60), max_size=5).map(sorted),
)  # fmt: skip
def test_votes_go_on_behind_any_cut(values: list[int], amount: int, places: list[int]) -> None:
    spec = TimeInterval(Fraction(10), Fraction(10))
    for kind in (pa.int64(), pa.float64()):
        own = make_lateness(kind, spec, Fraction(3), Fraction(0), Fraction(amount))
        told = np.array(values, np.int64 if kind == pa.int64() else np.float64)
        latest, _, end, ahead = own.believe(told, Belief())
        belief, flags, levels = Belief(), [], []
        for low, high in pairwise([0, *places, len(values)]):
            some, _, belief, which = own.believe(told[low:high], belief)
            flags += which.tolist()
            levels += some.tolist()
        assert (belief, flags) == (end, ahead.tolist())
        assert levels == latest.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": "count(2)", "order_by": "arrival"}, "--max-ahead needs rows with a time or number to order by"),
        ({"window": "count(2)", "order_by": "u"}, "--max-ahead needs rows with a time or number to order by"),
    ],
)
def test_an_order_without_a_clock_is_refused(given: dict[str, Any], message: str) -> None:
    table = pa.table({"t": [1], "u": ["a"]})
    with pytest.raises(ConfigError, match=message):
        wincli.aggregate(table, **given, max_ahead=1)


@pytest.mark.parametrize(("step", "is_refused"), [(1, False), (1000, True)])
def test_a_time_goes_with_whole_seconds_and_not_with_numbers_that_count_milliseconds(
    step: int, is_refused: bool
) -> None:
    table = pa.table({"t": [1_790_000_000 * step + n * step for n in range(20)]})
    options = Options(max_ahead=parse_duration("1d"))
    refusal = pytest.raises(ConfigError, match="--max-ahead 1d is a time, and column 't' is int64")
    with refusal if is_refused else nullcontext():
        make_plan(parse_window("count(2)"), table.schema, [], ["t"], None, options, look=look_at(table))


def test_streams_hold_back_rows_until_enough_have_come_or_reject_them_at_the_end() -> None:
    """A pause of a hundred, with two rows of a batch behind it, and rows of 10_000 that stay alone."""
    log = pa.table({"t": [*range(12), 110, 10_000, *range(111, 130), 10_001]})
    given: dict[str, Any] = {"order_by": "t", "aggregates": "ids=collect(t)", "max_ahead": 50, "rejected": "column"}
    reader = pa.RecordBatchReader.from_batches(log.schema, log.to_batches(14))
    with patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", 1):
        streamed = wincli.aggregate_stream(reader, "gap(t, 5)", **given).read_all().to_pylist()
    assert [row["ids"] for row in streamed if row["ids"]] == [[*range(12)], [*range(110, 130)]]
    told = [(row["_rejected"]["reason"], row["_rejected"]["row"]["t"]) for row in streamed if row["_rejected"]]
    assert told == [("ahead", 10_000), ("ahead", 10_001)]


def test_votes_go_through_a_folder_of_states_and_back(tmp_path: Path) -> None:
    given: dict[str, Any] = {"window": EVENTS, "event_time": "t", "max_ahead": 5}
    log = pa.table({"t": [*range(14), 900, 901, *range(14, 20), 902]})
    _, state = wincli.aggregate(log.slice(0, 16), state="new", **given)
    write_state(state, str(tmp_path / "st"))
    again = read_state(str(tmp_path / "st"))
    assert again["_registers"][0]["belief"].as_py() == {"latest": 0, "votes": 6, "least": 10}
    both = [wincli.aggregate(log.slice(16), state=each, at_end="flush", **given)[0] for each in (state, again)]
    one, other = (table.drop_columns(["_pos"]) for table in both)
    assert same(one, other), difference(one, other)
