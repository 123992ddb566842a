"""A binary tree over ranks, of which only what forks is there: its shape between some ranks depends on these alone."""

from __future__ import annotations

import numpy as np

from ...columns.arrays import Ints
from ...support.jit import kernel


@kernel
def trie(rank: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Return the tree over m distinct ranks: two ranks part at the highest bit in which they differ.

    ``rank``: int64 (E,), ascending from 0 or more; equal ones are one leaf. Leaf k is node 2k, and node 2k + 1 parts
    leaf k from leaf k + 1: nodes stand from left to right. Returned are the node of each rank, int64 (E,); of each of
    the 2m - 1 nodes the one above it, -1 for the root, and the other one below that; and the root, 0 where there is
    none.
    """
    node = np.empty(rank.size, np.int64)
    up = np.full(max(1, 2 * rank.size), -1, np.int64)
    beside = up.copy()
    right_edge = np.empty(65, np.int64)  # nodes that still lack what is below them on the right, from the root on
    left = np.empty(65, np.int64)  # what is below each of them on the left
    bits = np.empty(65, np.int64)  # in which the ranks differ that each of them parts
    depth = 0
    top = 0  # of the finished tree to the right of all these nodes
    for i in range(rank.size):
        if i == 0 or rank[i] == rank[i - 1]:
            node[i] = top if i == 0 else node[i - 1]
            continue
        node[i] = node[i - 1] + 2
        differ = rank[i] ^ rank[i - 1]
        while depth > 0 and bits[depth - 1] < differ:
            depth -= 1
            top = _join_nodes(up, beside, right_edge[depth], left[depth], top)
        right_edge[depth], left[depth], bits[depth] = node[i] - 1, top, differ
        depth += 1
        top = node[i]
    while depth > 0:
        depth -= 1
        top = _join_nodes(up, beside, right_edge[depth], left[depth], top)
    return node, up, beside, top


@kernel
def _join_nodes(up: Ints, beside: Ints, node: int, left: int, right: int) -> int:
    up[left] = up[right] = node
    beside[left], beside[right] = right, left
    return node
