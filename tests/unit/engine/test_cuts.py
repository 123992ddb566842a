"""However the work is cut, the answer is the one of a single scan; and every row is accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support import strategies as my
from support.event_logs import as_files, sliced
from support.in_memory_engine import MemorySource, run_in_memory
from support.strategies import examples
from wincli.windowing.engine.range_cuts import PLACE, Samples, SliceBounds, choose_bounds, slice_bounds, slice_offsets
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.ports import Batch, Counts, Split
from wincli.windowing.rows.sequence import build, one_batch

AGGREGATES = ["count()", "ids=collect(id)", "top=max(a)"]
KEYED = ["count(2)", "count(3)", "punct()", "punct(flag)"]


@st.composite
def windows(draw: st.DrawFn, stream: my.Stream) -> str:
    kind = stream.kind("a")
    amount = my.text(draw(my.amounts(kind)))
    return draw(st.sampled_from([*KEYED, f"delta(a, {amount})", f"gap(a, {amount})"]))


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


@dataclass
class SomeInCodes(MemorySource):
    """A source of which files with an even number have no dictionaries."""

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        if not self.steps and split.file % 2 == 0:
            dictionary = [name for name in dictionary if name == "user"]
        return super().read(split, columns, dictionary)


ROWS: list[tuple[str, dict[str, Any]]] = [
    ("count(2)", {}),
    ("delta(n, 3)", {"having": parse_expression("note <> 'b'")}),
    ("gap(n, 2)", {"let": (("more", parse_expression("note || '!'")),)}),
    ("split(kind <> first(kind))", {}),
    ("sliding, count(2)", {"emit": "entered"}),
]


@examples(100)
@given(st.data(), st.sampled_from(ROWS), st.booleans(), st.sampled_from([["user"], []]))
def test_texts_that_rows_show_are_the_same_whether_files_store_codes(
    data: st.DataObject, job: tuple[str, dict[str, Any]], few: bool, key: list[str]
) -> None:
    window, options = job
    texts = st.none() | (st.sampled_from("ab") if few else st.text("abcdefgh", max_size=3))
    rows = data.draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 20), texts, texts), max_size=30))
    user, n, kind, note = ([row[at] for row in rows] for at in range(4))
    columns = {"user": pa.array(user, pa.string()), "n": pa.array(n, pa.int64())}
    table = pa.table({**columns, "kind": pa.array(kind, pa.string()), "note": pa.array(note, pa.string())})
    files, chunks = as_files(data.draw, table)
    plan = make_plan(
        parse_window(window), table.schema, key, ["n"], None, Options(**{"emit": "rows", "plain": True, **options})
    )
    whole = run_in_memory(plan, MemorySource([table], [[]]), [], None, "none").table
    source = SomeInCodes(files.tables, files.cuts)
    cut = run_in_memory(plan, source, chunks, sliced(plan, table, data.draw(st.integers(1, 20))), "none")
    assert cut.table.equals(whole), (cut.table, whole)


@examples(200)
@given(st.data(), st.booleans())
def test_cuts_into_files_chunks_and_slices_do_not_change_the_result(data: st.DataObject, is_clocked: bool) -> None:
    """Of keys and orders of any type; with a grid there is one clock for all slices."""
    stream = data.draw(my.clocked() if is_clocked else my.streams())
    if not sortable_keys(stream):
        return
    source, chunk_bounds = as_files(data.draw, stream.table)
    cuts, file_ends = data.draw(key_cuts(stream)), list(accumulate(map(len, source.tables)))
    options: dict[str, Any] = {}
    if is_clocked:
        period, origin = data.draw(my.grids(stream.kind(stream.order[0])))
        window, order = f"time({my.text(period)})", stream.order
        options = {"origin": origin or 0, "empty": "skip" if stream.key else "mark"}
    else:
        window, order = data.draw(windows(stream)), stream.order_by
    # file ends stand after the last row in the total order, which only in arrival order is a position
    ends = file_ends if order == "arrival" else None
    whole = wincli.aggregate(
        stream.table, window, marks=ends, key=stream.key, order_by=order, aggregates=AGGREGATES, **options
    )
    calls = [parse_aggregate(text) for text in AGGREGATES]
    plan = make_plan(parse_window(window), stream.table.schema, stream.key, order, calls, Options(**options))
    cut = run_in_memory(plan, source, chunk_bounds, cuts, "files" if ends is not None else "none")
    assert cut.table.equals(whole), (cut.table, whole)
    assert cut.counts == Counts(rows_in=stream.table.num_rows, windowed=stream.table.num_rows)


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


def chosen(keys: list[str], weights: list[float], may_cut_keys: bool = False) -> tuple[list[str], SliceBounds]:
    rows = pa.table({"k": keys, "t": range(len(keys)), PLACE: range(len(keys))})
    rows = rows if may_cut_keys else rows.select(["k"])
    found = choose_bounds(Samples(rows, np.array(weights)), ["k"], 4, may_cut_keys)
    assert found is not None
    assert found.keys is not None
    return found.keys["k"].to_pylist(), found


def test_cut_points_weigh_keys_and_cut_inside_those_that_weigh_more_than_a_slice() -> None:
    keys, even = chosen(["a", "b", "c", "d"], [5, 5, 5, 5])
    assert (keys, even.inside.any()) == (["b", "c", "d"], False)
    assert chosen(["a", "b", "b", "c", "d"], [1, 50, 50, 1, 1])[0] == ["b"]
    keys, cut = chosen(["d", "b", "b", "b", "b", "b", "a"], [1.0] * 7, True)
    assert keys == ["b", "b", "b"]
    assert cut.places.to_pylist() == [{"t": t, PLACE: t} for t in (1, 3, 5)]
    assert cut.inside.tolist() == [False, True, True]
    assert choose_bounds(Samples(pa.table({"k": ["a"]}), np.array([7])), ["k"], 4, False) is None


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
