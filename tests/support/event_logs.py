"""Random event logs, and how they are cut into files, splits, chunks and slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from support.in_memory_engine import MemorySource
from wincli.windowing.engine.range_cuts import PLACE, Samples, SliceBounds, choose_bounds
from wincli.windowing.planning.plan import Plan
from wincli.windowing.scan.segment_scan import can_be_cut


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 30))
    step = st.sampled_from([0, 0, 1, 1, 1, 2, 3, -1, -2, -9, 8])

    def some(values: list[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    def walk() -> list[int]:
        return list(accumulate(draw(st.lists(step, min_size=size, max_size=size)), initial=100))[1:]

    def later(time: int, length: int | None) -> int | None:
        return None if length is None else time + length

    times, lengths = walk(), some([0, 0, 1, 1, 2, 3, 4, 9, 70, -1, None])
    return pa.table({
        "id": pa.array(range(size), pa.int64()),
        "t": pa.array(times, pa.timestamp("s")),
        "a": pa.array(walk(), pa.int32()),
        "x": pa.array(some([0.1, 1e16, -3.0, 0.7, float("nan"), None]), pa.float64()),
        "u": pa.array(some(["p", "q", "r"]), pa.string()),
        "flag": pa.array(some([True, False]), pa.bool_()),
        "k": pa.array(some(["a", "b", "c", "d"]), pa.string()),
        "till": pa.array(map(later, times, lengths), pa.timestamp("s")),
    })  # fmt: skip


@st.composite
def cut_up(draw: st.DrawFn, table: pa.Table, keyed: bool) -> tuple[MemorySource, list[int], pa.Table | None]:
    """The table as files, splits, chunks and slices."""
    source, chunk_bounds = as_files(draw, table)
    cuts = sorted(draw(st.sets(st.sampled_from("abcd")))) if keyed else []
    keys = pa.table({"k": pa.array(cuts, pa.string())}) if keyed else pa.table({})
    return source, chunk_bounds, draw(st.sampled_from([keys, keys, None]))


def as_files(draw: st.DrawFn, table: pa.Table, most: int = 3) -> tuple[MemorySource, list[int]]:
    """The table as files and splits, cut at up to so many places each, and where chunks begin."""
    places = st.lists(st.integers(0, len(table)), max_size=most)
    edges = [0, *sorted(draw(places)), len(table)]
    tables = [table.slice(low, high - low) for low, high in pairwise(edges)]
    source = MemorySource(tables, [draw(places) for _ in tables])
    return source, draw(st.lists(st.integers(0, 2 * most + 1), max_size=2 * most))


def sliced(plan: Plan, table: pa.Table, rows: int, weights: Sequence[int] | None = None) -> SliceBounds | None:
    """Cuts after each so many rows of the total order, where they may be; with ``weights`` anywhere, as many."""
    names = list(dict.fromkeys([*plan.key, *plan.sort]))
    sample = table.select(names) if names else pa.table({})
    columns = [*sample.columns, pa.array(range(len(table)), pa.int64())]
    weigh = np.ones(len(table)) if weights is None else np.array(weights, np.float64) + 0.01
    samples = Samples(pa.Table.from_arrays(columns, names=[*names, PLACE]), weigh)
    return choose_bounds(samples, plan.key, max(1, -(-len(table) // rows)), can_be_cut(plan))
