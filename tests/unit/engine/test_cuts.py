"""However the work is cut, the answer is the one of a single scan; and every row is accounted for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support import strategies as my
from support.in_memory_engine import MemorySource, run_in_memory
from wincli.windowing.engine.blocks import ShuffleBlock, read, write
from wincli.windowing.engine.range_cuts import PLACE, Samples, SliceBounds, choose_bounds, slice_bounds, slice_offsets
from wincli.windowing.engine.task import MOST_SPLITS, pack, row_width, slice_count
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.ports import ChunkAccount, Counts, Part, Split
from wincli.windowing.rows.marks import NO_FILE, Marks, no_marks
from wincli.windowing.rows.sequence import build, one_batch

AGGREGATES = ["count()", "ids=collect(id)", "top=max(a)"]
KEYED = ["count(2)", "count(3)", "punct()", "punct(flag)"]


@st.composite
def windows(draw: st.DrawFn, stream: my.Stream) -> str:
    kind = stream.kind("a")
    amount = my.text(draw(my.amounts(kind)))
    return draw(st.sampled_from([*KEYED, f"delta(a, {amount})", f"gap(a, {amount})"]))


@st.composite
def cut_up(draw: st.DrawFn, stream: my.Stream) -> tuple[MemorySource, list[int], pa.Table | None, list[int]]:
    """A stream as files, splits, chunks and slices; and where its file ends are, as marks."""
    size = stream.table.num_rows
    places = st.lists(st.integers(0, size), max_size=3)
    edges = [0, *sorted(draw(places)), size]
    tables = [stream.table.slice(low, high - low) for low, high in pairwise(edges)]
    source = MemorySource(tables, [draw(places) for _ in tables])
    chunk_bounds = draw(st.lists(st.integers(0, 7), max_size=6))
    return source, chunk_bounds, draw(key_cuts(stream)), edges[1:]


@st.composite
def key_cuts(draw: st.DrawFn, stream: my.Stream) -> pa.Table | None:
    """None, or up to four keys of the stream at which slices begin."""
    if draw(st.booleans()):
        return None
    if not stream.key:
        return pa.table({})
    picks = draw(st.lists(st.integers(0, max(0, stream.table.num_rows - 1)), max_size=4))
    keys = stream.table.select(list(stream.key)).take(pa.array(picks[: stream.table.num_rows], pa.int64()))
    ordered = keys.group_by(list(stream.key)).aggregate([]).sort_by([(name, "ascending") for name in stream.key])
    return ordered.select(list(stream.key))


def sortable_keys(stream: my.Stream) -> bool:
    return not any(pa.types.is_decimal256(stream.kind(name)) for name in stream.key)


@given(st.data(), my.streams())
def test_cuts_into_files_chunks_and_slices_do_not_change_the_result(data: st.DataObject, stream: my.Stream) -> None:
    if not sortable_keys(stream):
        return
    window = data.draw(windows(stream))
    source, chunk_bounds, cuts, file_ends = data.draw(cut_up(stream))
    options: dict[str, Any] = {"key": stream.key, "order_by": stream.order_by, "aggregates": AGGREGATES}
    # file ends stand after the last row in the total order, which only in arrival order is a position
    ends = file_ends if stream.order_by == "arrival" else None
    whole = wincli.aggregate(stream.table, window, marks=ends, **options)
    spec, calls = parse_window(window), [parse_aggregate(text) for text in AGGREGATES]
    plan = make_plan(spec, stream.table.schema, stream.key, stream.order_by, calls)
    cut = run_in_memory(plan, source, chunk_bounds, cuts, "files" if ends is not None else "none")
    assert cut.table.equals(whole), (cut.table, whole)
    assert cut.counts == Counts(rows_in=stream.table.num_rows, windowed=stream.table.num_rows)


@given(st.data(), my.clocked())
def test_one_clock_for_all_slices(data: st.DataObject, stream: my.Stream) -> None:
    if not sortable_keys(stream):
        return
    period, origin = data.draw(my.grids(stream.kind(stream.order[0])))
    source, chunk_bounds, cuts, _ = data.draw(cut_up(stream))
    spec = parse_window(f"time({my.text(period)})")
    calls = [parse_aggregate(text) for text in AGGREGATES]
    shared: dict[str, Any] = {"origin": origin or 0, "empty": "skip" if stream.key else "mark"}
    plan = make_plan(spec, stream.table.schema, stream.key, stream.order, calls, Options(**shared))
    whole = wincli.aggregate(stream.table, spec, key=stream.key, order_by=stream.order, aggregates=AGGREGATES, **shared)
    found = run_in_memory(plan, source, chunk_bounds, cuts).table
    assert found.equals(whole), (found, whole)


@pytest.mark.parametrize(("splits", "slices"), [(1, 1), (2, 5), (7, 2)])
@pytest.mark.parametrize("window", ["delta(t, 5)", "gap(t, 2)", "count(3)", "time(4)", "punct(flag)"])
def test_shuffled_files_where_the_order_decides(splits: int, slices: int, window: str) -> None:
    rng = np.random.default_rng(7)
    size, files = 140, 4
    table = pa.table({
        "t": pa.array(rng.permutation(size), pa.timestamp("s")),
        "k": pa.array([f"k{i}" for i in rng.integers(0, 9, size)]),
        "flag": rng.random(size) < 0.2,
        "x": rng.normal(size=size) * 10.0 ** rng.integers(-9, 9, size),
    })  # fmt: skip
    aggregates = ["sum(x)", "var(x)", "last(x)", "count()"]
    plan = make_plan(parse_window(window), table.schema, ["k"], ["t"], [parse_aggregate(a) for a in aggregates])
    whole = wincli.aggregate(table, window, key=["k"], order_by=["t"], aggregates=aggregates)
    cuts = pa.table({"k": [f"k{i}" for i in range(1, slices)]}, schema=pa.schema([("k", pa.string())]))
    pieces = [table.slice(i * size // files, size // files) for i in rng.permutation(files)]
    source = MemorySource(pieces, [[j * size // files // splits for j in range(1, splits)] for _ in pieces])
    found = run_in_memory(plan, source, range(0, 4 * splits, 2), cuts).table
    assert found.drop(["_pos"]).equals(whole.drop(["_pos"]))  # to the bit: no tolerance


def test_rows_without_a_place_are_rejected_whole_and_counted() -> None:
    table = pa.table({
        "t": pa.array([1, None, 3, 4, 5], pa.timestamp("s")),
        "k": ["a", "b", None, "a", "a"],
        "v": [1.0, 2.0, 3.0, float("nan"), 5.0],
        "other": ["p", "q", "r", "s", "t"],
    })  # fmt: skip
    plan = make_plan(parse_window("delta(v, 1)"), table.schema, ["k"], ["t"])
    found = run_in_memory(plan, MemorySource([table.slice(0, 2), table.slice(2)], [[1], [1]]), [1, 2], None)
    assert found.counts == Counts(5, windowed=2, rejected={"nan_attribute": 1, "null_key": 1, "null_order": 1})
    assert found.counts.balanced
    rejects = [(r["reason"], r["file"], r["line"], r["row"]["other"]) for r in found.rejects.to_pylist()]
    assert rejects == [
        ("null_order", "file-0", 2, "q"),
        ("null_key", "file-1", 1, "r"),
        ("nan_attribute", "file-1", 2, "s"),
    ]


def test_keyed_marks_that_no_key_has_rows_for_come_out_once() -> None:
    table = pa.table({"k": ["a", "b", "b", "c"], "x": [1, 2, 3, 4]})
    plan = make_plan(parse_window("punct()"), table.schema, ["k"], None, [parse_aggregate("xs=collect(x)")])
    tables = [table.slice(0, 2), table.slice(0, 0), table.slice(2, 2), table.slice(0, 0)]
    cuts = pa.table({"k": ["b", "c"]})
    found = run_in_memory(plan, MemorySource(tables, [[1], [], [1], []]), [1, 2, 3, 4], cuts).table
    #  file 0: a b |   file 1: |   file 2: b c |   file 3: |
    rows = [(r["k"], r["window"], r["xs"], r["_pos"], r["_mark"]) for r in found.to_pylist()]
    assert rows == [
        ("a", 0, [1], 1, "window"),
        ("b", 0, [2], 1, "window"),
        ("b", 1, [3], 3, "window"),
        ("c", 0, [4], 3, "window"),
        (None, None, None, 1, "only"),
        (None, None, None, 3, "only"),
    ]


def test_a_file_mark_follows_the_last_of_its_rows_where_columns_order_them() -> None:
    first = pa.table({"t": [3, 1, 2], "x": [30, 10, 20]})
    second = pa.table({"t": [6, 4, 5], "x": [60, 40, 50]})
    plan = make_plan(parse_window("punct()"), first.schema, (), ["t"], [parse_aggregate("xs=collect(x)")])
    for cuts in ([[], []], [[1], [1, 2]]):
        found = run_in_memory(plan, MemorySource([first, second], cuts), [1, 2, 3], pa.table({})).table
        assert found["xs"].to_pylist() == [[10, 20, 30], [40, 50, 60]]
        assert found["_at"].to_pylist() == [3, 6]


def _there_and_back(blob: ShuffleBlock, base: int) -> ShuffleBlock:
    sink = pa.BufferOutputStream()
    write(blob, base, sink)
    return read(sink.getvalue())


def test_a_blob_reads_back_as_it_was() -> None:
    rows = pa.record_batch({"k": ["b", "a", "b"], "t": pa.array([5, 6, 7]), "x": ["p", None, "q"]})
    sequences = build(rows, np.array([10, 11, 12]), ["k"], ["t"], ["t", "x"])
    marks = Marks(pa.record_batch({"t": [5]}), np.array([10]), np.array([NO_FILE]))
    account = ChunkAccount(Counts(rows_in=3, rejected={"late": 1}), (Part("_rejected/part-00000.parquet", 1, 99),))
    found = _there_and_back(ShuffleBlock(4, sequences, marks, np.arange(len(marks)), 7, account), 10)
    assert (found.chunk, found.clock, found.account) == (4, 7, account)
    assert found.sequences.keys is not None
    assert sequences.keys is not None
    assert found.sequences.keys.equals(sequences.keys)
    assert found.sequences.rows.to_pylist() == [{"t": 6, "x": None}, {"t": 5, "x": "p"}, {"t": 7, "x": "q"}]
    assert found.sequences.pos.tolist() == [11, 10, 12]
    assert found.sequences.bounds.tolist() == [0, 1, 3]
    assert found.marks.rows.to_pylist() == [{"t": 5}]


def test_an_unkeyed_blob_without_columns_keeps_its_rows() -> None:
    rows = pa.table({"x": [1, 2]}).select([]).to_batches()
    batch = rows[0] if rows else pa.record_batch({}, schema=pa.schema([]))
    sequences = build(batch, np.array([0, 1]), (), (), ())
    found = _there_and_back(ShuffleBlock(0, sequences, no_marks(batch, ()), np.empty(0, np.int64), None, None), 0)
    assert found.sequences.bounds.tolist() == [0, 2]
    assert found.sequences.pos.tolist() == [0, 1]


def test_chunks_are_neighbouring_splits_of_bounded_size() -> None:
    splits = [Split(i, 0, 10 * i, 10, 0, i == 6, (i,)) for i in range(7)]
    chunks = pack(splits, 8, 250)
    assert [len(chunk.splits) for chunk in chunks] == [3, 3, 1]
    assert [chunk.base for chunk in chunks] == [0, 30, 60]
    assert [chunk.rows for chunk in chunks] == [30, 30, 10]
    assert [len(chunk.splits) for chunk in pack(splits, 8, 1)] == [1] * 7


def test_many_small_files_are_several_chunks() -> None:
    splits = [Split(i, i, 10 * i, 10, 0, True, ()) for i in range(2 * MOST_SPLITS + 1)]
    chunks = pack(splits, 8, 1 << 20)
    assert [len(chunk.splits) for chunk in chunks] == [MOST_SPLITS, MOST_SPLITS, 1]


def test_widths_and_slice_counts() -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("i", pa.int32()), ("s", pa.string()), ("b", pa.bool_())])
    splits = [
        Split(0, 0, 0, 10, 10 * (8 + 4 + 1 + 100), False, ()),
        Split(1, 0, 10, 10, 10 * (8 + 4 + 1 + 200), True, ()),
    ]
    assert row_width(schema, splits, ["t", "i"]) == 8 + 8 + 4
    assert row_width(schema, splits, ["s", "b"]) == 8 + 150 + 1
    assert row_width(schema, [], ["s"]) == 8 + 16
    assert slice_count(1000, 100, 2) == 10
    assert slice_count(1001, 100, 2) == 12
    assert slice_count(10, 100, 2) == 4


def chosen(keys: list[str], weights: list[float], may_cut_keys: bool = False) -> SliceBounds | None:
    rows = pa.table({"k": keys, "t": range(len(keys)), PLACE: range(len(keys))})
    rows = rows if may_cut_keys else rows.select(["k"])
    return choose_bounds(Samples(rows, np.array(weights)), ["k"], 4, may_cut_keys)


def test_cut_points_weigh_keys_and_cut_inside_those_that_weigh_more_than_a_slice() -> None:
    even = chosen(["a", "b", "c", "d"], [5, 5, 5, 5])
    assert even is not None
    assert even.keys is not None
    assert even.keys["k"].to_pylist() == ["b", "c", "d"]
    assert not even.inside.any()
    heavy = chosen(["a", "b", "b", "c", "d"], [1, 50, 50, 1, 1])
    assert heavy is not None
    assert heavy.keys is not None
    assert heavy.keys["k"].to_pylist() == ["b"]
    cut = chosen(["d", "b", "b", "b", "b", "b", "a"], [1.0] * 7, True)
    assert cut is not None
    assert cut.keys is not None
    assert cut.keys["k"].to_pylist() == ["b", "b", "b"]
    assert cut.places.to_pylist() == [{"t": t, PLACE: t} for t in (1, 3, 5)]
    assert cut.inside.tolist() == [False, True, True]
    assert chosen(["a"], [7]) is None


def test_slices_hold_the_rows_from_their_cut_on() -> None:
    keys = pa.table({"k": ["a", "c", "e", "g"]})
    assert slice_bounds(keys, pa.table({"k": ["b", "e", "z"]})).tolist() == [0, 1, 2, 4, 4]
    rows = pa.table({"k": ["a", "c", "c", "c", "e"], "t": [9, 4, 4, 6, 1]})
    sequences = build(one_batch(rows), np.array([0, 3, 5, 7, 8]), ["k"], ["t"], ["t"])
    places = pa.table({"t": [4, 4, 4, 6, 0], PLACE: [3, 4, 5, 8, 0]})
    cuts = SliceBounds(pa.table({"k": ["c", "c", "c", "c", "d"]}), places, np.array([False, True, True, True, True]))
    assert slice_offsets(sequences, cuts).tolist() == [0, 1, 2, 2, 4, 4, 5]
    assert slice_offsets(sequences, None).tolist() == [0, 5]


@pytest.mark.parametrize("window", ["count(2)", "sliding, count(2)", "retain all", "punct()"])
@pytest.mark.parametrize("cuts", [None, pa.table({})])
def test_a_job_that_needs_no_column_counts_its_rows(window: str, cuts: pa.Table | None) -> None:
    table = pa.table({"x": [1, 2, 3]})
    plan = make_plan(parse_window(window), table.schema)
    found = run_in_memory(plan, MemorySource([table.slice(0, 1), table.slice(1)], [[], [1]]), [1, 2], cuts)
    assert found.counts == Counts(rows_in=3, windowed=3)
    assert found.table["count"].to_pylist() == wincli.aggregate(table, window, marks=[1, 3])["count"].to_pylist()
