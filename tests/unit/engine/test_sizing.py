"""Sizes of work: chunks of splits, which of them one map task merges, slices, and how many rows are sampled."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.engine.range_cuts import Samples, choose_bounds
from wincli.windowing.engine.strategy import SAMPLED_SPLITS, rows_of_split
from wincli.windowing.engine.task import MOST_SPLITS, Chunk, Sizes, group, pack, row_width, slice_count
from wincli.windowing.ports import Split

MIB = 1 << 20


def chunks_of(count: int, rows: int = 10, gap_after: int = -1) -> list[Chunk]:
    bases = [i * rows + (1 << 40) * (0 <= gap_after < i) for i in range(count)]
    return [Chunk(i, base, (Split(i, 0, base, rows, 1, False, ()),)) for i, base in enumerate(bases)]


@examples(200)
@given(
    st.integers(1, 300), st.integers(1, 1 << 30), st.integers(1, 5000), st.integers(1, 200),
    st.builds(Sizes, chunk=st.integers(1, MIB), slice=st.integers(1, MIB), block=st.integers(0, MIB)),
)  # fmt: skip
def test_groups_hold_all_chunks_in_order_and_never_more_than_half_the_memory_of_a_task(
    count: int, nbytes: int, slices: int, tasks: int, sizes: Sizes
) -> None:
    chunks = chunks_of(count)
    groups = group(chunks, nbytes, slices, tasks, sizes)
    assert [*chain.from_iterable(groups)] == chunks
    assert min(map(len, groups)) >= 1
    largest = max(map(len, groups))
    assert largest == 1 or largest * (nbytes // count) <= 2 * sizes.slice
    turns = -(-count // tasks)
    assert -(-len(groups) // tasks) * largest <= turns + largest  # no more than a group longer than chunk by chunk


@pytest.mark.parametrize(
    ("count", "nbytes", "slices", "tasks", "groups"),
    [
        (8, 8 * 96 * MIB, 4, 2, 8),  # 20 M rows on two cores: blocks of 24 MiB, written chunk by chunk
        (4000, 4000 * 96 * MIB, 3200, 1600, 1600),  # 10 billion rows on 1,600 cores: blocks of 30 KiB
        (1600, 1600 * 96 * MIB, 3200, 1600, 1600),  # fewer
        (40_000, 40_000 * 96 * MIB, 20_800, 1600, 11_200),  # 100 billion: of 5 KiB
        (40, 40, 1, 2, 40),  # a single slice gets a block of each chunk
    ],
)
def test_small_blocks_are_merged_in_whole_turns_of_the_cores(
    count: int, nbytes: int, slices: int, tasks: int, groups: int
) -> None:
    assert len(group(chunks_of(count), nbytes, slices, tasks, Sizes())) == groups


def test_chunks_of_different_units_are_not_merged() -> None:
    groups = group(chunks_of(10, gap_after=4), 10, 1000, 1, Sizes())
    assert [len(together) for together in groups] == [5, 5]


def test_chunks_are_neighbouring_splits_of_bounded_size_and_number() -> None:
    splits = [Split(i, 0, 10 * i, 10, 0, i == 6, (i,)) for i in range(7)]
    chunks = pack(splits, 8, 250)
    assert [len(chunk.splits) for chunk in chunks] == [3, 3, 1]
    assert [chunk.base for chunk in chunks] == [0, 30, 60]
    assert [chunk.rows for chunk in chunks] == [30, 30, 10]
    assert [len(chunk.splits) for chunk in pack(splits, 8, 1)] == [1] * 7
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


def largest(slices: int, sampled: int) -> float:
    """Return the largest slice as a multiple of the mean, of keys that are all as frequent."""
    rng = np.random.default_rng(1)
    rows = pa.table({"k": np.sort(rng.random(sampled))})
    cuts = choose_bounds(Samples(rows, np.ones(sampled)), ["k"], slices, False)
    assert cuts is not None
    assert cuts.keys is not None
    return float(np.diff([0.0, *cuts.keys.column(0).to_numpy(), 1.0]).max() * slices)


def test_thousands_of_slices_are_of_about_one_size() -> None:
    few, many = rows_of_split(4), rows_of_split(3200)
    assert (few, many) == (4000, 40_000)
    assert largest(3200, SAMPLED_SPLITS * few) > 1.8
    assert largest(3200, SAMPLED_SPLITS * many) < 1.35
