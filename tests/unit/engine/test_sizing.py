"""Sizes of work: which chunks one map task merges, and how many blocks that leaves."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.engine.task import Chunk, Sizes, group
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


def test_large_blocks_are_written_chunk_by_chunk() -> None:
    """20 M rows on two cores: eight chunks, and blocks of 24 MiB."""
    assert len(group(chunks_of(8), 8 * 96 * MIB, 4, 2, Sizes())) == 8


@pytest.mark.parametrize(
    ("count", "slices", "groups"), [(4000, 3200, 1600), (1600, 3200, 1600), (40_000, 20_800, 11_200)]
)
def test_small_blocks_are_merged_in_whole_turns_of_the_cores(count: int, slices: int, groups: int) -> None:
    """10 billion rows on 1,600 cores, fewer, and 100 billion: blocks of 30, 30 and 5 KiB."""
    assert len(group(chunks_of(count), count * 96 * MIB, slices, 1600, Sizes())) == groups


def test_chunks_of_different_units_are_not_merged() -> None:
    groups = group(chunks_of(10, gap_after=4), 10, 1000, 1, Sizes())
    assert [len(together) for together in groups] == [5, 5]


def test_a_single_slice_gets_a_block_of_each_chunk() -> None:
    assert len(group(chunks_of(40), 40, 1, 2, Sizes())) == 40
